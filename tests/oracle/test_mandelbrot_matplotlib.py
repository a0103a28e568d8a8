"""Colours against Matplotlib: colormaps by name, PowerNorm, and the hill shading of its showcase.

The shading differs from LightSource.shade in one documented point: the contrast is stretched from
the fixed range of intensities [-cos(altitude), 1] instead of the picture's own extremes, so that
neighbouring tiles agree. The subclass below changes just that.
"""

import io
import os

os.environ.setdefault("MPLCONFIGDIR", "/tmp/kiln-matplotlib")

from daemon import NPY, PNG, Daemon, Report, need

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


def colour_error(got, values, name, gamma, limit):
    """Greatest difference of any channel, in 1/255. A value within 1e-6 of the border between two
    colours may have either."""
    norm = colors.PowerNorm(gamma, vmin=0, vmax=limit)(values.astype(float))
    errors = []
    for factor in (1, 1 - 1e-6, 1 + 1e-6):
        # The middle of the value's 256th: all of the daemon's maps have 256 colours.
        middle = (np.minimum(np.floor(norm * factor * 256), 255) + 0.5) / 256
        errors.append(np.abs(got.astype(int) - bytes_of(colormap(name)(middle)[..., :3])))
    return np.min(errors, axis=0)


def test_colormaps(daemon, report, names):
    values = field(daemon, **VIEW)
    for name in names:
        got, _ = picture(daemon, colormap=name, **VIEW)
        report.within(f"colormap {name}", colour_error(got, values, name, 0.3, 400), 1)
        if colormap(name).N != 256:
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
        report.check("at least ten colormaps", len(names) >= 10, f"{len(names)}: {' '.join(names)}")
        test_colormaps(daemon, report, names)
        test_gamma(daemon, report)
        test_shading(daemon, report)
        test_supersampling(daemon, report)
    report.end()


main()
