"""Light curves in the files that surveys and missions give out, against astropy: the right columns,
the weights really used, missing samples left out."""

import io
import json

from daemon import CSV, JSON, NPY, PNG, Daemon, Report, need, npy_bytes

np, _ = need("numpy", "astropy.timeseries")

from astropy.timeseries import LombScargle

from curves import grid, powers

F0, DF, NF = 0.05, 0.002, 700
PERIOD = 1.6993
QUERY = {"f0": F0, "df": DF, "nf": NF}
TSV, TEXT = "text/tab-separated-values", "text/plain"


def faint(points=140, seed=7):
    """(t, y, dy): every third sample is far off and says so, and there stands another period."""
    random = np.random.default_rng(seed)
    t = np.sort(random.uniform(0, 90, points)) + 2458000.0
    dy = random.uniform(0.005, 0.02, points)
    y = 15.0 + 0.1 * np.sin(2 * np.pi * t / PERIOD)
    bad = np.arange(points) % 3 == 0
    dy[bad] = random.uniform(1.0, 2.0, bad.sum())
    y[bad] += 1.5 * np.sin(2 * np.pi * t[bad] / 0.8347)
    return np.round(t, 6), np.round(y + dy * 0.3 * random.normal(size=points), 5), np.round(dy, 5)


def want(t, y, dy=None):
    """astropy's powers; times less their middle, from which it loses no digits."""
    frequency = F0 + DF * np.arange(NF)
    return LombScargle(t - 0.5 * (t.min() + t.max()), y, dy).power(frequency, method="slow")


def ask(daemon, data, media=CSV, **query):
    data = data.encode() if isinstance(data, str) else data
    return daemon.post("/v1/lombscargle", data, media=media, accept=JSON, **QUERY, **query).json()


def table(head, rows, separator=",", end="\n"):
    lines = ([head] if head else []) + [separator.join(map(str, row)) for row in rows]
    return end.join(lines) + end


