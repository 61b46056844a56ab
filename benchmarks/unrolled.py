"""Programs that unroll steps of a recurrent net, an integrator or a stencil: first results, and calls after them.

    python -m benchmarks.unrolled --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all of them in one new process, without a cache on disk, and the sides take turns. This package compiles
them under the options of its last tier. Figures are medians of the rounds.
"""

import argparse
import statistics
from pathlib import Path

from benchmarks.processes import add_sides, result_of
from benchmarks.saving import save

WORKER = Path(__file__).parent / "worker" / "unrolled.py"


def main() -> None:
    """Measure both sides and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_sides(parser)
    options = parser.parse_args()
    samples: dict[str, list[dict[str, dict[str, float]]]] = {"ours": [], "jax": []}
    for _ in range(options.rounds):
        for side, rows in samples.items():
            rows.append(result_of(getattr(options, side), WORKER, side, FT_CACHE="0"))
    print(f"{'':38}{'first result (s)':>28}{'call (ms)':>28}")
    print(f"{'':38}" + 2 * f"{'ours':>9}{'JAX':>9}{'ratio':>10}")
    for case in samples["ours"][0]:
        cells = ""
        for what, unit in (("first", 1), ("call", 1e3)):
            ours, jax = (statistics.median(row[case][what] for row in rows) * unit for rows in samples.values())
            cells += f"{ours:9.3f}{jax:9.3f}{ours / jax:10.3f}"
        print(case.ljust(38) + cells)
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples)


if __name__ == "__main__":
    main()
