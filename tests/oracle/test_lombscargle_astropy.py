"""Lomb-Scargle periodograms against astropy: powers in every combination of options, automatic
grids, false-alarm probabilities, peaks, and a real series."""

import itertools
import warnings

from daemon import CSV, DATA, JSON, NPY, Daemon, Report, need, npy_bytes

np, _ = need("numpy", "astropy.timeseries")

from astropy.timeseries import LombScargle

from curves import EPOCH, curve, grid, periodogram, powers

NORMALIZATIONS = ("standard", "model", "log", "psd")
FP64, FP32 = 1e-9, 5e-6


def astropy_power(t, y, dy, frequency, method, **options):
    # Times less their middle: powers do not depend on the origin, astropy's roundings do.
    t = t - 0.5 * (t.min() + t.max())
    return LombScargle(t, y, dy, **options).power(frequency, method=method)


def standard_of(power, normalization, reference):
    """Undoes a normalization, so that one bound fits all. psd needs its reference."""
    return {"standard": lambda p: p, "model": lambda p: p / (1 + p),
            "log": lambda p: 1 - np.exp(-p), "psd": lambda p: p / reference}[normalization](power)


def test_options(daemon, report):
    """astropy's three direct methods over normalization × fit_mean × center_data × dy."""
    f0, df, nf = 0.01, 0.0037, 300
    frequency = f0 + df * np.arange(nf)
    for epoch, span in ((0.0, 120.0), (EPOCH, 120.0), (EPOCH, 1500.0)):
        t, y, errors = curve(150, span, 5, epoch=epoch)
        for fit, center, dy, norm in itertools.product((True, False), (True, False), (errors, None),
                                                       NORMALIZATIONS):
            options = {"fit_mean": fit, "center_data": center, "normalization": norm}
            name = (f"t0={epoch:.0f} span={span:.0f} {norm}{' fit_mean' * fit}"
                    f"{' center_data' * center}{' dy' * (dy is not None)}")
            where, got, _ = periodogram(daemon, t, y, dy, f0=f0, df=df, nf=nf, **options)
            report.within(f"{name} grid", np.abs(where - frequency), 1e-12)
            for method in ("slow", "chi2", "cython"):
                want = astropy_power(t, y, dy, frequency, method, **options)
                # The psd's scale is what it multiplies standard power with.
                plain = astropy_power(t, y, dy, frequency, method,
                                      **{**options, "normalization": "standard"})
                reference = float(want[0] / plain[0]) if norm == "psd" else 1.0
                error = np.abs(standard_of(got, norm, reference) -
                               standard_of(want, norm, reference))
                report.within(f"{name} fp64 against {method}", error, FP64)
            _, got, _ = periodogram(daemon, t, y, dy, f0=f0, df=df, nf=nf, precision="fp32",
                                    **options)
            error = np.abs(standard_of(got, norm, reference) - standard_of(want, norm, reference))
            report.within(f"{name} fp32", error, FP32)


def test_grids(daemon, report):
    for points, span, epoch in ((40, 20.0, 0.0), (90, 300.0, EPOCH), (7, 3.0, 100.0)):
        t, y, dy = curve(points, span, points, epoch=epoch)
        for query in ({}, {"samples_per_peak": 10}, {"nyquist_factor": 2},
                      {"minimum_frequency": 0.1}, {"maximum_frequency": 0.9},
                      {"minimum_frequency": 0.05, "maximum_frequency": 0.5, "samples_per_peak": 7}):
            want = LombScargle(t, y, dy).autofrequency(**query)
            got, power, _ = periodogram(daemon, t, y, dy, **query)
            name = f"{points} points, {query or 'automatic'}"
            if report.check(f"{name} length", len(got) == len(want) == len(power),
                            f"{len(got)} frequencies, astropy {len(want)}"):
                report.within(f"{name} frequencies, relative", np.abs(got / want - 1), 1e-10)
    t, y, dy = curve(80, 50.0, 9)
    asked = np.random.default_rng(0).uniform(0.01, 3, 77)
    got, power, _ = periodogram(daemon, t, y, dy, frequency=list(asked))
    report.within("explicit frequencies come back", np.abs(got - asked), 0)
    want = astropy_power(t, y, dy, asked, "slow")
    report.within("powers at explicit frequencies", np.abs(power - want), FP64)


def test_inputs(daemon, report):
    """JSON, CSV with and without a header, NPY 2×N and 3×N and N×3 where allowed: equal powers."""
    t, y, dy = curve(120, 60.0, 3, epoch=EPOCH)
    query = {"maximum_frequency": 1.5}
    _, plain, _ = periodogram(daemon, t, y, **query)
    _, weighted, _ = periodogram(daemon, t, y, dy, **query)
    rows = [f"{a!r},{b!r},{c!r}" for a, b, c in zip(map(float, t), map(float, y), map(float, dy))]
    pairs = [row.rsplit(",", 1)[0] for row in rows]
    swapped = [",".join(reversed(row.split(","))) for row in rows]
    cases = [("CSV, three columns", CSV, "\n".join(rows).encode(), weighted),
             ("CSV, two columns", CSV, "\n".join(pairs).encode(), plain),
             ("CSV, header and comments", CSV,
              "\r\n".join(["# a curve", "time,flux,error"] + rows).encode(), weighted),
             ("CSV, columns by name", CSV, "\n".join(["err,mag,t"] + swapped).encode(), weighted),
             ("CSV, tabs", CSV, "\n".join(rows).replace(",", "\t").encode(), weighted),
             ("NPY 2xN", NPY, npy_bytes(np.stack([t, y])), plain),
             ("NPY 3xN", NPY, npy_bytes(np.stack([t, y, dy])), weighted),
             ("NPY 3xN, big endian, Fortran order", NPY,
              npy_bytes(np.stack([t, y, dy]).astype(">f8"), True), weighted)]
    for name, media, data, want in cases:
        answer = daemon.post("/v1/lombscargle", data, media=media, accept=JSON, **query).json()
        report.equal(name, powers(answer), want)


