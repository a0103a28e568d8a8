"""Expressions through tests/oracle/evaluate.c: a client of its pipe."""
import os
import subprocess

import numpy as np


class Refused(Exception):
    """The text was refused; args: column, message."""


class Tally:
    """Counts checks by part; prints those that do not hold, the first few of a part."""

    def __init__(self):
        self.part, self.parts = "", {}

    def begin(self, part):
        self.part = part
        self.parts[part] = [0, 0]

    def check(self, held, text):
        counts = self.parts[self.part]
        counts[0] += 1
        counts[1] += not held
        if not held and counts[1] <= 12:
            print(f"FAIL {self.part}: {text}", flush=True)

    def note(self, text):
        print(f"     {self.part}: {text}", flush=True)

    def finish(self):
        for part, (count, failed) in self.parts.items():
            print(f"{'FAIL' if failed else 'ok  '} {part}: {count - failed} of {count}")
        if any(failed for _, failed in self.parts.values()):
            raise SystemExit(1)


class Evaluator:
    def __init__(self, threads=2, program=None):
        program = program or os.environ.get("KILN_EVALUATE") or os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "../../build/evaluate")
        self.process = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.times, self.cost, self.stages = [], 0, 0

    def __call__(self, text, repeat=0, **arrays):
        """The results as a dict; `times` has the seconds of `repeat` launches afterwards."""
        out = self.process.stdin
        data = text.encode()
        out.write(b"%d %d %d\n" % (repeat, len(data), len(arrays)) + data)
        for name, array in arrays.items():
            strides = [step // array.itemsize for step in array.strides]
            numbers = " ".join(str(n) for n in [array.ndim, *array.shape, *strides])
            out.write(f"{name} {array.dtype.name} {numbers}\n".encode())
            elements = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides) if n > 1)
            flat = np.lib.stride_tricks.as_strided(array, (elements if array.size else 0,),
                                                   (array.itemsize,))
            out.write(flat.tobytes())
        out.flush()
        words = self.process.stdout.readline().decode().rstrip("\n").split(" ", 2)
        if words[0] == "error":
            raise Refused(int(words[1]), words[2])
        assert words[0] == "ok", words
        numbers = words[2].split()
        self.cost, self.stages = int(numbers[0]), int(numbers[1])
        self.times = [int(n) * 1e-9 for n in numbers[2:]]
        return dict(self._output() for _ in range(int(words[1])))

    def _output(self):
        name, dtype, dims, *shape = self.process.stdout.readline().decode().split()
        assert len(shape) == int(dims)
        shape, dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return name, np.frombuffer(self.process.stdout.read(size), dtype).reshape(shape)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
