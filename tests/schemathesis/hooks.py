"""Bodies that are what their media type says, which no schema can express: small good pictures and light
curves. How broken ones are refused is the matter of api_images, api_arrays and the fuzz targets."""

import base64
import struct
import zlib

import schemathesis
from hypothesis import strategies as st


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height):
    rows = b"".join(b"\0" + bytes(17 * x * y % 256 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND"))


def npy(shape):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    count = shape[0] * shape[1]
    return (b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head +
            struct.pack(f"<{count}f", *(i * i % 97 + i for i in range(count))))


PNG = [png(1, 1), png(7, 5)]
PGM = [b"P5 2 2 255\n\1\2\3\4", b"P2 3 1 9 1 2 3\n", b"P6 1 1 255\nabc"]
CSV = ["1,2\n2,3\n3,1\n4,2.5\n", "t,y,dy\n1,2,1\n2,3,.5\n3.5,4,2\n4,1,1\n"]
NPY = [npy((2, 8)), npy((3, 5))]  # both a picture and a light curve

schemathesis.openapi.media_type("image/png", st.sampled_from(PNG))
schemathesis.openapi.media_type("image/x-portable-graymap", st.sampled_from(PGM))
schemathesis.openapi.media_type("application/x-npy", st.sampled_from(NPY))
schemathesis.openapi.media_type("application/octet-stream", st.sampled_from(NPY))
# A part of a form says no more than that it is bytes: those that are a picture and a light curve.
schemathesis.openapi.format("binary", st.sampled_from(NPY))
schemathesis.openapi.format("light-curve", st.sampled_from(CSV))
schemathesis.openapi.format("picture", st.sampled_from(
    [base64.b64encode(one).decode() for one in PNG + PGM + NPY]))
