"""`jax.example_libraries.optimizers`: small optimizers, each a triple of functions.

`init(params)` gives a state, `update(step, gradients, state)` the next one, `params_of(state)` its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import functorch_like as ft
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError

Schedule = Callable[[Any], Any]
Array = Params = Updates = State = Any
Step = int


class Optimizer(NamedTuple):
    """An optimizer: three functions."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState:
    """The states of an optimizer for all leaves, and the structure of the parameters."""

    def __init__(self, packed_state: Any, tree_def: Any, subtree_defs: Any) -> None:
        self.packed_state, self.tree_def, self.subtree_defs = packed_state, tree_def, tuple(subtree_defs)


InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]

ft.tree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


def optimizer(maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Turn a function that makes optimizers of arrays into one that makes optimizers of trees."""

    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, params_of = maker(*args, **kwargs)

        def whole_init(params: Any) -> OptimizerState:
            leaves, structure = ft.tree.flatten(params)
            return _packed([init(leaf) for leaf in leaves], structure)

        def whole_update(step: Any, gradients: Any, state: OptimizerState) -> OptimizerState:
            leaves, structure = ft.tree.flatten(gradients)
            if structure != state.tree_def:
                raise ArgumentError(
                    f"the gradients have the structure {structure}, the parameters {state.tree_def}",
                    fix="pass gradients with respect to the parameters that `init` got",
                )
            states = _unpacked(state)
            return _packed([update(step, g, s) for g, s in zip(leaves, states, strict=True)], structure)

        def whole_params(state: OptimizerState) -> Any:
            return state.tree_def.unflatten([params_of(s) for s in _unpacked(state)])

        return Optimizer(whole_init, whole_update, whole_params)

    made.__name__, made.__doc__ = maker.__name__, maker.__doc__
    return made


def _packed(states: Sequence[Any], structure: Any) -> OptimizerState:
    flat = [ft.tree.flatten(state) for state in states]
    return OptimizerState([leaves for leaves, _ in flat], structure, [inner for _, inner in flat])


def _unpacked(state: OptimizerState) -> list[Any]:
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [inner.unflatten(leaves) for inner, leaves in pairs]


class JoinPoint:
    """Mark of the place where the tree of parameters ends and the state of a leaf begins."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return a tree of the structure of the parameters, with the state of each leaf."""
    return opt_state.tree_def.unflatten([JoinPoint(state) for state in _unpacked(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state that `unpack_optimizer_state` took apart."""
    leaves, structure = ft.tree.flatten(marked_pytree)
    return _packed([leaf.subtree for leaf in leaves], structure)


# --------------------------------------------------------------------------------------------------------- optimizers
@optimizer
def sgd(step_size: Any) -> Any:
    """Return gradient descent."""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Return gradient descent with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Return gradient descent with Nesterov's momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Return Adagrad, with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares + g * g
        scaled = fnp.where(squares > 0, g / fnp.sqrt(fnp.where(squares > 0, squares, 1)), 0)
        velocity = (1 - momentum) * scaled + momentum * velocity
        return x - rate(i) * velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Return RMSProp."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1 - gamma) * g * g
        return x - rate(i) * g / fnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9) -> Any:
    """Return RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = gamma * squares + (1 - gamma) * g * g
        velocity = momentum * velocity + rate(i) * g / fnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Return Adam."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, second = state
        first, second = (1 - b1) * g + b1 * first, (1 - b2) * g * g + b2 * second
        unbiased = first / (1 - fnp.asarray(b1, first.dtype) ** (i + 1))
        scale = fnp.sqrt(second / (1 - fnp.asarray(b2, second.dtype) ** (i + 1)))
        return x - rate(i) * unbiased / (scale + eps), first, second

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Return Adamax: Adam with the maximum norm."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, largest = state
        first, largest = (1 - b1) * g + b1 * first, fnp.maximum(b2 * largest, fnp.abs(g))
        return x - rate(i) / (1 - fnp.asarray(b1, first.dtype) ** (i + 1)) * first / (largest + eps), first, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """Return SM3: Adagrad whose sums are kept by row and column only."""
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), [fnp.zeros(n, x.dtype) for n in x.shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity, margins = state
        axes = range(x.ndim)
        wide = [m.reshape([-1 if k == axis else 1 for k in axes]) for axis, m in enumerate(margins)]
        squares = g * g
        for k, margin in enumerate(wide):
            least = margin if not k else fnp.minimum(least, margin)  # type: ignore[has-type]  # noqa: F821
        squares = squares + (least if wide else 0)
        scaled = fnp.where(squares > 0, g / fnp.sqrt(fnp.where(squares > 0, squares, 1)), 0)
        velocity = (1 - momentum) * scaled + momentum * velocity
        margins = [fnp.max(squares, axis=tuple(k for k in axes if k != axis)) for axis in axes]
        return x - rate(i) * velocity, velocity, margins

    return init, update, _first


def _with_zeros(count: int) -> Callable[[Any], Any]:
    return lambda x: (x, *(fnp.zeros_like(x) for _ in range(count)))


def _first(state: Any) -> Any:
    return state[0]


# ---------------------------------------------------------------------------------------------------------- schedules
def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a step size as a function of the step; a number gives a constant function."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if fnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError(
        f"a step size is a number or a function, got {scalar_or_schedule!r:.60}",
        fix="give a number, or a function of the step",
    )


def constant(step_size: Any) -> Schedule:
    """Return a constant step size."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return a step size that is multiplied by a rate every so many steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Return a step size that is divided by a linear function of the step."""
    times = (lambda i: fnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * times(i))


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0) -> Schedule:
    """Return a step size that falls to a final one as a power of the steps left."""

    def schedule(i: Any) -> Any:
        left = 1 - fnp.minimum(i, decay_steps) / decay_steps
        return (step_size - final_step_size) * left**power + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return a step size that changes at some steps."""
    ends, sizes = fnp.asarray(boundaries), fnp.asarray(values)
    if ends.ndim != 1 or sizes.shape != (ends.shape[0] + 1,):
        raise ArgumentError(
            f"piecewise_constant got {ends.shape} boundaries and {sizes.shape} values",
            fix="give two vectors, with one value more than boundaries",
        )
    return lambda i: sizes[fnp.sum(i > ends)]


# ---------------------------------------------------------------------------------------------------------- gradients
def l2_norm(tree: Any) -> Any:
    """Return the Euclidean norm of all leaves together."""
    return fnp.sqrt(sum(fnp.vdot(leaf, leaf) for leaf in ft.tree.leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Return gradients scaled so that their norm is no greater than a bound."""
    norm = l2_norm(grad_tree)
    return ft.tree.map(lambda g: fnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
