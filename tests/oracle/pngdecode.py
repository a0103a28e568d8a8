"""A PNG decoder of its own: zlib and the five filters, for every depth that Pillow reduces to 8 bit."""

import struct
import zlib

import numpy as np

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunks(data):
    """(kind, content) of every chunk; the signature and every CRC are checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG signature"
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + size]
        crc, = struct.unpack(">I", data[at + 8 + size:at + 12 + size])
        assert crc == zlib.crc32(kind + content), f"wrong CRC in {kind}"
        yield kind, content
        at += 12 + size
    assert at == len(data), "bytes after the last chunk"


def texts(data):
    """The tEXt chunks as a dictionary."""
    pairs = (content.split(b"\0", 1) for kind, content in chunks(data) if kind == b"tEXt")
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in pairs}


def unfilter(kind, line, above, step):
    if kind == 1:
        for i in range(step, len(line)):
            line[i] = (line[i] + line[i - step]) & 255
    elif kind == 2:
        line[:] = (np.frombuffer(line, np.uint8) + np.frombuffer(above, np.uint8)).tobytes()
    elif kind == 3:
        for i in range(len(line)):
            left = line[i - step] if i >= step else 0
            line[i] = (line[i] + (left + above[i]) // 2) & 255
    elif kind == 4:
        for i in range(len(line)):
            a, c = (line[i - step], above[i - step]) if i >= step else (0, 0)
            b = above[i]
            p = a + b - c
            pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
            line[i] = (line[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255
    else:
        assert kind == 0, f"unknown filter {kind}"


def decode(data):
    """Samples as h×w or h×w×c integers. Palettes become RGB; no interlacing, 8 or 16 bit."""
    rows = list(chunks(data))
    assert rows[0][0] == b"IHDR" and rows[-1][0] == b"IEND"
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", rows[0][1])
    assert depth in (8, 16) and colour in CHANNELS and rest == [0, 0, 0]
    assert depth == 8 or colour != 3
    raw = zlib.decompress(b"".join(content for kind, content in rows if kind == b"IDAT"))
    channels = CHANNELS[colour]
    step = channels * depth // 8
    stride = width * step
    assert len(raw) == height * (stride + 1), "wrong number of bytes"
    above, out = bytearray(stride), bytearray()
    for j in range(height):
        line = bytearray(raw[j * (stride + 1) + 1:(j + 1) * (stride + 1)])
        unfilter(raw[j * (stride + 1)], line, above, step)
        out += line
        above = line
    samples = np.frombuffer(bytes(out), ">u2" if depth == 16 else np.uint8).astype(int)
    if colour == 3:
        palette, = (content for kind, content in rows if kind == b"PLTE")
        assert 0 < len(palette) <= 768 and len(palette) % 3 == 0 and samples.max() < len(palette) // 3
        samples = np.frombuffer(palette, np.uint8).reshape(-1, 3).astype(int)[samples]
        channels = 3
    return samples.reshape((height, width) if channels == 1 else (height, width, channels)), depth
