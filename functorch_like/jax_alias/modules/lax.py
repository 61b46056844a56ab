"""`jax.lax`: functions that move typed keys, and constraints on meshes without devices."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import lax, numpy, tree
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.jax_alias.modules import core_primitives
from functorch_like.jax_alias.modules.keys_in_functions import filling_keys, moving_keys
from functorch_like.jax_alias.modules.sharding import concrete, reshard
from functorch_like.jax_alias.modules.tokens import after_all, create_token

__all__ = ["after_all", "create_token", "reshard"]

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
ConvGeneralDilatedDimensionNumbers = Any
PrecisionLike = Any


class AccuracyMode(enum.Enum):
    """A choice between accuracies. It has no effect: the package's functions have one accuracy."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """A bound of a function's error. It has no effect: the package's functions have one accuracy."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


#: Functions that move elements and look at none, so that they move typed keys as well.
_MOVING = (
    "broadcast", "broadcast_in_dim", "concatenate", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "expand_dims",
    "index_in_dim", "reshape", "rev", "slice", "slice_in_dim", "squeeze", "transpose",
)  # fmt: skip


def listed(fun: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Make a function return its results as a list, as JAX's functions of that name do."""

    @functools.wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        return list(fun(*args, **kwargs))

    made.__module__ = module
    return made


for _name in ("approx_max_k", "approx_min_k", "top_k"):
    globals()[_name] = listed(getattr(lax, _name), "jax.lax")
_select = moving_keys(lax.select, "jax.lax")
for _name in _MOVING:
    globals()[_name] = moving_keys(getattr(lax, _name), "jax.lax")
for _name in ("full", "full_like"):
    globals()[_name] = filling_keys(getattr(lax, _name), "jax.lax")
del _name


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Call `ft.lax.with_sharding_constraint`; a mesh without devices stands for the mesh in force."""
    return lax.with_sharding_constraint(x, concrete(shardings))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Return `ft.lax.mul`; `out_dtype` is a dtype that both operands are converted to."""
    if out_dtype is None:
        return lax.mul(x, y)
    return lax.mul(*(lax.convert_element_type(operand, out_dtype) for operand in (x, y)))


def stage(x: Any, /) -> Any:
    """Return a value as an array."""
    return numpy.asarray(x)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Do nothing: unused operations are removed, as XLA removes them after JAX.

    Raises:
        UnsupportedError: with `prevent_mlir_dce`, which keeps them.
    """
    if prevent_mlir_dce:
        raise UnsupportedError("lax.dce_sink cannot keep unused operations", fix="return the value")


def associative_scan(fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Call `ft.lax.associative_scan`; as in JAX, only the leaves of what `fn` returns must match those of its operands.

    Args:
        fn: the operation.
        elems: pytree of arrays.
        reverse: combine suffixes instead of prefixes.
        axis: the axis along which the sequence runs.

    Returns:
        A pytree of the structure of elems.

    Raises:
        ArgumentError: where leaves differ in number, shape or dtype.
    """
    try:
        return lax.associative_scan(fn, elems, reverse, axis)
    except ArgumentError:
        structure = tree.structure(elems)

        @functools.wraps(fn)
        def regrouped(a: Any, b: Any) -> Any:
            leaves, returned = tree.flatten(fn(a, b))
            return structure.unflatten(leaves) if len(leaves) == structure.num_leaves else returned.unflatten(leaves)

        return lax.associative_scan(regrouped, elems, reverse, axis)


@functools.wraps(lax.gather)
def gather(*args: Any, mode: Any = None, **kwargs: Any) -> Any:
    """Call `ft.lax.gather`; as in JAX, indices out of bounds are clipped unless a mode is given."""
    return lax.gather(*args, mode="clip" if mode is None else mode, **kwargs)


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Call `ft.lax.select`; two scalars are broadcast to the shape of `pred`, as JAX does under `vmap` alone."""
    if np.ndim(pred) and not (np.ndim(on_true) or np.ndim(on_false)):
        on_true, on_false = (numpy.broadcast_to(x, np.shape(pred)) for x in (on_true, on_false))
    return _select(pred, on_true, on_false)


def pvary(x: Any, axis_name: Any = ()) -> Any:
    """Call `ft.lax.pcast`; without names, return `x`."""
    return lax.pcast(x, axis_name, to="varying") if axis_name not in ((), None) else x


def pcast(x: Any, axis_name: Any = (), *, to: Any = None) -> Any:
    """Return `x`, as each device's own for `to="varying"`."""
    return pvary(x, axis_name) if to == "varying" else x


def tie_in(x: Any, y: Any) -> Any:
    """Return `y`."""
    return y


def __getattr__(name: str) -> Any:
    if name == "rng_uniform":
        from functorch_like.jax_alias.modules.rng_uniform import rng_uniform  # late: few programs read it

        return rng_uniform
    return getattr(core_primitives, name)
