"""Mandelbrot counts and continuous values against NumPy and against counts that are known from
mathematics: n·eps tends to pi near the seahorse valley's neck and the cusp."""

from daemon import NPY, Daemon, Report, need

np = need("numpy")

import escape

SEED = (-2.25, 0.75, -1.25, 1.25)


def field(daemon, view, width, height, limit, radius, name, **more):
    xmin, xmax, ymin, ymax = map(repr, view)
    return daemon.get("/v1/mandelbrot", accept=NPY, xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax,
                      width=width, height=height, max_iter=limit, escape_radius=radius, field=name,
                      **more).npy()


def test_grids(daemon, report):
    views = [("seed's view", SEED, 300, 250, 400),
             ("seahorse valley", (-0.76, -0.74, 0.09, 0.11), 160, 150, 1500),
             ("odd size", (-1.8, 0.3, -0.1, 0.9), 37, 53, 1000)]
    kinds = [("fp64", float, escape.textbook, 0.99, "textbook arithmetic"),
             ("fp64", float, escape.fused(escape.fma64), 0.9999, "fused arithmetic"),
             ("fp32", np.float32, escape.fused(escape.fma32), 0.9999, "fused arithmetic")]
    for name, view, width, height, limit in views:
        x, y = escape.centres(view, width, height)
        for precision, dtype, step, share, how in kinds:
            got = field(daemon, view, width, height, limit, 1024, "count", precision=precision)
            want, zx, zy = escape.escape(x.astype(dtype)[None, :], y.astype(dtype)[:, None], limit,
                                         1024, step)
            same = float(np.mean(got == want))
            report.check(f"{name} {precision} counts in NumPy's {how}",
                         got.dtype == np.int32 and same >= share,
                         f"{100 * same:.3f} % of {got.size} equal (at least {100 * share} %)")
            value = field(daemon, view, width, height, limit, 1024, "smooth", precision=precision)
            report.check(f"{name} {precision} smooth is float32", value.dtype == np.float32)
            if how == "textbook arithmetic":
                continue
            # Where the counts agree an orbit may still differ in its last bits, and far out a
            # relative error of |z| grows with the derivative: the share within the bound counts.
            error = np.abs(value - escape.smooth(want, zx, zy, 1024))[got == want]
            near = float(np.mean(error <= 2e-4 + 2.5e-7 * limit))
            report.check(f"{name} {precision} smooth against the formula", near >= share,
                         f"{100 * near:.3f} % within 2e-4, median error {np.median(error):.2g}")
            report.equal(f"{name} {precision} inside is -1 in both fields", value < 0, got < 0)
            plain = field(daemon, view, width, height, limit, 1024, "smooth", precision=precision,
                          smooth=False)
            report.equal(f"{name} {precision} smooth=false gives the counts", plain,
                         got.astype(np.float32))


def count_at(daemon, cx, cy, limit):
    """The count of one constant, as the only pixel of a view around it."""
    # Around 0 or twice the constant: half the sum of the edges is the constant itself.
    view = (min(2 * cx, 0) - 1, max(2 * cx, 0) + 1, min(2 * cy, 0) - 1, max(2 * cy, 0) + 1)
    return int(field(daemon, view, 1, 1, limit, 2, "count", precision="fp64")[0, 0])


def test_known_counts(daemon, report):
    neck = {1: 33, 2: 315, 3: 3143, 4: 31417, 5: 314160, 6: 3141593}
    cusp = {1: 30, 2: 312, 3: 3140, 4: 31414, 5: 314157}
    for k, want in neck.items():
        got = count_at(daemon, -0.75, 10.0 ** -k, 4000000)
        # The view's centre is a constant within 2^-53 of the one meant; the count is ~pi/eps.
        slack = int(np.pi * 10 ** (2 * k) * 2.3e-16) + (k > 4)
        report.check(f"c = -0.75 + 1e-{k} i escapes after {want}", abs(got - want) <= slack, f"{got}")
    for k, want in cusp.items():
        got = count_at(daemon, 0.25 + 10.0 ** (-2 * k), 0.0, 4000000)
        slack = int(np.pi / 2 * 10 ** (3 * k) * 2.3e-16) + (k > 4)
        report.check(f"c = 0.25 + 1e-{2 * k} escapes after {want}", abs(got - want) <= slack, f"{got}")
    for c in (-2, 1j, 0.25, -0.75, 0, -1):
        c = complex(c)
        report.check(f"c = {c} never escapes", count_at(daemon, c.real, c.imag, 1000000) == -1)


