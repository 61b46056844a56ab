"""Products of several matrices or of tensors taken as matrices; vectors in space; diagonals."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import diagonals, matrix_products, promotion
from functorch_like.numpy import shapes as numpy_shapes
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.linalg.decompositions import matrices
from functorch_like.numpy.linalg.systems import inv, solve
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of a matrix; for negative n, the power of its inverse.

    Args:
        a: array of shape (..., n, n).
        n: int: the exponent.

    Returns:
        An array of shape (..., n, n).

    Raises:
        ArgumentError: for an n that is not an int.

    >>> fnp.linalg.matrix_power(fnp.asarray([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    a = matrices(a, "matrix_power", True)
    try:
        n = operator.index(n)
    except TypeError:
        raise promotion.error(
            ArgumentError, f"fnp.linalg.matrix_power: n={n!r} is not an int", "give a Python int"
        ) from None
    return _power(a, n) if n >= 0 else _power(inv(a), -n)


@eager_jit(static=("n",))
def _power(a: Any, n: int) -> Any:
    out = None
    while n:
        if n & 1:
            out = a if out is None else M.mm(out, a)
        n >>= 1
        a = M.mm(a, a) if n else a
    return M.eye_like(a) if out is None else out


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order that needs the fewest multiplications.

    Args:
        arrays: at least two matrices; the first and the last may be vectors.
        precision: precision of the products, as for `fnp.matmul`.

    Returns:
        The product: a matrix, a vector or a scalar, depending on the dimensions of the first and last array.

    Raises:
        ShapeError: for fewer than two arrays, or vectors in the middle.

    >>> fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((3, 4)), fnp.ones(4)]).tolist()
    [12.0, 12.0]
    """
    operands = tuple(numpy_shapes.arr(a, "fnp.linalg.multi_dot") for a in arrays)
    ranks = [aval_of(a).ndim for a in operands]
    if len(operands) < 2 or any(r != 2 for r in ranks[1:-1]) or any(r not in (1, 2) for r in (ranks[0], ranks[-1])):
        why = f"fnp.linalg.multi_dot of {', '.join(repr(aval_of(a)) for a in operands)}"
        raise promotion.error(ShapeError, why, "give at least two matrices; only the first and last may be vectors")
    return _multi_dot(operands, precision=matrix_products._static(precision, None)[0])