def conventions(t, y, dy):
    """name, text, media type, columns"""
    mjd, flux, error = t - 2400000.5, np.round(10 ** (-0.4 * (y - 20)), 6), None
    n = len(t)
    ids = range(n)
    yield ("plain", table("t,y,dy", zip(t, y, dy)), CSV, ("t", "y", "dy"))
    for name in ("flux_err", "fluxerr", "flux_error", "e_flux", "sigma_flux", "dflux", "flux_unc",
                 "FLUX_ERR", "Flux Error", "flux_err (mJy)", "err", "error", "sigma", "uncertainty"):
        shown = name
        yield (f"astropy TimeSeries, {name}", table(f"time,flux,{name}", zip(t, y, dy)), CSV,
               ("time", "flux", shown))
    for name in ("mag_err", "magerr", "e_mag", "mag_error", "err_mag", "MAGERR"):
        yield (f"magnitudes, {name}", table(f"mag,{name},mjd", zip(y, dy, mjd)), CSV,
               ("mjd", "mag", name))
    yield ("ZTF", table("oid,expid,hjd,mjd,mag,magerr,catflags,filtercode,ra,dec,chi,sharp",
                        ((686103400034440, i, a, round(a - 2400000.5, 6), b, c, 0, "zr", 298.0025,
                          29.8714, 0.98, -0.02) for i, a, b, c in zip(ids, t, y, dy))), CSV,
           ("hjd", "mag", "magerr"))
    yield ("ZTF alerts", table("jd,fid,magpsf,sigmapsf,diffmaglim", ((a, 1, b, c, 20.5) for a, b, c in
                                                                    zip(t, y, dy))), CSV,
           ("jd", "magpsf", "sigmapsf"))
    yield ("ASAS-SN Sky Patrol 1",
           table("HJD,UT Date,Camera,FWHM,Limit,mag,mag_err,flux(mJy),flux_err,Filter",
                 ((a, "2018-09-02.1234567", "bd", 1.43, 17.2, b, c, 3.2, 0.1, "V")
                  for a, b, c in zip(t, y, dy))), CSV, ("HJD", "mag", "mag_err"))
    yield ("ASAS-SN Sky Patrol 2",
           '# Source ID: 42\n#\n' + table('JD,Flux,Flux Error,Mag,Mag Error,Limit,FWHM,Filter,Quality,Camera',
                 ((a, 3.2, 0.1, b, c, 17.2, 1.43, "g", "G", '"bq, 2"') for a, b, c in zip(t, y, dy))),
           CSV, ("JD", "Mag", "Mag Error"))
    yield ("OGLE", "".join(f" {a:.6f} {b:7.5f}  {c:.5f}\n" for a, b, c in zip(t, y, dy)), TEXT,
           ("1", "2", "3"))
    yield ("Gaia", table("source_id,transit_id,band,time,mag,flux,flux_error,flux_over_error,"
                         "rejected_by_photometry,other_flags",
                         ((5853498713190525696, 17091923342681275, "G", a, 14.2, b, c, 312.5, "false", 512)
                          for a, b, c in zip(t, y, dy))), CSV, ("time", "flux", "flux_error"))
    yield ("Gaia, wide", table("g_transit_time,g_transit_flux,g_transit_flux_error,"
                               "g_transit_flux_over_error,g_transit_mag",
                               ((a, b, c, 300, 14.2) for a, b, c in zip(t, y, dy))), CSV,
           ("g_transit_time", "g_transit_flux", "g_transit_flux_error"))
    yield ("Kepler and TESS", table("TIME,TIMECORR,CADENCENO,SAP_FLUX,SAP_FLUX_ERR,SAP_BKG,SAP_BKG_ERR,"
                                    "PDCSAP_FLUX,PDCSAP_FLUX_ERR,SAP_QUALITY,PSF_CENTR1,PSF_CENTR1_ERR",
                                    ((a, 0.001, i, b * 2, c * 3, 5.1, 0.1, b, c, 0, 512.3, 0.01)
                                     for i, a, b, c in zip(ids, t, y, dy))), CSV,
           ("TIME", "PDCSAP_FLUX", "PDCSAP_FLUX_ERR"))
    yield ("lightkurve", table("time,flux,flux_err,timecorr,cadenceno,centroid_col,sap_flux,"
                               "sap_flux_err,quality",
                               ((a, b, c, 0.001, i, 512.1, b * 2, c * 3, 0)
                                for i, a, b, c in zip(ids, t, y, dy))), CSV,
           ("time", "flux", "flux_err"))
    yield ("ATLAS", table("###MJD          m      dm  uJy   duJy F err chi/N",
                          ((a, 16.1, 0.2, b, c, "o", 0, 1.1) for a, b, c in zip(t, y, dy)), " "), TEXT,
           ("MJD", "uJy", "duJy"))
    yield ("NumPy's savetxt", table("# mag dmag bjd", zip(y, dy, t), " "), TEXT, ("bjd", "mag", "dmag"))
    yield ("astropy ECSV", '# %ECSV 1.0\n# ---\n# datatype:\n# - {name: time}\n' +
           table("time flux flux_err", zip(t, y, dy), " "), TEXT, ("time", "flux", "flux_err"))
    yield ("offsets and units", table("HJD-2450000,Vmag [mag],e_Vmag", zip(t - 2450000, y, dy)), CSV,
           None)
    yield ("tabs, names with commas", table("Time, days\tMag\tMag err", zip(t, y, dy), "\t"), TSV,
           ("Time, days", "Mag", "Mag err"))
    yield ("semicolons, CR LF, byte order mark, quotes",
           "\ufeff" + table('"TIME";"MAG";"MAG_ERR";"NOTE"',
                            ((f'"{a}"', b, f'"{c}"', '"two; ""words"""') for a, b, c in
                             zip(t, y, dy)), ";", "\r\n"), CSV, ("TIME", "MAG", "MAG_ERR"))


