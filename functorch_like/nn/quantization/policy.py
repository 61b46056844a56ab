"""`quantize`: parameters in small integers, by a policy; and `fake_quantize` for training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import dtypes, tree
from functorch_like import numpy as fnp
from functorch_like.core import Tracer, aval_of, is_value
from functorch_like.errors import ArgumentError, DtypeError, NonFiniteError, ShapeError
from functorch_like.nn.quantization.integers import largest, rounded, scale_of
from functorch_like.nn.quantization.products import is_quantized
from functorch_like.nn.quantization.quantized import Quantized
from functorch_like.numpy import promotion
from functorch_like.transforms.custom.custom_jvp import custom_jvp

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PyTree


class QuantizationPolicy(NamedTuple):
    """Selection of the arrays to quantise, and the form of the result.

    Attributes:
        bits: 8, or 4 (two integers in each byte).
        activations: "dynamic" if products round their other operand to int8, with a scale for each row, and multiply
            integers; None if products convert the weights to floats.
        channel_axis: the axis with a scale for each element, which the other axes share. The default, -1, is for
            matrices on the right of products.
        select: function of the path of a leaf, such as "['w']", and the leaf, which returns True to quantise it. By
            default, arrays of floats with two or more dimensions are quantised.
    """

    bits: int = 8
    activations: str | None = "dynamic"
    channel_axis: int = -1
    select: Callable[[str, Any], bool] | None = None


POLICIES = {
    "int8": QuantizationPolicy(),
    "int8_weights": QuantizationPolicy(activations=None),
    "int4": QuantizationPolicy(bits=4),
    "int4_weights": QuantizationPolicy(bits=4, activations=None),
}


def policy_of(policy: QuantizationPolicy | str, what: str) -> QuantizationPolicy:
    """Return a policy, which may be given by name.

    Raises:
        ArgumentError: for an unknown name, number of bits or kind of activations.
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise promotion.error(
                ArgumentError, f"policy={policy!r} of {what} is unknown", f"use {', '.join(map(repr, POLICIES))}"
            )
        return POLICIES[policy]
    if not isinstance(policy, QuantizationPolicy) or policy.activations not in ("dynamic", None):
        raise promotion.error(
            ArgumentError, f"policy={policy!r:.80} of {what}",
            "give a nn.QuantizationPolicy with activations='dynamic' or None, or a name",
        )  # fmt: skip
    largest(policy.bits)
    return policy


def quantize(params: PyTree, policy: QuantizationPolicy | str = "int8") -> PyTree:
    """Return parameters with weights in int8 or int4, with a scale for each channel.

    Args:
        params: a pytree of arrays.
        policy: a `QuantizationPolicy`, or the name of one: "int8", "int8_weights" (activations stay floats), "int4",
            "int4_weights".

    Returns:
        The pytree with `Quantized` in the place of the arrays that the policy selects: a quarter of float32's memory,
        or an eighth. `x @ w` works with these; for other operations there is `nn.quantized(f)`. A weight is rounded by
        at most half a step: 1/254 of the largest magnitude of its channel, 1/14 for int4. For stacked weights of the
        layers of a scan, use `ft.vmap(nn.quantize)(params)`, which gives each layer its own scales.

    Raises:
        ArgumentError: for an unknown policy.
        DtypeError, ShapeError, NonFiniteError: for a selected leaf that is not an array of floats, has fewer than two
            dimensions, or holds infinities or NaN; the error names the leaf.

    Example:
        >>> params = {"w": fnp.asarray([[1.0, -127.0], [0.5, 10.0]]), "b": fnp.zeros(2)}
        >>> small = ft.nn.quantize(params)
        >>> small["w"], small["w"].nbytes, small["b"].dtype.name
        (Quantized(float32[2, 2] in int8), 12, 'float32')
        >>> small["w"].dequantize().round(2).tolist()
        [[1.0, -127.0], [0.5, 10.0]]
    """
    chosen = policy_of(policy, "nn.quantize")
    return _map(params, chosen, "nn.quantize", lambda x, axes: Quantized.of(x, chosen.bits, axes, chosen.activations))


def fake_quantize_params(params: T, policy: QuantizationPolicy | str = "int8") -> T:
    """Return parameters rounded as `quantize` rounds them, but in floats, whose gradients pass through the rounding.

    A loss of `fake_quantize_params(params)` is trained for quantised weights: `quantize(params)` has the same values.

    Args:
        params: a pytree of arrays.
        policy: as for `quantize`.

    Returns:
        A pytree of the structure, shapes and dtypes of params.

    Raises:
        ArgumentError, DtypeError, ShapeError, NonFiniteError: as `quantize`.

    Example:
        >>> loss = lambda params: fnp.sum(ft.nn.fake_quantize_params(params)["w"] ** 2)
        >>> ft.grad(loss)({"w": fnp.asarray([[127.0], [3.4]])})["w"].tolist()
        [[254.0], [6.0]]
    """
    chosen = policy_of(policy, "nn.fake_quantize_params")
    fake = lambda x, axes: _fake(x, scale_of(x, chosen.bits, axes), chosen.bits)
    return _map(params, chosen, "nn.fake_quantize_params", fake)


