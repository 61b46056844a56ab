"""Calls of a jitted function with Refs: their values are arguments, and their final values are results.

A separate function of arrays is jitted, which passes new Refs to the user's function. C++ dispatches its calls like
those of any jitted function. The work around each call costs some 25 microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.calling.call_signature import FlatCall, Static, argument_path
from functorch_like.calling.traced_function import wraps
from functorch_like.errors import ArgumentError, FtError, UnsupportedError
from functorch_like.ir.trace_to_jaxpr import CapturedRefs
from functorch_like.ref.captured import among, captured_here, check_once, checked_result, hold
from functorch_like.ref.cells import error, refuse_paths
from functorch_like.ref.reference import Ref
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.transforms.jit_state import JitState

_MOST_FUNCTIONS = 64


class RefCalls:
    """The calls of one jitted function with Refs, given or closed over.

    Args:
        jitted: the function.
    """

    def __init__(self, jitted: JitState) -> None:
        self.jitted = jitted
        self.captured: Cache[Any, list[Ref]] = Cache()  # by the key of a trace
        self.functions: Cache[Any, Any] = Cache()

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Answer a call, as `JitState.miss`."""
        jitted = self.jitted
        call = WithoutRefs(jitted.static, args, kwargs)
        key = (jitted.key(call.flat), tuple(call.positions))
        captured = [ref for ref in self.captured.get(key) or [] if ref.alive]
        while True:
            if not captured and not call.positions:
                try:
                    return jitted.answer(call.flat)
                except CapturedRefs as e:
                    result = e
            else:
                if len({*call.refs, *captured}) < len(call.refs) + len(captured):
                    self.refuse_twice(call, captured)
                try:
                    return self.run(call, captured), None, True
                except CapturedRefs as e:
                    result = e
            captured = [*captured, *captured_here(result)]
            if all(ref.outermost for ref in captured):  # others are new at each call of the function around this one
                self.captured.keep(key, captured, _MOST_FUNCTIONS)

    def optimised(self) -> None:
        """Wait until the compiled programs are in their last tier."""
        for function in self.functions.values():
            function.optimised()

    def refuse_twice(self, call: WithoutRefs, captured: Sequence[Ref]) -> None:
        """Refuse a call in which one Ref occurs twice, among the arguments and the closed-over values."""
        paths = [argument_path(call.flat.tree, i) for i in call.positions]
        named = list(zip(paths, call.refs, strict=True))
        check_once([*named, *(("a Ref that it closes over", ref) for ref in captured)], f"jit({self.jitted.spec.name})")

    def check(self, call: WithoutRefs) -> None:
        """Refuse options that do not go with Refs."""
        jitted = self.jitted
        name = f"jit({jitted.spec.name})"
        if jitted.follows_paths:
            raise error(
                UnsupportedError,
                f"{name} has control_flow='paths', and takes or closes over a Ref",
                "jit it with control_flow='error', and choose with lax.cond",
            )
        refuse_paths(f"a Ref of {name}")
        for i, donated in enumerate(jitted.donated(call.flat)):
            if donated and i in call.positions:
                raise error(
                    ArgumentError,
                    f"{name} donates {argument_path(call.flat.tree, i)}, a Ref",
                    "leave it out of donate_argnums: the array that a Ref held before is freed as usual",
                )

    def run(self, call: WithoutRefs, captured: Sequence[Ref]) -> Any:
        """Call the function of arrays, and write the Refs."""
        key = (call.flat.tree, tuple(call.positions), tuple(captured), len(call.args))
        function = self.functions.get(key)
        if function is None:
            self.check(call)
            function = self.compiled(call, captured)
            if all(ref.outermost for ref in captured):
                self.functions.keep(key, function, _MOST_FUNCTIONS)
        refs = [*call.refs, *captured]
        values, out = function([ref.read() for ref in captured], *call.args, **call.kwargs)
        for ref, value in zip(refs, values, strict=True):
            if value is not None:
                ref.put(value)
        return out

    def compiled(self, call: WithoutRefs, captured: Sequence[Ref]) -> Any:
        """Return the function of arrays, jitted."""
        jitted = self.jitted
        static = jitted.static
        pure = of_arrays(jitted.fun, f"jit({jitted.spec.name})", static, call.positions, captured)
        options = dict(jitted.options)
        in_shardings = options["in_shardings"]
        if in_shardings is not None:
            in_shardings = in_shardings if isinstance(in_shardings, tuple) else (in_shardings,) * len(call.args)
            options["in_shardings"] = (None, *in_shardings)
        if options["out_shardings"] is not None:
            options["out_shardings"] = (None, options["out_shardings"])
        make = type(jitted)
        made = make(pure, _shifted(static), _shifted(jitted.donate), jitted.spec, options, jitted.jit)
        made.takes_refs = False  # a Ref that is found later is added by `answer`
        return made.public


