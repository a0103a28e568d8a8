"""One piece of work: kiln's variants and the peers side by side, as Markdown tables."""

from clock import percentile


def number(value):
    """Four significant digits without an exponent, where that is readable."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        text = f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
        return text
    return f"{value:.2e}"


def ratio(value):
    if value < 0.1:
        return f"{value:.2g}×"
    return f"{value:.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"


class Row:
    """A program's times in milliseconds, each the time of the whole work (`scale` says how it was made
    from a part of it)."""

    def __init__(self, program, part, times, error="", note=""):
        self.program, self.part, self.times = program, part, times
        self.error, self.note = error, note

    def p50(self):
        return percentile(self.times, 50)


class Table:
    def __init__(self, title):
        self.title, self.lines, self.kiln, self.peers, self.absent = title, [], [], [], []

    def say(self, text):
        self.lines.append(text)

    def add_kiln(self, run, error="", note=""):
        """Two rows: the kernel by the device's clock and the request by the client's."""
        if run.reason:
            self.absent.append((f"kiln {run.name}", run.reason))
            return
        program = f"**kiln {run.name}**"
        kernel = Row(program, "kernel", run.kernels, error, note)
        phases = ", ".join(f"{name} {percentile(times, 50):.3f}"
                           for name, times in run.phases.items() if times and name != "kernel")
        self.kiln.append((run.name, kernel, Row(program, "request", run.walls, "", phases)))

    def add_peer(self, program, part, times, error="", note="", scale=1.0):
        """`scale` multiplies times of a part of the work; the note must say so."""
        self.peers.append(Row(program, part, [t * scale for t in times], error, note))

    def add_absent(self, program, reason):
        self.absent.append((program, reason))

    def _times(self):
        yield "| program | time of | n | p50 ms | p90 ms | p99 ms | error | note |"
        yield "|---|---|---|---|---|---|---|---|"
        for row in [row for _, *pair in self.kiln for row in pair] + self.peers:
            marks = " | ".join(number(percentile(row.times, p)) for p in (50, 90, 99))
            yield (f"| {row.program} | {row.part} | {len(row.times)} | {marks} | {row.error} | "
                   f"{row.note} |")
        for program, reason in self.absent:
            yield f"| {program} | – | 0 | – | – | – | – | {reason} |"

    def _ratios(self):
        heads = [f"{name} {part}" for name, *_ in self.kiln for part in ("kernel", "request")]
        yield "| peer's p50 ÷ kiln's p50 | " + " | ".join(heads) + " |"
        yield "|---|" + "---|" * len(heads)
        for peer in self.peers:
            cells = [ratio(peer.p50() / row.p50()) if row.p50() > 0 else "–"
                     for _, *pair in self.kiln for row in pair]
            yield f"| {peer.program}, {peer.part} | " + " | ".join(cells) + " |"

    def markdown(self):
        out = [f"### {self.title}", ""]
        for line in self.lines:
            out += [line, ""]
        out += [*self._times(), ""]
        if self.kiln and self.peers:
            out += [*self._ratios(), ""]
        return out
