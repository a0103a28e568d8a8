"""Standard power of one frequency by least squares in as many digits as mpmath is told to take.

A phase is one of another sample's where they agree within 2^-48 |f| T of a turn, as
kernels/lombscargle.h says: what rounding has left in the times of regular samples is no signal.
"""

from daemon import need

np, mp = need("numpy", "mpmath")


def phases(t, f):
    """The times, those of one phase made one."""
    same = abs(f) * (max(t) - min(t)) * mp.mpf(2) ** -48
    seen, out = [], []
    for x in t:
        for y in seen:
            turns = f * (x - y)
            if abs(turns - mp.nint(turns)) <= same:
                out.append(y)
                break
        else:
            seen.append(x)
            out.append(x)
    return out, len(seen)


def exact(t, y, dy, f, terms, fit_mean):
    """Standard power of one frequency; NaN where no function is left."""
    t, y = [[mp.mpf(float(x)) for x in row] for row in (t, y)]
    w = [1 / mp.mpf(float(x)) ** 2 for x in dy] if dy is not None else [mp.mpf(1)] * len(t)
    dot = lambda a, b: mp.fsum(u * p * q for u, p, q in zip(w, a, b))
    y = [v - dot([1] * len(y), y) / mp.fsum(w) for v in y]  # center_data is the default
    t, found = phases(t, f)
    angles = [2 * mp.pi * f * x for x in t]
    rows = [[mp.mpf(1)] * len(t)] if fit_mean else []
    for h in range(1, terms + 1):
        rows += [[mp.cos(h * a) for a in angles], [mp.sin(h * a) for a in angles]]
    # Without a mean, functions of few phases may depend on each other but for rounding.
    least = mp.mpf(2) ** -40 if found <= 2 * terms and not fit_mean else mp.mpf(10) ** (10 - mp.mp.dps)
    basis, explained, left = [], mp.mpf(0), 0
    for i, row in enumerate(rows):
        for _ in range(2):
            for other in basis:
                share = dot(row, other)
                row = [a - share * b for a, b in zip(row, other)]
        norm = dot(row, row)
        if norm <= least * least * mp.fsum(w):
            continue
        basis.append([a / mp.sqrt(norm) for a in row])
        if i > 0 or not fit_mean:
            explained += dot(basis[-1], y) ** 2
            left += 1
    return float(explained / dot(y, y)) if left else np.nan
