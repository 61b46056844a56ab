"""Forms of elementwise primitives in single precision that CPUs run on vectors, where XLA calls a scalar function.

All compute in double precision, by polynomials on a short interval (Chebyshev fits by mpmath, good to 2**-33), and
round once at the end: within 0.51 ulp. Measured on XLA:CPU with 2 cores, four to ten times faster.

Some are right only for moderate operands. A program then decides for all elements together whether the standard form
is needed. As that costs a pass over the operands, only large arrays take them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base import integer_division
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.formulas import gamma_single
from functorch_like.primitives.formulas.real import copysign, finite, infinite
from functorch_like.primitives.formulas.term import Term, choose, estrin, quotient, where

#: The least number of elements for which a look at all operands pays, and forms of float64. It is above the size of
#: arrays in loops that are one kernel (docs/lowerings.md).
LARGE = 2560
#: The same where XLA's own code is for vectors, too.
BY_VECTORS = 8192

# -------------------------------------------------------------------------------------------------------------- makers
_FLOAT = "float32 operands"


def double(x: Term) -> Term:
    """Compute in double precision."""
    wide = x.aval.update(dtype=dtypes.float64)
    return Term(x.e, x.e.convert(x.v, wide), wide)


def _lowered(formula: Callable[..., Term]) -> Callable[..., Any]:
    def lower(e: Any, *operands: Any, **params: Any) -> Any:
        (out,) = e.outs
        wide = out.update(dtype=dtypes.float64)
        result = formula(*(double(Term(e, x, out)) for x in operands))
        return e.convert(result.v, out) if result.aval == wide else result.v

    return lower


def always(
    primitive: str, formula: Callable[..., Term], count: int = 1, domain: tuple[float, float] = (-2.0, 2.0)
) -> Any:
    """An alternative for all float32 operands; `formula` takes and gives terms in double precision."""
    return _single(f"{primitive} in double precision", _lowered(formula), count, domain)


def _single(name: str, lower: Callable[..., Any], count: int, domain: tuple[float, float]) -> Alternative:
    edges = lambda: [
        (SampleInput((ShapedArray((2, 7), dtype),) * count, {}, domain), dtype == "float32")
        for dtype in ("float32", "float64", "float16")
    ]
    return Alternative(name, _FLOAT, _is_single, lower, edges)


def large_double(
    primitive: str, formula: Callable[..., Term], count: int = 1, domain: tuple[float, float] = (-2.0, 2.0)
) -> Alternative:
    """An alternative for large float64 arrays; `formula` takes and gives terms in double precision."""

    def lower(e: Any, *operands: Any) -> Any:
        return formula(*(Term(e, x, e.outs[0]) for x in operands)).v

    def edges() -> list[tuple[SampleInput, bool]]:
        of = lambda size, dtype="float64": SampleInput((ShapedArray((size,), dtype),) * count, {}, domain)
        return [(of(LARGE), True), (of(LARGE - 1), False), (of(LARGE, "float32"), False)]

    takes = lambda ins, outs: outs[0].dtype == dtypes.float64 and outs[0].size >= LARGE
    limits = f"float64 operands of {LARGE} elements or more"
    return Alternative(f"{primitive} by vectors", limits, takes, lower, edges)


def _is_single(ins: Any, outs: Any) -> bool:
    return outs[0].dtype == dtypes.float32 and outs[0].size > 0


#: An array with these among its elements takes the standard form.
_EXTREME = (1e10, -3e38, math.inf, math.nan, 0.5, -0.0)


def one_of(e: Any, operands: Sequence[Any], flags: Any, form: Callable[..., Any], standard: Callable[..., Any]) -> Any:
    """Emit both forms; the program takes `form` where all flags are set, else the standard one."""
    (out,) = e.outs
    every = e.reduce("and", flags, True, tuple(range(out.ndim)), ShapedArray((), dtypes.bool_))
    ins, outs = e.ins, e.outs

    def branch(form: Callable[..., Any]) -> Callable[..., list[Any]]:
        def body(inner: Any) -> list[Any]:
            inner.ins, inner.outs = ins, outs
            # Without a barrier XLA considers both branches cheap, and computes both.
            held = [inner.op("stablehlo.optimization_barrier", [x], [out]) for x in operands]
            return [form(inner, *held)]

        return body

    return e.op("stablehlo.if", [every], [out], regions=(((), branch(form)), ((), branch(standard))))


def guarded(
    primitive: str,
    standard: Callable[..., Any],
    formula: Callable[..., Term],
    safe: Callable[..., Term],
    extreme: Sequence[tuple[float, ...]] | None = None,
    dtype: str = "float32",
    least: int = LARGE,
) -> Any:
    """An alternative for large arrays whose elements are all `safe`, which takes terms in double precision too.

    Args:
        primitive: its name.
        standard: the form for other arrays.
        formula: of terms in double precision.
        safe: says of such terms where the formula applies.
        extreme: for samples, values of each operand of which some are not safe.
        dtype: of the operands.
        least: number of elements from which it is taken.
    """
    count, other = safe.__code__.co_argcount, {"float32": "float64", "float64": "float32"}[dtype]

    def lower(e: Any, *operands: Any) -> Any:
        (out,) = e.outs
        flags = safe(*(double(Term(e, x, out)) for x in operands))
        return one_of(e, operands, flags.v, _lowered(formula), standard)

    def edges() -> list[tuple[SampleInput, bool]]:
        of = lambda size, dtype=dtype: SampleInput((ShapedArray((size,), dtype),) * count, {}, (-9.0, 9.0))
        values = extreme or [_EXTREME[k:] for k in range(count)]
        wild = [np.resize(np.array(v, dtype), least) for v in values]
        return [
            (of(least), True),
            (of(least - 1), False),
            (of(least, other), False),
            (SampleInput(tuple(wild)), True),
        ]

    takes = lambda ins, outs: outs[0].dtype == dtype and outs[0].size >= least
    name = f"{primitive} in double precision" if dtype == "float32" else f"{primitive} by vectors"
    limits = f"{dtype} operands of {least} elements or more"
    return Alternative(name, limits, takes, lower, edges, conditional=True, slow_compile=True, optimised_only=True)


# ------------------------------------------------------------------------------------------------- roots and remainders
def cbrt(x: Term) -> Term:
    """Cube root: x r**2 with r = x**(-1/3), by Newton's method from a guess by the bits (Moroz et al., 2021)."""
    e = x.e
    single, bits = (x.aval.update(dtype=np.dtype(d), weak_type=False) for d in ("float32", "int32"))
    size = abs(x)
    raw = e.op("stablehlo.bitcast_convert", [e.convert(size.v, single)], [bits])
    third = Term(e, e.convert(raw, x.aval), x.aval) * (1 / 3)
    start = e.convert((0x548C2B4B - third).v, bits)
    r = double(Term(e, e.op("stablehlo.bitcast_convert", [start], [single]), single))
    for _ in range(4):
        r = r * (4 - size * (r * r * r)) * (1 / 3)
    return where(x.equals(0) | infinite(x), x, copysign(size * (r * r), x))


