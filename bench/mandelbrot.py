"""Mandelbrot views: kiln against the array program of the Matplotlib showcase (NumPy, CuPy), a compiled
loop (Numba) and a plain CUDA kernel. All take the same pixel centres and escape radius."""

import numpy as np

from clock import repeat_device
from table import Table

RADIUS = 1024.0
SEED = (-2.25, 0.75, -1.25, 1.25)
SAMPLES = 1000

PLAIN = r"""
extern "C" __global__ void plain(int *count, const double *cx, const double *cy, int width, int height,
                                 int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    TYPE a = (TYPE)cx[i], b = (TYPE)cy[j], x = 0, y = 0;
    int found = -1;
    for (int n = 1; n <= limit; n++) {
        TYPE t = x * x - y * y + a;
        y = 2 * x * y + b;
        x = t;
        if (x * x + y * y > (TYPE)1048576) { found = n; break; }
    }
    count[(size_t)j * width + i] = found;
}
"""


class View:
    def __init__(self, name, edges, width, height, limit):
        self.name, self.edges, self.width, self.height, self.limit = name, edges, width, height, limit

    def centres(self):
        """Real parts of the columns and imaginary parts of the rows."""
        xmin, xmax, ymin, ymax = self.edges
        dx, dy = (xmax - xmin) / self.width, (ymax - ymin) / self.height
        return (xmin + (np.arange(self.width) + 0.5) * dx, ymax - (np.arange(self.height) + 0.5) * dy)

    def query(self, **more):
        words = dict(zip(("xmin", "xmax", "ymin", "ymax"), map(repr, self.edges)))
        return {**words, "width": self.width, "height": self.height, "max_iter": self.limit,
                "escape_radius": RADIUS, **more}


def late_view(width, height, limit):
    x, y, span = -0.7436438870371, 0.1318259042053, 1e-7
    tall = span * height / width
    return View("late", (x - span / 2, x + span / 2, y - tall / 2, y + tall / 2), width, height, limit)


def views(quick):
    yield View("seed", SEED, 1500, 1250, 400)
    yield View("seed", SEED, 960, 540, 2000) if quick else View("seed", SEED, 3840, 2160, 10000)
    yield late_view(240, 135, 20000) if quick else late_view(960, 540, 20000)


