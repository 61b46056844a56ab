"""Arguments of compiled functions: the static ones, and the cache key of a call.

The C++ fast path has a key of its own for earlier calls; this one is for the calls that reach Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.backends.xla.failures import DONATED_TWICE, ONCE
from functorch_like.calling.float0 import flatten_results
from functorch_like.core import INT32, Tracer, argument_aval, as_argument, in_width, is_value, state, transform_stack
from functorch_like.errors import ArgumentError, DonatedError, DtypeError, FtError
from functorch_like.foreign import values as foreign_values
from functorch_like.ir import dtype_origins
from functorch_like.source_info import name_of


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return an int or name, or a sequence of them, as a tuple; () for None."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


class Static(NamedTuple):
    """Static arguments, by position and by name.

    A parameter named by either is static however the caller passes it, where the function's signature is known.
    """

    nums: tuple[int, ...]
    names: tuple[str, ...]


def resolve_argnums(fun: Callable[..., Any], nums: Any, names: Any, what: str = "static") -> Static:
    """Complete positions by names and names by positions, from the function's signature.

    Raises:
        ArgumentError: for positions or names the function does not have.
    """
    positions, argnames = as_tuple(nums), as_tuple(names)
    if not positions and not argnames:
        return Static((), ())
    if not all(isinstance(n, (int, np.integer)) for n in positions):
        raise ArgumentError(f"{what}_argnums={nums!r} are not positions", fix=f"give ints; or names: {what}_argnames=")
    if not all(isinstance(n, str) for n in argnames):
        raise ArgumentError(f"{what}_argnames={names!r} are not names", fix=f"give strs; or positions: {what}_argnums=")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # builtins without a signature
        return Static(positions, argnames)
    ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    by_name = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    any_name = any(p.kind == p.VAR_KEYWORD for p in parameters)
    argnums: list[int] = []
    for n in positions:
        k = n + len(ordered) if n < 0 else n
        if not 0 <= k < len(ordered) and not (rest and k >= 0):
            raise ArgumentError(
                f"{what}_argnums={nums} names position {n}, "
                f"but {name_of(fun)} takes {len(ordered)} positional arguments",
                fix=f"use positions 0 to {len(ordered) - 1}" if ordered else "name keyword arguments instead",
            )
        argnums.append(k)
    for name in argnames:
        if name not in by_name and not any_name:
            raise ArgumentError(
                f"{what}_argnames={names!r} names {name!r}, which {name_of(fun)} does not have",
                fix=f"its parameters are {', '.join(p.name for p in parameters)}",
            )
    all_nums = {*argnums, *(ordered.index(n) for n in argnames if n in ordered)}
    all_names = {*argnames, *(ordered[k] for k in argnums if k < len(ordered) and ordered[k] in by_name)}
    return Static(tuple(sorted(all_nums)), tuple(sorted(all_names)))


def flatten_values(out: Any) -> tuple[list[Any], Any]:
    """The leaves of what a function returned, and its structure, as `flatten_results`.

    Raises:
        DtypeError: for a leaf that is neither an array nor a number.
    """
    outs, out_tree = flatten_results(out)
    for i, value in enumerate(outs):
        if not is_value(value):
            path = tree.leaf_paths(out_tree)[i]
            raise DtypeError(
                f"the function returned {value!r:.60} of type {type(value).__name__}{f' at {path}' if path else ''}",
                fix=foreign_values.result_remedy(value),
                chain=transform_stack(state.trace),
            )
    return outs, out_tree


_WIDE = frozenset({dtypes.float64, dtypes.complex128})
_WIDEN = {float: dtypes.float64, complex: dtypes.complex128}
#: Paths of arguments, as distinct from parts of them.
_ARGUMENT = re.compile(r"args\[\d+\]|kwargs\[[^\]]*\]")


#: Types of arguments whose values matter to a trace: calls with them must come to Python each time.
CHECKED = frozenset({int, np.int64, np.uint64})


def argument_path(in_tree: Any, position: int) -> str:
    """Return the user's name for a leaf of `(args, kwargs)`: `args[0]['w']`, `kwargs['rate']`."""
    return _shown_path(tree.leaf_paths(in_tree)[position])


def _shown_path(path: str) -> str:
    return ("args" if path.startswith("[0]") else "kwargs") + path[3:]


def kinds_of(value: Any) -> Any:
    """Return the types and signs of zeros in a static value, tuples, frozensets and dataclasses included.

    Equal values may differ in these, and are then different static values.
    """
    kind = type(value)
    if isinstance(value, _SIGNED):
        return (kind, "-0") if _is_negative_zero(value) else kind
    if issubclass(kind, tuple):
        return kind, *map(kinds_of, value)
    if kind is frozenset:
        return kind, frozenset((v, kinds_of(v)) for v in value)
    if hasattr(kind, "__dataclass_fields__"):
        return kind, *(kinds_of(getattr(value, name, None)) for name in kind.__dataclass_fields__)
    return kind


