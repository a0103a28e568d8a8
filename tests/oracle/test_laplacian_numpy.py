"""The five-point Laplacian against NumPy, byte for byte, in every kind of input and output."""

import io

from daemon import NPY, PGM, PNG, Daemon, Report, need, npy_bytes, pgm_bytes, pgm_read, text_base64

np, Image = need("numpy", "PIL.Image")

import grids
import pngdecode

RANDOM = np.random.default_rng(2)


def png_bytes(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


def cases():
    """(name, media type, bytes, pixels as integers)"""
    for shape in [(1, 1), (1, 9), (7, 1), (2, 2), (33, 47), (64, 65)]:
        grey = RANDOM.integers(0, 256, shape).astype(np.uint8)
        yield f"PNG grey {shape}", PNG, png_bytes(grey), grey
        yield f"PGM grey {shape}", PGM, pgm_bytes(grey), grey
    colour = RANDOM.integers(0, 256, (29, 31, 3)).astype(np.uint8)
    yield "PNG colour", PNG, png_bytes(colour), colour
    yield "PPM colour", PGM, pgm_bytes(colour), colour
    alpha = RANDOM.integers(0, 256, (12, 31, 4)).astype(np.uint8)
    yield "PNG with alpha", PNG, png_bytes(alpha), alpha
    deep = RANDOM.integers(0, 65536, (21, 30)).astype(np.uint16)
    yield "PNG 16 bit", PNG, png_bytes(deep), deep
    yield "PGM 16 bit", PGM, pgm_bytes(deep, 65535), deep
    deep = RANDOM.integers(0, 65536, (21, 30, 3)).astype(np.uint16)
    yield "PPM 16 bit", PGM, pgm_bytes(deep, 65535), deep
    odd = RANDOM.integers(0, 1000, (5, 6)).astype(np.uint16)
    yield "PGM maxval 999", PGM, pgm_bytes(odd, 999), odd
    for dtype in ("|b1", "|u1", "|i1", "<i2", ">u2", "<i4", ">i4", "<i8", "<u4"):
        array = RANDOM.integers(0, 2 if dtype == "|b1" else 100, (11, 13)).astype(dtype)
        yield f"NPY {dtype}", NPY, npy_bytes(array), array
        yield f"NPY {dtype} Fortran order", NPY, npy_bytes(array, True), array
    stack = RANDOM.integers(-1000, 1000, (9, 8, 2)).astype(np.int32)
    yield "NPY two channels", NPY, npy_bytes(stack), stack


def chosen(values):
    """The scale that integers get: the smallest power of two with which all of them fit."""
    scale = 1
    while not np.array_equal(np.clip(np.rint(values / scale + 32768), 0, 65535),
                             np.rint(values / scale + 32768)):
        scale *= 2
    return scale


def test_integers(daemon, report):
    for name, media, data, pixels in cases():
        want = grids.laplacian(pixels.astype(np.int64))
        got = daemon.post("/v1/laplacian", data, media=media, accept=NPY).npy()
        report.equal(f"{name} to NPY", got, want.astype(np.int32))
        for offset, scale in ((32768, 0), (32768, 1), (1000, 4)):
            more = {"offset": offset, "scale": scale} if scale else {}
            scale = scale or chosen(want)
            shown = grids.quantize(want, 16, offset, scale)
            got, depth = pngdecode.decode(
                daemon.post("/v1/laplacian", data, media=media, accept=PNG, **more).body)
            report.check(f"{name} to PNG is 16 bit", depth == 16)
            report.equal(f"{name} to PNG, offset {offset}, scale {scale}", got, shown)
            if want.ndim == 2 or want.shape[2] == 3:
                got = pgm_read(
                    daemon.post("/v1/laplacian", data, media=media, accept=PGM, **more).body)
                report.equal(f"{name} to PGM, offset {offset}, scale {scale}", got, shown)


def test_reals(daemon, report):
    for dtype in ("<f2", "<f4", ">f4", "<f8", ">f8"):
        array = RANDOM.normal(0, 50, (17, 22)).astype(dtype)
        got = daemon.post("/v1/laplacian", npy_bytes(array), media=NPY, accept=NPY).npy()
        report.equal(f"NPY {dtype}", got, grids.laplacian(array.astype(np.float64)))


def test_ways_in(daemon, report):
    """The same picture as a body, as base64 in JSON and as a form's part."""
    pixels = RANDOM.integers(0, 256, (14, 15)).astype(np.uint8)
    data = png_bytes(pixels)
    want = grids.laplacian(pixels.astype(np.int32))
    got = daemon.post("/v1/laplacian", {"image": text_base64(data)}, accept=NPY).npy()
    report.equal("base64 in JSON", got, want)
    part = (b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n'
            b"Content-Type: image/png\r\n\r\n" + data + b"\r\n--edge--\r\n")
    got = daemon.post("/v1/laplacian", part, media="multipart/form-data; boundary=edge",
                      accept=NPY).npy()
    report.equal("multipart form", got, want)


def main():
    report = Report()
    with Daemon() as daemon:
        test_integers(daemon, report)
        test_reals(daemon, report)
        test_ways_in(daemon, report)
    report.end()


main()