def test_conventions(daemon, report, t, y, dy):
    weighted, plain = want(t, y, dy), want(t, y)
    report.check("the curve's two periods differ with and without weights",
                 abs(1 / (F0 + DF * weighted.argmax()) - 1 / (F0 + DF * plain.argmax())) > 0.5)
    for name, text, media, columns in conventions(t, y, dy):
        query = {"y_column": "vmag"} if columns is None else {}
        columns = columns or ("HJD-2450000", "Vmag [mag]", "e_Vmag")
        answer = ask(daemon, text, media, **query)
        report.within(f"{name}: powers with weights", np.abs(powers(answer) - weighted), 1e-6)
        got = answer["columns"]
        report.check(f"{name}: columns", (got["t"], got["y"], got["dy"]) == columns, str(got))
        report.check(f"{name}: weighted", answer["weighted"] is True and answer["dropped"] == 0)
        report.within(f"{name}: period", abs(answer["best_period"] - PERIOD), 0.01)


def test_choices(daemon, report, t, y, dy):
    weighted, plain = want(t, y, dy), want(t, y)
    rows = list(zip(range(len(t)), y * 3, t, dy, y))
    text = table("id,mag,when,scatter,brightness", rows)
    bare = table("", rows)
    for name, data, query, power in (
            ("by name", text, {"t_column": "when", "y_column": "brightness", "dy_column": "scatter"}, weighted),
            ("by name in another case", text,
             {"t_column": "WHEN", "y_column": "Brightness", "dy_column": "Scatter"}, weighted),
            ("by number", text, {"t_column": 3, "y_column": 5, "dy_column": 4}, weighted),
            ("without a header", bare, {"t_column": 3, "y_column": 5, "dy_column": 4}, weighted),
            ("no uncertainties", text, {"t_column": 3, "y_column": 5}, plain),
            ("uncertainties left out", table("t,y,dy", zip(t, y, dy)), {"dy_column": "none"}, plain),
            ("one uncertainty for all", table("t,y", zip(t, y)), {"dy": 0.25}, want(t, y, 0.25))):
        answer = ask(daemon, data, **query)
        report.within(f"columns {name}", np.abs(powers(answer) - power), 1e-6)
        report.check(f"columns {name}: weighted",
                     answer["weighted"] == (power is not plain), str(answer["columns"]))
    answer = ask(daemon, text, t_column=3, y_column=5, dy_column=4)
    report.check("columns chosen by number are told by name",
                 answer["columns"] == {"t": "when", "y": "brightness", "dy": "scatter"})
    body = {"t": list(t), "y": list(y), **QUERY}
    for name, error in (("a number", 0.25), ("an array of one", [0.25])):
        answer = daemon.post("/v1/lombscargle", {**body, "dy": error, "normalization": "psd"}).json()
        frequency = F0 + DF * np.arange(NF)
        psd = LombScargle(t - 2458045.0, y, 0.25, normalization="psd").power(frequency, method="slow")
        report.within(f"JSON dy as {name}, psd, relative", np.abs(powers(answer) / psd - 1), 1e-6)
        report.check(f"JSON dy as {name}: weighted", answer["weighted"] is True)


