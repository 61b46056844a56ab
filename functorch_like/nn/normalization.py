"""One-hot encoding, and standardisation to mean 0 and variance 1."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, FtError
from functorch_like.nn.softmax import axes_of, floats_of, mask_of
from functorch_like.numpy import creation, promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions import makers
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike


# ------------------------------------------------------------------------------------------------- one_hot, standardize
def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1) -> Array:
    """Encode indices as vectors with a single 1; indices out of bounds give zeros.

    Args:
        x: array of integers.
        num_classes: the length of the vectors.
        dtype: dtype of the result; the default float dtype if None.
        axis: the dimension of the vectors in the result.

    Returns:
        An array of that dtype with one more dimension, of size num_classes.

    Raises:
        DtypeError: for indices that are neither integers nor booleans; under JAX's names floats are compared.
        ArgumentError: for a number of classes that is not a Python int.
        ShapeError: for an axis that the result does not have.

    >>> nn.one_hot(np.array([0, 2, 3]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    x = creation.operand_of(x)
    aval = aval_of(x)
    of_floats = dtypes.is_float(aval.dtype) and dtypes.STRONG_SCALARS.value  # JAX compares them
    if not dtypes.is_integer(aval.dtype) and aval.dtype != dtypes.bool_ and not of_floats:
        raise promotion.error(DtypeError, f"nn.one_hot takes integers, got {aval!r}", "convert with astype")
    try:
        count = operator.index(num_classes)
    except (TypeError, FtError):
        count = -1
    if count < 0:
        raise promotion.error(
            ArgumentError,
            f"num_classes={num_classes!r} is not a size",
            "give a Python int; an argument of jit that is one is static: jit(static_argnums=...)",
        )
    (at,) = axes_of(axis, aval.ndim + 1, "nn.one_hot")
    result_dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    return _one_hot(x, count=count, dtype=result_dtype, axis=at)


@eager_jit(static=("count", "dtype", "axis"))
def _one_hot(x: Any, count: int, dtype: Any, axis: int) -> Any:
    aval = aval_of(x)
    number = dtypes.int64 if aval.dtype in (dtypes.int64, dtypes.uint32, dtypes.uint64) else dtypes.int32
    if aval.dtype == dtypes.uint64:
        number = dtypes.uint64
    if dtypes.is_float(aval.dtype):  # what is no whole number belongs to no class
        number = dtypes.float64 if aval.dtype == dtypes.float64 else dtypes.float32
    wide = structural.widen(promotion.convert(x, number), count, axis)
    places = structural.iota(dtype=number, shape=aval_of(wide).shape, dimension=axis)
    return promotion.convert(elementwise.eq(wide, places), dtype)


@with_kernel(1, values=("mean", "variance", "epsilon", "where"))
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
) -> Array:
    """(x - mean) / sqrt(variance + epsilon).

    Args:
        x: array; integers become floats.
        axis: int, or several, or None for all: the axes of mean and variance.
        mean: array that broadcasts to x; the mean of x by default.
        variance: array that broadcasts to x; by default the mean of (x - mean)**2.
        epsilon: positive number that avoids a division by 0.
        where: booleans that broadcast to x; True for elements that count in mean and variance.

    Returns:
        Floats, of the shape of x.

    Raises:
        ShapeError: for an axis that x does not have.
        DtypeError: for complex numbers; for a `where` that is not of booleans.

    >>> nn.standardize(np.array([1.0, 3.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    x = creation.operand_of(x)
    axes = axes_of(axis, aval_of(x).ndim, "nn.standardize")
    return _standardize(x, mean, variance, epsilon, where, axes=axes)


@eager_jit(static=("axes",))
def _standardize(x: Any, mean: Any, variance: Any, epsilon: Any, where: Any, axes: tuple[int, ...]) -> Any:
    x = floats_of(x, "standardize")
    dtype = aval_of(x).dtype
    x = promotion.convert(x, dtypes.accumulator(dtype))
    shape, dtype_of_sums = aval_of(x).shape, aval_of(x).dtype
    like = lambda v, shape: promotion.broadcast(promotion.convert(v, dtype_of_sums), shape)
    spread = lambda v: makers.spread(v, shape, axes)
    where = None if where is None else mask_of(where, x)

    def average(v: Any) -> Any:
        """Return the mean along the axes, without them."""
        if where is None:
            total = structural.reduce_sum(v, axes=axes)
            return elementwise.div(total, structural.full_like(total, math.prod(shape[d] for d in axes)))
        count = structural.reduce_sum(promotion.convert(where, dtype_of_sums), axes=axes)
        total = structural.reduce_sum(elementwise.select_n(where, structural.full_like(v, 0), v), axes=axes)
        return elementwise.div(total, count)

    centred = elementwise.sub(x, spread(average(x)) if mean is None else like(mean, shape))
    if variance is None and not aval_of(epsilon).shape:
        # One root for each mean, not for each element.
        small = average(elementwise.square(centred))
        root = spread(elementwise.rsqrt(elementwise.add(small, like(epsilon, aval_of(small).shape))))
    else:
        wide = spread(average(elementwise.square(centred))) if variance is None else like(variance, shape)
        root = elementwise.rsqrt(elementwise.add(wide, like(epsilon, shape)))
    return promotion.convert(elementwise.mul(centred, root), dtype)
