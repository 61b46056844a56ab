"""Forward mode: each value carries a tangent, which each primitive's `jvp` rule carries to the result.

Nested derivatives are not confused: a `Dual` belongs to the trace that made it. The rule of an inner trace runs under
the outer one, for which the inner primal and tangent are two ordinary values. (J. M. Siskind and B. A. Pearlmutter,
"Perturbation confusion and referential transparency", 2005.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, Trace, Tracer, as_argument, aval_of, in_width, new_trace, state
from functorch_like.errors import FtError


class TangentTracer(Tracer):
    """Base of tracers that carry a tangent; shape and dtype are the primal's."""

    __slots__ = ("primal",)
    primal: Any

    @property
    def aval(self) -> ShapedArray:
        return aval_of(self.primal)

    def creation_site(self) -> Any:
        primal = self.primal
        return primal.creation_site() if isinstance(primal, Tracer) else getattr(primal, "traceback", None)

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal

    def guarded(self, what: str) -> Any:
        return self.primal.guarded(what) if isinstance(self.primal, Tracer) else self.primal

    def beneath(self) -> Any:
        return self.primal


class Dual(TangentTracer):
    """A primal value with a non-zero tangent. Values with zero tangents are not wrapped at all."""

    __slots__ = ("tangent",)

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace, self.primal, self.tangent = trace, in_width(primal), in_width(tangent)


class JVPTrace(Trace):
    """Trace that applies a primitive to primals, and its `jvp` rule where a tangent is not zero."""

    __slots__ = ()

    def __init__(self, name: str, parent: Trace) -> None:
        super().__init__(name, parent)
        self.broadcasts = parent.broadcasts

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        tangents: list[Any] = []
        live = False
        for a in args:
            if type(a) is Dual and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
                live = True
            else:
                primals.append(a)
                tangents.append(None)
        parent = state.trace = self.parent
        try:
            if not live:
                return parent.process(prim, primals, params)
            out, tangent = prim.jvp(primals, tangents, **params)
        except FtError as e:
            raise core.add_error_context(e, prim, args, params, self, "jvp")  # noqa: B904  (the same error, completed)
        finally:
            state.trace = self
        if prim.multiple_results:
            return [o if t is None else Dual(self, o, t) for o, t in zip(out, tangent, strict=True)]
        return out if tangent is None else Dual(self, out, tangent)


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any], name: str = "jvp"
) -> tuple[list[Any], list[Any]]:
    """Differentiate a function in forward mode.

    Args:
        fun: function of flat arguments that returns a sequence.
        primals: arguments.
        tangents: tangent of each argument; None for zero.
        name: name of the transformation in errors.

    Returns:
        The results, and their tangents; None for zero.
    """
    trace = JVPTrace(name, state.trace)
    with new_trace(trace):
        pairs = zip(primals, tangents, strict=True)
        outs = fun(*[p if t is None else Dual(trace, as_argument(p), t) for p, t in pairs])
    return split_duals(trace, outs)


def split_duals(trace: Trace, outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return primals and tangents of results; a tangent that is zero is None."""
    mine = [type(o) is Dual and o._trace is trace for o in outs]
    return (
        [o.primal if m else o for o, m in zip(outs, mine, strict=True)],
        [o.tangent if m else None for o, m in zip(outs, mine, strict=True)],
    )
