"""Functions of neural networks: activations, softmaxes, attention, initializers of weights."""

# ruff: noqa: F401, I001
# fmt: off
from __future__ import annotations

from functorch_like.nn import initializers
from functorch_like.nn.activations import (
    hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu, relu, relu6, sparse_plus, sparse_sigmoid,
)
from functorch_like.nn.attention import dot_product_attention
from functorch_like.nn.normalization import one_hot, standardize
from functorch_like.nn.smooth import (
    celu, elu, gelu, glu, log1mexp, log_sigmoid, mish, selu, sigmoid, silu, soft_sign, softplus, squareplus, swish,
)
from functorch_like.nn.softmax import log_softmax, logmeanexp, logsumexp, softmax
from functorch_like.numpy.unary import tanh