def _cbrt_without_subnormals() -> Alternative:
    """Subnormal operands count as 0: XLA's cube root of them has either sign and any size."""

    def lower(e: Any, x: Any) -> Any:
        term = Term(e, x, e.outs[0])
        if term.aval.dtype != dtypes.float64:
            return _lowered(cbrt)(e, x)
        zero = abs(term) < float(np.finfo(np.float64).smallest_normal)
        return where(zero, copysign(term.like(0), term), where(zero, 1, term).apply("stablehlo.cbrt")).v

    def edges() -> list[tuple[SampleInput, bool]]:
        of = lambda dtype: SampleInput((ShapedArray((2, 7), dtype),), {}, (-9.0, 9.0))
        return [(of(dtypes.bfloat16), True), (of("float64"), True), (of("float16"), False)]

    takes = lambda ins, outs: outs[0].dtype in (dtypes.bfloat16, dtypes.float64)
    return Alternative("cbrt without subnormal operands", "bfloat16 and float64 operands", takes, lower, edges)


#: 2**x over -1/2 <= x <= 1/2, interpolated in 8 Chebyshev nodes: good to 6e-11.
EXP2_POLYNOMIAL = (
    0.9999999999595618, 0.6931471805568324, 0.24022651213498092, 0.055504109063258665, 0.009618025613318034,
    0.0013333478473685416, 0.00015469729214118296, 1.5303700711365693e-05,
)  # fmt: skip

#: The last bit of float32 numbers of this size is 1.
_LAST_BITS = 1.5 * 2**23


