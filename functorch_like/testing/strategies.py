"""Hypothesis strategies: dtypes, shapes, arrays, pytrees, axes to map over, and random programs.

>>> from hypothesis import given
>>> @given(arrays(dtypes=floats(), special=False))
... def test_negation_undoes_itself(x):
...     ft.testing.assert_trees_equal(-(-ft.device_put(x)), ft.device_put(x))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes as kinds
from functorch_like import tree

try:
    import hypothesis.strategies as st
except ImportError as e:
    raise ImportError(
        "functorch_like.testing.strategies needs Hypothesis, which is not installed\n"
        "  what to do: pip install 'hypothesis>=6.100'"
    ) from e

from functorch_like.testing.choices import Choices
from functorch_like.testing.drawn_programs import programs as programs

__all__ = [
    "arrays", "batched", "broadcastable_arrays", "broadcastable_shapes", "complexes", "dtypes", "floats", "in_axes",
    "integers", "long_programs", "programs", "pytrees", "shapes",
]  # fmt: skip

Strategy = st.SearchStrategy[Any]


# --------------------------------------------------------------------------------------------------------- programs
class _Drawn(Choices):
    """Choices that Hypothesis makes, and makes smaller."""

    def __init__(self, draw: Any) -> None:
        super().__init__()
        self._draw = draw

    def below(self, n: int) -> int:
        self.made.append(self._draw(st.integers(0, max(0, n - 1))))
        return self.made[-1]


@st.composite
def long_programs(draw: Any) -> Any:
    """Functions of 5 to 40 operations with loops, branches, custom rules and nested transformations, as source.

    `python -m functorch_like.testing.nightly` draws them in great number.

    >>> from hypothesis import given
    >>> @given(long_programs())
    ... def test_they_can_be_compiled(program):
    ...     ft.jit(program.function())(*program.values())
    """
    from functorch_like.testing import long_programs

    return long_programs.draw(_Drawn(draw))


# ----------------------------------------------------------------------------------------------------------- dtypes
def floats() -> Strategy:
    """bfloat16, float16, float32, float64."""
    return st.sampled_from([kinds.float32, *(d for d in kinds.FLOATS if d != kinds.float32)])


def integers() -> Strategy:
    """Signed and unsigned integers of 8 to 64 bits."""
    return st.sampled_from([kinds.int32, *(d for d in (*kinds.SIGNED, *kinds.UNSIGNED) if d != kinds.int32)])


def complexes() -> Strategy:
    """complex64 and complex128."""
    return st.sampled_from(kinds.COMPLEX)


def dtypes() -> Strategy:
    """All dtypes above, and bool."""
    return st.one_of(floats(), integers(), complexes(), st.just(kinds.bool_))


# ----------------------------------------------------------------------------------------------------------- shapes
def shapes(max_rank: int = 3, max_size: int = 4, zero_size: bool = True, min_rank: int = 0) -> Strategy:
    """Tuples of sizes.

    Args:
        max_rank: the longest tuple.
        max_size: the largest size.
        zero_size: whether an axis may be empty.
        min_rank: the shortest tuple.
    """
    sizes = st.integers(1, max_size) | st.just(0) if zero_size else st.integers(1, max_size)
    return st.lists(sizes, min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcastable_shapes(
    draw: Any, count: int = 2, max_rank: int = 3, max_size: int = 4, zero_size: bool = True
) -> Any:
    """Tuples of `count` shapes that broadcast together: axes of size 1, and leading axes left out.

    >>> from hypothesis import given
    >>> @given(broadcastable_shapes(3))
    ... def test_they_do(group):
    ...     np.broadcast_shapes(*group)
    """
    whole = draw(shapes(max_rank, max_size, zero_size))
    group = []
    for _ in range(count):
        kept = draw(st.integers(0, len(whole)))
        ones = draw(st.lists(st.booleans(), min_size=kept, max_size=kept))
        group.append(tuple(1 if one else n for n, one in zip(whole[len(whole) - kept :], ones, strict=True)))
    return tuple(group)


# ----------------------------------------------------------------------------------------------------------- arrays
@st.composite
def arrays(
    draw: Any,
    dtypes: Any = None,
    shapes: Any = None,
    *,
    low: float = -4.0,
    high: float = 4.0,
    special: bool = True,
) -> Any:
    """NumPy arrays.

    Elements lie between `low` and `high`, drawn by a generator that Hypothesis seeds; with `special`, some are
    replaced by zeros of both signs, infinities, NaN, the largest, the smallest and the smallest normal numbers, or the
    extreme integers.

    Args:
        dtypes: a dtype, or a strategy of dtypes; left out, `dtypes()`.
        shapes: a shape, or a strategy of shapes; left out, `shapes()`.
        low: the least element.
        high: the largest.
        special: whether special values occur.
    """
    dtype = _drawn(draw, dtypes, globals()["dtypes"], kinds.as_dtype)
    shape = _drawn(draw, shapes, globals()["shapes"], tuple)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = _plain(rng, dtype, shape, low, high)
    values = _special(dtype) if special else []
    if not made.size or not values:
        return made
    flat = made.reshape(-1).copy()
    where = draw(st.lists(st.integers(0, made.size - 1), max_size=4, unique=True))
    for k in where:
        flat[k] = draw(st.sampled_from(values))
    return flat.reshape(shape)


@st.composite
def broadcastable_arrays(draw: Any, count: int = 2, dtypes: Any = None, **options: Any) -> Any:
    """Tuples of arrays of one dtype whose shapes broadcast together.

    Args:
        count: how many.
        dtypes: a dtype, or a strategy of dtypes.
        options: as for `arrays`.
    """
    dtype = _drawn(draw, dtypes, globals()["dtypes"], kinds.as_dtype)
    group = draw(broadcastable_shapes(count))
    return tuple(draw(arrays(dtype, shape, **options)) for shape in group)


def _drawn(draw: Any, value: Any, default: Any, convert: Any) -> Any:
    if value is None:
        return draw(default())
    return draw(value) if isinstance(value, st.SearchStrategy) else convert(value)


def _plain(rng: Any, dtype: Any, shape: Any, low: float, high: float) -> np.ndarray[Any, Any]:
    if kinds.is_complex(dtype):
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    if kinds.is_inexact(dtype):
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    if dtype == kinds.bool_:
        return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
    least, most = max(int(np.ceil(low)), int(kinds.iinfo(dtype).min)), min(int(high), int(kinds.iinfo(dtype).max))
    return np.asarray(rng.integers(least, most, shape, endpoint=True)).astype(dtype)


def _special(dtype: Any) -> list[Any]:
    if dtype == kinds.bool_:
        return []
    if kinds.is_integer(dtype):
        return [0, int(kinds.iinfo(dtype).min), int(kinds.iinfo(dtype).max)]
    limits = kinds.finfo(kinds.real_part(dtype))
    real = [0.0, -0.0, np.nan, np.inf, -np.inf, limits.max, limits.min, limits.tiny, limits.smallest_subnormal]
    if not kinds.is_complex(dtype):
        return [dtype.type(x) for x in real]
    return [dtype.type(complex(x, y)) for x, y in zip(real, real[1:] + real[:1], strict=True)]


# --------------------------------------------------------------------------------------------------- pytrees and axes
def pytrees(leaves: Any = None, max_leaves: int = 5) -> Strategy:
    """Nested tuples, lists and dicts, with None among them.

    Args:
        leaves: a strategy; left out, `arrays()`.
        max_leaves: about how many.
    """
    keys = st.sampled_from(["a", "b", "w", "x"])
    return st.recursive(
        arrays() if leaves is None else leaves,
        lambda inner: (
            st.lists(inner | st.none(), max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(keys, inner, max_size=3)
        ),
        max_leaves=max_leaves,
    )


@st.composite
def in_axes(draw: Any, args: Sequence[Any], full: bool = True) -> Any:
    """A way to map over arguments that are written for one element, at least one of them mapped.

    Args:
        args: arguments for one element: pytrees of arrays.
        full: whether an entry may be a whole pytree of axes rather than one axis for all leaves.

    Returns:
        A strategy of tuples for `in_axes`; `batched` makes arguments to match.

    >>> from hypothesis import given, strategies as st
    >>> @given(st.data())
    ... def test_vmap_is_a_loop(data):
    ...     args = (np.ones(3), {"w": np.ones((3, 2))})
    ...     axes = data.draw(in_axes(args))
    ...     ft.testing.check_vmap(lambda x, p: x @ p["w"], batched(args, axes, 4), axes)
    """
    while True:
        entries = tuple(draw(_axes_of(a, full)) for a in args)
        if any(a is not None for a in tree.leaves(entries, is_leaf=lambda x: x is None)):
            return entries
        if not any(tree.leaves(a) for a in args):
            raise ValueError("in_axes: the arguments have no leaves to map over")
        args_with = [k for k, a in enumerate(args) if tree.leaves(a)]
        k = draw(st.sampled_from(args_with))
        return tuple(0 if i == k else e for i, e in enumerate(entries))


def _axes_of(arg: Any, full: bool) -> Strategy:
    leaves, treedef = tree.flatten(arg)
    if not leaves:
        return st.none()
    one = lambda ranks: st.none() | st.integers(-min(ranks) - 1, min(ranks))
    ranks = [np.ndim(x) for x in leaves]
    whole = st.tuples(*(one([r]) for r in ranks)).map(treedef.unflatten)
    return one(ranks) | whole if full and not np.shape(arg) and treedef.num_leaves != 1 else one(ranks)


def batched(args: Sequence[Any], axes: Any, size: int) -> tuple[Any, ...]:
    """Arguments with a mapped axis of `size` where `axes` has one; the elements differ.

    >>> [x.shape for x in batched((np.ones(3), np.ones(2)), (-1, None), 4)]
    [(3, 4), (2,)]
    """
    leaves, treedef = tree.flatten(tuple(args))
    places = tree.broadcast_prefix(axes, tuple(args), "axes")
    made = []
    for x, a in zip(map(np.asarray, leaves), places, strict=True):
        each = [np.roll(x.reshape(-1), k).reshape(x.shape) for k in range(size)] if x.size > 1 else [x] * size
        spread = x.dtype.kind in "fc"
        each = [np.asarray(e * (1 + 0.1 * k), x.dtype) if spread else e for k, e in enumerate(each)]
        empty = np.zeros((0, *x.shape), x.dtype)
        made.append(x if a is None else np.moveaxis(np.stack(each) if size else empty, 0, a))
    return treedef.unflatten(made)
