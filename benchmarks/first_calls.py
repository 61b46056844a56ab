"""First calls of programs that nobody has compiled: eager functions as in a notebook's first cells, nets, loops.

    python -m benchmarks.first_calls --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all of them in one new process without disk caches, and the sides take turns. Times are of the processor,
all threads of the process, from the call to the result; medians of the rounds.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.saving import save

WORKER = Path(__file__).parent / "worker" / "first_calls.py"


def measured(python: str, side: str) -> dict[str, float]:
    """Seconds of each first call in a new process."""
    environment = {**os.environ, "FT_CACHE": "0"}
    done = subprocess.run([python, str(WORKER), side], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure both sides and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for side in ("ours", "jax"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, help="the interpreter of this side")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (default 3)")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    samples: dict[str, list[dict[str, float]]] = {"ours": [], "jax": []}
    for _ in range(options.rounds):
        for side, rows in samples.items():
            rows.append(measured(getattr(options, side), side))
    medians = {side: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for side, rows in samples.items()}
    print(f"{'first call (ms)':34}{'ours':>9}{'JAX':>9}{'ratio':>8}")
    ratios = {}
    for case, ours in medians["ours"].items():
        ratios[case] = ours / medians["jax"][case]
        print(f"{case:34}{1e3 * ours:9.0f}{1e3 * medians['jax'][case]:9.0f}{ratios[case]:8.2f}")
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    print(f"{'geometric mean':52}{mean:8.2f}")
    if options.json:
        save(options.json, [], rounds=options.rounds, samples=samples, ratios=ratios, mean=mean)


if __name__ == "__main__":
    main()
