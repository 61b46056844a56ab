"""`jax.example_libraries.stax`: layers as pairs `(init, apply)`.

`init(key, input_shape)` gives an output shape and parameters, `apply(params, inputs, **kwargs)` the outputs.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import lax, nn, random
from functorch_like import numpy as fnp
from functorch_like.nn import initializers

Layer = tuple[Callable[..., Any], Callable[..., Any]]

relu, log_softmax, softmax, softplus, sigmoid = nn.relu, nn.log_softmax, nn.softmax, nn.softplus, nn.sigmoid
elu, leaky_relu, selu, gelu, standardize = nn.elu, nn.leaky_relu, nn.selu, nn.gelu, nn.standardize
logsoftmax = log_softmax
glorot, normal = initializers.glorot_normal, initializers.normal
randn = normal
glorot_normal = glorot
ones, zeros = initializers.ones, initializers.zeros


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Return a layer `x @ W + b`."""
    W_init, b_init = W_init or glorot(), b_init or normal()

    def init(key: Any, input_shape: Sequence[int]) -> Any:
        first, second = random.split(key)
        return (*input_shape[:-1], out_dim), (W_init(first, (input_shape[-1], out_dim)), b_init(second, (out_dim,)))

    return init, lambda params, inputs, **kwargs: fnp.dot(inputs, params[0]) + params[1]


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Any = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = None,
) -> Layer:  # fmt: skip
    """Return a convolution whose layouts are named, as `lax.conv_general_dilated` takes them."""
    return _convolution(
        lax.conv_general_shape_tuple, lax.conv_general_dilated,
        dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Any = None, padding: Any = "VALID",
    W_init: Any = None, b_init: Any = None,
) -> Layer:  # fmt: skip
    """Return a transposed convolution whose layouts are named, as `lax.conv_transpose` takes them."""
    return _convolution(
        lax.conv_transpose_shape_tuple, lax.conv_transpose,
        dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


def _convolution(
    shape_of: Callable[..., Any], convolve: Callable[..., Any],
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Any, padding: Any,
    W_init: Any, b_init: Any,
) -> Layer:  # fmt: skip
    lhs, rhs, out = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot(in_axis=rhs.index("I"), out_axis=rhs.index("O"))
    b_init = b_init or normal(1e-6)

    def init(key: Any, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        known = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel_shape = tuple(known[c] if c in known else next(sizes) for c in rhs)
        bias_shape = tuple(out_chan if c == "C" else 1 for c in out)
        out_shape = shape_of(input_shape, kernel_shape, strides, padding, dimension_numbers)
        first, second = random.split(key)
        return out_shape, (W_init(first, kernel_shape), b_init(second, bias_shape))

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b

    return init, apply


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Any = initializers.zeros, gamma_init: Any = initializers.ones,
) -> Layer:  # fmt: skip
    """Return a layer that gives its inputs mean 0 and variance 1 over some axes, and then moves and scales them."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(key: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        first, second = random.split(key)
        return input_shape, (beta_init(first, shape) if center else (), gamma_init(second, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        wide = lambda p: p.reshape([1 if i in axes else n for i, n in enumerate(x.shape)])
        out = standardize(x, axes, epsilon=epsilon)
        out = out * wide(gamma) if scale else out
        return out + wide(beta) if center else out

    return init, apply


def elementwise(fun: Callable[..., Any], **options: Any) -> Layer:
    """Return a layer that applies a function to each element."""
    return lambda key, shape: (shape, ()), lambda params, inputs, **kwargs: fun(inputs, **options)


Tanh, Relu, Exp, Sigmoid = (elementwise(f) for f in (fnp.tanh, relu, fnp.exp, sigmoid))
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Elu, LeakyRelu, Selu, Gelu = (elementwise(f) for f in (softplus, elu, leaky_relu, selu, gelu))


def _pooling(combine: Callable[..., Any], start: float, mean: bool = False) -> Callable[..., Layer]:
    def pool(window_shape: Sequence[int], strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:
        """Return a layer that combines the elements of each window."""
        steps, layout = strides or (1,) * len(window_shape), spec or "NHWC"
        sizes, hops = iter(window_shape), iter(steps)
        dims = tuple(1 if c in "NC" else next(sizes) for c in layout)
        strides_ = tuple(1 if c in "NC" else next(hops) for c in layout)

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            over = lambda x: lax.reduce_window(x, start, combine, dims, strides_, padding)
            out = over(inputs)
            return out / over(fnp.ones_like(inputs)) if mean else out

        def init(key: Any, input_shape: Sequence[int]) -> Any:
            pads = lax.padtype_to_pads(input_shape, dims, strides_, padding)
            sizes = zip(input_shape, dims, strides_, pads, strict=True)
            return tuple((n + sum(p) - d) // s + 1 for n, d, s, p in sizes), ()

        return init, apply

    return pool


MaxPool, SumPool = _pooling(lax.max, -math.inf), _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)

Flatten: Layer = (
    lambda key, shape: ((shape[0], math.prod(shape[1:])), ()),
    lambda params, inputs, **kwargs: fnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity: Layer = (lambda key, shape: (shape, ()), lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """Return a layer that returns its input several times."""
    return lambda key, shape: ([shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Layer = (
    lambda key, shapes: (shapes[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that joins its inputs along an axis."""

    def init(key: Any, shapes: Any) -> Any:
        joined = list(shapes[0])
        joined[axis] = sum(shape[axis] for shape in shapes)
        return tuple(joined), ()

    return init, lambda params, inputs, **kwargs: fnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a layer that keeps each element with probability `rate` in training; `apply` needs a key `rng=`."""

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        keep = random.bernoulli(kwargs["rng"], rate, inputs.shape)
        return fnp.where(keep, inputs / rate, 0)

    return lambda key, shape: (shape, ()), apply


def serial(*layers: Layer) -> Layer:
    """Return layers applied one after another, as one layer."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(key: Any, input_shape: Any) -> Any:
        params = []
        for layer_init in inits:
            key, own = random.split(key)
            input_shape, param = layer_init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for layer_apply, param, rng in zip(applies, params, _keys(kwargs.pop("rng", None), len(applies)), strict=True):
            inputs = layer_apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Return layers applied side by side, as one layer of lists of inputs."""
    inits, applies = zip(*layers, strict=True)

    def init(key: Any, input_shapes: Any) -> Any:
        keys = random.split(key, len(inits))
        made = [f(k, shape) for f, k, shape in zip(inits, keys, input_shapes, strict=True)]
        return [shape for shape, _ in made], [param for _, param in made]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(applies))
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(applies, params, inputs, rngs, strict=True)]

    return init, apply


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return a layer that is made from the shape of its inputs."""

    def init(key: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](key, input_shape)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply
