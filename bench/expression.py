#!/usr/bin/env python3
"""Array expressions on the CPU: kiln's kernel (tests/oracle/evaluate.c), NumPy and numexpr in turn, and a copy.

    bench/expression.py [ROUNDS] [THREADS]

In every round each program runs in turn on the same float32 arrays; printed are the median and the best of all
rounds. The copy is of one array by as many threads, and its speed counts bytes read and written."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/oracle"))
import numpy as np

from expressions import Evaluator

try:
    import numexpr
except ImportError:
    numexpr = None

EXPRESSIONS = {  # text: arrays that it reads
    "a + 1": 1,
    "2*a + 3*b": 2,
    "(a*b/sqrt(a*a + b*b) + 0.5)*d": 3,  # 8 operations
    "exp(a)": 1,
    "sin(a)": 1,
    "sum(a)": 1,
}


def best(values):
    return float(np.median(values)), float(min(values))


def timed(run, times):
    start = time.perf_counter()
    run()
    times.append(time.perf_counter() - start)


def copy_run(out, a, threads):
    step = len(a) // threads
    parts = [threading.Thread(target=np.copyto, args=(out[i * step:(i + 1) * step], a[i * step:(i + 1) * step]))
             for i in range(threads)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


def measure(evaluate, size, rounds, threads):
    random = np.random.default_rng(1)
    arrays = {name: random.random(size, dtype="f4") for name in "abd"}
    out = np.empty(size, "f4")
    repeat = max(2, 2**22 // size)
    table = {text: {"kiln": [], "NumPy": [], "numexpr": []} for text in EXPRESSIONS}
    copies = []
    for _ in range(rounds):
        for text, row in table.items():
            evaluate(text, repeat=repeat, **arrays)
            row["kiln"] += evaluate.times
            names = {**arrays, "sqrt": np.sqrt, "exp": np.exp, "sin": np.sin, "sum": np.sum}
            for _ in range(repeat):
                timed(lambda: eval(text, {}, names), row["NumPy"])
                if numexpr:
                    timed(lambda: numexpr.evaluate(text, arrays),
                          row["numexpr"])
                timed(lambda: copy_run(out, arrays["a"], threads), copies)
    copy = best(copies)
    rate = 8e-9 * size / copy[1]
    print(f"\n2^{size.bit_length() - 1} floats; a copy {copy[0] * 1e3:.2f} ms, best {copy[1] * 1e3:.2f} ({rate:.1f} GB/s)\n")
    print("| expression | kiln, median (best) ms | NumPy | numexpr | GB/s, best | of the copy |\n|---|---|---|---|---|---|")
    for text, row in table.items():
        cells = [f"{m * 1e3:.2f} ({b * 1e3:.2f})" if row[n] else "–" for n in row
                 for m, b in [best(row[n]) if row[n] else (0, 0)]]
        speed = 4e-9 * size * (EXPRESSIONS[text] + (text != "sum(a)")) / min(row["kiln"])
        print(f"| `{text}` | {' | '.join(cells)} | {speed:.1f} | {100 * speed / rate:.0f} % |", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    if numexpr:
        numexpr.set_num_threads(threads)
    print(f"NumPy {np.__version__}, numexpr {numexpr.__version__ if numexpr else 'not here'}, {threads} threads, "
          f"load {os.getloadavg()[0]:.1f}")
    evaluate = Evaluator(threads)
    for size in (2**20, 2**24):
        measure(evaluate, size, rounds, threads)
    evaluate.close()


main()
