#!/usr/bin/env python3
"""style.py: what clang-format does not decide about C and CUDA sources.

    python3 scripts/style.py FILE…          tells what differs; exit code 1 if anything does
    python3 scripts/style.py --fix FILE…    changes the files (clang-format lays them out afterwards)

- Bodies of if, else, for, while and do stand in braces. Read from tokens, macros' bodies too.
- Pointers are compared with NULL, in C++ with nullptr: no `!pointer`, no `if (pointer)`, no pointer
  that becomes a bool. What is a pointer, libclang says, of any version from 14 on; exit code 77 where
  it is not installed, after the braces. CUDA is read as C++ with the few words below; a pointer that
  only the toolkit's headers would tell is not seen there.

What a macro's body says about pointers is told and not changed."""

import bisect
import ctypes
import ctypes.util
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

SKIP = 77
CUDA_WORDS = """
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
"""

TOKEN = re.compile(
    r"""(?P<skip>\s+|//(?:\\\n|[^\n])*|/\*.*?\*/|\\\n)
      |(?P<word>[A-Za-z_]\w*)
      |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      |(?P<other>\d[\w.']*|.)""", re.S | re.X)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.M | re.S)
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+\w+(\((?:[^()])*\))?")


def blank(text):
    """The text with comments and strings as blanks, of the same length; lines go on where they did."""
    out = []
    for match in TOKEN.finditer(text):
        piece = match.group()
        plain = not match.group("skip") and not match.group("text")
        out.append(piece if plain else re.sub(r"(?!\\\n)[^\n]", " ", piece))
    return "".join(out)


def streams(text):
    """Runs of (token, start, end): the code without directives, then each macro's body."""
    plain = blank(text)
    bodies, code = [], plain
    for match in DIRECTIVE.finditer(plain):
        code = code[:match.start()] + re.sub(r"[^\n]", " ", match.group()) + code[match.end():]
        head = DEFINE.match(match.group())
        if head:
            body = match.group()[head.end():].replace("\\\n", "  ")
            bodies.append((body, match.start() + head.end(), True))
    for source, offset, macro in [(code, 0, False), *bodies]:
        yield macro, [(m.group(), offset + m.start(), offset + m.end())
                      for m in TOKEN.finditer(source) if not m.group("skip")]


