"""Products of arrays: matmul, dot, tensordot and their relatives; each is one dot_general."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.backends.precision_names import canonical
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.shapes import arr
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions import dot_general as dot_general_primitive
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


def dot_general(lhs: Any, rhs: Any, contract: Any, batch: Any, precision: Any, preferred: Any) -> Any:
    """Apply the primitive after promotion."""
    lhs, rhs = promotion.promote(lhs, rhs)
    numbers = (tuple(map(tuple, contract)), tuple(map(tuple, batch)))
    return dot_general_primitive.dot_general(
        lhs, rhs, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred
    )


def _static(precision: Any, preferred: Any) -> tuple[Any, Any]:
    return canonical(precision), None if preferred is None else dtypes.as_dtype(preferred)


@with_kernel(2)
def matmul(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """Matrix product; dimensions before the last two are batches, and broadcast.

    Args:
        a: array of at least one dimension; a vector counts as a row.
        b: array of at least one dimension; a vector counts as a column.
        precision: precision of the products: "default", "high", "highest", or the name of a dot algorithm, such as
            "BF16_BF16_F32_X3"; None for the setting of `ft.default_matmul_precision` and `ft.backends`: full
            float32 by default.
        preferred_element_type: dtype to accumulate and return.

    Returns:
        The product, without the dimension that stood for a vector.

    Raises:
        ShapeError: where the sizes do not fit, or an operand is a scalar.

    >>> fnp.matmul(fnp.eye(2), fnp.asarray([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if precision is None and preferred_element_type is None and (isinstance(a, Tracer) or isinstance(b, Tracer)):
        return _matmul(a, b)
    operands = promotion.numbers(arr(a, "fnp.matmul"), arr(b, "fnp.matmul"))
    return _matmul_kernel(*operands, *_static(precision, preferred_element_type))


#: Dimension numbers for a matrix on the right, by the number of dimensions on the left.
_MATRICES = {n: (((n - 1,), (0,)), ((), ())) for n in (1, 2, 3)}


def _matmul(a: Any, b: Any, precision: Any = None, preferred: Any = None) -> Any:
    x, y = aval_of(a), aval_of(b)
    if y.ndim == 2 and 0 < x.ndim < 4 and x.dtype is y.dtype and x.shape[-1] == y.shape[0]:
        numbers = _MATRICES[x.ndim]
        return dot_general_primitive.dot_general(
            a, b, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred
        )
    if not x.ndim or not y.ndim:
        raise promotion.error(
            ShapeError, f"fnp.matmul of {x!r} and {y!r}: an operand is a scalar", "multiply with * instead"
        )
    inner = -1 if y.ndim == 1 else -2
    if x.shape[-1] != y.shape[inner]:
        raise promotion.error(
            ShapeError,
            f"fnp.matmul of {x!r} and {y!r}: the last dimension of the first has size {x.shape[-1]}, "
            f"{'the second' if y.ndim == 1 else 'the last but one of the second'} has {y.shape[inner]}",
            "make the two sizes equal; transpose one operand with .mT, or use fnp.einsum to name dimensions",
        )
    if y.ndim <= 2 or x.ndim == 1:  # no batch on one side: its dimensions are free ones
        if y.ndim > 2:
            out = dot_general(a, b, ((0,), (y.ndim - 2,)), ((), ()), precision, preferred)
        else:
            out = dot_general(a, b, ((x.ndim - 1,), (0,)), ((), ()), precision, preferred)
        return out
    # Dimensions of size 1 on one side only are free on the other.
    lead = promotion.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    n = len(lead)
    left, right = (1,) * (n - x.ndim + 2) + x.shape[:-2], (1,) * (n - y.ndim + 2) + y.shape[:-2]
    both = [d for d in range(n) if left[d] == right[d]]
    only = [[d for d in range(n) if d not in both and sizes[d] != 1] for sizes in (left, right)]
    shape = lambda sizes, mine: tuple(sizes[d] for d in both) + tuple(sizes[d] for d in mine)
    a = structural.reshape(_front(a, both, only[0], n), shape=(*shape(left, only[0]), *x.shape[-2:]))
    b = structural.reshape(_front(b, both, only[1], n), shape=(*shape(right, only[1]), *y.shape[-2:]))
    k = len(both)
    numbers = (((aval_of(a).ndim - 1,), (aval_of(b).ndim - 2,)), (range(k), range(k)))
    out = dot_general(a, b, *numbers, precision, preferred)
    # Dimensions of the product: shared ones, left ones, rows, right ones, columns.
    i, j = len(only[0]), len(only[1])
    places = {d: p for p, d in enumerate(both)}
    places |= {d: k + p for p, d in enumerate(only[0])} | {d: k + i + 1 + p for p, d in enumerate(only[1])}
    order = tuple(places[d] for d in range(n)) + (k + i, k + i + 1 + j)
    return out if order == tuple(range(n + 2)) else structural.transpose(out, permutation=order)


def _front(x: Any, both: list[int], mine: list[int], n: int) -> Any:
    """Order batch dimensions: shared ones, own ones, those of size 1."""
    ndim = aval_of(x).ndim
    lead = n - (ndim - 2)
    first = [d - lead for d in (*both, *mine) if d >= lead]
    order = (*first, *(d for d in range(ndim - 2) if d not in first), ndim - 2, ndim - 1)
    return x if order == tuple(range(ndim)) else structural.transpose(x, permutation=order)


_matmul.__name__ = "matmul"
_matmul_kernel = eager_jit(static=("precision", "preferred"), checked=True)(_matmul)


@with_kernel(2)
def dot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """NumPy's dot: sums of products over the last dimension of the first and the last but one of the second.

    Args:
        a: array or number; a number is a factor of all elements.
        b: array or number.
        precision: as for `matmul`.
        preferred_element_type: as for `matmul`.

    Returns:
        A scalar for two vectors, a matrix for two matrices; in the common dtype.

    Raises:
        ShapeError: where the two sizes differ.

    >>> float(fnp.dot(fnp.asarray([1.0, 2.0]), fnp.asarray([3.0, 4.0])))
    11.0
    """
    return _dot(*promotion.numbers(a, b), *_static(precision, preferred_element_type))


@eager_jit(static=("precision", "preferred"), ints=True, checked=True)
def _dot(a: Any, b: Any, precision: Any = None, preferred: Any = None) -> Any:
    x, y = aval_of(a), aval_of(b)
    if not x.ndim or not y.ndim:
        a, b = promotion.promote_and_broadcast(a, b)
        return (elementwise.and_ if aval_of(a).dtype.kind == "b" else elementwise.mul)(a, b)
    at = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[at]:
        raise promotion.error(
            ShapeError,
            f"fnp.dot of {x!r} and {y!r}: sizes {x.shape[-1]} and {y.shape[at]} differ",
            "transpose one operand",
        )
    return dot_general(a, b, ((x.ndim - 1,), (at,)), ((), ()), precision, preferred)


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sum of conj(a) * b over all elements.

    Args:
        a: array; it is flattened.
        b: array of the same size; it is flattened.
        precision: precision of the products: None, a name such as "highest", or a pair of these.
        preferred_element_type: dtype in which products are summed and returned; None for the operands'.

    Returns:
        An array of rank 0.

    >>> float(fnp.vdot(fnp.ones((2, 2)), fnp.ones((2, 2))))
    4.0
    """
    return _vdot(arr(a, "fnp.vdot"), arr(b, "fnp.vdot"), *_static(precision, preferred_element_type))


@eager_jit(static=("precision", "preferred"))
def _vdot(a: Any, b: Any, precision: Any = None, preferred: Any = None) -> Any:
    a = elementwise.conj(a) if aval_of(a).dtype.kind == "c" else a
    a, b = (structural.reshape(v, shape=(aval_of(v).size,)) for v in (a, b))
    return _dot.inline(a, b, precision, preferred)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Products of vectors: the sums of conj(x1) * x2 along an axis; the other dimensions broadcast.

    Args:
        x1: array; conjugated where complex.
        x2: array of the same size along the axis.
        axis: the axis of the vectors, in each array before broadcasting.
        precision: as for `matmul`.
        preferred_element_type: as for `matmul`.

    Returns:
        An array of the broadcast shape without the axis, in the common dtype.

    Raises:
        AxisError: where there is no such axis.
        ShapeError: where the sizes along the axis differ, even if one is 1, or the other dimensions do not broadcast.

    >>> fnp.vecdot(fnp.ones((2, 3)), fnp.arange(3.0)).tolist()
    [3.0, 3.0]
    """
    return _vecdot(arr(x1, "fnp.vecdot"), arr(x2, "fnp.vecdot"), axis, *_static(precision, preferred_element_type))


@eager_jit(static=("axis", "precision", "preferred"))
def _vecdot(x: Any, y: Any, axis: int, precision: Any = None, preferred: Any = None) -> Any:
    x = elementwise.conj(x) if aval_of(x).dtype.kind == "c" else x
    x, y = (_last(v, axis) for v in (x, y))
    n, m = aval_of(x).shape[-1], aval_of(y).shape[-1]
    if n != m:
        why = f"fnp.vecdot of vectors of {n} and of {m} components along axis {axis}: that axis is not broadcast"
        raise promotion.error(
            ShapeError, why, "make the two sizes equal, or multiply and sum: fnp.sum(fnp.conj(x) * y, axis)"
        )
    x, y = promotion.promote_and_broadcast(x, y)
    lead = range(aval_of(x).ndim - 1)
    last = (aval_of(x).ndim - 1,)
    return dot_general(x, y, (last, last), (lead, lead), precision, preferred)


def _last(x: Any, axis: int) -> Any:
    n = aval_of(x).ndim
    return structural.move(x, axis_of(axis, n, "fnp.vecdot"), n - 1)


@with_kernel(2)
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products over the last dimension of both arrays.

    Args:
        a: array of shape (..., k).
        b: array of shape (..., k).
        precision: precision of the products: None, a name such as "highest", or a pair of these.
        preferred_element_type: dtype in which products are summed and returned; None for the operands'.

    Returns:
        An array of the leading dimensions of `a`, then those of `b`.

    >>> fnp.inner(fnp.eye(2), fnp.asarray([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    x, y = aval_of(a), aval_of(b)
    if not x.ndim or not y.ndim:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return tensordot(a, b, ((-1,), (-1,)), precision=precision, preferred_element_type=preferred_element_type)


@with_kernel(2)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Products of each element of one array with each of the other, both flattened.

    Args:
        a: array of n elements.
        b: array of m elements.
        out: not supported: arrays are immutable.

    Returns:
        An array of shape (n, m).

    >>> fnp.outer(fnp.asarray([1, 2]), fnp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    promotion.no_out(out, "fnp.outer")
    return _outer(*promotion.numbers(a, b))


@eager_jit(ints=True, checked=True)
def _outer(a: Any, b: Any) -> Any:
    a, b = promotion.promote(a, b)
    m, n = aval_of(a).size, aval_of(b).size
    a, b = promotion.promote_and_broadcast(structural.reshape(a, shape=(m, 1)), structural.reshape(b, shape=(1, n)))
    return (elementwise.and_ if aval_of(a).dtype.kind == "b" else elementwise.mul)(a, b)


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int | Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products over chosen dimensions.

    Args:
        a: array.
        b: array.
        axes: number of axes, the last of a and the first of b; or a pair of axes, or of sequences of axes.
        precision: as for `matmul`.
        preferred_element_type: as for `matmul`.

    Returns:
        An array of the dimensions that are not summed over: those of `a`, then those of b; in the common dtype.

    Raises:
        ShapeError: where paired dimensions differ in size.

    >>> fnp.tensordot(fnp.ones((2, 3)), fnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    a, b = arr(a, "fnp.tensordot"), arr(b, "fnp.tensordot")
    x, y = aval_of(a), aval_of(b)
    if isinstance(axes, Sequence):
        pair = [tuple(v) if isinstance(v, (list, tuple)) else (v,) for v in axes]
        left, right = (tuple(axis_of(d, v.ndim, "fnp.tensordot") for d in p) for p, v in zip(pair, (x, y), strict=True))
    else:
        n = operator.index(axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise promotion.error(
                ShapeError, f"fnp.tensordot over {n} dimensions of {x!r} and {y!r}", "both must have that many"
            )
        left, right = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    return _tensordot(a, b, (left, right), *_static(precision, preferred_element_type))


@eager_jit(static=("contract", "precision", "preferred"))
def _tensordot(a: Any, b: Any, contract: Any, precision: Any, preferred: Any) -> Any:
    return dot_general(a, b, contract, ((), ()), precision, preferred)


@with_kernel(2)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: each element of `a` times all of `b`.

    Args:
        a: array.
        b: array.

    Returns:
        An array whose sizes are the products of the operands' sizes.

    >>> fnp.kron(fnp.asarray([1, 10]), fnp.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    a, b = promotion.numbers(a, b)
    return _kron(arr(a, "fnp.kron"), arr(b, "fnp.kron"))


@eager_jit
def _kron(a: Any, b: Any) -> Any:
    n = max(aval_of(a).ndim, aval_of(b).ndim)
    sizes = [(1,) * (n - aval_of(v).ndim) + aval_of(v).shape for v in (a, b)]
    wide = [
        tuple(m for s in shape for m in ((s, 1) if left else (1, s)))
        for shape, left in zip(sizes, (True, False), strict=True)
    ]
    a, b = promotion.promote_and_broadcast(structural.reshape(a, shape=wide[0]), structural.reshape(b, shape=wide[1]))
    return structural.reshape(elementwise.mul(a, b), shape=tuple(m * k for m, k in zip(*sizes, strict=True)))
