"""Periodograms of many samples, of the usual grid, and of many light curves: kiln against nifty-ls."""

import json

import numpy as np

from clock import Effort
from kiln import npy_bytes
from lombscargle import NPY, Curve, grid_table
from table import Table


def stacked(curves):
    """An NPY batch: one row of times and one for each curve's values."""
    return npy_bytes(np.stack([curves[0].t] + [curve.y for curve in curves]))


def nifty_series(bench, table, curves, times, scale, note):
    """`curves` one call each, or (at shared times) all in one."""
    nifty = bench.peers.get("nifty_ls")
    if not nifty:
        table.add_absent("nifty-ls", bench.peers.reason("nifty_ls"))
        return
    first = curves[0]
    grid = {"fmin": first.f0, "fmax": first.f0 + first.df * (first.nf - 1), "Nf": first.nf,
            "backend": "finufft", "nthreads": bench.cores}
    if times is None:
        walls, _ = bench.time(lambda: [nifty.lombscargle(curve.t, curve.y, **grid).power
                                       for curve in curves])
    else:
        values = np.stack([curve.y for curve in curves])
        walls, _ = bench.time(lambda: nifty.lombscargle(times, values, **grid).power)
    table.add_peer("nifty-ls finufft", "call", walls, "", f"{bench.cores} threads, {note}", scale)


def scaled(run, scale):
    """A run of a part stands for the whole."""
    run.walls = [scale * each for each in run.walls]
    run.phases = {"kernel": [scale * each for each in run.kernels]}
    return run


def series_table(bench):
    """Many light curves with times of their own, in one request."""
    points, nf, all_of = 165, 100000 if bench.quick else 1000000, 1000
    part = 10 if bench.quick else 50
    curves = [Curve(points, nf, seed, top=0.01 + 25e-6 * nf) for seed in range(part)]
    table = Table(f"Lomb-Scargle, {all_of} light curves of {points} samples, {nf} frequencies each")
    bench.say(table.title)
    few = Effort(bench.effort.budget, 3, 3)
    scale = all_of / part
    table.say(f"{part} curves with times of their own, scaled ×{scale:g}; kiln gives 10 peaks of each, in one "
              "request unless told. The limit of direct sums is 12 operations a pair.")
    lists = {name: [getattr(curve, name).tolist() for curve in curves] for name in ("t", "y")}
    body = json.dumps(lists).encode()
    for method in ("nufft", "auto"):
        run = bench.job(f"{method} fp64, one request", "/v1/lombscargle", curves[0].query(
            method=method, format="json", fields="peaks"), body, "application/json", effort=few)
        table.add_kiln(run if run.reason else scaled(run, scale), "", f"{part} curves a request")
    few_curves = curves[:5]
    for method in ("direct", "nufft"):
        runs = [bench.job(f"{method} fp64", "/v1/lombscargle", curve.query(
            method=method, format="json", fields="peaks"), curve.body(), NPY, effort=few)
            for curve in few_curves]
        total = runs[0]
        if not total.reason:
            more = all_of / len(few_curves)
            total.walls = [more * sum(each) for each in zip(*(run.walls for run in runs))]
            total.phases = {"kernel": [more * sum(each)
                                       for each in zip(*(run.kernels for run in runs))]}
        table.add_kiln(total, "", "one request a curve")
    nifty_series(bench, table, few_curves, None, all_of / len(few_curves), "one call a curve")
    return table


def shared_table(bench):
    """Many light curves at the same times, in one request."""
    points, nf, count = 165, 10000 if bench.quick else 100000, 100
    curves = [Curve(points, nf, seed, top=0.01 + 25e-6 * nf) for seed in range(count)]
    for curve in curves:
        curve.t = curves[0].t
    table = Table(f"Lomb-Scargle, {count} light curves at the same {points} times, {nf} frequencies each")
    bench.say(table.title)
    body = stacked(curves)
    for method, fields in (("direct", "peaks"), ("nufft", "peaks"), ("nufft", "all")):
        form = {"format": "json", "fields": "peaks"} if fields == "peaks" else {"format": "npy"}
        run = bench.job(f"{method} fp64" + (", peaks" if fields == "peaks" else ""),
                        "/v1/lombscargle", curves[0].query(method=method, layout="batch", **form),
                        body, NPY)
        table.add_kiln(run, "", "one request" + (", 10 peaks of each" if fields == "peaks" else ""))
    nifty_series(bench, table, curves, curves[0].t, 1, "one call")
    return table


def tables(bench):
    large = 100000 if bench.quick else 1000000
    nufft = (("nufft", "fp64"), ("auto", "fp64"))
    yield grid_table(bench, 3000, large, (("direct", "fp64"),) + nufft, ("fast", "fastnifty"), False)
    # The usual grid: five steps to a peak, from near 0 on.
    usual = Curve(3000, large, top=0.01 + (large - 1) / 7500.0)
    yield grid_table(bench, 3000, large, nufft, (), False, usual)
    yield grid_table(bench, large, large, nufft[:1], ("fastnifty",), False)
    yield series_table(bench)
    yield shared_table(bench)
