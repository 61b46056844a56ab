"""Generators of random bits: the Philox-4x32 block cipher, and XLA's generator with Threefry or Philox.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

The state of the generator is u64[2]: a key, and a counter that each draw moves on. Bits depend on the state, the
shape, the dtype and the algorithm alone, whatever the platform. XLA draws for one state only; for a batch of states the
ciphers' own primitives draw, in `counters.draw`, which gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base.elementwise_makers import align
from functorch_like.primitives.random.counters import draw, philox, split_dim, threefry

ALGORITHMS = ("three_fry", "philox")
_NO = NotDefined("random bits are integers and have no derivative; differentiate with respect to what they scale")


# --------------------------------------------------------------------------------------------------------- philox4x32
def _words_shape(*operands: ShapedArray) -> tuple[ShapedArray, ...]:
    first = operands[0]
    for x in operands:
        if x.dtype != dtypes.uint32:
            raise DtypeError(f"philox4x32 takes uint32, not {x!r}", fix="convert with astype('uint32')")
        if x.shape != first.shape:
            raise ShapeError(f"{first!r} and {x!r} differ in shape", fix="broadcast keys and counters to one shape")
    return (first.strong(),) * 4


def _philox_ref(*words: Any) -> tuple[Any, ...]:
    def product(x: Any, by: int) -> tuple[Any, Any]:
        wide = np.asarray(x.astype(np.uint64) * np.uint64(by))
        return (wide >> np.uint64(32)).astype(np.uint32), wide.astype(np.uint32)

    words = tuple(np.asarray(x, np.uint32) for x in words)
    with np.errstate(over="ignore"):
        out = philox(
            words[:2], words[2:], product, lambda a, b: np.asarray(a ^ b), lambda x, n: np.asarray(x + np.uint32(n))
        )
    return tuple(np.asarray(x) for x in out)


def _philox_body(e: Any, words: Sequence[Any], aval: ShapedArray) -> list[Any]:
    wide = aval.update(dtype=dtypes.uint64)
    two = lambda name, a, b, of: e.op(f"stablehlo.{name}", [a, b], [of])

    def product(x: Any, by: int) -> tuple[Any, Any]:
        both = two("multiply", e.convert(x, wide), e.full(np.uint64(by), wide), wide)
        high = two("shift_right_logical", both, e.full(np.uint64(32), wide), wide)
        return e.convert(high, aval), e.convert(both, aval)

    xor = lambda a, b: two("xor", a, b, aval)
    raised = lambda x, n: two("add", x, e.full(np.uint32(n), aval), aval)
    return list(philox(words[:2], words[2:], product, xor, raised))


def _philox_lower(e: Any, *operands: Any) -> list[Any]:
    aval = e.outs[0]
    body = lambda inner, *words: _philox_body(inner, words, aval)
    symbol = e.function(("philox4x32", aval), "philox4x32", [aval] * 6, [aval] * 4, body)
    return e.call(symbol, operands, [aval] * 4)


def _philox_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    args, at = align(axis, args, dims)
    return philox4x32(*args), (at,) * 4


#: Ten rounds of the cipher: two words of key and four of counter give four words of bits.
philox4x32 = Primitive(
    "philox4x32",
    shape=_words_shape,
    ref=_philox_ref,
    lower=_philox_lower,
    jvp=lambda primals, tangents: (philox4x32(*primals), (None,) * 4),
    transpose=_NO,
    batch=_philox_batch,
    samples=lambda: [
        SampleInput((ShapedArray(shape, np.uint32),) * 6, domain=(0, 2**32 - 1), smooth=False)
        for shape in ((), (5,), (2, 1), (0, 2))
    ],
    multiple_results=True,
)


# -------------------------------------------------------------------------------------------------- rng_bit_generator
def _shape(key: ShapedArray, *, shape: tuple[int, ...], dtype: Any, algorithm: str) -> tuple[ShapedArray, ...]:
    structural.check_sizes(shape)
    if algorithm not in ALGORITHMS:
        raise ArgumentError(f"algorithm={algorithm!r} is unknown", fix=f"use one of {', '.join(ALGORITHMS)}")
    if key.shape != (2,) or key.dtype != dtypes.uint64:
        raise ArgumentError(f"{key!r} is not a state of the generator", fix="give two uint64: a key and a counter")
    if np.dtype(dtype) not in dtypes.UNSIGNED:
        raise DtypeError(f"bits come as unsigned integers, not {np.dtype(dtype).name}", fix="ask for uint32 or uint64")
    return key.strong(), ShapedArray(shape, dtype)


def _words(x: Any) -> tuple[Any, Any]:
    return x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)


def _joined(low: Any, high: Any) -> Any:
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


def _threefry_ref(key: Any, counter: Any, shape: tuple[int, ...], bits: int) -> tuple[Any, Any]:
    from_counter = lambda n: threefry.ref(
        *(np.broadcast_to(w, n) for w in _words(key)), *_words(counter + np.arange(n, dtype=np.uint64))
    )
    if bits == 64:
        n = math.prod(shape)
        return np.asarray(_joined(*from_counter(n))).reshape(shape), np.uint64(n)
    if not shape:
        return np.asarray(from_counter(1)[0][0]), np.uint64(1)
    at = split_dim(shape)
    half = tuple(-(-n // 2) if d == at else n for d, n in enumerate(shape))
    n = math.prod(half)
    pair = np.stack([x.reshape(half) for x in from_counter(n)], at + 1)
    whole = pair.reshape(*shape[:at], 2 * half[at], *shape[at + 1 :])
    return whole[tuple(slice(n) for n in shape)], np.uint64(n)


def _philox_draw_ref(key: Any, counter: Any, shape: tuple[int, ...], bits: int) -> tuple[Any, Any]:
    words = math.prod(shape) * (2 if bits == 64 else 1)
    n = -(-words // 4)
    low = counter + np.arange(n, dtype=np.uint64)
    high = key + (low < counter).astype(np.uint64)  # the upper half of the counter starts as the key
    blocks = [np.broadcast_to(w, n) for w in _words(key)]
    out = np.stack(philox4x32.ref(*blocks, *_words(low), *_words(high)), -1).reshape(-1)
    if bits == 64:
        out = _joined(out[0::2], out[1::2])
    return np.asarray(out)[: math.prod(shape)].reshape(shape), np.uint64(n)


def _ref(key: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: str) -> tuple[Any, Any]:
    run: Callable[..., Any] = _threefry_ref if algorithm == "three_fry" else _philox_draw_ref
    with np.errstate(over="ignore"):
        out, used = run(key[0], key[1], shape, 8 * np.dtype(dtype).itemsize)
        return np.array([key[0], key[1] + used], np.uint64), np.asarray(out).astype(dtype)


def _lower(e: Any, key: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: str) -> list[Any]:
    attrs = {"rng_algorithm": e.attr(f"#stablehlo<rng_algorithm {algorithm.upper()}>")}
    state, bits = e.outs
    if bits.size:
        return list(e.op("stablehlo.rng_bit_generator", [key], [state, bits], attrs=attrs))
    return [key, e.full(0, bits)]


def _batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, shape: Any, dtype: Any, algorithm: str) -> Any:
    keys = structural.move(args[0], dims[0], 0)
    return draw(keys, shape, np.dtype(dtype), algorithm, philox4x32), (0, 0)


rng_bit_generator = Primitive(
    "rng_bit_generator",
    shape=_shape,
    ref=_ref,
    lower=_lower,
    jvp=_NO,
    transpose=_NO,
    batch=_batch,
    samples=lambda: [
        SampleInput(
            (np.array([0x123456789ABCDEF0, counter], np.uint64),),
            {"shape": shape, "dtype": np.dtype(dtype), "algorithm": algorithm},
            smooth=False,
        )
        for algorithm in ALGORITHMS
        for shape, dtype, counter in [
            ((), "uint32", 0), ((5,), "uint32", 2**64 - 1), ((2, 3, 4), "uint32", 2**32 - 2), ((3, 5), "uint32", 7),
            ((0, 2), "uint32", 3), ((), "uint64", 1), ((3, 3), "uint64", 2**64 - 2), ((7,), "uint8", 5),
            ((4,), "uint16", 5),
        ]
    ],
    multiple_results=True,
)  # fmt: skip
