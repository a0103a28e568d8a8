"""The seed programs' arithmetic in NumPy: five-point Laplacian and Jacobi sweeps."""

import numpy as np


def planes(array):
    """An h×w or h×w×c array as a list of h×w planes."""
    return [array] if array.ndim == 2 else [array[..., k] for k in range(array.shape[2])]


def each_plane(function, *arguments):
    """Applies `function` plane by plane to the arrays among its arguments and keeps their shape."""
    arrays = [planes(a) for a in arguments if isinstance(a, np.ndarray)]
    others = [a for a in arguments if not isinstance(a, np.ndarray)]
    parts = [function(*map(np.ascontiguousarray, row), *others) for row in zip(*arrays)]
    return parts[0] if arguments[0].ndim == 2 else np.stack(parts, axis=-1)


def laplacian_plane(x):
    p = np.pad(x, 1)
    return ((p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:])) - 4 * x


def laplacian(x):
    """North, south, west and east less four times the centre; zero outside."""
    return each_plane(laplacian_plane, x)


def jacobi_plane(start, b, sweeps):
    p = np.pad(start, 1)
    centre = p[1:-1, 1:-1]
    quarter = b.dtype.type(0.25)
    vertical, horizontal = np.empty_like(b), np.empty_like(b)
    north, south, west, east = p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]
    for _ in range(sweeps):
        np.add(north, south, out=vertical)
        np.add(west, east, out=horizontal)
        np.add(vertical, horizontal, out=vertical)
        np.subtract(vertical, b, out=vertical)
        np.multiply(vertical, quarter, out=centre)
    return centre.copy()


def jacobi(b, sweeps, start=None):
    """`sweeps` literal Jacobi updates in b's type, from `start` (b itself by default), with zero
    outside the array."""
    return each_plane(jacobi_plane, b if start is None else start, b, sweeps)


def jacobi_closed(b, sweeps):
    """The same iterate in closed form: every mode of the sine transform decays by its own factor."""
    from scipy.fft import dstn, idstn

    def plane(b):
        m, n = b.shape
        k = np.arange(1, m + 1)[:, None]
        l = np.arange(1, n + 1)[None, :]
        q = np.sin(np.pi * k / (2 * (m + 1))) ** 2 + np.sin(np.pi * l / (2 * (n + 1))) ** 2
        decay = np.sign(1 - q) ** sweeps * np.exp(sweeps * np.log(np.abs(1 - q) + 1e-300))
        start = dstn(b, type=1)
        return idstn(decay * start + (1 - decay) / q * (-start / 4), type=1)

    return each_plane(plane, np.asarray(b, float))


def quantize(x, bits=8, offset=0.0, scale=1.0):
    """What a picture of x holds: rounded to nearest, ties to even, clamped. Never truncated."""
    return np.clip(np.rint(np.asarray(x, float) / scale + offset), 0, (1 << bits) - 1).astype(int)
