"""A network in float32, int8 and int4: time of a call, memory of the weights, and error.

    python -m benchmarks.quantization [--torch PYTHON] [--json FILE]

The forms run in turns, in this process. torch's dynamic quantisation runs before them, in an interpreter that has
torch, with the same number of threads.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess

import numpy as np

import functorch_like as ft
from benchmarks.saving import save
from benchmarks.worker.clock import repeated
from functorch_like import nn, tree

ROUNDS = 5
SIZES = (1024, 4096, 4096, 1024)
BATCHES = (1, 16, 128)
POLICIES = ("int8", "int8_weights", "int4", "int4_weights")
TORCH = """
import json, statistics, time, torch
torch.set_num_threads({threads})
sizes, found = {sizes}, {{}}
layers = []
for a, b in zip(sizes, sizes[1:]):
    layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers[:-1]).eval()
small = torch.ao.quantization.quantize_dynamic(model, {{torch.nn.Linear}}, dtype=torch.qint8)
with torch.inference_mode():
    for batch in {batches}:
        x = torch.randn(batch, sizes[0])
        for name, f in (("torch float32", model), ("torch int8", small)):
            f(x)
            seconds = []
            for _ in range(15):
                begin = time.perf_counter()
                f(x)
                seconds.append(time.perf_counter() - begin)
            found.setdefault(name, {{}})[batch] = statistics.median(seconds)
print(json.dumps(found))
"""


def model(params: list[tuple], x: ft.Array) -> ft.Array:
    """A multi-layer perceptron."""
    for w, b in params[:-1]:
        x = nn.relu(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def measure() -> tuple[dict[str, dict[int, float]], dict[str, tuple[float, float]]]:
    """Return the median seconds by policy and batch, and the megabytes and relative error by policy."""
    draw = np.random.default_rng(0)
    pairs = list(itertools.pairwise(SIZES))
    params = [
        (draw.normal(size=s).astype(np.float32) / np.float32(s[0] ** 0.5), np.zeros(s[1], np.float32)) for s in pairs
    ]
    kinds = {"float32": ft.device_put(params)} | {p: nn.quantize(params, p) for p in POLICIES}
    seconds: dict[str, dict[int, float]] = {name: {} for name in kinds}
    about = {}
    for batch in BATCHES:
        x = ft.device_put(draw.normal(size=(batch, SIZES[0])).astype(np.float32))
        call = ft.jit(model)
        samplers = {n: repeated(lambda p=p: call(p, x), ft.block_until_ready) for n, p in kinds.items()}  # noqa: B023
        samples = {name: [] for name in kinds}
        for _ in range(ROUNDS):
            for name, sample in samplers.items():
                samples[name].append(sample())
        exact = np.asarray(call(kinds["float32"], x))
        for name, p in kinds.items():
            seconds[name][batch] = statistics.median(samples[name])
            error = float(np.linalg.norm(np.asarray(call(p, x)) - exact) / np.linalg.norm(exact))
            about[name] = sum(leaf.nbytes for leaf in tree.leaves(p)) / 1e6, error
    return seconds, about


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    beside = {}
    if options.torch:
        code = TORCH.format(threads=len(os.sched_getaffinity(0)), sizes=SIZES, batches=BATCHES)
        done = subprocess.run([options.torch, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
        beside = {n: {int(k): s for k, s in row.items()} for n, row in json.loads(done.stdout.splitlines()[-1]).items()}
    seconds, about = measure()
    print(f"{'weights':16}" + "".join(f"{f'batch {b}':>12}" for b in BATCHES) + f"{'MB':>10}{'error':>10}   (ms)")
    for name, row in {**beside, **seconds}.items():
        megabytes, error = about.get(name, (float("nan"),) * 2)
        shown = "" if name in beside else f"{megabytes:10.1f}{error:10.4f}"
        print(f"{name:16}" + "".join(f"{1e3 * row[b]:12.3f}" for b in BATCHES) + shown)
    if options.json:
        figures = {"sizes": SIZES, "seconds": {**beside, **seconds}, "megabytes and error": about}
        save(options.json, [], rounds=ROUNDS, **figures)


if __name__ == "__main__":
    main()
