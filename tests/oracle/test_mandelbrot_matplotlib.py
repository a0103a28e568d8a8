"""Colours against Matplotlib: colormaps by name, PowerNorm, its showcase and the hill shading there.

The shading differs from LightSource.shade in one documented point: the contrast is stretched from
the fixed range of intensities [-cos(altitude), 1] instead of the picture's own extremes, so that
neighbouring tiles agree. The subclass below changes just that.
"""

import io
import os
import subprocess
import sys

os.environ.setdefault("MPLCONFIGDIR", "/tmp/kiln-matplotlib")

from daemon import NPY, PNG, SOURCE, Daemon, Report, need

np, matplotlib, colors, Image = need("numpy", "matplotlib", "matplotlib.colors", "PIL.Image")

VIEW = {"width": 211, "height": 173, "xmin": -0.9, "xmax": -0.3, "ymin": 0.4, "ymax": 0.9}


def colormap(name):
    return matplotlib.colormaps[name]


def picture(daemon, **query):
    data = daemon.get("/v1/mandelbrot", accept=PNG, **query).body
    image = Image.open(io.BytesIO(data))
    return np.array(image.convert("RGB")), image


def field(daemon, **query):
    value = daemon.get("/v1/mandelbrot", accept=NPY, field="smooth", **query).npy()
    return np.maximum(value, 0)


class FixedContrast(colors.LightSource):
    """Matplotlib's light with a contrast that does not depend on the picture."""

    def shade_normals(self, normals, fraction=1.0):
        lowest = -np.cos(np.radians(self.altdeg))
        intensity = normals.dot(self.direction)
        return np.clip((intensity - lowest) / (1 - lowest), 0, 1)


def bytes_of(rgb):
    return np.floor(rgb * 255 + 0.5).astype(int)


def colour_error(got, values, name, gamma, limit, vmin=0):
    """Greatest difference of any channel, in 1/255. A value within 1e-6 of the border between two
    colours may have either."""
    norm = colors.PowerNorm(gamma, vmin=vmin, vmax=limit)(values.astype(float))
    norm = np.clip(norm, 0, 1)
    errors = []
    for factor in (1, 1 - 1e-6, 1 + 1e-6):
        # The middle of the value's 256th: all of the daemon's maps have 256 colours.
        middle = (np.minimum(np.floor(norm * factor * 256), 255) + 0.5) / 256
        errors.append(np.abs(got.astype(int) - bytes_of(colormap(name)(middle)[..., :3])))
    return np.min(errors, axis=0)


def test_colormaps(daemon, report, names):
    """`names` may hold some of a later Matplotlib than the one here."""
    check = subprocess.run([sys.executable, SOURCE / "scripts" / "colormaps.py", "--check"],
                           stdout=subprocess.PIPE, text=True)
    report.check("the tables are Matplotlib's", check.returncode == 0, check.stdout.strip())
    missing = set(matplotlib.colormaps) - set(names)
    report.check("every colormap is there", not missing, " ".join(sorted(missing)))
    values = field(daemon, **VIEW)
    for name in filter(matplotlib.colormaps.__contains__, names):
        got, _ = picture(daemon, colormap=name, **VIEW)
        report.within(f"colormap {name}", colour_error(got, values, name, 0.3, 400), 1)
        if colormap(name).N > 256:
            norm = colors.PowerNorm(0.3, vmin=0, vmax=400)(values.astype(float))
            whole = bytes_of(colormap(name)(norm)[..., :3])
            report.within(f"colormap {name} against all of its {colormap(name).N} colours",
                          np.abs(got.astype(int) - whole), 4)


def test_gamma(daemon, report):
    for gamma, limit in ((0.3, 400), (1, 50), (0.05, 1000), (2.5, 30)):
        values = field(daemon, max_iter=limit, **VIEW)
        got, _ = picture(daemon, gamma=gamma, max_iter=limit, colormap="viridis", **VIEW)
        report.within(f"gamma {gamma}, {limit} iterations",
                      colour_error(got, values, "viridis", gamma, limit), 1)


def test_limits(daemon, report):
    """vmin and vmax as Matplotlib means them."""
    for vmin, vmax, limit in ((0, 50, 400), (12.5, 90, 400), (20, 21, 5000), (0, 5000, 100)):
        values = field(daemon, max_iter=limit, **VIEW)
        got, _ = picture(daemon, vmin=vmin, vmax=vmax, max_iter=limit, colormap="viridis", **VIEW)
        report.within(f"from {vmin} to {vmax}, {limit} iterations",
                      colour_error(got, values, "viridis", 0.3, vmax, vmin), 1)


def showcase(width, height, maxiter, horizon):
    """The array program of Matplotlib's gallery ("Shaded & power normalized rendering") in double,
    over its window with the edges as the first and the last samples; NaN inside."""
    x, y = np.linspace(-2.25, 0.75, width), np.linspace(-1.25, 1.25, height)
    c = x + y[:, None] * 1j
    n, z = np.zeros_like(c, dtype=int), np.zeros_like(c)
    for step in range(maxiter):
        inside = abs(z) < horizon
        n[inside] = step
        z[inside] = z[inside] ** 2 + c[inside]
    with np.errstate(all="ignore"):
        m = n + 1 - np.log2(np.log(abs(z))) + np.log2(np.log(horizon))
    m[n == maxiter - 1] = np.nan
    return m


