"""Shared parts of primitives with custom rules: a function, and Python functions that transform it.

Outside of staging the function is a Python function too, and runs as such: an `if` on a value works. Where it enters
a jaxpr it is staged, and what it closes over becomes its first operands, which the rules do not receive. The rules
stay Python functions, and are called when the jaxpr is transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.compiler.lower import emit
from functorch_like.core import (
    BatchAxis,
    Primitive,
    SampleInput,
    UndefinedPrimal,
    aval_of,
    named_axis,
    new_trace,
    state,
)
from functorch_like.errors import DifferentiationError
from functorch_like.interpreters import batching, reverse
from functorch_like.interpreters.batching import BatchTrace, BatchTracer
from functorch_like.ir import dtype_origins, passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.reference import reference
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import structural
from functorch_like.source_info import name_of

Fun = Callable[..., Sequence[Any]] | Jaxpr


def run(fun: Fun, args: Sequence[Any]) -> list[Any]:
    """Apply the function under the current trace."""
    return evaluate(fun, args) if isinstance(fun, Jaxpr) else list(fun(*args))


def out_avals(fun: Fun) -> list[ShapedArray] | None:
    """Avals of the function's results, if known: not before it is staged."""
    return fun.out_avals if isinstance(fun, Jaxpr) else None


