"""Formulas for the emitter: `a * x + 1` on `Term`s writes StableHLO, and `iterate` writes a loop.

Lowerings of special functions are long formulas with several regimes and series that end where they have converged.
A Term is a value of a program with its aval; numbers that meet it become constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.kernel_limits import LOOPS
from functorch_like.primitives.base import kernels


class Term:
    """A value while it is lowered: arithmetic, comparisons and `&`, `|`, `~` as of numbers."""

    __slots__ = ("aval", "e", "v")

    def __init__(self, e: Any, v: Any, aval: ShapedArray) -> None:
        self.e, self.v, self.aval = e, v, aval

    def like(self, number: Any) -> Term:
        """A number in the shape of this term; a term as it is."""
        return number if isinstance(number, Term) else Term(self.e, self.e.full(number, self.aval), self.aval)

    def apply(self, op: str, *others: Any) -> Term:
        """An operation, StableHLO's or CHLO's, whose result is as this term."""
        e = self.e
        return Term(e, e.op(op, [self.v, *(self.like(o).v for o in others)], [self.aval]), self.aval)

    def _compare(self, direction: str, other: Any) -> Term:
        flags = self.aval.update(dtype=dtypes.bool_, weak_type=False)
        return Term(self.e, self.e.compare(direction, self.v, self.like(other).v, flags, "FLOAT"), flags)

    def __add__(self, other: Any) -> Term:
        return self.apply("stablehlo.add", other)

    def __sub__(self, other: Any) -> Term:
        return self.apply("stablehlo.subtract", other)

    def __mul__(self, other: Any) -> Term:
        return self.apply("stablehlo.multiply", other)

    def __truediv__(self, other: Any) -> Term:
        return self.apply("stablehlo.divide", other)

    def __rsub__(self, other: Any) -> Term:
        return self.like(other) - self

    def __rtruediv__(self, other: Any) -> Term:
        return self.like(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Term:
        return self.apply("stablehlo.negate")

    def __abs__(self) -> Term:
        return self.apply("stablehlo.abs")

    def __lt__(self, other: Any) -> Term:
        return self._compare("LT", other)

    def __le__(self, other: Any) -> Term:
        return self._compare("LE", other)

    def __gt__(self, other: Any) -> Term:
        return self._compare("GT", other)

    def __ge__(self, other: Any) -> Term:
        return self._compare("GE", other)

    def equals(self, other: Any) -> Term:
        """Return True where two terms are equal."""
        return self._compare("EQ", other)

    def differs(self, other: Any) -> Term:
        """Return True where two terms are not equal, as NaN is not to itself."""
        return self._compare("NE", other)

    def __and__(self, other: Term) -> Term:
        return self.apply("stablehlo.and", other)

    def __or__(self, other: Term) -> Term:
        return self.apply("stablehlo.or", other)

    def __invert__(self) -> Term:
        return self.apply("stablehlo.not")

    def log(self) -> Term:
        """Natural logarithm."""
        return self.apply("stablehlo.log")

    def log1p(self) -> Term:
        """log(1 + x). XLA's, in double precision, loses three digits between -0.42 and -0.29."""
        plain = self.apply("stablehlo.log_plus_one")
        return where(self < -0.25, (self + 1).log(), plain) if self.aval.dtype == dtypes.float64 else plain

    def exp(self) -> Term:
        """The exponential."""
        return self.apply("stablehlo.exponential")

    def sqrt(self) -> Term:
        """Square root."""
        return self.apply("stablehlo.sqrt")

    def floor(self) -> Term:
        """The greatest whole number not above."""
        return self.apply("stablehlo.floor")


def where(condition: Term, x: Any, y: Any) -> Term:
    """x where the condition holds, y elsewhere; one of them may be a number."""
    model = x if isinstance(x, Term) else y
    x, y = model.like(x), model.like(y)
    return Term(model.e, model.e.op("stablehlo.select", [condition.v, x.v, y.v], [model.aval]), model.aval)


def choose(otherwise: Any, *cases: tuple[Term, Any]) -> Term:
    """The value of the first case whose condition holds."""
    for condition, value in reversed(cases):
        otherwise = where(condition, value, otherwise)
    return otherwise


