"""Arrays from memory, text, files, iterators and functions of indices; and from other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from functorch_like import dtypes
from functorch_like.arrays.conversions import tracer_dlpack
from functorch_like.backends.xla import dlpack
from functorch_like.core import Tracer
from functorch_like.numpy.axes import shape_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.ranges import arange
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DeviceLike, DTypeLike, Shape


def frombuffer(
    buffer: bytes | bytearray | memoryview, dtype: DTypeLike | None = float, count: int = -1, offset: int = 0
) -> Array:
    """A one-dimensional array from memory: bytes, a bytearray, a memoryview; a copy.

    Args:
        buffer: an object that holds bytes.
        dtype: dtype of the elements; float, the default, means float32 unless another default is set.
        count: number of elements; all if -1.
        offset: bytes to skip.

    Returns:
        (count,), or as many as the buffer holds.

    Raises:
        ValueError: where the size of the memory is not a multiple of that of an element, or too small.

    >>> fnp.frombuffer(b"abc", dtype="uint8").tolist()
    [97, 98, 99]
    """
    return asarray(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset))


def fromfunction(
    function: Callable[..., ArrayLike], shape: Shape, *, dtype: DTypeLike | None = float, **kwargs: object
) -> Array:
    """An array whose elements are a function of their indices.

    Args:
        function: called with an index for each dimension, and mapped over all of them by `vmap`; it may return arrays
            and pytrees, too.
        shape: int or sequence of ints.
        dtype: dtype of the indices.
        kwargs: keyword arguments of `function`.

    Returns:
        The results of the function at all indices; their first dimensions are those of `shape`.

    >>> fnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    sizes = shape_of(shape, "fnp.fromfunction")
    mapped: Callable[..., Any] = lambda *index: function(*index, **kwargs)
    for k in reversed(range(len(sizes))):
        mapped = vmap(mapped, in_axes=tuple(0 if i == k else None for i in range(len(sizes))))
    return mapped(*(arange(n, dtype=dtypes.as_dtype(dtype)) for n in sizes))


def fromiter(iter: Iterable[ArrayLike], dtype: DTypeLike | None, count: int = -1) -> Array:
    """A one-dimensional array from numbers of an iterator.

    Args:
        iter: an iterable of numbers.
        dtype: dtype of the array.
        count: number of elements to take; all if -1.

    Returns:
        (count,), or as many as the iterator gives.

    Raises:
        ValueError: where the iterator gives fewer.

    >>> fnp.fromiter((i * i for i in range(4)), int).tolist()
    [0, 1, 4, 9]
    """
    return asarray(np.fromiter(iter, dtypes.as_dtype(dtype), count))


def fromstring(string: str, dtype: DTypeLike | None = float, count: int = -1, *, sep: str) -> Array:
    """A one-dimensional array from numbers in text.

    Args:
        string: the text.
        dtype: dtype of the array.
        count: number of elements to read; all if -1.
        sep: the text between the numbers; white space matches any white space.

    Returns:
        (count,), or as many as the text holds.

    >>> fnp.fromstring("1 2 3", dtype=int, sep=" ").tolist()
    [1, 2, 3]
    """
    return asarray(np.fromstring(string, dtypes.as_dtype(dtype), count, sep=sep))


def fromfile(
    file: str | os.PathLike[str] | BinaryIO,
    dtype: DTypeLike | None = float,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
) -> Array:
    """A one-dimensional array from a file of numbers, as bytes or (with `sep`) text; arguments as for `numpy.fromfile`.

    Args:
        file: path or open file.
        dtype: dtype of the numbers in the file.
        count: number of elements; all if -1.
        sep: the text between numbers; bytes if empty.
        offset: bytes to skip; of files of bytes only.

    Returns:
        (count,), or as many as the file holds.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     _ = f.write(b"abc"); f.flush()
    ...     fnp.fromfile(f.name, "uint8").tolist()
    [97, 98, 99]
    """
    return asarray(np.fromfile(file, dtypes.as_dtype(dtype), count, sep, offset))


def from_dlpack(x: ArrayLike, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """An array from one of another library, by DLPack.

    Memory of another library is copied, since that library may write to it later, and arrays here never change.

    Args:
        x: array with `__dlpack__`.
        device: the device of the result: by default that of x. With "cpu", memory of GPUs is copied to the host.
        copy: True copies arrays of this package, too; False demands that nothing is copied.

    Returns:
        An array of the same shape and dtype.

    Raises:
        BufferError: for `copy=False` where a copy is necessary, and for memory that cannot be read.
        ProtocolError: for objects without DLPack; it is an AttributeError and a TypeError.

    >>> fnp.from_dlpack(np.arange(3.0)).dtype.name
    'float64'
    """
    if isinstance(x, Tracer):
        return tracer_dlpack(x)  # raises: a traced value has no memory
    return dlpack.from_dlpack(x, device=device, copy=copy)
