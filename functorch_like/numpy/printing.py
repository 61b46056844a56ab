"""Arrays as text. NumPy prints them, so its print options apply."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of an array as an expression, as `repr` gives it; arguments as for `numpy.array_repr`.

    Args:
        arr: array.
        max_line_width: columns of a line; NumPy's setting if None.
        precision: digits of floats; NumPy's setting if None.
        suppress_small: write numbers close to 0 as 0; NumPy's setting if None.

    Returns:
        Text such as "Array([0, 1], dtype=int32)".

    >>> fnp.array_repr(fnp.arange(3))
    'Array([0, 1, 2], dtype=int32)'
    """
    options = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{name: value for name, value in options.items() if value is not None}):
        return repr(fnp.asarray(arr))


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as text; arguments as for `numpy.array_str`.

    Args:
        a: array.
        max_line_width: columns of a line; NumPy's setting if None.
        precision: digits of floats; NumPy's setting if None.
        suppress_small: write numbers close to 0 as 0; NumPy's setting if None.

    Returns:
        Text such as "[0 1]".

    >>> fnp.array_str(fnp.arange(3))
    '[0 1 2]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, object]:
    """NumPy's print options, which apply to arrays.

    Returns:
        A dict of option names and values.

    >>> "precision" in fnp.get_printoptions()
    True
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set NumPy's print options.

    Args:
        args: as for `numpy.set_printoptions`.
        kwargs: as for `numpy.set_printoptions`.

    >>> fnp.set_printoptions(precision=4)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[object]:
    """NumPy's print options in a `with` block.

    Args:
        args: as for `numpy.set_printoptions`.
        kwargs: as for `numpy.set_printoptions`.

    Returns:
        A context manager.

    >>> with fnp.printoptions(precision=2):
    ...     print(fnp.asarray([0.1234]))
    [0.12]
    """
    return np.printoptions(*args, **kwargs)