_SIGNED = (float, complex, np.inexact)


def _is_negative_zero(value: Any) -> bool:
    """Return True for -0.0, and for a complex zero with a part that is."""
    return value == 0 and "-" in repr(value)


class StaticValue:
    """Wrapper of a static value for C++: values are equal only if their `kinds_of` are equal, too."""

    __slots__ = ("_hash", "kinds", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.kinds, self._hash = value, kinds_of(value), hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is StaticValue and self.kinds == other.kinds and bool(self.value == other.value)


_SIMPLE = frozenset({int, str, type(None)})


def wrap_static(value: Any) -> Any:
    """Return a static value as C++ may compare it: wrapped where types inside of it may matter.

    C++ compares the value, and its own type, but not the types inside of it. Most tuples hold only ints and names.
    """
    kind = type(value)
    if kind in _SIMPLE:
        return value
    if kind is tuple:
        return value if _SIMPLE.issuperset(map(type, value)) else StaticValue(value)
    if issubclass(kind, (tuple, frozenset)) or hasattr(kind, "__dataclass_fields__"):
        return StaticValue(value)
    if isinstance(value, _SIGNED) and _is_negative_zero(value):
        return StaticValue(value)
    return value


def unwrap_static(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments as the user passed them, without the wrappers of static values."""
    plain = lambda a: a.value if type(a) is StaticValue else a
    return tuple(map(plain, args)), {k: plain(v) for k, v in kwargs.items()}


def _described(leaf: Any) -> Any:
    """A leaf that only has a shape and a dtype as a `ShapeDtypeStruct`."""
    if is_value(leaf) or isinstance(leaf, (ShapeDtypeStruct, type)) or hasattr(leaf, "is_reference"):
        return leaf
    try:
        return ShapeDtypeStruct(leaf.shape, leaf.dtype, bool(getattr(leaf, "weak_type", False)))
    except (AttributeError, TypeError):
        return leaf


def _is_of_keys(leaf: Any) -> bool:
    return isinstance(leaf, ShapeDtypeStruct) and hasattr(leaf.dtype, "described")


def _operand(aval: ShapedArray) -> ShapedArray:
    """The aval of an operand that is described, not given."""
    dtype = dtypes.narrowed(aval.dtype)
    return aval if dtype == aval.dtype else aval.update(dtype=dtype)


class FlatCall:
    """One call, taken apart: flat dynamic leaves, their tree, and the static values.

    `narrowed` is True where 64-bit arrays of NumPy became 32-bit ones, which C++ would not do.
    """

    __slots__ = ("avals", "leaves", "narrowed", "statics", "tree")

    def __init__(self, static: Static, args: Sequence[Any], kwargs: dict[str, Any], abstract: bool = False) -> None:
        """Take a call apart; `abstract` allows `ShapeDtypeStruct` and anything else with shape and dtype for arrays."""
        if static.nums or static.names:
            nums, names = static
            positional = tuple((i, args[i]) for i in nums if i < len(args))
            named = tuple((k, kwargs[k]) for k in names if k in kwargs)
            dynamic: Any = (
                tuple(None if i in nums else a for i, a in enumerate(args)),
                {k: v for k, v in kwargs.items() if k not in names},
            )
            self.statics: tuple[Any, ...] = (positional, named)
        else:
            dynamic, self.statics = (tuple(args), kwargs), ((), ())
        self.leaves, self.tree = xla.flatten(dynamic)
        self.narrowed = any(map(dtypes.is_narrowed, self.leaves))
        if self.narrowed:
            self.leaves = list(map(in_width, self.leaves))
        if abstract:
            self.leaves = [_described(leaf) for leaf in self.leaves]
            if any(map(_is_of_keys, self.leaves)):  # typed keys are nodes that hold words
                keys = [leaf.dtype.described(leaf) if _is_of_keys(leaf) else leaf for leaf in self.leaves]
                self.leaves, self.tree = xla.flatten(self.tree.unflatten(keys))
        self.avals: list[ShapedArray] = []
        try:
            for leaf in self.leaves:
                described = abstract and isinstance(leaf, ShapeDtypeStruct)
                self.avals.append(_operand(leaf.aval) if described else argument_aval(leaf))
        except FtError as e:
            raise self.blame(e, len(self.avals)) from None
        if any(type(leaf) in CHECKED for leaf in self.leaves):
            # An int beyond 32 bits must not be narrowed to the int32 it may meet: it is as strong as an array.
            self.avals = [
                a.strong() if type(leaf) in CHECKED and not INT32[0] <= leaf <= INT32[1] else a
                for leaf, a in zip(self.leaves, self.avals, strict=True)
            ]
        if any(a.dtype in _WIDE and not a.weak_type for a in self.avals):
            # A Python float beside 64-bit arrays keeps all its digits: 0.1 as float32 would spoil the ninth.
            self.avals = [
                a.update(dtype=_WIDEN[type(leaf)]) if type(leaf) in _WIDEN else a
                for leaf, a in zip(self.leaves, self.avals, strict=True)
            ]

    def blame(self, error: FtError, position: int) -> FtError:
        """The error with the path of the leaf it is about."""
        path = argument_path(self.tree, position)
        error.reason = f"argument {path}: {error.reason}"
        if not is_value(self.leaves[position]):
            nested = _ARGUMENT.fullmatch(path) is None
            error.fix = foreign_values.argument_remedy(self.leaves[position], nested)
        return error

    def hosts(self) -> dict[int, str]:
        """Positions of the leaves whose dtype NumPy chose, with what to call each: `a NumPy array (args[1])`."""
        result = dtype_origins.hosts(self.leaves)
        if not result:
            return result
        paths = tree.leaf_paths(self.tree)
        return {i: text if "(" in text else f"{text} ({_shown_path(paths[i])})" for i, text in result.items()}

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of a trace: all that it depends on besides the function.

        Static values count by type too: 1, 1.0 and True are three, and so are (1,), (1.0,) and (True,). Zeros count by
        their signs.
        """
        kinds = tuple(kinds_of(v) for part in self.statics for _, v in part)
        return (self.tree, self.statics, kinds, tuple(self.avals), xla.settings(), state.axes)

    def rebuild(self, leaves: Iterable[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with other leaves."""
        args, kwargs = self.tree.unflatten(leaves)
        positional, named = self.statics
        if positional:
            args = list(args)
            for i, value in positional:
                args[i] = value
        return tuple(args), {**kwargs, **dict(named)} if named else kwargs

    def flatten_function(self, fun: Callable[..., Any]) -> tuple[Callable[..., list[Any]], list[Any]]:
        """`fun` on flat leaves, with flat results; the list receives the tree of the results when it runs."""
        trees: list[Any] = []

        def flat(*leaves: Any) -> list[Any]:
            args, kwargs = self.rebuild(leaves)
            outs, out_tree = flatten_values(fun(*args, **kwargs))
            trees[:] = [out_tree]
            return [as_argument(o) for o in outs] if dtypes.STRONG_SCALARS.value else outs

        inner = getattr(fun, "traced_aux", lambda: None)
        flat.traced_aux = lambda: (trees[0], inner())  # type: ignore[attr-defined]
        return flat, trees

    def traced(self) -> bool:
        """Return True if the call is inside a transformation that must see it: a traced argument, or staging."""
        return state.trace.staging or any(isinstance(a, Tracer) for a in self.leaves)


def donated_twice(args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> DonatedError:
    """The error for a call that donates an array and uses it a second time, naming both places."""
    places: dict[Any, list[str]] = {}
    leaves, in_tree = xla.flatten((args, kwargs))
    for i, leaf in enumerate(leaves):
        if type(leaf) is xla.ArrayImpl and not leaf.is_deleted():
            places.setdefault(leaf.unsafe_buffer_pointer(), []).append(argument_path(in_tree, i))
    shared = [" and ".join(paths) for paths in places.values() if len(paths) > 1]
    second = f"{'; '.join(shared)} are the same array" if shared else "the function closes over it as well"
    return DonatedError(f"{name}: {DONATED_TWICE}: {second}", fix=ONCE)


def check_hashable(static: Static, args: Sequence[Any], kwargs: dict[str, Any], name: str) -> None:
    """Refuse static arguments that cannot be part of a cache key."""
    values = [(f"argument {i}", args[i]) for i in static.nums if i < len(args)]
    values += [(f"argument {k!r}", kwargs[k]) for k in static.names if k in kwargs]
    for label, value in values:
        try:
            hash(value)
        except TypeError:
            kind = type(value).__name__
            fix = "pass a tuple instead of a list, a frozenset instead of a set; "
            if hasattr(value, "__dataclass_fields__"):
                fix = f"freeze the class, @dataclasses.dataclass(frozen=True) above class {kind}; "
            raise ArgumentError(
                f"static {label} of {name} is of type {kind}, which is not hashable: {value!r:.60}",
                fix=fix + "an array should not be static: leave it out of static_argnums",
            ) from None


def flat_call(fun: Callable[..., Any], static: Static, args: Sequence[Any], kwargs: dict[str, Any]) -> FlatCall:
    """Take a call of a function apart; a name that the function lacks is refused before its value is."""
    try:
        return FlatCall(static, args, kwargs)
    except DtypeError:
        if kwargs:
            from functorch_like.calling.argument_notes import refuse_unknown  # needed by few programs

            refuse_unknown(fun, args, kwargs)
        raise