def test_missing(daemon, report, t, y, dy):
    gaps = np.array([0, 5, 17, 18, len(t) - 1])
    keep = np.setdiff1d(np.arange(len(t)), gaps)
    power = want(t[keep], y[keep], dy[keep])
    words = ["", "nan", "NaN", "null", "--"]
    rows = [[a, b, c] for a, b, c in zip(t, y, dy)]
    for word, i in zip(words, gaps):
        rows[i][1 + (i == 17)] = word
    answer = ask(daemon, table("time,mag,mag_err", rows), missing="drop")
    report.within("CSV, missing=drop", np.abs(powers(answer) - power), 1e-6)
    report.check("CSV, missing=drop: counted", answer["dropped"] == len(gaps), str(answer["dropped"]))
    limits = [list(row) for row in zip(t, y, dy)]
    for i in gaps:
        limits[i][1:] = [">17.31", 99.99]
    answer = ask(daemon, table("HJD,mag,mag_err", limits), missing="drop")
    report.within("limits, missing=drop", np.abs(powers(answer) - power), 1e-6)
    holes = [None if i in gaps else float(v) for i, v in enumerate(y)]
    answer = daemon.post("/v1/lombscargle", {"t": list(t), "y": holes, "dy": list(dy),
                                             "missing": "drop", **QUERY}).json()
    report.within("JSON null, missing=drop", np.abs(powers(answer) - power), 1e-6)
    report.check("JSON null, missing=drop: counted", answer["dropped"] == len(gaps))
    array = np.stack([t, y, dy])
    array[1, gaps] = np.nan
    answer = ask(daemon, npy_bytes(array), NPY, missing="drop")
    report.within("NPY NaN, missing=drop", np.abs(powers(answer) - power), 1e-6)
    report.check("NPY NaN, missing=drop: counted", answer["dropped"] == len(gaps))

    other = np.array([3, 17, 40])
    rest = np.setdiff1d(np.arange(len(t)), other)
    batch = np.stack([t, y, y[::-1]])
    batch[1, gaps] = np.nan
    batch[2, other] = np.nan
    answer = ask(daemon, npy_bytes(batch), NPY, layout="batch", missing="drop")
    for k, (index, values) in enumerate(((keep, y), (rest, y[::-1]))):
        series = answer["series"][k]
        report.within(f"NPY batch, missing=drop, series {k}",
                      np.abs(powers(series) - want(t[index], values[index])), 1e-6)
        report.check(f"NPY batch, series {k}: samples", series["samples"] == len(index))
    report.check("NPY batch: counted", answer["dropped"] == len(gaps) + len(other))
    rows = [[None if np.isnan(v) else v for v in row] for row in batch[1:].tolist()]
    again = daemon.post("/v1/lombscargle", {"t": list(t), "y": rows, "dy": list(dy), "missing": "drop",
                                            **QUERY}).json()
    for k, (index, values) in enumerate(((keep, y), (rest, y[::-1]))):
        report.within(f"JSON rows with shared dy, missing=drop, series {k}",
                      np.abs(powers(again["series"][k]) - want(t[index], values[index], dy[index])), 1e-6)


def test_results(daemon, report, t, y, dy):
    """What is no JSON says in a header, and a PNG in its text, which columns were used."""
    text = table("hjd,mag,magerr,filter", zip(t, y, dy, ["zr"] * len(t))).encode()
    for media in (NPY, CSV, PNG):
        reply = daemon.post("/v1/lombscargle", text, media=CSV, accept=media, **QUERY)
        report.check(f"Kiln-Input beside {media}", reply.headers.get("kiln-input") ==
                     't="hjd", y="mag", dy="magerr", weighted, dropped=0',
                     str(reply.headers.get("kiln-input")))
    report.check("the PNG's text names the columns", b"y_column=mag&dy_column=magerr" in reply.body)


def test_sunspots(daemon, report):
    """A header of foreign names over two columns is read as it stands."""
    path = report.data("sunspots.csv")
    if path is None:
        return
    t, y = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    answer = ask(daemon, path.read_bytes())
    below = F0 + DF * np.arange(NF) < 0.45  # yearly samples: at 1/2 there is no sine to fit
    report.within("sunspots", np.abs(powers(answer) - want(t, y))[below], 1e-9)
    report.check("sunspots: columns", answer["columns"] ==
                 {"t": "YEAR", "y": "SUNACTIVITY", "dy": None} and not answer["weighted"])


def main():
    report = Report()
    t, y, dy = faint()
    with Daemon() as daemon:
        test_conventions(daemon, report, t, y, dy)
        test_choices(daemon, report, t, y, dy)
        test_missing(daemon, report, t, y, dy)
        test_results(daemon, report, t, y, dy)
        test_sunspots(daemon, report)
    report.end()


main()
