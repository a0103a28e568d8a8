"""A job of each kind through the client that openapi-python-client makes."""

import base64
import io
import json
import math
import sys

from kiln_client import Client
from kiln_client.api.daemon import get_devices, get_job_types
from kiln_client.api.jobs import (get_mandelbrot, get_mandelbrot_tile, post_jacobi, post_laplacian,
                                  post_lomb_scargle, post_mandelbrot)
from kiln_client.models import (GetMandelbrotFormat, Jacobi, JacobiFormat, JacobiResult, Laplacian,
                                LaplacianFormat, LombScargleResult, Mandelbrot, MandelbrotFormat,
                                MandelbrotResult, PostLaplacianFilesBody, PostLombScargleJsonBody, Problem)
from kiln_client.types import File

PICTURE = b"P5 4 3 255\n" + bytes(range(0, 240, 20))
client = Client(base_url=sys.argv[1])


def good(response, kind=None):
    assert response.status_code == 200, response.content
    assert kind is None or isinstance(response.parsed, kind), response.parsed
    return response


def told(response, kind):
    """A result whose format the request chose: the client takes it for a file."""
    return kind.from_dict(json.loads(good(response, File).parsed.payload.read()))


result = told(get_mandelbrot.sync_detailed(client=client, width=64, height=48,
                                           format_=GetMandelbrotFormat.JSON), MandelbrotResult)
assert result.width == 64 and result.escaped > 0
result = told(post_mandelbrot.sync_detailed(
    client=client, body=Mandelbrot(width=32, height=32, format_=MandelbrotFormat.JSON)), MandelbrotResult)
assert result.parameters.max_iter == 400
tile = good(get_mandelbrot_tile.sync_detailed(1, 0, "1.png", client=client), File)
assert tile.content.startswith(b"\x89PNG")

text = base64.b64encode(PICTURE).decode()
laplacian = good(post_laplacian.sync_detailed(client=client, body=Laplacian(
    image=text, format_=LaplacianFormat.PNG)))
assert laplacian.content.startswith(b"\x89PNG")
form = good(post_laplacian.sync_detailed(client=client, body=PostLaplacianFilesBody(
    image=File(io.BytesIO(PICTURE), "in.pgm", "image/x-portable-graymap"))))
assert form.content.startswith(b"\x93NUMPY")
jacobi = told(post_jacobi.sync_detailed(client=client, body=Jacobi(
    image=base64.b64encode(laplacian.content).decode(), iterations=10, offset=32768.0,
    format_=JacobiFormat.JSON)), JacobiResult)
assert jacobi.sweeps == 10

times = [0.7 * i + 0.1 * math.sin(i) for i in range(60)]
curve = good(post_lomb_scargle.sync_detailed(client=client, body=PostLombScargleJsonBody(
    t=times, y=[math.sin(2 * math.pi * t / 5) for t in times], maximum_frequency=0.6)), LombScargleResult)
assert abs(curve.parsed.best_period - 5) < 0.2

refused = post_mandelbrot.sync_detailed(client=client, body=Mandelbrot(width=0))
assert refused.status_code == 422 and isinstance(refused.parsed, Problem)
assert refused.parsed.errors[0].field == "width"
assert good(get_devices.sync_detailed(client=client)).parsed.devices
assert good(get_job_types.sync_detailed(client=client)).parsed.jobs
print("openapi-python-client: a job of each kind ran")
