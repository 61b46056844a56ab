"""Functions applied along axes, and nested lists of arrays put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.joining import concatenate
from functorch_like.numpy.shapes import expand_dims, ndim, reshape
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike, PyTree


def apply_along_axis(
    func1d: Callable[..., PyTree], axis: int, arr: ArrayLike, *args: object, **kwargs: object
) -> Array:
    """Apply a function of vectors to all vectors along an axis of an array, by `vmap`.

    Args:
        func1d: function of a vector; it returns an array or a pytree of arrays.
        axis: the axis of the vectors.
        arr: array.
        args: further arguments of `func1d`, after the vector.
        kwargs: keyword arguments of `func1d`.

    Returns:
        The results; their dimensions take the place of the axis.

    Raises:
        ShapeError: where there is no such axis.

    >>> fnp.apply_along_axis(lambda v: v - v.min(), 0, fnp.asarray([[1, 5], [3, 4]])).tolist()
    [[0, 1], [2, 0]]
    """
    arr = arr if promotion.is_array(arr) else asarray(arr)
    n = ndim(arr)
    d = axis_of(axis, n, "fnp.apply_along_axis")
    mapped: Callable[[Any], Any] = lambda v: func1d(v, *args, **kwargs)
    for k in range(1, n - d):  # dimensions after the axis come after those of the result
        mapped = vmap(mapped, in_axes=k, out_axes=-1)
    for _ in range(d):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(arr)


def apply_over_axes(func: Callable[[Array, int], Array], a: NestedArrayLike, axes: int | Sequence[int]) -> Array:
    """Apply a reduction to one axis after the other; the axes are kept, with size 1.

    Args:
        func: called as func(array, axis).
        a: array.
        axes: int, or sequence of ints.

    Returns:
        An array of as many dimensions as `a`, with size 1 along the reduced axes.

    Raises:
        ShapeError: where a result of `func` has neither as many dimensions as its argument nor one fewer.

    >>> fnp.apply_over_axes(fnp.sum, fnp.ones((2, 3)), (0, 1)).tolist()
    [[6.0]]
    """
    x = asarray(a)
    n = ndim(x)
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        d = axis_of(axis, n, "fnp.apply_over_axes")
        out = func(x, d)
        out = expand_dims(out, d) if ndim(out) == n - 1 else out
        if ndim(out) != n:
            why = f"the function of fnp.apply_over_axes gave {aval_of(out)!r} for {aval_of(x)!r}"
            raise promotion.error(ShapeError, why, "it should reduce the axis it is given")
        x = out
    return x


def block(arrays: NestedArrayLike) -> Array:
    """Join blocks in nested lists: those of the innermost lists along the last axis, and so on outwards.

    Args:
        arrays: array or number, or equally deep nested lists of these.

    Returns:
        An array of as many dimensions as the deepest list or block has.

    Raises:
        ArgumentError: for lists that are empty or not equally deep.
        ShapeError: where blocks do not fit together.

    >>> fnp.block([[fnp.eye(2), fnp.zeros((2, 1))], [fnp.ones((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depth, leaves = _depth(arrays), _leaves(arrays)
    n = max(depth, *(ndim(leaf) for leaf in leaves))
    return _joined(arrays, depth, n)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        why = "an empty list" if not depths else f"lists of depths {sorted(depths)} side by side"
        raise promotion.error(ArgumentError, f"fnp.block got {why}", "nest all lists equally deep, none of them empty")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for a in arrays for leaf in _leaves(a)] if isinstance(arrays, list) else [asarray(arrays)]


def _joined(arrays: Any, depth: int, n: int) -> Any:
    if not isinstance(arrays, list):
        a = asarray(arrays)
        return reshape(a, (1,) * (n - ndim(a)) + aval_of(a).shape)
    return concatenate([_joined(a, depth - 1, n) for a in arrays], axis=-depth)
