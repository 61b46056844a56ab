"""`vmap`: map a function over axes of its arguments, by the batch rule of every primitive."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import P, R
from functorch_like.errors import ArgumentError
from functorch_like.source_info import name_of
from functorch_like.transforms import vmap_axes
from functorch_like.transforms.chunked_vmap import check_chunk_size
from functorch_like.transforms.vmap_call import MappedCall, Options
from functorch_like.tree import LEFT_OUT

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@transformation
def vmap(
    fun: Callable[P, R],
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    *,
    in_dims: PyTree = LEFT_OUT,
    out_dims: PyTree = LEFT_OUT,
    chunk_size: int | None = None,
    randomness: str = "same",
    buckets: Sequence[int] | bool | None = None,
) -> Callable[P, R]:
    """Map a function over an axis of its arguments, as one computation.

    Args:
        fun: written for one element; takes and returns pytrees of arrays.
        in_axes: which axis of each argument to map over: an int (negative counts from the end), None for arguments
            that are the same for every element, or a tuple with such for each argument; an entry may be a pytree
            that is a prefix of its argument. Keyword arguments are always mapped over axis 0.
        out_axes: where the axis goes in the results; a prefix of the result's pytree. None for results that do not
            depend on the element.
        axis_name: a name for the axis, for collectives such as `lax.psum(x, axis_name)`.
        axis_size: the size of the axis, needed only where no argument has it.
        spmd_axis_name: the mesh axis, or a tuple of them, over which sharding constraints inside of `fun` split the
            mapped axis. Without a mesh it has no effect.
        in_dims: torch.func's name for in_axes.
        out_dims: torch.func's name for out_axes.
        chunk_size: how many elements to take at once, which bounds the memory; all of them if None. The results are
            the same; under jit the chunks are the steps of one loop. Not together with axis_name, whose collectives
            need all elements at once.
        randomness: treatment of draws of `functorch_like.random` from a key that is the same for all elements:
            "same" gives all of them the same numbers, "different" draws for element number i from
            `random.fold_in(key, i)`, "error" raises. Keys that are mapped over differ in any case.
        buckets: sizes to which the axis is padded, or True for powers of two: a program compiled for one number of
            elements serves all of a bucket. Not together with axis_name. Effects, such as `debug.print`, run for the
            padding, too.

    Returns:
        The mapped function.

    Raises:
        ShapeError: where mapped axes have different sizes, or an argument has no such axis.
        ArgumentError: where in_axes or out_axes do not fit the arguments or results.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.vmap(fnp.dot, in_axes=(0, None))(fnp.ones((3, 2)), fnp.ones(2)).tolist()
    [2.0, 2.0, 2.0]
    """
    name = name_of(fun)
    check_callable(fun, "vmap")
    in_axes = vmap_axes.checked_in_axes(_either(in_axes, in_dims, "in", name), name)
    out_axes = _either(out_axes, out_dims, "out", name)
    if axis_size is not None and not isinstance(axis_size, (int, np.integer)):
        raise ArgumentError(
            f"axis_size={axis_size!r:.60} of vmap({name}) is not an int",
            fix="give an int; an argument of jit that is one is static: jit(static_argnums=...)",
        )
    _check_options(name, axis_name, spmd_axis_name, chunk_size, randomness)
    allowed = _bucket_sizes(name, buckets, axis_name, axis_size)
    options = Options(axis_name, axis_size, spmd_axis_name, chunk_size, randomness, bool(buckets), allowed)

    def again(fun: Any, in_axes: Any, out_axes: Any) -> Any:
        named = (axis_name, axis_size, spmd_axis_name)
        return vmap(fun, in_axes, out_axes, *named, chunk_size=chunk_size, randomness=randomness, buckets=buckets)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = MappedCall(fun, name, options, out_axes)
        failed = call.take(in_axes, args, kwargs)
        if failed is None:
            return call.result()
        from functorch_like.transforms.vmap_refs import mapped_refs  # few functions have Refs

        return mapped_refs(again, failed, fun, (args, kwargs), in_axes, out_axes, call.axes)

    return mapped


def _either(axes: Any, dims: Any, side: str, name: str) -> Any:
    """Return the argument given under JAX's name or under torch.func's."""
    if dims is LEFT_OUT:
        return axes
    if axes != 0:
        raise ArgumentError(
            f"vmap({name}) got {side}_axes={axes!r} and {side}_dims={dims!r}, two names of one argument",
            fix=f"give {side}_axes alone",
        )
    return dims


def _check_options(name: str, axis_name: Any, spmd_axis_name: Any, chunk_size: Any, randomness: Any) -> None:
    check_chunk_size(chunk_size, f"vmap({name})")
    if randomness not in ("same", "different", "error"):
        raise ArgumentError(
            f"randomness={randomness!r} of vmap({name}) is unknown", fix="use 'same', 'different' or 'error'"
        )
    if chunk_size is not None and axis_name is not None:
        raise ArgumentError(
            f"vmap({name}) has chunk_size={chunk_size} and axis_name={axis_name!r}: a collective over the axis would "
            "cover one chunk of it",
            fix="leave one of them out",
        )
    if chunk_size is not None and randomness == "different":
        raise ArgumentError(
            f"vmap({name}) has chunk_size={chunk_size} and randomness='different': draws depend on "
            "an element's number in the whole axis, and inside of a chunk that number is not available",
            fix="map over keys: in_axes=0 for random.split(key, n)",
        )
    if spmd_axis_name is not None and not isinstance(spmd_axis_name, (str, tuple)):
        raise ArgumentError(
            f"spmd_axis_name={spmd_axis_name!r} of vmap({name}) is not a name of a mesh axis",
            fix="use a string, or a tuple of strings",
        )


def _bucket_sizes(name: str, buckets: Any, axis_name: Any, axis_size: int | None) -> tuple[int, ...] | None:
    if buckets is None or buckets is False:
        return None
    from functorch_like.transforms.buckets import mapped  # few functions need them

    return mapped.check(name, buckets, axis_name, axis_size)
