"""Means over the devices of a mesh from compressed values, with error feedback; for use inside of `shard_map`.

Each device keeps the error of its compression, and adds it to the values that it sends the next time.

J. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of speech
DNNs", Interspeech 2014; S. U. Stich et al., "Sparsified SGD with memory", arXiv:1809.07599.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError

if TYPE_CHECKING:
    from functorch_like.core import Array


class Int8Error(NamedTuple):
    """Error feedback: the part of the gradient that a device has not sent yet.

    Attributes:
        sent: error of the device's own values, in the shape of the array.
        summed: error of the part of the mean that the device computes for all, a vector.
    """

    sent: Any
    summed: Any


def int8_error(x: Array, axis_size: int) -> Int8Error:
    """Return the zero error for the first call of `int8_pmean`, for an array like `x`.

    Args:
        x: an array of floats.
        axis_size: number of devices along the axis of the mean.

    Returns:
        An `Int8Error` of zeros, of the dtype of `x`.

    >>> int8_error(fnp.ones((3, 5)), 4).summed.shape
    (4,)
    """
    return Int8Error(fnp.zeros(x.shape, x.dtype), fnp.zeros(-(-math.prod(x.shape) // axis_size), x.dtype))


def _quantized(x: Any) -> tuple[Any, Any]:
    """Integers of 8 bits, and the scale of each row."""
    scale = fnp.max(fnp.abs(x), -1, keepdims=True) / 127
    scale = fnp.where(scale > 0, scale, 1)
    return fnp.round(x / scale).astype("int8"), scale


def int8_pmean(x: Array, axis_name: str, error: Int8Error) -> tuple[Array, Int8Error]:
    """Compute the mean over a named axis from integers of 8 bits: a quarter of the bytes of float32.

    Args:
        x: an array of floats, such as the gradient of the device's own loss.
        axis_name: the axis.
        error: of the call before; `int8_error(x, size)` at first.

    Returns:
        The mean, which is the same on all devices, and the error for the next call.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P
    >>> f = lambda x: int8_pmean(x, "i", int8_error(x, 1))[0]
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> ft.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P())(fnp.asarray([127.0, -3.0])).tolist()
    [127.0, -3.0]
    """
    n = lax.axis_size(axis_name)
    size = math.prod(x.shape)
    width = error.summed.shape[0]
    rows = fnp.pad((x + error.sent).reshape(-1), (0, n * width - size)).reshape(n, width)
    sent, scale = _quantized(rows)
    left = (rows - sent.astype(x.dtype) * scale).reshape(-1)[:size].reshape(x.shape)
    parts = lax.all_to_all(sent, axis_name, 0, 0).astype(x.dtype)
    scales = lax.all_to_all(scale, axis_name, 0, 0)
    total = (parts * scales).sum(0) / n + error.summed
    final, last = _quantized(total[None])
    kept = total - (final.astype(x.dtype) * last)[0]
    every = lax.all_gather(final[0], axis_name).astype(x.dtype) * lax.all_gather(last[0], axis_name)
    return every.reshape(-1)[:size].reshape(x.shape), Int8Error(left, kept)


def topk_pmean(x: Array, axis_name: str, error: Array, k: int) -> tuple[Array, Array]:
    """Compute the mean over a named axis of the `k` entries of each device with the greatest absolute values.

    Args:
        x: an array of floats, such as the gradient of the device's own loss.
        axis_name: the axis.
        error: of the call before; zeros like `x` at first.
        k: number of entries that each device sends, with their positions.

    Returns:
        The mean, which is the same on all devices, and the error for the next call.

    Raises:
        ArgumentError: where `k` is not between 1 and the size of `x`.

    >>> import functorch_like as ft
    >>> from functorch_like.sharding import PartitionSpec as P
    >>> f = lambda x: topk_pmean(x, "i", fnp.zeros_like(x), 1)[0]
    >>> mesh = ft.make_mesh((1,), ("i",))
    >>> ft.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P())(fnp.asarray([2.0, -3.0])).tolist()
    [0.0, -3.0]
    """
    size = math.prod(x.shape)
    if not 0 < k <= size:
        raise ArgumentError(f"topk_pmean sends k={k} of {size} entries", fix=f"use 1 to {size}")
    values = (x + error).reshape(-1)
    _, places = lax.top_k(fnp.abs(values), k)
    chosen = values[places]
    left = values.at[places].set(0).reshape(x.shape)
    every, where = lax.all_gather(chosen, axis_name), lax.all_gather(places, axis_name)
    total = fnp.zeros_like(values).at[where.reshape(-1)].add(every.reshape(-1))
    return (total / lax.axis_size(axis_name)).reshape(x.shape), left
