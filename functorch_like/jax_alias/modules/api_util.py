"""`jax.api_util`: functions of trees as functions of flat arguments."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.calling.call_signature import as_tuple
from functorch_like.core import argument_aval, is_value
from functorch_like.jax_alias.modules.debug_info import debug_info
from functorch_like.jax_alias.modules.linear_util import Store, WrappedFun

__all__ = ["debug_info"]

safe_map: Callable[..., list[Any]] = lambda f, *xs: [f(*items) for items in zip(*xs, strict=True)]
safe_zip: Callable[..., list[tuple[Any, ...]]] = lambda *xs: list(zip(*xs, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first parts of pairs, and the second ones."""
    pairs = list(pairs)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Return parts of these sizes, one after the other, and what is left."""
    left = iter(items)
    return [*(list(itertools.islice(left, size)) for size in sizes), list(left)]


def _flattened(fun: WrappedFun, call: Callable[[Any], Any]) -> tuple[WrappedFun, Callable[[], Any]]:
    store = Store()

    def flat(*leaves: Any) -> list[Any]:
        out, structure = tree.flatten(call(leaves))
        store.store(structure)
        return out

    return WrappedFun(flat, debug_info=fun.debug_info), lambda: store.val


def flatten_fun(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Return a function of flat arguments, and one that returns its result's structure; `in_tree` is (args, kwargs)."""

    def call(leaves: Any) -> Any:
        args, kwargs = tree.unflatten(in_tree, leaves)
        return fun.call_wrapped(*args, **kwargs)

    return _flattened(fun, call)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Return what `flatten_fun` returns, for positional arguments only."""
    return _flattened(fun, lambda leaves: fun.call_wrapped(*tree.unflatten(in_tree, leaves)))


def argnums_partial(
    fun: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Return a function of some of the arguments, the others fixed, and those arguments."""
    positions = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    chosen = [p % len(args) for p in positions]

    def call(*values: Any, **kwargs: Any) -> Any:
        full = list(args)
        for position, value in zip(chosen, values, strict=True):
            full[position] = value
        return fun.call_wrapped(*full, **kwargs)

    return WrappedFun(call, debug_info=fun.debug_info), tuple(args[p] for p in chosen)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of arguments; where only one of the two is given, the other follows from it."""
    positions, names = as_tuple(argnums), as_tuple(argnames)
    both = [p.name if p.kind == p.POSITIONAL_OR_KEYWORD else None for p in sig.parameters.values()]
    if argnums is None:
        positions = tuple(i for i, name in enumerate(both) if name in names)
    elif argnames is None:
        names = tuple(name for i, name in enumerate(both) if name is not None and i in positions)
    return positions, names


def shaped_abstractify(x: Any) -> Any:
    """Return the aval of an argument, or of an object that has a shape and a dtype."""
    if is_value(x) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return argument_aval(x)
    aval = ShapedArray(x.shape, x.dtype, bool(getattr(x, "weak_type", False)))
    return aval.update(dtype=dtypes.narrowed(aval.dtype))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **options: Any) -> list[Any]:
    """Return the axis of each leaf of a structure, from a tree of axes that may be a prefix of it."""
    blank = tree.unflatten(treedef, [object()] * treedef.num_leaves)
    each = lambda axis, subtree: tree.map(lambda _: _AxisLeaf(axis), subtree)
    marked = tree.map(each, axis_tree, blank, is_leaf=lambda x: x is None)
    return [leaf.axis for leaf in tree.leaves(marked)]


class _AxisLeaf:
    def __init__(self, axis: Any) -> None:
        self.axis = axis


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, *rest: Any
) -> tuple[bool, ...]:
    """Return, for each leaf of the arguments, whether it is donated."""
    args, kwargs = tree.unflatten(in_tree, [0] * in_tree.num_leaves)
    marked = [tree.map(lambda _, d=i in donate_argnums: d, a) for i, a in enumerate(args)]
    named = {k: tree.map(lambda _, d=k in donate_argnames: d, a) for k, a in kwargs.items()}
    return tuple(tree.leaves((marked, named)))


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """Return positions of donated arguments among those that are not static."""
    return tuple(n - sum(s < n for s in static_argnums) for n in donate_argnums)
