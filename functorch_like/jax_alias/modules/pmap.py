"""`jax.pmap` on one device: a mapped axis of size one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import functorch_like as ft
from functorch_like.errors import DeviceError


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: Any = (),
    devices: Any = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: Any = (),
    global_arg_shapes: Any = None,
) -> Callable[..., Any]:
    """Map a function over an axis that is spread over the devices there are.

    Raises:
        DeviceError: at the call, where the axis is longer than there are devices.
    """
    static = (
        (static_broadcasted_argnums,) if isinstance(static_broadcasted_argnums, int) else static_broadcasted_argnums
    )

    @functools.partial(ft.jit, static_argnums=tuple(static))
    def compiled(*args: Any, **kwargs: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        mapped = [a for i, a in enumerate(args) if i not in static]
        at = tuple(axis for i, axis in enumerate(axes) if i not in static)

        def of_arrays(arrays: Any, named: Any) -> Any:
            rest = iter(arrays)
            return fun(*(args[i] if i in static else next(rest) for i in range(len(args))), **named)

        in_tree = (at if mapped else 0, 0)
        return ft.vmap(of_arrays, in_tree, out_axes, axis_name=axis_name, axis_size=axis_size)(tuple(mapped), kwargs)

    @functools.wraps(fun)
    def spread(*args: Any, **kwargs: Any) -> Any:
        _check(args, kwargs, in_axes, static)
        return compiled(*args, **kwargs)

    spread.lower = compiled.lower  # type: ignore[attr-defined]
    return spread


def _check(args: Any, kwargs: Any, in_axes: Any, static: Any) -> None:
    first = in_axes if not isinstance(in_axes, (tuple, list)) else None
    count = ft.local_device_count()
    for i, arg in enumerate(args):
        axis = first if first is not None else in_axes[i]
        if i in static or not isinstance(axis, int):
            continue
        for leaf in ft.tree.leaves(arg):
            size = leaf.shape[axis] if getattr(leaf, "ndim", 0) > axis else 1
            if size > count:
                raise DeviceError(
                    f"pmap over an axis of {size} elements needs {size} devices, and there are {count}",
                    fix="use vmap for what one device computes",
                )
