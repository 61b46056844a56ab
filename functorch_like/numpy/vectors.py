"""Products of vectors: cross products, and matrices times vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.joining import _cut
from functorch_like.numpy.matrix_products import matmul
from functorch_like.numpy.shapes import expand_dims, moveaxis, ndim, squeeze
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The vector product.

    Args:
        a: vectors of three components, or of two in a plane.
        b: vectors of three or two components; other dimensions broadcast.
        axisa: the axis of the components of a.
        axisb: the axis of the components of b.
        axisc: the axis of the components of the result; for vectors in a plane, the result is the third component
            alone, without this axis.
        axis: value for all three.

    Returns:
        An array of the broadcast shape; without the axis, where both have vectors of two elements.

    Raises:
        ShapeError: where vectors have a different number of components.

    >>> fnp.cross(fnp.asarray([1, 0, 0]), fnp.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    a, b = (x if promotion.is_array(x) else asarray(x) for x in (a, b))
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    places = axis_of(axisa, ndim(a), "fnp.cross"), axis_of(axisb, ndim(b), "fnp.cross")
    for x, d in zip((a, b), places, strict=True):
        if aval_of(x).shape[d] not in (2, 3):
            raise promotion.error(
                ShapeError, f"fnp.cross of {aval_of(x)!r} along axis {d}", "vectors have 2 or 3 components"
            )
    return _cross(a, b, *places, axisc)


@eager_jit(static=("axisa", "axisb", "axisc"))
def _cross(a: Any, b: Any, axisa: int, axisb: int, axisc: int) -> Any:
    a, b = promotion.promote(a, b)
    first, second = (
        [squeeze(_cut(x, d, i, i + 1), d) for i in range(aval_of(x).shape[d])] for x, d in ((a, axisa), (b, axisb))
    )  # fmt: skip
    part = lambda i, j: _difference(first, second, i, j)
    if len(first) == len(second) == 2:
        return part(0, 1)
    out = [part(1, 2), part(2, 0), part(0, 1)]
    return moveaxis(structural.concatenate(*[expand_dims(c, 0) for c in out], dimension=0), 0, axisc)


def _difference(a: list[Any], b: list[Any], i: int, j: int) -> Any:
    """Return a[i] b[j] - a[j] b[i]; missing components are zero."""
    times = lambda p, q: elementwise.mul(*promotion.promote_and_broadcast(p, q))
    zero = lambda: promotion.like(times(a[0], b[0]), 0)
    plus = times(a[i], b[j]) if i < len(a) and j < len(b) else zero()
    minus = times(a[j], b[i]) if j < len(a) and i < len(b) else zero()
    return elementwise.sub(plus, minus)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors.

    Args:
        x1: matrices in the last two dimensions.
        x2: vectors in the last one; the dimensions before broadcast.

    Returns:
        (..., m), in the common dtype.

    Raises:
        ShapeError: where x1 has fewer than two dimensions, or sizes differ.

    >>> fnp.matvec(fnp.asarray([[1, 2], [3, 4]]), fnp.asarray([1, 1])).tolist()
    [3, 7]
    """
    x1, x2 = _operands(x1, x2, "fnp.matvec", (2, 1))
    return squeeze(matmul(x1, expand_dims(x2, -1)), -1)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vectors, complex ones conjugated, times matrices.

    Args:
        x1: vectors in the last dimension.
        x2: matrices in the last two; the dimensions before broadcast.

    Returns:
        (..., n), in the common dtype.

    Raises:
        ShapeError: where x2 has fewer than two dimensions, or sizes differ.

    >>> fnp.vecmat(fnp.asarray([1, 1]), fnp.asarray([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    x1, x2 = _operands(x1, x2, "fnp.vecmat", (1, 2))
    x1 = elementwise.conj(x1) if dtypes.is_complex(aval_of(x1).dtype) else x1
    return squeeze(matmul(expand_dims(x1, -2), x2), -2)


def _operands(x1: Any, x2: Any, what: str, least: tuple[int, int]) -> list[Any]:
    pair = [x if promotion.is_array(x) else asarray(x) for x in (x1, x2)]
    for x, n in zip(pair, least, strict=True):
        if ndim(x) < n:
            raise promotion.error(ShapeError, f"{what} of {aval_of(x)!r}", f"give an array of {n} or more dimensions")
    return pair
