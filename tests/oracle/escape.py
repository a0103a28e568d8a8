"""Escape counts of z² + c in NumPy, in two arithmetics, and the continuous value."""

import numpy as np


def centres(view, width, height):
    """c of every pixel's centre, row 0 at ymax; view is xmin, xmax, ymin, ymax."""
    xmin, xmax, ymin, ymax = view
    dx, dy = (xmax - xmin) / width, (ymax - ymin) / height
    i, j = np.arange(width, dtype=float), np.arange(height, dtype=float)
    return fma64(i, np.float64(dx), xmin + 0.5 * dx), fma64(j, np.float64(-dy), ymax - 0.5 * dy)


def escape(cx, cy, limit, radius, step):
    """(count, x, y at the escape) for arrays of c; `step` advances (x, y). -1 and NaN inside."""
    shape = np.broadcast(cx, cy).shape
    cx, cy = np.broadcast_to(cx, shape).ravel(), np.broadcast_to(cy, shape).ravel()
    count = np.full(cx.size, -1, np.int32)
    last_x, last_y = np.full(cx.size, np.nan), np.full(cx.size, np.nan)
    left = np.arange(cx.size)
    x, y = np.zeros_like(cx), np.zeros_like(cy)
    square = float(radius) ** 2
    for n in range(1, limit + 1):
        x, y = step(x, y, cx, cy)
        gone = x.astype(float) ** 2 + y.astype(float) ** 2 > square
        if gone.any():
            count[left[gone]] = n
            last_x[left[gone]], last_y[left[gone]] = x[gone], y[gone]
            stay = ~gone
            left, x, y, cx, cy = left[stay], x[stay], y[stay], cx[stay], cy[stay]
            if not left.size:
                break
    return count.reshape(shape), last_x.reshape(shape), last_y.reshape(shape)


def textbook(x, y, cx, cy):
    """One step as anyone would write it, every operation rounded."""
    return x * x - y * y + cx, 2 * x * y + cy


def fma32(a, b, c):
    """Fused multiply-add of float32: the product is exact in double, the sum rounded there first."""
    return (a.astype(float) * b + c).astype(np.float32)


def split(a):
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def fma64(a, b, c):
    """Fused multiply-add of doubles: Dekker's exact product, Knuth's exact sum, one last rounding."""
    p = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    e = al * bl - (((p - ah * bh) - al * bh) - ah * bl)
    s = p + c
    t = s - p
    r = (p - (s - t)) + (c - t)
    return s + (r + e)


def fused(fma):
    """The step of the daemon's contract in a given fused multiply-add."""
    def step(x, y, cx, cy):
        t = fma(-y, y, cx)
        u = x + x
        return fma(x, x, t), fma(u, y, cy)
    return step


def smooth(count, x, y, radius):
    """n - log2(ln|z| / ln radius); -1 inside."""
    with np.errstate(invalid="ignore"):
        value = count - np.log2(0.5 * np.log(x * x + y * y) / np.log(radius))
    return np.where(count < 0, -1.0, value)
