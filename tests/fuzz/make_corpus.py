#!/usr/bin/env python3
"""Writes the corpus of every fuzz target: small files, good and hostile.

Run by hand when a target learns something new; the files are committed, so that the tests need
neither Python nor its libraries. The same files come out every time.
"""
import base64
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent / "corpus"


def save(target, name, data):
    folder = HERE / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color, rows, before=b"", interlace=0, after=b"", split=0):
    data = zlib.compress(rows)
    parts = [data[:split], data[split:]] if split else [data]
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace))
        + before
        + b"".join(chunk(b"IDAT", part) for part in parts)
        + after
        + chunk(b"IEND")
    )


def make_png():
    rng = np.random.default_rng(1)
    palette = chunk(b"PLTE", bytes(range(12)))
    good = {
        "grey1": png(9, 2, 1, 0, b"\0\xaa\x80\0\x55\0"),
        "grey2": png(5, 2, 2, 0, b"\0\x1b\x80\1\x1b\0"),
        "grey4": png(3, 2, 4, 0, b"\0\x12\x30\2\x45\x60"),
        "grey8": png(3, 3, 8, 0, b"\0abc\1abc\2abc"),
        "grey8-filters": png(4, 5, 8, 0, b"\0abcd\1abcd\2abcd\3abcd\4abcd"),
        "grey16": png(2, 2, 16, 0, b"\0abcd\4efgh"),
        "grey8-trns": png(3, 1, 8, 0, b"\0abc", chunk(b"tRNS", b"\0b")),
        "rgb8": png(2, 2, 8, 2, b"\0abcdef\3ghijkl"),
        "rgb16-trns": png(1, 1, 16, 2, b"\0abcdef", chunk(b"tRNS", b"abcdef")),
        "palette2": png(4, 1, 2, 3, b"\0\x1b", palette),
        "palette8-trns": png(4, 1, 8, 3, b"\0\0\1\2\3", palette + chunk(b"tRNS", b"\x10\x20")),
        "grey-alpha8": png(2, 1, 8, 4, b"\0abcd"),
        "rgba16": png(1, 2, 16, 6, b"\0abcdefgh\2ijklmnop"),
        "interlaced1": png(5, 5, 1, 0, b"\0\x80" * 15, interlace=1),
        "interlaced8": png(2, 2, 8, 2, b"\0abc" + b"\0def" + b"\0ghijkl", interlace=1),
        "split": png(3, 3, 8, 0, b"\0abc\1abc\2abc", split=5),
        "text": png(1, 1, 8, 0, b"\0a", chunk(b"tEXt", b"key\0value") + chunk(b"gAMA", b"\0\0\xb1\x8f")),
    }
    image = Image.fromarray(rng.integers(0, 255, (12, 11, 3)).astype(np.uint8))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    good["pillow"] = stream.getvalue()
    for name, data in good.items():
        save("fuzz_png", name, data)
    bomb = zlib.compress(b"\0" * 200000, 9)
    hostile = {
        "empty": b"",
        "signature": b"\x89PNG\r\n\x1a\n",
        "no-pixels": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", b"\0\0\0\1\0\0\0\1\x08\0\0\0\0") + chunk(b"IEND"),
        "no-end": png(1, 1, 8, 0, b"\0a")[:-12],
        "huge": png(0x7FFFFFFF, 0x7FFFFFFF, 16, 6, b"\0"),
        "zero": png(0, 1, 8, 0, b"\0"),
        "short": png(4, 4, 8, 0, b"\0abcd"),
        "long": png(1, 1, 8, 0, b"\0abcdefghijkl"),
        "bad-filter": png(2, 2, 8, 0, b"\x05ab\xffcd"),
        "bad-checksum": png(1, 1, 8, 0, b"\0a")[:-1] + b"x",
        "bad-zlib": png(1, 1, 8, 0, b"\0a").replace(b"x\x9c", b"x\x9d"),
        "no-palette": png(1, 1, 8, 3, b"\0\0"),
        "palette-outside": png(2, 1, 8, 3, b"\0\x09\xff", palette),
        "palette-odd": png(1, 1, 8, 3, b"\0\0", chunk(b"PLTE", b"abcd")),
        "trns-empty": png(1, 1, 8, 0, b"\0a", chunk(b"tRNS")),
        "trns-alpha": png(1, 1, 8, 6, b"\0abcd", chunk(b"tRNS", b"\0\0")),
        "trns-late": png(1, 1, 8, 0, b"\0a", after=chunk(b"tRNS", b"\0a")),
        "trns-early": png(1, 1, 8, 3, b"\0\0", chunk(b"tRNS", b"a") + palette),
        "length-lies": png(1, 1, 8, 0, b"\0a").replace(b"\0\0\0\x0aIDAT", b"\xff\xff\xff\xffIDAT"),
        "text-bomb": png(1, 1, 8, 0, b"\0a", chunk(b"zTXt", b"k\0\0" + bomb)),
        "profile-bomb": png(1, 1, 8, 0, b"\0a", chunk(b"iCCP", b"k\0\0" + bomb)),
        "critical-unknown": png(1, 1, 8, 0, b"\0a", chunk(b"ABCD", b"x")),
        "two-headers": png(1, 1, 8, 0, b"\0a", chunk(b"IHDR", b"\0\0\0\2\0\0\0\2\x08\0\0\0\0")),
    }
    for name, data in hostile.items():
        save("fuzz_png", "bad-" + name, data)


