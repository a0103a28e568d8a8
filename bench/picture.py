"""Encoding a picture: the daemon's own PNG against Pillow and OpenCV on the same pixels."""

import io

import numpy as np

from mandelbrot import SEED, View
from table import Table


def encoders(bench, pixels):
    """(name, bytes of the pixels as PNG) of every peer that is here."""
    pillow, cv2 = bench.peers.get("PIL"), bench.peers.get("cv2")
    if pillow:
        from PIL import Image
        image = Image.fromarray(pixels)
        for level in (1, 6):
            def encode(level=level):
                buffer = io.BytesIO()
                image.save(buffer, "PNG", compress_level=level)
                return buffer.getvalue()
            yield f"Pillow, level {level}", encode
    if cv2:
        swapped = np.ascontiguousarray(pixels[:, :, ::-1])
        yield "OpenCV imencode", lambda: cv2.imencode(".png", swapped)[1].tobytes()


def decode(bench, data):
    """Pixels of a PNG by whichever peer can."""
    if bench.peers.get("PIL"):
        from PIL import Image
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    cv2 = bench.peers.get("cv2")
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


def tables(bench):
    view = View("seed", SEED, 1500, 1250, 400)
    table = Table(f"PNG of a Mandelbrot picture, {view.width}×{view.height}, colour")
    bench.say(table.title)
    run = bench.job("PNG", "/v1/mandelbrot", view.query(format="png"))
    data = b"" if run.reason else bytes(run.answer.body)
    # What is compared is the phase that encodes, in the place of the kernel.
    run.phases["kernel"] = run.phases["encode"]
    table.add_kiln(run, "", f"{len(data)} bytes")
    table.say("kiln's “kernel” here is its phase `encode`; its request computes the picture as well. "
              "Error: pixels that differ after decoding.")
    for name in ("PIL", "cv2"):
        if not bench.peers.get(name):
            table.add_absent({"PIL": "Pillow", "cv2": "OpenCV imencode"}[name], bench.peers.reason(name))
    if data and (bench.peers.get("PIL") or bench.peers.get("cv2")):
        pixels = decode(bench, data)
        for name, encode in encoders(bench, pixels):
            times, made = bench.time(encode)
            wrong = np.count_nonzero((decode(bench, made) != pixels).any(axis=2))
            table.add_peer(name, "call", times, f"{wrong} ≠", f"{len(made)} bytes")
    yield table
