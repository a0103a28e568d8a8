#!/usr/bin/python3
"""Finds the polynomial of elementary_log2_of (kernels/elementary.h) and what rounding makes of it.

Usage: scripts/logarithm.py [DEGREE]   (needs python3-mpmath and python3-numpy)

The best approximation P of log2(1+r)/r on [sqrt(1/2)-1, sqrt(2)-1] in the sense that the absolute
error of r P(r) is least, by Remez's exchange; then the coefficients as floats and the error with
them, at 200 000 places.
"""
import sys

import numpy as np
from mpmath import cos, log, lu_solve, matrix, mp, mpf, pi, sqrt

mp.dps = 40
LOW, HIGH = sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1
GRID = [LOW + (HIGH - LOW) * mpf(k) / 2000 for k in range(2001)]


def wanted(r):
    return log(1 + r) / r / log(2) if abs(r) > mpf(10) ** -15 else 1 / log(mpf(2))


def weight(r):
    """The error counts times r; a little everywhere, so that P is determined at 0 too."""
    return abs(r) + mpf(2) ** -9


def value(coefficients, r):
    return sum(c * r ** k for k, c in enumerate(coefficients))


def levelled(places, degree):
    """The polynomial whose weighted errors at the places have one size and alternate."""
    rows, right = matrix(degree + 2, degree + 2), matrix(degree + 2, 1)
    for i, r in enumerate(places):
        for k in range(degree + 1):
            rows[i, k] = r ** k
        rows[i, degree + 1] = (-1) ** i / weight(r)
        right[i] = wanted(r)
    return list(lu_solve(rows, right))[:degree + 1]


def extremes(errors):
    """The place of the largest error of each sign's run."""
    places, start = [], 0
    for k in range(1, len(errors) + 1):
        if k == len(errors) or (errors[k] > 0) != (errors[start] > 0):
            places.append(max(range(start, k), key=lambda i: abs(errors[i])))
            start = k
    return places


def remez(degree):
    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    places = [middle - half * cos(pi * (2 * i + 1) / (2 * degree + 4)) for i in range(degree + 2)]
    for _ in range(8):
        coefficients = levelled(places, degree)
        errors = [weight(r) * (value(coefficients, r) - wanted(r)) for r in GRID]
        found = extremes(errors)
        if len(found) != degree + 2:
            break
        places = [GRID[k] for k in found]
    return coefficients, max(abs(e) for e in errors)


def main():
    degree = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    coefficients, error = remez(degree)
    floats = [np.float32(float(c)) for c in coefficients]
    for c in reversed(floats):
        print(f"{float(c):.17g}f")
    r = np.linspace(float(LOW), float(HIGH), 200001)
    sums = np.zeros_like(r)
    for c in reversed(floats):
        sums = sums * r + float(c)
    rounded = np.max(np.abs(sums * r - np.log2(1 + r)))
    print(f"error {float(error):.2e}, with coefficients as floats {rounded:.2e}")


if __name__ == "__main__":
    main()
