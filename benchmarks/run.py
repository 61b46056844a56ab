"""The runner: one long-lived worker for each side, which takes one sample of one case at a time, in turns.

Every side has a process and an interpreter of its own, because this package and jax cannot share one. Turns are
short (A B A B ...), so that a machine which slows down slows both sides, and the ratio is unaffected.
"""

import argparse
import json
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.budgets import CASES, ON_MESHES
from benchmarks.report import table, verdicts

WORKER = Path(__file__).parent / "worker"


class Side:
    """One worker process. `sample` returns seconds, or raises `Failed` with the worker's message."""

    def __init__(self, name: str, api: str, python: str):
        self.name = name
        self.process = subprocess.Popen(
            [python, str(WORKER), api], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.about = self.read()

    def sample(self, case: str) -> float:
        assert self.process.stdin is not None
        print(json.dumps({"case": case}), file=self.process.stdin, flush=True)
        return self.read()["seconds"]

    def read(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name}: the worker ended ({self.process.wait()})")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def close(self) -> None:
        self.process.communicate()  # the worker ends with its input


class Failed(Exception):
    """Error of a side that cannot run, or cannot run one case."""


def measure(sides: list[Side], cases: list[str], rounds: int) -> dict:
    """Return the samples by case and side; for a side that fails a case, the reason instead."""
    results: dict = {}
    for case in cases:
        row: dict = {side.name: [] for side in sides}
        progress(case)
        for turn in range(rounds + 1):
            for side in sides:
                if isinstance(row[side.name], str):
                    continue
                try:
                    seconds = side.sample(case)
                except Failed as error:
                    row[side.name] = str(error)
                else:
                    if turn:  # the first turn only prepares: it compiles, fills caches, sets the number of repetitions
                        row[side.name].append(seconds)
        results[case] = row
    progress("")
    return results


def progress(text: str) -> None:
    """Write a line of progress over the last one, if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)


def start(workers: dict[str, tuple[str, str]]) -> list[Side]:
    """Start a worker for each side that can run; the others are named on standard error."""
    sides = []
    for name, (api, python) in workers.items():
        try:
            sides.append(Side(name, api, python))
        except (Failed, OSError) as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return sides


def arguments() -> argparse.Namespace:
    """Parse the command line; interpreters may also be named by FT_BENCH_OURS, FT_BENCH_JAX and FT_BENCH_TORCH."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    for side in ("ours", "jax", "torch"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, metavar="PYTHON", help=f"interpreter of the {side} side")
    parser.add_argument("--rounds", type=int, default=7, help="samples of each side and case (default 7)")
    parser.add_argument("--case", action="append", metavar="PATTERN", help="only these cases (may be repeated)")
    parser.add_argument(
        "--torch-compile", action="store_true", help="torch.compile as a side of its own; it takes long"
    )
    parser.add_argument("--cores", metavar="0,1", help="the cores that every side runs on; one of them: one thread")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: time computed, by all threads")
    parser.add_argument("--devices", type=int, metavar="8", help="CPU devices of each side: the cases of split arrays")
    parser.add_argument("--null", action="store_true", help="JAX on both sides: how far from 1 is a ratio by chance?")
    parser.add_argument("--json", metavar="FILE", help="write every sample to a file")
    return parser.parse_args()


def main() -> int:
    """Measure, print the table, and return 1 when a budget is exceeded."""
    options = arguments()
    there = ON_MESHES if options.devices else [case for case in CASES if case not in ON_MESHES]
    cases = [case for case in there if any(fnmatch(case, pattern) for pattern in options.case or ["*"])]
    ours = ("jax", options.jax) if options.null else ("ours", options.ours)
    workers = {"ours": ours, "jax": ("jax", options.jax), "torch": ("torch", options.torch)}
    if options.torch_compile:
        workers["compiled"] = ("compiled", options.torch)
    os.environ["FT_BENCH_CLOCK"], os.environ["FT_BENCH_CORES"] = options.clock, options.cores or ""
    if options.devices:
        workers = {name: side for name, side in workers.items() if name in ("ours", "jax")}
        os.environ["FT_CPU_DEVICES"] = os.environ["JAX_NUM_CPU_DEVICES"] = str(options.devices)
    sides = start(workers)
    about = {side.name: side.about for side in sides}
    for name, versions in about.items():
        print(f"{name:<6}" + "  ".join(f"{package} {version}" for package, version in versions.items()))
    if len({about[name]["jaxlib"] for name in ("ours", "jax") if name in about}) > 1:
        print("WARNING: the two sides have different versions of jaxlib, so their ratios say little", file=sys.stderr)
    results = measure(sides, cases, options.rounds)
    for side in sides:
        side.close()
    print(table(results, [side.name for side in sides]))
    if options.json:
        Path(options.json).write_text(json.dumps({"sides": about, "seconds": results}, indent=1))
    return int("over" in verdicts(results).values())
