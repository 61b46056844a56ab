"""Ten programs whose Python control flow depends on data, for this package and for torch.compile.

    python benchmarks/worker/branches.py ours|torch

prints a JSON object. For each program it holds numbers: of graphs compiled by the first call and by later ones, of
graph breaks, and of functions, or remainders of functions, that are not compiled. The seconds of the first call and
of later calls, in turns through all inputs, follow. `benchmarks/control_flow.py` starts this script.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS = 7
CALLS = 40


def programs(lib: Any) -> dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]]:
    """Return the name, function, and NumPy arguments of several calls, which take different paths, of each program."""

    def shorten(x):
        size = lib.sum(abs(x))
        if size > 5.0:
            return x * 5.0 / size
        return x

    def nested(x, y):
        if x > 0:
            if y > 0:
                return x * y
            return x - y
        elif y > 10:
            return y
        return -x

    def newton(a):
        x = a
        while abs(x * x - a) > 1e-4 * a:
            x = 0.5 * (x + a / x)
        return x

    def bisection(a):
        lo, hi = a * 0, a
        while hi - lo > 1e-3:
            mid = (lo + hi) / 2
            if mid * mid > a:
                hi = mid
            else:
                lo = mid
        return lo

    def collatz(n):
        steps = n * 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps = steps + 1
        return steps

    def prefix(x, n):
        return lib.sum(x[: int(n)] ** 2)

    def positive(x):
        return lib.sqrt(x[x > 0]).mean()

    def first_negative(x):
        for i in range(x.shape[0]):
            if x[i] < 0:
                return i, x[i]
        return -1, lib.sum(x)

    def line_search(x):
        value, slope = lib.sum(x * x * 50.0), 100.0 * x
        t = 1.0
        while lib.sum((x - t * slope) ** 2 * 50.0) > value - 1e-4 * t * lib.sum(slope * slope):
            t *= 0.5
        return x - t * slope

    def power_iteration(a):
        v, last, norm = lib.ones_like(a[0]), a[0, 0] * 0, a[0, 0] * 0 + 1.0
        while abs(norm - last) > 1e-3 * norm:
            w = a @ v
            last, norm = norm, lib.sqrt(lib.sum(w * w))
            v = w / norm
        return norm

    f32, draw = np.float32, np.random.default_rng(0)
    scalars = lambda *values: [(f32(v),) for v in values]
    vectors = [draw.normal(size=16).astype(f32) for _ in range(6)]
    squares = [draw.uniform(size=(8, 8)).astype(f32) for _ in range(6)]
    return {
        "if": (shorten, [(v * s,) for v, s in zip(vectors, (1, 0.1, 1, 0.1, 2, 0.2), strict=True)]),
        "nested if": (nested, [(f32(a), f32(b)) for a, b in ((1, 1), (1, -1), (-1, 11), (-1, 1), (2, 2), (-2, 12))]),
        "Newton, while": (newton, scalars(2, 100, 3, 1e4, 50, 7)),
        "bisection": (bisection, scalars(2, 3, 5, 100, 50, 7)),
        "Collatz": (collatz, [(np.int32(n),) for n in (6, 7, 9, 12, 27, 97)]),
        "x[:int(n)]": (prefix, [(vectors[0], np.int32(n)) for n in (3, 5, 8, 3, 12, 5)]),
        "x[x > 0]": (positive, [(v,) for v in vectors]),
        "search, early return": (first_negative, [(abs(v) * np.where(np.arange(16) == k, -1, 1).astype(f32),)
                                                  for v, k in zip(vectors, (2, 0, 5, 99, 15, 2), strict=True)]),
        "line search": (line_search, [(v * s,) for v, s in zip(vectors, (1, 2, 3, 4, 5, 6), strict=True)]),
        "power iteration": (power_iteration, [(a @ a.T,) for a in squares]),
    }  # fmt: skip


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def later(call: Callable[..., Any], args: list[tuple[Any, ...]], finish: Callable[[Any], Any]) -> float:
    """Return the seconds of a call, the least of several rounds through all arguments."""

    def through() -> None:
        for _ in range(CALLS):
            for a in args:
                out = call(*a)
        finish(out)

    through()
    return min(timed(through) for _ in range(ROUNDS)) / (CALLS * len(args))


def ours() -> dict[str, Any]:
    """Return the figures of this package."""
    import functorch_like as ft
    import functorch_like.numpy as fnp
    from functorch_like import testing

    ft.jit(fnp.sin)(1.0)  # pay the costs of the first program of a process
    figures = {}
    for name, (fun, given) in programs(fnp).items():
        args = [ft.device_put(a) for a in given]
        compiled = ft.jit(fun, control_flow="paths")
        with testing.count_compiles() as at_first:
            seconds = timed(lambda a=args[0], f=compiled: ft.block_until_ready(f(*a)))
        with testing.count_compiles() as after:
            results = [compiled(*a) for a in args * 3]
        check(name, [ft.tree.leaves(r) for r in results], [ft.tree.leaves(fun(*a)) for a in args * 3])
        steady = later(compiled, args, ft.block_until_ready)
        figures[name] = {
            "first call, graphs": at_first.count,
            "later calls, graphs": after.count,
            "graph breaks": 0,
            "functions left to Python": 0,
            "first call, seconds": seconds,
            "later calls, seconds": steady,
            "uncompiled, seconds": later(fun, args, ft.block_until_ready),
        }
    return figures


def pytorch() -> dict[str, Any]:
    """Return the figures of torch.compile."""
    import torch
    from torch._dynamo.utils import counters

    torch.compile(torch.sin)(torch.ones(()))  # pay the costs of the first program of a process
    figures = {}
    for name, (fun, given) in programs(torch).items():
        args = [tuple(map(torch.as_tensor, a)) for a in given]
        torch._dynamo.reset()
        counters.clear()
        reasons = torch._dynamo.explain(fun)(*args[0]).break_reasons
        breaks = max(len(reasons), sum(counters["graph_break"].values()))
        left = counters["frames"]["total"] - counters["frames"]["ok"]
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(fun)
        seconds = timed(lambda a=args[0], f=compiled: f(*a))
        at_first = counters["stats"]["unique_graphs"]
        results = [compiled(*a) for a in args * 3]
        after = counters["stats"]["unique_graphs"] - at_first
        leaves = lambda r: list(r) if isinstance(r, tuple) else [r]
        check(name, list(map(leaves, results)), [leaves(fun(*a)) for a in args * 3])
        figures[name] = {
            "first call, graphs": at_first,
            "later calls, graphs": after,
            "graph breaks": breaks,
            "functions left to Python": left,
            "first call, seconds": seconds,
            "later calls, seconds": later(compiled, args, lambda out: None),
            "uncompiled, seconds": later(fun, args, lambda out: None),
        }
    return figures


def check(name: str, got: list[list[Any]], expected: list[list[Any]]) -> None:
    """Compare results with those of plain Python."""
    for a, b in zip(got, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-3, err_msg=name)


if __name__ == "__main__":
    print(json.dumps({"ours": ours, "torch": pytorch}[sys.argv[1]]()))