def make_png_write():
    """Header: kind, way, width - 1, height - 1; then bytes. Kind: channels - 1, 4: 16 bit, 64: a large
    picture, 128: the small writer, too. Every large one is there with fewer pixels as well."""
    rng = np.random.default_rng(2)
    noise = rng.integers(0, 256, 3000).astype(np.uint8).tobytes()
    runs = bytes(value for i in range(3, 259) for value in (i % 7, min(i, 255)))
    files = {
        "one": (0x80, 0, 1, 1, b"a"),
        "rgb-noise": (0xc2, 0, 64, 64, noise),
        "rgb-few": (0xc2, 2, 100, 90, bytes(range(256))),
        "rgb-two": (0xc2, 0x42, 128, 128, b"\x01\x20\x09\xff"),
        "rgb-colours-256": (0xc2, 2, 64, 64, bytes(range(256)) * 3),
        "rgba-strips": (0xc3, 1, 128, 128, b"\0"),
        "rgba16-strips": (0x47, 3, 128, 128, b"\xff"),
        "rgba16-masked": (0xc7, 3, 128, 128, b"\x0f\x01\xff"),
        "grey-runs": (0xc0, 0x40, 128, 128, runs),
        "grey-flat": (0xc0, 0, 128, 128, b"\x4d"),
        "grey16-ramp": (0x44, 1, 100, 50, b"\0\1"),
        "grey-alpha": (0x81, 1, 33, 44, noise[:100]),
        "wide": (0x42, 1, 16384, 1, b"\0\0\1"),
        "high": (0x42, 1, 1, 16384, b"\0\0\1"),
        "empty": (0x80, 0, 9, 9, b""),
    }
    for name, (kind, way, width, height, data) in files.items():
        rest = struct.pack("<BHH", way, width - 1, height - 1) + data
        save("fuzz_png_write", name, bytes([kind]) + rest)
        if kind & 64:
            save("fuzz_png_write", name + "-less", bytes([kind & ~64]) + rest)
            save("fuzz_png_write", name + "-fast", bytes([kind & ~192]) + rest)


def make_pgm():
    files = {
        "p2": "P2\n# comment\n3 2\n255\n0 1 2\n3 4 255\n",
        "p2-wide": "P2 2 1 1000 7 1000",
        "p3": "P3\n2 1\n15\n1 2 3 4 5 15\n",
        "p5": b"P5\n2 2\n255\n\x01\x02\xff\x00",
        "p5-wide": b"P5 2 1 65535\n\x01\x02\xff\xff",
        "p5-small": b"P5 2 1 9\n\x01\x09",
        "p6": b"P6\n# c\n2 1\n255\nabcdef",
        "p7": b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcdefgh",
        "p7-wide": b"P7\n# c\nMAXVAL 300\nDEPTH 2\nHEIGHT 1\nWIDTH 1\nENDHDR\n\x01\x02\x00\x09",
        "bad-size": b"P5 4294967295 4294967295 255\nabc",
        "bad-overflow": b"P6 4294967295 4294967295 65535\nabc",
        "bad-negative": b"P5 -1 1 255\nabc",
        "bad-top": b"P5 1 1 65536\nabc",
        "bad-short": b"P5 3 3 255\nabc",
        "bad-text": "P2 2 2 255 1 2 x 4",
        "bad-above": "P2 2 1 3 1 4",
        "bad-comment": "P5 # never ends",
        "bad-twice": b"P7\nWIDTH 1\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\na",
        "bad-endless": b"P7\n" + b"TUPLTYPE X\n" * 50,
    }
    for name, data in files.items():
        save("fuzz_pgm", name, data)


def npy(header, data=b"", version=1):
    header = header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


def make_npy():
    for kind in "|b1 |u1 |i1 <u2 >u2 <i2 <u4 >i4 <i8 >u8 <f2 >f2 <f4 >f4 <f8 >f8".split():
        for order in "CF":
            array = np.array(np.arange(6).reshape(3, 2).astype(kind), order=order)
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array)
            save("fuzz_npy", f"{kind[1:]}-{'big' if kind[0] == '>' else 'little'}-{order}", stream.getvalue())
    rest = "'fortran_order': False, 'shape': (1,)}"
    files = {
        "rgb": npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 3)}", b"abcdefghijkl"),
        "scalar": npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", b"\0" * 8),
        "empty-array": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}"),
        "version2": npy("{'descr': '|u1', " + rest, b"a", 2),
        "version3": npy('{"shape": (1L,), "fortran_order": True, "descr": "u1"}  \n', b"a", 3),
        "nan": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}", b"\0\0\xc0\x7f"),
        "bad-object": npy("{'descr': '|O', " + rest, b"\x80\x04N."),
        "bad-structured": npy("{'descr': [('a', '<f8')], " + rest, b"\0" * 8),
        "bad-complex": npy("{'descr': '<c16', " + rest, b"\0" * 16),
        "bad-negative": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b"\0" * 8),
        "bad-overflow": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
        "bad-huge": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
        "bad-short": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}", b"\0" * 31),
        "bad-dimensions": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1)}", b"a"),
        "bad-code": npy("__import__('os').system('true')"),
        "bad-nested": npy("{" * 200),
        "bad-length": b"\x93NUMPY\x02\0\xff\xff\xff\xff{}",
        "bad-magic": b"\x93NUMPX\x01\0\0\0",
        "bad-empty": b"",
    }
    for name, data in files.items():
        save("fuzz_npy", name, data)


