#!/usr/bin/env python3
"""Adds the job of docs/adding-a-job.md to a copy of the tree, by doing what the page says.

    follow.py SOURCE FOLDER [NVCC]

FOLDER/tree becomes a copy of SOURCE with the page's blocks in it: "New file `F`:", or "In `F`, behind (or
before) the line `L`:" with a line of F that has L, once, and nothing else but blanks before L and nothing
but a macro's backslash behind. Blocks of `sh` are run there, in their order. Every other block must say
where it goes, and the page's table must name just the files that the blocks change. With NVCC the CUDA
kernel and its launcher are compiled too. Files that have not changed keep their times, so that a second
run builds little. Exit code 77: something that the page's commands need is not installed.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

PAGE = "docs/adding-a-job.md"
PLACE = re.compile(r"New file `([^`]+)`:|In `([^`]+)`, (behind|before) the line `([^`]+)`:")


def fail(text):
    sys.exit(f"{PAGE}: {text}")


def tree_read(source):
    """Path -> bytes of every file that belongs to the tree."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode != 0:
        sys.exit(77)  # not a checkout: what belongs to it is not known
    paths = [path.decode() for path in listed.stdout.split(b"\0") if path]
    return {path: (source / path).read_bytes() for path in paths if (source / path).is_file()}


def blocks_read(text):
    """(language, place or None, lines) of every fenced block."""
    blocks, place, lines = [], None, None
    for line in text.splitlines(keepends=True):
        if lines is not None and line.strip() == "```":
            blocks.append((language, place, "".join(lines)))
            place, lines = None, None
        elif lines is not None:
            lines.append(line)
        elif line.startswith("```"):
            language, lines = line.strip()[3:], []
        elif line.strip():
            place = PLACE.fullmatch(line.strip())
    return blocks


def line_find(text, path, wanted):
    """Index of the one line of `text` that is `wanted`."""
    found = [i for i, line in enumerate(text) if line.rstrip(" \\\n").endswith(wanted.rstrip())
             and not line.rstrip(" \\\n")[:-len(wanted.rstrip())].strip()]
    if len(found) != 1:
        fail(f"{path} has {len(found)} lines `{wanted}`")
    return found[0]


def block_apply(files, place, code):
    """Puts a block where it belongs; returns that file's path."""
    new, path, where, wanted = place.groups()
    if new:
        if new in files:
            fail(f"{new} is there already")
        files[new] = code.encode()
        return new
    if path not in files:
        fail(f"there is no {path}")
    text = files[path].decode().splitlines(keepends=True)
    at = line_find(text, path, wanted) + (where == "behind")
    files[path] = "".join(text[:at] + [code] + text[at:]).encode()
    return path


def tree_write(files, source, tree):
    for old in sorted(tree.rglob("*"), reverse=True):
        name = old.relative_to(tree)
        if name.parts[0] not in (".git",) and not name.parts[0].startswith("build") and old.is_file() \
                and str(name) not in files:
            old.unlink()
    for path, data in files.items():
        target = tree / path
        if not target.exists() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if (source / path).exists():
            shutil.copymode(source / path, target)
    if not (tree / ".git").exists():
        subprocess.run(["git", "init", "-q", tree], check=True)


def run(tree, command):
    print(command, flush=True)
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=tree, check=True)


def layout_check(tree, paths):
    """What the page adds is laid out as everything else is."""
    program = shutil.which("clang-format-14")
    if program:
        sources = [path for path in paths if path.endswith((".c", ".h"))]
        subprocess.run([program, "--dry-run", "-Werror", *sources], cwd=tree, check=True)


def cuda_check(tree, nvcc):
    home = pathlib.Path(nvcc).resolve().parents[1]
    run(tree, f"cmake -S . -B build-cuda -G Ninja -DKILN_CUDA=ON -DKILN_CUDA_HOME={home} -DKILN_TESTS=OFF "
              "-DKILN_WERROR=ON -DKILN_CUDA_ARCHITECTURES=90 > /dev/null\n"
              "ninja -C build-cuda kernels/cuda/blend.fatbin\n"
              f"cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I. -isystem {home}/include "
              "kernels/cuda/blend/blend.c\n"
              "ninja -C build-cuda kiln_cuda_blend\n"
              "nm build-cuda/kernels/cuda/libkiln_cuda_blend.a | grep -q 'R kiln_image_blend$'")


def main():
    source, folder = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    missing = [name for name in ("numpy", "yaml", "jsonschema") if importlib.util.find_spec(name) is None]
    if missing or not shutil.which("git"):
        print(f"skipped: needs git and {missing}")
        return 77
    for name in ("KILND", "KILN_SOURCE", "KILN_URL"):  # of a test run around this one
        os.environ.pop(name, None)
    files = tree_read(source)
    text = files[PAGE].decode()
    blocks = blocks_read(text)
    changed = []
    for language, place, code in blocks:
        if language != "sh" and place is None:
            fail(f"a block does not say where it goes:\n{code[:200]}")
        if place is not None:
            changed.append(block_apply(files, place, code))
    table = re.findall(r"^\| `([^`]+)` \|", text, re.M)
    if sorted(set(changed)) != sorted(table):
        fail(f"its table and its blocks differ in {sorted(set(changed) ^ set(table))}")
    tree = folder / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    tree_write(files, source, tree)
    layout_check(tree, changed)
    for language, _, code in blocks:
        if language == "sh":
            run(tree, code)
    log = (tree / "build/Testing/Temporary/LastTest.log").read_text(errors="replace")
    if len(re.findall(r"^Test Passed\.$", log, re.M)) != 3:
        fail("its last command did not pass three tests")
    if len(sys.argv) > 3 and sys.argv[3]:
        cuda_check(tree, sys.argv[3])
    return 0


if __name__ == "__main__":
    sys.exit(main())
