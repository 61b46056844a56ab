"""`vectorize`: a function of small arrays as one that broadcasts over all further dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy.creation import asarray
from functorch_like.source_info import name_of
from functorch_like.transforms.vmap import vmap

_CORE = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"
_SIGNATURE = re.compile(rf"\s*{_CORE}(?:\s*,\s*{_CORE})*\s*->\s*{_CORE}(?:\s*,\s*{_CORE})*\s*")

P = ParamSpec("P")
R = TypeVar("R")

Dims = list[tuple[str, ...]]


@transformation
def vectorize(
    pyfunc: Callable[P, R], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[P, R]:
    """Make a function that broadcasts its arguments and applies `pyfunc` to each element, by `vmap`.

    Args:
        pyfunc: function of scalars; with a signature, of arrays with the dimensions it names. Traced once per call.
        excluded: positions and names of arguments that are passed as they are.
        signature: dimensions that belong to one element, by argument and result: "(n,m),(m)->(n)"
            (https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html).

    Returns:
        A function of arrays; results have the broadcast dimensions before their own.

    Raises:
        ArgumentError: for an invalid signature, or another number of arguments than it has.
        ShapeError: where dimensions of one name differ, or the others do not broadcast.

    >>> product = fnp.vectorize(lambda a, x: a @ x, signature="(n,m),(m)->(n)")
    >>> product(fnp.ones((4, 2, 3)), fnp.ones(3)).shape
    (4, 2)
    """
    return by_elements(pyfunc, excluded, signature, asarray)


def by_elements(
    pyfunc: Callable[P, R], excluded: Collection[int | str], signature: str | None, operand: Callable[[Any], Any]
) -> Callable[P, R]:
    """Return `vectorize(pyfunc, excluded=excluded, signature=signature)`; `operand` makes an array of an argument."""
    check_callable(pyfunc, "fnp.vectorize")
    ins, outs = _parsed(signature) if signature is not None else (None, None)
    name = name_of(pyfunc)

    @wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        places: list[int | str] = [i for i in range(len(args)) if i not in excluded]
        places += [k for k in kwargs if k not in excluded]
        arrays = [operand(args[p] if isinstance(p, int) else kwargs[p]) for p in places]
        if ins is not None and len(ins) != len(arrays):
            raise ArgumentError(
                f"signature={signature!r} of fnp.vectorize({name}) has {len(ins)} argument{'s' * (len(ins) != 1)}, "
                f"got {len(arrays)}",
                fix="name each argument that is not excluded",
            )
        own = ins or [()] * len(arrays)
        sizes = _sizes(own, [a.shape for a in arrays], name)

        def core(*values: Any) -> Any:
            positional, named = list(args), dict(kwargs)
            for place, value in zip(places, values, strict=True):
                if isinstance(place, int):
                    positional[place] = value
                else:
                    named[place] = value
            out: Any = pyfunc(*positional, **named)  # pyright: ignore[reportCallIssue]
            _check_results(out, outs, dict(sizes), name)
            return out

        return _mapped(core, arrays, [len(dims) for dims in own], name)

    return vectorized


def _parsed(signature: str) -> tuple[Dims, Dims]:
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise ArgumentError(
            f"signature={signature!r} of fnp.vectorize is not a signature", fix='write for example "(n,m),(m)->(n)"'
        )
    ins, outs = (
        [tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)] for side in signature.split("->")
    )
    return ins, outs


def _sizes(own: Sequence[tuple[str, ...]], shapes: Sequence[tuple[int, ...]], name: str) -> dict[str, int]:
    """Return the size of each named dimension."""
    sizes: dict[str, int] = {}
    for i, (dims, shape) in enumerate(zip(own, shapes, strict=True)):
        if len(shape) < len(dims):
            raise ShapeError(
                f"argument {i} of fnp.vectorize({name}) has shape {shape}, and an element of it has "
                f"{len(dims)} dimensions ({', '.join(dims)})",
                fix="give it at least that many",
            )
        for dim, size in zip(dims, shape[len(shape) - len(dims) :], strict=True):
            _agree(sizes, dim, size, f"argument {i}", name)
    return sizes


def _agree(sizes: dict[str, int], dim: str, size: int, where: str, name: str) -> None:
    expected = int(dim) if dim.isdigit() else sizes.setdefault(dim, size)
    if size != expected:
        raise ShapeError(
            f"dimension {dim} of fnp.vectorize({name}) is {expected}, and {size} in {where}",
            fix="dimensions of one name have one size",
        )


def _check_results(out: Any, outs: Dims | None, sizes: dict[str, int], name: str) -> None:
    results = out if isinstance(out, tuple) else (out,)
    if outs is not None and len(results) != len(outs):
        raise ArgumentError(
            f"{name} returned {len(results)} results, and its signature for fnp.vectorize has {len(outs)}",
            fix="return a tuple with one array for each",
        )
    for i, (dims, result) in enumerate(zip(outs or [()] * len(results), results, strict=True)):
        shape = np.shape(result)
        if len(shape) != len(dims):
            raise ShapeError(
                f"result {i} of {name} has shape {shape}, and should have the dimensions ({', '.join(dims)})",
                fix='give the dimensions of one element: fnp.vectorize(f, signature="(n)->(n)")',
            )
        for dim, size in zip(dims, shape, strict=True):
            _agree(sizes, dim, size, f"result {i}", name)


def _mapped(core: Callable[..., Any], arrays: list[Any], own: list[int], name: str) -> Any:
    """Map `core` over the leading dimensions; an argument that broadcasts along one is passed whole, not copied."""
    shapes = [a.shape for a in arrays]
    loops = [shape[: len(shape) - n] for shape, n in zip(shapes, own, strict=True)]
    try:
        whole = np.broadcast_shapes(*loops)
    except ValueError:
        raise ShapeError(
            f"the arguments of fnp.vectorize({name}) do not broadcast: shapes {', '.join(map(str, shapes))}, "
            f"of which {', '.join(map(str, loops))} are to be looped over",
            fix="make sizes equal, or 1, from the last dimension on",
        ) from None
    mapped = core
    for axis in range(1, len(whole) + 1):  # from the last dimension, which is the innermost loop
        size = whole[-axis]
        in_axes = tuple(0 if len(loop) >= axis and (loop[-axis] == size) else None for loop in loops)
        mapped = vmap(mapped, in_axes=in_axes, axis_size=size)
    squeezed = [
        a.reshape([s for i, s in enumerate(loop) if s == whole[len(whole) - len(loop) + i]] + list(shape[len(loop) :]))
        for a, loop, shape in zip(arrays, loops, shapes, strict=True)
    ]
    return mapped(*squeezed)
