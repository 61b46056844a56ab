"""Functions that control flow takes, as jaxprs: staged once for each signature, not for each call."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.calling.call_signature import FlatCall, Static
from functorch_like.core import ArrayImpl, Tracer, state
from functorch_like.errors import ArgumentError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import follower, stage
from functorch_like.source_info import name_of

#: Bodies by function; they die with it.
_BODIES: weakref.WeakKeyDictionary[Any, Cache[Any, TracedFunction]] = weakref.WeakKeyDictionary()
_MOST_BODIES = 1024
_ALL_TRACED = Static((), ())


class TracedFunction(NamedTuple):
    """A staged function.

    Attributes:
        jaxpr: takes what the function closes over, then its flat arguments.
        consts: the values that the function closes over.
        out_tree: the structure of its result.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    out_tree: Any


def check_callable(fun: Any, name: str, usage: str = "") -> None:
    """Refuse anything but a function.

    Args:
        fun: the argument to check.
        name: the name of the caller that takes the function.
        usage: an example of a correct call, by default that of a transformation.

    Raises:
        ArgumentError: unless it can be called.
    """
    if not callable(fun):
        raise ArgumentError(
            f"{name} takes a function, got {fun!r:.60} of type {type(fun).__name__}",
            fix=usage or f"{name}(f)(x), not {name}(f(x))",
        )


def wraps(fun: Any) -> Callable[[Any], Any]:
    """`functools.wraps` for a callable of the user's: without its attributes, and what a function cannot be given.

    A module of equinox whose fields are being replaced has other objects as its names and annotations.
    """

    def update(wrapper: Any) -> Any:
        for name in functools.WRAPPER_ASSIGNMENTS:
            with suppress(AttributeError, TypeError):
                setattr(wrapper, name, getattr(fun, name))
        wrapper.__wrapped__ = fun
        return wrapper

    return update


def arguments(args: Sequence[Any]) -> FlatCall:
    """Positional arguments of a body, taken apart.

    Raises:
        DtypeError: for a leaf that is not an array or number.
    """
    return FlatCall(_ALL_TRACED, args, {})


def operands(call: FlatCall) -> list[Any]:
    """The leaves, numbers as arrays of the dtypes that bodies take them in."""
    return operands_of(call.leaves, call.avals)


def operands_of(leaves: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """The same for leaves with these avals."""
    return [
        leaf if type(leaf) is ArrayImpl or isinstance(leaf, (Tracer, np.ndarray)) else _constant(leaf, aval)
        for leaf, aval in zip(leaves, avals, strict=True)
    ]


def _constant(x: Any, aval: ShapedArray) -> Any:
    made = np.asarray(x, aval.dtype)
    return made[()] if aval.weak_type else made  # a NumPy scalar is weak, an array of rank 0 is not


def staged(
    fun: Callable[..., Any],
    call: FlatCall,
    what: str,
    cache: Cache[Any, TracedFunction] | None = None,
    through: Callable[[Any], Callable[..., Any]] | None = None,
) -> TracedFunction:
    """A function staged for arguments like these.

    It is kept for as long as the function lives, unless it closes over traced values.

    Args:
        fun: takes and returns pytrees.
        call: example arguments.
        what: whose body it is, for errors and for the text of the jaxpr ("cond").
        cache: holds it in place of the function's own cache, for a function that is made for one call.
        through: makes the function that is staged from `fun`; always the same for one `what`.
    """
    if cache is None:
        try:
            cache = _BODIES.setdefault(fun, Cache())
        except TypeError:  # not hashable, or no weak references to it
            cache = Cache()
    key: Any = (what, call.key, follower(state.trace) is not None)
    try:
        result = cache.get(key)
    except TypeError:  # a static value, or static data of a pytree node, is not hashable: nothing is kept
        result = key = None
    if result is None:
        xla.counters.traces += 1
        flat, trees = call.flatten_function(fun if through is None else through(fun))
        name = name_of(fun)
        jaxpr, consts = stage(
            flat, call.avals, name=name, origin=f"traced by {what}", chain=f"{what}({name})", hosts=call.hosts()
        )
        result = TracedFunction(jaxpr, consts, trees[0])
        if key is not None and not any(isinstance(c, Tracer) for c in consts):
            cache.keep(key, result, _MOST_BODIES)
    return result


def structure_diff_table(
    titles: Sequence[str], trees: Sequence[Any], avals: Sequence[Sequence[ShapedArray]], root: str = ""
) -> str:
    """A line for each leaf at which pytrees of avals differ, with what each of them has there.

    Args:
        titles: names of the pytrees.
        trees: their structures.
        avals: of their leaves.
        root: text in front of the path of each leaf.
    """
    columns = [dict(zip(tree.leaf_paths(t), map(_shown, a), strict=True)) for t, a in zip(trees, avals, strict=True)]
    paths = dict.fromkeys(path for column in columns for path in column)
    rows = [[root + path or "the result", *(column.get(path, "-") for column in columns)] for path in paths]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    if not rows:  # only nodes without leaves differ, or kinds of nodes
        return "\n".join(f"    {title}: {t}" for title, t in zip(titles, trees, strict=True))
    table = [["", *titles], *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join(f"    {line}" for line in lines)


def _shown(aval: ShapedArray) -> str:
    return f"{aval!r} (weak)" if aval.weak_type else repr(aval)
