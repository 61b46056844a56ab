"""Times of sorts of float32: with NumPy's kernel, by XLA alone, and in NumPy itself.

    python -m benchmarks.sorting [--json FILE]

Each call sorts new numbers: otherwise branch predictors would learn the comparisons of short sorts. Figures are medians
of processor time. NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" measures NumPy's code for AVX2.
"""

import argparse
import statistics
import time

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from benchmarks.saving import save

CALLS = 9
SHAPES = [(1000,), (10_000,), (100_000,), (1_000_000,), (1000, 1000)]
OPERATIONS = {
    "sort": (np.sort, fnp.sort),
    "argsort": (lambda x: np.argsort(x, kind="stable"), fnp.argsort),
    "median": (lambda x: np.median(x, -1), lambda x: fnp.median(x, axis=-1)),
}


def timed(function, operands):
    """Return the median seconds of a call; the first operand is used for compiling."""
    seconds = []
    for k, x in enumerate(operands):
        started = time.process_time()
        ft.block_until_ready(function(x))
        if k:
            seconds.append(time.process_time() - started)
    return statistics.median(seconds)


def measure(name: str, shape: tuple[int, ...]) -> dict[str, float]:
    """Return the median seconds of NumPy, eager calls, compiled ones, and compiled ones without NumPy's kernel."""
    theirs, ours = OPERATIONS[name]
    operands = [np.random.default_rng(k).standard_normal(shape).astype(np.float32) for k in range(CALLS + 1)]
    arrays = [ft.device_put(x) for x in operands]
    by_xla = ft.export.export(ft.jit(ours))(arrays[0]).call  # exported programs do not use the kernel
    ways = {
        "NumPy": (theirs, operands),
        "eager": (ours, arrays),
        "jit": (ft.jit(ours), arrays),
        "XLA": (by_xla, arrays),
    }
    return {way: timed(*given) for way, given in ways.items()}


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    rows = {}
    print(f"{'float32':30}{'NumPy':>12}{'eager':>12}{'jit':>12}{'XLA alone':>12}   (ms)")
    for name in OPERATIONS:
        for shape in SHAPES:
            case = f"{name} of {' x '.join(map(str, shape))}"
            row = rows[case] = measure(name, shape)
            print(f"{case:30}" + "".join(f"{1e3 * seconds:12.3f}" for seconds in row.values()), flush=True)
    if options.json:
        save(options.json, ["numpy"], rounds=CALLS, seconds=rows)


if __name__ == "__main__":
    main()
