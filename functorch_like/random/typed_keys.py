"""Typed keys: arrays whose elements are keys, with a dtype of their own, as programs written for JAX make them.

A `KeyArray` holds words, a `uint32[*shape, 2]` or, for the generators `rbg` and `unsafe_rbg`, a `uint32[*shape, 4]`.
Transformations apply to the words: it is a pytree with them as its leaf. Functions that only move elements are
mapped over the words of a key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.errors import DtypeError
from functorch_like.frames import without_frames
from functorch_like.random import own_generators
from functorch_like.random.generators import WORDS
from functorch_like.transforms.vmap import vmap


class extended(np.generic):
    """Scalar type of dtypes that NumPy does not have."""


class prng_key(extended):
    """Scalar type of the dtypes of keys."""


class KeyDtype:
    """Dtype of keys of one generator."""

    __slots__ = ("impl",)
    type = prng_key
    kind = "O"
    names = None

    def __init__(self, impl: str) -> None:
        self.impl = impl

    @property
    def itemsize(self) -> int:
        """Number of bytes of a key."""
        own = own_generators.BY_NAME.get(self.impl)
        return 4 * (WORDS[self.impl] if own is None else math.prod(own.key_shape))

    @property
    def name(self) -> str:
        """The dtype as JAX prints it."""
        own = own_generators.BY_NAME.get(self.impl)
        return f"key<{_TAGS[self.impl] if own is None else own.tag}>"

    def aval_of_shape(self, shape: tuple[int, ...]) -> KeyAval:
        """The aval of an array of such keys."""
        return KeyAval._made(shape, self)

    def described(self, struct: ShapeDtypeStruct) -> KeyArray:
        """The keys that a shape with this dtype stands for, as an array that holds the shape of their words."""
        words = self.aval_of_shape(struct.shape).words
        return KeyArray(ShapeDtypeStruct(words.shape, words.dtype, sharding=struct.sharding), self.impl)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDtype) and self.impl == other.impl

    def __hash__(self) -> int:
        return hash((KeyDtype, self.impl))

    def __repr__(self) -> str:
        return self.name


class KeyAval(ShapedArray):
    """Shape and dtype of an array of typed keys; those of its words are `words`."""

    __slots__ = ()

    @classmethod
    def _made(cls, shape: tuple[int, ...], dtype: KeyDtype) -> KeyAval:
        made: Any = object.__new__(cls)
        made.shape, made.dtype, made.weak_type = shape, dtype, False
        made.ndim, made.size, made.explicit = len(shape), math.prod(shape), None
        return made

    @property
    def impl(self) -> str:
        """The name of the generator."""
        kind: Any = self.dtype
        return kind.impl

    @property
    def words(self) -> ShapedArray:
        """The aval of the words."""
        return ShapedArray((*self.shape, WORDS[self.impl]), "uint32")

    def __repr__(self) -> str:
        return f"{self.dtype!r}[{','.join(map(str, self.shape))}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyAval) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((KeyAval, self.shape, self.dtype))


_TAGS = {"threefry2x32": "fry", "rbg": "rbg", "unsafe_rbg": "urbg"}
IMPLEMENTATIONS = tuple(_TAGS)


class KeyArray:
    """Array of keys. It is indexed, reshaped and compared like other arrays, but cannot be computed with."""

    __slots__ = ("__weakref__", "_impl", "_words")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    weak_type = False

    def __init__(self, words: Any, impl: str = "threefry2x32") -> None:
        self._words, self._impl = words, impl

    # --------------------------------------------------------------------------------------------------- attributes
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which leaves out the words of a key."""
        return tuple(self._words.shape[:-1])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> KeyDtype:
        """The dtype of keys."""
        return KeyDtype(self._impl)

    @property
    def itemsize(self) -> int:
        """Number of bytes of a key."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Number of bytes of all keys."""
        return self.itemsize * self.size

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a single key")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.ndim:
            raise TypeError("iteration over a single key")
        return (KeyArray(self._words[i], self._impl) for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("a key is neither true nor false")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise DtypeError(
            f"an array of dtype {self.dtype!r} does not convert to NumPy",
            fix="random.key_data returns the words of keys",
        )

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, KeyArray):
            return NotImplemented
        _same_generator([self, other])
        return (self._words == other._words).all(-1)

    def __ne__(self, other: object) -> Any:
        return ~(self == other) if isinstance(other, KeyArray) else NotImplemented

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype!r}) overlaying:\n{data_of(self)}"

    # ------------------------------------------------------------------------------------------------------- moving
    def __getitem__(self, index: Any) -> KeyArray:
        if self.ndim and isinstance(index, (int, slice)):
            return KeyArray(self._words[index], self._impl)
        return over_words(lambda x: x[index], self)

    @without_frames
    def __getattr__(self, name: str) -> Any:
        if name in _MOVING:
            return lambda *args, **kwargs: over_words(lambda x: getattr(x, name)(*args, **kwargs), self)
        if name in _OF_WORDS:
            return getattr(self._words, name)
        raise AttributeError(f"an array of keys has no {name!r}")

    @property
    def T(self) -> KeyArray:
        """The transpose."""
        return over_words(lambda x: x.T, self)

    @property
    def at(self) -> _At:
        """Helper for indexed access: `keys.at[index].set(values)`, `keys.at[index].get()`."""
        return _At(self)

    def astype(self, dtype: Any) -> KeyArray:
        """Return the keys unchanged; they have no other dtype."""
        if dtype != self.dtype:
            raise DtypeError(f"keys do not convert to {dtype}", fix="random.key_data returns the words of keys")
        return self

    def block_until_ready(self) -> KeyArray:
        """Return the keys once they are computed."""
        self._words.block_until_ready()
        return self


