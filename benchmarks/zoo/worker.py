"""Measurement of one model on one side, in its own process: `python -m benchmarks.zoo.worker MODEL SIDE SIZE SAMPLES`.

Prints one line of JSON: seconds of the first and of later calls, forward and of a training step; peak memory; and the
loss after three steps, which must be the same on every side.
"""

import json
import os
import platform
import resource
import statistics
import sys
import time
from importlib import import_module
from importlib.metadata import version

import numpy

CPU = os.environ.get("FT_BENCH_CLOCK") == "cpu"
RATE = 1e-3
STEPS = 3
ENOUGH = 0.05  # seconds of a sample


def main(name: str, side: str, size: str, samples: int) -> dict:
    """Measure, and return the figures."""
    cores = os.environ.get("FT_BENCH_CORES")
    if cores:  # before the number of cores is read
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    os.environ["FT_ZOO_SIDE"] = "ours" if side == "ours" else "jax"
    if side in ("torch", "compiled"):
        from benchmarks.zoo import torch_models

        shapes, model, runs = torch_models.shapes(name), torch_models.load(name), torch_models.runs
    else:
        shapes = model = import_module(f"benchmarks.zoo.models.{name}")
        runs = array_runs
    draw, sizes = numpy.random.default_rng(0), shapes.SIZES[size]
    params, batch = shapes.init(draw, **sizes), shapes.batch(draw, **sizes)
    before = peak()
    forward, step, finish, losses, settle = runs(model, params, batch, side)
    figures = {"forward": timed(forward, finish, settle, samples), "step": timed(step, finish, settle, samples)}
    return {**figures, "megabytes": peak(), "megabytes_before": before, "loss": losses(), "versions": versions(side)}


def array_runs(model, params, batch, side):
    """Return the runs of either package.

    These are the forward pass, a training step, a function that waits for results, the loss after some steps, and a
    function that waits until programs are in their last tier.
    """
    from benchmarks.zoo.side import ft

    tree = ft.tree_util
    first = tree.tree_map(ft.device_put, params)
    batch = tree.tree_map(ft.device_put, batch)
    forward = ft.jit(model.forward)

    @ft.jit
    def step(params, batch):
        loss, slopes = ft.value_and_grad(model.loss)(params, *batch)
        return loss, tree.tree_map(lambda p, g: p - RATE * g, params, slopes)

    state = [first]

    def train():
        loss, state[0] = step(state[0], batch)
        return loss, state[0]

    def losses():
        params = first
        for _ in range(STEPS):
            loss, params = step(params, batch)
        return float(loss)

    def settle():
        for program in (forward, step):
            if hasattr(program, "optimised"):  # JAX's programs have one tier
                program.optimised()

    return lambda: forward(first, *batch), train, ft.block_until_ready, losses, settle


def timed(work, finish, settle, samples: int) -> dict:
    """Return the seconds of the first call, which compiles, and mean seconds of later calls, in the last tier."""
    begin = now()
    finish(work())
    first = now() - begin
    settle()
    begin = now()
    finish(work())
    once = now() - begin
    count = max(1, round(ENOUGH / max(once, 1e-7)))
    seconds = []
    for _ in range(samples):
        begin = now()
        for _ in range(count):
            last = work()
        finish(last)
        seconds.append((now() - begin) / count)
    return {"first": first, "seconds": statistics.median(seconds), "least": min(seconds)}


def now() -> float:
    """Return wall seconds, or the processor seconds of this process and of the compilers that it started."""
    if not CPU:
        return time.perf_counter()
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def peak() -> float:
    """Return the peak memory of the process, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def versions(side: str) -> dict:
    """Return the versions of the packages that the figures depend on."""
    packages = {"ours": ("functorch_like", "jaxlib"), "jax": ("jax", "jaxlib")}.get(side, ("torch",))
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
