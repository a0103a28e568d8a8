"""Lomb-Scargle periodograms against astropy: powers in every combination of options, automatic
grids, false-alarm probabilities, peaks, and a real series."""

import itertools
import warnings

from daemon import CSV, JSON, NPY, Daemon, Report, need, npy_bytes

np, _ = need("numpy", "astropy.timeseries")

from astropy.timeseries import LombScargle

from curves import EPOCH, curve, grid, periodogram, powers
from leastsquares import exact, mp

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
            want = np.minimum(want, 1)  # Davies' bound is one; astropy leaves it above 1
            scale = np.abs(want) + 1e-250
            report.within(f"{method} false-alarm probability, {norm}"
                          f"{', dy' if errors is not None else ''}, relative",
                          np.abs(got - want) / scale, 1e-9)
            report.check(f"{method} {norm}: from {want.min():.2g} to {want.max():.2g}",
                         len(got) > 0)


def test_terms(daemon, report):
    """Several terms: astropy's chi2 method, which solves the same equations at each frequency."""
    f0, df, nf = 0.013, 0.0071, 150
    frequency = f0 + df * np.arange(nf)
    for epoch, span in ((0.0, 60.0), (EPOCH, 900.0)):
        t, y, errors = curve(200, span, 15, epoch=epoch)
        for terms, fit, center, norm in itertools.product(range(2, 7), (True, False), (True, False),
                                                          ("standard", "psd")):
            dy = errors if terms % 2 or norm == "psd" else None
            options = {"fit_mean": fit, "center_data": center, "nterms": terms}
            want = astropy_power(t, y, dy, frequency, "chi2", **options)
            reference = 1.0
            if norm == "psd":
                scaled = astropy_power(t, y, dy, frequency, "chi2", normalization=norm, **options)
                reference = float(scaled[0] / want[0])
            for precision, bound in (("fp64", FP64), ("fp32", 4 * FP32)):
                _, got, _ = periodogram(daemon, t, y, dy, f0=f0, df=df, nf=nf, normalization=norm,
                                        precision=precision, **options)
                name = (f"t0={epoch:.0f} nterms={terms}{' fit_mean' * fit}"
                        f"{' center_data' * center}{' dy' * (dy is not None)} {norm} {precision}")
                report.within(name, np.abs(got / reference - want), bound)


def test_methods(daemon, report):
    """Sums by transforms: one and several terms, absolute times, nights, and what may not be asked."""
    for epoch, span, f0, df, nf, terms in ((0.0, 60.0, 0.001, 0.003, 1000, 1),
                                           (EPOCH, 1500.0, 0.01, 1e-4, 1000, 1),
                                           (EPOCH, 1500.0, 20.0, 2e-5, 1000, 1),
                                           (EPOCH, 3650.0, 99.9, 5e-5, 1000, 1),
                                           (EPOCH, 400.0, 0.05, 4e-4, 1000, 2),
                                           (0.0, 90.0, 0.02, 2e-3, 600, 6)):
        t, y, dy = curve(300, span, 23, epoch=epoch)
        for nights, (norm, fit) in itertools.product((False, True), (("standard", True),
                                                                     ("log", False))):
            times = np.floor(t) + 0.2 * (t - np.floor(t)) if nights else t
            options = {"fit_mean": fit, "nterms": terms}
            where, got, answer = periodogram(daemon, times, y, dy, f0=f0, df=df, nf=nf,
                                             method="nufft", normalization=norm, **options)
            want = astropy_power(times, y, dy, where, "slow" if terms == 1 else "chi2", **options)
            name = f"nufft t0={epoch:.0f} f0={f0:g} nterms={terms} {norm}{' nights' * nights}"
            report.check(f"{name}: says so", answer["method"] == "nufft", str(answer["method"]))
            error = np.abs(standard_of(got, norm, 1) - want)
            # Where astropy's equations are near to singular its own roundings show: 60 digits judge.
            doubtful = np.flatnonzero(~(error <= FP64))
            report.check(f"{name}: astropy is right in most bins", doubtful.size < 0.02 * error.size,
                         str(doubtful.size))
            mp.mp.dps = 60
            for k in doubtful:
                f = mp.mpf(f0) + int(k) * mp.mpf(df)
                error[k] = abs(standard_of(got[k], norm, 1) - exact(times, y, dy, f, terms, fit))
            report.within(name, error, FP64)
            _, direct, _ = periodogram(daemon, times, y, dy, f0=f0, df=df, nf=nf,
                                       method="direct", normalization=norm, **options)
            report.check(f"{name}: undefined bins are the same",
                         np.array_equal(np.isnan(got), np.isnan(direct)))
            error = np.abs(standard_of(got, norm, 1) - standard_of(direct, norm, 1))
            report.within(f"{name} against direct", np.nan_to_num(error), FP64)
    refused = daemon.request("POST", "/v1/lombscargle", {"t": [0, 1, 2.5, 3], "y": [1, 2, 0, 1],
                                              "frequency": [0.1, 0.3], "method": "nufft"},
                             accept=JSON)
    report.check("nufft for a list of frequencies is refused", refused.status == 422)


