"""Light curves for the Lomb-Scargle oracles, and how to ask the daemon about one."""

import numpy as np

from daemon import JSON

EPOCH = 2457000.0


def curve(points, span, seed, period=7.3, offset=12.0, epoch=0.0):
    """(t, y, dy): uneven times over `span`, two sines, noise of known size."""
    random = np.random.default_rng(seed)
    t = np.sort(random.uniform(0, span, points)) + epoch
    dy = random.uniform(0.05, 0.4, points)
    y = offset + np.sin(2 * np.pi * (t - epoch) / period)
    y += 0.4 * np.cos(2 * np.pi * (t - epoch) / (period / 3.7) + 1) + dy * random.normal(size=points)
    return t, y, dy


def body(t, y, dy=None, **more):
    """The JSON body of one light curve."""
    out = {"t": list(map(float, t)), "y": list(map(float, y)), **more}
    if dy is not None:
        out["dy"] = list(map(float, dy))
    return out


def periodogram(daemon, t, y, dy=None, **more):
    """(frequency, power, whole answer)"""
    answer = daemon.post("/v1/lombscargle", body(t, y, dy, **more), accept=JSON).json()
    return grid(answer), powers(answer), answer


def powers(answer):
    return np.array([np.nan if p is None else p for p in answer["power"]])


def grid(answer):
    """The frequencies of an answer: those that were listed, or f0 + k df."""
    if "frequency" in answer:
        return np.array(answer["frequency"])
    where = answer["grid"]
    return where["f0"] + where["df"] * np.arange(where["nf"])
