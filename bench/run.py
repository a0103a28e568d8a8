"""Runs kiln and its peers side by side on this machine and writes the ratios as Markdown."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import time

sys.dont_write_bytecode = True

try:
    import numpy
except ImportError:
    sys.exit("bench: numpy is missing; run ./bench/run.sh without --no-install, or install it")

import call
import clock
import jacobi
import kiln
import limits
import lombscargle
import mandelbrot
import nufft
import peers
import picture

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOUNS = {"mandelbrot": mandelbrot, "jacobi": jacobi, "lombscargle": lombscargle, "nufft": nufft,
         "picture": picture, "call": call}
# Room for 8192² doubles in and out.
DAEMON = ("--max-body", "700M", "--arena", "3G", "--deadline", "900", "--log-level", "warning")


class Bench:
    """What every piece of work needs: the daemon, the peers, the limits, how long to measure."""

    def __init__(self, options, daemon, found, rates, cores):
        self.quick, self.cuda = options.quick, options.device == "cuda"
        self.kiln, self.peers, self.limits, self.cores = daemon, found, rates, cores
        self.effort = clock.Effort(400.0, 1, 20) if options.quick else clock.Effort(4000.0, 3, 200)
        self.kept, self.started = {}, time.monotonic()

    def say(self, text):
        print(f"bench: {time.monotonic() - self.started:6.1f} s  {text}", file=sys.stderr, flush=True)

    def job(self, name, path, query, body=b"", media=None, effort=None):
        return self.kiln.job(name, path, query, body, media, effort or self.effort)

    def time(self, program):
        return clock.repeat(program, self.effort)

    def once(self, name, make):
        """What is compiled once a run."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]


def commit_text(given):
    if given:
        return given
    try:
        git = ["git", "-C", str(ROOT)]
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True,
                                capture_output=True, text=True).stdout.strip()
        dirty = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True,
                               text=True).stdout.strip()
        return commit + ("-changed" if dirty else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor_name():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def device_name(daemon):
    """As the daemon describes its first device."""
    listed = json.loads(bytes(daemon.request("GET", "/v1/devices").body))
    devices = listed.get("devices", listed) if isinstance(listed, dict) else listed
    for device in devices:
        if device.get("state") == "ready":
            return f"{device['name']} ({device.get('description', {}).get('name', 'unknown')})"
    return daemon.device


def load_text():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def head_lines(options, commit, device, cores):
    yield f"# kiln beside its peers, {options.date}"
    yield ""
    if options.label:
        yield f"**{options.label}**"
        yield ""
    yield f"- device: {device}; {cores} cores of {processor_name()}; {platform.system()} {platform.release()}"
    yield f"- commit: {commit}"
    yield f"- command: `bench/run.sh {shlex.join(sys.argv[1:])}`"
    yield f"- Python {platform.python_version()}; load average at the start: {load_text()}"
    yield ""


def options_read():
    parser = argparse.ArgumentParser(prog="bench/run.sh", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="smaller work, less than two minutes")
    parser.add_argument("--only", action="append", choices=sorted(NOUNS), metavar="NAME",
                        help="one of %(choices)s; may be repeated")
    parser.add_argument("--label", default="", help="a line at the head of the result")
    parser.add_argument("--commit", default="", help="where there is no git to ask")
    parser.add_argument("--output", type=pathlib.Path, help="folder or .md file, bench/results")
    parser.add_argument("--no-install", action="store_true",
                        help="(run.sh) build and install nothing, use python3 as it is")
    options = parser.parse_args()
    options.failed = False
    options.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return options


def sections(bench, options):
    """Tables of every noun; one that fails is named and does not stop the others."""
    for name in options.only or NOUNS:
        try:
            for table in NOUNS[name].tables(bench):
                yield from table.markdown()
        except Exception as error:
            bench.say(f"{name} failed: {error!r}")
            options.failed = True
            yield f"**{name}: the rest failed: `{error!r}`**"
            yield ""


def report(options):
    """The lines of the result, as they come."""
    program = kiln.program_find(ROOT)
    commit = commit_text(options.commit)
    options.commit = commit
    found = peers.Peers(options.device)
    quiet = limits.cpu_measure(program, options.quick)
    rates = quiet
    if options.device == "cuda":
        rates = limits.gpu_measure(found.get("cupy"), found.reasons.get("cupy", ""), options.quick)
    with kiln.Kiln(program, "cpu" if options.device == "cpu" else "cuda:0", DAEMON) as daemon:
        yield from head_lines(options, commit, device_name(daemon), quiet.cores)
        yield from [*found.markdown(), ""]
        if rates is not quiet:
            yield from ["## Limits of the GPU", "", *rates.markdown(), "", "## Limits of the cores", ""]
        yield from [*quiet.markdown(), "", "## Work", ""]
        yield ("`kernel` is the device's clock as told by `Server-Timing`, `request` and `call` are wall "
               "times of whole answers (array in, array out), `device` is device events around a peer.")
        yield ""
        yield from sections(Bench(options, daemon, found, rates, quiet.cores), options)
        yield f"Load average at the end: {load_text()}"


def main():
    options = options_read()
    lines = []
    for line in report(options):
        print(line, flush=True)
        lines.append(line)
    target = options.output or ROOT / "bench" / "results"
    if target.suffix != ".md":
        target /= f"{options.date}-{options.device}-{options.commit}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"bench: written to {target}", file=sys.stderr)
    return 1 if options.failed else 0


if __name__ == "__main__":
    sys.exit(main())