class Braces:
    """Finds bodies without braces in one run of tokens."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.bodies = []  # (index of the token before, index of the first, index behind the last)
        self.tails = set()  # whiles that end a do
        for i, (word, _, _) in enumerate(tokens):
            if word == "do":
                self.tails.add(self.end(i + 1))
        for i, (word, _, _) in enumerate(tokens):
            if word in ("if", "for", "while") and i not in self.tails and self.word(i + 1) in ("(", "constexpr"):
                self.body(self.closed(i + 1 + (self.word(i + 1) == "constexpr")))
            elif word == "do" or (word == "else" and self.word(i + 1) != "if"):
                self.body(i + 1)

    def word(self, i):
        return self.tokens[i][0] if i < len(self.tokens) else ""

    def body(self, i):
        if self.word(i) not in ("{", ""):
            self.bodies.append((i - 1, i, self.end(i)))

    def closed(self, i):
        """Behind the bracket that closes the one at i."""
        depth = 0
        while i < len(self.tokens):
            depth += self.word(i) in ("(", "[", "{")
            depth -= self.word(i) in (")", "]", "}")
            i += 1
            if depth == 0:
                break
        return i

    def end(self, i):
        """Behind the statement at i."""
        word = self.word(i)
        if word == "{":
            return self.closed(i)
        if word in ("if", "for", "while", "switch"):
            i = self.end(self.closed(i + 1))
            return self.end(i + 1) if word == "if" and self.word(i) == "else" else i
        if word == "do":
            i = self.closed(self.end(i + 1) + 1)
            return i + (self.word(i) == ";")
        while i < len(self.tokens):
            if self.word(i) in ("(", "[", "{"):
                i = self.closed(i)
            elif self.word(i) == ";":
                return i + 1
            else:
                i += 1
        return i


def braces(text):
    """(place, what it says, edits) of each body without braces; edits are (start, end, order, text)."""
    for macro, tokens in streams(text):
        for before, first, behind in Braces(tokens).bodies:
            opening, last = tokens[before][2], tokens[min(behind, len(tokens)) - 1][2]
            if tokens[first][0] == ";":
                edits = [(opening, last, 0, " {}")]
            else:
                rest = re.compile(r"[ \t]*(/\*[^\n]*?\*/[ \t]*|//[^\n]*)?(?=\n)").match(text, last)
                close = last if macro or not rest else rest.end()
                edits = [(opening, opening, 0, " {"), (close, close, 1, " }" if macro else "\n}")]
            yield tokens[before][1], "a body without braces", edits


# ---- pointers: the little of libclang's interface that this needs ----

class Cursor(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("xdata", ctypes.c_int), ("data", ctypes.c_void_p * 3)]


class Type(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("data", ctypes.c_void_p * 2)]


class Location(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p * 2), ("offset", ctypes.c_uint)]


class Range(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p * 2), ("begin", ctypes.c_uint), ("end", ctypes.c_uint)]


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("flags", ctypes.c_uint)]


UNEXPOSED, PAREN, UNARY, BINARY, CONDITIONAL = 100, 111, 112, 114, 116  # CXCursorKind
IF, WHILE, DO, FOR = 205, 207, 208, 209
BOOL, POINTERS = 3, (101, 24)  # CXType_Bool; _Pointer and _NullPtr
VISIT = ctypes.CFUNCTYPE(ctypes.c_int, Cursor, Cursor, ctypes.c_void_p)


def libclang():
    names = [f"libclang-{v}.so.1" for v in range(14, 40)] + [f"libclang-{v}.so" for v in range(14, 40)]
    for name in [os.environ.get("LIBCLANG"), *names]:
        try:
            library = name and ctypes.CDLL(name)
        except OSError:
            continue
        if library:
            break
    else:
        return None
    for name, result, arguments in (
            ("createIndex", ctypes.c_void_p, [ctypes.c_int] * 2),
            ("parseTranslationUnit", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int,
                                                       ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]),
            ("disposeTranslationUnit", None, [ctypes.c_void_p]),
            ("getTranslationUnitCursor", Cursor, [ctypes.c_void_p]),
            ("visitChildren", ctypes.c_uint, [Cursor, VISIT, ctypes.c_void_p]),
            ("getCursorType", Type, [Cursor]), ("getCanonicalType", Type, [Type]),
            ("getCursorExtent", Range, [Cursor]), ("getCursorLocation", Location, [Cursor]),
            ("getRangeStart", Location, [Range]), ("getRangeEnd", Location, [Range]),
            ("getFileLocation", None, [Location] + [ctypes.c_void_p] * 4),
            ("Location_isInSystemHeader", ctypes.c_int, [Location]),
            ("getFileName", String, [ctypes.c_void_p]), ("getCString", ctypes.c_char_p, [String]),
            ("disposeString", None, [String]), ("getNumDiagnostics", ctypes.c_uint, [ctypes.c_void_p])):
        function = getattr(library, "clang_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Pointers:
    """Finds pointers that stand for truth in one source and the headers of ours that it includes."""

    seen = set()  # files that this process has looked at

    def __init__(self, library, path, wanted):
        self.clang, self.path, self.wanted = library, path, wanted
        self.found = {}  # (file, start) → (end, kind)
        self.files = {}
        self.texts = {}

    def place(self, location):
        """(file, offset) of a location: of a macro's argument where it stands, of its body where it is used."""
        file, offset = ctypes.c_void_p(), ctypes.c_uint()
        self.clang.clang_getFileLocation(location, ctypes.byref(file), None, None, ctypes.byref(offset))
        if file.value not in self.files:
            name = self.clang.clang_getFileName(file) if file.value else None
            text = self.clang.clang_getCString(name) if name else None
            self.files[file.value] = os.path.relpath(text.decode()) if text else ""
            if name:
                self.clang.clang_disposeString(name)
        return self.files[file.value], offset.value

    def span(self, cursor):
        """(file, start, end)."""
        extent = self.clang.clang_getCursorExtent(cursor)
        file, first = self.place(self.clang.clang_getRangeStart(extent))
        return file, first, self.place(self.clang.clang_getRangeEnd(extent))[1]

    def text(self, file):
        if file not in self.texts:
            with open(file, "rb") as source:
                self.texts[file] = source.read()
        return self.texts[file]

    def children(self, cursor):
        found = []
        visit = VISIT(lambda child, parent, data: found.append(Cursor.from_buffer_copy(child)) or 1)
        self.clang.clang_visitChildren(cursor, visit, None)
        return found

    def kind(self, cursor):
        return self.clang.clang_getCanonicalType(self.clang.clang_getCursorType(cursor)).kind

    def truth(self, cursor, parent):
        """An expression of which only the truth counts, for `parent`."""
        file, start, end = self.span(cursor)
        if self.kind(cursor) not in POINTERS or file not in self.wanted:
            return
        while cursor.kind in (PAREN, UNEXPOSED) and self.text(file)[start:start + 1] != b"(":  # parens of a macro
            parts = self.children(cursor)
            if len(parts) != 1:
                break
            cursor = parts[0]
            file, start, end = self.span(cursor)
        depth = 0
        for at, c in enumerate(blank(self.text(file)[start:end].decode("latin-1"))):
            depth += (c in "([{") - (c in ")]}")
            if depth < 0:  # an argument of a macro may end with the macro
                end = start + at
                break
        inside = parent is not None and self.span(parent) == (file, start, end)
        if self.text(file)[start:start + 1] != b'"':  # a sentence of an assertion
            self.found.setdefault((file, start), (end, "macro" if inside else "plain"))

    def logical(self, parts):
        """The operator of a binary expression, from the bytes between its operands."""
        (file, _, end), (_, start, _) = self.span(parts[0]), self.span(parts[1])
        between = blank(self.text(file)[end:start].decode("latin-1")) if file in self.wanted else ""
        return "&&" in between or "||" in between

    def look(self, cursor):
        kind = cursor.kind
        parts = self.children(cursor)
        if kind in (IF, WHILE, CONDITIONAL) and parts:
            self.truth(parts[0], cursor)
        elif kind == DO and parts:
            self.truth(parts[-1], cursor)
        elif kind == FOR and parts:
            self.loop(cursor, parts)
        elif kind == BINARY and len(parts) == 2 and self.logical(parts):
            self.truth(parts[0], cursor)
            self.truth(parts[1], cursor)
        elif kind == UNARY and parts:
            self.negation(cursor, parts[0])
        elif kind == UNEXPOSED and len(parts) == 1 and self.kind(cursor) == BOOL:
            self.truth(parts[0], None)  # it stands where the cast does
        for part in parts:
            self.look(part)

    def loop(self, cursor, parts):
        """The middle of a for's head; libclang leaves out the parts that are empty."""
        file, start, _ = self.span(cursor)
        if file not in self.wanted:
            return
        text = blank(self.text(file)[start:start + 4000].decode("latin-1"))
        depth, semicolons = 0, []
        for at, c in enumerate(text):
            depth += c in "([{"
            depth -= c in ")]}"
            if depth == 1 and c == ";":
                semicolons.append(start + at)
            if depth == 0 and c == ")":
                break
        for part in parts[:-1]:
            where = self.span(part)[1]
            if len(semicolons) == 2 and semicolons[0] < where < semicolons[1]:
                self.truth(part, cursor)

    def negation(self, cursor, operand):
        file, start, end = self.span(cursor)
        if file in self.wanted and self.kind(operand) in POINTERS and self.text(file)[start:start + 1] == b"!":
            self.found[file, start] = (end, "not")

    def run(self):
        cplusplus = self.path.endswith((".cu", ".cuh"))
        flags = ["-I.", "-D_GNU_SOURCE", "-w", "-ferror-limit=0"]
        includes = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True).stdout.strip()
        flags += ["-idirafter", includes]
        if cplusplus:
            shim = os.environ["KILN_STYLE_SHIM"]
            flags += ["-xc++", "-std=c++17", "-include", shim, "-D__CUDACC__=1"]
        else:
            flags += ["-xc", "-std=c11"]
        array = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        index = self.clang.clang_createIndex(0, 0)
        unit = self.clang.clang_parseTranslationUnit(index, self.path.encode(), array, len(flags), None, 0, 0x200)
        if not unit:
            raise RuntimeError(f"{self.path}: libclang cannot read it")
        for cursor in self.children(self.clang.clang_getTranslationUnitCursor(unit)):
            location = self.clang.clang_getCursorLocation(cursor)
            file = "" if self.clang.clang_Location_isInSystemHeader(location) else self.span(cursor)[0]
            if file in self.wanted and file not in Pointers.seen:
                self.look(cursor)
        Pointers.seen |= set(self.files.values()) - {""}
        self.clang.clang_disposeTranslationUnit(unit)
        return self.found, Pointers.seen


