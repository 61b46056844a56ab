"""New arrays: filled with one number, or counting along a dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ShapeError
from functorch_like.lax.operands import axis_of, error, ints
from functorch_like.primitives import structural
from functorch_like.primitives.structural.sharding_constraint import split_as
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


# ------------------------------------------------------------------------------------------------------- new arrays
def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """An array filled with one value.

    Args:
        shape: sequence of ints.
        fill_value: scalar.
        dtype: dtype of the result; by default that of the value.

    Returns:
        An array of that shape.

    Raises:
        ShapeError: where the value is not a scalar, or a size is negative.

    >>> lax.full((2,), 7).tolist()
    [7, 7]
    """
    weak = dtype is None and not isinstance(fill_value, np.generic) and aval_of(fill_value).weak_type
    return _full_of(shape, fill_value, dtype, weak)


def _full_of(shape: Any, fill_value: Any, dtype: Any, weak: bool) -> Array:
    if type(fill_value) is int and dtype is not None:  # it may exceed the default int, for a wider dtype
        fill_value = np.asarray(fill_value)
    aval = aval_of(fill_value)
    if aval.shape:
        raise error(
            ShapeError, f"lax.full takes a scalar to fill with, got {aval!r}", "give a scalar, or use broadcast_in_dim"
        )
    result_dtype = aval.dtype if dtype is None else dtypes.as_dtype(dtype)
    if type(fill_value) is not ArrayImpl and not isinstance(fill_value, Tracer):
        with np.errstate(all="ignore"):
            fill_value = np.asarray(fill_value).astype(result_dtype)
    return _full(fill_value, shape=ints(shape, "shape"), dtype=result_dtype, weak=weak)


@eager_jit(static=("shape", "dtype", "weak"))
def _full(x: Any, shape: tuple[int, ...], dtype: Any, weak: bool) -> Any:
    return structural.broadcast_in_dim(convert(x, dtype, weak), shape=shape, broadcast_dimensions=())


def empty(shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """An array with unspecified content; here it holds zeros.

    Args:
        shape: sequence of ints.
        dtype: dtype of the result; the default float if None.

    Returns:
        An array of that shape and dtype.

    >>> lax.empty((2,), "int32").shape
    (2,)
    """
    return full(shape, 0, dtypes.default_float() if dtype is None else dtype)


def convert(x: Any, dtype: Any, weak: bool = False) -> Any:
    """Return `x` in a dtype, strongly typed by default."""
    aval = aval_of(x)
    same = aval.dtype == dtype and aval.weak_type == weak
    return x if same else structural.convert_element_type(x, new_dtype=dtype, weak_type=weak)


def full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None) -> Array:
    """An array filled with one value, by default with the shape and dtype of another array.

    Args:
        x: array or tracer whose shape and dtype are taken.
        fill_value: number, or array of rank 0.
        dtype: dtype of the result; that of `x` if None.
        shape: shape of the result; that of `x` if None.

    Returns:
        An array of the operand's shape and dtype, unless others are given.

    >>> lax.full_like(fnp.zeros(2), 7).tolist()
    [7.0, 7.0]
    """
    reference: Any = x if hasattr(x, "is_reference") else None
    aval = aval_of(x) if reference is None else reference.aval.inner_aval
    sizes = aval.shape if shape is None else shape
    made = _full_of(sizes, fill_value, aval.dtype if dtype is None else dtype, dtype is None and aval.weak_type)
    if shape is None and aval.explicit is not None:
        return split_as(made, aval.explicit)
    where = xla.split_of(x) if shape is None and not isinstance(made, Tracer) else None
    return made if where is None else xla.device_put(made, where)


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros in the shape and dtype of an array.

    Args:
        x: array.

    Returns:
        An array of the shape and dtype of x.

    >>> lax.zeros_like_array(fnp.ones(2)).tolist()
    [0.0, 0.0]
    """
    return full_like(x, 0)


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1, 2, ... up to size - 1.

    Args:
        dtype: dtype of the numbers.
        size: int: how many numbers.

    Returns:
        An array of shape (size,).

    >>> lax.iota("int32", 3).tolist()
    [0, 1, 2]
    """
    return structural.iota(dtype=dtypes.as_dtype(dtype), shape=ints(size, "size"), dimension=0)


def broadcasted_iota(dtype: DTypeLike, shape: Shape, dimension: int) -> Array:
    """An array whose elements count along one dimension.

    Args:
        dtype: dtype of the result; not bool.
        shape: sequence of ints.
        dimension: the dimension to count along.

    Returns:
        An array of that shape and dtype.

    Raises:
        ShapeError: where there is no such dimension.

    >>> lax.broadcasted_iota("int32", (2, 2), 1).tolist()
    [[0, 1], [0, 1]]
    """
    sizes = ints(shape, "shape")
    return structural.iota(
        dtype=dtypes.as_dtype(dtype), shape=sizes, dimension=axis_of(dimension, len(sizes), "dimension")
    )
