"""Arrays in files, in NumPy's formats."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a .npy file.

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
    np.save(file, np.asarray(fnp.asarray(arr)), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a .npz file: `arr_0`, `arr_1`, ..., and those with names.

    >>> import io
    >>> fnp.savez(file := io.BytesIO(), x=fnp.arange(2))
    >>> _ = file.seek(0)
    >>> fnp.load(file)["x"].tolist()
    [0, 1]
    """
    host = lambda a: np.asarray(fnp.asarray(a))
    named = {name: host(a) for name, a in kwds.items()}
    np.savez(file, *map(host, args), allow_pickle=allow_pickle, **named)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read what `save`, `savez` and NumPy wrote.

    NumPy's files do not name the dtypes that are not NumPy's own: two-byte ones are read as bfloat16.

    Args:
        file: path or open file.
        args: as for `numpy.load`.
        kwargs: as for `numpy.load`.

    Returns:
        An array; of a .npz file NumPy's mapping from names to NumPy arrays.

    >>> import io
    >>> fnp.save(file := io.BytesIO(), fnp.ones(2, "bfloat16"))
    >>> _ = file.seek(0)
    >>> fnp.load(file).dtype.name
    'bfloat16'
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return fnp.asarray(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)