def make_json():
    files = {
        "job": '{"width": 640, "height":480,"xmin":"-0.75","smooth":true,"tolerance":null}',
        "series": '{"t":[0,1,2.5,3e2,-4.25E-3],"y":[1,-1,0.1,1e-320,123456789012345678901234567890],"dy":[]}',
        "nested": '{"a":{"a":[{"b":[[],{}]}]},"":"}],{"}',
        "strings": '["\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00", "é€😀", "a\\u0000b"]',
        "numbers": "[0,-0,0.0,1E+2,9007199254740993,1.7976931348623157e308,4.9e-324,2.4703282292062327e-324]",
        "long-number": "[0." + "123456789" * 120 + "e5,1" + "0" * 300 + "]",
        "deep": "[" * 64 + "]" * 64,
        "spaces": " \t\r\n[ 1 , 2 ] \n",
        "scalar": "false",
        "bad-deep": "[" * 65 + "]" * 65,
        "bad-deeper": "[" * 5000,
        "bad-range": "[1e309]",
        "bad-zero": "[01]",
        "bad-comma": "[1,]",
        "bad-key": '{"a":1,"\\u0061":2}',
        "bad-colon": '{"a" 1}',
        "bad-surrogate": '"\\ud800x"',
        "bad-escape": '"\\x"',
        "bad-control": '"a\nb"',
        "bad-utf8": b'"\xc0\x80\xed\xa0\x80\xf5"',
        "bad-bom": b"\xef\xbb\xbf{}",
        "bad-word": "nulL",
        "bad-nan": "[NaN,Infinity]",
        "bad-trailing": "{} {}",
        "bad-empty": "",
        "bad-open": '{"a":[1,2,"b',
        "bad-members": "{" + ",".join(f'"k{i}":0' for i in range(257)) + "}",
    }
    for name, data in files.items():
        save("fuzz_json", name, data)


def make_csv():
    files = {
        "plain": "1,2\n3,4.5\n",
        "three": "1;2;0.5\r\n3;4.5;0.25\r\n",
        "header": '"YEAR","SUNACTIVITY"\n1700,5\n1701,11\n',
        "named": 'id,Sigma,TIME,"Mag"\n7,.5,1,2\n8,.25,3,4\n',
        "quoted": 'name,t,y\n"Smith, ""J.""",1,2\n',
        "blanks": "  1   2 \n\n# comment\n3\t4\n",
        "tabs": "t\ty\terr\n1\t2\t3\n",
        "bom": b"\xef\xbb\xbf1,2\n",
        "carriage": "1,2\r3,4\r",
        "specials": "nan,inf\n-Infinity,+NaN\n",
        "numbers": "1e-320,1.7976931348623157e308\n+.5,5.\n-0,1e999\n",
        "no-rows": "t,y\n",
        "bad-one": "1\n2\n",
        "bad-four": "1,2,3,4\n",
        "bad-ragged": "1,2\n3\n",
        "bad-more": "1,2\n3,4,5\n",
        "bad-word": "1,2\n3,four\n",
        "bad-empty": "",
        "bad-comments": "# a\n\n# b",
        "bad-quote": '"t,y\n1,2\n',
        "bad-bytes": bytes(range(256)),
        "bad-comma": "1,5;2,5\n",
    }
    surveys = {
        "ztf": "oid,hjd,mjd,mag,magerr,catflags,filtercode\n6861,2458000.5,58000,15.2,0.02,0,zr\n",
        "asassn": "HJD,UT Date,Camera,mag,mag_err,flux(mJy),flux_err,Filter\n"
                  "2458000.5,2017-09-03.4,bd,15.2,0.02,3.1,0.1,V\n2458001.5,x,bd,>17.2,99.99,.1,.1,V\n",
        "gaia": "source_id,band,time,mag,flux,flux_error,flux_over_error\n58,G,1700.5,14.2,3e4,12.5,2400\n",
        "kepler": "TIME,SAP_FLUX,SAP_FLUX_ERR,PDCSAP_FLUX,PDCSAP_FLUX_ERR,SAP_QUALITY\n"
                  "131.5,1e4,3.2,1.1e4,3.3,0\n131.6,,,,,16\n",
        "atlas": "###MJD m dm uJy duJy F\n58000.1 16.1 .02 1300 20 o\n",
        "ogle": " 2455260.85336 15.283 0.003\n 2455261.8 15.2  0.003\n",
        "ecsv": "# %ECSV 1.0\n# ---\ntime flux flux_err\n1 \"\" 3\n",
        "missing": "t,y,dy\n1,nan,3\n4,null,\n--,N/A,6\n",
        "partly": "time,temperature\n1,2\n",
        "guess": "time,flux,flux_total_err\n1,2,3\n",
        "twice": "time,mag,mag,err\n1,2,3,4\n",
        "wide": ",".join("c%d" % i for i in range(256)) + "\n",
        "bad-wide": ",".join("c%d" % i for i in range(257)) + "\n",
        "bad-after": '"t",y\n1,"2"3\n',
    }
    # The first byte chooses columns: bits 0 to 2 which, bit 3 by name, the rest from where on.
    for name, data in {**files, **surveys}.items():
        data = data if isinstance(data, bytes) else data.encode()
        save("fuzz_csv", name, b"\0" + data)
    for name, how, data in (("by-number", 0x17, files["named"]), ("by-name", 0x0f, surveys["ztf"]),
                            ("y-by-name", 0x3a, surveys["gaia"]), ("bare", 0x27, "1,2,3,4,5,6\n"),
                            ("same", 0x13, surveys["kepler"])):
        save("fuzz_csv", name, bytes([how]) + data.encode())


