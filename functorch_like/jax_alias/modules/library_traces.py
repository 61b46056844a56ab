"""`jax.core.Trace` for libraries that define traces of their own, and functions with rules under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import core
from functorch_like.core import Primitive as CorePrimitive
from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules.calls import jvp_subfuns
from functorch_like.jax_alias.modules.programs import primitive_of, shown_params
from functorch_like.primitives.higher_order.custom.base import run
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call


class _TraceType(type):
    """Class of `Trace`: traces of the package are instances, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (cls is Trace and isinstance(instance, core.Trace))


class Trace(core.Trace, metaclass=_TraceType):
    """Base of traces that a library defines: `process_primitive` gets every primitive that is applied under it.

    The trace that it runs under is its attribute `parent_trace`, under JAX's traces' name; the outermost one if it has
    none. While a primitive is processed, the outermost trace is in force.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a trace. (A subclass may not call the constructor of this class.)"""
        trace = super().__new__(cls)
        trace.finished = False
        return trace

    def __init__(self) -> None:
        """Do nothing: the trace around this one is an attribute of subclasses."""

    name = property(lambda self: type(self).__name__)  # type: ignore[assignment]
    staging = property(lambda self: True)  # type: ignore[assignment]  # operands without its tracers are its own, too
    broadcasts = property(lambda self: None)  # type: ignore[assignment]
    all_branches = True  # a library may check that its types agree in all of them

    @property
    def parent(self) -> core.Trace:  # type: ignore[override]
        """The trace that this one runs under."""
        around = getattr(self, "parent_trace", None)
        return core.EVALUATE if around is None else around

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply a primitive; a subclass defines it.

        Args:
            primitive: the primitive, as `jax.extend.core` has it.
            tracers: its operands.
            params: its parameters, those of equations in programs.

        Returns:
            The result; a sequence for a primitive with several.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define process_primitive")

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Sequence[Any], *, symbolic_zeros: bool
    ) -> Any:
        """Apply a function that has a rule for forward mode; a subclass defines it."""
        raise UnsupportedError(
            f"a custom_jvp function is called under a {type(self).__name__}, which has no rule for it",
            fix="define process_custom_jvp_call",
        )

    def full_raise(self, x: Any) -> Any:
        """Return a value unchanged."""
        return x

    def stage_value(self, x: Any) -> Any:
        """Return a value unchanged."""
        return x

    def is_valid(self) -> bool:
        """Return True until the trace is invalidated."""
        return not self.finished

    def invalidate(self) -> None:
        """Make tracers of this trace leaks."""
        self.finished = True

    def process(self, prim: CorePrimitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Give a primitive to the library's rule."""
        primitive = primitive_of(prim)
        with core.set_current_trace(core.EVALUATE):
            if prim is custom_jvp_call:
                out = self._custom_jvp(primitive, args, **params)
            elif prim.stage_params is not None and callable(params.get("fun")):
                raise UnsupportedError(
                    f"{prim.name} is applied under a {type(self).__name__}, which has no rule for functions with rules",
                    fix="apply the library's transformation to the function that is inside",
                )
            else:
                out = self.process_primitive(primitive, args, shown_params(prim, params))
        return tuple(out) if prim.multiple_results else out

    def _custom_jvp(self, primitive: Any, args: Sequence[Any], *, fun: Any, rule: Any, consts: int) -> Any:
        closed = args[:consts]
        whole, jvp = jvp_subfuns(fun=lambda *rest: run(fun, [*closed, *rest]), rule=rule, consts=0)
        return self.process_custom_jvp_call(primitive, whole, jvp, args[consts:], symbolic_zeros=False)


class TraceTag:
    """An object that marks the traces of one call of a library's transformation."""
