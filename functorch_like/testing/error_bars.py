"""Exact values of programs with error bars: their meaning in NumPy in float64, and how rounding moves it.

The bars come from evaluating a program again, as in Monte Carlo arithmetic: each operand and each result is moved by
random amounts of the size of a rounding error. They hold for any primitive, cancellation and all, and inside of loops,
branches and calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.ir.jaxpr import Equation, Jaxpr, inner_jaxprs
from functorch_like.ir.reference import by_ref, evaluating, reference

Array = np.ndarray[Any, Any]
#: Noise that float64 still shows.
_LEAST = 2.0**-50
#: Criteria that distinguish a jump from a slope: seeds of draws besides those of the bars, their noise in units of the
#: bars', and the least size of a jump in bars.
_MORE_SEEDS, _WIDER, _JUMP = range(3, 15), 4.0, 100.0

#: Comparisons for which moved values count as equal, and the greatest difference for that, in moves.
_EQUALITIES, _SAME = frozenset({"eq", "ne"}), 8.0


#: Moves a floating array by about a relative size.
Move = Callable[[Array, float], Array]


def _jittered(seed: int) -> Move:
    """Return moves by random amounts.

    Approximations have similar errors for similar arguments, so every second seed moves all values in one direction.
    """
    rng = np.random.default_rng(seed)

    def move(x: Array, size: float) -> Array:
        moves = rng.standard_normal(x.shape)
        factor = 1 + size * (moves if seed % 2 else np.abs(moves))
        return _in_parts(x, lambda part: part * factor)

    return move


def _in_parts(x: Array, change: Callable[[Array], Array]) -> Array:
    """Change real and imaginary part each by itself: in complex arithmetic an infinite one makes the other NaN."""
    if x.dtype.kind != "c":
        return np.asarray(change(x))
    changed = np.empty(x.shape, np.result_type(x.dtype, np.complex128))
    changed.real, changed.imag = change(x.real), change(x.imag)
    return changed


def _rounded(x: Array, size: float) -> Array:
    """Round to a dtype's numbers whose unit of rounding is `size`: differences of close numbers become 0."""
    if x.dtype.kind == "c":
        return _in_parts(x, lambda part: _rounded(part, size))
    mantissa, exponent = np.frexp(x)
    step = 2.0 ** (math.floor(math.log2(size)) - 1)  # a power of two, so that 1 stays 1
    return np.asarray(np.ldexp(np.round(mantissa / step) * step, exponent))


def meaning(
    jaxpr: Jaxpr, args: Sequence[Any], noise: float = 0.0, move: Move | None = None, peaks: list[float] | None = None
) -> list[Array]:
    """Evaluate a jaxpr by its primitives' `ref` rules.

    Args:
        jaxpr: the program.
        args: NumPy arrays.
        noise: relative size of what moves floating operands and results.
        move: moves them; None for the exact values.
        peaks: takes the largest absolute value of each equation's results.
    """

    if move is None and peaks is None:
        with np.errstate(all="ignore"):
            return reference(jaxpr, args)

    def moved(x: Any, size: float = noise) -> Array:
        x = np.asarray(x)
        return x if move is None or x.dtype.kind not in "fc" else np.asarray(move(x, size), x.dtype)

    def evaluate(equation: Equation, operands: Sequence[Any]) -> Sequence[Any]:
        if move is not None and equation.prim.name in _EQUALITIES:
            return [_compared(equation.prim.name, *operands, size=_SAME * noise)]
        outs = by_ref(equation, [moved(x) for x in operands])
        if peaks is not None:
            peaks.extend(_peak(x) for x in outs)
        if move is None:
            return [np.asarray(x) for x in outs]
        # Sums may be computed one term after the other; then errors grow at least with the root of their number.
        results = max((1, *(v.aval.size for v in equation.outputs)))
        terms = max((a.aval.size for a in equation.inputs), default=1) / results
        size = noise * math.sqrt(max(1.0, terms))
        return [moved(x, size) for x in outs]

    with np.errstate(all="ignore"), evaluating(evaluate):
        return [moved(x) for x in reference(jaxpr, args)]


