"""Runs the rows of the table below against kilnd and its peers with kiln-bench, and prints each beside
its aim. See load.sh and docs/benchmarks.md."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

from services import Kiln, Missing, Nginx, Peer, fetch

HERE = pathlib.Path(__file__).resolve().parent
CACHED = "/v1/mandelbrot?width=256&height=256&max_iter=400&format=png"


class Row:
    """One line of the table: a scenario at so many connections, and the figure that counts.

    `aim` holds for GPUs, `cpu_aim` for the CPU; each is (relation, number). With `against` the number
    is a ratio to that service: of times ("peer") or of rates ("nginx")."""

    def __init__(self, name, what, scenario, connections=1, figure="p50", aim=None, cpu_aim=None,
                 against=None, peer=None):
        self.name, self.what, self.scenario, self.connections = name, what, scenario, connections
        self.figure, self.aim, self.cpu_aim = figure, aim, cpu_aim
        self.against, self.peer = against, peer


ROWS = (
    Row("256-png", "256×256×400 PNG, p50", "mandelbrot-256-png", aim=("≤", 0.25), peer="peer"),
    Row("256-npy", "256×256×400 NPY, p50", "mandelbrot-256-npy", aim=("≤", 0.12), peer="peer"),
    Row("256-png-64", "256×256×400 PNG, 64 connections", "mandelbrot-256-png", 64, "rate",
        aim=("≥", 20000), peer="peer"),
    Row("1500-png", "1500×1250×400 PNG, p50", "mandelbrot-1500-png", aim=("≤", 1.5),
        cpu_aim=("≥", 60), against="peer", peer="peer"),
    Row("1500-png-32", "1500×1250×400 PNG, 32 connections", "mandelbrot-1500-png", 32, "rate",
        aim=("≥", 2000), peer="peer"),
    Row("overhead", "64×64×50 NPY, beyond the job's phases, p50", "mandelbrot-64-npy",
        figure="overhead", aim=("≤", 80)),
    Row("deep", "1500×1250×10 000 PNG, 8 connections", "mandelbrot-1500-deep", 8, "rate"),
    Row("jacobi", "Jacobi 400×266, 150 000 sweeps, p50", "jacobi-exact"),
    Row("lombscargle", "Lomb-Scargle, 1024 points, 32 768 frequencies, p50", "lombscargle-peaks"),
    Row("curves", "light curves, 165 points, 20 000 frequencies, 64 connections",
        "lombscargle-curves", 64, "rate"),
    Row("mix", "mix, 32 connections", "mix", 32, "rate"),
    Row("hit", "the same PNG, 64 connections", "cache-hit", 64, "rate", ("≥", 0.7), ("≥", 0.7),
        "nginx", "nginx"),
    Row("304", "304, 64 connections", "not-modified", 64, "rate", ("≥", 0.7), ("≥", 0.7), "nginx",
        "nginx"),
)
UNITS = {"p50": "ms", "overhead": "µs", "rate": "/s"}


def digits(value):
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


class Result:
    def __init__(self, value=None, note=""):
        self.value, self.note = value, note

    def text(self, unit):
        return self.note if self.value is None else f"{digits(self.value)} {unit}"


class Meter:
    """kiln-bench, with the effort of this run."""

    def __init__(self, program, output, quick):
        self.program, self.output, self.quick = program, output, quick
        self.failures = 0

    def effort(self):
        if self.quick:
            return ["--duration", "1", "--warmup", "0.3"]
        return ["--duration", "2", "--warmup", "1", "--stable", "5", "--windows", "8"]

    def run(self, name, url, scenario, *arguments, effort=None):
        """The JSON that it wrote, or the reason why there is none."""
        path = self.output / f"{name}.json"
        command = [self.program, "--scenario", str(HERE / "scenarios" / f"{scenario}.json"), "--json",
                   str(path), *map(str, self.effort() if effort is None else effort),
                   *map(str, arguments), url]
        path.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        (self.output / f"{name}.md").write_text(done.stdout)
        if done.returncode:
            self.failures += 1
        if not path.exists():
            return None, done.stderr.strip().removeprefix("kiln-bench: ")[:200] or "nothing measured"
        return json.loads(path.read_text()), ""

    def row(self, row, service, short, slow=0):
        """The row's figure of a service. `slow`: seconds that one request takes, where that is long."""
        arguments, effort = ["--connections", row.connections, "--timeout", 120], None
        if slow > 0.1:
            count = max(4, 2 * os.cpu_count()) if row.connections > 1 else 5
            arguments = ["--connections", min(row.connections, count), "--timeout", 300, "--count", count]
            effort = []
        told, reason = self.run(f"{row.name}-{short}", service.url, row.scenario, *arguments, effort=effort)
        if told is None:
            return Result(note=reason)
        point = told["points"][0]
        note = ""
        if point["wrong"]:
            wrong = ", ".join(f"{kind} {n}" for kind, n in point["errors"].items() if n)
            note = f"{point['right']} right, errors: {wrong}"
        elif not point["stable"]:
            note = "not stable"
        if point["client_busy"] > 0.85:
            note += (", " if note else "") + "client busy"
        if not point["right"]:
            return Result(note=note or "no right answer")
        value = {"p50": point["latency"]["p50"], "rate": point["rate"],
                 "overhead": point["overhead"]["p50"] * 1e3}[row.figure]
        return Result(value, note)


