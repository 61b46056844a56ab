"""Workers in processes of their own, one for each side."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.saving import save

WORKERS = Path(__file__).parent / "worker"


def add_sides(parser: argparse.ArgumentParser) -> None:
    """Add the options of the interpreters of both sides, of the number of processes, and of a file for the figures."""
    for side in ("ours", "jax"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, help="the interpreter of this side")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (default 3)")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")


def result_of(python: str, worker: Path, side: str, **environment: str) -> Any:
    """Return the JSON that a worker prints last, run in a new process with these variables of its environment."""
    command = [python, str(worker), side]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def in_turns(options: argparse.Namespace, worker: str, **environment: str) -> dict[str, list[Any]]:
    """Return the results of a worker by side, one of each round; the sides take turns."""
    samples: dict[str, list[Any]] = {"ours": [], "jax": []}
    for _ in range(options.rounds):
        for side, rows in samples.items():
            rows.append(result_of(getattr(options, side), WORKERS / worker, side, **environment))
    return samples


def compare(text: str, worker: str) -> None:
    """Measure the programs of a worker on both sides, and print a table.

    Args:
        text: of the help, its first line.
        worker: file in the folder `worker`, whose last line is that of `worker/sides.py: measure`.
    """
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    add_sides(parser)
    options = parser.parse_args()
    samples = in_turns(options, worker, FT_CACHE="0")
    print(f"{'':38}{'first result (s)':>28}{'call (ms)':>28}")
    print(f"{'':38}" + 2 * f"{'ours':>9}{'JAX':>9}{'ratio':>10}")
    ratios: dict[str, list[float]] = {"first": [], "call": []}
    for case in samples["ours"][0]:
        cells = ""
        for what, unit in (("first", 1), ("call", 1e3)):
            ours, jax = (statistics.median(row[case][what] for row in rows) * unit for rows in samples.values())
            cells += f"{ours:9.3f}{jax:9.3f}{ours / jax:10.3f}"
            ratios[what].append(ours / jax)
        print(case.ljust(38) + cells)
    print(
        "geometric mean".ljust(38) + "".join(f"{statistics.geometric_mean(found):28.3f}" for found in ratios.values())
    )
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples)
