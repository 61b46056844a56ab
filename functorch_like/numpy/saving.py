"""Arrays in files, in NumPy's formats.

NumPy's formats have no names for dtypes that are not NumPy's own (bfloat16, the float8 kinds, int4, ...): for these
NumPy writes elements of 1 or 2 bytes without a type. `save` and `savez` write elements with one field, which has the
name of the dtype. NumPy reads such a file as `np.load(file).view("bfloat16")`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.typing import DTypeLike, NestedArrayLike

#: Dtypes that NumPy's formats do not name, by their names.
_UNNAMED = {dtype.name: dtype for dtype in dtypes.ALL if dtype.isbuiltin != 1}


def save(file: str | os.PathLike[str] | BinaryIO, arr: NestedArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a .npy file; `load` reads all dtypes back.

    Args:
        file: path or open file.
        arr: anything array-like, not traced.
        allow_pickle: as for `numpy.save`.

    >>> import io
    >>> fnp.save(file := io.BytesIO(), fnp.arange(3))
    >>> _ = file.seek(0)
    >>> fnp.load(file).tolist()
    [0, 1, 2]
    """
    np.save(file, _named(arr), allow_pickle=allow_pickle)


def savez(
    file: str | os.PathLike[str] | BinaryIO, *args: NestedArrayLike, allow_pickle: bool = True, **kwds: NestedArrayLike
) -> None:
    """Write several arrays to a .npz file: `arr_0`, `arr_1`, ..., and those with names; `load` reads all dtypes back.

    Args:
        file: path or open file.
        args: arrays, which are named by their positions.
        allow_pickle: as for `numpy.savez`.
        kwds: arrays with their names.

    >>> import io
    >>> fnp.savez(file := io.BytesIO(), x=fnp.ones(2, "bfloat16"))
    >>> _ = file.seek(0)
    >>> fnp.load(file)["x"].dtype.name
    'bfloat16'
    """
    named = {name: _named(a) for name, a in kwds.items()}
    np.savez(file, *map(_named, args), allow_pickle=allow_pickle, **named)


def load(file: str | os.PathLike[str] | BinaryIO, *args: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
    """Read files of `save`, `savez` and NumPy.

    Args:
        file: path or open file.
        args: as for `numpy.load`.
        dtype: the dtype of elements for which the file has none, because NumPy wrote them. Those of two bytes are
            read as bfloat16 where it is left out.
        kwargs: as for `numpy.load`.

    Returns:
        An array; for a .npz file, a mapping from names to NumPy arrays, to be closed or used in a `with` block.

    Raises:
        DtypeError: for elements of one byte whose dtype the file does not name, and no `dtype`.

    >>> import io
    >>> np.save(file := io.BytesIO(), np.asarray(fnp.ones(2, "float8_e4m3fn")))
    >>> _ = file.seek(0)
    >>> fnp.load(file, dtype="float8_e4m3fn").tolist()
    [1.0, 1.0]
    """
    result_dtype = None if dtype is None else dtypes.as_dtype(dtype)
    start = 0 if isinstance(file, (str, os.PathLike)) else file.tell()
    try:
        result = np.load(file, *args, **kwargs)
    except ValueError as e:
        if _F1 not in str(e):
            raise
        result = _of_e5m2(_bytes(file, start))
    return (
        fnp.asarray(_typed(result, result_dtype)) if isinstance(result, np.ndarray) else Archive(result, result_dtype)
    )


class Archive(Mapping[str, Any]):
    """The arrays of a .npz file by name, each read when it is accessed; a `with` block closes the file."""

    def __init__(self, file: Any, dtype: Any) -> None:
        self._file, self._dtype = file, dtype

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._file.files)

    def __getitem__(self, name: str) -> Any:
        try:
            result = self._file[name]
        except ValueError as e:
            if _F1 not in str(e):
                raise
            result = _of_e5m2(self._file.zip.read(name if name.endswith(".npy") else f"{name}.npy"))
        return _typed(result, self._dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file)

    def __len__(self) -> int:
        return len(self._file)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _named(a: Any) -> np.ndarray[Any, Any]:
    """Return an array in a form that NumPy writes: if NumPy has no name for its dtype, as a field with that name."""
    host = np.asarray(fnp.asarray(a))
    if host.dtype.name not in _UNNAMED:
        return host
    return np.ascontiguousarray(host).view([(host.dtype.name, f"<u{host.dtype.itemsize}")]).reshape(host.shape)


#: The dtype that NumPy writes for float8_e5m2, but cannot read.
_F1 = "'<f1'"


def _of_e5m2(content: bytes) -> np.ndarray[Any, Any]:
    """Read a .npy file with float8_e5m2 that NumPy wrote."""
    raw = np.load(io.BytesIO(content.replace(_F1.encode(), b"'|V1'", 1)))
    return raw.view(dtypes.float8_e5m2)


def _bytes(file: Any, start: int) -> bytes:
    if hasattr(file, "read"):
        file.seek(start)
        return file.read()
    return Path(file).read_bytes()


def _typed(a: Any, dtype: Any) -> Any:
    """Return an array from a file in its dtype; `dtype` is that of elements for which the file has none."""
    if not isinstance(a, np.ndarray) or a.dtype.kind != "V":
        return a
    names = a.dtype.names
    if names is not None:
        return a.view(_UNNAMED[names[0]]) if len(names) == 1 and names[0] in _UNNAMED else a
    if dtype is None and a.dtype.itemsize == 2:
        dtype = dtypes.bfloat16
    if dtype is None or dtype.itemsize != a.dtype.itemsize:
        fitting = ", ".join(n for n, d in _UNNAMED.items() if d.itemsize == a.dtype.itemsize)
        raise promotion.error(
            DtypeError,
            f"the file holds elements of {a.dtype.itemsize} bytes and does not say what they are"
            + ("" if dtype is None else f", and one of {dtype} takes {dtype.itemsize}"),
            f'name it: fnp.load(file, dtype="{dtypes.float8_e4m3fn}"); one of {fitting}. fnp.save writes its name'
            if fitting
            else "numpy.save wrote something that is not an array of numbers",
        )
    return a.view(dtype)
