"""Packing of bits into bytes, and the reverse."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.operands import given
from functorch_like.primitives import structural
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _order(bitorder: Any, name: str) -> Any:
    """Return the weights of the eight bits, as shifts."""
    if bitorder not in ("big", "little"):
        raise promotion.error(ArgumentError, f"fnp.{name} with bitorder={bitorder!r}", "use 'big' or 'little'")
    return bitorder == "big"


def _shifts(big: bool, rank: int) -> Any:
    shifts = np.arange(7, -1, -1) if big else np.arange(8)
    return fnp.asarray(shifts.reshape((1,) * (rank - 1) + (8,)), np.uint8)


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack eight elements, as bits, into each byte.

    Args:
        a: booleans or whole numbers, which count as 1 unless they are 0.
        axis: the axis; None for the flattened array. The last byte is filled up with zeros.
        bitorder: "big" puts the first element into the highest bit, "little" into the lowest.

    Returns:
        uint8, with an eighth of the size along the axis.

    Raises:
        DtypeError: for other dtypes.

    >>> fnp.packbits(fnp.asarray([1, 0, 1])).tolist()
    [160]
    """
    (a,) = given(a)
    if aval_of(a).dtype.kind not in "iub":
        raise promotion.error(DtypeError, f"fnp.packbits of {aval_of(a)!r}", "convert to booleans first, as in a != 0")
    big = _order(bitorder, "packbits")
    return _packbits(a, d=None if axis is None else axis_of(axis, aval_of(a).ndim, "fnp.packbits"), big=big)


@eager_jit(static=("d", "big"))
def _packbits(a: Any, d: int | None, big: bool) -> Any:
    bits = fnp.moveaxis(promotion.convert(a != 0, dtypes.uint8), d, -1) if d is not None else fnp.ravel(a != 0)
    bits = promotion.convert(bits, dtypes.uint8)
    *lead, n = aval_of(bits).shape
    bits = fnp.pad(bits, [(0, 0)] * len(lead) + [(0, -n % 8)])
    rows = fnp.reshape(bits, (*lead, -(-n // 8), 8))
    packed = fnp.sum(fnp.left_shift(rows, _shifts(big, rows.ndim)), -1, dtype=np.uint8)
    return packed if d is None else fnp.moveaxis(packed, -1, d)


def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """Unpack the bits of bytes, one to an element.

    Args:
        a: uint8.
        axis: along which; of the flattened array if None.
        count: number of bits to return along the axis, cut or filled up with zeros; if negative, so many are cut off.
        bitorder: "big" takes the highest bit first, "little" the lowest.

    Returns:
        uint8, of 0 and 1.

    Raises:
        DtypeError: for other dtypes.

    >>> fnp.unpackbits(fnp.asarray([160], "uint8"), count=4).tolist()
    [1, 0, 1, 0]
    """
    (a,) = given(a)
    if aval_of(a).dtype != dtypes.uint8:
        raise promotion.error(DtypeError, f"fnp.unpackbits of {aval_of(a)!r}", "convert to uint8 with astype")
    big, d = _order(bitorder, "unpackbits"), None
    if axis is not None:
        d = axis_of(axis, aval_of(a).ndim, "fnp.unpackbits")
    return _unpackbits(a, d=d, count=None if count is None else operator.index(count), big=big)


@eager_jit(static=("d", "count", "big"))
def _unpackbits(a: Any, d: int | None, count: int | None, big: bool) -> Any:
    a = fnp.ravel(a) if d is None else fnp.moveaxis(a, d, -1)
    *lead, n = aval_of(a).shape
    # A mask for each place, as CPUs cannot shift bytes by different amounts. XLA:CPU uses vectors for masks that it
    # computes, not for those that it reads.
    place = structural.iota(dtype=dtypes.uint8, shape=(8,), dimension=0)
    masks = fnp.left_shift(fnp.asarray(1, np.uint8), 7 - place if big else place)
    bits = fnp.reshape(((a[..., None] & masks) != 0).astype(np.uint8), (*lead, 8 * n))
    if count is not None:
        bit_count = count if count >= 0 else max(8 * n + count, 0)
        bits = fnp.pad(bits[..., :bit_count], [(0, 0)] * len(lead) + [(0, max(bit_count - 8 * n, 0))])
    return bits if d is None else fnp.moveaxis(bits, -1, d)
