"""Rounding to a number of decimals."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion as P
from functorch_like.primitives.elementwise import names as E
from functorch_like.transforms.eager_jit import kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounded to the nearest number with so many decimals, halves to even.

    Args:
        a: array or number.
        decimals: may be negative.
        out: not supported, arrays are immutable.

    Raises:
        DtypeError: for booleans.

    >>> fnp.round(fnp.asarray([0.5, 1.5, 2.46]), 0).tolist()
    [0.0, 2.0, 2.0]
    """
    P.no_out(out, "fnp.round")
    return _round(*P.numbers(a), decimals=operator.index(decimals))


@kernel(static=("decimals",), ints=True)
def _round(a: Any, decimals: int) -> Any:
    aval = aval_of(a)
    a = P.convert(a, aval.dtype, aval.weak_type)
    if aval.dtype == dtypes.bool_:
        raise P.error(DtypeError, "booleans cannot be rounded", "convert with astype")
    if dtypes.is_integer(aval.dtype):
        if decimals >= 0:
            return a
        unit = P.like(a, 10**-decimals) if 10**-decimals <= P.bounds(aval.dtype)[1] else None
        if unit is None:
            return P.like(a, 0)
        rest = E.rem(a, unit)  # towards zero; then to the nearest multiple, halves to the even one
        low, size = E.sub(a, rest), E.abs(rest)
        odd = E.ne(E.rem(E.div(low, unit), P.like(a, 2)), P.like(a, 0))
        double = E.sub(unit, size)
        up = E.or_(E.gt(size, double), E.and_(E.eq(size, double), odd))
        step = E.select_n(E.lt(rest, P.like(a, 0)), unit, E.neg(unit)) if dtypes.is_signed(aval.dtype) else unit
        return E.select_n(up, low, E.add(low, step))
    if aval.dtype.kind == "c":
        return E.complex(_round.inline(E.real(a), decimals), _round.inline(E.imag(a), decimals))
    whole = lambda v: E.round(v, rounding_method=1)
    if decimals == 0:
        return whole(a)
    small = aval.dtype.itemsize < 4
    x = P.convert(a, dtypes.float32) if small else a
    scale = P.like(x, 10.0 ** abs(decimals))
    out = E.div(whole(E.mul(x, scale)), scale) if decimals > 0 else E.mul(whole(E.div(x, scale)), scale)
    out = E.select_n(E.is_finite(out), x, out)  # too large to have decimals, or infinite
    return P.convert(out, aval.dtype, aval.weak_type)


around = round
