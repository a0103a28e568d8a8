"""The Poisson problem: literal sweeps and closed forms against NumPy, Numba, SciPy, OpenCV and CuPy."""

import numpy as np

from clock import repeat_device
from kiln import npy_bytes
from table import Table

NPY = "application/x-npy"
SWEEPS = 150000

RAW = r"""
extern "C" __global__ void sweep(const float *x, const float *b, float *out, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    size_t at = (size_t)j * width + i;
    float up = j ? x[at - width] : 0, down = j + 1 < height ? x[at + width] : 0;
    float left = i ? x[at - 1] : 0, right = i + 1 < width ? x[at + 1] : 0;
    out[at] = (((up + down) + (left + right)) - b[at]) * 0.25f;
}
"""


def laplacian(height, width):
    """B of a picture of smooth waves and noise, 0 … 255, zero outside; and the picture."""
    random = np.random.default_rng(7)
    v, u = np.linspace(0, 1, height)[:, None], np.linspace(0, 1, width)
    x = 127 + 60 * np.sin(7 * u) * np.cos(5 * v) + 40 * np.cos(3 * u + 9 * v)
    x += random.normal(0, 8, x.shape)
    x = np.clip(np.rint(x), 0, 255)
    p = np.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x, x


def numpy_sweeps(b, sweeps):
    """Literal sweeps of a padded array, two buffers, no allocation in the loop."""
    x, y = np.pad(b, 1), np.zeros((b.shape[0] + 2, b.shape[1] + 2), b.dtype)
    side = np.empty_like(b)
    for _ in range(sweeps):
        to = y[1:-1, 1:-1]
        np.add(x[:-2, 1:-1], x[2:, 1:-1], out=to)
        np.add(x[1:-1, :-2], x[1:-1, 2:], out=side)
        to += side
        to -= b
        to *= b.dtype.type(0.25)
        x, y = y, x
    return x[1:-1, 1:-1]


def numba_program(numba):
    @numba.njit(parallel=True)
    def sweep(b, x, y, sweeps):
        quarter = np.float32(0.25)
        for _ in range(sweeps):
            for i in numba.prange(b.shape[0]):
                for j in range(b.shape[1]):
                    y[i + 1, j + 1] = (((x[i, j + 1] + x[i + 2, j + 1])
                                        + (x[i + 1, j] + x[i + 1, j + 2])) - b[i, j]) * quarter
            x, y = y, x
        return x

    def program(b, sweeps):
        x = np.pad(b, 1)
        return sweep(b, x, np.zeros_like(x), sweeps)[1:-1, 1:-1]

    program(np.zeros((2, 2), np.float32), 1)
    return program


def factors(xp, height, width, sweeps):
    """(factor of X₀, factor of -B/4) of every sine mode after `sweeps`; None: the limit."""
    k, l = np.arange(1, height + 1), np.arange(1, width + 1)
    q = (np.sin(np.pi * k / (2 * height + 2))**2)[:, None] + np.sin(np.pi * l / (2 * width + 2))**2
    if sweeps is None:
        return 0.0, xp.asarray(1 / q)
    rate = 1 - q
    small = np.minimum(q, 0.5)
    with np.errstate(under="ignore"):
        power = np.abs(rate)**sweeps * np.where((rate < 0) & (sweeps % 2 == 1), -1, 1)
        rest = np.where(q < 0.5, -np.expm1(sweeps * np.log1p(-small)), 1 - power)
    return xp.asarray(power), xp.asarray(rest / q)


def dstn_program(fft, b, workers, sweeps):
    """Closed form by sine transforms; what depends on the shape alone is made beforehand."""
    start, source = factors(np, *b.shape, sweeps)
    factor = start - source / 4
    more = {} if workers is None else {"workers": workers}
    return lambda: fft.idstn(fft.dstn(b, type=1, **more) * factor, type=1, **more)


def matrix_program(xp, b, sweeps):
    """Closed form by four products with sine matrices, which are made beforehand."""
    height, width = b.shape
    start, source = factors(xp, height, width, sweeps)
    factor = (start - source / 4) * (4 / ((height + 1) * (width + 1)))

    def sines(n):
        k = np.arange(1, n + 1)
        return xp.asarray(np.sin(np.pi * (np.outer(k, k) % (2 * n + 2)) / (n + 1)))

    left, right, b = sines(height), sines(width), xp.asarray(b)
    return lambda: left @ ((left @ b @ right) * factor) @ right


def fft_program(xp, b, sweeps):
    """Closed form by sine transforms made of real FFTs of the odd continuation."""
    height, width = b.shape
    start, source = factors(xp, height, width, sweeps)
    factor, b = (start - source / 4) / (4 * (height + 1) * (width + 1)), xp.asarray(b)

    def sines(x):
        """DST-I of every row, unnormalised."""
        odd = xp.zeros((x.shape[0], 2 * x.shape[1] + 2))
        odd[:, 1:x.shape[1] + 1] = x
        odd[:, x.shape[1] + 2:] = -x[:, ::-1]
        return -xp.fft.rfft(odd)[:, 1:x.shape[1] + 1].imag

    def both(x):
        return sines(sines(x).T).T

    return lambda: both(both(b) * factor)