def pointers_of(job):
    path, wanted = job
    return Pointers(libclang(), path, wanted).run()


LOWER = re.compile(r"(?<![=!<>])=(?!=)|\?|,")  # operators that bind less than a comparison


def weak(text):
    """Does an expression hold, outside brackets, an operator below ==?"""
    depth, plain = 0, ""
    for c in blank(text):
        depth += c in "([{"
        depth -= c in ")]}"
        plain += c if depth == 0 and c not in ")]}" else " "
    return bool(LOWER.search(plain) or re.search(r"&&|\|\||(?<!&)&(?!&)(?<=\s&)(?=\s)|\^|\|", plain))


def pointer_edits(text, start, end, kind, null):
    piece = text[start:end]
    if kind == "not":
        operand = piece[1:].lstrip()
        before, behind = text[:start].rstrip()[-2:], text[end:].lstrip()[:2]
        alone = (before[-1:] in "(,;?:{}" or before in ("&&", "||") or re.search(r"(?<![=!<>])=$", before) or
                 re.search(r"\breturn$", text[:start].rstrip())) and (
                     behind[:1] in "),;?:}" or behind in ("&&", "||"))
        changed = f"{operand} == {null}"
        return [(start, end, 0, changed if alone else f"({changed})")]
    return [(start, end, 0, f"({piece}) != {null}" if weak(piece) else f"{piece} != {null}")]


