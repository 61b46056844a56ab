"""Two classifiers: each a function that makes parameters, and a function of parameters and ONE image.

Neither has a batch dimension: `vmap` adds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import functorch_like.numpy as fnp
from functorch_like import lax, nn, random

#: A pytree of arrays.
Params = dict[str, Any]

CLASSES = 10


class Model(NamedTuple):
    """`init(key)` gives parameters; `apply(params, image)` gives the log-probability of each class."""

    name: str
    init: Callable[[Any], Params]
    apply: Callable[[Params, Any], Any]


def layer(key: Any, shape: tuple[int, ...]) -> Params:
    """A kernel drawn for ReLU (He et al. 2015), whose last axis counts outputs, and a bias of zeros."""
    fan_in = 1
    for size in shape[:-1]:
        fan_in *= size
    return {"kernel": random.normal(key, shape) * (2 / fan_in) ** 0.5, "bias": fnp.zeros(shape[-1])}


def dense(params: Params, x: Any) -> Any:
    """An affine map of a vector."""
    return x @ params["kernel"] + params["bias"]


def conv(params: Params, image: Any) -> Any:
    """A convolution of an image (height, width, channels) with a window that keeps its size."""
    out = lax.conv_general_dilated(
        image[None], params["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return out[0] + params["bias"]


def max_pool(image: Any) -> Any:
    """The maximum of each 2 by 2 block."""
    height, width, channels = image.shape
    return image.reshape(height // 2, 2, width // 2, 2, channels).max(axis=(1, 3))


# ------------------------------------------------------------------------------------------------------------- conv
def init_conv(key: Any, channels: tuple[int, int] = (32, 64), hidden: int = 128) -> Params:
    """Parameters of two convolutions and two dense layers."""
    first, second, third, fourth = random.split(key, 4)
    return {
        "conv1": layer(first, (3, 3, 1, channels[0])),
        "conv2": layer(second, (3, 3, channels[0], channels[1])),
        "dense1": layer(third, (2 * 2 * channels[1], hidden)),
        "dense2": layer(fourth, (hidden, CLASSES)),
    }


def apply_conv(params: Params, image: Any) -> Any:
    """8x8 pixels, 4x4 after one pooling, 2x2 after the next; then a vector."""
    x = max_pool(nn.relu(conv(params["conv1"], image)))
    x = max_pool(nn.relu(conv(params["conv2"], x)))
    x = nn.relu(dense(params["dense1"], x.reshape(-1)))
    return nn.log_softmax(dense(params["dense2"], x))


# -------------------------------------------------------------------------------------------------------------- mlp
def init_mlp(key: Any, hidden: tuple[int, int] = (256, 128)) -> Params:
    """Parameters of three dense layers."""
    first, second, third = random.split(key, 3)
    return {
        "dense1": layer(first, (64, hidden[0])),
        "dense2": layer(second, (hidden[0], hidden[1])),
        "dense3": layer(third, (hidden[1], CLASSES)),
    }


def apply_mlp(params: Params, image: Any) -> Any:
    """The pixels as one vector through three dense layers."""
    x = nn.relu(dense(params["dense1"], image.reshape(-1)))
    x = nn.relu(dense(params["dense2"], x))
    return nn.log_softmax(dense(params["dense3"], x))


#: By their names on the command line.
MODELS = {"conv": Model("conv net", init_conv, apply_conv), "mlp": Model("dense net", init_mlp, apply_mlp)}
