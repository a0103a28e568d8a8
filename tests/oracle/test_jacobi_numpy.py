"""Jacobi sweeps against the seed program's NumPy arithmetic, byte for byte, and the way from a
picture to its Laplacian and back."""

import io

from daemon import NPY, PGM, PNG, Daemon, Report, need, npy_bytes, pgm_bytes, pgm_read

np, _, Image = need("numpy", "scipy", "PIL.Image")

import grids
import pngdecode

RANDOM = np.random.default_rng(1)
SHAPES = [(1, 1), (1, 7), (5, 1), (2, 3), (17, 33), (64, 64), (31, 257), (130, 9)]


def png_bytes(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


def test_arrays(daemon, report):
    for shape in SHAPES:
        b = RANDOM.integers(-1020, 1021, shape).astype(np.float32)
        for sweeps in (0, 1, 2, 3, 50, 255, 256, 257, 1001):
            for initial in ("laplacian", "zero"):
                got = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY,
                                  iterations=sweeps, initial=initial).npy()
                report.equal(f"{shape[0]}x{shape[1]} float32, {sweeps} sweeps from {initial}", got,
                             grids.jacobi(b, sweeps, 0 * b if initial == "zero" else b))


def test_types(daemon, report):
    values = RANDOM.integers(-120, 121, (23, 31))
    for dtype in ("<i1", "<i2", ">i2", "<i4", ">i4", "<i8", "<f2", "<f4", ">f4", "<f8", ">f8"):
        for fortran in (False, True):
            b = values.astype(dtype)
            got = daemon.post("/v1/jacobi", npy_bytes(b, fortran), media=NPY, accept=NPY,
                              iterations=77).npy()
            report.equal(f"NPY {dtype}{' Fortran order' if fortran else ''}", got,
                         grids.jacobi(values.astype(np.float32), 77))
    b = RANDOM.normal(0, 100, (23, 31))
    got = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=501,
                      precision="fp64").npy()
    report.equal("fp64", got, grids.jacobi(b, 501))
    got = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=501).npy()
    report.equal("float64 input rounded once to float32", got,
                 grids.jacobi(b.astype(np.float32), 501))
    for channels in (2, 3, 4):
        b = RANDOM.integers(-500, 500, (19, 28, channels)).astype(np.float32)
        got = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=300).npy()
        report.equal(f"{channels} channels", got, grids.jacobi(b, 300))


def test_pictures(daemon, report):
    grey8 = RANDOM.integers(0, 256, (41, 57)).astype(np.uint8)
    colour8 = RANDOM.integers(0, 256, (33, 21, 3)).astype(np.uint8)
    grey16 = RANDOM.integers(32768 - 900, 32768 + 900, (41, 57)).astype(np.uint16)
    colour16 = RANDOM.integers(32768 - 900, 32768 + 900, (22, 35, 3)).astype(np.uint16)
    cases = [("8-bit grey PNG", PNG, png_bytes(grey8), grey8, 0, 1),
             ("8-bit colour PNG", PNG, png_bytes(colour8), colour8, 0, 1),
             ("8-bit PNG with offset and scale", PNG, png_bytes(grey8), grey8, 128, 2),
             ("16-bit grey PNG", PNG, png_bytes(grey16), grey16, 32768, 1),
             ("8-bit PGM", PGM, pgm_bytes(grey8), grey8, 127.5, 0.125),
             ("16-bit PGM", PGM, pgm_bytes(grey16, 65535), grey16, 32768, 1),
             ("8-bit PPM", PGM, pgm_bytes(colour8), colour8, 100, 3),
             ("16-bit PPM", PGM, pgm_bytes(colour16, 65535), colour16, 32768, 1)]
    for name, media, data, pixels, offset, scale in cases:
        b = (scale * (pixels.astype(float) - offset)).astype(np.float32)
        want = grids.jacobi(b, 200)
        query = {"iterations": 200, "offset": offset, "scale": scale}
        got = daemon.post("/v1/jacobi", data, media=media, accept=NPY, **query).npy()
        report.equal(f"{name} to NPY", got, want)
        for bits in (8, 16):
            got, depth = pngdecode.decode(
                daemon.post("/v1/jacobi", data, media=media, accept=PNG, bits=bits, **query).body)
            report.check(f"{name} to {bits}-bit PNG, depth", depth == bits, str(depth))
            report.equal(f"{name} to {bits}-bit PNG", got, grids.quantize(want, bits))
            got = pgm_read(
                daemon.post("/v1/jacobi", data, media=media, accept=PGM, bits=bits, **query).body)
            report.equal(f"{name} to {bits}-bit PGM", got, grids.quantize(want, bits))


def test_rounding(daemon, report):
    # No sweeps: the picture shows B itself, so that every fraction and both ends can be aimed at.
    b = np.array([[-1e9, -0.51, -0.5, 0.0, 0.49, 0.5, 0.51, 1.5, 2.5, 99.999],
                  [253.5, 254.49, 254.5, 254.51, 255.0, 255.4, 255.5, 256, 1e9, 127.5]])
    got, _ = pngdecode.decode(daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=PNG,
                                          iterations=0, precision="fp64").body)
    report.equal("rounding to nearest, never truncation", got, grids.quantize(b))


