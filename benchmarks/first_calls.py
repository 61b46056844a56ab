"""First calls of programs not compiled before: eager functions as in a notebook's first cells, nets, loops.

    python -m benchmarks.first_calls --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all of them in one new process, under its default settings, and the sides take turns. This package starts
with an empty cache on disk, and runs again in a second process, which finds the programs of the first there; JAX's disk
cache is off. Times are processor times of all threads, from the call to the result; medians of the rounds.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.processes import add_sides, result_of
from benchmarks.saving import save

WORKER = Path(__file__).parent / "worker" / "first_calls.py"


def main() -> None:
    """Measure both sides and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_sides(parser)
    options = parser.parse_args()
    samples: dict[str, list[dict[str, float]]] = {"ours": [], "second": [], "jax": []}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            for process, rows in samples.items():
                side = "jax" if process == "jax" else "ours"
                rows.append(result_of(getattr(options, side), WORKER, side, FT_CACHE_DIR=cache))
    medians = {name: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for name, rows in samples.items()}
    print(f"{'first call (ms)':34}{'ours':>9}{'second':>9}{'JAX':>9}{'ours/JAX':>10}{'second/JAX':>12}")
    ratios: dict[str, list[float]] = {"ours": [], "second": []}
    for case, jax in medians["jax"].items():
        times = [medians["ours"][case], medians["second"][case]]
        for mine, seconds in zip(ratios.values(), times, strict=True):
            mine.append(seconds / jax)
        cells = "".join(f"{1e3 * seconds:9.0f}" for seconds in (*times, jax))
        print(f"{case:34}{cells}{ratios['ours'][-1]:10.2f}{ratios['second'][-1]:12.2f}")
    means = {name: statistics.geometric_mean(mine) for name, mine in ratios.items()}
    print(f"{'geometric mean':61}{means['ours']:10.2f}{means['second']:12.2f}")
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples, means=means)


if __name__ == "__main__":
    main()