def test_outputs(daemon, report):
    t, y, dy = curve(100, 40.0, 4)
    where, power, answer = periodogram(daemon, t, y, dy)
    data = {"t": list(t), "y": list(y), "dy": list(dy)}
    array = daemon.post("/v1/lombscargle", data, accept=NPY).npy()
    report.check("NPY shape", array.shape == (2, len(power)), str(array.shape))
    report.within("NPY frequencies", np.abs(array[0] - where), 1e-12)
    report.within("NPY powers", np.abs(array[1] - power), 0)
    lines = daemon.post("/v1/lombscargle", data, accept=CSV).body.decode().split()
    report.check("CSV header", lines[0] == "frequency,power", lines[0])
    table = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    report.within("CSV powers", np.abs(table[:, 1] - power), 1e-15)
    report.within("CSV frequencies", np.abs(table[:, 0] - where), 1e-12)
    short = daemon.post("/v1/lombscargle", {**data, "fields": "peaks"}, accept=JSON).json()
    report.check("fields=peaks leaves the arrays out",
                 "power" not in short and short["peaks"] == answer["peaks"])


def test_false_alarms(daemon, report):
    t, y, dy = curve(60, 30.0, 8)
    y = y.mean() + np.random.default_rng(8).normal(0, 0.3, t.size)
    y = y + 0.35 * np.sin(2 * np.pi * t / 2.3)
    for norm, method in itertools.product(NORMALIZATIONS, ("naive", "davies", "baluev")):
        # Without uncertainties psd has no scale of its own: the daemon names no probability then.
        for errors in (dy,) if norm == "psd" else (dy, None):
            where, power, answer = periodogram(daemon, t, y, errors, normalization=norm,
                                               maximum_frequency=4, false_alarm=method, peaks=6)
            model = LombScargle(t, y, errors, normalization=norm)
            got = np.array([p["false_alarm_probability"] for p in answer["peaks"]])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = model.false_alarm_probability(
                    np.array([p["power"] for p in answer["peaks"]]), method=method,
                    maximum_frequency=where[-1])
            scale = np.abs(want) + 1e-250
            report.within(f"{method} false-alarm probability, {norm}"
                          f"{', dy' if errors is not None else ''}, relative",
                          np.abs(got - want) / scale, 1e-9)
            report.check(f"{method} {norm}: from {want.min():.2g} to {want.max():.2g}",
                         len(got) > 0)


def test_peaks(daemon, report):
    t, y, dy = curve(300, 200.0, 2, period=7.3, epoch=EPOCH)
    where, power, answer = periodogram(daemon, t, y, dy, maximum_frequency=2, peaks=5)
    peaks = answer["peaks"]
    inner = np.flatnonzero((power[1:-1] > power[:-2]) & (power[1:-1] >= power[2:])) + 1
    best = inner[np.argsort(-power[inner], kind="stable")][:5]
    report.check("as many peaks as asked for", len(peaks) == 5, str(len(peaks)))
    step = where[1] - where[0]
    for k, (peak, index) in enumerate(zip(peaks, best)):
        report.within(f"peak {k} near the grid's maximum {k}, in steps",
                      abs(peak["frequency"] - where[index]) / step, 0.5 + 1e-9)
        report.within(f"peak {k} period is 1 / frequency",
                      abs(peak["period"] * peak["frequency"] - 1), 1e-12)
        report.check(f"peak {k} is no lower than the grid's", peak["power"] >= power[index] - 1e-12,
                     f"{peak['power']:.6f}, {power[index]:.6f}")
    fine = where[best[0]] + step * np.linspace(-1, 1, 20001)
    true = fine[np.argmax(astropy_power(t, y, dy, fine, "cython"))]
    report.within("parabola against astropy's finest grid, in steps",
                  abs(peaks[0]["frequency"] - true) / step, 0.03)
    report.check("the period put in", abs(peaks[0]["period"] - 7.3) < 0.02,
                 f"{peaks[0]['period']:.4f}")


def test_sunspots(daemon, report):
    path = DATA / "sunspots.csv"
    if not path.is_file():
        print("     sunspots.csv is not here: left out")
        return
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    query = {"minimum_frequency": 1 / 50, "maximum_frequency": 1 / 5}
    answer = daemon.post("/v1/lombscargle", path.read_bytes(), media=CSV, accept=JSON,
                         **query).json()
    best = answer["peaks"][0]["period"]
    report.check("sunspots: strongest period between 5 and 50 years is about 11",
                 10 < best < 12, f"{best:.3f} years")
    model = LombScargle(table[:, 0], table[:, 1])
    want = model.power(grid(answer), method="cython")
    report.within("sunspots: powers", np.abs(powers(answer) - want), FP64)


def main():
    report = Report()
    with Daemon() as daemon:
        test_options(daemon, report)
        test_grids(daemon, report)
        test_inputs(daemon, report)
        test_outputs(daemon, report)
        test_false_alarms(daemon, report)
        test_peaks(daemon, report)
        test_sunspots(daemon, report)
    report.end()


main()
