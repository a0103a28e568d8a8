"""A kilnd for a test: started on a free port, asked over one keep-alive connection, stopped by pid.

KILND           the binary (default: build/kilnd of the source tree)
KILN_TEST_DEVICE device it serves (default: cpu)
KILN_URL        use this running daemon instead of starting one
KILN_SOURCE     the source tree (default: two folders up)
"""

import base64
import http.client
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse

SOURCE = pathlib.Path(os.environ.get("KILN_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
DATA = SOURCE.parent / "shared" / "data"
SKIP = 77

PNG = "image/png"
PGM = "image/x-portable-graymap"
NPY = "application/x-npy"
CSV = "text/csv"
JSON = "application/json"


def skip(reason):
    """Ends the test as skipped."""
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def need(*modules):
    """Imports modules by name; skips the test where one is missing."""
    found = []
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ImportError as error:
            skip(f"{name} is not installed ({error})")
    return found[0] if len(found) == 1 else found


class Reply:
    """One answer: status, headers (lower-case names) and body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    def json(self):
        return json.loads(self.body)

    def npy(self):
        import numpy

        return numpy.load(io.BytesIO(self.body), allow_pickle=False)


def npy_bytes(array, fortran=False):
    """An array as the bytes of an .npy file."""
    import numpy

    buffer = io.BytesIO()
    numpy.save(buffer, numpy.asfortranarray(array) if fortran else numpy.ascontiguousarray(array))
    return buffer.getvalue()


def pgm_bytes(array, maximum=255):
    """An h×w (PGM) or h×w×3 (PPM) array of integers as a binary file."""
    import numpy

    array = numpy.asarray(array)
    magic = "P5" if array.ndim == 2 else "P6"
    head = f"{magic}\n{array.shape[1]} {array.shape[0]}\n{maximum}\n".encode()
    return head + array.astype("u1" if maximum < 256 else ">u2").tobytes()


def pgm_read(data):
    """The array in a binary PGM or PPM file with at most one comment, on its second line."""
    import numpy

    magic, rest = data.split(b"\n", 1)
    words = [magic] + (rest.split(b"\n", 1)[1] if rest.startswith(b"#") else rest).split(None, 3)
    magic, width, height, maximum = words[0], *map(int, words[1:4])
    start = len(data) - width * height * (3 if magic == b"P6" else 1) * (2 if maximum > 255 else 1)
    samples = numpy.frombuffer(data[start:], ">u2" if maximum > 255 else "u1")
    shape = (height, width, 3) if magic == b"P6" else (height, width)
    return samples.reshape(shape).astype(int)


def text_base64(data):
    return base64.b64encode(data).decode()


class Daemon:
    """Context manager around a daemon and a connection to it."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.process = None
        self.connection = None
        self.folder = None

    def __enter__(self):
        url = os.environ.get("KILN_URL")
        if url:
            parts = urllib.parse.urlsplit(url)
            self.host, self.port = parts.hostname, parts.port or 80
        else:
            self._start()
        try:
            self._wait_ready(120)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.connection:
            self.connection.close()
        if self.process:
            self.process.terminate()
            try:
                code = self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                code = self.process.wait()
            self.log.close()
            self.folder.cleanup()
            if code != 0 and _ == (None, None, None):
                raise AssertionError(f"the daemon's exit code is {code} instead of 0")

    def _start(self):
        program = os.environ.get("KILND", str(SOURCE / "build" / "kilnd"))
        self.folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self.folder.name) / "port"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        device = os.environ.get("KILN_TEST_DEVICE", "cpu")
        command = [program, "--listen", "127.0.0.1:0", "--port-file", str(port_file),
                   "--device", device, *self.arguments]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not (port_file.exists() and port_file.read_text().strip()):
            if self.process.poll() is not None or time.monotonic() > end:
                self._tell_log()
                raise RuntimeError(f"{' '.join(command)} did not listen")
            time.sleep(0.02)
        self.host, self.port = "127.0.0.1", int(port_file.read_text())

    def _tell_log(self):
        self.log.flush()
        self.log.seek(0)
        print(self.log.read(), file=sys.stderr)

    def _wait_ready(self, seconds):
        end = time.monotonic() + seconds
        while True:
            reply = self.request("GET", "/readyz")
            if reply.status == 200:
                return
            if time.monotonic() > end:
                if self.process:
                    self._tell_log()
                raise RuntimeError(f"not ready after {seconds} s: {reply.body!r}")
            time.sleep(0.05)

    def request(self, method, path, /, body=None, media=None, accept=None, headers=None, **query):
        """One request. `query` becomes the query string; a dict as body is sent as JSON."""
        sent = dict(headers or {})
        if isinstance(body, dict):
            body, media = json.dumps(body).encode(), media or JSON
        if media:
            sent["Content-Type"] = media
        if accept:
            sent["Accept"] = accept
        if query:
            path += "?" + urllib.parse.urlencode(
                {k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items()})
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, self.port, timeout=600)
            try:
                self.connection.request(method, path, body, sent)
                answer = self.connection.getresponse()
                return Reply(answer.status, answer.getheaders(), answer.read())
            except (http.client.HTTPException, ConnectionError):
                # An idle keep-alive connection may have been closed; a fresh one must work.
                self.connection.close()
                self.connection = None
                if attempt:
                    raise

    def get(self, path, **more):
        return self._good(self.request("GET", path, **more))

    def post(self, path, body, **more):
        return self._good(self.request("POST", path, body, **more))

    @staticmethod
    def _good(reply):
        assert reply.status == 200, f"HTTP {reply.status}: {reply.body[:2000].decode(errors='replace')}"
        return reply


class Report:
    """Collects comparisons, prints each, and remembers whether all held."""

    def __init__(self):
        self.failures = 0
        self.count = 0
        self.missing = []

    def check(self, name, held, text=""):
        self.count += 1
        if not held:
            self.failures += 1
        print(f"{'ok  ' if held else 'FAIL'} {name}{': ' if text else ''}{text}", flush=True)
        return held

    def within(self, name, error, bound):
        """`error` is a number or array of absolute errors; NaN never holds."""
        import numpy

        most = float(numpy.max(error)) if numpy.size(error) else 0.0
        return self.check(name, most <= bound, f"maximum error {most:.3g} (bound {bound:.3g})")

    def equal(self, name, got, want):
        """Arrays of the same type, shape and bytes."""
        import numpy

        got, want = numpy.asarray(got), numpy.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            return self.check(name, False, f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}")
        bad = int(numpy.count_nonzero(got != want))
        if not bad:
            return self.check(name, True, f"{got.size} elements equal")
        where = tuple(int(i[0]) for i in numpy.nonzero(got != want))
        return self.check(name, False, f"{bad} of {got.size} elements differ, first at {where}: "
                                       f"{got[where]} instead of {want[where]}")

    def data(self, name):
        """Path of a real input. Where it is not here, None, and the test ends as skipped even though
        the rest of it was made: what was left out is not to pass for tested."""
        path = DATA / name
        if path.is_file():
            return path
        self.missing.append(name)
        print(f"skip {name} is not in {DATA}", flush=True)
        return None

    def end(self):
        left_out = f", left out for want of data: {', '.join(self.missing)}" if self.missing else ""
        print(f"{self.count} comparisons, {self.failures} failed{left_out}")
        sys.exit(1 if self.failures else SKIP if self.missing else 0)
