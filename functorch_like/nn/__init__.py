"""Functions of neural networks: activations, softmaxes, attention, initializers of weights."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.nn.activations import hard_sigmoid as hard_sigmoid
from functorch_like.nn.activations import hard_silu as hard_silu
from functorch_like.nn.activations import hard_swish as hard_swish
from functorch_like.nn.activations import hard_tanh as hard_tanh
from functorch_like.nn.activations import identity as identity
from functorch_like.nn.activations import leaky_relu as leaky_relu
from functorch_like.nn.activations import relu as relu
from functorch_like.nn.activations import relu6 as relu6
from functorch_like.nn.activations import sparse_plus as sparse_plus
from functorch_like.nn.activations import sparse_sigmoid as sparse_sigmoid
from functorch_like.nn.attention import dot_product_attention as dot_product_attention
from functorch_like.nn.normalization import one_hot as one_hot
from functorch_like.nn.normalization import standardize as standardize
from functorch_like.nn.smooth import celu as celu
from functorch_like.nn.smooth import elu as elu
from functorch_like.nn.smooth import gelu as gelu
from functorch_like.nn.smooth import glu as glu
from functorch_like.nn.smooth import log1mexp as log1mexp
from functorch_like.nn.smooth import log_sigmoid as log_sigmoid
from functorch_like.nn.smooth import mish as mish
from functorch_like.nn.smooth import selu as selu
from functorch_like.nn.smooth import sigmoid as sigmoid
from functorch_like.nn.smooth import silu as silu
from functorch_like.nn.smooth import soft_sign as soft_sign
from functorch_like.nn.smooth import softplus as softplus
from functorch_like.nn.smooth import squareplus as squareplus
from functorch_like.nn.smooth import swish as swish
from functorch_like.nn.softmax import log_softmax as log_softmax
from functorch_like.nn.softmax import logmeanexp as logmeanexp
from functorch_like.nn.softmax import logsumexp as logsumexp
from functorch_like.nn.softmax import softmax as softmax
from functorch_like.numpy.unary import tanh as tanh

with _lazy_imports.block(__name__):
    from functorch_like.nn import initializers as initializers
    from functorch_like.nn.quantization.block_formats import BlockScaleConfig as BlockScaleConfig
    from functorch_like.nn.quantization.block_formats import (
        get_scaled_dot_general_config as get_scaled_dot_general_config,
    )
    from functorch_like.nn.quantization.block_products import scaled_dot_general as scaled_dot_general
    from functorch_like.nn.quantization.block_scaled import scaled_matmul as scaled_matmul
    from functorch_like.nn.quantization.policy import QuantizationPolicy as QuantizationPolicy
    from functorch_like.nn.quantization.policy import fake_quantize as fake_quantize
    from functorch_like.nn.quantization.policy import fake_quantize_params as fake_quantize_params
    from functorch_like.nn.quantization.policy import quantize as quantize
    from functorch_like.nn.quantization.products import quantized as quantized
    from functorch_like.nn.quantization.quantized import Quantized as Quantized