def test_batches(daemon, report):
    """Several series in one request: shared times, own times, NPY; peaks without the power."""
    curves = [curve(n, 60.0, n, period=p, epoch=EPOCH)
              for n, p in ((80, 7.3), (55, 3.1), (120, 11.9))]
    query = {"f0": 0.02, "df": 0.003, "nf": 400}
    frequency = 0.02 + 0.003 * np.arange(400)
    ragged = {"t": [list(c[0]) for c in curves], "y": [list(c[1]) for c in curves],
              "dy": [list(c[2]) for c in curves], **query}
    t, _, dy = curves[0]
    rows = np.stack([curves[0][1], np.cos(t - EPOCH) + dy, (t - EPOCH) % 5])
    shared = {"t": list(t), "y": rows.tolist(), "dy": list(dy), **query}
    for name, body, times, values, errors in (
            ("own times", ragged, [c[0] for c in curves], [c[1] for c in curves],
             [c[2] for c in curves]),
            ("shared times", shared, [t] * 3, rows, [dy] * 3)):
        answer = daemon.post("/v1/lombscargle", body, accept=JSON).json()
        array = daemon.post("/v1/lombscargle", body, accept=NPY).npy()
        short = daemon.post("/v1/lombscargle", {**body, "fields": "peaks"}, accept=JSON).json()
        report.check(f"{name}: NPY shape", array.shape == (3, 400), str(array.shape))
        for i in range(3):
            want = astropy_power(times[i], values[i], errors[i], frequency, "slow")
            report.within(f"{name}, series {i}", np.abs(powers(answer["series"][i]) - want), FP64)
            report.within(f"{name}, series {i}: NPY", np.abs(array[i] - want), FP64)
            report.check(f"{name}, series {i}: the same peaks without power",
                         answer["series"][i]["peaks"] == short["series"][i]["peaks"]
                         and "power" not in short["series"][i])
    stack = npy_bytes(np.concatenate([[t], rows]))
    got = daemon.post("/v1/lombscargle", stack, media=NPY, accept=NPY, layout="batch", **query).npy()
    for i in range(3):
        want = astropy_power(t, rows[i], None, frequency, "slow")
        report.within(f"NPY in, series {i}", np.abs(got[i] - want), FP64)
    del ragged["f0"], ragged["df"], ragged["nf"]
    where = grid(daemon.post("/v1/lombscargle", ragged, accept=JSON).json())
    longest = max(curves, key=lambda c: c[0].max() - c[0].min())
    want = LombScargle(*longest).autofrequency()
    report.check("the grid is that of the longest baseline",
                 len(where) == len(want) and np.allclose(where, want, rtol=1e-12, atol=0))


def test_bootstrap(daemon, report):
    """Two bootstraps with draws of their own agree as well as 1000 and 400 draws can."""
    t, y, dy = curve(50, 40.0, 21)
    y = y.mean() + np.random.default_rng(21).normal(0, 0.3, t.size) + 0.2 * np.sin(t / 0.7)
    for errors in (dy, None):
        where, power, answer = periodogram(daemon, t, y, errors, f0=0.02, df=0.004, nf=300,
                                           false_alarm="bootstrap", peaks=8)
        rng = np.random.default_rng(1)
        maxima = []
        for _ in range(400):
            pick = rng.integers(0, t.size, t.size)
            picked = None if errors is None else errors[pick]
            maxima.append(LombScargle(t, y[pick], picked).power(where).max())
        for k, peak in enumerate(answer["peaks"]):
            want = np.mean(np.array(maxima) >= peak["power"])
            sigma = np.sqrt(max(want * (1 - want), 0.01) * (1 / 400 + 1 / 1000))
            report.within(f"bootstrap{', dy' * (errors is not None)}, peak {k}: share {want:.3f}, "
                          "in standard errors",
                          abs(peak["false_alarm_probability"] - want) / sigma, 4.5)


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
    path = report.data("sunspots.csv")
    if path is None:
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
        test_terms(daemon, report)
        test_methods(daemon, report)
        test_batches(daemon, report)
        test_bootstrap(daemon, report)
        test_peaks(daemon, report)
        test_sunspots(daemon, report)
    report.end()


main()
