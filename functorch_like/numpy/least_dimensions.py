"""Arrays with at least one, two or three dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from functorch_like.numpy.creation import asarray
from functorch_like.numpy.shapes import expand_dims, ndim

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

#: The positions of the dimensions that an array lacks, by the number of those it has.
Missing = dict[int, tuple[int, ...]]
ONE: Missing = {0: (0,)}
TWO: Missing = {0: (0, 1), 1: (0,)}
THREE: Missing = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
COLUMN: Missing = {0: (0, 1), 1: (1,)}


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one dimension.

    Args:
        arys: arrays or numbers.

    Returns:
        An array for one argument, else a list of arrays.

    >>> fnp.atleast_1d(1.0).shape
    (1,)
    """
    return _at_least(arys, ONE)


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two dimensions, new ones in front.

    Args:
        arys: arrays or numbers.

    Returns:
        An array for one argument, else a list of arrays.

    >>> fnp.atleast_2d(fnp.ones(3)).shape
    (1, 3)
    """
    return _at_least(arys, TWO)


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three dimensions: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    Args:
        arys: arrays or numbers.

    Returns:
        An array for one argument, else a list of arrays.

    >>> fnp.atleast_3d(fnp.ones(3)).shape
    (1, 3, 1)
    """
    return _at_least(arys, THREE)


def _at_least(arys: tuple[Any, ...], missing: Missing) -> Any:
    out = [widened(a, missing) for a in map(asarray, arys)]
    return out[0] if len(out) == 1 else out


def widened(x: Any, missing: Missing, rows: bool = False) -> Any:
    """Return an array, or each row of it, with the dimensions that it lacks."""
    lead = int(rows)
    new = missing.get(ndim(x) - lead)
    return x if new is None else expand_dims(x, tuple(d + lead for d in new))
