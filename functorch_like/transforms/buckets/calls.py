"""`jit(f, buckets=...)`: calls with any number of rows, compiled once for each bucket."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import FlatCall, argument_path, resolve_argnums
from functorch_like.calling.pickling import Transformed
from functorch_like.core import Tracer, state
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.source_info import name_of
from functorch_like.transforms.buckets import sizes
from functorch_like.transforms.buckets.program import Alone, Buckets
from functorch_like.transforms.buckets.sizes import Extent, Size

_MOST = 256  # structures of arguments

#: Options of `jit` that exclude buckets, and their defaults.
_APART = {
    "donate_argnums": None, "donate_argnames": None, "in_shardings": None, "out_shardings": None, "inline": False,
}  # fmt: skip


def bucketed(
    jit: Callable[..., Any], disabled: Callable[[], bool], fun: Callable[..., Any], buckets: Any, bucket_sizes: Any,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the value of `jit(fun, buckets=buckets, bucket_sizes=bucket_sizes, **options)`.

    Raises:
        ArgumentError: for axes, sizes or options that do not fit.
    """
    name = name_of(fun)
    for option, default in _APART.items():
        if options[option] not in (default, ()):
            raise ArgumentError(f"jit({name}) has buckets and {option}", fix="give one of them")
    if options["control_flow"] == "paths":
        raise ArgumentError(
            f"jit({name}) has buckets and control_flow='paths': guards on padded values would be those of other rows",
            fix="give one of them, or write the control flow with lax.cond and lax.while_loop",
        )
    axes, allowed = _axes(fun, buckets, name), sizes.checked(bucket_sizes, "bucket_sizes")
    return _Bucketed(jit, disabled, fun, axes, allowed, options, name).public


def _axes(fun: Callable[..., Any], buckets: Any, name: str) -> dict[str, int]:
    """The axis of rows of each named argument."""
    if not isinstance(buckets, dict) or not buckets:
        raise ArgumentError(
            f"buckets={buckets!r} of jit({name}) is not a dict of axes by argument", fix='write buckets={"x": 0}'
        )
    for argument, axis in buckets.items():
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise ArgumentError(f"buckets of jit({name}) has {axis!r} for {argument!r}", fix="give the axis as an int")
    resolve_argnums(fun, None, tuple(buckets), "buckets")
    return {k: int(v) for k, v in buckets.items()}


class _Bucketed:
    """The state behind one function with buckets."""

    def __init__(
        self, jit: Callable[..., Any], disabled: Callable[[], bool], fun: Callable[..., Any], axes: dict[str, int],
        allowed: tuple[int, ...] | None, options: dict[str, Any], name: str,
    ) -> None:  # fmt: skip
        self.fun, self.axes, self.allowed, self.name, self.disabled = fun, axes, allowed, name, disabled
        self.plain = jit(fun, **options)
        self.static = resolve_argnums(fun, options["static_argnums"], options["static_argnames"])
        self.compiled = functools.partial(jit, compiler_options=options["compiler_options"], mode=options["mode"])
        self.signature = inspect.signature(fun)
        self.functions: Cache[Any, Buckets] = Cache()
        made_by = (jit, (fun,), {**options, "buckets": axes, "bucket_sizes": allowed})
        self.public: Any = Transformed(self.call, *made_by)
        functools.update_wrapper(self.public, fun, updated=())
        self.public.eval_shape, self.public.clear_cache = self.plain.eval_shape, self.clear_cache
        for stage in ("trace", "lower", "warmup", "paths", "learn"):
            setattr(self.public, stage, self._refusal(stage))

    def _refusal(self, stage: str) -> Callable[..., Any]:
        @api_boundary.public
        def refused(*args: Any, **kwargs: Any) -> Any:
            raise UnsupportedError(
                f"{self.name} has buckets, and no .{stage}(...): a call is padding, a program and cutting",
                fix=f"use jit({self.name}).{stage}(...) without buckets, or call it",
            )

        return refused

    def clear_cache(self) -> None:
        """Forget all traces and programs of this function."""
        self.functions.clear()
        self.plain.clear_cache()

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with as many rows as the arguments have."""
        call = FlatCall(self.static, args, kwargs)
        rows, places = self._rows(call)
        if self.disabled() or state.trace.staging or _mapped_or_staged(call):
            return self.plain(*args, **kwargs)  # sizes are known there, and another function is compiled
        avals = list(call.avals)
        extents: list[list[Extent]] = [list(a.shape) for a in avals]
        for i, axis in places.items():
            extents[i][axis] = Size(1, 0)
        function = self._function(call)
        try:
            if any(isinstance(x, Tracer) for x in call.leaves):
                from functorch_like.transforms.buckets.derivatives import differentiable_call

                outs, tree = differentiable_call(function, call.leaves, avals, extents, rows)
            else:
                outs, tree = function.entry(avals, extents, rows, state.axes)(call.leaves, rows)
        except Alone:
            return self.plain(*args, **kwargs)
        return tree.unflatten(outs)

    def _function(self, call: FlatCall) -> Buckets:
        """The function of flat leaves for a structure of the arguments and static values."""
        key = call.key[:3]
        result = self.functions.get(key)
        if result is None:
            shape = object.__new__(FlatCall)  # without the arrays of this call
            shape.tree, shape.statics, shape.leaves, shape.avals = call.tree, call.statics, [], []

            def flat(*leaves: Any) -> tuple[list[Any], Any]:
                function, trees = shape.flatten_function(self.fun)
                outs = function(*leaves)
                return outs, trees[0]

            result = Buckets(flat, self.name, self.allowed, self.compiled)
            self.functions.keep(key, result, _MOST)
        return result

    def _rows(self, call: FlatCall) -> tuple[int, dict[int, int]]:
        """The number of rows, and the axis of rows of each leaf that has one."""
        args, kwargs = call.rebuild(range(len(call.leaves)))
        bound = self.signature.bind(*args, **kwargs).arguments
        rest = next((p.name for p in self.signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
        named = {**bound, **(bound.get(rest, {}) if rest else {})}
        places: dict[int, int] = {}
        counts: dict[int, str] = {}
        for argument, axis in self.axes.items():
            for i in xla.flatten(named.get(argument))[0]:
                aval, path = call.avals[i], argument_path(call.tree, i)
                if not -aval.ndim <= axis < aval.ndim:
                    raise ShapeError(
                        f"buckets of {self.name} has axis {axis} for {argument!r}, and {path} is {aval!r}",
                        fix="choose an axis that it has",
                    )
                places[i] = axis % aval.ndim
                counts[aval.shape[places[i]]] = f"{path}: {aval!r} along axis {places[i]}"
        if len(counts) > 1:
            shown = "; ".join(f"{n} in {text}" for n, text in counts.items())
            raise ShapeError(
                f"arguments with buckets of {self.name} have different numbers of rows: {shown}",
                fix="pass arrays with as many rows each, and leave others out of buckets",
            )
        if not counts:
            raise ArgumentError(
                f"{self.name} is called without an array in {', '.join(self.axes)}", fix="pass arguments with buckets"
            )
        return next(iter(counts)), places


def _mapped_or_staged(call: FlatCall) -> bool:
    """Return True where an argument is traced by something else than a derivative."""
    from functorch_like.interpreters.batching import BatchTrace

    for x in call.leaves:
        while isinstance(x, Tracer):
            if x._trace.staging or isinstance(x._trace, BatchTrace):
                return True
            x = x.beneath()
    return False
