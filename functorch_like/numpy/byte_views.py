"""The bytes of arrays, read as another dtype or in another order."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.shapes import flip, reshape
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit


def view(x: Any, dtype: Any = None) -> Any:
    """`x.view(dtype)`: the bytes of an array read as another dtype.

    Args:
        x: array.
        dtype: dtype of the result. A narrower one makes the last dimension longer, a wider one makes it shorter.

    Raises:
        ShapeError: where the bytes of the last dimension do not form whole elements.
        DtypeError: for dtypes of less than a byte.

    >>> fnp.asarray([1.0, -2.0]).view("int32").tolist()
    [1065353216, -1073741824]
    >>> fnp.asarray([1 + 2j]).view(fnp.float32).tolist()
    [1.0, 2.0]
    """
    return x if dtype is None else _view(x, dtype=dtypes.as_dtype(dtype))


@eager_jit(static=("dtype",))
def _view(x: Any, dtype: Any) -> Any:
    x, own = promotion.convert(x, aval_of(x).dtype), aval_of(x).dtype
    for kind in (own, dtype):
        if dtypes.itemsize_bits(kind) < 8 and kind != dtypes.bool_:
            raise promotion.error(
                DtypeError, f"{aval_of(x)!r} viewed as {dtype.name}: elements of half a byte", "use astype"
            )
    if own == dtype:
        return x
    last = aval_of(x).shape[-1:]
    size = (last[0] if last else 1) * own.itemsize
    if size % dtype.itemsize or (not last and own.itemsize != dtype.itemsize):
        raise promotion.error(
            ShapeError,
            f"{aval_of(x)!r} has {size} bytes along its last dimension, which cannot be viewed as {dtype.name}",
            "their number must be a multiple of the size of an element; for rank 0, the sizes must be equal",
        )
    shape = (*aval_of(x).shape[:-1], size // dtype.itemsize) if last else ()
    if own == dtypes.bool_:
        x = promotion.convert(x, dtypes.uint8)
    elif own.kind == "c":
        pair = [reshape(part(x), (*aval_of(x).shape, 1)) for part in (elementwise.real, elementwise.imag)]
        x = structural.concatenate(*pair, dimension=aval_of(x).ndim)
    plain = dtypes.uint8 if dtype == dtypes.bool_ else dtypes.real_part(dtype)
    x = _bits(reshape(x, (-1,) if aval_of(x).size else (0,)), plain)
    if dtype.kind == "c":
        x = reshape(x, (*shape, 2))
        starts = [(*[0] * len(shape), i) for i in (0, 1)]
        first, second = (
            structural.slice(x, start_indices=start, limit_indices=(*shape, start[-1] + 1), strides=None)
            for start in starts
        )
        return elementwise.complex(reshape(first, shape), reshape(second, shape))
    return reshape(elementwise.ne(x, promotion.like(x, 0)) if dtype == dtypes.bool_ else x, shape)


def _bits(flat: Any, dtype: Any) -> Any:
    """Bitcast a vector; its bytes stay in one dimension."""
    own = aval_of(flat).dtype
    if own == dtype:
        return flat
    if own.itemsize < dtype.itemsize:
        many = dtype.itemsize // own.itemsize
        flat = reshape(flat, (aval_of(flat).size // many, many))
    out = elementwise.bitcast_convert_type(flat, new_dtype=dtype)
    return reshape(out, (aval_of(out).size,))


def byteswap(x: Any) -> Any:
    """`x.byteswap()`: the bytes of each element in reverse order.

    >>> fnp.asarray([1, 256], "int16").byteswap().tolist()
    [256, 1]
    """
    dtype = aval_of(x).dtype
    if dtype.kind == "c":  # of each part
        return view(byteswap(view(reshape(x, (*aval_of(x).shape, 1)), dtypes.real_part(dtype))), dtype).reshape(
            aval_of(x).shape
        )
    if dtype.itemsize == 1:
        return x
    apart = view(reshape(x, (*aval_of(x).shape, 1)), dtypes.uint8)
    return reshape(view(flip(apart, -1), dtype), aval_of(x).shape)