def error_text(x, reference):
    if x is None or reference is None:
        return ""
    off = float(np.abs(np.asarray(x, float) - reference).max())
    return f"{off:.1e}, {off / float(np.abs(reference).max()):.1e} rel"


def cell_note(bench, run, cells, sweeps, precision):
    """Cell updates a second, beside what 4 instructions a cell allow."""
    rate = run.rate(cells * sweeps)
    if not rate:
        return ""
    limit = bench.limits.issue(precision, "11")
    share = f", {400 * rate / limit:.0f}% of the arithmetic limit" if limit else ""
    return f"{rate / 1e9:.4g} Gcell/s{share}"


def kiln_rows(bench, table, b, variants, sweeps, reference):
    """variants: (method, precision). Results come back as NPY and are held against the reference."""
    for method, precision in variants:
        kind = np.float64 if precision == "fp64" else np.float32
        run = bench.job(f"{method} {precision}", "/v1/jacobi",
                        {"method": method, "precision": precision, "iterations": sweeps,
                         "format": "npy"}, npy_bytes(b.astype(kind)), NPY)
        error = "" if run.reason else error_text(run.answer.npy(), reference.get(method))
        note = cell_note(bench, run, b.size, sweeps, precision) if method == "sweeps" else ""
        table.add_kiln(run, error, note)


def numpy_rows(bench, table, b, sweeps, part, reference):
    """NumPy and Numba, each for a part of the sweeps and scaled."""
    single = b.astype(np.float32)
    numba = bench.peers.get("numba")
    programs = [("NumPy sweeps", numpy_sweeps, part)]
    if numba:
        program = bench.once("jacobi numba", lambda: numba_program(numba))
        programs.append(("Numba sweeps", program, min(sweeps, 10 * part)))
    else:
        table.add_absent("Numba sweeps", bench.peers.reason("numba"))
    for name, program, count in programs:
        times, x = bench.time(lambda: program(single, count))
        note = "fp32" + (f"; {count} sweeps, scaled ×{sweeps / count:g}" if count < sweeps else "")
        error = error_text(x, reference) if count == sweeps else ""
        table.add_peer(name, "call", times, error, note, sweeps / count)


def dstn_rows(bench, table, b, methods, sweeps, reference):
    scipy = bench.peers.get("scipy")
    if not scipy:
        table.add_absent("SciPy dstn", bench.peers.reason("scipy"))
        return
    import scipy.fft
    for method in methods:
        program = dstn_program(scipy.fft, b, -1, sweeps if method == "exact" else None)
        times, x = bench.time(program)
        table.add_peer(f"SciPy dstn, {method}", "call", times, error_text(x, reference.get(method)),
                       "fp64, all cores, factors made beforehand")