_MOVING = (
    "reshape",
    "ravel",
    "flatten",
    "squeeze",
    "swapaxes",
    "transpose",
    "repeat",
    "take",
    "copy",
)
_OF_WORDS = (
    "addressable_shards", "committed", "copy_to_host_async", "delete", "device", "devices", "is_deleted",
    "is_fully_addressable", "is_fully_replicated", "sharding",
)  # fmt: skip


class _At:
    """`keys.at` and `keys.at[index]`, which has `set` and `get`."""

    __iter__ = None  # without it, Python would go through keys.at[0], keys.at[1], ... without end

    def __init__(self, keys: KeyArray, index: Any = None) -> None:
        self._keys, self._index = keys, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self._keys, index)

    def set(self, values: KeyArray, **options: Any) -> KeyArray:
        """Return the keys with those at the index replaced."""
        return over_words(lambda x, v: x.at[self._index].set(v, **options), self._keys, values)

    def get(self, **options: Any) -> KeyArray:
        """Return the keys at the index."""
        return over_words(lambda x: x.at[self._index].get(**options), self._keys)


#: True once a typed key was made in this process: until then, functions of trees do not look for them.
made = False


def data_of(keys: KeyArray) -> Any:
    """Return the words of keys; of a generator of the user's, in the shape of its keys."""
    own = own_generators.BY_NAME.get(keys._impl)
    return keys._words if own is None else own.unpack(keys._words)


def is_keys(x: Any) -> bool:
    """Return True for an array of typed keys."""
    return type(x) is KeyArray


def over_words(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function that only moves elements to arrays of keys, mapped over their words.

    Args:
        fun: takes arrays, and returns arrays of the same dtype.
        args: arguments; arrays of keys may be anywhere in them.
        kwargs: named arguments.

    Returns:
        The result of `fun`, with each array as an array of keys.
    """
    leaves, structure = tree.flatten((args, kwargs), is_leaf=is_keys)
    at = [i for i, leaf in enumerate(leaves) if is_keys(leaf)]
    impl = _same_generator([leaves[i] for i in at])

    def of_word(*words: Any) -> Any:
        filled = list(leaves)
        for i, word in zip(at, words, strict=True):
            filled[i] = word
        args, kwargs = tree.unflatten(structure, filled)
        return fun(*args, **kwargs)

    result = vmap(of_word, in_axes=-1, out_axes=-1)(*(leaves[i]._words for i in at))
    return tree.map(lambda words: KeyArray(words, impl), result)


def _same_generator(keys: list[KeyArray]) -> str:
    """Return the generator that arrays of keys have in common."""
    names = list(dict.fromkeys(one._impl for one in keys))
    if len(names) > 1:
        raise DtypeError(
            f"keys of different generators are combined: {', '.join(names)}", fix="make all of them with the same impl="
        )
    return names[0]


def _unflatten(impl: str, children: Any) -> KeyArray:
    (words,) = children
    return KeyArray(words, impl)


tree.register_pytree_node(KeyArray, lambda keys: ((keys._words,), keys._impl), _unflatten)
