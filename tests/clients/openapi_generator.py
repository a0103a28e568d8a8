"""A job of each kind through the Python client that openapi-generator makes."""

import base64
import json
import math
import sys

import openapi_client
from openapi_client.models import Jacobi, Laplacian, Mandelbrot, PostLombScargleRequest

PICTURE = b"P5 4 3 255\n" + bytes(range(0, 240, 20))
client = openapi_client.ApiClient(openapi_client.Configuration(host=sys.argv[1]))
jobs = openapi_client.JobsApi(client)

result = json.loads(jobs.get_mandelbrot(width=64, height=48, format="json"))
assert result["width"] == 64 and result["escaped"] > 0
result = json.loads(jobs.post_mandelbrot(mandelbrot=Mandelbrot.from_dict(
    {"width": 32, "height": 32, "format": "json"})))
assert result["parameters"]["max_iter"] == 400
assert jobs.get_mandelbrot_tile(1, 0, "1.png").startswith(b"\x89PNG")

laplacian = jobs.post_laplacian(laplacian=Laplacian.from_dict(
    {"image": base64.b64encode(PICTURE).decode(), "format": "png"}))
assert laplacian.startswith(b"\x89PNG")
jacobi = json.loads(jobs.post_jacobi(jacobi=Jacobi.from_dict(
    {"image": base64.b64encode(laplacian).decode(), "iterations": 10, "offset": 32768,
     "format": "json"})))
assert jacobi["sweeps"] == 10

times = [0.7 * i + 0.1 * math.sin(i) for i in range(60)]
curve = jobs.post_lomb_scargle(post_lomb_scargle_request=PostLombScargleRequest.from_dict(
    {"t": times, "y": [math.sin(2 * math.pi * t / 5) for t in times], "maximum_frequency": 0.6}))
assert abs(curve.best_period - 5) < 0.2

try:
    jobs.get_mandelbrot(format="bmp")
    raise AssertionError("a format that there is not was taken")
except (openapi_client.ApiException, ValueError):
    pass
daemon = openapi_client.DaemonApi(client)
assert daemon.get_devices().devices and daemon.get_job_types().jobs
print("openapi-generator, Python: a job of each kind ran")
