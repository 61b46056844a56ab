"""Effect of settings of `functorch_like.backends` on the device at hand, in error and in time.

    python -m benchmarks.settings [--json FILE] [--size 4096]

Products and convolutions of float32 under each precision: the largest error against float64 relative to the largest
element, and the time relative to full float32. Scatter-add with and without determinism: the number of runs, of 20,
whose bits differ from the first, and the time relative to that without. Measurements take turns, in one process.
"""

import argparse
import statistics

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from benchmarks.saving import save
from benchmarks.worker.clock import repeated
from functorch_like import backends, lax

ROUNDS = 7
PRECISIONS = {
    "ieee": {},
    "tf32": {"fp32_precision": "tf32"},
    "bf16": {"fp32_precision": "bf16"},
    "bf16x3": {"fp32_precision": "bf16x3"},
    "bf16x6": {"fp32_precision": "bf16x6"},
    "bf16x9": {"fp32_precision": "bf16x9"},
}


def in_turns(variants: dict[str, dict], fun, *args) -> dict[str, float]:
    """Return the median seconds of a jitted function under each set of flags."""
    samplers = {}
    for name, flags in variants.items():
        block = backends.flags(flags)
        samplers[name] = repeated(block(lambda: fun(*args)), ft.block_until_ready)
    seconds = {name: [] for name in samplers}
    for _ in range(ROUNDS):
        for name, sample in samplers.items():
            seconds[name].append(sample())
    return {name: statistics.median(each) for name, each in seconds.items()}


def precision(fun, exact: np.ndarray, *args) -> dict[str, dict[str, float]]:
    """Return the error and relative time of a function under each precision."""
    times = in_turns(PRECISIONS, fun, *args)
    results = {}
    for name, flags in PRECISIONS.items():
        with backends.flags(flags):
            error = np.abs(np.asarray(fun(*args), np.float64) - exact).max() / np.abs(exact).max()
        results[name] = {"error": float(error), "time": times[name] / times["ieee"]}
    return results


def scatter(size: int) -> dict[str, dict[str, float]]:
    """Return the runs with other bits, and the relative time, of a scatter-add with many collisions."""
    draw = np.random.default_rng(0)
    values = ft.device_put(draw.standard_normal(size).astype(np.float32))
    index = ft.device_put(draw.integers(0, 101, size).astype(np.int32))
    add = ft.jit(lambda values, index: fnp.zeros(101).at[index].add(values))
    variants = {"off": {}, "on": {"deterministic_algorithms": "on"}}
    times = in_turns(variants, add, values, index)
    results = {}
    for name, flags in variants.items():
        with backends.flags(flags):
            first = np.asarray(add(values, index)).tobytes()
            other = sum(np.asarray(add(values, index)).tobytes() != first for _ in range(20))
        results[name] = {"runs with other bits": other, "time": times[name] / times["off"]}
    return results


def measure(size: int) -> dict[str, dict]:
    """Return all tables, by name."""
    draw = np.random.default_rng(0)
    a, b = (draw.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    image = draw.standard_normal((8, 32, 64, 64)).astype(np.float32)
    kernel = draw.standard_normal((32, 32, 3, 3)).astype(np.float32)
    conv = ft.jit(lambda x, k: lax.conv(x, k, (1, 1), "SAME"))
    exact = np.asarray(conv(image.astype(np.float64), kernel.astype(np.float64)))
    put = ft.device_put
    return {
        f"product of {size} by {size}": precision(ft.jit(fnp.matmul), a.astype(np.float64) @ b, put(a), put(b)),
        "convolution": precision(conv, exact, put(image), put(kernel)),
        "scatter-add of 100,000": scatter(100_000),
    }


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    parser.add_argument("--size", type=int, default=4096, help="of the matrices")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    tables = measure(options.size)
    for title, table in tables.items():
        print(title)
        for name, row in table.items():
            print(f"  {name:8}" + "".join(f"{key} {value:<12.3g}" for key, value in row.items()))
    if options.json:
        device = ft.devices()[0]
        save(options.json, [], device=f"{device.platform}: {device.device_kind}", tables=tables)


if __name__ == "__main__":
    main()
