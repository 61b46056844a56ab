"""Costs of Python control flow under jit, and ten programs with it beside torch.compile.

    python -m benchmarks.control_flow [--torch PYTHON] [--json FILE]

This package's calls are timed in turns in one process, the least of many rounds, and its compiles are counted. The ten
programs are those of `worker/branches.py`; each side runs in a process of its own with empty caches.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import functorch_like as ft
import functorch_like.numpy as fnp
from benchmarks.saving import save
from functorch_like import testing

ROUNDS, BLOCK = 1500, 20
WORKER = Path(__file__).parent / "worker" / "branches.py"


def microseconds(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the microseconds of each call, measured in turns: the least of all rounds."""
    for call in calls.values():
        for _ in range(BLOCK):
            call()
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(BLOCK):
                call()
            least[name] = min(least[name], (time.perf_counter() - begin) / BLOCK * 1e6)
    return least


def branch(x: Any) -> Any:
    """A function of two paths."""
    if fnp.sum(x) > 0:
        return fnp.sin(x) * 2
    return fnp.cos(x)


def newton(a: Any) -> Any:
    """A loop over arrays."""
    x = a
    while fnp.abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


def counted(a: Any) -> Any:
    """A loop that counts in Python."""
    x, n = a, 0
    while fnp.abs(x * x - a) > 1e-4:
        x, n = 0.5 * (x + a / x), n + 1
    return x * n


def overheads() -> dict[str, float]:
    """Return the microseconds of calls with paths, and of the calls that these are compared with."""
    x, a = fnp.ones(100), fnp.asarray(50.0)
    paths = lambda f: ft.jit(f, control_flow="paths")
    one, total, loop, rolled = paths(branch), paths(branch), paths(newton), paths(counted)
    one(x)
    for v in (x, -x) * 3:
        total(v)
    loop(a)
    rolled(a)
    sizes, lengths = paths(lambda x, n: x[: int(n)] * 2), [fnp.asarray(50), fnp.asarray(60)]
    for n in lengths * 3:
        sizes(x, n)

    def wrong() -> None:  # C++ guesses the program of one size, so one of the two calls guesses wrong
        sizes(x, lengths[0])
        sizes(x, lengths[1])

    straight = ft.jit(lambda x: fnp.sin(x) * 2)
    checked = ft.jit(lambda x: (fnp.sin(x) * 2, (fnp.sum(x) > 0).astype("int64")))
    cond = ft.jit(lambda x: ft.lax.cond(fnp.sum(x) > 0, lambda x: fnp.sin(x) * 2, fnp.cos, x))
    more, step = lambda s: fnp.abs(s[0] * s[0] - s[1]) > 1e-4, lambda s: (0.5 * (s[0] + s[1] / s[0]), s[1])
    plain = ft.jit(lambda a: ft.lax.while_loop(more, step, (a, a))[0])
    calls = {
        "jit, one branch": lambda: straight(x),
        "jit, one branch, and the condition as a result": lambda: checked(x),
        "paths, one path": lambda: one(x),
        "jit, lax.cond": lambda: cond(x),
        "paths, both branches": lambda: total(x),
        "jit, lax.while_loop": lambda: plain(a),
        "paths, a loop": lambda: loop(a),
        "paths, a loop that counts in Python": lambda: rolled(a),
        "paths, a size": lambda: sizes(x, lengths[0]),
        "paths, two sizes in turns, both": wrong,
    }
    times = microseconds(calls)
    times["predicted path over jit"] = times["paths, one path"] - times["jit, one branch"]
    times["total tree over lax.cond"] = times["paths, both branches"] - times["jit, lax.cond"]
    times["loop over lax.while_loop"] = times["paths, a loop"] - times["jit, lax.while_loop"]
    times["known wrong guess over a right one"] = times["paths, two sizes in turns, both"] - 2 * times["paths, a size"]
    return times


def compiles() -> dict[str, int]:
    """Return the numbers of programs compiled."""
    f, g, h = (ft.jit(fun, control_flow="paths") for fun in (branch, newton, counted))
    x, counts = fnp.ones(100), {}
    for name, call in (
        ("first call of an if", lambda: f(x)),
        ("first call of a loop", lambda: g(100.0)),
        ("a new number of steps", lambda: g(1e4)),
        ("first call of a loop that counts in Python", lambda: h(100.0)),
        ("a new number of its steps", lambda: h(1000.0)),
    ):
        with testing.count_compiles() as counted_:
            call()
        counts[name] = counted_.count
    return counts


def side(python: str, name: str) -> dict[str, dict[str, float]]:
    """Return the figures of the ten programs for one side, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"FT_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        run = [python, str(WORKER), name]
        done = subprocess.run(run, env={**os.environ, **caches}, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", help="a Python with torch, for the second table")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    calls, counts = overheads(), compiles()
    for name, value in calls.items():
        print(f"{name:50}{value:9.2f} us")
    for name, made in counts.items():
        print(f"{name:50}{made:6} compiled")
    sides = {"ours": side(sys.executable, "ours")} | ({"torch": side(options.torch, "torch")} if options.torch else {})
    titles = ("breaks", "left", "graphs", "later", "first call", "later", "eager")
    print(f"{'program':29}" + "".join(f"{t:>12}" for t in titles))
    for program in sides["ours"]:
        for name, rows in sides.items():
            row = rows[program]
            graphs = [
                row["graph breaks"],
                row["functions left to Python"],
                row["first call, graphs"],
                row["later calls, graphs"],
            ]
            seconds = [row["later calls, seconds"], row["uncompiled, seconds"]]
            first = f"{row['first call, seconds'] * 1e3:.0f} ms"
            cells = [*map(str, graphs), first, *(f"{s * 1e6:.1f} us" for s in seconds)]
            print(f"{program:22}{name:7}" + "".join(f"{c:>12}" for c in cells))
    if options.json:
        command = [options.torch, "-c", "import torch; print(torch.__version__)"]
        torch = (
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            if options.torch
            else ""
        )
        save(options.json, [], torch=torch, microseconds=calls, compiles=counts, programs=sides)


if __name__ == "__main__":
    main()