def test_tolerance(daemon, report):
    b = grids.laplacian(RANDOM.integers(0, 256, (20, 24))).astype(np.float32)
    answer = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=100000,
                         tolerance=0.01)
    x, change, sweeps = b, np.inf, 0
    while change > 0.01:
        previous = grids.jacobi(b, 255, x)
        x = grids.jacobi(b, 1, previous)
        change = float(np.max(np.abs(x - previous)))
        sweeps += 256
    report.equal(f"tolerance 0.01 stops after {sweeps} sweeps", answer.npy(), x)


def test_closed(daemon, report):
    for shape in SHAPES + [(40, 61, 3)]:
        b = RANDOM.normal(0, 100, shape)
        for sweeps in (0, 1, 2, 7, 300):
            for initial in ("laplacian", "zero"):
                want = grids.jacobi(b, sweeps, 0 * b if initial == "zero" else b)
                for precision, allowed in (("fp64", 1e-9), ("fp32", 1e-6)):
                    got = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY,
                                      iterations=sweeps, initial=initial, precision=precision,
                                      method="exact").npy()
                    report.within(f"{shape} {precision}, {sweeps} sweeps from {initial} exact",
                                  np.abs(got - want), allowed * np.abs(want).max() + 1e-300)
        x = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, precision="fp64",
                        method="direct").npy()
        report.within(f"{shape} direct solves the Poisson equation",
                      np.abs(grids.laplacian(x) - b), 1e-9 * np.abs(x).max())
    b = RANDOM.normal(0, 100, (19, 28)).astype(np.float32)
    plain = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=500)
    sweeps = daemon.post("/v1/jacobi", npy_bytes(b), media=NPY, accept=NPY, iterations=500,
                         method="sweeps")
    report.equal("sweeps is the default", plain.npy(), sweeps.npy())


def round_trip(daemon, report, name):
    path = report.data(name)
    if path is None:
        return
    picture = np.array(Image.open(path))
    data = path.read_bytes()
    b = grids.laplacian(picture.astype(np.int32))
    laplacian = daemon.post("/v1/laplacian", data, media=PNG, accept=NPY)
    report.equal(f"{name}: Laplacian", laplacian.npy(), b)
    as_png = daemon.post("/v1/laplacian", data, media=PNG, accept=PNG).body
    report.equal(f"{name}: Laplacian as 16-bit PNG", pngdecode.decode(as_png)[0] - 32768,
                 b.astype(int))
    b = b.astype(np.float32)
    got = daemon.post("/v1/jacobi", as_png, media=PNG, accept=NPY, offset=32768,
                      iterations=2000).npy()
    report.equal(f"{name}: 2000 sweeps of the whole picture", got, grids.jacobi(b, 2000))
    crop = np.ascontiguousarray(grids.laplacian(picture[100:180, 150:250].astype(np.float32)))
    got = daemon.post("/v1/jacobi", npy_bytes(crop), media=NPY, accept=NPY,
                      iterations=150000).npy()
    report.equal(f"{name}: 150000 sweeps of 100x80", got, grids.jacobi(crop, 150000))
    report.within(f"{name}: 100x80 back to the picture, grey levels",
                  np.abs(got - picture[100:180, 150:250]), 0.1)
    got = daemon.post("/v1/jacobi", as_png, media=PNG, accept=NPY, offset=32768,
                      iterations=150000).npy()
    closed = grids.jacobi_closed(b, 150000)
    report.within(f"{name}: 150000 sweeps against the closed form", np.abs(got - closed), 0.1)
    report.within(f"{name}: as near to the picture as the mathematics allows",
                  np.abs(got - picture).max() - np.abs(closed - picture).max(), 0.1)
    exact = daemon.post("/v1/jacobi", as_png, media=PNG, accept=NPY, offset=32768,
                        iterations=150000, precision="fp64", method="exact").npy()
    report.within(f"{name}: exact against the closed form", np.abs(exact - closed),
                  1e-9 * np.abs(closed).max())
    direct, _ = pngdecode.decode(daemon.post("/v1/jacobi", as_png, media=PNG, accept=PNG,
                                             offset=32768, method="direct").body)
    report.within(f"{name}: direct gives the picture back",
                  np.abs(direct - picture.astype(int)), 1)
    plain, _ = pngdecode.decode(daemon.post("/v1/jacobi", as_png, media=PNG, accept=PNG).body)
    report.equal(f"{name}: without a word, the very picture", plain,
                 picture.astype(int))
    shown, _ = pngdecode.decode(daemon.post("/v1/jacobi", as_png, media=PNG, accept=PNG,
                                            offset=32768, iterations=150000).body)
    report.equal(f"{name}: shown as a picture", shown, grids.quantize(got))
    error = np.abs(shown - picture.astype(int))
    print(f"     {name}: greatest error {error.max()} of 255 grey levels, mean {error.mean():.3g}")


def main():
    report = Report()
    with Daemon("--deadline", "500") as daemon:
        test_arrays(daemon, report)
        test_types(daemon, report)
        test_pictures(daemon, report)
        test_rounding(daemon, report)
        test_tolerance(daemon, report)
        test_closed(daemon, report)
        round_trip(daemon, report, "camera.png")
        round_trip(daemon, report, "moon.png")
    report.end()


main()
