"""Python functions inside of compiled programs: `pure_callback`, `io_callback`; and waiting for effects."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.callbacks import barrier
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import ArrayImpl, Tracer, is_value
from functorch_like.errors import ArgumentError, TreeError
from functorch_like.primitives.effects import callbacks
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@api_boundary.public
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: PyTree = None,
    vmap_method: str | None = None,
    **kwargs: PyTree,
) -> PyTree:
    """The result of a Python function without side effects, which a compiled program calls when it runs.

    The program may call it once, several times, or not at all where the result is not used. Each call costs some 10
    microseconds and a copy of operands and results. It has no derivative, unless `custom_jvp` gives it one.

    Args:
        callback: takes the arguments as NumPy arrays (read-only), returns NumPy arrays or numbers. It may use this
            package.
        result_shape_dtypes: what it returns: a ShapeDtypeStruct (or anything with shape and dtype), or a pytree.
        args: pytrees of arrays; leaves that are none are handed over as they are.
        sharding: has no effect: the function is called on the host with whole arrays.
        vmap_method: the meaning of a call under vmap. "sequential" and "sequential_unrolled": the function is called
            for each element. "broadcast_all": it is called once, with the mapped axis in front of all operands.
            "expand_dims": likewise, but operands that are not mapped get a leading axis of size 1.
            "legacy_vectorized": likewise, but such operands stay as they are. None: an error.
        kwargs: further arguments for `callback`.

    Returns:
        The pytree of arrays that the function returned.

    Raises:
        Exception: at the call of the program, whatever the function raises.
        ShapeError, DtypeError, TreeError: for results that are not what was promised.
        UnsupportedError: for derivatives; for vmap without a method.

    >>> import functorch_like as ft, numpy as np
    >>> def gamma(x):
    ...     return np.vectorize(__import__("math").gamma)(x).astype(x.dtype)
    >>> f = ft.jit(lambda x: ft.pure_callback(gamma, ft.ShapeDtypeStruct(x.shape, x.dtype), x))
    >>> f(fnp.asarray([4.0, 5.0])).tolist()
    [6.0, 24.0]
    """
    if vmap_method not in callbacks.METHODS:
        raise ArgumentError(f"vmap_method={vmap_method!r} is unknown", fix=f"use one of {callbacks.METHODS}")
    if sharding is not None:
        warnings.warn("sharding= has no effect on pure_callback: it gets whole arrays, on the host", stacklevel=3)
    host, operands, structure = host_function(callback, result_shape_dtypes, args, kwargs, "pure_callback")
    return structure.unflatten(callbacks.pure_callback(*operands, fun=host, vmap_method=vmap_method))


@api_boundary.public
def io_callback(
    callback: Callable[..., object],
    result_shape_dtypes: PyTree,
    *args: PyTree,
    sharding: PyTree = None,
    ordered: bool = False,
    **kwargs: PyTree,
) -> PyTree:
    """The result of a Python function with side effects, which a compiled program calls when it runs.

    It is called exactly as often as the program gets there, whether or not its result is used.

    Args:
        callback: as for `pure_callback`.
        result_shape_dtypes: as for `pure_callback`; None where it returns nothing.
        args: as for `pure_callback`.
        sharding: as for `pure_callback`.
        ordered: whether the call keeps its place among the other ordered ones of the program: before those that come
            after it in the Python code, through loops, branches and nested calls. Under vmap this is an error
            for a function that returns something; without it, vmap calls the function for each element.
        kwargs: as for `pure_callback`.

    Returns:
        The pytree of arrays that the function returned.

    Raises:
        Exception: as for `pure_callback`.

    >>> import functorch_like as ft
    >>> seen = []
    >>> count = lambda x: (seen.append(float(x)), len(seen))[1]
    >>> f = ft.jit(lambda x: ft.io_callback(count, ft.ShapeDtypeStruct((), "int32"), x, ordered=True))
    >>> int(f(0.5)), int(f(1.5)), seen
    (1, 2, [0.5, 1.5])
    """
    if sharding is not None:
        warnings.warn("sharding= has no effect on io_callback: it gets whole arrays, on the host", stacklevel=3)
    host, operands, structure = host_function(callback, result_shape_dtypes, args, kwargs, "io_callback")
    return structure.unflatten(callbacks.io_callback(*operands, fun=host, ordered=bool(ordered)))


@api_boundary.public
def effects_barrier() -> None:
    """Wait until all callbacks with effects (not those of `pure_callback`) of programs that run have been called.

    A call of a program with callbacks returns when they are done, so in one thread there is never anything to wait
    for; this waits for the programs that other threads run at the moment.

    >>> import functorch_like as ft
    >>> ft.jit(lambda x: ft.debug.print("x is {}", x))(1.0)
    x is 1.0
    >>> ft.effects_barrier()
    """
    barrier()


def promised(result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    """Avals and tree of results, from a pytree of things with shape and dtype."""
    leaves, structure = tree.flatten(result_shape_dtypes)
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise ArgumentError(f"{leaf!r:.60} has no shape and dtype", fix="give a ShapeDtypeStruct for each result")
    avals = tuple(ShapedArray(tuple(leaf.shape), dtypes.as_dtype(leaf.dtype)) for leaf in leaves)
    return avals, structure


def host_function(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    name: str,
    numbers: bool = True,
) -> tuple[callbacks.Host, list[Any], Any]:
    """Return a function of pytrees as one of flat arrays, these arrays, and the structure of its results.

    With `numbers`, numbers become arrays; else they are passed as they are.
    """
    check_callable(callback, name, f"{name}(f, ...)")
    avals, structure = promised(result_shape_dtypes)
    operands, rebuild = split_values(args, kwargs, numbers)
    narrow = dtypes._NARROW.value  # here: the callback may run in another thread

    def call(*arrays: Any) -> list[Any]:
        positional, named = rebuild(arrays)
        out = callback(*positional, **named)
        if result_shape_dtypes is None:
            return []
        outs, out_tree = xla.flatten(out)
        if out_tree != structure:
            raise TreeError(
                f"the callback returned the tree {out_tree}, and {structure} was promised",
                fix="return the structure of result_shape_dtypes, or describe what it returns there",
            )
        if narrow and len(outs) == len(avals):
            outs = [_narrowed(out, aval) for out, aval in zip(outs, avals, strict=True)]
        return outs

    call.__name__ = name_of(callback)
    return callbacks.Host(call, name, avals), operands, structure


def _narrowed(out: Any, aval: ShapedArray) -> Any:
    """A result of 64 bits in the width that its dtype has under JAX's names."""
    host = isinstance(out, (np.ndarray, np.generic))
    return np.asarray(out, aval.dtype) if host and dtypes._HALVES.get(out.dtype) == aval.dtype else out


def split_values(
    args: Sequence[Any], kwargs: dict[str, Any], numbers: bool
) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Return the arrays among the leaves of arguments, and a function that puts others in their place."""
    leaves, in_tree = xla.flatten((tuple(args), kwargs))
    moves = [_is_array(leaf) or (numbers and is_value(leaf)) for leaf in leaves]
    others = [None if m else leaf for leaf, m in zip(leaves, moves, strict=True)]

    def rebuild(arrays: Sequence[Any]) -> Any:
        remaining = iter(arrays)
        return in_tree.unflatten([next(remaining) if m else k for k, m in zip(others, moves, strict=True)])

    return [leaf for leaf, m in zip(leaves, moves, strict=True) if m], rebuild


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype != object
    return type(leaf) is ArrayImpl or isinstance(leaf, Tracer)
