"""Functions of integers: common divisors and multiples, and counts of bits."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.lax.unbounded import run_while
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise
from functorch_like.primitives.reductions import reductions

_DOC = """{summary}

    Args:
        x1: integers.
        x2: integers; the two broadcast.

    Returns:
        Integers of the common dtype, of the shape that both broadcast to.

    Raises:
        DtypeError: for anything but integers and booleans.

    >>> int(fnp.{name}(12, 18))
    {value}
    """


def _integers(name: str, *xs: Any) -> list[Any]:
    for x in xs:
        if not (dtypes.is_integer(aval_of(x).dtype) or aval_of(x).dtype == dtypes.bool_):
            raise promotion.error(
                DtypeError, f"fnp.{name} takes integers, got {aval_of(x)!r}", "convert with astype('int32')"
            )
    xs = tuple(promotion.promote_and_broadcast(*xs))
    # Remainders exceed the four bits of int4, and booleans have none.
    small = aval_of(xs[0]).dtype == dtypes.bool_
    return [promotion.convert(x, dtypes.default_int()) if small else x for x in xs]


def _size(x: Any) -> Any:
    return x if dtypes.is_unsigned(aval_of(x).dtype) else elementwise.abs(x)


def _euclid(a: Any, b: Any) -> Any:
    """Run Euclid's algorithm for all elements until the last ends (Knuth, The Art of Computer Programming, 4.5.2)."""
    zero = promotion.like(b, 0)

    def rest(pair: Any) -> Any:
        x, y = pair
        done = elementwise.eq(y, zero)
        return elementwise.select_n(done, y, x), elementwise.select_n(
            done, elementwise.rem(x, elementwise.select_n(done, y, promotion.like(y, 1))), y
        )

    def going(pair: Any) -> Any:
        return reductions.reduce_or(elementwise.ne(pair[1], zero), axes=tuple(range(aval_of(zero).ndim)))

    return _size(run_while(going, rest, (a, b), "gcd", expected_steps=20)[0])


def _gcd(x: Any, y: Any) -> Any:
    x, y = _integers("gcd", x, y)
    return _euclid(_size(x), _size(y))


def _lcm(x: Any, y: Any) -> Any:
    x, y = (_size(v) for v in _integers("lcm", x, y))
    divisor = _euclid(x, y)
    none = elementwise.eq(divisor, promotion.like(divisor, 0))
    return elementwise.mul(elementwise.div(x, elementwise.select_n(none, divisor, promotion.like(divisor, 1))), y)


def _count(x: Any) -> Any:
    dtype = aval_of(x).dtype
    if dtype == dtypes.bool_:
        return promotion.convert(x, dtypes.uint8)
    if not dtypes.is_integer(dtype):
        raise promotion.error(
            DtypeError, f"fnp.bitwise_count takes integers, got {aval_of(x)!r}", "convert with astype"
        )
    return promotion.convert(elementwise.population_count(_size(promotion.convert(x, dtype))), dtypes.uint8)


gcd = promotion.binary(
    "gcd", _gcd, _DOC.format(summary="The greatest common divisor, never negative.", name="gcd", value=6)
)
lcm = promotion.binary(
    "lcm", _lcm, _DOC.format(summary="The least common multiple, never negative.", name="lcm", value=36)
)
bitwise_count = promotion.unary(
    "bitwise_count",
    _count,
    """The number of bits of |x| that are 1.

    Args:
        x: integers or booleans.

    Returns:
        uint8, of the shape of x.

    Raises:
        DtypeError: for other dtypes.

    >>> int(fnp.bitwise_count(-7))
    3
    """,
)
