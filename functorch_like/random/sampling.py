"""Permutations, and random choices of elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import creation, promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers
from functorch_like.primitives.indexing.gather_and_scatter_add import along, gather
from functorch_like.primitives.ordering.sort import sort
from functorch_like.primitives.reductions.cumulative import cummax, cumsum
from functorch_like.random.arguments import check_key
from functorch_like.random.cipher import U64
from functorch_like.random.continuous import F32, F64, Digits, checked_mode, gumbels, unit
from functorch_like.random.discrete import check_axis, randint
from functorch_like.random.generators import raw_bits
from functorch_like.random.jax_numbers import or_jax
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Shape


def take(x: Any, indices: Any, axis: int) -> Any:
    """Take elements of a dimension at indices that are in bounds."""
    shape, index = aval_of(x).shape, aval_of(indices)
    inner = [d for d in range(len(shape)) if d != axis]
    offsets = tuple(d if d < axis else d - 1 + index.ndim for d in inner)
    return gather(
        x, structural.reshape(indices, shape=(*index.shape, 1)),
        dimension_numbers=GatherDimensionNumbers(offsets, (axis,), (axis,)),
        slice_sizes=tuple(1 if d == axis else n for d, n in enumerate(shape)), mode="promise_in_bounds",
        fill_value=None, indices_are_sorted=False, unique_indices=False,
    )  # fmt: skip


@or_jax("discrete.shuffled")
def shuffled(key: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return 0 ... n-1 in random order along a dimension: the lower halves of words sorted by random upper halves."""
    words = structural.convert_element_type(raw_bits(key, shape, 32), new_dtype=U64)
    places = structural.iota(dtype=U64, shape=shape, dimension=axis)
    packed = elementwise.or_(elementwise.shift_left(words, structural.full(shape, 32, U64)), places)
    (ordered,) = sort(packed, dimension=axis, is_stable=False, num_keys=1)
    return structural.convert_element_type(
        elementwise.and_(ordered, structural.full(shape, 0xFFFFFFFF, U64)), new_dtype=dtypes.int32
    )


