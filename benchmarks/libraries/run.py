"""The runner of models of libraries written for JAX: on this package and on JAX, in separate processes, in turns.

    python -m benchmarks.libraries --ours PY --jax PY --rounds 3 --json FILE

Both interpreters need the libraries: docs/libraries.md. Each process begins with an empty cache on disk; "again" is the
first step of a second process, which finds the cache of the first. The table has medians of wall time or, with
`--clock cpu`, of processor time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODELS = sorted(p.stem for p in (HERE / "models").glob("*.py"))
ROWS = ("import", "make", "trace", "first step", "again", "3 later steps")
AGREE = 2e-3  # relative difference allowed between the values of both sides


def measure(python, side, model, cache):
    """Return the figures of one process."""
    alias = ["-m", "functorch_like.as_jax"] if side == "ours" else []
    command = [python, *alias, str(HERE / "worker.py"), str(HERE / "models" / f"{model}.py")]
    environment = {**os.environ, "FT_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise SystemExit(f"{model} on {side}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(given=None):
    """Measure, print the table, and return 1 where the sides disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for side in ("ours", "jax"):
        parser.add_argument(f"--{side}", default=os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(given)
    chosen = options.model or MODELS
    times = {model: {"ours": [], "jax": []} for model in chosen}
    for _ in range(options.rounds):
        for model in chosen:
            for side, samples in times[model].items():
                python = getattr(options, side)
                with tempfile.TemporaryDirectory() as cache:
                    figures = measure(python, side, model, cache)
                    figures["again"] = measure(python, side, model, cache)["first step"]
                samples.append(figures)
    if options.json:
        Path(options.json).write_text(json.dumps(times, indent=1) + "\n")
    clock = ("wall", "cpu").index(options.clock)
    print(f"| | seconds ({options.clock}) | JAX | ratio |\n|---|---|---|---|")
    apart = []
    for model, sides in times.items():
        for row in ROWS:
            ours, jax = (statistics.median(s[row][clock] for s in sides[side]) for side in ("ours", "jax"))
            print(f"| {model}: {row} | {ours:.3g} | {jax:.3g} | {ours / jax:.2f} |")
        ours, jax = (sides[side][0]["value"] for side in ("ours", "jax"))
        if abs(ours - jax) > AGREE * abs(jax):
            apart.append(f"{model}: {ours} here, {jax} on JAX")
    print(*apart, sep="\n")
    return bool(apart)