def _compared(name: str, x: Any, y: Any, size: float) -> Array:
    """`eq` or `ne` of values that were moved: values that differ only by their moves count as equal.

    Rules of maxima and medians compare in this way to find the element that a result was copied from. If the moves
    made all elements differ from it, the derivative would wrongly be 0.
    """
    x, y = np.asarray(x), np.asarray(y)
    equal = x == y
    if x.dtype.kind in "fc":
        equal = equal | (np.abs(x - y) <= size * np.maximum(np.abs(x), np.abs(y)))
    return np.asarray(equal if name == "eq" else ~equal)


def _peak(x: Any) -> float:
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return 0.0
    x = np.abs(x)
    peak = float(np.max(x, initial=0.0))
    return peak if math.isfinite(peak) else float(np.max(x, initial=0.0, where=np.isfinite(x)))


class Meaning:
    """Exact results of a program, with error bars that are evaluated when they are first read.

    Args:
        jaxpr: the program.
        args: NumPy arrays.
        eps: unit of rounding that the bars are for.

    Attributes:
        exact: the results.
        peak: the largest finite absolute value that is computed on the way.
        eps: unit of rounding that the bars are for.
    """

    def __init__(self, jaxpr: Jaxpr, args: Sequence[Any], eps: float) -> None:
        peaks: list[float] = []
        self._jaxpr, self._args = jaxpr, args
        self.exact = meaning(jaxpr, args, peaks=peaks)
        self.peak, self.eps = max(peaks, default=0.0), max(eps, _LEAST)

    def rounded_to(self, eps: float) -> Meaning:
        """Return the same results with bars for another unit of rounding."""
        other = object.__new__(Meaning)
        other._jaxpr, other._args, other.exact, other.peak = self._jaxpr, self._args, self.exact, self.peak
        other.eps = max(eps, _LEAST)
        return other

    @cached_property
    def bars(self) -> list[Array]:
        """Size of the error that rounding to `eps` may cause in each result, per element."""
        moves = (_jittered(1), _jittered(2), _rounded)
        others = [meaning(self._jaxpr, self._args, self.eps, move) for move in moves]
        return [self._at_least(_bar(x, [o[k] for o in others]), x) for k, x in enumerate(self.exact)]

    @cached_property
    def jumps(self) -> list[Array]:
        """Mask of the elements that errors of a few roundings may move far beyond their bars.

        They do where close numbers are compared or sorted, and then three draws may all have missed it.
        """
        others = [meaning(self._jaxpr, self._args, _WIDER * self.eps, _jittered(seed)) for seed in _MORE_SEEDS]
        moved = [_bar(x, [o[k] for o in others]) for k, x in enumerate(self.exact)]
        return [far > _JUMP * near for far, near in zip(moved, self.bars, strict=True)]

    def _at_least(self, bars: Array, x: Array) -> Array:
        """Bars no smaller than a rounding error of a rounding error, where a result is not larger than its bar.

        Such a result consists of rounding errors alone; an example is the square of a difference of equal numbers.
        Products of several of them spread over many orders of magnitude.
        """
        if x.dtype.kind not in "fc":
            return bars
        return np.where(np.abs(x) <= bars, np.maximum(bars, self.eps**2 * self.peak), bars)


def _bar(x: Array, others: Sequence[Array]) -> Array:
    if x.dtype.kind not in "fc":
        return np.asarray(np.any([o != x for o in others], 0), np.float64)
    with np.errstate(all="ignore"):
        moves = np.max([np.abs(o - x) for o in others], axis=0)
    # Neighbours are computed alike: the root mean square over an array is less of an accident than two draws.
    typical = float(np.sqrt(np.mean(np.square(np.where(np.isfinite(moves), moves, 0.0))))) if moves.size else 0.0
    return np.maximum(np.where(np.isnan(moves), np.inf, moves), typical)


def with_bars(jaxpr: Jaxpr, args: Sequence[Any], eps: float) -> list[tuple[Array, Array]]:
    """Return each result with the size of the error that rounding to `eps` may cause, per element."""
    found = Meaning(jaxpr, args, eps)
    return list(zip(found.exact, found.bars, strict=True))


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
    each = [Limits(float(info.eps), float(info.max)) for info in infos]
    each += [limits(inner) for e in jaxpr.equations for inner in inner_jaxprs(e.params)]
    return Limits(max((x.eps for x in each), default=0.0), min((x.most for x in each), default=np.inf))
