"""Calls on small arrays outside of jit, beside JAX.

    taskset -c 0 python -m benchmarks.eager_calls --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all calls in one process, and the sides take turns. Figures are medians of the rounds.
"""

import argparse
import statistics

from benchmarks.processes import add_sides, in_turns
from benchmarks.saving import save


def main() -> None:
    """Measure both sides, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_sides(parser)
    options = parser.parse_args()
    samples = in_turns(options, "eager_calls.py")
    print(f"{'microseconds':24}{'ours':>8}{'JAX':>8}{'ratio':>8}")
    ratios = []
    for case in samples["ours"][0]:
        ours, jax = (statistics.median(row[case] for row in rows) * 1e6 for rows in samples.values())
        ratios.append(ours / jax)
        print(f"{case:24}{ours:8.1f}{jax:8.1f}{ratios[-1]:8.2f}")
    print(f"{'geometric mean':40}{statistics.geometric_mean(ratios):8.2f}")
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples)


if __name__ == "__main__":
    main()