def opencv_rows(bench, table, picture):
    """seamlessClone of a picture into itself: a Poisson problem whose solution is the picture."""
    cv2 = bench.peers.get("cv2")
    if not cv2 or not hasattr(cv2, "seamlessClone"):
        table.add_absent("OpenCV seamlessClone", "missing: this OpenCV has no seamlessClone" if cv2
                         else bench.peers.reason("cv2"))
        return
    image = np.repeat(picture.astype(np.uint8)[:, :, None], 3, axis=2)
    mask = np.full(picture.shape, 255, np.uint8)
    height, width = picture.shape
    times, x = bench.time(lambda: cv2.seamlessClone(image, image, mask, (width // 2, height // 2),
                                                    cv2.NORMAL_CLONE))
    table.add_peer("OpenCV seamlessClone", "call", times, error_text(x, image.astype(float)),
                   "direct, three 8 bit channels at once, gradients included")


def gpu_sweep_rows(bench, table, cupy, b, sweeps, reference):
    single = b.astype(np.float32)
    height, width = b.shape
    kernel = cupy.RawKernel(RAW, "sweep", options=("--fmad=false",))
    part = sweeps // 10 if bench.quick and sweeps > 1000 else sweeps
    note = f"; {part} sweeps, scaled ×{sweeps / part:g}" if part < sweeps else ""
    for bx, by in ((32, 32), (32, 8)):
        grid, device_b = (-(-width // bx), -(-height // by)), cupy.asarray(single)

        def run(source):
            x, y = source.copy(), cupy.empty_like(source)
            for _ in range(part):
                kernel(grid, (bx, by), (x, source, y, width, height))
                x, y = y, x
            return x

        times, x = repeat_device(cupy, lambda: run(device_b), bench.effort)
        error = error_text(x.get(), reference) if part == sweeps else ""
        table.add_peer(f"CuPy raw kernel, {bx}×{by} blocks", "device", times, error,
                       "fp32, one launch a sweep" + note, sweeps / part)
        if (bx, by) == (32, 32):
            times, _ = bench.time(lambda: run(cupy.asarray(single)).get())
            table.add_peer(f"CuPy raw kernel, {bx}×{by} blocks", "call", times, "",
                           "array up and down" + note, sweeps / part)


def gpu_form_rows(bench, table, cupy, b, sweeps, reference):
    """CuPy has no DST-I of its own."""
    for name, make in (("sine matrices", matrix_program), ("FFT sine transforms", fft_program)):
        program = make(cupy, b, sweeps)
        times, x = repeat_device(cupy, program, bench.effort)
        table.add_peer(f"CuPy {name}, exact", "device", times, error_text(x.get(), reference),
                       "fp64, factors made beforehand")
        # Transfers beside the same program: what goes up is what it starts from.
        times, _ = bench.time(lambda: (cupy.asarray(b), program())[1].get())
        table.add_peer(f"CuPy {name}, exact", "call", times, "", "array up and down")


def closed_forms(bench, b, sweeps):
    """References in double: the iterate and the limit, by sine matrices or SciPy's transforms."""
    forms = {"exact": sweeps, "direct": None}
    if b.size > 1 << 20 and bench.peers.get("scipy"):
        import scipy.fft
        return {name: dstn_program(scipy.fft, b, -1, n)() for name, n in forms.items()}
    return {name: matrix_program(np, b, n)() for name, n in forms.items()}


def seed_table(bench):
    sweeps = SWEEPS // 10 if bench.quick and not bench.cuda else SWEEPS
    b, picture = laplacian(266, 400)
    table = Table(f"Jacobi, 400×266, {sweeps} sweeps")
    bench.say(table.title)
    reference = closed_forms(bench, b, sweeps)
    reference["sweeps"] = reference["exact"]
    table.say("Error: greatest difference from the closed form in double (sine matrices), in grey "
              "levels and relative to the greatest value; `direct` is the limit of infinitely many.")
    kiln_rows(bench, table, b, (("sweeps", "fp32"), ("sweeps", "fp64"), ("exact", "fp32"),
                                ("exact", "fp64"), ("direct", "fp64")), sweeps, reference)
    numpy_rows(bench, table, b, sweeps, 1000 if bench.quick else 10000, reference["exact"])
    times, x = bench.time(matrix_program(np, b, sweeps))
    table.add_peer("NumPy sine matrices, exact", "call", times, error_text(x, reference["exact"]),
                   "fp64, factors made beforehand; also the reference")
    dstn_rows(bench, table, b, ("exact", "direct"), sweeps, reference)
    opencv_rows(bench, table, picture)
    cupy = bench.peers.get("cupy")
    if cupy:
        gpu_sweep_rows(bench, table, cupy, b, sweeps, reference["exact"])
        gpu_form_rows(bench, table, cupy, b, sweeps, reference["exact"])
    elif bench.cuda:
        table.add_absent("CuPy", bench.peers.reason("cupy"))
    return table


def large_table(bench):
    side, sweeps, part = (2048, 64, 4) if bench.quick else (8192, 64, 4)
    b, _ = laplacian(side, side)
    table = Table(f"Jacobi, {side}×{side}, {sweeps} sweeps")
    bench.say(table.title)
    body = npy_bytes(b.astype(np.float32))
    few = bench.kiln.request("POST", f"/v1/jacobi?iterations={part}&format=npy", body, NPY)
    same = "kiln failed"
    if few.status == 200:
        alike = np.array_equal(few.npy(), numpy_sweeps(b.astype(np.float32), part))
        same = "equal bytes" if alike else "**other bytes**"
    table.say(f"Result of {part} fp32 sweeps against NumPy's in the same order of operations: {same}.")
    if bench.limits.get("copy_memory"):
        floor = b.size * 12 * sweeps / bench.limits.get("copy_memory") * 1e3
        table.say(f"From memory at the measured copy rate, one sweep at a time (read X and B, write X, "
                  f"fp32): {floor:.4g} ms. Less than that needs several sweeps a visit.")
    kiln_rows(bench, table, b, (("sweeps", "fp32"), ("sweeps", "fp64")), sweeps, {})
    numpy_rows(bench, table, b, sweeps, part, None)
    cupy = bench.peers.get("cupy")
    if cupy:
        gpu_sweep_rows(bench, table, cupy, b, sweeps, None)
    elif bench.cuda:
        table.add_absent("CuPy", bench.peers.reason("cupy"))
    return table


def exact_table(bench):
    side = 1024 if bench.quick else 4096
    b, _ = laplacian(side, side)
    table = Table(f"Poisson problem in closed form, {side}×{side}, {SWEEPS} sweeps")
    bench.say(table.title)
    reference = closed_forms(bench, b, SWEEPS)
    table.say("Error: greatest difference from the closed form in double (SciPy's transforms where it "
              "is installed, else sine matrices).")
    kiln_rows(bench, table, b, (("exact", "fp64"), ("exact", "fp32"), ("direct", "fp64")), SWEEPS,
              reference)
    dstn_rows(bench, table, b, ("exact", "direct"), SWEEPS, reference)
    cupy = bench.peers.get("cupy")
    if cupy:
        gpu_form_rows(bench, table, cupy, b, SWEEPS, reference["exact"])
    elif bench.cuda:
        table.add_absent("CuPy", bench.peers.reason("cupy"))
    return table


def tables(bench):
    for make in (seed_table, large_table, exact_table):
        yield make(bench)
