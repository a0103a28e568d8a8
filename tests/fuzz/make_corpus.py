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
    for name, data in files.items():
        save("fuzz_csv", name, data)


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


if __name__ == "__main__":
    for make in (make_png, make_png_write, make_pgm, make_npy, make_json, make_csv, make_base64,
                 make_keys, make_origin, make_trace):
        make()
