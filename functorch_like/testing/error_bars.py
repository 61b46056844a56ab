"""Exact values of programs with error bars: their meaning in NumPy in float64, and how rounding moves it.

The bars come from evaluating a program again with each operand and each result moved by random amounts of the size of
a rounding error, as in Monte Carlo arithmetic. They hold for any primitive, cancellation and all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.ir.jaxpr import Jaxpr, Literal, inner_jaxprs

Array = np.ndarray[Any, Any]
#: Evaluations with noise.
_RUNS = 2
#: Noise that float64 still shows.
_LEAST = 2.0**-50


def meaning(
    jaxpr: Jaxpr, args: Sequence[Any], noise: float = 0.0, seed: int = 0, peaks: list[float] | None = None
) -> list[Array]:
    """Evaluate a jaxpr by its primitives' `ref` rules.

    Args:
        jaxpr: the program.
        args: NumPy arrays.
        noise: relative size of what moves floating operands and results.
        seed: of the noise.
        peaks: takes the largest absolute value of each equation's results.
    """
    rng = np.random.default_rng(seed)

    def moved(x: Any, size: float = noise) -> Any:
        x = np.asarray(x)
        if not noise or x.dtype.kind not in "fc":
            return x
        moves = rng.standard_normal(x.shape)
        # Errors of approximations are alike where arguments are, so one evaluation in two moves all one way.
        return np.asarray(x * (1 + size * (moves if seed % 2 else np.abs(moves))), x.dtype)

    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    read = lambda a: a.value if type(a) is Literal else values[a]
    with np.errstate(all="ignore"):
        for e in jaxpr.equations:
            out = e.prim.ref(*(moved(read(a)) for a in e.inputs), **e.params)
            outs = out if e.prim.multiple_results else (out,)
            if peaks is not None:
                peaks.extend(_peak(x) for x in outs)
            # Sums may be computed one term after the other; then errors grow at least with the root of their number.
            terms = max((a.aval.size for a in e.inputs), default=1) / max((1, *(v.aval.size for v in e.outputs)))
            size = noise * math.sqrt(max(1.0, terms))
            values.update(zip(e.outputs, (moved(x, size) for x in outs), strict=True))
    return [np.asarray(moved(read(a))) for a in jaxpr.outputs]


def _peak(x: Any) -> float:
    x = np.abs(np.asarray(x))
    return float(np.max(x, initial=0.0, where=np.isfinite(x))) if x.dtype.kind == "f" else 0.0


def with_bars(
    jaxpr: Jaxpr, args: Sequence[Any], eps: float, peaks: list[float] | None = None
) -> list[tuple[Array, Array]]:
    """Return each result with the size of the error that rounding to `eps` may cause, per element."""
    exact = meaning(jaxpr, args, peaks=peaks)
    eps = max(eps, _LEAST)
    others = [meaning(jaxpr, args, eps, seed) for seed in range(1, _RUNS + 1)]
    found: list[tuple[Array, Array]] = []
    for k, x in enumerate(exact):
        if x.dtype.kind not in "fc":
            found.append((x, np.asarray(np.any([o[k] != x for o in others], 0), np.float64)))
            continue
        with np.errstate(all="ignore"):
            moves = np.max([np.abs(o[k] - x) for o in others], axis=0)
        # Neighbours are computed alike: the root mean square over an array is less of an accident than two draws.
        typical = float(np.sqrt(np.mean(np.square(np.where(np.isfinite(moves), moves, 0.0))))) if moves.size else 0.0
        found.append((x, np.maximum(np.where(np.isnan(moves), np.inf, moves), typical)))
    return found


class Limits(NamedTuple):
    """Range of the floating dtypes of a program's values.

    Args:
        eps: the largest unit of rounding among them.
        most: the smallest of their largest numbers.
    """

    eps: float
    most: float


def limits(jaxpr: Jaxpr) -> Limits:
    """Return what the dtypes of a program's values can hold, those of inner programs included."""
    kinds = {v.aval.dtype for v in jaxpr.inputs} | {v.aval.dtype for e in jaxpr.equations for v in e.outputs}
    infos = [dtypes.finfo(dtypes.real_part(d)) for d in kinds if dtypes.is_inexact(d)]
    found = [Limits(float(info.eps), float(info.max)) for info in infos]
    found += [limits(inner) for e in jaxpr.equations for inner in inner_jaxprs(e.params)]
    return Limits(max((x.eps for x in found), default=0.0), min((x.most for x in found), default=np.inf))
