"""Services to be measured, each a process of our own on a free port of 127.0.0.1, stopped by its own
handle: kilnd, the peer service, nginx with one static file. Nothing but the standard library."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

NGINX = """
daemon off;
pid {folder}/pid;
error_log {folder}/log warn;
worker_processes auto;
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    open_file_cache max=16;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = {path} {{ default_type image/png; alias {folder}/file; }}
    }}
}}
"""


class Missing(Exception):
    """What a service lacks on this machine."""


def fetch(url, timeout=60):
    """(status, body)"""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Service:
    """Context manager: `url` and `pid` of a running process."""

    def __init__(self, name, ready):
        self.name, self.ready = name, ready
        self.process = self.port = None
        self.told = ""

    def command(self):
        raise NotImplementedError

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="kiln-load-")
        self.folder = pathlib.Path(self.temporary.name)
        self.port_file = self.folder / "port"
        self.log = open(self.folder / "output", "w+", encoding="utf-8", errors="replace")
        try:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=self.log,
                                            stderr=self.log)
            self._wait()
        except FileNotFoundError as error:
            self.__exit__()
            raise Missing(f"{self.name}: {error.filename} is not there") from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def _is_ready(self):
        if self.port is None and self.port_file.exists():
            self.port = int(self.port_file.read_text() or 0) or None
        try:
            status, body = fetch(self.url + self.ready, 10) if self.port else (0, b"")
        except OSError:
            return False
        self.told = body[:300].decode(errors="replace") if status != 200 else ""
        return status == 200

    def _wait(self):
        end = time.monotonic() + 60
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise Missing(f"{self.name} is not ready: {self.told} {self.log.read().strip()[-400:]}")
            time.sleep(0.02)

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        self.temporary.cleanup()


class Kiln(Service):
    def __init__(self, program, device, arguments=()):
        super().__init__("kilnd", "/readyz")
        self.program, self.device, self.arguments = program, device, arguments

    def command(self):
        return [self.program, "--listen", "127.0.0.1:0", "--port-file", str(self.port_file),
                "--device", self.device, *self.arguments]

    def describe(self):
        """Names of the devices that it uses."""
        devices = json.loads(fetch(self.url + "/v1/devices")[1])["devices"]
        return ", ".join(f"{device['name']} {device['description'].get('name', '')}".strip()
                         for device in devices if device["state"] == "ready")


class Peer(Service):
    def __init__(self, device, threads):
        super().__init__("the peer service", "/about")
        self.device, self.threads = device, threads
        for module in ("aiohttp", "numpy", "PIL"):
            if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True,
                              check=False).returncode:
                raise Missing(f"the peer service needs {module}, which {sys.executable} does not have")

    def command(self):
        program = pathlib.Path(__file__).with_name("peer_service.py")
        return [sys.executable, str(program), "--port-file", str(self.port_file), "--device",
                self.device, "--threads", str(self.threads)]

    def describe(self):
        return fetch(self.url + "/about")[1].decode()


class Nginx(Service):
    """Answers `path` with the same bytes always."""

    def __init__(self, path, content):
        super().__init__("nginx", path)
        self.path, self.content = path, content
        self.program = os.environ.get("NGINX") or shutil.which("nginx") or shutil.which(
            "nginx", path="/usr/sbin:/usr/local/sbin")
        if not self.program:
            raise Missing("nginx is not installed")

    def command(self):
        self.port = free_port()
        (self.folder / "file").write_bytes(self.content)
        configuration = self.folder / "configuration"
        configuration.write_text(NGINX.format(folder=self.folder, port=self.port, path=self.path,
                                              user="user root;" if os.geteuid() == 0 else ""))
        return [self.program, "-e", str(self.folder / "log"), "-c", str(configuration)]

    def describe(self):
        told = subprocess.run([self.program, "-v"], capture_output=True, text=True, check=False)
        return told.stderr.strip().removeprefix("nginx version: ")
