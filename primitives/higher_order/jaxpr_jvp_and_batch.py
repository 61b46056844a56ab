"""Jaxprs made from jaxprs: the forward-mode form, the batched form. Higher-order primitives are made of them.

Each is kept on the jaxpr it was made from. It is staged with nothing around it, so that it depends on that jaxpr and
the key alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import events
from functorch_like.core import BatchAxis, aval_of, state
from functorch_like.interpreters import batching, forward
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import structural
from functorch_like.primitives.base.shapes import zeros


class Derived(NamedTuple):
    """A jaxpr made from another, the values of its first inputs, and a fact of each result."""

    jaxpr: Jaxpr
    consts: list[Any]
    out_info: Any


def derive(
    jaxpr: Jaxpr, key: Any, how: str, fun: Callable[..., list[Any]], avals: Sequence[ShapedArray]
) -> tuple[Jaxpr, list[Any]]:
    """Stage a function that was made from a jaxpr."""
    origin = f"{how} of {jaxpr.name}"
    made = stage(fun, avals, name=f"{jaxpr.name}_{key}", origin=origin, parent=core.EVALUATE, chain=origin)
    if events.has_listeners():
        events.emit("derive", made[0].name, how=origin, size=f"{len(made[0].equations)} equations", jaxpr=made[0])
    return made


def jvp_jaxpr(jaxpr: Jaxpr, some: Sequence[bool], instantiate: Sequence[bool] = ()) -> Derived:
    """Return the jaxpr of a jvp: of primals and the tangents that `some` marks, to results and nonzero tangents.

    Args:
        jaxpr: the jaxpr to differentiate.
        some: which inputs have tangents.
        instantiate: results that get a tangent even where it is zero; all others only where it is not.

    Returns:
        The jaxpr, its consts, and which results have tangents.
    """

    def make() -> Derived:
        has: list[bool] = []

        def fun(*flat: Any) -> list[Any]:
            rest = iter(flat[len(some) :])
            directions = [next(rest) if s else None for s in some]
            outs, tangents = forward.jvp(lambda *xs: evaluate(jaxpr, xs), flat[: len(some)], directions)
            if instantiate:
                tangents = [
                    zeros(aval_of(o).strong()) if t is None and w else t
                    for o, t, w in zip(outs, tangents, instantiate, strict=True)
                ]
            has[:] = [t is not None for t in tangents]
            return [*outs, *(t for t in tangents if t is not None)]

        fun.traced_aux = lambda: tuple(has)  # type: ignore[attr-defined]
        avals = [*jaxpr.in_avals, *(a.strong() for a, s in zip(jaxpr.in_avals, some, strict=True) if s)]
        made, consts = derive(jaxpr, "jvp", "jvp", fun, avals)
        return Derived(made, consts, has)

    return jaxpr.memo(("jvp", tuple(some), tuple(instantiate)), make)


#: For `batch_jaxpr`: the batch axis of a result may have any position, or the result may have none.
ANYWHERE = "anywhere"


def batch_jaxpr(
    jaxpr: Jaxpr, axis: BatchAxis, dims: Sequence[int | None], positions: Sequence[int | str] = ()
) -> Derived:
    """A jaxpr with one more axis of inputs, at `dims`.

    Args:
        jaxpr: the jaxpr to map.
        axis: its size, and its name for collectives.
        dims: where inputs have it; None where they do not.
        positions: where results must have it; ANYWHERE by default.

    Returns:
        The jaxpr, its consts, and where the results have the axis (None: nowhere).
    """

    def make() -> Derived:
        where: list[int | None] = []

        def fun(*flat: Any) -> list[Any]:
            outs, out_dims = batching.batch(lambda *xs: evaluate(jaxpr, xs), axis, flat, dims)
            if positions:
                placed = [place(o, d, w, axis.size) for o, d, w in zip(outs, out_dims, positions, strict=True)]
                outs = [o for o, _ in placed]
                out_dims = [d for _, d in placed]
            where[:] = out_dims
            return outs

        fun.traced_aux = lambda: tuple(where)  # type: ignore[attr-defined]
        avals = [widened(a, d, axis) for a, d in zip(jaxpr.in_avals, dims, strict=True)]
        made, consts = derive(jaxpr, "vmap", f"vmap over {axis.size}", fun, avals)
        return Derived(made, consts, where)

    return jaxpr.memo(("vmap", axis, tuple(dims), tuple(positions), state.axes), make)


def widened(aval: ShapedArray, dim: int | None, axis: BatchAxis) -> ShapedArray:
    """The aval with a hidden axis."""
    return aval if dim is None else aval.with_dimension(dim, axis.size, axis.explicit)


def place(x: Any, dim: int | None, to: int | str, size: int) -> tuple[Any, int | None]:
    """A value with the hidden axis at the position required, repeated along it if it has none; and its new position."""
    if isinstance(to, str) or dim == to:
        return x, dim
    return structural.move(structural.widen(x, size) if dim is None else x, dim or 0, to), to


def rearranged(jaxpr: Jaxpr, inputs: Sequence[int], outputs: Sequence[int] | None = None) -> Jaxpr:
    """Reorder inputs, and outputs, of a jaxpr. Inputs that are left out must be unused."""
    outs = jaxpr.outputs if outputs is None else [jaxpr.outputs[k] for k in outputs]
    return Jaxpr([jaxpr.inputs[k] for k in inputs], jaxpr.equations, outs, jaxpr.name, jaxpr.origin)
