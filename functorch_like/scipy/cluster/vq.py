"""Vector quantization: the nearest of some vectors for each observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The vector of a code book that is nearest to each observation.

    Args:
        obs: observations (m, n), or (m,) of numbers.
        code_book: vectors (k, n), or (k,), k at least 1.
        check_finite: accepted for compatibility with SciPy; values are not checked.

    Returns:
        The indices of the vectors (m,), and the distances (m,).

    Raises:
        ShapeError: where the shapes do not fit.

    >>> [x.tolist() for x in ft.scipy.cluster.vq.vq(fnp.asarray([[1.0], [5.0]]), fnp.asarray([[0.0], [4.0]]))]
    [[0, 1], [1.0, 1.0]]
    """
    obs, code_book = given(obs, code_book)
    left, right = aval_of(obs), aval_of(code_book)
    fits = left.ndim == right.ndim and left.ndim in (1, 2) and left.shape[1:] == right.shape[1:]
    if not fits or not right.shape[0]:
        raise promotion.error(ShapeError, f"vq of {left!r} by {right!r}", "give (m, n) and (k, n), k at least 1")
    return _vq(obs, code_book)


@eager_jit
def _vq(obs: Any, book: Any) -> tuple[Any, Any]:
    obs, book = (
        promotion.align_inexact(obs, book)
        if aval_of(obs).shape == aval_of(book).shape
        else promotion.promote(obs, book)
    )
    obs, book = promotion.to_inexact(obs), promotion.to_inexact(book)
    if aval_of(obs).ndim == 1:
        obs, book = obs[:, None], book[:, None]
    gap = obs[:, None, :] - book[None, :, :]
    distance = fnp.sqrt(fnp.sum(gap * gap, -1))
    return fnp.argmin(distance, -1), fnp.min(distance, -1)
