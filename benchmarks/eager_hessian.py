"""First calls of the Hessian of a Gaussian process's likelihood, eager and by jit, with empty caches.

    python -m benchmarks.eager_hessian [--rounds 5] [--json FILE]

Each form runs in new processes, in turns, without the disk cache. Times are of the first call, after the imports: wall
time, and processor time of all threads, which other processes on the machine disturb less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import functorch_like as ft
import functorch_like.numpy as fnp
from benchmarks.saving import save
from functorch_like.backends.xla import counters
from functorch_like.scipy.linalg import cho_solve

WAYS = {"jit": lambda f: ft.jit(ft.hessian(f)), "eager": ft.hessian}
X = fnp.linspace(0.0, 1.0, 20)[:, None]
Y = fnp.sin(6 * X[:, 0])


def likelihood(theta: ft.Array) -> ft.Array:
    """Return the negative logarithm of the marginal likelihood, up to a constant."""
    amplitude, length, noise = fnp.exp(theta)
    distances = (X - X.T) / length
    kernel = amplitude**2 * fnp.exp(-0.5 * distances**2)
    covariance = kernel + noise**2 * fnp.eye(len(X))
    lower = fnp.linalg.cholesky(covariance)
    weights = cho_solve((lower, True), Y)
    fit = 0.5 * Y @ weights
    volume = fnp.sum(fnp.log(fnp.diagonal(lower)))
    return fit + volume


def measured(way: str) -> dict[str, float]:
    """Return the seconds of the first call, and the number of programs that it compiles."""
    theta = fnp.asarray([0.0, -1.0, -2.0])
    before = counters.snapshot()
    wall, computed = time.perf_counter(), time.process_time()
    WAYS[way](likelihood)(theta).block_until_ready()
    return {
        "wall": time.perf_counter() - wall,
        "computed": time.process_time() - computed,
        "programs": counters.since(before)["compiles"],
    }


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="processes of each way (default 5)")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options.way)))
        return
    samples = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way, rows in samples.items():
            command = [sys.executable, "-m", "benchmarks.eager_hessian", "--way", way]
            done = subprocess.run(command, env={**os.environ, "FT_CACHE": "0"}, capture_output=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    median = {way: {key: statistics.median(r[key] for r in rows) for key in rows[0]} for way, rows in samples.items()}
    print(f"{'':8}{'on the wall':>14}{'computed':>12}{'programs':>10}")
    for way, row in median.items():
        print(f"{way:8}{row['wall']:12.2f} s{row['computed']:10.2f} s{row['programs']:10.0f}")
    ratios = {key: median["eager"][key] / median["jit"][key] for key in ("wall", "computed")}
    print(f"{'ratio':8}{ratios['wall']:12.2f}  {ratios['computed']:10.2f}")
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples, ratios=ratios)


if __name__ == "__main__":
    main()
