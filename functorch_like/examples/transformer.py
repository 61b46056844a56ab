"""A small language model: a decoder-only transformer in plain functions, with its loss and a training step.

A. Vaswani et al., "Attention is all you need", arXiv:1706.03762; normalisation before each block, as in GPT-2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn, random, tree
from functorch_like.sharding import NamedSharding, P

Params = Any


class Sizes(NamedTuple):
    """The sizes of a model.

    Attributes:
        words: size of the vocabulary.
        length: of a sequence.
        width: features of each position.
        heads: of attention.
        layers: blocks.
    """

    words: int = 256
    length: int = 128
    width: int = 128
    heads: int = 4
    layers: int = 2


def init(key: Any, sizes: Sizes, dtype: Any = "float32") -> Params:
    """Draw parameters; each array of a block has a first axis that counts blocks.

    >>> tree.map(np.shape, init(random.key(0), Sizes()))["blocks"]["out"]
    (2, 128, 128)
    """
    w, n = sizes.width, sizes.layers
    shapes = {
        "words": (sizes.words, w),
        "places": (sizes.length, w),
        "blocks": {"qkv": (n, w, 3 * w), "out": (n, w, w), "up": (n, w, 4 * w), "down": (n, 4 * w, w)},
    }
    leaves, structure = tree.flatten(shapes, is_leaf=lambda node: isinstance(node, tuple))
    keys = random.split(key, len(leaves))
    drawn = [random.normal(k, shape, "float32") * shape[-2] ** -0.5 for k, shape in zip(keys, leaves, strict=True)]
    return structure.unflatten([x.astype(dtype) for x in drawn])


def normalized(x: Any) -> Any:
    """Return `x` with mean 0 and variance 1 along the last axis, computed in float32."""
    return nn.standardize(x.astype("float32")).astype(x.dtype)


def block(params: Params, x: Any, heads: int) -> Any:
    """Apply attention and a two-layer network to x[batch, position, feature]."""
    batch, length, width = x.shape
    q, k, v = fnp.split(normalized(x) @ params["qkv"], 3, axis=-1)
    split = lambda y: y.reshape(batch, length, heads, width // heads)
    mixed = nn.dot_product_attention(split(q), split(k), split(v), is_causal=True)
    x = x + mixed.reshape(batch, length, width) @ params["out"]
    return x + nn.gelu(normalized(x) @ params["up"]) @ params["down"]


def logits(params: Params, tokens: Any, sizes: Sizes) -> Any:
    """Return log-odds [batch, position, word] of the next word."""
    x = params["words"][tokens] + params["places"][: tokens.shape[1]]
    body = lambda carry, one: (block(one, carry, sizes.heads), None)
    x, _ = ft.lax.scan(body, x, params["blocks"])
    return normalized(x) @ params["words"].T


def loss(params: Params, tokens: Any, sizes: Sizes) -> Any:
    """Return the mean of -log p of each next word, in float32."""
    scores = nn.log_softmax(logits(params, tokens[:, :-1], sizes).astype("float32"))
    return -fnp.mean(fnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1))


def train_step(sizes: Sizes, rate: float = 0.1) -> Callable[..., Any]:
    """Return the function `(params, tokens) -> (params, loss)`: one step of gradient descent.

    >>> sizes = Sizes(words=8, length=4, width=8, heads=2, layers=1)
    >>> step = ft.jit(train_step(sizes))
    >>> params, tokens = init(random.key(0), sizes), np.arange(10).reshape(2, 5) % 8
    >>> losses = []
    >>> for _ in range(20):
    ...     params, value = step(params, tokens)
    ...     losses.append(float(value))
    >>> losses[-1] < 0.5 * losses[0]
    True
    """

    def step(params: Params, tokens: Any) -> tuple[Params, Any]:
        value, gradient = ft.value_and_grad(loss)(params, tokens, sizes)
        return tree.map(lambda p, g: (p - rate * g).astype(p.dtype), params, gradient), value

    return step


def abstract_arguments(sizes: Sizes, batch: int, dtype: Any = "float32") -> tuple[Any, Any]:
    """Return shapes and dtypes of a step's arguments."""
    params = ft.eval_shape(lambda: init(random.key(0), sizes, dtype))
    return params, ft.ShapeDtypeStruct((batch, sizes.length + 1), np.int32)


def shardings(mesh: Any) -> tuple[Any, Any]:
    """Return shardings of a step's arguments on a mesh with axes "data" and "model": the batch and the features."""
    over = lambda *spec: NamedSharding(mesh, P(*spec))
    blocks = {
        "qkv": over(None, None, "model"),
        "out": over(None, "model"),
        "up": over(None, None, "model"),
        "down": over(None, "model"),
    }
    return {"words": over("model"), "places": over(), "blocks": blocks}, over("data")


def split_arguments(sizes: Sizes, batch: int, mesh: Any, dtype: Any = "float32") -> tuple[Any, Any]:
    """Return shapes, dtypes and shardings of a step's arguments."""
    place = lambda x, where: ft.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)
    return tree.map(place, abstract_arguments(sizes, batch, dtype), shardings(mesh))