def array_program(xp, view):
    """The showcase's program: every point of the array at every step, masked, complex64. Its count is
    the last step inside; 0 for points that stay."""
    cx, cy = (xp.asarray(part, xp.float32) for part in view.centres())
    c = cx + cy[:, None] * xp.asarray(1j, xp.complex64)
    count = xp.zeros(c.shape, int)
    z = xp.zeros_like(c)
    for n in range(view.limit):
        inside = abs(z) < RADIUS
        count[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    count[count == view.limit - 1] = 0
    return count


def numba_program(numba):
    """count(cx, cy, limit) as a parallel loop over rows, fp64, compiled."""
    @numba.njit(parallel=True)
    def count(cx, cy, limit):
        out = np.empty((cy.size, cx.size), np.int32)
        for j in numba.prange(cy.size):
            for i in range(cx.size):
                x = y = 0.0
                found = -1
                for n in range(1, limit + 1):
                    x, y = x * x - y * y + cx[i], 2 * x * y + cy[j]
                    if x * x + y * y > RADIUS * RADIUS:
                        found = n
                        break
                out[j, i] = found
        return out

    count(np.zeros(1), np.zeros(1), 1)
    return count


class Reference:
    """Counts of some pixels spread over the view, in extended precision from the same double centres."""

    def __init__(self, view):
        random = np.random.default_rng(1)
        self.rows = random.integers(0, view.height, SAMPLES)
        self.columns = random.integers(0, view.width, SAMPLES)
        cx, cy = view.centres()
        self.limit = view.limit
        self.counts = self._escape(cx[self.columns].astype(np.longdouble),
                                   cy[self.rows].astype(np.longdouble))

    def _escape(self, cx, cy):
        counts, left = np.full(cx.size, -1), np.arange(cx.size)
        x, y = np.zeros_like(cx), np.zeros_like(cy)
        for n in range(1, self.limit + 1):
            x, y = x * x - y * y + cx, 2 * x * y + cy
            gone = x * x + y * y > RADIUS * RADIUS
            if gone.any():
                counts[left[gone]] = n
                stay = ~gone
                left, x, y, cx, cy = left[stay], x[stay], y[stay], cx[stay], cy[stay]
                if not left.size:
                    break
        return counts

    def error(self, counts):
        wrong = np.count_nonzero(np.asarray(counts)[self.rows, self.columns] != self.counts)
        return f"{100 * wrong / SAMPLES:.1f}% ≠"

    def error_array(self, counts):
        """For the array program, which counts differently."""
        counts = np.asarray(counts)
        return self.error(np.where(counts == 0, -1, counts + 1))


def kiln_rows(bench, table, view, reference):
    """kiln's variants; answers the total of steps that a literal loop makes."""
    steps = None
    for precision in ("fp32", "fp64"):
        if view.name == "late" and precision == "fp32":
            continue
        run = bench.job(f"{precision} count", "/v1/mandelbrot", view.query(
            precision=precision, field="count", smooth="false", format="npy"))
        error = ""
        if not run.reason:
            counts = run.answer.npy()
            error = reference.error(counts)
            steps = float(np.where(counts < 0, view.limit, counts).sum(dtype=float))
        table.add_kiln(run, error, rate_note(bench, run, steps, precision))
    if view.limit == 400:
        table.add_kiln(bench.job("fp32 smooth", "/v1/mandelbrot", view.query(
            precision="fp32", field="smooth", format="npy")), "", "continuous value, float32")
        table.add_kiln(bench.job("picture", "/v1/mandelbrot", view.query(format="png")), "",
                       "coloured, PNG")
    return steps


def rate_note(bench, run, steps, precision):
    """Steps of the literal loop a second, beside what 4 instructions a step allow."""
    rate = run.rate(steps or 0)
    if not rate:
        return ""
    limit = bench.limits.issue(precision, "31")
    share = f", {400 * rate / limit:.0f}% of the limit" if limit else ""
    return f"{rate / 1e9:.4g} Gstep/s of the literal loop{share}"


def peer_rows(bench, table, view, reference):
    numpy_limit = 500 if bench.quick else 1000
    if view.limit <= numpy_limit:
        times, count = bench.time(lambda: array_program(np, view))
        table.add_peer("NumPy array program", "call", times, reference.error_array(count),
                       "the Matplotlib showcase's, complex64")
    else:
        table.add_absent("NumPy array program", f"not run: every point at each of {view.limit} steps")
    numba = bench.peers.get("numba")
    if numba:
        count = bench.once("mandelbrot numba", lambda: numba_program(numba))
        cx, cy = view.centres()
        times, counts = bench.time(lambda: count(cx, cy, view.limit))
        table.add_peer("Numba", "call", times, reference.error(counts), "njit parallel, fp64")
    else:
        table.add_absent("Numba", bench.peers.reason("numba"))
    if bench.cuda:
        gpu_rows(bench, table, view, reference)


def gpu_rows(bench, table, view, reference):
    cupy = bench.peers.get("cupy")
    if not cupy:
        table.add_absent("CuPy", bench.peers.reason("cupy"))
        return
    if view.limit <= 400:
        times, count = repeat_device(cupy, lambda: array_program(cupy, view), bench.effort)
        table.add_peer("CuPy array program", "device", times, reference.error_array(count.get()),
                       "the showcase's, complex64")
        times, _ = bench.time(lambda: array_program(cupy, view).get())
        table.add_peer("CuPy array program", "call", times, "", "result on the host")
    cx, cy = map(cupy.asarray, view.centres())
    for kind, precision in (("float", "fp32"), ("double", "fp64")):
        kernel = cupy.RawKernel(PLAIN.replace("TYPE", kind), "plain", options=("--fmad=true",))
        counts = cupy.empty((view.height, view.width), np.int32)
        grid = ((view.width + 31) // 32, (view.height + 7) // 8)

        def launch():
            kernel(grid, (32, 8), (counts, cx, cy, view.width, view.height, view.limit))
            return counts

        times, _ = repeat_device(cupy, launch, bench.effort)
        table.add_peer(f"CuPy raw kernel {precision}", "device", times,
                       reference.error(counts.get()), "one thread a pixel")
        times, _ = bench.time(lambda: launch().get())
        table.add_peer(f"CuPy raw kernel {precision}", "call", times, "", "result on the host")


def tables(bench):
    for view in views(bench.quick):
        table = Table(f"Mandelbrot, {view.name} view, {view.width}×{view.height}, {view.limit} iterations")
        bench.say(table.title)
        reference = Reference(view)
        steps = kiln_rows(bench, table, view, reference)
        peer_rows(bench, table, view, reference)
        table.say(f"Error: share of {SAMPLES} random pixels whose count differs from 80-bit arithmetic "
                  "on the same points; on a chaotic boundary any rounding differs.")
        if steps:
            table.say(f"A literal loop makes {steps:.4g} steps. The limit counts 4 instructions a step "
                      "(3 multiply-adds, 1 addition) and no test; points proven inside are skipped, "
                      "so a share above 100% is work saved.")
        yield table
