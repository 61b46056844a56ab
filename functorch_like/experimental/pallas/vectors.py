"""Operations on vectors of TPUs: rotations, and the same bits as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.calling.type_variables import X
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.shapes import bitcast_convert_type

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def roll(
    x: ArrayLike, shift: ArrayLike, axis: int, *, stride: int | None = None, stride_axis: int | None = None
) -> Array:
    """Rotate an array along an axis.

    Args:
        x: the array.
        shift: number of elements; may be traced.
        axis: the axis.
        stride: number of elements more by which each index along `stride_axis` is rotated.
        stride_axis: another axis.

    Raises:
        ArgumentError: for one of `stride` and `stride_axis` without the other.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.roll(fnp.arange(4), 1, 0).tolist()
        [3, 0, 1, 2]
    """
    x = fnp.asarray(x)
    if (stride is None) != (stride_axis is None):
        raise ArgumentError(f"roll got stride={stride} and stride_axis={stride_axis}", fix="give both, or none")
    if stride is None or stride_axis is None:
        return fnp.roll(x, shift, axis)
    n = x.shape[axis]
    steps = fnp.arange(x.shape[stride_axis], dtype=np.int32) * stride + shift
    others = [k for k in range(x.ndim) if k not in (axis % x.ndim, stride_axis % x.ndim)]
    places = fnp.arange(n, dtype=np.int32)
    grid = places[:, None] - steps if axis % x.ndim < stride_axis % x.ndim else places - steps[:, None]
    index = fnp.broadcast_to(fnp.expand_dims(grid % n, others), x.shape)
    return fnp.take_along_axis(x, index, axis)


def bitcast(x: ArrayLike, ty: DTypeLike) -> Array:
    """Return the same bits as another dtype; the last axis but one has more elements, or fewer, if widths differ.

    Args:
        x: array of two axes or more.
        ty: the dtype.

    Raises:
        ShapeError: for too few axes, or sizes that wider elements do not divide.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.bitcast(fnp.asarray([[1, 65536]], "int32"), "int16").tolist()
        [[1, 0], [0, 1]]
    """
    x = fnp.asarray(x)
    dtype, width = np.dtype(ty), aval_of(x).dtype.itemsize
    cast = lambda x: bitcast_convert_type(x, dtype)
    if dtype.itemsize == width:
        return cast(x)
    ratio = max(dtype.itemsize, width) // min(dtype.itemsize, width)
    if x.ndim < 2 or (dtype.itemsize > width and x.shape[-2] % ratio):
        raise ShapeError(
            f"bitcast of {aval_of(x)!r} to {dtype}", fix=f"give two axes, the first of a multiple of {ratio} elements"
        )
    *lead, rows, columns = x.shape
    if dtype.itemsize < width:
        return fnp.swapaxes(cast(x), -1, -2).reshape((*lead, rows * ratio, columns))
    return cast(fnp.swapaxes(x.reshape((*lead, rows // ratio, ratio, columns)), -1, -2))


def with_memory_space_constraint(x: X, memory_space: object) -> X:
    """Return x: all memory is the device's.

    Args:
        x: an array.
        memory_space: taken, and without effect.

    Example:
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.with_memory_space_constraint(1, pltpu.VMEM)
        1
    """
    return x


def touch(ref: object) -> None:
    """Do nothing: a Ref that is not read or written needs no copy.

    Args:
        ref: a Ref.

    Example:
        >>> pltpu.touch(x_ref)  # doctest: +SKIP
    """


def is_tpu_device() -> bool:
    """Return False: kernels do not run on TPUs.

    Example:
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.is_tpu_device()
        False
    """
    return False
