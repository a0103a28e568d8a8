"""Holds the #include lines of the sources against the table of rooms in docs/architecture.md.

A room is a folder. The table's rows say which rooms the files of a room may include, besides their
own; a row that ends in /* is that of the folders without one; what no row allows is an error, and so is a row that allows what nobody does, a folder without a
row, and a room that reaches itself. A way back that is marked (↑) may be used and makes no circle; it may
not come again once it is gone. Headers of the system and of the toolkit are no rooms.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOTS = ("server/", "compute/", "kernels/")
ROW = re.compile(r"^\| `([\w/*]+)` \| (.*?) \|")


def table_read():
    """Room -> set of rooms that it may include, from the table under "## Rooms"; and those of them that
    are ways back."""
    allowed, back = {}, {}
    with open(os.path.join(TOP, "docs/architecture.md"), encoding="utf-8") as text:
        section = text.read().split("\n## Rooms\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        row = ROW.match(line)
        if row:
            allowed[row[1]] = set(re.findall(r"`([\w/]+)`", row[2]))
            back[row[1]] = set(re.findall(r"↑`([\w/]+)`", row[2]))
    return allowed, back


def row_of(allowed, room):
    """The row that a room stands in: its own, or its parent's for all."""
    return room if room in allowed else os.path.dirname(room) + "/*"


def sources():
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "--cached", "--others",
                             "--exclude-standard", *ROOTS],
                            check=True, capture_output=True, text=True).stdout.split()
    return [path for path in listed
            if re.search(r"\.(c|h|cu|cuh)$", path) and os.path.exists(os.path.join(TOP, path))]


def includes(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if found and found[1].startswith(ROOTS):
                yield number, found[1]


def reach(allowed, back, start):
    """Every room that `start` may reach over the table, without ways back."""
    seen, todo = set(), [start]
    while todo:
        room = todo.pop()
        for room in allowed.get(room, set()) - back.get(room, set()):
            room = row_of(allowed, room)
            if room not in seen:
                seen.add(room)
                todo.append(room)
    return seen


def main():
    allowed, back = table_read()
    used = {room: set() for room in allowed}
    wrong = []
    for path in sources():
        room = os.path.dirname(path)
        row = row_of(allowed, room)
        if row not in allowed:
            wrong.append(f"{path}: its folder has no row in the table")
            continue
        for number, header in includes(path):
            other = os.path.dirname(header)
            if not os.path.exists(os.path.join(TOP, header)):
                wrong.append(f"{path}:{number}: there is no {header}")
            elif other != room and other not in allowed[row]:
                wrong.append(f"{path}:{number}: {room} may not include {header}")
            used[row].add(other)
    for room, others in allowed.items():
        for other in sorted(others - used[room]):
            wrong.append(f"docs/architecture.md: {room} does not use {other}; the row says too much")
        if room in reach(allowed, back, room):
            wrong.append(f"docs/architecture.md: {room} reaches itself: a circle")
    print("\n".join(wrong) if wrong else f"{len(allowed)} rooms, no include against the table")
    return 1 if wrong or not allowed else 0


if __name__ == "__main__":
    sys.exit(main())