def of_arrays(
    fun: Callable[..., Any], name: str, static: Static, positions: Sequence[int], captured: Sequence[Ref]
) -> Callable[..., tuple[list[Any], Any]]:
    """Return `(values of captured Refs, *args, **kwargs) -> (new values, result)`, to be staged.

    Args:
        fun: the user's function.
        name: its name in errors.
        static: its static arguments.
        positions: of Refs among the leaves of its other arguments.
        captured: Refs that it closes over.

    Returns:
        The function. New values are those of the Refs among the arguments, then of those captured; None where nothing
        was written.
    """

    @wraps(fun)
    def pure(held: list[Any], *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        inner = WithoutRefs(static, args, kwargs)
        refs = [Ref(inner.flat.leaves[i], lent=True) for i in positions]
        args, kwargs = inner.flat.rebuild(_replaced(inner.flat.leaves, positions, refs))
        cells = hold(captured, held)
        result = checked_result(fun(*args, **kwargs), name)
        cells = [*(ref.cell(False)[0] for ref in refs), *cells]
        return [cell.value if cell.written else None for cell in cells], result

    return pure


def shapes_with_refs(eval_shape: Callable[..., Any], failed: FtError, fun: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of `eval_shape` for a function with Refs, whose values do not change.

    Args:
        eval_shape: `eval_shape` for functions of arrays.
        failed: the error it raised.
        fun: the function.
        args, kwargs: its arguments.
    """
    none = Static((), ())
    if not isinstance(failed, CapturedRefs) and not is_about_refs(none, args, kwargs):
        raise failed
    captured: list[Ref] = captured_here(failed) if isinstance(failed, CapturedRefs) else []
    name = f"eval_shape({name_of(fun)})"
    call = WithoutRefs(none, args, kwargs, abstract=True)
    while True:
        pure = of_arrays(fun, name, none, call.positions, captured)
        check_once([("an argument", ref) for ref in [*call.refs, *captured]], name)
        try:
            return eval_shape(pure, [ref.read() for ref in captured], *call.args, **call.kwargs)[1]
        except CapturedRefs as e:
            captured = [*captured, *captured_here(e)]


class WithoutRefs:
    """A call with the values of Refs in place of the Refs.

    Attributes:
        flat: the call of arrays.
        positions: of Refs among its leaves.
        refs: these.
        args, kwargs: the arguments of the call of arrays.
    """

    def __init__(self, static: Static, args: tuple[Any, ...], kwargs: dict[str, Any], abstract: bool = False) -> None:
        nums, names = static
        dynamic: Any = (
            tuple(None if i in nums else a for i, a in enumerate(args)),
            {k: v for k, v in kwargs.items() if k not in names},
        )
        leaves, tree = xla.flatten(dynamic)
        self.positions = among(leaves)
        self.refs: list[Ref] = [leaves[i] for i in self.positions]
        if self.positions:
            values = _replaced(leaves, self.positions, [ref.read() for ref in self.refs])
            some, others = tree.unflatten(values)
            args = tuple(a if i in nums else some[i] for i, a in enumerate(args))
            kwargs = {**kwargs, **others}
        self.args, self.kwargs = args, kwargs
        self.flat = FlatCall(static, args, kwargs, abstract)


def _replaced(leaves: Sequence[Any], positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    made = list(leaves)
    for i, value in zip(positions, values, strict=True):
        made[i] = value
    return made


def _shifted(static: Static) -> Static:
    return Static(tuple(n + 1 for n in static.nums), static.names)


def is_about_refs(static: Static, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if there are Refs among the arguments that are not static."""
    is_dynamic: Callable[[int], bool] = lambda i: i not in static.nums
    dynamic = [a for i, a in enumerate(args) if is_dynamic(i)], [v for k, v in kwargs.items() if k not in static.names]
    return bool(among(xla.flatten(dynamic)[0]))
