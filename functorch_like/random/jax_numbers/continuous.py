"""Uniform floats as JAX makes them of bits, and the distributions that are functions of one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.random.cipher import U64
from functorch_like.random.drawing import streams
from functorch_like.random.generators import raw_bits


def unit(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw uniform numbers in [0, 1): random bits as the significand of a number in [1, 2), less 1."""
    info = fnp.finfo(dtype)
    drawn = 8 if info.nmant < 8 else info.bits  # bfloat16 has few enough digits for bytes
    word = fnp.dtype(f"uint{info.bits}")
    digits = raw_bits(key, shape, drawn).astype(word) >> word.type(drawn - info.nmant)
    one = np.ones((), dtype).view(word)[()]
    return lax.bitcast_convert_type(digits | one, dtype) - np.ones((), dtype)


def uniform(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw uniform numbers in [low, high)."""
    low, high = (fnp.asarray(bound, dtype) for bound in (low, high))
    return fnp.maximum(low, unit(key, shape, dtype) * (high - low) + low)


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the normal distribution."""
    start = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    return np.array(math.sqrt(2), dtype) * lax.erf_inv(uniform(key, start, 1, shape, dtype))


def complex_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw complex numbers of variance 1."""
    both = [normal(one, shape, dtypes.real_part(dtype)) for one in streams(key, 2)]
    return lax.complex(*both) / np.array(math.sqrt(2), dtype)


def truncated_normal(key: Any, low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the normal distribution between two bounds."""
    low, high = (fnp.asarray(bound, dtype) for bound in (low, high))
    root = np.array(math.sqrt(2), dtype)
    x = root * lax.erf_inv(uniform(key, lax.erf(low / root), lax.erf(high / root), shape, dtype))
    within = (
        fnp.nextafter(lax.stop_gradient(end), np.array(to, dtype)) for end, to in ((low, np.inf), (high, -np.inf))
    )
    return fnp.clip(x, *within)


def exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the exponential distribution."""
    return -fnp.log1p(-unit(key, shape, dtype))


def gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    """Draw from the Gumbel distribution."""
    info = fnp.finfo(dtype)
    if mode == "low":
        return -fnp.log(-fnp.log(uniform(key, info.tiny, 1, shape, dtype)))
    if mode == "highest" and dtype == dtypes.float32:
        return _gumbel_of_64_bits(key, shape)
    high, low = unit(key, (2, *shape), dtype)
    u = fnp.where(high >= 0.5, high, high + np.array(2.0**-info.nmant, dtype) * low + info.tiny)
    return -fnp.log(-fnp.log1p(-u))


def _gumbel_of_64_bits(key: Any, shape: tuple[int, ...]) -> Any:
    """Draw with a probability of 64 bits, of which a float32 takes the distance to the nearer end of (0, 1)."""
    words = raw_bits(key, (2, *shape), 32)
    number = words[0].astype(U64) << 32 | words[1].astype(U64)
    small = words[0] < 2**31
    distance = _down_to_float(fnp.where(small, number, ~number + 1))
    return fnp.where(small, -fnp.log(-fnp.log1p(-distance)), -fnp.log(-fnp.log(distance)))


def _down_to_float(number: Any) -> Any:
    """Return 2**-64 times an integer of 64 bits, rounded down to float32."""
    zeros = lax.clz(number)
    digits = (number << zeros >> 40).astype("int32")  # 24 of them, the first of which is 1
    return lax.bitcast_convert_type((126 - zeros.astype("int32") << 23) + (digits & 0x7FFFFF), dtypes.float32)


def laplace(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the Laplace distribution."""
    u = uniform(key, fnp.finfo(dtype).epsneg - 1, 1, shape, dtype)
    return fnp.sign(u) * fnp.log1p(-abs(u))


def logistic(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the logistic distribution."""
    u = uniform(key, fnp.finfo(dtype).tiny, 1, shape, dtype)
    return fnp.log(u) - fnp.log1p(-u)


def cauchy(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the Cauchy distribution."""
    u = uniform(key, fnp.finfo(dtype).eps, 1, shape, dtype)
    return fnp.tan(np.array(math.pi, dtype) * (u - np.array(0.5, dtype)))


def rayleigh(key: Any, scale: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the Rayleigh distribution."""
    return scale * fnp.sqrt(-2 * fnp.log(unit(key, shape, dtype)))


def maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Draw from the Maxwell distribution."""
    return fnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)
