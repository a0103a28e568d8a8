"""The least call: what a request costs beyond its job."""

import os
import pathlib
import subprocess

from clock import Effort
from table import Table


def latency_lines(bench):
    """Output of the program `latency` ($KILN_LATENCY, or beside the daemon), a client in C."""
    program = os.environ.get("KILN_LATENCY") or str(
        pathlib.Path(bench.kiln.program).resolve().parent / "latency")
    path = "/v1/mandelbrot?width=64&height=64&max_iter=50&format=raw"
    try:
        done = subprocess.run([program, "127.0.0.1", str(bench.kiln.port), path,
                               "1000" if bench.quick else "10000"],
                              capture_output=True, text=True, timeout=120, check=True)
        return "By `bench/latency.c`:\n\n" + done.stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"`bench/latency.c`: missing, {error}"


def tables(bench):
    table = Table("The least call, 64×64 pixels, 50 iterations, raw bytes")
    bench.say(table.title)
    run = bench.job("64×64", "/v1/mandelbrot", {"width": 64, "height": 64, "max_iter": 50,
                                                "format": "raw"}, effort=Effort(bench.effort.budget, 3, 5000))
    table.add_kiln(run, "", "from Python, one keep-alive connection")
    table.say(latency_lines(bench))
    yield table