def make_base64():
    files = {"length%d" % n: base64.b64encode(bytes(range(250, 256))[:n] * 1) for n in range(7)}
    files["long"] = base64.b64encode(bytes(range(256)))
    files["prefix"] = "data:image/png;base64,iVBORw0KGgo="
    files["prefix-short"] = "data:;base64,"
    files["bad-prefix"] = "data:image/png,AAAA"
    files["bad-length"] = "AAA"
    files["bad-padding"] = "A==="
    files["bad-inside"] = "AA==AAAA"
    files["bad-bits"] = "AB=="
    files["bad-line"] = "AAAA\nAAAA"
    files["bad-url"] = "AA-_"
    files["bad-bytes"] = bytes(range(128, 256))
    for name, data in files.items():
        save("fuzz_base64", name, data)


def make_quantum():
    texts = {
        "plain": "offset=32768&scale=1&bits=8", "short": "offset=0&scale=-4",
        "real": "offset=-1.25e-3&scale=0.0625&bits=16",
        "long": "offset=-1.2345678901234567e-300&scale=-1.2345678901234567e-300&bits=16",
        "bad-zero": "offset=1&scale=0", "bad-underflow": "offset=1&scale=1e-999",
        "bad-huge": "offset=1e999&scale=1", "bad-bits": "offset=1&scale=1&bits=12",
        "bad-order": "scale=1&offset=1", "bad-more": "offset=1&scale=1&bits=8&x=1",
        "bad-nan": "offset=nan&scale=1", "bad-cut": "offset=1&scale=", "bad-empty": "",
    }
    for name, text in texts.items():
        save("fuzz_quantum", name, text)
        body = b"kiln:quantization\0" + text.encode()
        if name in ("plain", "real", "bad-zero"):
            save("fuzz_png", "quantum-" + name,
                 png(2, 1, 16, 0, b"\0\x80\0\x80\1", chunk(b"tEXt", body)))
            save("fuzz_pgm", "quantum-" + name,
                 b"P5\n# kiln:quantization " + text.encode() + b"\n2 1\n65535\n\x80\0\x80\1")
    save("fuzz_png", "quantum-checksum", png(2, 1, 16, 0, b"\0\x80\0\x80\1",
         chunk(b"tEXt", b"kiln:quantization\0offset=1&scale=1")[:-1] + b"x"))
    save("fuzz_pgm", "quantum-pam", b"P7\n# kiln:quantization offset=1&scale=2\nWIDTH 1\nHEIGHT 1\n"
         b"DEPTH 1\nMAXVAL 255\nENDHDR\na")


def make_keys():
    key = "%s sha256:%s %s"
    one, two = "0123456789abcdef" * 4, "f" * 64
    files = {
        "empty": "",
        "comment": "# nothing\n\n  \t\n",
        "one": key % ("alice", one, "read") + "\n",
        "cut": key % ("alice", one, "read rate=1"),
        "limits": key % ("bob-2.x_", one, "compute,read") + " rate=0.5 burst=3 concurrency=4\n",
        "tabs": "\t" + (key % ("a", one, "admin")).replace(" ", "\t") + "\r\n# end\n",
        "two": key % ("a", one, "read") + "\n" + key % ("b", two, "admin,compute,read rate=20") + "\n",
        "bad-twice": key % ("a", one, "read") + "\n" + key % ("a", two, "read"),
        "bad-same": key % ("a", one, "read") + "\n" + key % ("b", one, "read"),
        "bad-id": key % ("a b", one, "read"),
        "bad-long": key % ("a" * 33, one, "read"),
        "bad-hash": key % ("a", one[1:], "read"),
        "bad-upper": key % ("a", "F" * 64, "read"),
        "bad-scope": key % ("a", one, "read,write"),
        "bad-scopes": key % ("a", one, "read,read"),
        "bad-comma": key % ("a", one, "read,"),
        "bad-rate": key % ("a", one, "read rate=1e3"),
        "bad-zero": key % ("a", one, "read rate=0"),
        "bad-burst": key % ("a", one, "read burst=3"),
        "bad-option": key % ("a", one, "read speed=3"),
        "bad-again": key % ("a", one, "read rate=3 rate=4"),
        "bad-nul": key % ("a", one, "read\0"),
        "bad-line": key % ("a", one, "read") + " " * 500,
        "bearer": "Bearer kiln_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
        "bearer-padded": "bearer  YWJj==",
    }
    for name, data in files.items():
        save("fuzz_keys", name, data)


