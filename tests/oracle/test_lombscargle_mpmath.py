"""Lomb-Scargle powers against least squares in 60 digits and more (mpmath), where cosines and sines
are nearly dependent: far below 1/T, around the frequencies at which regular samples repeat
themselves, with few samples. No bin is left out.
"""

from daemon import Daemon, Report, need

np, mp = need("numpy", "mpmath")

from curves import EPOCH, periodogram
from leastsquares import exact

FP64, FP32 = 1e-9, 5e-6


def compare(daemon, report, name, t, y, dy=None, *, digits=60, terms=1, fit_mean=True, few=12,
            methods=("direct", "nufft"), **grid):
    mp.mp.dps = digits
    step = max(1, grid["nf"] // few)
    bins = sorted(set(range(0, grid["nf"], step)) | set(range(min(4, grid["nf"]))))
    want = [exact(t, y, dy, mp.mpf(grid["f0"]) + k * mp.mpf(grid["df"]), terms, fit_mean)
            for k in bins]
    for method in methods:
        for precision, bound in (("fp64", FP64), ("fp32", FP32 if terms == 1 else 4 * FP32)):
            _, got, _ = periodogram(daemon, t, y, dy, nterms=terms, fit_mean=fit_mean,
                                    method=method, precision=precision, **grid)
            label = f"{name} nterms={terms}{' fit_mean' * fit_mean} {method} {precision}"
            got = got[bins]
            unlike = np.flatnonzero(np.isnan(got) != np.isnan(want))
            report.check(f"{label}: the same bins are defined", unlike.size == 0,
                         f"{unlike.size} are not" if unlike.size else "")
            report.within(label, np.nan_to_num(np.abs(got - want)), bound)


def series(t, seed):
    random = np.random.default_rng(seed)
    dy = random.uniform(0.1, 0.5, len(t))
    return 3 + np.sin(7 * np.asarray(t)) + dy * random.normal(size=len(t)), dy


def test_low(daemon, report):
    """f T from 1e-4 on, in grids that go on to where the equations are well conditioned."""
    for terms in range(1, 7):
        for start, step, epoch, fit in ((1e-4, 0.01, 0.0, True), (0.01, 0.02, 0.0, False),
                                        (0.03, 0.05, EPOCH, True)):
            random = np.random.default_rng(terms)
            t = np.sort(random.uniform(0, 1, 40)) + epoch
            y, dy = series(t - epoch, terms)
            compare(daemon, report, f"f T from {start:g}, t0={epoch:.0f}", t, y,
                    dy if terms % 2 else None, terms=terms, fit_mean=fit, digits=140, f0=start,
                    df=step, nf=150)


def test_aliases(daemon, report):
    """Regular samples 0.1 apart, at and around k / 0.1 over 1, 2, 3 and 5; the same by Julian date,
    where the times' rounding is far above that of their differences."""
    for terms, fit in ((1, True), (1, False), (2, True), (3, False), (6, True)):
        for part in (1, 2, 3, 5):
            t = 0.1 * np.arange(40)
            y, dy = series(t, part)
            for off in (0.0, 1e-7, 1e-3):
                compare(daemon, report, f"10/{part} + {off:g}", t, y, dy, terms=terms, fit_mean=fit,
                        digits=180, few=4, f0=10 / part + off, df=0.004, nf=130)
    t = EPOCH + 0.1 * np.arange(40)
    y, dy = series(t - EPOCH, 1)
    compare(daemon, report, f"10/2, t0={EPOCH:.0f}", t, y, dy, terms=2, digits=180, few=4, f0=5.0,
            df=0.004, nf=130)


def test_few(daemon, report):
    """From three samples on: as many parameters as samples, and more."""
    for n in (3, 4, 5, 7, 9, 14):
        t = np.sort(np.random.default_rng(n).uniform(0, 5, n))
        y, _ = series(t, n)
        for terms, fit in ((1, True), (1, False), (2, True), (6, True)):
            compare(daemon, report, f"{n} samples", t, y, terms=terms, fit_mean=fit, digits=140,
                    f0=0.02, df=0.03, nf=130)
        compare(daemon, report, f"{n} samples from f=0", t, y, terms=1, f0=0.0, df=0.03, nf=3,
                methods=("direct",))
    # Times that are equal modulo 1/f: undefined with a mean, the mean's share without one.
    t = np.array([0.0, 1.0, 2.0, 5.0])
    for fit in (True, False):
        compare(daemon, report, "equal modulo 1/f", t, [1.0, 3.0, 2.0, 7.0], terms=2, fit_mean=fit,
                f0=1.0, df=1.0, nf=3, methods=("direct",))


def main():
    report = Report()
    with Daemon() as daemon:
        test_low(daemon, report)
        test_aliases(daemon, report)
        test_few(daemon, report)
    report.end()


main()