def test_shape(daemon, report):
    view = (-2.1, 0.6, -1.2, 1.2)
    inside = field(daemon, view, 1080, 960, 2000, 2, "count", precision="fp64") < 0
    area = float(np.mean(inside)) * (view[1] - view[0]) * (view[3] - view[2])
    # 1.5065918849 (Fisher and Hill by pixel counting); 2000 iterations leave a rim of about 0.002.
    report.check("area", abs(area - 1.5065918849) < 0.008, f"{area:.6f} (1.5065918849)")
    got = field(daemon, SEED, 210, 180, 500, 1024, "count")
    report.equal("symmetry about the real axis", got, got[::-1])
    row = field(daemon, (-2.25, 0.75, -0.0, 2.5), 30, 25, 400, 1024, "count")
    whole = field(daemon, (-2.25, 0.75, -2.5, 2.5), 30, 50, 400, 1024, "count")
    report.equal("row 0 is at ymax", row, whole[:25])


def test_precision(daemon, report):
    """Near the end of double precision the answer says that counts are not those of exact arithmetic;
    here of NumPy's long double, which has 11 bits more."""
    if np.finfo(np.longdouble).nmant < 63:
        return
    x, y, size, limit = -0.7436438870371587, 0.13182590420531197, 24, 6000
    for ulps, limited, least, most in ((4, True, 0.3, 1), (64, True, 0.3, 1),
                                       (2 ** 22, False, 0, 0.1)):
        half = ulps * 2.0 ** -53 * size / 2
        view = (x - half, x + half, y - half, y + half)
        edges = dict(zip(("xmin", "xmax", "ymin", "ymax"), map(repr, view)))
        reply = daemon.get("/v1/mandelbrot", accept=NPY, width=size, height=size, max_iter=limit,
                           field="count", **edges)
        at = (np.arange(size, dtype=np.longdouble) + 0.5) * np.longdouble(2 * half / size)
        cx, cy = np.longdouble(view[0]) + at, np.longdouble(view[3]) - at
        want, _, _ = escape.escape(cx[None, :], cy[:, None], limit, 1024, escape.textbook)
        share = float(np.mean(reply.npy() != want))
        report.check(f"pixels {ulps} ulp apart", least <= share <= most,
                     f"{share:.1%} of the counts differ from those of long double")
        told = reply.headers["kiln-precision"]
        report.check("what the answer says of them", told.startswith("fp64;ulps=")
                     and told.endswith(";limited") == limited, told)


def test_tiles(daemon, report):
    """Four tiles of one zoom are the quarters of the tile above at double resolution."""
    Image = need("PIL.Image")
    import io

    def pixels(address):
        return np.array(Image.open(io.BytesIO(daemon.get(address).body)).convert("RGB")).astype(int)

    root = pixels("/v1/mandelbrot/tiles/0/0/0.png")
    report.check("tile is 256 pixels square", root.shape == (256, 256, 3), str(root.shape))
    twice = pixels("/v1/mandelbrot/tiles/0/0/0@2x.png")
    report.check("@2x tile is 512 pixels square", twice.shape == (512, 512, 3), str(twice.shape))
    rows = [[pixels(f"/v1/mandelbrot/tiles/1/{x}/{y}.png") for x in (0, 1)] for y in (0, 1)]
    four = np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)
    report.within("four tiles are their parent's @2x, without seams", np.abs(four - twice), 1)


def main():
    report = Report()
    with Daemon("--max-iterations", "10000000", "--deadline", "300") as daemon:
        test_grids(daemon, report)
        test_known_counts(daemon, report)
        test_shape(daemon, report)
        test_precision(daemon, report)
        test_tiles(daemon, report)
    report.end()


main()