class Report:
    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def say(self, text=""):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()


def progress(text):
    print(f"load: {text}", file=sys.stderr, flush=True)


def kiln_rows(meter, kiln, rows):
    found = {}
    for row in rows:
        progress(f"kiln: {row.what}")
        found[row.name] = meter.row(row, kiln, "kiln")
    return found


def peer_rows(meter, device, rows):
    """Alone with the event loop, concurrent with a pool of threads: each at its best."""
    found, slow = {}, {}
    for threads in (0, os.cpu_count()):
        some = [row for row in rows if (row.connections > 1) == (threads > 0)]
        if not some:
            continue
        try:
            with Peer("cuda" if device.startswith("cuda") else "cpu", threads) as peer:
                progress(f"peer: {peer.describe()}, {threads} threads")
                for row in some:
                    if row.scenario not in slow:
                        slow[row.scenario] = alone(meter, peer, row)
                    progress(f"peer: {row.what}")
                    found[row.name] = meter.row(row, peer, "peer", slow[row.scenario])
        except Missing as error:
            found.update({row.name: Result(note=str(error)) for row in some})
    return found


def alone(meter, service, row):
    """Seconds of one request by itself."""
    told, _ = meter.run(f"{row.name}-once", service.url, row.scenario, "--count", 2, "--timeout", 120,
                        effort=[])
    return told["points"][0]["latency"]["max"] / 1e3 if told else 0


def nginx_rows(meter, content, rows):
    found = {}
    try:
        with Nginx(CACHED.split("?", maxsplit=1)[0], content) as nginx:
            progress(nginx.describe())
            for row in rows:
                progress(f"nginx: {row.what}")
                found[row.name] = meter.row(row, nginx, "nginx")
    except Missing as error:
        found.update({row.name: Result(note=str(error)) for row in rows})
    return found


def ratio_of(row, kiln, peer):
    """How many times better kiln is."""
    if not kiln or not peer or not kiln.value or not peer.value:
        return None
    return kiln.value / peer.value if row.figure == "rate" else peer.value / kiln.value


def table(report, rows, gpu, kiln, others):
    report.say("| request | kiln | aim | reached | peer | kiln is better by | notes |")
    report.say("|---|--:|--:|---|--:|--:|---|")
    for row in rows:
        mine, peer = kiln[row.name], others.get(row.name)
        unit, ratio = UNITS[row.figure], ratio_of(row, mine, peer)
        aim = row.aim if gpu else row.cpu_aim
        relative = aim is not None and row.against and not (gpu and row.against == "peer")
        wanted, reached = "–", ""
        if aim is not None:
            relation, number = aim
            wanted = f"{relation} {digits(number)}" + (f"× {row.against}" if relative else f" {unit}")
            value = ratio if relative else mine.value
            if value is not None:
                reached = "yes" if (value >= number if relation == "≥" else value <= number) else "no"
        notes = [note for note in (mine.note if mine.value is not None else "",
                                   f"peer: {peer.note}" if peer and peer.note else "") if note]
        report.say(f"| {row.what} | {mine.text(unit)} | {wanted} | {reached} | "
                   f"{peer.text(unit) if peer and peer.value is not None else '–'} | "
                   f"{f'{digits(ratio)}×' if ratio else '–'} | {'; '.join(notes)} |")
    report.say()


def sweeps(meter, kiln, report, gpu):
    """Pictures of latency over load, and the tail at 80% of the peak."""
    short = ["--duration", "1", "--warmup", "0.3"] if meter.quick else ["--duration", "3", "--warmup", "0.5"]
    spin = ["--spin", "50"] if os.cpu_count() >= 8 else []
    told, reason = meter.run("over-connections", kiln.url, "mandelbrot-256-png", "--sweep",
                             "connections=1,2,4,8,16,32,64,128", "--svg",
                             meter.output / "over-connections.svg", effort=short)
    if told is None:
        report.say(f"No sweep over connections: {reason}\n")
    else:
        report.say((meter.output / "over-connections.md").read_text())
    # Beyond the peak requests are due that nobody can take: that is shown, and no failure of the run.
    told, reason = meter.run("over-load", kiln.url, "mandelbrot-256-png", "--connections", 256, "--sweep",
                             "rates=10,20,30,40,50,60,70,80,90,95", "--allow-errors", *spin, "--svg",
                             meter.output / "over-load.svg", effort=short)
    if told is None:
        report.say(f"No sweep over load: {reason}\n")
        return
    report.say((meter.output / "over-load.md").read_text())
    for point in told["points"]:
        if point["share"] == 80 and point["right"]:
            ratio = point["latency"]["p99"] / point["latency"]["p50"]
            report.say(f"p99 at 80% of the peak: **{ratio:.1f} × p50** (aim ≤ 5{'' if gpu else ', for GPUs'}; "
                       f"{point['wrong']} errors).\n")