def quotient(x: Term, y: Term) -> Term:
    """x / y for several readers: XLA:CPU ends a fusion at a division that more than one operation reads.

    A selection reads it here, which changes nothing.
    """
    return where(y.equals(y), x / y, y) if y.e.platform == "cpu" else x / y


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """Coefficients from the lowest power on, by Horner's rule."""
    total = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def estrin(x: Any, coefficients: Sequence[float]) -> Any:
    """Coefficients from the lowest power on, by Estrin's scheme: pairs first, then pairs of pairs.

    A processor evaluates the pairs at the same time, where Horner's rule waits for each product. For Terms and arrays.
    """
    parts: list[Any] = list(coefficients)
    while len(parts) > 1:
        pairs = [low + high * x for low, high in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[-1:] if len(parts) % 2 else pairs
        x = x * x
    return parts[0]


def widened(formula: Callable[..., Term], narrow: Callable[..., Term] | None = None) -> Callable[..., Any]:
    """A lowering that computes in float64 and rounds once at the end.

    Args:
        formula: of terms in float64.
        narrow: the same with fewer digits, for results in lower precision.
    """

    def lower(e: Any, *operands: Any, **params: Any) -> Any:
        (out,) = e.outs
        if not out.size:
            return e.full(0, out)
        wide = out.update(dtype=dtypes.float64)
        picked = formula if narrow is None or out.dtype == dtypes.float64 else narrow
        return e.convert(picked(*(Term(e, e.convert(x, wide), wide) for x in operands), **params).v, out)

    return lower


def operation(op: str) -> Callable[..., Any]:
    """A lowering to one operation."""
    return lambda e, *operands: e.op(op, operands, e.outs)


def in_single(formula: Callable[..., Term]) -> Callable[..., Any]:
    """A lowering that computes half precision in float32, and the others as they are."""

    def lower(e: Any, *operands: Any) -> Any:
        (out,) = e.outs
        wide = out if out.dtype.itemsize >= 4 else out.update(dtype=dtypes.float32)
        if wide is out:
            return formula(*(Term(e, x, out) for x in operands)).v
        return e.convert(formula(*(Term(e, e.convert(x, wide), wide) for x in operands)).v, out)

    return lower


def iterate(
    state: Sequence[Term],
    given: Sequence[Term],
    active: Term,
    step: Callable[..., tuple[Sequence[Term], Term]],
    most: int,
) -> list[Term]:
    """Repeat `step(k, given, *state) -> (state, done)` for k = 1, 2, ..., in each element until it is done.

    Args:
        state: terms of one aval.
        given: further terms of that aval, which stay as they are.
        active: where there is anything to do.
        step: k comes as a term of that aval.
        most: the greatest k.
    """
    e, aval, flags = state[0].e, state[0].aval, active.aval
    flag, count = ShapedArray((), dtypes.bool_), ShapedArray((), aval.dtype)
    every, fixed = tuple(range(aval.ndim)), len(given)

    def going(inner: Any, k: Any, live: Any, *values: Any) -> list[Any]:
        some = inner.reduce("or", live, False, every, flag) if every else live
        early = inner.compare("LE", k, inner.full(most, count), flag, "FLOAT")
        return [inner.op("stablehlo.and", [some, early], [flag])]

    def body(inner: Any, k: Any, live: Any, *values: Any) -> list[Any]:
        here, terms = Term(inner, live, flags), [Term(inner, v, aval) for v in values]
        old = terms[fixed:]
        number = Term(inner, inner.broadcast_in_dim(k, aval, ()) if every else k, aval)
        new, done = step(number, terms[:fixed], *old)
        kept = [where(here, n, o).v for n, o in zip(new, old, strict=True)]
        after = inner.op("stablehlo.add", [k, inner.full(1, count)], [count])
        return [after, (here & ~done).v, *values[:fixed], *kept]

    avals = [count, flags, *[aval] * (fixed + len(state))]
    start = [e.constant(np.ones((), count.dtype)), active.v, *(t.v for t in (*given, *state))]
    small = aval.size <= LOOPS.reduced and kernels.allowed(e)
    out = e.loop(start, avals, going, body, one_kernel=small)
    return [Term(e, v, aval) for v in out[2 + fixed :]]


def where_needed(active: Term, formula: Callable[..., Any], *operands: Term, count: int = 1) -> list[Term]:
    """Evaluate a formula only if some element needs it: a loop of at most one step.

    Args:
        active: where the result is used.
        formula: of the operands; returns a term, or a tuple of `count` terms.
        operands: terms of one aval, safe to compute with.
        count: number of results, which are 0 where they are not active.
    """

    def step(k: Term, given: Any, *state: Term) -> Any:
        # Without a barrier that depends on the step, and is read, XLA moves the formula in front of the loop.
        e, terms = k.e, [k, *given]
        held = e.op("stablehlo.optimization_barrier", [t.v for t in terms], [t.aval for t in terms])
        number, *kept = (Term(e, v, t.aval) for v, t in zip(held, terms, strict=True))
        made = formula(*kept)
        return made if isinstance(made, tuple) else (made,), number > 0

    return iterate([operands[0].like(0)] * count, operands, active, step, 1)