def make_wire():
    """The first byte chooses how the rest is cut into pieces."""
    post = "POST /a?b=c HTTP/1.1\r\nHost: x\r\n"
    chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
    get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    cases = {
        "get": get,
        "get-1.0": "GET / HTTP/1.0\r\n\r\n",
        "pipelined": get + "\r\n" + get + get,
        "blanks": "GET /?a?b HTTP/1.1\r\nHost: \tx \t\r\nA:b\r\nC:\r\n\r\n" + get,
        "cookie": "GET / HTTP/1.1\r\nCookie: a=b\r\nHost: x\r\nCookie: c\r\n\r\n" + get,
        "expect": post + "Expect: 100-continue\r\n\r\n" + get,
        "expect-body": post + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + get,
        "expect-other": post + "Expect: x\r\n\r\n" + get,
        "names": post + "X-Request-Id: abc\r\ntraceparent: 00-1-2-3\r\nHost: y\r\n\r\n" + get,
        "length": post + "Content-Length: 3\r\n\r\nabc" + get,
        "length-short": post + "Content-Length: 9\r\n\r\nabc",
        "length-two": post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "length-plus": post + "Content-Length: +3\r\n\r\nabc",
        "length-coding": post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "coding-gzip": post + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        "coding-1.0": "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "folded": post + "A: b\r\n c\r\n\r\n" + get,
        "no-name": post + ": b\r\n\r\n" + get,
        "no-colon": post + "A\r\n\r\n" + get,
        "nul": post + "A: \0\r\n\r\n" + get,
        "lone-lf": "GET / HTTP/1.1\nHost: x\n\n",
        "lone-cr": post + "A: b\rC: d\r\n\r\n",
        "no-host": "GET / HTTP/1.1\r\n\r\n" + get,
        "two-blanks": "GET  / HTTP/1.1\r\nHost: x\r\n\r\n" + get,
        "fragment": "GET /#a?b HTTP/1.1\r\nHost: x\r\n\r\n" + get,
        "http2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "tls": "\x16\x03\x01",
        "chunks": chunked + "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n" + get,
        "chunks-two": (chunked + "1\r\na\r\n0\r\n\r\n") * 2,
        "chunks-zeros": chunked + "0003\r\nabc\r\n000\r\n\r\n" + get,
        "chunks-short": chunked + "30\r\nabc",
        "chunks-large": chunked + "300\r\n" + 768 * "a" + "\r\n300\r\n" + 768 * "b",
        "chunks-huge": chunked + "ffffffffffffffff\r\nabc",
        "chunks-digits": chunked + "00000000000000001\r\na\r\n0\r\n\r\n",
        "chunks-lf": chunked + "3\nabc\r\n0\r\n\r\n" + get,
        "chunks-data-lf": chunked + "3\r\nabc\n0\r\n\r\n" + get,
        "chunks-end-lf": chunked + "3\r\nabc\r\n0\r\n\n" + get,
        "chunks-sign": chunked + "+3\r\nabc\r\n0\r\n\r\n",
        "chunks-blank": chunked + "3 \r\nabc\r\n0\r\n\r\n",
        "extension": chunked + '3;a;b=c ; d = "e;\\"" ;f\r\nabc\r\n0;g\r\n\r\n' + get,
        "extension-lf": chunked + "3;a\nabc\r\n0\r\n\r\n" + get,
        "extension-quote": chunked + '3;a="\r\nabc\r\n0\r\n\r\n' + get,
        "extension-none": chunked + "3;\r\nabc\r\n0\r\n\r\n" + get,
        "extension-long": chunked + "3;" + 300 * "a" + "\r\nabc\r\n0\r\n\r\n" + get,
        "trailers": chunked + "3\r\nabc\r\n0\r\nA:\r\nB: c\r\n\r\n" + get,
        "trailer-nul": chunked + "0\r\nA: \0\r\n\r\n" + get,
        "trailer-folded": chunked + "0\r\nA: b\r\n c\r\n\r\n" + get,
        "trailer-lf": chunked + "0\r\nA: b\n\r\n" + get,
        "trailer-no-name": chunked + "0\r\n: b\r\n\r\n" + get,
    }
    for number, (name, text) in enumerate(cases.items()):
        save("fuzz_wire", name, bytes([number]) + text.encode("latin-1"))


def make_origin():
    files = {
        "same": "127.0.0.1:8080\nhttp://127.0.0.1:8080",
        "page": "kiln.example\nhttps://kiln.example:443/a?b#c",
        "other": "localhost:8080\nhttps://evil.example/http://localhost:8080",
        "port": "localhost:80\nhttp://LOCALHOST",
        "null": "localhost\nnull",
        "six": "[::1]:8080\nhttp://[::1]:8080/",
        "bare": "a\n://",
        "empty": "\nhttp://",
        "ports": ":443\nhttps://:443",
    }
    for name, data in files.items():
        save("fuzz_origin", name, data)


def make_trace():
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    parent = "00-%s-%s-%s"
    files = {
        "parent": parent % (trace, span, "01"),
        "parent-flags": parent % (trace, span, "ff"),
        "parent-blanks": "\t " + parent % (trace, span, "00") + " \t",
        "parent-future": "cc" + (parent % (trace, span, "01"))[2:] + "-what-the-future-will-be-like",
        "bad-version": "ff" + (parent % (trace, span, "01"))[2:],
        "bad-longer": parent % (trace, span, "01-"),
        "bad-upper": parent % (trace.upper(), span, "01"),
        "bad-zero": parent % ("0" * 32, span, "01"),
        "bad-zero-span": parent % (trace, "0" * 16, "01"),
        "bad-short": parent % (trace, span, "0"),
        "bad-dash": (parent % (trace, span, "01")).replace("-", "_"),
        "bad-dot": "cc" + (parent % (trace, span, "01"))[2:] + ".x",
        "state": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
        "state-vendor": "fw529a3039@dt=FfFfFf, 0x_-*/@=~ !<>",
        "state-empty-members": ",a=1,,\t,b=2 ,",
        "state-most": ",".join("bar%02d=%02d" % (i, i) for i in range(32)),
        "bad-state-many": ",".join("bar%02d=%02d" % (i, i) for i in range(33)),
        "bad-state-key": "Foo=1,@a=2",
        "bad-state-value": "foo=1=2",
        "bad-state-long": "a=" + "x" * 600,
        "id": "3f1c2b1a-7d51-4c7e-9a7e-0b9f2f1e8d11",
        "id-long": "x" * 128,
        "bad-id-longer": "x" * 129,
        "bad-id-quote": 'a"b',
        "empty": "",
    }
    for name, data in files.items():
        save("fuzz_trace", name, data)