def _map(params: Any, policy: QuantizationPolicy, what: str, convert: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    def one(path: Any, leaf: Any) -> Any:
        name = tree.keystr(path)
        if policy.select is None:
            floats = is_value(leaf) and not is_quantized(leaf) and dtypes.is_float(aval_of(leaf).dtype)
            if not floats or aval_of(leaf).ndim < 2 or not aval_of(leaf).size:
                return leaf
        elif not policy.select(name, leaf):
            return leaf
        axes = _checked(name, leaf, policy, what)
        return convert(leaf if promotion.is_array(leaf) else fnp.asarray(leaf), axes)

    return tree.map_with_path(one, params, is_leaf=is_quantized)


def _checked(name: str, leaf: Any, policy: QuantizationPolicy, what: str) -> tuple[int, ...]:
    """Return the axes that share a scale.

    Raises:
        FtError: for a leaf that cannot be quantised.
    """
    if not is_value(leaf) or not dtypes.is_float(aval_of(leaf).dtype):
        shown = repr(aval_of(leaf)) if is_value(leaf) else f"{leaf!r:.40}"
        raise promotion.error(
            DtypeError, f"{what} of params{name}, {shown}: not an array of floats", "leave it out in select="
        )
    aval = aval_of(leaf)
    if aval.ndim < 2 or not aval.size:
        raise promotion.error(
            ShapeError, f"{what} of params{name}, {aval!r}: fewer than two dimensions, or no elements",
            "leave it out in select=",
        )  # fmt: skip
    if not -aval.ndim <= policy.channel_axis < aval.ndim:
        raise promotion.error(
            ShapeError, f"{what} of params{name}, {aval!r}: it has no axis {policy.channel_axis}", "set channel_axis="
        )
    if not isinstance(leaf, Tracer) and not bool(fnp.all(fnp.isfinite(leaf))):
        raise promotion.error(
            NonFiniteError, f"{what} of params{name}, {aval!r}: it holds infinities or NaN",
            "look for the step that made them: ft.debug.nans",
        )  # fmt: skip
    return tuple(a for a in range(aval.ndim) if a != policy.channel_axis % aval.ndim)


def fake_quantize(x: ArrayLike, bits: int = 8, axis: int | None = None, scale: ArrayLike | None = None) -> Array:
    """Round floats to the steps of a quantisation; gradients pass through as if nothing was rounded.

    Args:
        x: floats.
        bits: 8 or 4.
        axis: the axis with a scale for each element; one scale for all by default.
        scale: the size of a step; by default such that the largest magnitude is the last step.

    Returns:
        The floats at the nearest steps. Values beyond the last step are moved to it, and have a gradient of zero.

    Raises:
        ArgumentError: for another number of bits.
        DtypeError: for anything but floats.

    Example:
        >>> ft.nn.fake_quantize(fnp.asarray([0.4, 1.6, 300.0]), scale=1.0).tolist()
        [0.0, 2.0, 127.0]
        >>> ft.grad(lambda x: ft.nn.fake_quantize(x, scale=1.0).sum())(fnp.asarray([0.4, 1.6, 300.0])).tolist()
        [1.0, 1.0, 0.0]
    """
    largest(bits)
    value: Any = x if promotion.is_array(x) else fnp.asarray(x)
    aval = aval_of(value)
    if not dtypes.is_float(aval.dtype):
        raise promotion.error(DtypeError, f"nn.fake_quantize of {aval!r}, which are not floats", "convert with astype")
    if axis is not None and not -aval.ndim <= axis < aval.ndim:
        raise promotion.error(ShapeError, f"nn.fake_quantize of {aval!r} along axis {axis}", "name one of its axes")
    if scale is None:
        axes = [a for a in range(aval.ndim) if axis is None or a != axis % aval.ndim]
        scale = scale_of(value, bits, axes)
    return _fake(value, scale, bits)


def _fake(x: Any, scale: Any, bits: int) -> Any:
    @custom_jvp
    def fake(x: Any, scale: Any) -> Any:
        return (rounded(x, scale, bits).astype(dtypes.float32) * scale).astype(aval_of(x).dtype)

    top = np.float32(largest(bits) + 0.5)
    inside = lambda x, scale: fnp.abs(x.astype(dtypes.float32)) <= top * scale
    fake.defjvps(lambda t, out, x, scale: fnp.where(inside(x, scale), t, fnp.zeros_like(t)), None)
    return fake(x, fnp.asarray(scale, dtype=dtypes.float32))
