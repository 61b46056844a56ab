"""`stateful_rng`: a generator that keeps its own state, as `numpy.random.default_rng` does, and works under jit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import functorch_like.numpy as fnp
from functorch_like import random, tree_util
from functorch_like.calling import api_boundary
from functorch_like.core import EVALUATE, state
from functorch_like.errors import ArgumentError
from functorch_like.random.typed_keys import is_keys
from functorch_like.ref.functions import new_ref

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike

Size = int | Sequence[int] | None


class StatefulPRNG:
    """Random generator whose draws change it: a key, and a `Ref` that counts the draws.

    It is a pytree of both, so functions take it as an argument or close over it; they do not return it. A draw uses the
    key `fold_in(base_key, count)`.

    >>> from functorch_like.experimental.random import stateful_rng
    >>> rng = stateful_rng(0)
    >>> first, second = rng.uniform(), rng.uniform()
    >>> bool(first == second), int(rng._counter[...])
    (False, 2)
    """

    def __init__(self, _base_key: Any, _counter: Any) -> None:
        self._base_key, self._counter = _base_key, _counter

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new key.

        Args:
            shape: the shape of an array of keys; one key by default.

        Returns:
            A key of the type of the base key, or an array of them.

        >>> from functorch_like.experimental.random import stateful_rng
        >>> stateful_rng(0).key((3,)).shape
        (3, 2)
        """
        if is_keys(self._base_key) and self._base_key.shape:
            raise ArgumentError(
                f"this generator is the result of split({self._base_key.shape})", fix="map over it: ft.vmap(f)(rng)"
            )
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        return random.split(key, shape) if shape != () else key

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Return a generator that `vmap` maps over: one independent generator for each element.

        Args:
            num: their number, or a shape.

        >>> import functorch_like as ft
        >>> from functorch_like.experimental.random import stateful_rng
        >>> ft.vmap(lambda rng: rng.normal())(stateful_rng(0).split(3)).shape
        (3,)
        """
        shape = (num,) if isinstance(num, int) else tuple(num)
        return StatefulPRNG(self.key(shape), new_ref(fnp.zeros(shape, "int32")))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Return independent generators.

        Args:
            n_children: their number.

        >>> from functorch_like.experimental.random import stateful_rng
        >>> len(stateful_rng(0).spawn(2))
        2
        """
        return [StatefulPRNG(key, new_ref(fnp.int32(0))) for key in self.key((n_children,))]

    def random(self, size: Size = None, dtype: DTypeLike | None = None) -> Array:
        """Draw floats from [0, 1).

        Args:
            size: the shape; one number if None.
            dtype: a float dtype; the default one if None.
        """
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike | None = None
    ) -> Array:
        """Draw floats from [low, high).

        Args:
            low, high: numbers or arrays.
            size: the shape; that of `low` and `high` if None.
            dtype: a float dtype; the default one if None.
        """
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(
        self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike | None = None
    ) -> Array:
        """Draw from normal distributions.

        Args:
            loc: the means: a number or an array.
            scale: the standard deviations, likewise.
            size: the shape; that of `loc` and `scale` if None.
            dtype: a float dtype; the default one if None.
        """
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return drawn * fnp.asarray(scale, drawn.dtype) + fnp.asarray(loc, drawn.dtype)

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike | None = None
    ) -> Array:
        """Draw integers from [low, high), or from [0, low) without `high`.

        Args:
            low, high: integers, or arrays of them.
            size: the shape; that of `low` and `high` if None.
            dtype: an integer dtype; the default one if None.
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)


tree_util.register_pytree_with_keys(
    StatefulPRNG,
    lambda rng: (
        ((tree_util.GetAttrKey("_base_key"), rng._base_key), (tree_util.GetAttrKey("_counter"), rng._counter)),
        None,
    ),
    lambda _, children: StatefulPRNG(*children),
)


def _shape(size: Size, *parameters: Any) -> tuple[int, ...]:
    if size is not None:
        return (size,) if isinstance(size, int) else tuple(size)
    return np.broadcast_shapes(*map(fnp.shape, parameters))


@api_boundary.public
def stateful_rng(seed: ArrayLike | None = None, *, impl: str | None = None) -> StatefulPRNG:
    """Make a random generator that keeps its own state.

    Args:
        seed: an integer, which may be traced; None takes entropy of the operating system, outside of transformations.
        impl: name of the generator of bits, as for `ft.random.key`.

    Returns:
        A `StatefulPRNG`.

    Raises:
        ArgumentError: without a seed inside of a transformation.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.random import stateful_rng
    >>> draw = ft.jit(stateful_rng(0).normal)
    >>> bool(draw() == draw())
    False
    """
    return made(random.key(seeded(seed), impl=impl))


def seeded(seed: ArrayLike | None) -> ArrayLike:
    """Return a seed; a new one if None.

    Raises:
        ArgumentError: for None inside of a transformation.
    """
    if seed is not None:
        return seed
    if state.trace is not EVALUATE:
        raise ArgumentError("stateful_rng() got no seed inside of a transformation", fix="give one: stateful_rng(0)")
    return int(np.random.default_rng().integers(2**31))


def made(key: object) -> StatefulPRNG:
    """Return a generator of a key."""
    return StatefulPRNG(key, new_ref(fnp.int32(0)))