def make_multipart():
    """A line with the Content-Type, then the body."""
    def form(parts, boundary="XX", head="multipart/form-data; boundary=%s", before="", after="\r\n"):
        body = before
        for headers, data in parts:
            body += "--%s\r\n%s\r\n\r\n%s\r\n" % (boundary, headers, data)
        return head % boundary + "\n" + body + "--" + boundary + "--" + after

    def field(name, data, more=""):
        return ('Content-Disposition: form-data; name="%s"%s' % (name, more), data)

    image = ('Content-Disposition: form-data; name="image"; filename="a.png"\r\n'
             "Content-Type: image/png; x=y", "\x89PNG\r\n--X\r\n--XY")
    files = {
        "fields": form([field("width", "64"), field("format", "json")]),
        "file": form([field("iterations", "10"), image]),
        "empty-part": form([field("a", "")]),
        "none": form([]),
        "preamble": form([field("a", "1")], before="hello\r\n"),
        "epilogue": form([field("a", "1")], after="\r\nthe end"),
        "quoted-boundary": form([field("a", "1")], "a b", 'multipart/form-data; boundary="%s"'),
        "long-boundary": form([field("a", "1")], "x" * 70),
        "escaped": form([field('a\\"b\\\\', "1")]),
        "token-name": form([("content-disposition:form-data;name=a;filename=b", "1")]),
        "star-name": form([("Content-Disposition: form-data; name=a; filename*=utf-8''b", "1")]),
        "blanks": form([field("a", "1")]).replace("--XX\r\n", "--XX \t\r\n"),
        "nearly": form([field("a", "\r\n--X\r\n-\r\n--")]),
        "bad-no-boundary": "multipart/form-data\n--XX--",
        "bad-boundary": form([field("a", "1")], "x" * 71),
        "bad-boundary-blank": form([field("a", "1")], "x ", 'multipart/form-data; boundary="%s"'),
        "bad-quote": form([field("a", "1")], head='multipart/form-data; boundary="%s'),
        "bad-no-end": form([field("a", "1")])[:-6],
        "bad-no-name": form([("Content-Disposition: form-data", "1")]),
        "bad-not-form": form([('Content-Disposition: attachment; name="a"', "1")]),
        "bad-no-colon": form([("nothing", "1")]),
        "bad-nul": form([field("a\0b", "1")]),
        "bad-long-header": form([field("a" * 5000, "1")]),
        "bad-long-name": form([field("a" * 200, "1")]),
        "bad-many": form([field("a", "1")] * 129),
        "bad-delimiter": form([field("a", "1")]).replace("--XX\r\n", "--XXY\r\n"),
        "empty": "",
    }
    for name, data in files.items():
        save("fuzz_multipart", name, data.encode("latin-1"))


def make_submission():
    """Kind and captured segments, media type, query, each a line; then the body."""
    pgm, small = b"P5\n2 1\n255\nab", b"P5\n1 3\n255\nxyz"
    text = base64.b64encode(pgm).decode()
    other = base64.b64encode(small).decode()
    curve = b"t,y,dy\n0,1,1\n1.5,2,1\n2.25,0.5,2\n4,1,1\n"
    series = '{"t":[0,1,2.5,4],"y":[1,2,0.5,1]%s}'
    grid = "f0=0.1&df=0.1&nf=5"

    def form(*parts):
        return b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\n\r\n%s\r\n'
                        % (name, data) for name, data in parts) + b"--b--\r\n"

    def npy(array):
        out = io.BytesIO()
        np.save(out, np.asarray(array, float))
        return out.getvalue()

    multi, js, octets = "multipart/form-data; boundary=b", "application/json", "application/octet-stream"
    files = {
        "query": ("mandelbrot", "", "width=64&height=48&colormap=viridis&device=cpu:0&format=png", b""),
        "tile": ("mandelbrot 3 2 3@2x.png", "", "max_iter=50", b""),
        "bad-tile": ("mandelbrot 3 9 3.png", "", "width=5", b""),
        "json": ("mandelbrot", js, "", b'{"width":64,"smooth":false,"gamma":"0.5","colormap":"hot"}'),
        "form": ("mandelbrot", "application/x-www-form-urlencoded", "", b"width=64&height=1%30"),
        "form-json": ("mandelbrot", "application/x-www-form-urlencoded", "", b' {"width":64}'),
        "bad-twice": ("mandelbrot", "application/x-www-form-urlencoded", "width=5", b"width=64&x=1"),
        "body": ("laplacian", octets, "scale=2", pgm),
        "form-image": ("laplacian", "application/x-www-form-urlencoded", "", pgm),
        "base64": ("jacobi", js, "", ('{"image":"%s","iterations":5}' % text).encode()),
        "base64-escaped": ("jacobi", js, "", ('{"image":"%s"}' % ("\\u0055" + text[1:])).encode()),
        "base64-query": ("jacobi", "", "image=" + text.replace("+", "%2b"), b""),
        "bad-base64": ("jacobi", js, "", b'{"image":"!!!!","image":3}'),
        "bad-picture": ("jacobi", "image/png", "", b"\x89PNG\r\n\x1a\nnothing"),
        "two-parts": ("pair", multi, "", form((b"mask", small), (b"image", pgm))),
        "two-members": ("pair", js, "", ('{"mask":"%s","image":"%s"}' % (other, text)).encode()),
        "two-places": ("pair", octets, "mask=" + other, pgm),
        "bad-two": ("pair", multi, "mask=" + other, form((b"mask", small), (b"image", b"?"))),
        "series": ("lombscargle", js, grid, (series % ',"dy":0.5').encode()),
        "series-rows": ("lombscargle", js, "", (b'{"t":[[0,1,2],[0,1,3,4]],"y":[[1,2,1],[1,3,1,2]],"nf":3,'
                                                b'"f0":0.1,"df":0.1,"dy":1}')),
        "series-gaps": ("lombscargle", js, grid + "&missing=drop", b'{"t":[0,1,2,3],"y":[1,null,2,0.5]}'),
        "bad-gaps": ("lombscargle", js, grid, b'{"t":[0,1,2,3],"y":[1,null,2,0.5]}'),
        "series-form": ("lombscargle", "application/x-www-form-urlencoded", "", b"t=0,1,3,4&y=1,2,,3&missing=drop"),
        "table": ("lombscargle", "text/csv", grid, curve),
        "table-choice": ("lombscargle", "text/plain", grid + "&y_column=3&dy_column=none", curve),
        "table-gaps": ("lombscargle", "text/csv", grid + "&missing=drop", curve + b"5,,1\n6,nan,2\n"),
        "table-part": ("lombscargle", multi, grid, form((b"file", curve))),
        "array": ("lombscargle", "application/x-npy", grid, npy([[0, 1, 2, 4], [1, 2, 0, 1], [1, 1, 1, 2]])),
        "array-columns": ("lombscargle", "application/x-npy", grid, npy([[0, 1], [1, 2], [2, 0], [4, 1], [5, 2]])),
        "array-batch": ("lombscargle", "application/x-npy", grid + "&layout=batch",
                        npy([[0, 1, 2, 4], [1, 2, 0, 1], [1, 1, 3, 2], [0, 0, 1, 1]])),
        "bad-array": ("lombscargle", "application/x-npy", "layout=batch", npy([[0, 1, 2, 4]])),
        "bad-zip": ("lombscargle", "text/csv", "", b"PK\x03\x04 and more"),
        "bad-json": ("lombscargle", js, "", b'{"t":[1,2'),
        "bad-media": ("mandelbrot", "text/html", "", b"<p>"),
        "bad-escape": ("mandelbrot", "", "width=%zz", b""),
        "many": ("mandelbrot", "", "a=1&" * 300, b""),
    }
    for name, (kind, media, query, body) in files.items():
        save("fuzz_submission", name, ("%s\n%s\n%s\n" % (kind, media, query)).encode() + body)