@eager_jit(static=("precision",))
def _multi_dot(arrays: Any, precision: Any) -> Any:
    shapes = [aval_of(a).shape for a in arrays]
    sizes = [shapes[0][0] if len(shapes[0]) == 2 else 1, *(s[0] for s in shapes[1:])]
    sizes.append(shapes[-1][1] if len(shapes[-1]) == 2 else 1)

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Return the cost of the product of arrays i to j, and the best place to split it."""
        if i == j:
            return 0, i
        cost = lambda k: best(i, k)[0] + best(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1]
        return min((cost(k), k) for k in range(i, j))

    def product(i: int, j: int) -> Any:
        if i == j:
            return arrays[i]
        k = best(i, j)[1]
        return matrix_products.matmul(product(i, k), product(k + 1, j), precision=precision)

    return product(0, len(arrays) - 1)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse for `tensordot` over the last axes: of `a` as a matrix from its last axes to its first `ind`.

    Args:
        a: array; the product of its first `ind` sizes is that of the others.
        ind: int: number of dimensions of `a` that count as rows.

    Returns:
        An array of shape `a.shape[ind:] + a.shape[:ind]`, in floating point.

    Raises:
        ShapeError: where the first `ind` sizes and the others do not have the same product.

    >>> fnp.linalg.tensorinv(fnp.eye(4).reshape(2, 2, 4), ind=2).shape
    (4, 2, 2)
    """
    x = numpy_shapes.arr(a, "fnp.linalg.tensorinv")
    shape, ind = aval_of(x).shape, operator.index(ind)
    if ind < 1 or math.prod(shape[:ind]) != math.prod(shape[ind:]):
        why = f"fnp.linalg.tensorinv of {aval_of(x)!r} with ind={ind}"
        raise promotion.error(ShapeError, why, "the first `ind` axes must have as many elements as the others")
    n = math.prod(shape[:ind])
    return inv(x.reshape(n, n)).reshape(*shape[ind:], *shape[:ind])


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b.

    Args:
        a: array of shape b.shape + x.shape, once `axes` are moved to the end.
        b: array.
        axes: axes of `a` to move to its end first.

    Returns:
        An array of the trailing dimensions of `a`, in floating point.

    Raises:
        ShapeError: where `a` is not square in that sense.

    >>> fnp.linalg.tensorsolve(fnp.eye(4).reshape(2, 2, 4), fnp.ones((2, 2))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    a, b = numpy_shapes.arr(a, "fnp.linalg.tensorsolve"), numpy_shapes.arr(b, "fnp.linalg.tensorsolve")
    if axes is not None:
        a = numpy_shapes.moveaxis(a, tuple(axes), tuple(range(-len(tuple(axes)), 0)))
    shape = aval_of(a).shape[aval_of(b).ndim :]
    if math.prod(shape) != aval_of(b).size or aval_of(a).size != aval_of(b).size ** 2:
        why = f"fnp.linalg.tensorsolve of {aval_of(a)!r} and {aval_of(b)!r}"
        raise promotion.error(ShapeError, why, "a must be square as a matrix from its last axes to those of b")
    n = aval_of(b).size
    return solve(numpy_shapes.reshape(a, (n, n)), numpy_shapes.reshape(b, (n,))).reshape(*shape)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of three components.

    Args:
        x1: array of vectors.
        x2: array of vectors; the two broadcast.
        axis: int: the dimension of the components.

    Returns:
        An array of the broadcast shape.

    Raises:
        ShapeError: for vectors that do not have three components.

    >>> fnp.linalg.cross(fnp.asarray([1.0, 0.0, 0.0]), fnp.asarray([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    x1, x2 = numpy_shapes.arr(x1, "fnp.linalg.cross"), numpy_shapes.arr(x2, "fnp.linalg.cross")
    for x in (x1, x2):
        aval = aval_of(x)
        if aval.shape[axis_of(axis, aval.ndim, "fnp.linalg.cross")] != 3:
            raise promotion.error(
                ShapeError, f"fnp.linalg.cross of {aval!r} along axis {axis}", "vectors have three components"
            )
    return _cross(x1, x2, int(axis))


@eager_jit(static=("axis",))
def _cross(a: Any, b: Any, axis: int) -> Any:
    a, b = promotion.promote_and_broadcast(numpy_shapes.moveaxis(a, axis, -1), numpy_shapes.moveaxis(b, axis, -1))
    shape = aval_of(a).shape

    def turned(x: Any, by: int) -> Any:
        zeros = (0,) * (len(shape) - 1)
        part = lambda i, j: structural.slice(x, start_indices=(*zeros, i), limit_indices=(*shape[:-1], j), strides=None)
        return structural.concatenate(part(by, 3), part(0, by), dimension=len(shape) - 1)

    out = elementwise.sub(elementwise.mul(turned(a, 1), turned(b, 2)), elementwise.mul(turned(a, 2), turned(b, 1)))
    return numpy_shapes.moveaxis(out, -1, axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two dimensions.

    Args:
        x: array of shape (..., m, n).
        offset: int: above the main diagonal if positive.

    Returns:
        An array of shape (..., k).

    >>> fnp.linalg.diagonal(fnp.ones((5, 2, 2))).shape
    (5, 2)
    """
    return diagonals.diagonal(matrices(x, "diagonal"), offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the matrices in the last two dimensions.

    Args:
        x: array of shape (..., m, n).
        offset: int: above the main diagonal if positive.
        dtype: dtype to sum in.

    Returns:
        An array of shape (...).

    >>> fnp.linalg.trace(fnp.ones((5, 2, 2))).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    return diagonals.trace(matrices(x, "trace"), offset, -2, -1, dtype)
