"""Shared code of distributions with parameters: arguments, compilation as one program, rejection sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.backends import random as settings
from functorch_like.core import aval_of
from functorch_like.lax.unbounded import run_while
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import structural
from functorch_like.primitives.random.threefry import draw
from functorch_like.random import own_generators
from functorch_like.random.arguments import check_key, impl_of
from functorch_like.random.cipher import U32, long_words
from functorch_like.random.continuous import F64, computed_in, float_dtype, odd_fraction, parameter, spread
from functorch_like.random.generators import children, numbered, split
from functorch_like.transforms.eager_jit import eager_jit

#: A distribution: a function of a key, parameters in the result's shape in float32 or float64, the shape and dtype.
Body = Callable[..., Any]


def drawn(name: str, body: Body, key: Any, parameters: Mapping[str, Any], shape: Any, dtype: Any) -> Any:
    """Draw floats from a distribution; by default in the shape that the parameters broadcast to."""
    what = f"random.{name}"
    key = check_key(key, what)
    result_dtype = float_dtype(dtype, what)
    sizes = sizes_of(parameters, shape, what)
    operands = tuple(parameter(v, result_dtype, sizes, n) for n, v in parameters.items())
    return _drawn(key, operands, body=body, shape=sizes, dtype=result_dtype)


def sizes_of(parameters: Mapping[str, Any], shape: Any, what: str) -> tuple[int, ...]:
    """Return the shape of the result."""
    if shape is None:
        return promotion.broadcast_shapes(*(aval_of(v).shape for v in parameters.values()))
    return shape_of(shape, what)


@eager_jit(static=("body", "shape", "dtype"), whole=True)
def _drawn(key: Any, parameters: Any, body: Body, shape: tuple[int, ...], dtype: Any) -> Any:
    wide = computed_in(dtype)
    # Compiled apart from operations around it: numbers must not depend on constants, or on later operations.
    key, *operands = lax.optimization_barrier((draw(key), *(promotion.convert(p, wide) for p in parameters)))
    return lax.optimization_barrier(
        promotion.convert(body(key, *(spread(p, wide, shape) for p in operands), shape, wide), dtype)
    )


#: First counter words of two more domains of counters: of streams, and of rounds of rejection, counted upwards.
_STREAMS, _ROUNDS = 0xA0000000, 0x20000000


def streams(key: Any, number: int) -> tuple[Any, ...]:
    """Return keys that are independent of each other, of the key's own bits, and of its splits and folds.

    Of JAX's numbers, they are the splits.
    """
    own = settings.are_native() and aval_of(key).shape[0] not in own_generators.BY_WORDS
    made = children(draw(key), _STREAMS, number) if own else split(draw(key), (number,), impl_of(key))
    made = lax.optimization_barrier(made)
    return tuple(made[i] for i in range(number))


def _fractions(key: Any, number: Any, size: int, dtype: Any) -> tuple[Any, Any]:
    """Return two vectors of uniform numbers in (0, 1), for a round."""
    words = numbered(key, number, 2 * size if dtype == F64 else size)
    # Else the cipher would be compiled into each of the loops that read the numbers.
    if dtype == F64:
        wide = structural.materialize(odd_fraction(long_words(*words)))
        return wide[:size], wide[size:]
    return tuple(structural.materialize(odd_fraction(word)) for word in words)  # type: ignore[return-value]


#: From this size on, elements with rejected proposals are gathered into an array of a fraction of the size.
_LARGE, _FRACTION = 512, 6
#: Rounds that most arrays take.
_EXPECTED = 4
#: On CPUs only loops over multiples of this size are vectorized; others were measured to take 5 to 15 times as long.
_LANES = 64


def accepted(
    key: Any, pending: Any, value: Any, propose: Callable[..., tuple[Any, Any]], *parameters: Any, digits: Any = None
) -> Any:  # fmt: skip
    """Sample by rejection: rounds over whole arrays until every pending element has accepted a proposal.

    Few proposals are rejected, so the first round accepts nearly all elements. The remaining elements are gathered
    and have further rounds, whose number grows with the logarithm of the size.

    Args:
        key: the key.
        pending: a mask of the elements that need a value. Each must be able to accept one, or the loop is endless.
        value: the values of the other elements.
        propose: function of two arrays of uniform numbers and the parameters; returns a mask of accepted elements,
            and their values.
        parameters: arrays of floats in the shape of `pending`.
        digits: the dtype of the uniform numbers, float32 or float64; by default that of `value`.
    """
    key, shape, dtype = draw(key), aval_of(pending).shape, aval_of(value).dtype
    count = math.prod(shape)
    size = count if count < _LARGE else -(-count // _LANES) * _LANES
    flat = (fnp.reshape(x, (count,)) for x in (pending, value, *parameters))
    waits, values, *operands = (x if size == count else fnp.pad(x, (0, size - count)) for x in flat)

    def rounds(number: Any, most: int | None, waits: Any, values: Any, operands: Any) -> Any:
        """Run rounds until no element waits, but no more than `most`."""

        def step(carry: Any) -> Any:
            number, waits, values = carry
            uniform = _fractions(key, number, aval_of(waits).shape[0], digits or dtype)
            taken, new = propose(*uniform, *operands)
            return number + 1, waits & ~taken, fnp.where(waits & taken, new, values)

        more = lambda c: c[1].any() if most is None else c[1].any() & (c[0] < _ROUNDS + most)
        return run_while(more, step, (number, waits, values), "rejection sampling", expected_steps=most or _EXPECTED)

    first = fnp.full((), _ROUNDS, U32)
    if size < _LARGE:
        return rounds(first, None, waits, values, operands)[2].reshape(shape)

    def gathered(carry: Any) -> Any:
        number, waits, values = carry
        some = -(-size // _FRACTION // _LANES) * _LANES
        order = fnp.cumsum(waits, dtype=dtypes.int32)
        slots = fnp.where(waits, order - 1, some)
        places = fnp.full((some,), size, dtypes.int32)
        places = places.at[slots].set(fnp.arange(size, dtype=dtypes.int32), mode="drop")
        there = places < size
        inner = [x.at[places].get(mode="clip") for x in (values, *operands)]
        number, _, new = rounds(number, None, there, inner[0], inner[1:])
        return number, waits & (order > some), values.at[places].set(new, mode="drop")

    start = rounds(first, 1, waits, values, operands)
    values = run_while(lambda carry: carry[1].any(), gathered, start, "rejection sampling", expected_steps=1)[2]
    return values[:count].reshape(shape)
