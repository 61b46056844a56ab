"""Random bits: the Threefry-2x32 block cipher, twenty rounds, which turns counters into bits under a key;
and `draw`, which a key passes through before bits are made of it.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.elementwise_makers import align

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA  # makes the third key word depend on the other two


def _rounds(
    key: Sequence[Any], x0: Any, x1: Any, add: Callable[..., Any], rotate_xor: Callable[..., Any], count: Any
) -> Any:
    """The cipher over any arithmetic: `rotate_xor(x, n, y)` is (x rotated left by n bits) ^ y."""
    x0, x1 = add(x0, key[0]), add(x1, key[1])
    for group in range(5):
        for n in _ROTATIONS[group % 2]:
            x0 = add(x0, x1)
            x1 = rotate_xor(x1, n, x0)
        x0 = add(x0, key[(group + 1) % 3])
        x1 = add(add(x1, key[(group + 2) % 3]), count(group + 1))
    return x0, x1


def _shape(*operands: ShapedArray) -> tuple[ShapedArray, ...]:
    first = operands[0]
    for x in operands:
        if x.dtype != dtypes.uint32:
            raise DtypeError(f"threefry2x32 takes uint32, not {x!r}", fix="convert with astype('uint32')")
        if x.shape != first.shape:
            raise ShapeError(f"{first!r} and {x!r} differ in shape", fix="broadcast keys and counters to one shape")
    return first.strong(), first.strong()


def _ref(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    k0, k1, c0, c1 = (np.asarray(x, np.uint32) for x in (k0, k1, c0, c1))
    with np.errstate(over="ignore"):
        return _rounds(
            (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY)), c0, c1,
            lambda a, b: np.asarray(a + b),
            lambda x, n, y: (x << np.uint32(n) | x >> np.uint32(32 - n)) ^ y,
            np.uint32,
        )  # fmt: skip


def _body(e: Any, k0: Any, k1: Any, c0: Any, c1: Any, aval: ShapedArray) -> list[Any]:
    two = lambda name: lambda a, b: e.op(f"stablehlo.{name}", [a, b], [aval])
    add, xor, left, right, either = map(two, ("add", "xor", "shift_left", "shift_right_logical", "or"))
    full = lambda n: e.full(np.uint32(n), aval)
    rotate_xor = lambda x, n, y: xor(either(left(x, full(n)), right(x, full(32 - n))), y)
    return list(_rounds((k0, k1, xor(xor(k0, k1), full(_PARITY))), c0, c1, add, rotate_xor, full))


def _lower(e: Any, *operands: Any) -> list[Any]:
    aval = e.outs[0]
    body = lambda inner, k0, k1, c0, c1: _body(inner, k0, k1, c0, c1, aval)
    symbol = e.function(("threefry2x32", aval), "threefry2x32", [aval] * 4, [aval] * 2, body)
    # XLA takes integer operations for cheap, and copies all twenty rounds into each loop that reads a word: programs
    # that split keys took two to four times as long to compile, nearly all of it for such copies.
    apart = kernels.allowed(e) and not e.in_kernel and aval.size <= kernels.FEW_WORDS
    return e.call(symbol, operands, [aval] * 2, inline=not apart)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return threefry2x32(*primals), (None, None)


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    args, at = align(axis, args, dims)
    return threefry2x32(*args), (at, at)


threefry2x32 = Primitive(
    "threefry2x32",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_jvp,
    transpose=NotDefined(
        "random bits are integers and have no derivative; differentiate with respect to what they scale"
    ),
    batch=_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, np.uint32),) * 4, domain=(0, 2**32 - 1), smooth=False)
        for shape in ((), (5,), (2, 3, 4), (0, 2))
    ],
    multiple_results=True,
    kind="bits",
)


# ------------------------------------------------------------------------------------------------- folding, drawing
#: The first counter word of the domain that folding counts in: bits count from 0 up.
FOLD = 0xC0000000


def fold(keys: Any, high: Any, low: Any) -> Any:
    """Keys that depend on keys uint32[*k, 2] and on the two words uint32[*n] of integers: uint32[*n, *k, 2].

    Keys are folded first into keys of the domain, then by the 64 bits of the integers: so different integers give
    different keys. Of a key of four words, each half is folded by itself.
    """
    outer, (*inner, words) = aval_of(low).shape, aval_of(keys).shape
    inner = tuple(inner)
    if words != 2:
        made = fold(structural.reshape(keys, shape=(*inner, words // 2, 2)), high, low)
        return structural.reshape(made, shape=(*outer, *inner, words))
    rank = len(inner)
    whole, leading = (*outer, *inner), tuple(range(len(outer)))
    half = lambda i: structural.reshape(
        structural.slice(keys, start_indices=(*[0] * rank, i), limit_indices=(*inner, i + 1), strides=None), shape=inner
    )
    words = threefry2x32(
        half(0), half(1), structural.full(inner, FOLD, dtypes.uint32), structural.full(inner, 0, dtypes.uint32)
    )
    over = tuple(range(len(outer), len(whole)))
    words = threefry2x32(
        *(structural.broadcast_in_dim(w, shape=whole, broadcast_dimensions=over) for w in words),
        *(structural.broadcast_in_dim(w, shape=whole, broadcast_dimensions=leading) for w in (high, low)),
    )
    return structural.concatenate(*(structural.reshape(w, shape=(*whole, 1)) for w in words), dimension=len(whole))


def _draw_shape(key: ShapedArray) -> ShapedArray:
    return key


def _draw_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    """Pass mapped keys on; fold each element's number into a key that all elements share, or refuse it."""
    (key,), (at,) = args, dims
    if at is not None:
        return draw(key), at
    if axis.randomness == "error":
        raise ArgumentError(
            f"random numbers are drawn from one key for all {axis.size} elements, and randomness='error' forbids it",
            fix="pass one key for each element, random.split(key, n) with in_axes=0; or allow it: "
            "randomness='different' folds the element's number into the key, 'same' gives all the same numbers",
        )
    low = structural.iota(dtype=dtypes.uint32, shape=(axis.size,), dimension=0)
    return draw(fold(key, structural.zeros(aval_of(low)), low)), 0


#: The identity of a key, applied before bits are drawn from it: its batch rule decides about a key that all elements of
#: a mapped axis share.
draw = Primitive(
    "draw",
    shape=_draw_shape,
    ref=lambda key: np.array(key),
    lower=lambda e, key: key,
    jvp=lambda primals, tangents: (draw(*primals), None),
    transpose=NotDefined(
        "keys are integers and have no derivative; differentiate with respect to what the numbers scale"
    ),
    batch=_draw_batch,
    samples=lambda: [SampleInput((ShapedArray((2,), np.uint32),), domain=(0, 2**32 - 1), smooth=False)],
    kind="random",  # so that maps may give each element numbers of its own
)
