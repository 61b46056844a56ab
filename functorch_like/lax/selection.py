"""Choosing between values: clamp, select."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.lax.operands import PYTHON, error, match, value
from functorch_like.primitives import elementwise, structural

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


# ----------------------------------------------------------------------------------------------------------- choosing
def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit elements to the range from `min` to `max`.

    Args:
        min: scalar, or array of the shape of x; of the dtype of x.
        x: array.
        max: like min.

    Returns:
        An array of the shape and dtype of x.

    Raises:
        ShapeError: where bounds are neither scalars nor of the shape of x.
        DtypeError: where dtypes differ.

    >>> lax.clamp(0.0, 1.5, 1.0).item()
    1.0
    """
    if not (type(min) is type(x) is type(max) is ArrayImpl):
        array = lambda v: type(v) not in PYTHON
        if array(x):
            min, max = (
                v if array(v) else match(v, x if not aval_of(x).shape else structural.full((), 0, aval_of(x).dtype))[0]
                for v in (min, max)
            )
        else:
            min, x, max = match(min, x, max)
    return elementwise.clamp(min, x, max)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Select from several arrays, element by element.

    Args:
        which: index of the case, int32; or booleans for two cases, False for the first. A scalar selects a whole case.
        cases: arrays of one shape and dtype; numbers take those of the others.

    Returns:
        An array of the shape and dtype of the cases.

    Raises:
        ShapeError: where the shapes of the cases differ, or there are other than two cases for booleans.

    >>> lax.select_n(True, 1.0, 2.0).item()
    2.0
    """
    if not cases:
        raise error(ArgumentError, "lax.select_n got no cases", "give at least one")
    which = value(which)
    if dtypes.is_integer(aval_of(which).dtype):
        which = structural.convert_element_type(which, new_dtype=dtypes.int32)
    return elementwise.select_n(which, *match(*cases))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where the predicate holds, `on_false` elsewhere.

    Args:
        pred: booleans, or int32 of 0 and 1; a scalar, or of the shape of the others.
        on_true: array or number.
        on_false: array or number of the same shape and dtype.

    Returns:
        An array of the shape and dtype of the cases.

    Raises:
        DtypeError: where pred is neither boolean nor int32.

    >>> lax.select(True, 1.0, 2.0).item()
    1.0
    """
    if aval_of(pred).dtype not in (dtypes.bool_, dtypes.int32):
        raise error(DtypeError, f"lax.select chooses by booleans, got {aval_of(pred)!r}", "compare, or use select_n")
    return select_n(pred, on_false, on_true)
