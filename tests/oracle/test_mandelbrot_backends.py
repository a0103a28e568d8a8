"""Mandelbrot results are the same bytes from every backend: each instruction set of this processor,
and CUDA where there is a device. Random requests of all kinds, asked of a daemon each.

KILN_REQUESTS   how many (default 300)
KILN_SEED       of the random numbers (default 1)
"""

import contextlib
import json
import math
import os
import random
import subprocess

from daemon import SOURCE, Daemon, Report, skip

LEVELS = ("baseline", "avx2", "avx512")
PROGRAM = os.environ.get("KILND", str(SOURCE / "build" / "kilnd"))


def devices():
    """Names of what can be compared: an instruction set, or a CUDA device."""
    found = json.loads(subprocess.run([PROGRAM, "probe"], stdout=subprocess.PIPE, check=True).stdout)
    best = found["cpu"][0]["simd"]
    return list(LEVELS[:LEVELS.index(best) + 1]) + ["cuda:0"] * bool(found["cuda"])


def daemon_of(device):
    """A daemon that has just this, and keeps no results."""
    cpu = device in LEVELS
    os.environ["KILN_TEST_DEVICE"] = "cpu" if cpu else device
    os.environ["KILN_CPU_ISA"] = device if cpu else ""
    return Daemon("--cache-bytes", "0")


def view(rng):
    """Edges of a window near the border of the set, as exact decimals."""
    angle = rng.uniform(0, 2 * math.pi)
    bulge = 0.5 - 0.5 * math.cos(angle)
    x, y = 0.25 + bulge * math.cos(angle), bulge * math.sin(angle)
    width = 10 ** rng.uniform(-11, 0.8)
    height = width * rng.uniform(0.3, 2)
    return {"xmin": repr(x - width / 2), "xmax": repr(x + width / 2),
            "ymin": repr(y - height / 2), "ymax": repr(y + height / 2)}


def request(rng, colormaps):
    fields = {**view(rng), "width": rng.randint(1, 90), "height": rng.randint(1, 70),
              "max_iter": rng.choice((1, 31, 33, 100, 400, 1000, 3000)),
              "format": rng.choice(("png", "png", "png", "npy", "raw", "json"))}
    fields["escape_radius"] = rng.choice((2, 2.002, 3, 1024, 1e9, 2 ** 40, rng.uniform(2, 1e6)))
    if rng.random() < 0.3 and fields["escape_radius"] <= 2 ** 31:
        fields["precision"] = rng.choice(("fp32", "fp64"))
    if rng.random() < 0.15:
        fields["smooth"] = "false"
    if fields["format"] in ("npy", "raw"):
        fields["field"] = rng.choice(("smooth", "count"))
    if fields["format"] != "png":
        return fields
    fields |= {"colormap": rng.choice(colormaps), "gamma": rng.choice((0.3, 1, rng.uniform(0.02, 10))),
               "supersample": rng.choice((1, 1, 2, 3, 5)), "compression": rng.choice(("fast", "small"))}
    if rng.random() < 0.3:
        fields["vmax"] = rng.uniform(1, 500)
        fields["vmin"] = rng.choice((0, rng.uniform(0, 0.9) * fields["vmax"]))
    if rng.random() < 0.5:
        fields |= {"shade": "true", "azimuth": rng.choice((315, rng.uniform(0, 360))),
                   "altitude": rng.choice((10, 0, 90, rng.uniform(0, 90))),
                   "vert_exag": rng.choice((1.5, 10 ** rng.uniform(-3, 3)))}
    return fields


def result_of(reply):
    """What must be equal: bytes with their name, or a JSON result without what a run differs in."""
    if not reply.headers.get("content-type", "").startswith("application/json"):
        return reply.status, reply.headers.get("etag"), reply.body
    return reply.status, {name: value for name, value in reply.json().items()
                          if name not in ("job", "device", "timing")}


def main():
    names = devices()
    if len(names) < 2:
        skip(f"only {names[0]} is here: nothing to compare it with")
    rng = random.Random(int(os.environ.get("KILN_SEED", "1")))
    count = int(os.environ.get("KILN_REQUESTS", "300"))
    report = Report()
    with contextlib.ExitStack() as stack:
        daemons = [stack.enter_context(daemon_of(name)) for name in names]
        kinds = {job["name"]: job for job in daemons[0].get("/v1/jobs/types").json()["jobs"]}
        fields = {row["name"]: row for row in kinds["mandelbrot"]["fields"]}
        differ, refused, weak = {name: 0 for name in names[1:]}, 0, 0
        for _ in range(count):
            query = request(rng, fields["colormap"]["choices"])
            first, *others = [d.request("GET", "/v1/mandelbrot", **query) for d in daemons]
            refused += first.status != 200
            weak += query["format"] != "json" and first.headers.get("etag", "W/").startswith("W/")
            for name, other in zip(names[1:], others):
                if result_of(other) != result_of(first):
                    differ[name] += 1
                    if differ[name] <= 3:
                        print(f"{name} differs from {names[0]}: {query}")
        for name, number in differ.items():
            report.check(f"{name} gives {names[0]}'s bytes and tags", number == 0,
                         f"{number} of {count} requests differ")
        report.check("the requests are answered", refused <= count // 10, f"{refused} were refused")
        report.check("their tags are strong", weak <= refused, f"{weak} are not")
    report.end()


main()
