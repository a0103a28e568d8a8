"""Every kind of PNG that the daemon writes, read by decoders that are not libpng of the daemon:
Pillow, and a plain one over zlib for the depths that Pillow reduces."""

import io

from daemon import CSV, NPY, PGM, PNG, Daemon, Report, need, npy_bytes, pgm_read

np, Image = need("numpy", "PIL.Image")

import pngdecode

RANDOM = np.random.default_rng(3)
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def pillow(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return np.array(image.convert("RGB") if image.mode == "P" else image).astype(int), image


def values_of(kind, shape):
    if kind == "noise":
        return RANDOM.integers(0, 65536, shape)
    if kind == "flat":
        return np.full(shape, 77)
    if kind == "few":
        return RANDOM.integers(0, 3, shape) * 50 + 7
    return np.add.outer(np.arange(shape[0]) * 31, np.arange(shape[1]) * 3).reshape(
        shape[:2] + (1,) * (len(shape) - 2)) % 65536 + np.zeros(shape, int)


def palette_due(samples):
    """RGB of 4096 pixels or more and at most 256 colours is written with a palette."""
    if samples.ndim < 3 or samples.shape[2] != 3 or samples.shape[0] * samples.shape[1] < 4096:
        return False
    return len(np.unique(samples.reshape(-1, 3), axis=0)) <= 256


def test_kinds(daemon, report):
    """jacobi without sweeps writes any array as a picture: 1 to 4 channels, 8 and 16 bit."""
    for kind in ("noise", "flat", "few", "ramp"):
        for shape in ((1, 1), (1, 300), (300, 1), (63, 65), (64, 64, 2), (63, 65, 3), (64, 65, 3),
                      (31, 33, 4), (300, 301, 4)):
            for bits in (8, 16):
                want = values_of(kind, shape) % (1 << bits)
                data = npy_bytes(want.astype(np.int32))
                query = {"media": NPY, "iterations": 0, "bits": bits}
                channels = shape[2] if len(shape) == 3 else 1
                name = f"{kind} {shape} {bits} bit"
                png = daemon.post("/v1/jacobi", data, accept=PNG, **query).body
                got, depth = pngdecode.decode(png)
                report.equal(f"{name} by zlib", got, want)
                report.check(f"{name} depth", depth == bits, str(depth))
                got, image = pillow(png)
                if bits == 8:
                    report.equal(f"{name} by Pillow", got, want)
                    mode = "P" if palette_due(want) else MODES[channels]
                    report.check(f"{name} mode", image.mode == mode, image.mode)
                elif channels == 1:
                    report.equal(f"{name} by Pillow", got, want)
                else:  # Pillow keeps the high byte, and makes grey with alpha RGBA
                    got = got[..., [0, 3]] if channels == 2 and got.shape[2] == 4 else got
                    report.equal(f"{name} by Pillow, high bytes", got, want >> 8)
                if channels in (1, 3):
                    got = pgm_read(daemon.post("/v1/jacobi", data, accept=PGM, **query).body)
                    report.equal(f"{name} as PGM", got, want)


def test_jobs(daemon, report):
    """The PNGs of every job: decodable, of the right shape, the same twice, with their parameters."""
    curve = "\n".join(f"{t},{np.sin(t / 3):.5f}" for t in range(60)).encode()
    small = npy_bytes(RANDOM.integers(0, 255, (20, 30)).astype(np.uint8))
    cases = [("mandelbrot", "GET", "/v1/mandelbrot?width=123&height=77", None, None, (77, 123)),
             ("mandelbrot, shaded", "GET", "/v1/mandelbrot?width=64&height=50&shade=true", None, None,
              (50, 64)),
             ("tile", "GET", "/v1/mandelbrot/tiles/3/2/3.png", None, None, (256, 256)),
             ("tile @2x", "GET", "/v1/mandelbrot/tiles/3/2/3@2x.png", None, None, (512, 512)),
             ("laplacian", "POST", "/v1/laplacian", small, NPY, (20, 30)),
             ("jacobi", "POST", "/v1/jacobi?iterations=9", small, NPY, (20, 30)),
             ("periodogram", "POST", "/v1/lombscargle", curve, CSV, None)]
    for name, method, path, body, media, shape in cases:
        first = daemon.request(method, path, body, media=media, accept=PNG)
        report.check(f"{name} is a PNG",
                     first.status == 200 and first.headers["content-type"] == PNG,
                     f"{first.status} {first.headers.get('content-type')}")
        second = daemon.request(method, path, body, media=media, accept=PNG)
        report.check(f"{name} is the same twice", first.body == second.body)
        report.check(f"{name} has a strong ETag",
                     first.headers["etag"] == second.headers["etag"]
                     and first.headers["etag"].startswith('"'), first.headers.get("etag", "none"))
        got, image = pillow(first.body)
        report.equal(f"{name}: Pillow and zlib agree", got, pngdecode.decode(first.body)[0])
        if shape:
            report.check(f"{name} shape", got.shape[:2] == shape, str(got.shape))
        report.check(f"{name} carries its parameters",
                     "kiln:parameters" in pngdecode.texts(first.body),
                     str(pngdecode.texts(first.body)))


def test_compression(daemon, report):
    """Fast pictures have at most 1.5 times the bytes that libpng takes at level 6 (Pillow), small
    ones 1.05 times, and both have the same pixels."""
    y, x = np.mgrid[:300, :400]
    scene = 128 + 70 * np.sin(x / 31 + np.cos(y / 47)) * np.cos(y / 23)
    grey = npy_bytes((scene + RANDOM.normal(0, 2, scene.shape)).astype(np.uint8))
    cases = [("default picture", "GET", "/v1/mandelbrot?", None, None),
             ("shaded", "GET", "/v1/mandelbrot?width=400&height=300&shade=true&", None, None),
             ("noisy scene", "POST", "/v1/jacobi?iterations=0&", grey, NPY),
             ("16 bit", "POST", "/v1/laplacian?", grey, NPY)]
    for name, method, path, body, media in cases:
        files = [daemon.request(method, f"{path}compression={way}", body, media=media,
                                accept=PNG).body for way in ("fast", "small")]
        fast, small = (pngdecode.decode(file)[0] for file in files)
        report.equal(f"{name}: the same pixels", fast, small)
        image = Image.open(io.BytesIO(files[0]))
        again = io.BytesIO()
        image.save(again, "PNG", compress_level=6)
        ratios = [len(file) / again.tell() for file in files]
        report.check(f"{name}: fast {ratios[0]:.3f} and small {ratios[1]:.3f} of libpng's bytes",
                     ratios[0] <= 1.5 and ratios[1] <= 1.05)
    arrays = [daemon.request("GET", f"/v1/mandelbrot?width=9&height=9&compression={way}",
                             accept=NPY) for way in ("fast", "small")]
    report.check("an array does not depend on it",
                 arrays[0].headers["etag"] == arrays[1].headers["etag"])


def main():
    report = Report()
    with Daemon() as daemon:
        test_kinds(daemon, report)
        test_jobs(daemon, report)
        test_compression(daemon, report)
    report.end()


main()