def _exp2(e: Any, x: Any) -> Any:
    """2 to a power: that of the fraction, with the whole part added to the exponent. Subnormal results are 0."""
    (out,) = e.outs
    whole = out.update(dtype=np.dtype("int32"), weak_type=False)
    pattern = lambda v: e.op("stablehlo.bitcast_convert", [v], [whole])
    term = Term(e, x, out)
    inside = term.apply("stablehlo.maximum", -126).apply("stablehlo.minimum", 128)
    # The sum has the whole part in its last bits.
    raw = pattern((inside + _LAST_BITS).v)
    least = e.full(int(np.float32(_LAST_BITS).view(np.int32)), whole)
    fraction = inside - Term(e, e.convert(e.op("stablehlo.subtract", [raw, least], [whole]), out), out)
    power = pattern(e.convert(estrin(double(fraction), EXP2_POLYNOMIAL).v, out))
    moved = e.op("stablehlo.add", [power, e.op("stablehlo.shift_left", [raw, e.full(23, whole)], [whole])], [whole])
    value = Term(e, e.op("stablehlo.bitcast_convert", [moved], [out]), out)
    return where(term < 128, where(term < -126, 0, value), term + math.inf).v  # NaN stays


def few(x: Term, y: Term) -> Term:
    """Return True where a quotient has so few digits that its product with y is exact."""
    return (abs(x) <= 2.0**28 * abs(y)) & (abs(y) > 0) & finite(y)


def rem(x: Term, y: Term) -> Term:
    """x - y trunc(x / y), exactly; the quotient may be rounded up to a whole number."""
    q = quotient(x, y)
    r = x - where(q < 0, -((-q).floor()), q.floor()) * y
    beyond = (r * x) < 0
    return copysign(where(beyond, abs(y) - abs(r), r), x)


# ------------------------------------------------------------------------------------------------------------ integers
def _whole(name: str, lower: Callable[..., Any], standard: Callable[..., Any]) -> Any:
    """An alternative for int32; constant divisors keep the standard form."""

    def takes(ins: Any, outs: Any) -> bool:
        return outs[0].dtype == dtypes.int32 and outs[0].size > 0

    def either(e: Any, x: Any, y: Any) -> Any:
        # Compilers divide by a constant without a division.
        return standard(e, x, y) if e.is_constant(y) else lower(e, x, y)

    def edges() -> list[tuple[SampleInput, bool]]:
        ends = np.array([2**31 - 1, -(2**31), -7, 7, 0, 1, -1, 2**31 - 2], np.int32)
        x, y = (v.ravel() for v in np.meshgrid(ends, ends))
        return [(SampleInput((x, y)), True), (SampleInput((x.astype(np.int64), y.astype(np.int64))), False)]

    return Alternative(f"{name} in double precision", "int32 operands", takes, either, edges)


def _div(e: Any, x: Any, y: Any) -> Any:
    """The quotient of doubles, rounded toward 0; of x / 0 all bits are set, and the one that overflows wraps around.

    XLA multiplies by the reciprocal of a divisor that all elements share: 49 * (1 / 49) is below 1. The half that is
    added to dividends leaves the whole part of the exact quotient as it is, and is more than such errors.
    """
    (out,) = e.outs
    a, b = (double(Term(e, v, out)) for v in (x, y))
    zero = b.equals(0)
    q = where(a < 0, a - 0.5, a + 0.5) / where(zero, 1, b)
    whole = Term(e, e.convert(q.v, out), out)
    return choose(whole, (zero, whole.like(-1)), (q >= 2.0**31, whole.like(-(2**31)))).v


def _rem(e: Any, x: Any, y: Any) -> Any:
    product = e.op("stablehlo.multiply", [_div(e, x, y), y], e.outs)
    return e.op("stablehlo.subtract", [x, product], e.outs)


WHOLE_DIV = _whole("stablehlo.divide", _div, integer_division.quotient)
WHOLE_REM = _whole("stablehlo.remainder", _rem, integer_division.remainder)


# ------------------------------------------------------------------------------------------------------------- the rest
def _rsqrt(e: Any, x: Any) -> Any:
    """XLA's own, which is a vector operation where no operand is negative."""
    term = Term(e, x, e.outs[0])
    return where(term >= 0, term.apply("stablehlo.rsqrt"), math.nan).v


EXP2 = _single("exp2 by its bits", _exp2, 1, (-9.0, 9.0))
LGAMMA = always("lgamma", gamma_single.lgamma, domain=(-9.0, 9.0))
DIGAMMA = always("digamma", gamma_single.digamma, domain=(-9.0, 9.0))
CBRT = always("cbrt", cbrt, domain=(-9.0, 9.0))
CBRT_WITHOUT_SUBNORMALS = _cbrt_without_subnormals()
RSQRT = _single("rsqrt of what is not negative", _rsqrt, 1, (0.1, 9.0))
