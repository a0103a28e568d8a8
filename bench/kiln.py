"""A kilnd of our own, and a client that adds as little as Python can: one keep-alive connection, raw
sockets, answers received into one buffer. The daemon is stopped by its own process handle."""

import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import numpy as np

from clock import percentile

PHASES = ("queue", "upload", "kernel", "download", "encode", "total")


class Answer:
    """Status, headers (lower-case names), body (valid until the next request), wall milliseconds."""

    def __init__(self, status, headers, body, wall):
        self.status, self.headers, self.body, self.wall = status, headers, body, wall

    def phases(self):
        found = {}
        for part in self.headers.get("server-timing", "").split(","):
            name, _, value = part.strip().partition(";dur=")
            if value:
                found[name] = float(value)
        return found

    def npy(self):
        return np.load(io.BytesIO(bytes(self.body)), allow_pickle=False)


class Run:
    """Many answers to one request: wall times and the daemon's own times of each phase."""

    def __init__(self, name):
        self.name, self.reason, self.answer = name, None, None
        self.walls, self.phases = [], {phase: [] for phase in PHASES}

    def add(self, answer):
        self.walls.append(answer.wall)
        for name, value in answer.phases().items():
            self.phases.setdefault(name, []).append(value)

    @property
    def kernels(self):
        return self.phases["kernel"]

    def rate(self, amount):
        """`amount` of work a second of the median kernel; 0 where that is not known."""
        middle = percentile(self.kernels, 50) if self.kernels else 0
        return amount / middle * 1e3 if middle > 0 else 0


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array))
    return buffer.getvalue()


class Kiln:
    """Context manager: the daemon on one device, and the connection to it."""

    def __init__(self, program, device, arguments=()):
        self.program, self.device, self.arguments = program, device, list(arguments)
        self.process = self.link = None
        self.buffer = bytearray(1 << 20)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        port_file = pathlib.Path(self.folder.name) / "port"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        command = [self.program, "--listen", "127.0.0.1:0", "--port-file", str(port_file),
                   "--device", self.device,
                   "--cache-bytes", "0",  # the same request again and again is to run its job
                   *self.arguments]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        try:
            self._wait(lambda: port_file.exists() and port_file.read_text().strip(), "listen")
            self.port = int(port_file.read_text())
            self._wait(lambda: self.request("GET", "/readyz").status == 200, "get its device ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.link:
            self.link.close()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def _wait(self, done, what):
        end = time.monotonic() + 120
        while not done():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                sys.stderr.write(self.log.read())
                raise RuntimeError(f"{self.program} did not {what}")
            time.sleep(0.02)

    def _connect(self):
        self.link = socket.create_connection(("127.0.0.1", self.port), timeout=900)
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, method, path, body=b"", media=None):
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        if media:
            head += f"Content-Type: {media}\r\n"
        if body or method == "POST":
            head += f"Content-Length: {len(body)}\r\n"
        head = (head + "\r\n").encode()
        for attempt in (0, 1):
            try:
                if self.link is None:
                    self._connect()
                return self._exchange(head, body)
            except ConnectionError:
                # The daemon may have closed an idle connection: a fresh one must work.
                self.link.close()
                self.link = None
                if attempt:
                    raise

    def _exchange(self, head, body):
        start = time.perf_counter()
        if len(body) < 1 << 16:
            self.link.sendall(head + body)
        else:
            self.link.sendall(head)
            self.link.sendall(body)
        have, split = 0, -1
        while split < 0:
            have += self._receive(have)
            split = self.buffer.find(b"\r\n\r\n", 0, have)
        lines = self.buffer[:split].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        first, size = split + 4, int(headers.get("content-length", 0))
        if first + size > len(self.buffer):
            self.buffer.extend(bytes(first + size - len(self.buffer)))
        while have < first + size:
            have += self._receive(have)
        wall = (time.perf_counter() - start) * 1e3
        return Answer(int(lines[0].split()[1]), headers, self.buffer[first:first + size], wall)

    def _receive(self, have):
        with memoryview(self.buffer) as view:
            got = self.link.recv_into(view[have:])
        if got == 0:
            raise ConnectionResetError("the daemon closed the connection")
        return got

    def job(self, name, path, query, body, media, effort):
        """A Run of the same request, repeated with the given effort."""
        run = Run(name)
        method = "POST" if body else "GET"
        words = {k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items()}
        path += "?" + urllib.parse.urlencode(words)
        while not effort.enough(run.walls):
            try:
                answer = self.request(method, path, body, media)
            except OSError as error:
                run.reason = f"failed: {error}"
                return run
            if answer.status != 200:
                run.reason = f"not available: HTTP {answer.status}, {self._reason(answer)}"
                return run
            first, run.answer = run.answer is None, answer
            if first and not effort.alone(answer.wall):
                continue
            run.add(answer)
            if first:
                break
        return run

    @staticmethod
    def _reason(answer):
        """The fields that the problem document complains of."""
        try:
            problem = json.loads(bytes(answer.body))
            errors = [f"`{e['field']}` {e['reason']}" for e in problem.get("errors", [])]
            return "; ".join(errors) or problem.get("detail") or problem["title"]
        except (ValueError, KeyError):
            return bytes(answer.body[:200]).decode(errors="replace")


def program_find(root):
    """The binary: $KILND, or the one that the build made."""
    return os.environ.get("KILND") or str(root / "build" / "kilnd")
