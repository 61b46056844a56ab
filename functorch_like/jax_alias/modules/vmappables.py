"""Values of a library's own classes that `vmap` maps over, by specs in place of axes: `batching.register_vmappable`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import functorch_like as ft
from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.errors import ArgumentError


class Vmappable(NamedTuple):
    """Functions of a registered class.

    Attributes:
        spec_type: class of the specs that stand for axes.
        to_elt: `(cont, get_idx, value, spec) -> element`; `cont(array, axis)` returns the element of an array.
        from_elt: `(cont, axis_size, element, spec) -> value`; `cont(axis_size, element, axis)` returns an array.
    """

    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


TYPES: dict[type, Vmappable] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Register a class of values that functions made by `vmap` from now on map over.

    Args:
        data_type: the class.
        spec_type: class of the specs in `in_axes` and `out_axes`.
        axis_size_type: class of sizes; sizes are ints here.
        to_elt: `(cont, get_idx, value, spec) -> element`: the element of a value, from those of its arrays
            `cont(array, axis)`. It is called twice.
        from_elt: `(cont, axis_size, element, spec) -> value`: the mapped value, from its arrays
            `cont(axis_size, element, axis)`. It is called twice.
        make_iota: has no effect.

    Raises:
        ArgumentError: for a class that is registered already.
    """
    if data_type in TYPES:
        raise ArgumentError(f"{data_type.__name__} is registered already", fix="call unregister_vmappable before")
    TYPES[data_type] = Vmappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Forget a registered class."""
    del TYPES[data_type]


def _is_leaf(x: Any) -> bool:
    return x is None or type(x) in TYPES or any(isinstance(x, known.spec_type) for known in TYPES.values())


def _leaves(x: Any, axes: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the leaves of a pytree, the axis or spec of each, and the structure."""
    leaves, structure = tree.flatten(x, is_leaf=_is_leaf)
    blank = structure.unflatten([0] * len(leaves))
    each = tree.leaves(tree.broadcast(axes, blank, is_leaf=_is_leaf), is_leaf=_is_leaf)
    return leaves, each, structure


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None, axis_size: int | None = None,
    **options: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Return `ft.vmap` of a function whose arguments and results may be values of registered classes."""

    def mapped(*args: Any, **kwargs: Any) -> Any:
        of_args = tuple(in_axes) if isinstance(in_axes, (list, tuple)) else (in_axes,) * len(args)
        leaves, specs, structure = _leaves((args, kwargs), (of_args, dict.fromkeys(kwargs, 0)))
        arrays, axes = _parts(leaves, specs)
        size = axis_size if axis_size is not None else _size(arrays, axes)
        outs: list[Any] = []

        def of_element(parts: list[Any], index: Any) -> Any:
            elements = _elements(leaves, specs, iter(parts), lambda: index)
            args, kwargs = structure.unflatten(elements)
            outs[:] = _leaves(fun(*args, **kwargs), out_axes)
            return _parts_of_results(outs[0], outs[1], size)

        over = ft.vmap(of_element, (axes, 0), (0, None), axis_name, size, **options)
        stacked, same = over(arrays, fnp.arange(size))
        return outs[2].unflatten(_results(outs[0], outs[1], iter(stacked), iter(same), size))

    return mapped


def _to_elt(cont: Callable[[Any, Any], Any], get_idx: Callable[[], Any], x: Any, spec: Any) -> Any:
    """Return the element of a value of a registered class, or by `cont` that of an array."""
    if type(x) not in TYPES:
        return cont(x, spec)
    return TYPES[type(x)].to_elt(lambda x, spec: _to_elt(cont, get_idx, x, spec), get_idx, x, spec)


def _parts(leaves: list[Any], specs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the arrays in arguments, and their axes."""
    arrays: list[Any] = []
    axes: list[Any] = []

    def note(x: Any, axis: Any) -> Any:
        arrays.append(x)
        axes.append(axis)
        shape = list(fnp.shape(x))
        if axis is not None:
            del shape[axis]
        return ShapeDtypeStruct(shape, fnp.result_type(x))

    for leaf, spec in zip(leaves, specs, strict=True):
        if leaf is not None:
            _to_elt(note, lambda: ShapeDtypeStruct((), "int32"), leaf, spec)
    return arrays, axes


def _elements(leaves: list[Any], specs: list[Any], parts: Iterator[Any], get_idx: Callable[[], Any]) -> list[Any]:
    take: Callable[[Any, Any], Any] = lambda x, axis: next(parts)
    pairs = zip(leaves, specs, strict=True)
    return [None if leaf is None else _to_elt(take, get_idx, leaf, spec) for leaf, spec in pairs]


def _size(arrays: list[Any], axes: list[Any]) -> int:
    for x, axis in zip(arrays, axes, strict=True):
        if axis is not None:
            return fnp.shape(x)[axis]
    raise ArgumentError("vmap got no argument with a mapped axis", fix="give axis_size=")


def _from_elt(cont: Callable[[int, Any, Any], Any], size: int, x: Any, spec: Any) -> Any:
    """Return the mapped value of an element of a registered class, or by `cont` the array of elements."""
    if type(x) not in TYPES:
        return cont(size, x, spec)
    return TYPES[type(x)].from_elt(lambda size, x, spec: _from_elt(cont, size, x, spec), size, x, spec)


def _parts_of_results(leaves: list[Any], specs: list[Any], size: int) -> tuple[list[Any], list[Any]]:
    """Return the arrays in results: those to be stacked, and those that are the same for all elements."""
    stacked: list[Any] = []
    same: list[Any] = []

    def note(size: int, x: Any, axis: Any) -> Any:
        (same if axis is None else stacked).append(x)
        return x

    for leaf, spec in zip(leaves, specs, strict=True):
        if leaf is not None:
            _from_elt(note, size, leaf, spec)
    return stacked, same


def _results(leaves: list[Any], specs: list[Any], stacked: Iterator[Any], same: Iterator[Any], size: int) -> list[Any]:
    def take(size: int, x: Any, axis: Any) -> Any:
        return next(same) if axis is None else fnp.moveaxis(next(stacked), 0, axis)

    pairs = zip(leaves, specs, strict=True)
    return [None if leaf is None else _from_elt(take, size, leaf, spec) for leaf, spec in pairs]
