"""`softmax` and `log_softmax` as in scipy.special: over all axes unless one is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from functorch_like.nn.softmax import log_softmax as _log_softmax
from functorch_like.nn.softmax import softmax as _softmax

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis


def softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)), without overflow. `nn.softmax` sums over the last axis by default.

    Args:
        x: array; integers become floats.
        axis: int, or several: the axes to sum over; None for all.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: where there is no such axis.
        DtypeError: for complex numbers.

    >>> ft.scipy.special.softmax(fnp.zeros((2, 2))).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    return _softmax(x, axis)


def log_softmax(x: ArrayLike, axis: Axis = None) -> Array:
    """x - log(sum(exp(x))), without overflow. `nn.log_softmax` sums over the last axis by default.

    Args:
        x: array; integers become floats.
        axis: int, or several: the axes to sum over; None for all.

    Returns:
        An array of the shape of x.

    Raises:
        ShapeError: where there is no such axis.
        DtypeError: for complex numbers.

    >>> np.exp(np.asarray(ft.scipy.special.log_softmax(fnp.full((1, 2), 1e4)))).tolist()
    [[0.5, 0.5]]
    """
    return _log_softmax(x, axis)
