"""Promotion of operands of different dtypes and ranks: NumPy's, or only explicit conversion.

>>> from functorch_like import backends
>>> with backends.promotion.flags(dtypes="strict", ranks="raise"):
...     backends.promotion.dtypes
'strict'
"""

from __future__ import annotations

from typing import Any

from functorch_like.backends.flag_blocks import Block, Flags, Module, adopt
from functorch_like.backends.flag_blocks import flags as _flags
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import one_of


class _Settings(Module, name="promotion"):
    dtypes = Setting(
        "standard",
        one_of("standard", "strict"),
        "Whether arrays of different dtypes may be combined.\n\n"
        "'standard': they are converted to the next dtype of the lattice that holds both. 'strict': that is an error; "
        "Python numbers still take the dtype of the array that they meet, where it is of their kind or higher.",
        changes="nothing: programs are accepted or not",
    )
    ranks = Setting(
        "allow",
        one_of("allow", "warn", "raise"),
        "Whether arrays of different ranks may be combined, the one of fewer dimensions repeated along the others.\n\n"
        "'allow': as in NumPy. 'warn': with a warning, once for each pair of shapes. 'raise': that is an error. "
        "Scalars meet all arrays.",
        changes="nothing: programs are accepted or not",
    )
    widening = Setting(
        "warn",
        one_of("allow", "warn", "raise"),
        "Whether NumPy arrays of float64 or complex128 may widen the floating-point arrays that they meet.\n\n"
        "NumPy arrays keep their dtype, and NumPy makes float64 unasked; so one of them can turn a float32 computation "
        "into a float64 one. 'warn': with a `WideningWarning`, once for each line of yours that does it. 'allow': in "
        "silence. 'raise': that is an error. Arrays whose dtype was named (`fnp.asarray(x, 'float64')`) widen others "
        "in silence, and so do all where float64 is the default dtype. Comparisons widen nothing that lasts.",
        changes="nothing: programs are accepted or not",
    )


dtypes: str
ranks: str
widening: str
flags: Block
adopt(__name__, _Settings)


def numpy_dtype_promotion(value: str) -> Flags:
    """Return a block, or decorator, that allows or refuses to combine arrays of different dtypes, in this thread.

    Args:
        value: "standard" or "strict": see `backends.promotion.dtypes`, which sets it for all threads.

    Returns:
        A context manager, and a decorator.

    Raises:
        ArgumentError: for other values.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> with ft.numpy_dtype_promotion("strict"):
    ...     (fnp.ones(2, "float16") + 1).dtype.name
    'float16'
    """
    return _set("promotion.dtypes", value)


def numpy_rank_promotion(value: str) -> Flags:
    """Return a block, or decorator, that allows or refuses to combine arrays of different ranks, in this thread.

    Args:
        value: "allow", "warn" or "raise": see `backends.promotion.ranks`, which sets it for all threads.

    Returns:
        A context manager, and a decorator.

    Raises:
        ArgumentError: for other values.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> with ft.numpy_rank_promotion("raise"):
    ...     (fnp.ones((2, 3)) + fnp.ones((1, 3))).shape
    (2, 3)
    """
    return _set("promotion.ranks", value)


def _set(name: str, value: Any) -> Flags:
    return _flags({name: value})
