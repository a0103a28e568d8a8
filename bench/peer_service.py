"""What one would write instead of kiln: a web service of aiohttp with a CuPy raw kernel (NumPy's array
program where there is no GPU) and PNG by Pillow. Its context is hot, its kernel compiled, nothing is
cached. Answers GET and POST /v1/mandelbrot with kiln's parameters, so that the same scenarios measure it.

    python3 peer_service.py --port-file FILE [--device auto|cpu|cuda] [--level 1] [--threads 0]

`--threads 0` computes in the event loop, which is fastest for one client; more hands requests to a pool,
where zlib and CuPy run side by side. Listens on 127.0.0.1 until it is terminated."""

import argparse
import asyncio
import concurrent.futures
import io
import json
import sys
import time

import numpy as np
from aiohttp import web
from PIL import Image

from mandelbrot import RADIUS, View, array_program

KERNEL = r"""
extern "C" __global__ void picture(float *field, unsigned char *rgb, const unsigned char *colours,
                                   double x0, double y0, double dx, double dy, int width, int height,
                                   int limit, float gamma) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    float a = (float)(x0 + i * dx), b = (float)(y0 - j * dy), x = 0, y = 0, value = 0;
    for (int n = 1; n <= limit; n++) {
        float t = x * x - y * y + a;
        y = 2 * x * y + b;
        x = t;
        float r = x * x + y * y;
        if (r > 1048576.0f) {
            value = n - log2f(0.5f * logf(r) / 6.9314718f);
            break;
        }
    }
    size_t at = (size_t)j * width + i;
    if (field) field[at] = value;
    if (rgb) {
        const unsigned char *colour = colours + 3 * (int)(255.0f * powf(fmaxf(value, 0.0f) / limit, gamma));
        rgb[3 * at] = colour[0];
        rgb[3 * at + 1] = colour[1];
        rgb[3 * at + 2] = colour[2];
    }
}
"""


def colours():
    """256 colours from black over red and yellow to white."""
    at = np.linspace(0, 3, 256)
    return (255 * np.stack([np.clip(at - k, 0, 1) for k in range(3)], 1)).astype(np.uint8)


class Parameters:
    def __init__(self, words):
        def number(name, preset):
            return type(preset)(words.get(name, preset))
        self.view = View("", (number("xmin", -2.25), number("xmax", 0.75), number("ymin", -1.25),
                              number("ymax", 1.25)),
                         number("width", 1500), number("height", 1250), number("max_iter", 400))
        self.gamma = number("gamma", 0.3)
        self.format = words.get("format", "png")


class HostDevice:
    name = "NumPy"

    def __init__(self):
        self.colours = colours()

    def field(self, parameters):
        return array_program(np, parameters.view).astype(np.float32)

    def picture(self, parameters):
        share = self.field(parameters) / np.float32(parameters.view.limit)
        return self.colours[(255 * share ** np.float32(parameters.gamma)).astype(np.uint8)]


class CudaDevice:
    def __init__(self, cupy):
        self.cupy = cupy
        self.name = f"CuPy {cupy.__version__}"
        self.kernel = cupy.RawKernel(KERNEL, "picture")
        self.colours = cupy.asarray(colours())

    def _run(self, parameters, out, is_field):
        view = parameters.view
        xmin, xmax, ymin, ymax = view.edges
        dx, dy = (xmax - xmin) / view.width, (ymax - ymin) / view.height
        null = np.uint64(0)
        self.kernel(((view.width + 31) // 32, (view.height + 7) // 8), (32, 8),
                    (out if is_field else null, null if is_field else out, self.colours,
                     np.float64(xmin + dx / 2), np.float64(ymax - dy / 2), np.float64(dx),
                     np.float64(dy), np.int32(view.width), np.int32(view.height),
                     np.int32(view.limit), np.float32(parameters.gamma)))
        return self.cupy.asnumpy(out)

    def field(self, parameters):
        shape = (parameters.view.height, parameters.view.width)
        return self._run(parameters, self.cupy.empty(shape, np.float32), True)

    def picture(self, parameters):
        shape = (parameters.view.height, parameters.view.width, 3)
        return self._run(parameters, self.cupy.empty(shape, np.uint8), False)


def device_find(wanted):
    if wanted == "cpu":
        return HostDevice()
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
        return CudaDevice(cupy)
    except Exception as error:  # a missing module, driver or device: each has its own exception
        if wanted == "cuda":
            sys.exit(f"peer_service.py: no CuPy on a GPU: {error}")
        return HostDevice()


class Service:
    def __init__(self, device, level, threads):
        self.device, self.level = device, level
        self.pool = concurrent.futures.ThreadPoolExecutor(threads) if threads else None

    def compute(self, parameters):
        """(bytes, media type, seconds of the kernel with its copy, seconds of encoding)"""
        start = time.perf_counter()
        if parameters.format == "png":
            pixels = self.device.picture(parameters)
            middle = time.perf_counter()
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, "PNG", compress_level=self.level)
            media = "image/png"
        else:
            pixels = self.device.field(parameters)
            middle = time.perf_counter()
            buffer = io.BytesIO()
            np.save(buffer, pixels)
            media = "application/x-npy"
        return buffer.getvalue(), media, middle - start, time.perf_counter() - middle

    async def mandelbrot(self, request):
        try:
            words = dict(request.query)
            if request.content_type == "application/json":
                words.update(json.loads(await request.read()))
            parameters = Parameters(words)
        except (ValueError, TypeError) as error:
            return web.Response(status=422, text=str(error))
        if self.pool:
            loop = asyncio.get_running_loop()
            body, media, kernel, encode = await loop.run_in_executor(self.pool, self.compute, parameters)
        else:
            body, media, kernel, encode = self.compute(parameters)
        return web.Response(body=body, content_type=media, headers={
            "Server-Timing": f"kernel;dur={kernel * 1e3:.4f}, encode;dur={encode * 1e3:.4f}"})

    async def about(self, _):
        return web.Response(text=f"aiohttp, {self.device.name}, Pillow level {self.level}")


async def serve(service, port_file):
    app = web.Application()
    app.router.add_route("*", "/v1/mandelbrot", service.mandelbrot)
    app.router.add_get("/about", service.about)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    with open(port_file, "w", encoding="ascii") as file:
        file.write(str(site._server.sockets[0].getsockname()[1]))
    await asyncio.Event().wait()


def main():
    parser = argparse.ArgumentParser(description="The peer service.")
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--level", type=int, default=1, help="of zlib, in PNG")
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    service = Service(device_find(arguments.device), arguments.level, arguments.threads)
    service.compute(Parameters({"width": 64, "height": 64}))
    asyncio.run(serve(service, arguments.port_file))


if __name__ == "__main__":
    main()
