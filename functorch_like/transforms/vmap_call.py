"""One call of a function that `vmap` has mapped: flat leaves in, the batch trace, results with their axes in place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from functorch_like.backends import xla
from functorch_like.calling.call_signature import flatten_values
from functorch_like.calling.float0 import is_float0, with_axis, without_axis
from functorch_like.core import BatchAxis, aval_of
from functorch_like.errors import DtypeError
from functorch_like.interpreters import batching
from functorch_like.transforms import vmap_axes
from functorch_like.transforms.chunked_vmap import in_chunks, piece


class Options(NamedTuple):
    """Options of `vmap`, checked; `bucketed` is True if the axis is padded, to `buckets` or powers of two."""

    axis_name: Hashable
    axis_size: int | None
    spmd_axis_name: Hashable
    chunk_size: int | None
    randomness: str
    bucketed: bool
    buckets: tuple[int, ...] | None


class MappedCall:
    """A call of a mapped function.

    Called with flat leaves of one element, it calls the user's function on them and returns flat results.

    Args:
        fun: the user's function.
        name: its name.
        options: those of `vmap`.
        out_axes: the user's.
    """

    __slots__ = (
        "_fun",
        "_in_tree",
        "_leaves",
        "_name",
        "_options",
        "_out_axes",
        "_out_tree",
        "_result_axes",
        "_size",
        "axes",
    )

    def __init__(self, fun: Callable[..., Any], name: str, options: Options, out_axes: Any) -> None:
        self._fun, self._name, self._options, self._out_axes = fun, name, options, out_axes
        self._result_axes: list[int | None] = []

    def take(self, in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DtypeError | None:
        """Take the arguments. Return the error of a mapped leaf that is no array, which may be a Ref."""
        name = self._name
        leaves, in_tree = xla.flatten((args, kwargs))
        self.axes = axes = vmap_axes.flat_in_axes(in_axes, args, kwargs, name)
        try:
            avals = [
                vmap_axes.mapped_aval(a, d, i, in_tree, name) for i, (a, d) in enumerate(zip(leaves, axes, strict=True))
            ]
        except DtypeError as e:
            return e
        axes = [vmap_axes.canonical(d, i, in_tree, a, name) for i, (d, a) in enumerate(zip(axes, avals, strict=True))]
        self._size = vmap_axes.size_along(axes, avals, self._options.axis_size, in_tree, name)
        for i, (leaf, d) in enumerate(zip(leaves, axes, strict=True)):
            if is_float0(leaf) and d is not None:
                leaves[i], axes[i] = without_axis(leaf, d), None
        self._leaves, self._in_tree, self.axes = leaves, in_tree, axes
        return None

    def result(self) -> Any:
        """Return the user's pytree of mapped results."""
        if self._options.bucketed:
            from functorch_like.transforms.buckets import mapped  # few functions need them

            flat = mapped.padded(
                self._in_chunks,
                self._leaves,
                self.axes,
                self._size,
                self._options.buckets,
                self._name,
                lambda: self._result_axes,
            )
        else:
            flat = self._in_chunks(self._leaves, self._size)
        outs = self._out_tree.unflatten(flat)
        results, out_tree = xla.flatten(outs)
        if not any(map(is_float0, results)):
            return outs
        out_axes = vmap_axes.prefix(self._out_axes, outs, "out_axes", self._name)
        return out_tree.unflatten(
            [with_axis(x, p, self._size) if is_float0(x) else x for x, p in zip(results, out_axes, strict=True)]
        )

    def __call__(self, *values: Any) -> list[Any]:
        args, kwargs = self._in_tree.unflatten(values)
        outs, self._out_tree = flatten_values(self._fun(*args, **kwargs))
        return outs

    def traced_aux(self) -> Any:
        """Return the structure of the results: with it, conditions of the function can be followed."""
        return self._out_tree

    def _in_chunks(self, values: Any, count: int) -> list[Any]:
        run = functools.partial(self._run, values)
        return in_chunks(run, count, self._options.chunk_size, lambda: self._result_axes)

    def _run(self, values: Any, start: Any, count: int) -> list[Any]:
        """Return flat results of the elements start ... start+count-1."""
        name, options = self._name, self._options
        parts = [a if d is None else piece(a, d, start, count) for a, d in zip(values, self.axes, strict=True)]
        explicit = vmap_axes.explicit_axes(parts, self.axes)
        axis = BatchAxis(count, options.axis_name, options.randomness, options.spmd_axis_name, explicit)
        outs, traced_axes = batching.batch(self, axis, parts, self.axes, f"vmap({name})")
        out_axes = vmap_axes.of_results(self._out_axes, self._out_tree, len(outs), name)
        moved = [
            vmap_axes.at_out_axis(o, d, w, count, name) for o, d, w in zip(outs, traced_axes, out_axes, strict=True)
        ]
        self._result_axes = [None if w is None else w % aval_of(o).ndim for o, w in zip(moved, out_axes, strict=True)]
        return moved
