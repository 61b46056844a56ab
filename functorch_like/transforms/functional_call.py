"""torch.func's helpers for functions over parameters: `functional_call`, ensembles' states, `functionalize`.

A model is here a function of a pytree of parameters, or a pytree that can be called (a registered dataclass with
`__call__`); its state is its leaves. Models are never modified in place, so these functions are short.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.core import NUMBERS, ArrayImpl, Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError, TreeError
from functorch_like.primitives.base.shapes import reshape, widen
from functorch_like.primitives.structural import concatenate
from functorch_like.primitives.structural.pad_and_slice import slice as slice_primitive
from functorch_like.transforms.tangents import error_context

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.typing import PyTree


@api_boundary.public
def functional_call(
    fun: Callable[..., R],
    params: PyTree,
    args: PyTree = (),
    kwargs: Mapping[str, PyTree] | None = None,
    *,
    defaults: PyTree = None,
    tie_weights: bool = True,
    strict: bool = False,
) -> R:
    """Call a model with some or all of its parameters replaced.

    Args:
        fun: a function `fun(params, *args, **kwargs)`; or a model that is a pytree and is called
            `model(*args, **kwargs)`, whose leaves are the parameters.
        params: a pytree like the parameters; or a dict of new values by name (as in `named_parameters`), or a tuple
            of such dicts, for some of them.
        args: positional arguments: a tuple, or the only one.
        kwargs: keyword arguments.
        defaults: for a function, the parameters that `params` does not name.
        tie_weights: whether parameters that are one and the same array share a new value: one given for any of their
            names replaces all of them.
        strict: whether `params` must name every parameter.

    Returns:
        The model's result. Differentiable in `params`.

    Raises:
        ArgumentError: for unknown names, missing ones with `strict`, or two values for one array.
        TreeError: for parameters of another structure.

    >>> import functorch_like.numpy as fnp
    >>> line = lambda p, x: p["slope"] * x + p["offset"]
    >>> p = {"slope": fnp.asarray(2.0), "offset": fnp.asarray(1.0)}
    >>> float(functional_call(line, {"offset": 5.0}, (3.0,), defaults=p))
    11.0
    """
    check_callable(fun, "functional_call", "functional_call(f, params, args), with a function f(params, *args)")
    operands = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    if xla.structure(fun) != xla.leaf_structure:
        if defaults is not None:
            raise ArgumentError(
                f"functional_call got defaults= for {type(fun).__name__}, a model with parameters of its own",
                fix="leave defaults out",
            )
        return _replaced(fun, params, tie_weights, strict)(*operands, **named)
    if defaults is not None:
        params = _replaced(defaults, params, tie_weights, strict)
    return fun(params, *operands, **named)


@api_boundary.public
def named_parameters(model: PyTree) -> dict[str, Any]:
    """The leaves of a pytree by name: keys and positions joined by dots. An array that occurs twice is named once.

    Args:
        model: any pytree.

    Returns:
        A dict of leaves by their paths, joined by dots.

    Raises:
        ArgumentError: for an object that is no pytree.

    >>> named_parameters({"layers": [{"w": 1.0}, {"w": 2.0}]})
    {'layers.0.w': 1.0, 'layers.1.w': 2.0}
    """
    if xla.structure(model) == xla.leaf_structure and type(model) not in NUMBERS and not hasattr(model, "shape"):
        kind = type(model).__name__
        raise ArgumentError(
            f"named_parameters got an object of type {kind}, which is no pytree",
            fix=f"let its class be one: ft.tree.register_dataclass({kind}); of a module of PyTorch, take "
            "{name: fnp.from_dlpack(p.detach()) for name, p in module.named_parameters()}",
        )
    result: dict[str, Any] = {}
    seen: set[int] = set()
    for path, leaf in tree.leaves_with_path(model):
        if not (_is_array(leaf) and id(leaf) in seen):
            result[_name(path)] = leaf
            seen.add(id(leaf))
    return result


def _name(path: Any) -> str:
    return tree.keystr(path, simple=True, separator=".")


def _is_array(x: Any) -> bool:
    """Return True for arrays, which are one parameter if they are one object. Python caches equal numbers by chance."""
    return isinstance(x, (ArrayImpl, Tracer, np.ndarray))


def _replaced(model: Any, params: Any, tie_weights: bool, strict: bool) -> Any:
    """The model with new leaves."""
    pairs, treedef = tree.flatten_with_path(model)
    names = [_name(path) for path, _ in pairs]
    parts = params if isinstance(params, (tuple, list)) else (params,)
    if not all(isinstance(p, Mapping) and all(isinstance(k, str) and k in names for k in p) for p in parts):
        if xla.structure(params) == treedef:
            return params
        _check_names(parts, names, treedef)
    values: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if name in values and values[name] is not value:
                raise ArgumentError(
                    f"functional_call got two values for {name!r}", fix="name it once", **error_context()
                )
            values[name] = value
    leaves = [leaf for _, leaf in pairs]
    if tie_weights:
        owner: dict[int, str] = {}  # the name under which each array has a new value
        for name, leaf in zip(names, leaves, strict=True):
            if name in values and _is_array(leaf):
                first = owner.setdefault(id(leaf), name)
                if values[first] is not values[name]:
                    raise ArgumentError(
                        f"{first!r} and {name!r} are one array, but functional_call got two values for it",
                        fix="give one, or set tie_weights=False",
                        **error_context(),
                    )
        for name, leaf in zip(names, leaves, strict=True):
            if id(leaf) in owner:
                values[name] = values[owner[id(leaf)]]
    missing = [name for name in names if name not in values]
    if strict and missing:
        raise ArgumentError(
            f"functional_call with strict=True got no value for {', '.join(map(repr, missing))}",
            fix="name every parameter, or leave strict out",
            **error_context(),
        )
    return treedef.unflatten([values.get(name, leaf) for name, leaf in zip(names, leaves, strict=True)])


def _check_names(parts: Sequence[Any], names: Sequence[str], treedef: Any) -> None:
    for part in parts:
        if not isinstance(part, Mapping):
            raise TreeError(
                f"functional_call got params of structure {xla.structure(part)} for parameters of structure {treedef}",
                fix="give a pytree of that structure, or a dict of some of its leaves by name (named_parameters)",
                **error_context(),
            )
        for name in part:
            if name not in names:
                close = difflib.get_close_matches(str(name), names, 3, 0.5) or list(names[:5])
                raise ArgumentError(
                    f"functional_call got a value for {name!r}, which is not a parameter",
                    fix=f"names are {', '.join(map(repr, close))}{', ...' if len(names) > len(close) else ''}",
                    **error_context(),
                )


# --------------------------------------------------------------------------------------------------------- ensembles
@api_boundary.public
def stack_state(states: Sequence[T]) -> T:
    """Stack the states of many models along a new leading axis of each leaf, for `vmap` over the ensemble.

    (torch.func's `stack_module_state`; there is one state here, not parameters and buffers.)

    Args:
        states: pytrees of one structure, whose leaves have the same shapes and dtypes; at least one.

    Returns:
        A pytree of that structure.

    Raises:
        ArgumentError: for anything but a list or tuple of states.
        TreeError: where structures differ.
        ShapeError: where leaves differ in shape or dtype.

    >>> import functorch_like.numpy as fnp
    >>> stack_state([{"w": fnp.ones(2)}, {"w": fnp.zeros(2)}])["w"].tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if not isinstance(states, (tuple, list)) or not states:
        raise ArgumentError(
            f"stack_state takes a list of at least one state, got {states!r:.60}", fix="stack_state([params, ...])"
        )
    first, treedef = tree.flatten(states[0])
    columns = [first]
    columns += [tree.flatten_up_to(treedef, s, "stack_state", f"state {k}") for k, s in enumerate(states[1:], 1)]
    stacked: list[Any] = []
    for i, leaves in enumerate(zip(*columns, strict=True)):
        avals = [aval_of(x).strong() for x in leaves]
        for k, aval in enumerate(avals):
            if aval is not avals[0]:
                path = tree.leaf_paths(treedef)[i]
                raise ShapeError(
                    f"the states of stack_state differ at {path}: {avals[0]!r} in state 0, {aval!r} in state {k}",
                    fix="only models of one architecture can be stacked",
                    **error_context(),
                )
        rows = [widen(x if _is_array(x) else np.asarray(x, a.dtype), 1) for x, a in zip(leaves, avals, strict=True)]
        stacked.append(concatenate(*rows, dimension=0))
    return treedef.unflatten(stacked)


@api_boundary.public
def unstack_state(state: T) -> list[T]:
    """The states of the members of an ensemble: the inverse of `stack_state`.

    Args:
        state: a pytree whose leaves share the size of their leading axis.

    Returns:
        A list of pytrees.

    Raises:
        ShapeError: where leading axes are missing or differ in size.

    >>> import functorch_like.numpy as fnp
    >>> [s["w"].tolist() for s in unstack_state({"w": fnp.asarray([[1.0, 2.0], [3.0, 4.0]])})]
    [[1.0, 2.0], [3.0, 4.0]]
    """
    leaves, treedef = tree.flatten(state)
    shapes = [aval_of(x).shape for x in leaves]
    sizes = {s[:1] for s in shapes}
    if len(sizes) != 1 or () in sizes:
        shown = ", ".join(f"{p}: {aval_of(x)!r}" for p, x in zip(tree.leaf_paths(treedef), leaves, strict=True))
        raise ShapeError(
            f"unstack_state needs one size of all leading axes, got {shown or 'no leaves'}",
            fix="pass what stack_state gave",
            **error_context(),
        )
    ((count,),) = sizes
    part = lambda x, k, s: reshape(
        slice_primitive(x, start_indices=(k, *[0] * (len(s) - 1)), limit_indices=(k + 1, *s[1:]), strides=None),
        shape=s[1:],
    )
    return [treedef.unflatten([part(x, k, s) for x, s in zip(leaves, shapes, strict=True)]) for k in range(count)]


# ----------------------------------------------------------------------------------------------------- functionalize
@api_boundary.public
def functionalize(fun: Callable[P, R], *, remove: str = "mutations") -> Callable[P, R]:
    """Return the function unchanged: torch.func's removes in-place writes, and this package has none.

    Arrays are immutable and share no memory that can be written: `x.at[i].set(y)` is a new array, slices are copies. So
    every function of the package's operations is functional already, and tracing it records no mutation.

    Args:
        fun: any function.
        remove: "mutations" or "mutations_and_views", torch.func's choices; there is neither to remove.

    Returns:
        `fun`.

    Raises:
        ArgumentError: for another choice.

    >>> import functorch_like.numpy as fnp
    >>> functionalize(fnp.sin) is fnp.sin
    True
    """
    check_callable(fun, "functionalize")
    if remove not in ("mutations", "mutations_and_views"):
        raise ArgumentError(f"remove={remove!r} is unknown", fix="use 'mutations' or 'mutations_and_views'")
    return fun
