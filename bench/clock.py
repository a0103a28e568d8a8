"""Times: repeated calls within a budget, and their percentiles. Milliseconds throughout."""

import math
import time


def percentile(values, percent):
    """Nearest rank: a value that was really measured."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


class Effort:
    """How long to measure: until `budget` milliseconds are spent, but `least` to `most` times. A first
    call, which otherwise only warms up, counts alone where it took more than five budgets."""

    def __init__(self, budget, least, most):
        self.budget, self.least, self.most = budget, least, most

    def alone(self, first):
        return first > 5 * self.budget

    def enough(self, times):
        return len(times) >= self.least and (len(times) >= self.most or sum(times) >= self.budget)


def repeat(call, effort):
    """(times, last result)"""
    start = time.perf_counter()
    result = call()
    first = (time.perf_counter() - start) * 1e3
    if effort.alone(first):
        return [first], result
    times = []
    while not effort.enough(times):
        start = time.perf_counter()
        result = call()
        times.append((time.perf_counter() - start) * 1e3)
    return times, result


def repeat_device(cupy, call, effort):
    """(times, last result) by events on CuPy's current stream: what the device and the launches take."""
    times, result = [], call()
    cupy.cuda.get_current_stream().synchronize()
    while not effort.enough(times):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        result = call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return times, result