def explicit(
    primals: Sequence[Any], tangents: Sequence[Any], consts: int, fun: Fun
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Arguments and their tangents, without the operands that the function closes over.

    Raises:
        DifferentiationError: where one of these has a tangent: a rule does not cover it.
    """
    for p, t in zip(primals[:consts], tangents[:consts], strict=True):
        if t is not None:
            raise DifferentiationError(
                f"{name_of(fun)} closes over a {aval_of(p)!r} by which a derivative is taken, "
                "and its rule gives derivatives by arguments only",
                fix="pass the value as an argument, and let the rule differentiate by it; "
                "or close over lax.stop_gradient of it",
                operation=name_of(fun),
            )
    args = primals[consts:]
    if isinstance(fun, Jaxpr):  # the rule gets weak types where the function did; a program that runs again loses them
        args = [_weak(x) if aval.weak_type else x for x, aval in zip(args, fun.in_avals[consts:], strict=True)]
    return args, tangents[consts:]


def _weak(x: Any) -> Any:
    aval = aval_of(x)
    return x if aval.weak_type else structural.convert_element_type(x, new_dtype=aval.dtype, weak_type=True)


# ----------------------------------------------------------------------------------------------------------- primitives
def custom_primitive(
    name: str, *, jvp: Callable[..., Any], batch: Callable[..., Any], samples: Callable[[], list[SampleInput]]
) -> Primitive:
    """A primitive of a function with rules.

    Its parameters are `fun`, a Python function of flat operands or a jaxpr; `consts`, how many operands it closes
    over; and the rules.
    """

    def stage_params(args: Sequence[Any], params: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        fun = params["fun"]
        if isinstance(fun, Jaxpr):
            return args, params
        of = name_of(fun)
        avals = [aval_of(a) for a in args]
        jaxpr, consts = stage(
            fun, avals, name=of, origin=f"traced by {name}", chain=f"{name}({of})", hosts=dtype_origins.hosts(args)
        )
        return [*consts, *args], {**params, "fun": jaxpr, "consts": params["consts"] + len(consts)}

    return Primitive(
        name,
        shape=_shape,
        ref=_ref,
        lower=_lower,
        jvp=jvp,
        transpose=_transpose,
        batch=batch,
        samples=samples,
        # On a tape only tangents are unknown: the function is applied in the rule of another one, and must be linear.
        partial_eval=lambda tape, args, params: run(params["fun"], args),
        evaluate=lambda args, params: run(params["fun"], args),
        stage_params=stage_params,
        effects=lambda **params: params["fun"].effects if isinstance(params["fun"], Jaxpr) else frozenset(),
        multiple_results=True,
    )


def _shape(*avals: ShapedArray, fun: Fun, **_: Any) -> tuple[ShapedArray, ...]:
    jaxpr = fun
    if not isinstance(jaxpr, Jaxpr):
        jaxpr = stage(jaxpr, avals, name=name_of(fun), parent=core.EVALUATE, chain="")[0]
    return tuple(jaxpr.out_avals)


def _ref(*args: Any, fun: Fun, **_: Any) -> tuple[Any, ...]:
    return tuple(reference(fun, args) if isinstance(fun, Jaxpr) else fun(*args))


def _lower(e: Any, *operands: Any, fun: Jaxpr, **_: Any) -> list[Any]:
    return emit(e, fun.memo("simple", lambda: passes.simplify(fun)), operands, inlined=True)


def _transpose(cts: Sequence[Any], args: Sequence[Any], *, fun: Jaxpr, **_: Any) -> list[Any]:
    linear = [type(a) is UndefinedPrimal for a in args]
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    back = iter(reverse.backward_jaxpr(fun, linear, known, cts))
    return [next(back) if lin else None for lin in linear]


# -------------------------------------------------------------------------------------------------------------- maps
class Continued(BatchTrace):
    """A batch trace that continues another one below further transformations, and also takes that one's tracers.

    A function with rules runs with its primitive, which may be below transformations outside of the map. The function
    may nevertheless close over values of the map.
    """

    __slots__ = ("of",)

    def __init__(self, of: BatchTrace, parent: core.Trace) -> None:
        super().__init__(of.name, parent, of.axis)
        self.of = of

    def own(self, value: Any) -> Any:
        """The value as one of this trace, if it is of one that this trace continues."""
        if type(value) is BatchTracer:
            of: Any = self.of
            while of is not None:
                if value._trace is of:
                    return BatchTracer(self, value.value, value.dim)
                of = getattr(of, "of", None)
        return value

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return super().process(prim, [self.own(a) for a in args], params)


class Mapped:
    """One map of a function with rules.

    Whichever of the function and its rules runs first decides where the results have the axis; the others follow.
    Where an argument has the axis every result does.

    Args:
        over: the map's trace, or its axis where the function closes over nothing of it.
        dims: of the operands.
    """

    def __init__(self, over: BatchTrace | BatchAxis, dims: Sequence[int | None]) -> None:
        self.over = over
        self.axis = over if isinstance(over, BatchAxis) else over.axis
        self.free = all(d is None for d in dims)
        self.where: list[int | None] | None = None

    def run(
        self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[int | None]
    ) -> tuple[list[Any], list[int | None]]:
        """Results of a function mapped over the axis, and where they have it."""
        if isinstance(self.over, BatchAxis):
            return batching.batch(fun, self.axis, args, dims)
        trace = Continued(self.over, state.trace)
        with new_trace(trace), named_axis(self.axis.name, self.axis.size):
            outs = fun(*[a if d is None else BatchTracer(trace, a, d) for a, d in zip(args, dims, strict=True)])
        outs = [trace.own(o) for o in outs]
        batched = [type(o) is BatchTracer and o._trace is trace for o in outs]
        return (
            [o.value if m else o for o, m in zip(outs, batched, strict=True)],
            [o.dim if m else None for o, m in zip(outs, batched, strict=True)],
        )

    def function(self, fun: Fun, dims: Sequence[int | None]) -> Callable[..., list[Any]]:
        """The function, mapped."""

        def mapped(*args: Any) -> list[Any]:
            return self.results(*self.run(lambda *xs: run(fun, xs), args, dims))

        mapped.__name__ = name_of(fun)
        return mapped

    def results(self, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Results of the function, where they are needed."""
        if self.where is None:
            self.where = [d if self.free else d or 0 for d in dims]
        return [self.place(o, d, w) for o, d, w in zip(outs, dims, self.where, strict=True)]

    def place(self, x: Any, dim: int | None, to: int | None) -> Any:
        """A value with the axis at the position required, repeated along it if it has none."""
        if dim == to:
            return x
        if to is None:
            raise DifferentiationError(
                "a rule closes over a value that vmap maps over, and the function does not",
                fix="pass the value as an argument",
            )
        return structural.widen(x, self.axis.size, to) if dim is None else structural.move(x, dim, to)

    def element(self, avals: Sequence[ShapedArray] | None) -> list[ShapedArray] | None:
        """Return one element's results, where all results together are known."""
        if avals is None or self.where is None:
            return None
        return [a if d is None else a.without_dimension(d) for a, d in zip(avals, self.where, strict=True)]
