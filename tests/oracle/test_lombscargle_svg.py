"""The SVG of a periodogram, read by Python's XML: well-formed, nothing but shapes and text, and where its
ticks say that the numbers lie, the numbers of the JSON result do."""

import re
import urllib.parse
import xml.etree.ElementTree as xml

from daemon import CSV, JSON, PNG, Daemon, Report, need

np = need("numpy")

SVG = "image/svg+xml"
SPACE = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "desc", "style", "path", "text"}
ATTRIBUTES = {"width", "height", "viewBox", "role", "font-family", "d", "class", "id", "fill", "fill-opacity",
              "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "x", "y", "font-size",
              "font-weight", "text-anchor", "transform"}


def table(points):
    random = np.random.default_rng(5)
    t = np.cumsum(random.exponential(0.5, points))
    y = np.sin(2 * np.pi * t / 7.3) + random.normal(0, 0.3, points)
    return ("t,y\n" + "".join(f"{a:.9f},{b:.9f}\n" for a, b in zip(t, y))).encode()


def curve(root):
    """Points of the curve in pixels; a V draws a dot at the beginning of a part."""
    path = next(node for node in root if node.get("id") == "curve").get("d")
    assert re.fullmatch(r"(M[\d.]+ [\d.]+V[\d.]+(L[\d.]+ [\d.]+)*)+", path), path[:200]
    return np.array([[float(n) for n in pair.split()] for pair in re.findall(r"[ML]([\d.]+ [\d.]+)", path)])


def scale(root, upwards):
    """Of the tick labels below or left of the frame: a pixel's value as a line through them."""
    ticks = [(float(node.get("y" if upwards else "x")), float(node.text), float(node.get("font-size")))
             for node in root.iter(SPACE + "text")
             if node.get("text-anchor") == ("end" if upwards else "middle") and node.get("class") == "quiet"
             and re.fullmatch(r"-?[\d.]+", node.text)]
    where, values, sizes = np.array(ticks).T
    if upwards:
        where = where - 0.35 * sizes  # half a capital below the tick
    slope, start = np.polyfit(where, values, 1)
    off = np.abs(slope * where + start - values).max()
    return slope, start, off / abs(slope)


def test_document(daemon, report):
    reply = daemon.post("/v1/lombscargle", table(200), media=CSV, accept=f"{SVG}, {PNG};q=0.9", plot_width=900,
                        plot_height=500)
    report.check("Accept chooses it", reply.headers["content-type"] == SVG)
    root = xml.fromstring(reply.body)
    nodes = list(root.iter())
    names = {node.tag.removeprefix(SPACE) for node in nodes}
    report.check("elements", names <= ELEMENTS, str(names - ELEMENTS))
    given = {name for node in nodes for name in node.keys()}
    report.check("attributes", given <= ATTRIBUTES, str(given - ATTRIBUTES))
    report.check("nothing from elsewhere", b"url(" not in reply.body and b"href" not in reply.body)
    report.check("size", (root.get("width"), root.get("height"), root.get("viewBox")) == ("900", "500", "0 0 900 500"))
    report.check("parameters", "normalization=standard&" in root.find(SPACE + "desc").text)
    again = daemon.post("/v1/lombscargle", table(200), media=CSV, format="svg", plot_width=900, plot_height=500,
                        headers={"Cache-Control": "no-cache"})
    report.check("the same bytes again", again.body == reply.body)
    wild = daemon.post("/v1/lombscargle", b"<a>&b,y\n1,2\n2,3\n4,1\n7,5\n", media=CSV, format="svg",
                       t_column="<a>&b")
    told = urllib.parse.parse_qs(xml.fromstring(wild.body).find(SPACE + "desc").text.split()[1])
    report.check("a column's name is escaped", told["t_column"] == ["<a>&b"], str(told["t_column"]))
    same = daemon.post("/v1/lombscargle", b"1,5\n2,5\n3,5\n4,5\n", media=CSV, format="svg", f0=0, df=1, nf=3)
    words = " ".join(node.text for node in xml.fromstring(same.body).iter(SPACE + "text"))
    report.check("no power is told", "equal" in words, words)


def test_numbers(daemon, report):
    for name, query in (("few", {"f0": 0.02, "df": 0.01, "nf": 40}),
                        ("many", {"f0": 0, "df": 1e-5, "nf": 200000}),
                        ("psd", {"f0": 0.05, "df": 0.0005, "nf": 900, "normalization": "psd"})):
        body = table(300)
        result = daemon.post("/v1/lombscargle", body, media=CSV, accept=JSON, **query).json()
        root = xml.fromstring(daemon.post("/v1/lombscargle", body, media=CSV, format="svg", **query).body)
        frequency = query["f0"] + query["df"] * np.arange(query["nf"])
        power = np.array([np.nan if p is None else p for p in result["power"]])
        points = curve(root)
        (across, left, off_x), (up, bottom, off_y) = scale(root, False), scale(root, True)
        report.within(f"{name}: ticks in line, pixels", max(off_x, off_y), 1.1)
        x, y = across * points[:, 0] + left, up * points[:, 1] + bottom
        best = int(np.nanargmax(power))
        report.within(f"{name}: the best frequency, pixels", abs(x[np.argmax(y)] - frequency[best]) / across, 1.1)
        report.within(f"{name}: its power, pixels", abs(y.max() - power[best]) / -up, 1.1)
        if query["nf"] < 2000:
            seen = np.interp(frequency, x, y)
            report.within(f"{name}: every power, pixels", np.nanmedian(np.abs(seen - power)) / -up, 1.1)
        report.check(f"{name}: few points", len(points) <= min(query["nf"], 4 * 2 * 1200), str(len(points)))
        title = root.find(SPACE + "title").text
        told = float(re.search(r"Best period ([\d.]+)", title)[1])
        report.within(f"{name}: the title's period", abs(told - result["best_period"]), 1e-5 * told)


def main():
    report = Report()
    with Daemon() as daemon:
        test_document(daemon, report)
        test_numbers(daemon, report)
    report.end()


main()
