"""Functions of integers: common divisors and multiples, and counts of bits."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.lax import while_loop
from functorch_like.numpy import promotion as P
from functorch_like.primitives.elementwise import names as E
from functorch_like.primitives.reductions import reductions as R

_DOC = """{summary}

    Args:
        x1: integers.
        x2: integers; the two broadcast.

    Raises:
        DtypeError: for anything but integers and booleans.

    >>> int(fnp.{name}(12, 18))
    {value}
    """


def _integers(name: str, *xs: Any) -> list[Any]:
    for x in xs:
        if not (dtypes.is_integer(aval_of(x).dtype) or aval_of(x).dtype == dtypes.bool_):
            raise P.error(DtypeError, f"fnp.{name} takes integers, got {aval_of(x)!r}", "convert with astype('int32')")
    xs = tuple(P.align(*xs))
    # Remainders need more than the four bits of int4, and a truth value has none.
    small = aval_of(xs[0]).dtype == dtypes.bool_
    return [P.convert(x, dtypes.default_int()) if small else x for x in xs]


def _size(x: Any) -> Any:
    return x if dtypes.is_unsigned(aval_of(x).dtype) else E.abs(x)


def _euclid(a: Any, b: Any) -> Any:
    """Euclid's algorithm, for all elements until the last is done (Knuth, The Art of Computer Programming, 4.5.2)."""
    zero = P.like(b, 0)

    def rest(pair: Any) -> Any:
        x, y = pair
        done = E.eq(y, zero)
        return E.select_n(done, y, x), E.select_n(done, E.rem(x, E.select_n(done, y, P.like(y, 1))), y)

    def going(pair: Any) -> Any:
        return R.reduce_or(E.ne(pair[1], zero), axes=tuple(range(aval_of(zero).ndim)))

    return _size(while_loop(going, rest, (a, b))[0])


def _gcd(x: Any, y: Any) -> Any:
    x, y = _integers("gcd", x, y)
    return _euclid(_size(x), _size(y))


def _lcm(x: Any, y: Any) -> Any:
    x, y = (_size(v) for v in _integers("lcm", x, y))
    divisor = _euclid(x, y)
    none = E.eq(divisor, P.like(divisor, 0))
    return E.mul(E.div(x, E.select_n(none, divisor, P.like(divisor, 1))), y)


def _count(x: Any) -> Any:
    dtype = aval_of(x).dtype
    if dtype == dtypes.bool_:
        return P.convert(x, dtypes.uint8)
    if not dtypes.is_integer(dtype):
        raise P.error(DtypeError, f"fnp.bitwise_count takes integers, got {aval_of(x)!r}", "convert with astype")
    return P.convert(E.population_count(_size(P.convert(x, dtype))), dtypes.uint8)


gcd = P.binary("gcd", _gcd, _DOC.format(summary="The greatest common divisor, never negative.", name="gcd", value=6))
lcm = P.binary("lcm", _lcm, _DOC.format(summary="The least common multiple, never negative.", name="lcm", value=36))
bitwise_count = P.unary(
    "bitwise_count",
    _count,
    """How many bits of |x| are 1, as uint8.

    Args:
        x: integers or booleans.

    Raises:
        DtypeError: for other dtypes.

    >>> int(fnp.bitwise_count(-7))
    3
    """,
)
