"""Physical limits of the machine, measured in the same run: the program `limits` for the cores, small
kernels through CuPy for a GPU. A limit that could not be measured is left out with its reason."""

import os
import pathlib
import subprocess

from clock import Effort, percentile, repeat_device

CHAINS = r"""
extern "C" __global__ void chains(TYPE *out, long steps) {
    TYPE x[8], a = (TYPE)0.9999, b = (TYPE)1e-7;
    for (int k = 0; k < 8; k++) x[k] = (TYPE)(threadIdx.x + k);
    for (long i = 0; i < steps; i++) {
        #pragma unroll
        for (int r = 0; r < 16; r++)
            #pragma unroll
            for (int k = 0; k < 8; k++) x[k] = fma(x[k], a, b);
    }
    TYPE sum = 0;
    for (int k = 0; k < 8; k++) sum += x[k];
    if (sum == (TYPE)-1) out[0] = sum;
}
"""


class Limits:
    """Rates by name (per second), the lines to print, and how many cores there are."""

    def __init__(self):
        self.rates, self.lines, self.reasons, self.cores = {}, [], [], os.cpu_count() or 1

    def add(self, name, what, rate, unit, best=None):
        self.rates[name] = rate
        scale, prefix = (1e12, "T") if rate >= 1e12 else (1e9, "G")
        high = f"{best / scale:.2f}" if best else "–"
        self.lines.append(f"| {what} | {rate / scale:.2f} | {high} | {prefix}{unit} |")

    def get(self, name):
        return self.rates.get(name)

    def issue(self, precision, mix):
        """Instructions a second, one a lane, of a mix of fused and plain additions."""
        return self.get(f"issue{mix}_{precision}")

    def markdown(self):
        out = []
        if self.lines:
            out += ["| limit, measured in this run | median | best | unit |", "|---|---|---|---|"]
            out += self.lines
        return out + ["", *(f"- {reason}" for reason in self.reasons)]


CPU_NAMES = {
    "fma_fp32": ("fused multiply-add, fp32, all cores", "FLOP/s"),
    "fma_fp64": ("fused multiply-add, fp64, all cores", "FLOP/s"),
    "issue31_fp32": ("3 multiply-adds to 1 addition, fp32", "lane instructions/s"),
    "issue31_fp64": ("3 multiply-adds to 1 addition, fp64", "lane instructions/s"),
    "issue11_fp32": ("1 multiply-add to 1 addition, fp32", "lane instructions/s"),
    "issue11_fp64": ("1 multiply-add to 1 addition, fp64", "lane instructions/s"),
    "copy_memory": ("copy in memory, read + written", "B/s"),
    "copy_cache": ("copy within 128 KiB a core, read + written", "B/s"),
}


def program_find(kilnd):
    """$KILN_LIMITS, or `limits` beside the daemon."""
    return os.environ.get("KILN_LIMITS") or str(pathlib.Path(kilnd).resolve().parent / "limits")


def cpu_measure(kilnd, quick):
    limits, program = Limits(), program_find(kilnd)
    try:
        text = subprocess.run([program, "0.05" if quick else "0.3"], check=True, timeout=120,
                              capture_output=True, text=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        limits.reasons.append(f"limits of the cores: missing, {error}")
        return limits
    for line in text.splitlines():
        name, unit, median, best = line.split("\t")
        if name == "vectors":
            limits.reasons.append(f"vectors: {unit}")
        elif name == "cores":
            limits.cores = int(median)
        elif name in CPU_NAMES:
            limits.add(name, CPU_NAMES[name][0], float(median), CPU_NAMES[name][1], float(best))
    return limits


def _best_ms(cupy, call, rounds):
    times, _ = repeat_device(cupy, call, Effort(0, rounds, rounds))
    return percentile(times, 50), min(times)


def gpu_measure(cupy, reason, quick):
    """The GPU's limits; the lane instructions are the same whatever the mix."""
    limits = Limits()
    if cupy is None:
        limits.reasons.append(f"limits of the GPU: missing, they are measured through CuPy ({reason})")
        return limits
    rounds, device = 5 if quick else 15, cupy.cuda.Device()
    blocks, threads, steps = device.attributes["MultiProcessorCount"] * 16, 256, 2000
    for name, kind in (("fp32", "float"), ("fp64", "double")):
        kernel = cupy.RawKernel(CHAINS.replace("TYPE", kind), "chains")
        out = cupy.zeros(1, name.replace("fp", "float"))
        median, best = _best_ms(cupy, lambda: kernel((blocks,), (threads,), (out, steps)), rounds)
        flop = 2.0 * 8 * 16 * steps * blocks * threads
        limits.add(f"fma_{name}", f"fused multiply-add, {name}", flop / median * 1e3, "FLOP/s",
                   flop / best * 1e3)
        for mix in ("31", "11"):
            limits.rates[f"issue{mix}_{name}"] = flop / 2 / median * 1e3
    side = 4096
    a, b = cupy.random.random((side, side)), cupy.random.random((side, side))
    median, best = _best_ms(cupy, lambda: a @ b, rounds)
    limits.add("gemm_fp64", f"matrix product {side}³, fp64", 2e3 * side**3 / median, "FLOP/s",
               2e3 * side**3 / best)
    source = cupy.random.random(1 << 28)
    target = cupy.empty_like(source)
    median, best = _best_ms(cupy, lambda: cupy.copyto(target, source), rounds)
    limits.add("copy_memory", "copy in device memory, read + written",
               2e3 * source.nbytes / median, "B/s", 2e3 * source.nbytes / best)
    pinned = cupy.cuda.alloc_pinned_memory(1 << 28)
    for name, what, copy in (
            ("copy_up", "copy to the device, pinned", target.data.copy_from_host),
            ("copy_down", "copy from the device, pinned", target.data.copy_to_host)):
        median, best = _best_ms(cupy, lambda: copy(pinned.ptr, 1 << 28), rounds)
        limits.add(name, what, 1e3 * (1 << 28) / median, "B/s", 1e3 * (1 << 28) / best)
    return limits
