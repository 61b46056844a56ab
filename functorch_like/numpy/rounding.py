"""Rounding to a number of decimals."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


@with_kernel(1)
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to the nearest number with so many decimals, and halves to even.

    Args:
        a: array or number.
        decimals: number of decimals, which may be negative.
        out: not supported: arrays are immutable.

    Returns:
        An array of the shape and dtype of the operand.

    Raises:
        DtypeError: for booleans.

    >>> fnp.round(fnp.asarray([0.5, 1.5, 2.46]), 0).tolist()
    [0.0, 2.0, 2.0]
    """
    promotion.no_out(out, "fnp.round")
    return _round(*promotion.numbers(a), decimals=operator.index(decimals))


@eager_jit(static=("decimals",), ints=True, checked=True)
def _round(a: Any, decimals: int) -> Any:
    aval = aval_of(a)
    a = promotion.convert(a, aval.dtype, aval.weak_type)
    if aval.dtype == dtypes.bool_:
        raise promotion.error(DtypeError, "booleans cannot be rounded", "convert with astype")
    if dtypes.is_integer(aval.dtype):
        if decimals >= 0:
            return a
        unit = promotion.like(a, 10**-decimals) if 10**-decimals <= promotion.bounds(aval.dtype)[1] else None
        if unit is None:
            return promotion.like(a, 0)
        rest = elementwise.rem(a, unit)  # towards zero; then to the nearest multiple, with halves to the even one
        low, size = elementwise.sub(a, rest), elementwise.abs(rest)
        odd = elementwise.ne(elementwise.rem(elementwise.div(low, unit), promotion.like(a, 2)), promotion.like(a, 0))
        double = elementwise.sub(unit, size)
        up = elementwise.or_(elementwise.gt(size, double), elementwise.and_(elementwise.eq(size, double), odd))
        step = (
            elementwise.select_n(elementwise.lt(rest, promotion.like(a, 0)), unit, elementwise.neg(unit))
            if dtypes.is_signed(aval.dtype)
            else unit
        )
        return elementwise.select_n(up, low, elementwise.add(low, step))
    if aval.dtype.kind == "c":
        return elementwise.complex(
            _round.inline(elementwise.real(a), decimals), _round.inline(elementwise.imag(a), decimals)
        )
    whole = lambda v: elementwise.round(v, rounding_method=1)
    if decimals == 0:
        return whole(a)
    small = aval.dtype.itemsize < 4
    x = promotion.convert(a, dtypes.float32) if small else a
    scale = promotion.like(x, 10.0 ** abs(decimals))
    out = (
        elementwise.div(whole(elementwise.mul(x, scale)), scale)
        if decimals > 0
        else elementwise.mul(whole(elementwise.div(x, scale)), scale)
    )
    out = elementwise.select_n(elementwise.is_finite(out), x, out)  # too large to have decimals, or infinite
    return promotion.convert(out, aval.dtype, aval.weak_type)


around = round
