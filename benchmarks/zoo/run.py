"""The runner: one process for each model and side, one after the other, and results on disk after each.

    python -m benchmarks.zoo --ours PY --jax PY --torch PY --json zoo.json

Each process starts with empty caches. It measures first calls, later calls and peak memory of the forward pass and of a
training step. A run that was stopped continues when it is started again with the same file; --again repeats failures.
`--rounds 3` measures everything three times, in turns, and the table has the least median.
"""

import argparse
import json
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.report import duration

ROOT = Path(__file__).parents[2]
MODELS = sorted(p.stem for p in (Path(__file__).parent / "models").glob("[!_]*.py"))
SIDES = ("ours", "jax", "torch", "compiled")
#: Relative difference allowed between the sides' losses after three steps.
AGREE = 2e-3


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; interpreters may also be named by FT_BENCH_OURS, FT_BENCH_JAX and FT_BENCH_TORCH."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for side in SIDES[:3]:
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, metavar="PYTHON", help=f"interpreter of the {side} side")
    parser.add_argument("--side", action="append", choices=SIDES, help="only these (compiled: torch.compile)")
    parser.add_argument("--model", action="append", metavar="PATTERN", help="only these models (may be repeated)")
    parser.add_argument("--size", choices=("tiny", "real"), default="real")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each model and side (default 1)")
    parser.add_argument("--samples", type=int, default=11, help="samples in each process (default 11)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: time computed, by all threads")
    parser.add_argument("--cores", metavar="0,1", help="the cores that every side runs on; one of them: one thread")
    parser.add_argument("--limit", type=float, default=900, help="seconds of one process on the wall (default 900)")
    parser.add_argument("--json", default="zoo.json", metavar="FILE", help="where results are kept (default zoo.json)")
    parser.add_argument("--again", action="store_true", help="try again what failed")
    options = parser.parse_args(given)
    options.models = [m for m in MODELS if any(fnmatch(m, pattern) for pattern in options.model or ["*"])]
    if not options.models:
        parser.error(f"no model is named {' or '.join(options.model)}; there are {', '.join(MODELS)}")
    return options


def main(given: list[str] | None = None) -> int:
    """Measure the missing entries, print the table, and return 1 where losses disagree or a process failed."""
    options = arguments(given)
    file = Path(options.json)
    results = json.loads(file.read_text()) if file.exists() else {}
    models, sides = options.models, [side for side in SIDES if side in (options.side or SIDES)]
    chosen = [f"{m} {s} {options.size} {turn}" for turn in range(options.rounds) for m in models for s in sides]
    for key in chosen:
        model, side, *_ = key.split()
        if key in results and not (options.again and "error" in results[key]):
            continue
        print(f"{key} ...", file=sys.stderr, flush=True)
        results[key] = measured(model, side, options)
        keep(file, results)
    print(table(results, models, sides, options.size))
    failed = any("error" in results[key] for key in chosen)
    return int(failed or bool(disagreements(results, models, sides, options.size)))


def measured(model: str, side: str, options: argparse.Namespace) -> dict:
    """Return the figures of one process, or the reason why there are none."""
    python = getattr(options, "torch" if side == "compiled" else side)
    command = [python, "-m", "benchmarks.zoo.worker", model, side, options.size, str(options.samples)]
    environment = {**os.environ, "FT_CACHE": "0", "PYTHONPATH": str(ROOT), "FT_BENCH_CLOCK": options.clock}
    environment |= {"FT_BENCH_CORES": options.cores or "", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    if options.clock == "cpu":
        environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # in the process, so that its time counts
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"error": f"longer than {options.limit:g} s"}
    except OSError as error:
        return {"error": str(error)}
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"status {done.returncode}"}


def keep(file: Path, results: dict) -> None:
    """Write the results atomically."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1))
    part.replace(file)


# --------------------------------------------------------------------------------------------------------------- table
def least(results: dict, model: str, side: str, size: str, *path: str) -> float | None:
    """Return the least of the rounds' figures, or None if there are none."""
    rows = []
    for key, figures in results.items():
        if key.split()[:3] == [model, side, size] and "error" not in figures:
            for name in path:
                figures = figures[name]
            rows.append(figures)
    return min(rows, default=None)


COLUMNS = {
    "forward": ("forward", "seconds"),
    "step": ("step", "seconds"),
    "first forward": ("forward", "first"),
    "first step": ("step", "first"),
    "MB": ("megabytes",),
}


def table(results: dict, models: list[str], sides: list[str], size: str) -> str:
    """Return a table with a line for each model and side: times, first calls and memory, each with its ratio."""
    lines = [["model", "side", *(text for name in COLUMNS for text in (name, "ours/"))]]
    for model in models:
        for side in sides:
            row = [model, side]
            for name, path in COLUMNS.items():
                value, ours = (least(results, model, s, size, *path) for s in (side, "ours"))
                row.append("" if value is None else f"{value:.0f}" if name == "MB" else duration(value))
                row.append(f"{ours / value:.2f}" if value and ours and side != "ours" else "")
            lines.append(row)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    failures = [f"{key}: {figures['error']}" for key, figures in results.items() if "error" in figures]
    return "\n".join([*text, "", *failures, *disagreements(results, models, sides, size)])


def disagreements(results: dict, models: list[str], sides: list[str], size: str) -> list[str]:
    """Return the models whose losses after three steps differ between sides."""
    messages = []
    for model in models:
        losses = {s: least(results, model, s, size, "loss") for s in sides}
        known = [x for x in losses.values() if x is not None]
        if known and not max(known) - min(known) <= AGREE * max(map(abs, known)):
            messages.append(f"{model}: the losses differ: {losses}")
    return messages