def test_showcase(daemon, report):
    """Its numbers and its picture, from the parameters that docs/api.md names."""
    width, height, maxiter, horizon = 300, 250, 200, 2.0 ** 40
    want = showcase(width, height, maxiter, horizon)[::-1]
    dx, dy = 3 / (width - 1), 2.5 / (height - 1)
    view = {"width": width, "height": height, "xmin": repr(-2.25 - dx / 2),
            "xmax": repr(0.75 + dx / 2), "ymin": repr(-1.25 - dy / 2), "ymax": repr(1.25 + dy / 2),
            "max_iter": maxiter - 1, "escape_radius": repr(horizon)}
    got = field(daemon, **view)
    escaped = np.isfinite(want)
    report.check("the showcase's inside", np.array_equal(got > 0, escaped),
                 f"{np.sum((got > 0) != escaped)} samples differ")
    # Rounding moves the few samples that stay long near the border.
    error = np.abs(got - want)[escaped]
    report.check("the showcase's values", np.mean(error > 2e-5) < 2e-3 and np.median(error) < 5e-7,
                 f"{np.mean(error > 2e-5):.3%} of {error.size} off by more than 2e-5, median "
                 f"{np.median(error):.1e}")
    # Matplotlib takes vmax from the picture; here it is a parameter.
    values = np.where(escaped, want, 0)
    vmax = float(values.max())
    norm = colors.PowerNorm(0.3, vmin=0, vmax=vmax)
    plain, _ = picture(daemon, colormap="hot", vmax=repr(vmax), **view)
    differs = (plain != colormap("hot")(norm(values), bytes=True)[..., :3]).any(axis=2)
    report.check("the showcase's colours", np.mean(differs) < 2e-3,
                 f"{np.mean(differs):.3%} of the pixels differ")
    light = FixedContrast(azdeg=315, altdeg=10)
    drawn = light.shade(values, cmap=colormap("hot"), vert_exag=1.5, norm=norm, blend_mode="hsv")
    shaded, _ = picture(daemon, colormap="hot", vmax=repr(vmax), shade=True, **view)
    off = np.abs(shaded.astype(int) - bytes_of(drawn[..., :3])).max(axis=2)[1:-1, 1:-1]
    report.check("the showcase's shaded picture", np.mean(off > 1) < 5e-3,
                 f"{np.mean(off > 1):.3%} of the pixels are off by more than 1 of 255")


def test_shading(daemon, report):
    for name, azimuth, altitude, query in (
            ("the showcase's light", 315, 10, {}),
            ("light from the east", 90, 35, {"azimuth": 90, "altitude": 35}),
            ("light from above", 0, 80, {"azimuth": 0, "altitude": 80})):
        for colour in ("hot", "viridis"):
            values = field(daemon, **VIEW).astype(float)
            got, _ = picture(daemon, shade=True, colormap=colour, **query, **VIEW)
            light = FixedContrast(azdeg=azimuth, altdeg=altitude)
            want = light.shade(values, cmap=colormap(colour), vert_exag=1.5,
                               norm=colors.PowerNorm(0.3, vmin=0, vmax=400), blend_mode="hsv")
            # Matplotlib's gradients are one-sided at the border; the daemon looks beyond it.
            inner = np.s_[1:-1, 1:-1]
            error = np.abs(got.astype(int) - bytes_of(want[..., :3]))[inner]
            report.check(f"{name} on {colour}, {values.shape}", error.max() <= 2,
                         f"maximum error {error.max()} of 255, {np.mean(error > 1):.2%} above 1")


def test_supersampling(daemon, report):
    factor = 3
    fine = {**VIEW, "width": VIEW["width"] * factor, "height": VIEW["height"] * factor}
    got, _ = picture(daemon, supersample=factor, colormap="magma", **VIEW)
    single, _ = picture(daemon, colormap="magma", **fine)
    shape = (VIEW["height"], factor, VIEW["width"], factor, 3)
    mean = np.floor(single.reshape(shape).astype(float).mean(axis=(1, 3)) + 0.5)
    report.within("each pixel is the mean of its samples", np.abs(got - mean), 1)


def main():
    report = Report()
    with Daemon() as daemon:
        kinds = {job["name"]: job for job in daemon.get("/v1/jobs/types").json()["jobs"]}
        fields = {row["name"]: row for row in kinds["mandelbrot"]["fields"]}
        names = fields["colormap"]["choices"]
        test_colormaps(daemon, report, names)
        test_gamma(daemon, report)
        test_limits(daemon, report)
        test_showcase(daemon, report)
        test_shading(daemon, report)
        test_supersampling(daemon, report)
    report.end()


main()
