"""Powers in double precision, as a form that CPUs run on vectors: exp(y log(x)) with 68 bits of the logarithm.

XLA:CPU calls a scalar function. Here the logarithm is a sum of two numbers, and so is its product with y. Products of
upper halves (26 bits) are exact. Polynomials are interpolated in Chebyshev nodes by mpmath. Errors are below 0.53 ulp
in double precision, and 0.501 ulp in single precision, which needs no second number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.elementwise.vectorized_cpu import EXP2_POLYNOMIAL, LARGE, double, large_double
from functorch_like.primitives.formulas.logarithm import LAST_BITS
from functorch_like.primitives.formulas.real import bits, negative, of_bits, pattern, upper
from functorch_like.primitives.formulas.term import Term, choose, estrin, polynomial, quotient, where

#: In powers of s**2, for |s| <= tanh(log(2)/8): (atanh(s)/s - 1 - s**2/3) / s**4.
_ATANH = (
    0.19999999999999998, 0.14285714285719198, 0.11111111103445684, 0.09090913464168254, 0.07691180942001291,
    0.06800180228257965,
)  # fmt: skip
#: (exp(r) - 1 - r - r**2/2) / r**3 for |r| <= log(2)/2.
_EXP = (
    0.16666666666666669, 0.041666666666666664, 0.008333333333330062, 0.0013888888888886552, 0.00019841269863053618,
    2.4801587317144498e-05, 2.7557268459997064e-06, 2.755728296954995e-07, 2.510038549551032e-08,
    2.0911236630261545e-09,
)  # fmt: skip
#: log(2) in two parts: a number of 41 bits, whose products with numbers of 12 bits are exact, and the rest.
_LOG2, _LOG2_REST = 0.693147180559663, 2.8235290563031577e-13
#: The square root of 2 is math.sqrt(2) plus this.
_ROOT_REST = -9.667293313452913e-17
#: A third in two parts: a number of 26 bits, and the rest.
_THIRD, _THIRD_REST = 0.3333333283662796, 4.967053731282552e-09
#: In single precision, exponents beyond this give 0, 1 or infinity.
_MOST_SINGLE = 2.0**33
#: Exponents beyond this give 0, 1 or infinity.
_MOST = 2.0**70
_LEAST_LOG, _MOST_LOG = -708.3964185322641, 709.782712893384


def _on_integers(e: Any, whole: ShapedArray) -> Callable[[str, Any, Any], Any]:
    """Return a function that emits an operation on arrays of integers, or on an array and a number."""
    value = lambda v: e.full(v, whole) if isinstance(v, int) else v
    return lambda name, a, b: e.op(f"stablehlo.{name}", [a, value(b)], [whole])


def _log_with_rest(x: Term) -> tuple[Term, Term]:
    """log(x) as a sum, for normal x = c (1 + s)/(1 - s) 2**k with c = 1 or sqrt(2): log(c 2**k) + 2 atanh(s)."""
    raw, whole = bits(x)
    op = _on_integers(x.e, whole)
    exponent = op("shift_right_arithmetic", op("subtract", raw, pattern(2**-0.25, x.aval.dtype)), 52)
    k = of_bits(op("add", exponent, pattern(LAST_BITS, x.aval.dtype)), x) - LAST_BITS
    m = of_bits(op("subtract", raw, op("shift_left", exponent, 52)), x)
    high = m > 2**0.25
    c, c_rest = where(high, math.sqrt(2), m.like(1)), where(high, _ROOT_REST, m.like(0))
    k = k + where(high, 0.5, m.like(0))
    less, more = m - c, m + c
    inverse = 1 / more
    a, b = upper(less * inverse), upper(more)
    # more = b + what m has beyond b - c.
    s_rest = (((less - a * b) - a * (m - (b - c))) - c_rest * (1 + a)) * inverse
    s = a + s_rest
    square = a * a
    square_rest = s_rest * (a + s)
    w = square + square_rest
    # atanh(s) = s (1 + v) with v = w/3 + w**2 (1/5 + ...), v in two parts.
    head = upper(w)
    third = head * _THIRD
    v = upper(third)
    v_rest = (third - v) + (((square - head) + square_rest) * _THIRD + w * (_THIRD_REST + w * estrin(w, _ATANH)))
    product = a * v
    total = a + product
    total_rest = ((a - total) + product) + (s_rest + (s * v_rest + s_rest * v))
    base, twice = k * _LOG2, 2 * total
    result = base + twice
    return result, ((base - result) + twice) + (2 * total_rest + k * _LOG2_REST)


def _exp_of(head: Term, rest: Term) -> Term:
    """exp(head + rest), infinite or 0 beyond the normal numbers. The head has at most 52 bits, and may be NaN."""
    z = head + rest
    n = (z * (1 / math.log(2))).apply("stablehlo.round_nearest_even")
    near, less = head - n * _LOG2, rest - n * _LOG2_REST
    r = near + less
    a = upper(r)
    b = (r - a) + ((near - r) + less)
    half = 0.5 * a * a
    first = 1 + half
    second = first + a
    rest = ((1 - first) + half) + ((first - second) + a)
    power, whole = bits(second + (rest + (b + b * (0.5 * (a + r)) + r * (r * r) * estrin(r, _EXP))))
    raw, _ = bits(n + LAST_BITS)
    op = _on_integers(r.e, whole)
    grown = op("add", power, op("shift_left", raw, 52))
    value = of_bits(op("minimum", grown, pattern(math.inf, r.aval.dtype)), r)
    return where(z <= _MOST_LOG, where(z < _LEAST_LOG, 0, value), z + math.inf)


# ---------------------------------------------------------------------------------------------------- single precision
#: In powers of s**2, for |s| <= (sqrt(2) - 1)/(sqrt(2) + 1): (log2((1 + s)/(1 - s))/s - 2/log(2)) / s**2.
_LOG2_SINGLE = (
    0.9617966939362064, 0.5770779989907244, 0.41220328866519623, 0.3201540564125804, 0.2793475976777026,
)  # fmt: skip


def _power_single(e: Any, x: Any, y: Any) -> Any:
    """2**(y log2(|x|)) in double precision, rounded once; the rest on bits, of which a vector holds twice as many."""
    (result,) = e.outs
    out = result.update(dtype=dtypes.float32)
    base, power = (Term(e, e.convert(v, out), out) for v in (x, y))
    size = abs(base)
    raw, whole = bits(size)
    op = _on_integers(e, whole)
    exponent = op("shift_right_arithmetic", op("subtract", raw, pattern(math.sqrt(0.5), out.dtype)), 23)
    m = double(of_bits(op("subtract", raw, op("shift_left", exponent, 23)), size))
    k = Term(e, e.convert(exponent, m.aval), m.aval)
    s = quotient(m - 1, m + 1)
    w = s * s
    log = k + s * (2 / math.log(2) + w * polynomial(w, _LOG2_SINGLE))
    bounded = where(power > _MOST_SINGLE, _MOST_SINGLE, where(power < -_MOST_SINGLE, -_MOST_SINGLE, power))
    z = double(bounded) * log
    n = z.apply("stablehlo.round_nearest_even")
    part = e.convert(polynomial(z - n, EXP2_POLYNOMIAL).v, out)
    # The whole part, kept within what one can see in a result.
    number, wide = bits(n + LAST_BITS)
    for name, end in (("maximum", LAST_BITS - 200), ("minimum", LAST_BITS + 200)):
        number = e.op(f"stablehlo.{name}", [number, e.full(pattern(end, m.aval.dtype), wide)], [wide])
    grown = op("add", bits(Term(e, part, out))[0], op("shift_left", e.convert(number, whole), 23))
    grown = op("minimum", grown, pattern(math.inf, out.dtype))
    flags = out.update(dtype=dtypes.bool_, weak_type=False)
    small = Term(e, e.compare("LT", grown, e.full(1 << 23, whole), flags, "SIGNED"), flags)
    value = where(small, 0, of_bits(grown, size))
    return e.convert(_signed(base, power, size, value).v, result)


# ------------------------------------------------------------------------------------------------------ special values
def _signed(x: Term, y: Term, size: Term, value: Term) -> Term:
    """x to the power of y, of |x| to that power where both are finite and x is not 0 (C99, F.9.4.4)."""
    ended = size.equals(0) | size.equals(math.inf)
    flags = size > 1
    grows = Term(x.e, x.e.compare("EQ", flags.v, (y > 0).v, flags.aval, "UNSIGNED"), flags.aval)
    value = where(ended, where(grows, math.inf, x.like(0)), value)
    half = 0.5 * y
    whole, even = y.equals(y.floor()), half.equals(half.floor())
    value = where(negative(x) & whole & ~even, -value, value)
    lost = x.differs(x) | y.differs(y) | ((x < 0) & (x > -math.inf) & ~whole)
    return choose(value, (x.equals(1) | y.equals(0), 1), (lost, math.nan))


def pow(x: Term, y: Term) -> Term:
    """x to the power of y."""
    size = abs(x)
    head, rest = _log_with_rest(size)
    bounded = y.apply("stablehlo.maximum", -_MOST).apply("stablehlo.minimum", _MOST)
    a, b = upper(head), upper(bounded)
    value = _exp_of(a * b, (bounded - b) * a + bounded * ((head - a) + rest))
    return _signed(x, y, size, value)


# -------------------------------------------------------------------------------------------------------- alternatives
#: Number of powers in a program from which on they take the standard form: XLA takes 50 ms or more to compile one.
_MOST_FORMS = 8


def _few(form: Alternative, standard: Callable[..., Any]) -> Alternative:
    """Use a form for the first powers of a program, and all but the first apart: fused chains recompute their parts."""

    def lower(e: Any, x: Any, y: Any) -> Any:
        e.forbid_template()
        count = e.memo["powers"] = e.memo.get("powers", 0) + 1
        if count > _MOST_FORMS:
            return standard(e, x, y)
        if count == 1 or e.is_constant(x) or e.is_constant(y):
            return form.lower(e, x, y)
        ins, outs = list(e.ins), list(e.outs)

        def body(inner: Any, x: Any, y: Any) -> list[Any]:
            inner.ins, inner.outs = ins, outs
            return [form.lower(inner, x, y)]

        symbol = e.function((form.name, *ins, *outs), "power", ins, outs, body)
        return e.call(symbol, [x, y], outs, inline=False)[0]

    return form._replace(lower=lower, slow_compile=True, optimised_only=True)


def _large_single(domain: tuple[float, float]) -> Alternative:
    names = "float32", "bfloat16", "float16"

    def edges() -> list[tuple[SampleInput, bool]]:
        of = lambda size, name: SampleInput((ShapedArray((size,), getattr(dtypes, name)),) * 2, {}, domain)
        large = [(of(LARGE, name), name in names) for name in (*names, "float64")]
        return [*large, (of(LARGE - 1, "float32"), False)]

    takes = lambda ins, outs: outs[0].dtype.name in names and outs[0].size >= LARGE
    limits = f"floats of 32 and 16 bits, arrays of {LARGE} elements or more"
    return Alternative("pow in double precision", limits, takes, _power_single, edges)


def forms(standard: Callable[..., Any]) -> list[Alternative]:
    """Return the alternatives of pow for floats, beside a standard form."""
    domain = (0.3, 2.5)
    return [_few(form, standard) for form in (large_double("pow", pow, 2, domain), _large_single(domain))]
