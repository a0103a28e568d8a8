"""Lomb-Scargle powers against SciPy's own implementation, and against properties that hold for any
right one."""

import json

from daemon import JSON, NPY, Daemon, Report, need, npy_bytes

np, signal = need("numpy", "scipy.signal")

from curves import EPOCH, curve, periodogram


def test_scipy(daemon, report):
    """SciPy has no floating mean and no weights: the classical periodogram."""
    for points, span, epoch in ((50, 10.0, 0.0), (333, 100.0, 0.0), (1000, 900.0, EPOCH)):
        t, y, _ = curve(points, span, points, epoch=epoch)
        where, got, _ = periodogram(daemon, t, y, f0=0.013, df=0.01, nf=400, fit_mean=False)
        middle = t - 0.5 * (t[0] + t[-1])
        centred = y - y.mean()
        want = signal.lombscargle(middle, centred, 2 * np.pi * where, normalize=True)
        report.within(f"{points} points over {span:.0f} from {epoch:.0f}", np.abs(got - want), 1e-9)
        _, got, _ = periodogram(daemon, t, y, f0=0.013, df=0.01, nf=400, fit_mean=False,
                                precision="fp32")
        report.within(f"{points} points, fp32", np.abs(got - want), 5e-6)


def test_properties(daemon, report):
    t, y, dy = curve(200, 80.0, 11)
    grid = {"f0": 0.02, "df": 0.005, "nf": 500}
    _, base, _ = periodogram(daemon, t, y, dy, **grid)
    report.check("powers lie in 0 … 1", bool(np.all((base >= -1e-12) & (base <= 1 + 1e-12))))
    order = np.random.default_rng(0).permutation(t.size)
    epoch_t = np.round(t * 4096) / 4096  # exact with and without the epoch
    _, exact, _ = periodogram(daemon, epoch_t, y, dy, **grid)
    cases = [("the same twice", (t, y, dy), base, 0),
             ("samples in another order", (t[order], y[order], dy[order]), base, 1e-12),
             ("times shifted by 2457000", (epoch_t + EPOCH, y, dy), exact, 1e-10),
             ("values times 1000 plus 5", (t, 1000 * y + 5, 1000 * dy), base, 1e-9),
             ("uncertainties times 17", (t, y, 17 * dy), base, 1e-12)]
    for name, data, want, bound in cases:
        _, got, _ = periodogram(daemon, *data, **grid)
        report.within(name, np.abs(got - want), bound)
    double = (np.repeat(t, 2), np.repeat(y, 2), np.repeat(dy, 2))
    _, got, _ = periodogram(daemon, *double, **grid)
    report.within("every sample twice", np.abs(got - base), 1e-12)


def test_numbers(daemon, report):
    """Every number of a large JSON result is the array's own: printed in pieces, by many threads."""
    t, y, _ = curve(40, 20.0, 3)
    body = npy_bytes(np.array([t, y]))
    query = {"media": NPY, "f0": 0.01, "df": 0.0001, "nf": 50001}
    array = daemon.post("/v1/lombscargle", body, accept=NPY, **query).npy()
    text = json.loads(daemon.post("/v1/lombscargle", body, accept=JSON, **query).body)
    report.check("50001 powers, bit by bit", np.array_equal(array[1], np.array(text["power"])))


def test_noise(daemon, report):
    """White noise of known size: psd powers are exponential with mean 1 (Scargle 1982)."""
    random = np.random.default_rng(21)
    t = np.sort(random.uniform(0, 1000, 4000))
    _, power, _ = periodogram(daemon, t, random.normal(size=t.size), np.ones(t.size), f0=0.01,
                              df=0.001, nf=1500, normalization="psd")
    # Independent frequencies (spacing 1/T): the mean of 1500 has a standard error of 0.026.
    report.within("mean of psd noise is 1", abs(power.mean() - 1), 0.13)
    above = float(np.mean(power > 3))
    report.within("share above 3 is exp(-3)", abs(above - np.exp(-3)), 0.028)


def main():
    report = Report()
    with Daemon() as daemon:
        test_scipy(daemon, report)
        test_properties(daemon, report)
        test_numbers(daemon, report)
        test_noise(daemon, report)
    report.end()


main()