def leak(meter, kiln, report, count):
    progress(f"leaks: {count} mixed requests")
    told, reason = meter.run("leak", kiln.url, "mix", "--connections", 16, "--count", count, "--watch",
                             kiln.pid, "--timeout", 120, effort=[])
    report.say((meter.output / "leak.md").read_text() if told else f"No search for leaks: {reason}\n")


def scaling(meter, arguments, report):
    """One device against all of them."""
    row = Row("scaling", "1500×1250×10 000 PNG", "mandelbrot-1500-deep", 32, "rate")
    devices = arguments.device.split(",")
    found = []
    for some in (devices[:1], devices):
        progress(f"kiln: {row.what}, {len(some)} device(s)")
        with Kiln(arguments.kilnd, ",".join(some), arguments.argument) as kiln:
            found.append(meter.row(row, kiln, f"{len(some)}"))
    one, all_of = found
    ratio = f"**{all_of.value / one.value:.2f}×**" if one.value and all_of.value else "–"
    report.say(f"{row.what}, 32 connections: 1 device {one.text('/s')}, {len(devices)} devices "
               f"{all_of.text('/s')}: {ratio} (aim for 4: ≥ 3.8×). {one.note} {all_of.note}\n")


def head(arguments, report, kiln):
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    report.say(f"# kiln under load{': ' + arguments.label if arguments.label else ''}\n")
    report.say(f"{datetime.date.today()}, {os.cpu_count()} cores ({model}), load average "
               f"{os.getloadavg()[0]:.1f}. Devices: {kiln.describe() or arguments.device}. "
               f"Command: `{' '.join(['load.sh', *sys.argv[1:]])}`\n")


def program_find(name, variable):
    """$VARIABLE, the build's, or that of a bundle that this folder lies in or beside."""
    places = [os.environ.get(variable), HERE.parent / "build" / name, HERE.parent / "bin" / name,
              HERE.parent / "tests" / name, HERE / name]
    return next((str(place) for place in places if place and pathlib.Path(place).exists()), None)


def arguments_read():
    parser = argparse.ArgumentParser(prog="load.sh", description="kiln under load beside its peers.")
    parser.add_argument("--kilnd", default=program_find("kilnd", "KILND"))
    parser.add_argument("--bench", default=program_find("kiln-bench", "KILN_BENCH"))
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, or several: cuda:0,cuda:1")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-sweeps", action="store_true")
    parser.add_argument("--quick", action="store_true", help="windows of a second, fewer requests")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[
        *(row.name for row in ROWS), "sweeps", "scaling", "leak"], help="rows; may be repeated")
    parser.add_argument("--leak", type=int, metavar="COUNT", help="requests of the search for leaks; 0: none")
    parser.add_argument("--output", default="load", help="folder of tables, JSON and pictures")
    parser.add_argument("--label", default="")
    parser.add_argument("--argument", action="append", default=[], help="for kilnd; may be repeated")
    arguments = parser.parse_args()
    for name, path in (("kilnd", arguments.kilnd), ("kiln-bench", arguments.bench)):
        if not path or not pathlib.Path(path).exists():
            parser.error(f"no {name}: build it, or say where it is")
    if arguments.leak is None:
        arguments.leak = 5000 if arguments.quick else 100000
    return arguments


def main():
    arguments = arguments_read()
    output = pathlib.Path(arguments.output)
    output.mkdir(parents=True, exist_ok=True)
    report, gpu = Report(output / "load.md"), arguments.device.startswith("cuda")
    meter = Meter(arguments.bench, output, arguments.quick)
    only = arguments.only
    rows = [row for row in ROWS if not only or row.name in only]
    sweeping = "sweeps" in only if only else not arguments.no_sweeps
    others = {}
    try:
        with Kiln(arguments.kilnd, arguments.device, arguments.argument) as kiln:
            head(arguments, report, kiln)
            status, content = fetch(kiln.url + CACHED)
            if status != 200:
                raise Missing(f"kilnd answers {status} to {CACHED}")
            mine = kiln_rows(meter, kiln, rows)
            if sweeping:
                progress("kiln: sweeps")
                sweeps(meter, kiln, report, gpu)
        # Not while kilnd waits beside them: each has the machine alone.
        if not arguments.no_peers:
            others.update(peer_rows(meter, arguments.device, [r for r in rows if r.peer == "peer"]))
            served = [row for row in rows if row.peer == "nginx"]
            others.update(nginx_rows(meter, content, served) if served else {})
        if rows:
            table(report, rows, gpu, mine, others)
        if "," in arguments.device and (not only or "scaling" in only):
            scaling(meter, arguments, report)
        if arguments.leak > 0 and (not only or "leak" in only):
            # A cache that is full before the counting begins: until then it grows.
            small = ["--cache-bytes", "16M", *arguments.argument]
            with Kiln(arguments.kilnd, arguments.device, small) as kiln:
                leak(meter, kiln, report, arguments.leak)
    except Missing as error:
        sys.exit(f"load: {error}")
    if meter.failures:
        sys.exit(f"load: {meter.failures} measurements had errors (see the notes)")


if __name__ == "__main__":
    main()