def make_url():
    files = {
        "root": "/", "all": "*", "path": "/v1/jobs/types", "tile": "/v1/mandelbrot/tiles/3/2/3@2x.png",
        "query": "/v1/mandelbrot?width=64&height=48&colormap=viridis",
        "pairs": "/a?&&a=1&b&=c&d==&e=%26%3d+%2B", "plus": "/a+b?a+b=c+d",
        "escapes": "/%41%2f%c3%a9?%41=%c3%a9", "empty-segments": "//a///b/", "dots": "/../a/./b",
        "absolute": "http://host:1/v1/jobs?x=1", "absolute-bare": "HTTPS://host", "absolute-query": "http://h?a=b",
        "many": "/a" * 12, "bad-many": "/a" * 13, "bad-nul": "/a%00b", "bad-escape": "/a%4", "bad-hex": "/a%zz",
        "bad-control": "/a%1fb?c=%7f", "bad-fragment": "/a#b", "bad-start": "a/b", "bad-query": "/a?b=%",
        "blanks": "/a%09b?c=%0d%0a", "long": "/" + "a" * 8000, "bytes": b"/\xff\x80?\xfe=\xe9", "empty": "",
    }
    for name, data in files.items():
        save("fuzz_url", name, data)


def make_accept():
    files = {
        "any": "*/*", "one": "image/png", "browser": "text/html,application/xhtml+xml,application/xml;q=0.9,"
        "image/avif,image/webp,*/*;q=0.8", "axios": "application/json, text/plain, */*",
        "qualities": "application/x-npy;q=0.5, image/png;q=0.25, application/json", "type": "image/*;q=0.2,*/*;q=0.1",
        "none": "text/html", "zero": "*/*;q=0", "zero-one": "*/*, image/png;q=0", "case": "IMAGE/PNG;Q=1",
        "quoted": 'image/png;x="a,b;q=0";q=0.5, text/csv', "bad-quote": 'image/png;x="a, text/csv',
        "bad-escape": 'image/png;x="a\\', "bad-quality": "image/png;q=2,text/csv;q=-1,application/json;q=x",
        "exponents": "image/png;q=1e-999,text/csv;q=0x1p3", "commas": ",,, image/png ,,;q=1,", "no-slash": "png, json",
        "long": "a/" + "b" * 200 + ", image/png", "spaces": " \timage/png \t; \tq=0.3\t, text/csv", "empty": "",
        "names": "text/csv;charset=utf-8, application/octet-stream, image/x-portable-graymap",
    }
    for name, data in files.items():
        save("fuzz_accept", name, data)


def make_kept_headers():
    texts = ("respond-async", "respond-async, wait=10", "wait=99999999999999999999999; respond-async", "wait=", "WAIT=5",
             '"night-17/4"', '"a \\"b\\" \\\\"', '"', '""', '"a"b', '"a\\', '"' + "k" * 64 + '"', '"' + "k" * 65 + '"', '"\x7f"',
             "bytes=0-0", "bytes=5-9", "bytes=10-", "bytes=-7", "bytes=-0", "bytes=9-5", "bytes=0-1,4-5", "bytes=",
             "bytes=99999999999999999999999-", "bytes=-99999999999999999999999", "bytes=1-2x", "items=0-1")
    for i, text in enumerate(texts):
        save("fuzz_kept_headers", f"{i:02}", text.encode("latin-1"))


