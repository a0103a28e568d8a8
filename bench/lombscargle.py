"""Periodograms: kiln against SciPy, astropy, nifty-ls and CuPy, on absolute times around 2 457 000."""

import inspect
import warnings

import numpy as np

from clock import repeat_device
from kiln import npy_bytes
from table import Table

NPY = "application/x-npy"
EPOCH = 2457000.0
SAMPLED = 48
PERIOD = 7.3


class Curve:
    """A light curve and a grid f0 + k df; weights are equal, so that every peer has the same model."""

    def __init__(self, points, nf, seed=3, span=1500.0, top=25.0):
        random = np.random.default_rng(seed)
        self.t = np.sort(random.uniform(0, span, points)) + EPOCH
        self.y = 12 + np.sin(2 * np.pi * (self.t - EPOCH) / PERIOD) + random.normal(0, 0.3, points)
        self.f0, self.nf = 0.01, nf
        self.df = (top - self.f0) / (nf - 1)

    def frequencies(self, count=None):
        return self.f0 + self.df * np.arange(count or self.nf)

    def query(self, **more):
        return {"f0": repr(self.f0), "df": repr(self.df), "nf": self.nf, **more}

    def body(self):
        return npy_bytes(np.stack([self.t, self.y]))


class Reference:
    """Standard power at some frequencies in extended precision, with a floating mean and without."""

    def __init__(self, curve):
        count = max(8, min(SAMPLED, (1 << 24) // curve.t.size))
        # Half over the grid, half around the peak, where errors are greatest.
        peak = int((1 / PERIOD - curve.f0) / curve.df)
        self.index = np.unique(np.concatenate([
            np.linspace(0, curve.nf - 1, count // 2).astype(int),
            np.clip(np.arange(peak - count // 4, peak + count // 4), 0, curve.nf - 1)]))
        extended = np.longdouble
        t = curve.t.astype(extended) - extended(curve.t.mean())
        y = curve.y.astype(extended)
        y -= y.mean()
        f = extended(curve.f0) + extended(curve.df) * self.index.astype(extended)
        circle = 2 * np.arccos(extended(-1))
        rows = [self._sums(t, y, circle * part) for part in f]
        self.floating = np.array([self._power(y, *row, True) for row in rows], float)
        self.plain = np.array([self._power(y, *row, False) for row in rows], float)

    @staticmethod
    def _sums(t, y, omega):
        cos, sin = np.cos(omega * t), np.sin(omega * t)
        n = t.size
        return ((y * cos).sum() / n, (y * sin).sum() / n, cos.sum() / n, sin.sum() / n,
                (cos * cos).sum() / n, (cos * sin).sum() / n, (sin * sin).sum() / n)

    @staticmethod
    def _power(y, yc, ys, c, s, cc, cs, ss, floating):
        if floating:
            cc, cs, ss = cc - c * c, cs - c * s, ss - s * s
        return (ss * yc**2 + cc * ys**2 - 2 * cs * yc * ys) / ((y * y).mean() * (cc * ss - cs**2))

    def error(self, power, floating=True):
        """`power` of all frequencies, or of the first of them."""
        power = np.asarray(power, float)
        inside = self.index < power.size
        want = (self.floating if floating else self.plain)[inside]
        return f"{np.abs(power[self.index[inside]] - want).max():.1e}"


def pair_note(bench, run, curve, precision):
    """Pairs of sample and frequency a second, beside 12 operations a pair (factorised sums)."""
    rate = run.rate(curve.t.size * curve.nf)
    if not rate:
        return ""
    limit = bench.limits.get("fma_" + precision)
    share = f", {1200 * rate / limit:.1f}% of the limit" if limit else ""
    return f"{rate / 1e9:.4g} Gpair/s{share}"


def rate_note(run, curve):
    """Frequencies a second: samples hardly count where sums come from transforms."""
    rate = run.rate(curve.nf)
    return f"{rate / 1e6:.4g} Mfrequencies/s" if rate else ""


def kiln_rows(bench, table, curve, variants, reference):
    body = curve.body()
    for method, precision in variants:
        name = f"{method} {precision}"
        run = bench.job(name, "/v1/lombscargle", curve.query(
            method=method, precision=precision, format="npy"), body, NPY)
        error = "" if run.reason else reference.error(run.answer.npy()[1])
        note = pair_note(bench, run, curve, precision) if method == "direct" else rate_note(run, curve)
        table.add_kiln(run, error, note)
    method, precision = variants[-1] if len(variants) == 1 else variants[0]
    table.add_kiln(bench.job(f"{method} {precision}, peaks", "/v1/lombscargle", curve.query(
        method=method, precision=precision, format="json", fields="peaks"), body, NPY), "",
        "10 peaks as JSON instead of the array")


def scipy_rows(bench, table, curve, reference, pairs):
    scipy = bench.peers.get("scipy")
    if not scipy:
        table.add_absent("SciPy lombscargle", bench.peers.reason("scipy"))
        return
    from scipy.signal import lombscargle
    count = min(curve.nf, max(64, pairs // curve.t.size))
    omega = 2 * np.pi * curve.frequencies(count)
    floating = "floating_mean" in inspect.signature(lombscargle).parameters
    more, y = ({"floating_mean": True}, curve.y) if floating else ({}, curve.y - curve.y.mean())
    times, power = bench.time(lambda: lombscargle(curve.t, y, omega, normalize=True, **more))
    note = ("floating mean" if floating else "mean taken off first") + part_note(count, curve.nf)
    table.add_peer("SciPy lombscargle", "call", times, reference.error(power, floating), note,
                   curve.nf / count)


def part_note(count, nf):
    return f"; {count} frequencies, scaled ×{nf / count:.4g}" if count < nf else ""


def astropy_rows(bench, table, curve, reference, methods, pairs):
    if not bench.peers.get("astropy"):
        table.add_absent("astropy", bench.peers.reason("astropy"))
        return
    from astropy.timeseries import LombScargle
    for method in methods:
        count = curve.nf
        if method in ("cython", "slow"):
            count = min(curve.nf, max(64, pairs // curve.t.size))
        frequencies = curve.frequencies(count)

        def program():
            return LombScargle(curve.t, curve.y).power(frequencies, method=method,
                                                       assume_regular_frequency=True)

        try:
            times, power = bench.time(program)
        except Exception as error:
            table.add_absent(f"astropy {method}", f"failed: {str(error).splitlines()[0]}")
            continue
        table.add_peer(f"astropy {method}", "call", times, reference.error(power),
                       "regular grid" + part_note(count, curve.nf), curve.nf / count)


def nifty_rows(bench, table, curve, reference):
    nifty = bench.peers.get("nifty_ls")
    if not nifty:
        table.add_absent("nifty-ls", bench.peers.reason("nifty_ls"))
        return
    backends = [("finufft", {"nthreads": bench.cores})]
    if bench.peers.get("cufinufft"):
        backends.append(("cufinufft", {}))
    elif bench.cuda:
        table.add_absent("nifty-ls cufinufft", bench.peers.reason("cufinufft"))
    for backend, more in backends:
        def program():
            return nifty.lombscargle(curve.t, curve.y, fmin=curve.f0,
                                     fmax=curve.f0 + curve.df * (curve.nf - 1), Nf=curve.nf,
                                     backend=backend, **more).power

        try:
            times, power = bench.time(program)
        except Exception as error:
            table.add_absent(f"nifty-ls {backend}", f"failed: {str(error).splitlines()[0]}")
            continue
        note = f"{bench.cores} threads" if "nthreads" in more else "on the GPU"
        table.add_peer(f"nifty-ls {backend}", "call", times, reference.error(power), note)


def gpu_rows(bench, table, curve, reference, pairs):
    cupy = bench.peers.get("cupy")
    if not bench.cuda:
        return
    try:
        if not cupy:
            raise ImportError(bench.peers.reason("cupy"))
        from cupyx.scipy.signal import lombscargle
    except ImportError as error:
        table.add_absent("CuPy lombscargle", str(error))
        return
    count = min(curve.nf, max(64, pairs // curve.t.size))
    omega, y = 2 * np.pi * curve.frequencies(count), curve.y - curve.y.mean()
    on_device = [cupy.asarray(part) for part in (curve.t, y, omega)]
    times, power = repeat_device(cupy, lambda: lombscargle(*on_device, normalize=True),
                                 bench.effort)
    table.add_peer("CuPy lombscargle", "device", times, reference.error(power.get(), False),
                   "mean taken off first" + part_note(count, curve.nf), curve.nf / count)
    times, _ = bench.time(lambda: lombscargle(*map(cupy.asarray, (curve.t, y, omega)),
                                              normalize=True).get())
    table.add_peer("CuPy lombscargle", "call", times, "", "arrays up and down"
                   + part_note(count, curve.nf), curve.nf / count)


def grid_table(bench, points, nf, variants, methods, direct, curve=None):
    """One light curve: `direct` peers (SciPy, CuPy) only where pairs are few enough to wait for."""
    curve = curve or Curve(points, nf)
    steps = curve.df * (curve.t.max() - curve.t.min())
    table = Table(f"Lomb-Scargle, {points} samples, {nf} frequencies {steps:.2g} / baseline apart")
    bench.say(table.title)
    reference = Reference(curve)
    table.say(f"Error: greatest difference of standard power from 80-bit arithmetic at "
              f"{reference.index.size} of the frequencies (at those computed, where the work was scaled). "
              f"Times start at {EPOCH:.0f}.")
    if any(method == "direct" for method, _ in variants):
        table.say("The limit of direct sums is 12 operations a pair of sample and frequency (factorised) "
                  "at the multiply-add rate of the vector units.")
    kiln_rows(bench, table, curve, variants, reference)
    # SciPy makes whole matrices and takes all of 2^27 pairs, but no more; above, a part is scaled.
    most = 1 << 23 if bench.quick else 1 << 27
    few = most if points * nf <= most else most // 4
    if direct:
        scipy_rows(bench, table, curve, reference, few)
        gpu_rows(bench, table, curve, reference, 1 << 34)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        astropy_rows(bench, table, curve, reference, methods, most // 4)
    nifty_rows(bench, table, curve, reference)
    return table


def tables(bench):
    direct = (("direct", "fp64"), ("direct", "fp32"))
    both = direct + (("nufft", "fp64"), ("auto", "fp64"))
    small = 1 << 14 if bench.quick else 1 << 17
    yield grid_table(bench, 1024, small, direct, ("cython", "fast"), True)
    if not bench.quick:
        yield grid_table(bench, 1024, 1 << 20, both, ("cython", "fast"), True)
        yield grid_table(bench, 10000, 100000, both, ("cython", "fast"), True)
