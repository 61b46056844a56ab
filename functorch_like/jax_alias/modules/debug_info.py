"""`DebugInfo`: names of a function, its arguments and its results, which recorded programs carry for messages."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from functorch_like import source_info, tree
from functorch_like.calling.call_signature import as_tuple


class DebugInfo(NamedTuple):
    """Names of a function's arguments and results, for messages.

    Attributes:
        traced_for: what the function was traced for: "jit", "scan".
        func_src_info: name of the function, and where known its file and line: "f at model.py:12".
        arg_names: a name for each leaf of the arguments, as `"params['w']"`; None if unknown.
        result_paths: a path for each leaf of the result, as `"result[0]"`; None if unknown.
    """

    traced_for: str = ""
    func_src_info: str = ""
    arg_names: tuple[str, ...] | None = None
    result_paths: Any = None

    @property
    def func_name(self) -> str:
        """Name of the function."""
        return self.func_src_info.partition(" at ")[0]

    @property
    def func_filename(self) -> str | None:
        """File of the function; None if unknown."""
        return self._place()[0]

    @property
    def func_lineno(self) -> int | None:
        """Line of the function in its file; None if unknown."""
        return self._place()[1]

    def _place(self) -> tuple[str | None, int | None]:
        file, _, line = self.func_src_info.partition(" at ")[2].rpartition(":")
        return (file, int(line)) if file and line.isdigit() else (None, None)

    def safe_arg_names(self, expected_count: int) -> tuple[str, ...]:
        """Return the names of arguments; empty texts if they are unknown, or of another number."""
        return _counted(self.arg_names, expected_count)

    def safe_result_paths(self, expected_count: int) -> tuple[str, ...]:
        """Return the paths of results; empty texts if they are unknown, or of another number."""
        return _counted(self.resolve_result_paths().result_paths, expected_count)

    def resolve_result_paths(self) -> DebugInfo:
        """Return the same with paths that were given as a function replaced by its result."""
        paths: Any = self.result_paths
        return self._replace(result_paths=paths()) if callable(paths) else self

    def with_unknown_names(self) -> DebugInfo:
        """Return the same without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def replace_func_name(self, name: str) -> DebugInfo:
        """Return the same with another name of the function."""
        _, at, place = self.func_src_info.partition(" at ")
        return self._replace(func_src_info=f"{name}{at}{place}")


def _counted(names: tuple[str, ...] | None, count: int) -> tuple[str, ...]:
    return names if names is not None and len(names) == count else ("",) * count


def described(fun: Callable[..., Any]) -> str:
    """Return the name of a function with its file and line, where it has them."""
    while isinstance(fun, functools.partial) or hasattr(fun, "__wrapped__"):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__wrapped__
    code = getattr(fun, "__code__", None)
    name = source_info.name_of(fun)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def argument_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], static: Sequence[int] = ()
) -> tuple[str, ...] | None:
    """Return the names of the leaves of arguments by the function's signature; None if it does not take them.

    Args:
        fun: any function.
        args: positional arguments.
        kwargs: named arguments.
        static: positions in `args` that are left out.

    Returns:
        For each leaf the parameter's name, and the path in it.

    Example:
        >>> argument_names(lambda params, *xs: None, ({"w": 1}, 2, 3), {})
        ("params['w']", 'xs[0]', 'xs[1]')
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), None)
    named = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    other = next((p.name for p in parameters if p.kind == p.VAR_KEYWORD), None)
    if (len(args) > len(places) and rest is None) or (set(kwargs) - named and other is None):
        return None
    names = [places[k].name if k < len(places) else f"{rest}[{k - len(places)}]" for k in range(len(args))]
    kept = [(names[k], args[k]) for k in range(len(args)) if k not in static]
    kept += [(name if name in named else f"{other}[{name!r}]", kwargs[name]) for name in sorted(kwargs)]
    return tuple(name + path for name, value in kept for path in tree.leaf_paths(tree.structure(value)))


def result_paths(result: Any) -> tuple[str, ...]:
    """Return a path for each leaf of a result: "result", or "result[0]['u']"."""
    return tuple("result" + path for path in tree.leaf_paths(tree.structure(result)))


def debug_info(
    traced_for: str, fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, static_argnums: Any = (),
    static_argnames: Any = (), result_paths_thunk: Any = None, sourceinfo: str | None = None, signature: Any = None,
) -> DebugInfo:  # fmt: skip
    """Return the names of a function and of its arguments.

    Args:
        traced_for: what the function is traced for.
        fun: the function.
        args, kwargs: its arguments.
        static_argnums, static_argnames: positions and names of those that are left out.
        result_paths_thunk: function without arguments that returns the paths of the results.
        sourceinfo: text in place of the function's name, file and line.
        signature: has no effect; the signature is the function's own.

    Returns:
        The names.
    """
    left = set(as_tuple(static_argnames))
    kept = {name: value for name, value in kwargs.items() if name not in left}
    static = [n % len(args) if args else n for n in as_tuple(static_argnums)]
    names = argument_names(fun, args, kept, static)
    return DebugInfo(traced_for, described(fun) if sourceinfo is None else sourceinfo, names, result_paths_thunk)