def apply(text, edits):
    out, at = [], 0
    for start, end, _, replacement in sorted(edits, key=lambda edit: (edit[0], edit[2])):
        if start < at:
            continue  # inside another: the next run sees it
        out += [text[at:start], replacement]
        at = end
    return "".join(out) + text[at:]


def read(path):
    with open(path, "rb") as file:
        return file.read().decode("latin-1")  # offsets are bytes


def main(arguments):
    fix = arguments[:1] == ["--fix"]
    paths = [os.path.relpath(path) for path in arguments[fix:]]
    finds = {path: [] for path in paths}  # path → (place, what, edits)
    library = libclang()
    if library:
        shim = f"/tmp/kiln-style-{os.getpid()}.h"
        with open(shim, "w", encoding="ascii") as file:
            file.write(CUDA_WORDS)
        os.environ["KILN_STYLE_SHIM"] = shim
        found, seen = {}, set()
        try:
            with ProcessPoolExecutor() as pool:
                for headers in (False, True):  # by themselves only those that nothing includes
                    jobs = [(path, set(paths)) for path in paths
                            if path not in seen and path.endswith((".h", ".cuh")) == headers]
                    for part, files in pool.map(pointers_of, jobs, chunksize=4):
                        seen |= files
                        for place, what in part.items():
                            if found.get(place, ("", "macro"))[1] != "not":
                                found[place] = what
        finally:
            os.unlink(shim)
        texts = {}
        for (path, start), (end, kind) in sorted(found.items()):
            text = texts.setdefault(path, read(path))
            null = "nullptr" if path.endswith((".cu", ".cuh")) else "NULL"
            edits = [] if kind == "macro" else pointer_edits(text, start, end, kind, null)
            finds[path].append((start, f"a pointer that is not compared with {null}", edits))
    for path in paths:
        text = read(path)
        finds[path] += braces(text)
    count = 0
    for path in paths:
        if not finds[path]:
            continue
        text = read(path)
        lines = [match.start() for match in re.finditer("\n", text)]
        for place, what, edits in sorted(finds[path], key=lambda find: find[0]):
            count += 1
            if not fix or not edits:
                print(f"{path}:{bisect.bisect_left(lines, place) + 1}: {what}")
        if fix:
            with open(path, "wb") as file:
                file.write(apply(text, [edit for find in finds[path] for edit in find[2]]).encode("latin-1"))
    if count and not fix:
        print(f"style: {count} places; scripts/lint.sh --fix changes them")
    if not library:
        print("style: libclang is not here: pointers were not looked at")
    return 1 if count and not fix else 0 if library else SKIP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