def permutation(key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """An array shuffled along a dimension; for an int n, the numbers 0 ... n-1 in random order.

    Args:
        key: uint32[2].
        x: array, or int.
        axis: the dimension that is shuffled.
        independent: whether each slice along that dimension is shuffled independently.

    Returns:
        An array of the shape and dtype of x; int32[n] for an int n.

    Raises:
        DtypeError: for anything but a key.
        ShapeError: where there is no such dimension.

    >>> sorted(random.permutation(random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    key = check_key(key, "random.permutation")
    if not isinstance(x, (int, np.integer)):
        x = creation.operand_of(x)
    if isinstance(x, (int, np.integer)) or (not aval_of(x).ndim and dtypes.is_integer(aval_of(x).dtype)):
        (n,) = shape_of(x, "random.permutation")
        return _order(key, n=n)
    at = check_axis(axis, aval_of(x).ndim, "random.permutation")
    return _permutation(key, x, axis=at, independent=bool(independent))


@eager_jit(static=("n",))
def _order(key: Any, n: int) -> Any:
    return shuffled(key, (n,), 0)


@eager_jit(static=("axis", "independent"))
def _permutation(key: Any, x: Any, axis: int, independent: bool) -> Any:
    shape = aval_of(x).shape
    if not math.prod(shape):
        return x
    if independent:
        return along(x, shuffled(key, shape, axis), axis)
    return take(x, shuffled(key, (shape[axis],), 0), axis)


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: Digits = "low",
) -> Array:
    """Random elements of an array; for an int n, of 0 ... n-1.

    Args:
        key: uint32[2].
        a: array, or int.
        shape: shape of the draws; int or sequence of ints.
        replace: whether an element may be drawn more than once.
        p: probabilities of the elements, or weights: a vector of real numbers. All equal by default. An element of
            weight 0 is drawn only if, without replacement, all others are used up.
        axis: the dimension that elements are taken from.
        mode: digits of the Gumbel samples that choose with p, without replacement; as in `gumbel`.

    Returns:
        An array with the shape of `a`, but with `axis` replaced by `shape`.

    Raises:
        DtypeError: for anything but a key, or a complex p.
        ShapeError: where p does not have one element for each of `a`, or there is no such dimension.
        ArgumentError: where there is nothing to choose from, or not enough without replacement.

    >>> random.choice(random.key(0), np.array([5, 7]), (3,), p=np.array([0.0, 1.0])).tolist()
    [7, 7, 7]
    """
    what = "random.choice"
    key = check_key(key, what)
    sizes = shape_of(shape, what)
    count = isinstance(a, (int, np.integer))
    a = a if count else creation.operand_of(a)
    at = 0 if count else check_axis(axis, aval_of(a).ndim, what)
    n = shape_of(a, what)[0] if count else aval_of(a).shape[at]
    drawn = math.prod(sizes)
    if drawn and (not n or (not replace and drawn > n)):
        remedy = "draw fewer, or with replace=True" if n else "pass an array that has elements"
        raise promotion.error(ArgumentError, f"random.choice cannot draw {drawn} of {n} elements", remedy)
    if p is not None:
        weights = aval_of(p if isinstance(p, (ArrayImpl, Tracer)) else (p := np.asarray(p)))
        if weights.shape != (n,):
            raise promotion.error(
                ShapeError,
                f"random.choice takes p of shape ({n},), got {weights!r}",
                "give one weight for each element",
            )
        if dtypes.is_complex(weights.dtype):
            raise promotion.error(DtypeError, f"random.choice takes real p, got {weights!r}", "take its real part")
    if p is None and replace:
        indices = randint(key, sizes, 0, max(n, 1))
    else:
        indices = _indices(key, p, n=n, shape=sizes, replace=bool(replace), mode=checked_mode(mode, what))
    return indices if count else _take(a, indices, axis=at)


_take = eager_jit(static=("axis",))(take)


@eager_jit(static=("n", "shape", "replace", "mode"))
def _indices(key: Any, p: Any, n: int, shape: tuple[int, ...], replace: bool, mode: Digits) -> Any:
    if p is not None:
        return _weighted(key, p, n, shape, replace, mode)
    return _first(shuffled(key, (n,), 0), shape)


def _first(order: Any, shape: tuple[int, ...]) -> Any:
    drawn = structural.slice(order, start_indices=(0,), limit_indices=(math.prod(shape),), strides=None)
    return structural.reshape(drawn, shape=shape)


@or_jax("discrete.weighted_indices")
def _weighted(key: Any, p: Any, n: int, shape: tuple[int, ...], replace: bool, mode: Digits) -> Any:
    dtype = F64 if aval_of(p).dtype == F64 else F32
    p = promotion.convert(p, dtype)
    if replace:
        return _inverse(unit(key, shape, dtype), _cumulative(p), shape, n)
    # The greatest of log(p) + Gumbel samples are distributed like draws one after the other, without replacement.
    noise = gumbels(key, (n,), dtype, mode)
    noisy = elementwise.neg(elementwise.add(noise, promotion.convert(elementwise.log(p), aval_of(noise).dtype)))
    places = structural.iota(dtype=dtypes.int32, shape=(n,), dimension=0)
    _, order = sort(noisy, places, dimension=0, is_stable=False, num_keys=1)
    return _first(order, shape)


def _cumulative(p: Any) -> Any:
    """Return running sums that never decrease, and do not change where p is 0."""
    sums, zeros = cumsum(p, axis=0, reverse=False), structural.full_like(p, 0)
    return cummax(elementwise.select_n(elementwise.gt(p, zeros), zeros, sums), axis=0, reverse=False)


def _inverse(u: Any, cumulative: Any, shape: tuple[int, ...], n: int) -> Any:
    """Count the running sums not above u times the last, by bisection."""
    last = structural.slice(cumulative, start_indices=(n - 1,), limit_indices=(n,), strides=None)
    total = promotion.broadcast(structural.reshape(last, shape=()), shape)
    target = elementwise.min(elementwise.mul(u, total), elementwise.nextafter(total, structural.full_like(total, 0)))
    result = structural.full(shape, 0, dtypes.int32)
    step = 1 << max(n - 1, 0).bit_length()
    while step:
        ahead = elementwise.add(result, structural.full_like(result, step))
        at = elementwise.min(
            elementwise.sub(ahead, structural.full_like(result, 1)), structural.full_like(result, n - 1)
        )
        passes = elementwise.and_(
            elementwise.le(ahead, structural.full_like(ahead, n)), elementwise.le(take(cumulative, at, 0), target)
        )
        result = elementwise.select_n(passes, result, ahead)
        step //= 2
    return elementwise.min(result, structural.full_like(result, n - 1))
