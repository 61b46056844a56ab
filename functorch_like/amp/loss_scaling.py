"""Loss scaling: gradients in float16 are computed for a multiple of the loss, so that they do not underflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from functorch_like import dtypes, lax, tree
from functorch_like import numpy as fnp
from functorch_like.calling import api_boundary
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import Array, aval_of
from functorch_like.errors import ArgumentError, TreeError
from functorch_like.transforms.argnums import as_positions
from functorch_like.transforms.grad import value_and_grad

T = TypeVar("T")


class LossScale(NamedTuple):
    """The state of dynamic loss scaling.

    Attributes:
        scale: factor of the loss, a float32 scalar.
        good_steps: number of steps with finite gradients since the scale last changed, an int32 scalar.
    """

    scale: Array
    good_steps: Array


class Scaled(NamedTuple):
    """Result of a function made by `scaled_value_and_grad`.

    Attributes:
        value: the unscaled loss, or `(loss, aux)` with `has_aux`.
        grads: the unscaled gradients; not valid if `finite` is False.
        finite: bool scalar, True if no gradient has a NaN or an infinity.
        state: the loss scale for the next step.
    """

    value: Any
    grads: Any
    finite: Array
    state: LossScale


@api_boundary.public
def loss_scale(initial: float = 2.0**15) -> LossScale:
    """Return the state to begin loss scaling with.

    Args:
        initial: the first scale. One that is too large costs a few skipped steps.

    Raises:
        ArgumentError: unless initial is a positive number in the range of float32.

    >>> loss_scale(8.0).scale.item()
    8.0
    """
    if not 0 < initial < float(dtypes.finfo("float32").max):
        raise ArgumentError(f"the initial loss scale is {initial!r}", fix="a positive number, such as 2.0**15")
    return LossScale(fnp.asarray(initial, "float32"), fnp.zeros((), "int32"))


@transformation
def scaled_value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    growth_interval: int | None = 2000,
    growth: float = 2.0,
    shrink: float = 0.5,
    smallest: float = 1.0,
    largest: float = 2.0**24,
    axis_name: str | None = None,
) -> Callable[..., Scaled]:
    """Make a function that computes a loss and its gradients with the loss scaled.

    The scale shrinks when a gradient overflows, and grows after a number of steps without overflow. `apply_if_finite`
    skips a step whose gradients are not finite. The function is pure, without branches: use it under `jit`, `scan` and
    meshes. The cost is a division and a test of each gradient, which `jit` fuses.

    P. Micikevicius et al., "Mixed precision training", arXiv:1710.03740.

    Args:
        fun: function that returns the loss, a scalar; or, with `has_aux`, the loss and a pytree.
        argnums: positions of the arguments to differentiate with respect to.
        has_aux: True if `fun` returns `(loss, aux)`.
        growth_interval: number of finite steps in a row after which the scale grows; None for a constant scale.
        growth: factor of the scale when it grows.
        shrink: factor of the scale after an overflow.
        smallest: lower bound of the scale.
        largest: upper bound of the scale.
        axis_name: name of an axis of `shard_map` or `vmap`. `finite` is then True if all members have finite gradients.

    Returns:
        A function of a `LossScale` and `fun`'s arguments that returns a `Scaled`. Gradients have the dtypes that
        `ft.grad` gives them.

    Raises:
        ArgumentError: for growth below 1, shrink outside of (0, 1], or bounds in the wrong order; at the call, for a
            first argument that is not a `LossScale`.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> loss = lambda w, x: fnp.mean((x @ w) ** 2)
    >>> step = ft.jit(ft.amp.scaled_value_and_grad(ft.autocast(loss, dtype="float16")))
    >>> out = step(ft.amp.loss_scale(1024.0), fnp.ones(2), fnp.ones((4, 2)))
    >>> bool(out.finite), out.value.item(), out.grads.tolist()
    (True, 4.0, [4.0, 4.0])
    """
    check_callable(fun, "scaled_value_and_grad", "pass the loss function")
    _check_factors(growth_interval, growth, shrink, smallest, largest)
    positions = as_positions(argnums, "scaled_value_and_grad")
    if any(n < 0 for n in positions):
        raise ArgumentError(f"argnums={argnums!r} counts from the end", fix="count from 0")
    after_scale = tuple(n + 1 for n in positions)
    shifted = after_scale if isinstance(argnums, (tuple, list)) else after_scale[0]

    def scaled_loss(scale: Any, *args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        loss, aux = out if has_aux else (out, None)
        # Scale in float32 at least. The cotangent of a narrow loss may still overflow, which the scale adapts to.
        wide = dtypes.promote(aval_of(loss), aval_of(scale))[0]
        return fnp.asarray(loss, wide) * scale, (loss, aux)

    def scaled(state: LossScale, *args: Any, **kwargs: Any) -> Scaled:
        if not isinstance(state, LossScale):
            raise ArgumentError(
                f"the first argument is the loss scale, got a {type(state).__name__}", fix="begin with loss_scale()"
            )
        (_, (loss, aux)), grads = value_and_grad(scaled_loss, shifted, has_aux=True)(state.scale, *args, **kwargs)
        grads = tree.map(lambda g: _divided(g, state.scale), grads)
        finite = _all_finite(grads)
        if axis_name is not None:
            finite = lax.pmin(finite.astype("int32"), axis_name) > 0
        after = state
        if growth_interval is not None:
            after = _next(state, finite, growth_interval, growth, shrink, smallest, largest)
        return Scaled((loss, aux) if has_aux else loss, grads, finite, after)

    scaled.__name__ = f"scaled_{getattr(fun, '__name__', 'loss')}"
    return scaled


def _divided(gradient: Any, scale: Any) -> Any:
    """Return a gradient divided by the scale, in its own dtype; the division is in float32, the dtype of the scale."""
    return (gradient / scale).astype(gradient.dtype)


def _all_finite(grads: Any) -> Any:
    each = [fnp.all(fnp.isfinite(g)) for g in tree.leaves(grads)]
    return fnp.all(fnp.stack(each)) if each else fnp.asarray(True)


def _next(
    state: LossScale, finite: Any, interval: int, growth: float, shrink: float, smallest: float, largest: float
) -> LossScale:
    grows = state.good_steps + 1 >= interval
    up = fnp.where(grows, fnp.minimum(state.scale * growth, largest), state.scale)
    down = fnp.maximum(state.scale * shrink, smallest)
    return LossScale(fnp.where(finite, up, down), fnp.where(finite & ~grows, state.good_steps + 1, 0))


@api_boundary.public
def apply_if_finite(finite: Array, new: T, old: T) -> T:
    """Return the new state of a training loop if the gradients are finite, and the old one if not.

    Args:
        finite: bool scalar, as `Scaled.finite`.
        new: pytree of arrays.
        old: pytree of the same structure, shapes and dtypes.

    Raises:
        TreeError: for pytrees of different structures.

    >>> import functorch_like.numpy as fnp
    >>> apply_if_finite(fnp.asarray(False), {"w": fnp.ones(2)}, {"w": fnp.zeros(2)})["w"].tolist()
    [0.0, 0.0]
    """
    if tree.structure(new) != tree.structure(old):
        raise TreeError(
            f"the new and the old state differ in structure: {tree.structure(new)} and {tree.structure(old)}",
            fix="return the state from the step with the structure it came in",
        )
    return tree.map(lambda n, o: fnp.where(finite, n, o), new, old)


def _check_factors(interval: int | None, growth: float, shrink: float, smallest: float, largest: float) -> None:
    if interval is not None and interval < 1:
        raise ArgumentError(f"growth_interval={interval!r}", fix="a number of steps, or None for a constant scale")
    if not growth >= 1 or not 0 < shrink <= 1:
        raise ArgumentError(f"growth={growth!r} and shrink={shrink!r}", fix="growth is at least 1, shrink in (0, 1]")
    if not 0 < smallest <= largest:
        raise ArgumentError(f"smallest={smallest!r} and largest={largest!r}", fix="0 < smallest <= largest")
