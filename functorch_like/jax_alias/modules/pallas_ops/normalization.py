"""`layer_norm`, `rms_norm` and `softmax` of `jax.experimental.pallas.ops.gpu`."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes, lax, nn
from functorch_like import numpy as fnp
from functorch_like.core import aval_of


def layer_norm(
    x: Any, weight: Any, bias: Any, num_warps: int | None = None, num_stages: int | None = 3, eps: float = 1e-5,
    backward_pass_impl: str = "triton", interpret: bool = False,
) -> Any:  # fmt: skip
    """Return rows with mean 0 and variance 1, times weights [n], plus biases [n]; other options have no effect.

    Args:
        x: floats [..., n].
        weight: factors.
        bias: terms.
        eps: added to the variance.
    """
    return fnp.astype(nn.standardize(_wide(x), epsilon=eps) * weight + bias, aval_of(x).dtype)


def rms_norm(
    x: Any, weight: Any, bias: Any, num_warps: int | None = None, num_stages: int | None = 3, eps: float = 1e-5,
    backward_pass_impl: str = "triton", interpret: bool = False,
) -> Any:  # fmt: skip
    """Return rows with a mean square of 1, times weights [n], plus biases [n]; other options have no effect.

    Args:
        x: floats [..., n].
        weight: factors.
        bias: terms.
        eps: added to the mean square.
    """
    wide = _wide(x)
    factor = lax.rsqrt(fnp.mean(fnp.square(wide), axis=-1, keepdims=True) + eps)
    return fnp.astype(wide * factor * weight + bias, aval_of(x).dtype)


def layer_norm_reference(x: Any, weight: Any, bias: Any, *, eps: float = 1e-5) -> Any:
    """`layer_norm`."""
    return layer_norm(x, weight, bias, eps=eps)


def rms_norm_reference(x: Any, weight: Any, bias: Any, *, eps: float = 1e-5) -> Any:
    """`rms_norm`."""
    return rms_norm(x, weight, bias, eps=eps)


def softmax(x: Any, *, axis: int = -1, num_warps: int = 4, interpret: bool = False, debug: bool = False) -> Any:
    """`nn.softmax`; the other options have no effect."""
    return nn.softmax(x, axis=axis)


def _wide(x: Any) -> Any:
    return fnp.astype(x, dtypes.accumulator(aval_of(x).dtype))