def make_etag():
    tag = '"08a0a8095942b35e59f34283d02fa647"'
    files = {
        "same": tag, "weak": "W/" + tag, "list": '"a", W/"b,c" ,' + tag, "star": "*", "star-blank": " * ",
        "bad-star": "*, x", "bad-star-word": "*a", "other": '"x"', "cut": tag[:-1], "bare": tag.strip('"'),
        "bad-quote": '"a, ' + tag, "weak-lower": "w/" + tag, "commas": ",,,", "inside": '"x' + tag + '"',
        "weak-twice": "W/W/" + tag, "words": "a b c", "empty": "",
    }
    for name, data in files.items():
        save("fuzz_etag", name, data)


def make_store_command():
    """Packets as compute/store/command.c makes them, behind the byte that chooses what they are."""
    magic = 0x6b73746f72653031
    job_id = bytes([1]) + bytes(7) + bytes([0, 0, 0, 0, 0, 0, 0, 9])

    def number(*values):
        return b"".join(struct.pack("<q", value) for value in values)

    def string(value):
        return struct.pack("<I", len(value)) + value.encode() + b"\0"

    def head(task, ticket=7):
        return number(magic, ticket, task)

    def record(params='{"width":16}', state=0):
        return (job_id + bytes(16) + number(0) + string("alice") + string("mandelbrot") + number(3) +
                string(params) + string("png") + string("image/png") + string("") + string("cpu:0") +
                string('"tag"') + string("label") + string("https://a.example/") +
                number(1, state, 1, 1, 0, 0, 5, 1000, 0, 0, 0, 0, 3600000, 0, 0, 4096, 10, 0) +
                struct.pack("<dd", 1.5, 0.25) + bytes(64) + string("{}") + bytes(24))

    accept = head(1) + number(1) + string("alice") + string("key") + bytes(32) + bytes(16)
    finish = head(2) + number(1) + job_id + number(1, 2, 0)
    batch = string("bob") + string("") + bytes(48)
    files = {
        "accept": b"\0" + accept + record() + number(100, 5000),
        "accept-outside": b"\0" + accept + record() + number(65000, 5000),
        "accept-negative": b"\0" + accept + record() + number(-1, 5),
        "accept-state": b"\0" + accept + record(state=6) + number(0, 0),
        "accept-long": b"\0" + accept + record("x" * 16385) + number(0, 0),
        "batch": b"\0" + head(1) + number(10000) + batch + number(0, 65536),
        "batch-many": b"\0" + head(1) + number(10001) + batch + number(0, 1),
        "finish": b"\0" + finish + struct.pack("<d", 0.5) + string("{}") + string("cpu:0") + number(0, 4096),
        "finish-nan": b"\0" + finish + struct.pack("<d", float("nan")) + string("") + string("") + number(0, 0),
        "verb": b"\0" + head(2) + number(6) + job_id,
        "calibrate": b"\0" + head(3) + string("mandelbrot") + string("fp32") + string("cpu:0") +
                     struct.pack("<ddd", 1e-3, 2e-9, 32),
        "delivered": b"\0" + head(4) + number(9) + job_id + string("https://a.example/") + number(0, 3, 503),
        "get": b"\0" + head(5) + job_id + number(0),
        "open": b"\0" + head(6) + job_id + number(1),
        "list": b"\0" + head(7) + number(1) + string("alice") + number(0) + string("") + number(0) +
                string("") + number(63) + bytes(16) + job_id + number(1, 0, 100),
        "events": b"\0" + head(8) + number(12) + bytes(16) + number(1) + string("alice") + number(1000),
        "deliveries": b"\0" + head(9) + number(1700000000000, 10),
        "calibrations": b"\0" + head(10),
        "stats": b"\0" + head(11),
        "task": b"\0" + head(12),
        "magic": b"\0" + number(1, 7, 11),
        "empty": b"\0",
        "answer-ready": b"\1" + head(0) + number(0) + bytes(96),
        "answer-get": b"\1" + head(5) + number(0) + record(),
        "answer-open": b"\1" + head(6) + number(0) + number(5, 1) + b"bytes",
        "answer-open-cut": b"\1" + head(6) + number(0) + number(500, 1) + b"bytes",
        "answer-list": b"\1" + head(7) + number(0) + job_id + number(1, 2) + record() + record(),
        "answer-list-cut": b"\1" + head(7) + number(0) + job_id + number(1, 3) + record(),
        "answer-events": b"\1" + head(8) + number(0) + bytes(16) + number(0, 1, 12) + job_id +
                         string("alice") + number(1000, 6, 2),
        "lines": b"\2" + b"\1" + (record() + number(0, 5)) * 2,
        "lines-cut": b"\2" + b"\1" + (record() + number(0, 5)) * 2 + b"x",
    }
    for name, data in files.items():
        save("fuzz_store_command", name, data)


if __name__ == "__main__":
    for make in (make_png, make_png_write, make_pgm, make_npy, make_json, make_csv, make_base64,
                 make_keys, make_trace, make_wire, make_quantum, make_multipart, make_url, make_accept,
                 make_etag, make_kept_headers, make_origin, make_submission, make_store_command):
        make()
