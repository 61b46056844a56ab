"""custom_vjp_call: a function with rules of the user's for reverse mode; custom_lin: its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of, state
from functorch_like.errors import DifferentiationError
from functorch_like.interpreters import reverse
from functorch_like.interpreters.batching import BatchTrace
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.base.shapes import full_like, reduce_sum
from functorch_like.primitives.collectives.shared_values import boundary
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.elementwise.transcendental import sin
from functorch_like.primitives.higher_order.custom.base import Fun, Mapped, custom_primitive, explicit, out_avals
from functorch_like.source_info import name_of

#: `(residuals, cotangents of results) -> cotangents of arguments`; those that are zero are None.
Bwd = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
#: `(primals, perturbed, expected) -> (results, residuals, bwd)`: `perturbed` marks by which arguments a derivative is
#: taken, and `expected` are the avals of the results, where they are known.
Fwd = Callable[[Sequence[Any], Sequence[bool], Any], tuple[Sequence[Any], Sequence[Any], Bwd]]


# -------------------------------------------------------------------------------------------------- the function
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, fun: Fun, fwd: Fwd, consts: int
) -> tuple[Sequence[Any], Sequence[Any]]:
    args, directions = explicit(primals, tangents, consts, fun)
    if isinstance(state.trace, reverse.TapeTrace):
        tape = state.trace  # a tangent that is not on the tape is an explicit zero
        directions = [t if tape.var(t) is not None else None for t in directions]
    live = tuple(t is not None for t in directions)
    if not any(live):
        outs = custom_vjp_call(*primals, fun=fun, fwd=fwd, consts=consts)
        return outs, [None] * len(outs)
    outs, residuals, bwd = fwd(args, live, out_avals(fun))
    at = boundary(args, outs)
    if at is not None:
        bwd, residuals = at.of_rule(bwd, residuals)
    avals = tuple(aval_of(o).strong() for o in outs)
    some = [t for t in directions if t is not None]
    params = {"name": name_of(fun), "bwd": bwd, "live": live, "residuals": len(residuals), "out_avals": avals}
    ts = iter(custom_lin(*residuals, *some, **params))
    return outs, [next(ts) if dtypes.is_inexact(a.dtype) else None for a in avals]


def _batch(
    over: BatchTrace | BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, fun: Fun, fwd: Fwd, consts: int
) -> tuple[Sequence[Any], Sequence[int | None]]:
    mapped = Mapped(over, dims)
    both = {"fun": mapped.function(fun, dims), "fwd": _mapped_fwd(mapped, fwd, dims[consts:])}
    outs = custom_vjp_call(*args, **both, consts=consts)
    assert mapped.where is not None
    return outs, mapped.where


def _mapped_fwd(mapped: Mapped, fwd: Fwd, dims: Sequence[int | None]) -> Fwd:
    def mapped_fwd(
        primals: Sequence[Any], perturbed: Sequence[bool], expected: Any
    ) -> tuple[list[Any], list[Any], Bwd]:
        bwds: list[Bwd] = []
        counts: list[int] = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals, bwd = fwd(xs, perturbed, mapped.element(expected))
            bwds[:], counts[:] = [bwd], [len(outs)]
            return [*outs, *residuals]

        results, where = mapped.run(flat, primals, dims)
        n = counts[0]
        outs = mapped.results(results[:n], where[:n])
        assert mapped.where is not None
        return outs, results[n:], _mapped_bwd(mapped, bwds[0], where[n:], dims, mapped.where)

    mapped_fwd.__name__ = name_of(fwd)
    return mapped_fwd


def _mapped_bwd(
    mapped: Mapped,
    bwd: Bwd,
    residual_dims: Sequence[int | None],
    in_dims: Sequence[int | None],
    out_dims: Sequence[int | None],
) -> Bwd:
    def mapped_bwd(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        some = [c is not None for c in cts]
        has: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            rest = iter(xs[len(residual_dims) :])
            back = bwd(xs[: len(residual_dims)], [next(rest) if s else None for s in some])
            has[:] = [b is not None for b in back]
            return [b for b in back if b is not None]

        args = [*residuals, *(c for c in cts if c is not None)]
        positions = [*residual_dims, *(d for d, s in zip(out_dims, some, strict=True) if s)]
        rest = iter(zip(*mapped.run(flat, args, positions), strict=True))
        return [landed(*next(rest), wanted) if h else None for h, wanted in zip(has, in_dims, strict=True)]

    def landed(ct: Any, dim: int | None, to: int | None) -> Any:
        """The cotangent of an argument: summed over the elements where all of them share it."""
        if to is not None:
            return mapped.place(ct, dim, to)
        if dim is not None:
            return reduce_sum(ct, axes=(dim,))
        alike = any(d is not None for d in out_dims)  # then ct is that of one element, not the sum
        return mul(ct, full_like(ct, mapped.axis.size)) if alike else ct

    mapped_bwd.__name__ = name_of(bwd)
    return mapped_bwd


def _samples() -> list[SampleInput]:
    vector = ShapedArray((3,), np.dtype("float32"))
    fun = lambda x, y: [mul(sin(x), y), sin(y)]
    jaxpr, _ = stage(fun, [vector, vector], name="f", parent=core.EVALUATE)

    def derived(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        _, linear = reverse.linearize(fun, residuals, [True, True])
        return linear.transpose(cts)

    fwd = lambda primals, perturbed, expected: (fun(*primals), primals, derived)
    return [SampleInput((vector, vector), {"fun": jaxpr, "fwd": fwd, "consts": 0})]


custom_vjp_call = custom_primitive("custom_vjp_call", jvp=_jvp, batch=_batch, samples=_samples)


# ------------------------------------------------------------------------------------------------ its derivative
def _lin_shape(*avals: ShapedArray, out_avals: tuple[ShapedArray, ...], **_: Any) -> tuple[ShapedArray, ...]:
    return tuple(a for a in out_avals if dtypes.is_inexact(a.dtype))


def _lin_ref(
    *args: Any, bwd: Bwd, live: tuple[bool, ...], residuals: int, out_avals: tuple[ShapedArray, ...], **_: Any
) -> tuple[Any, ...]:
    """Transpose bwd: each element of a result pairs the tangents with bwd of a cotangent that is 1 at this element."""
    known, tangents = args[:residuals], args[residuals:]
    outs: list[Any] = []
    for k, aval in enumerate(out_avals):
        if not dtypes.is_inexact(aval.dtype):
            continue
        out = np.zeros(aval.size, aval.dtype)
        for n in range(aval.size):
            unit = np.eye(1, aval.size, n, aval.dtype).reshape(aval.shape)
            back = bwd(known, [unit if j == k else None for j in range(len(out_avals))])
            chosen = [b for b, alive in zip(back, live, strict=True) if alive]
            out[n] = sum(np.sum(b * t) for b, t in zip(chosen, tangents, strict=True) if b is not None)
        outs.append(out.reshape(aval.shape))
    return tuple(outs)


def _forward(*_: Any, name: str, bwd: Bwd, **params: Any) -> Any:
    raise DifferentiationError(
        f"forward mode (jvp, jacfwd, hvp, a linearized function) is applied to {name}, a custom_vjp function, of whose "
        f"derivative only {name_of(bwd)} is known, a rule for reverse mode",
        fix="take the derivative in reverse mode (grad, vjp, jacrev), or give the function a rule for both modes with "
        "custom_jvp",
        operation=name,
    )


def _lin_evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    return _forward(**params)


def _lin_transpose(
    cts: Sequence[Any],
    args: Sequence[Any],
    *,
    name: str,
    bwd: Bwd,
    live: tuple[bool, ...],
    residuals: int,
    out_avals: tuple[ShapedArray, ...],
) -> list[Any]:
    cotangents = iter(cts)
    whole = bwd(args[:residuals], [next(cotangents) if dtypes.is_inexact(a.dtype) else None for a in out_avals])
    back = [b for b, alive in zip(whole, live, strict=True) if alive]
    unknown = [type(a) is UndefinedPrimal for a in args[residuals:]]
    return [*[None] * residuals, *(b if u else None for b, u in zip(back, unknown, strict=True))]


def _lin_batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    name: str,
    bwd: Bwd,
    live: tuple[bool, ...],
    residuals: int,
    out_avals: tuple[ShapedArray, ...],
) -> tuple[Any, list[int | None]]:
    position: int | None = None if all(d is None for d in dims) else 0
    wide = out_avals if position is None else tuple(a.with_dimension(0, axis.size, axis.explicit) for a in out_avals)
    rest = iter(dims[residuals:])
    in_dims = [next(rest) if alive else None for alive in live]
    mapped_bwd = _mapped_bwd(Mapped(axis, dims), bwd, dims[:residuals], in_dims, [position] * len(out_avals))
    outs = custom_lin(*args, name=name, bwd=mapped_bwd, live=live, residuals=residuals, out_avals=wide)
    return outs, [position] * len(outs)


#: Operands are residuals, then those tangents that are not zero, as `live` marks for each argument. It is linear in the
#: tangents, and known by its transpose alone.
custom_lin = Primitive(
    "custom_lin",
    shape=_lin_shape,
    ref=_lin_ref,
    lower=_forward,
    jvp=_forward,
    transpose=_lin_transpose,
    batch=_lin_batch,
    samples=list,
    partial_eval=lambda tape, args, params: tape.record(custom_lin, args, params),
    evaluate=_lin_evaluate,
    multiple_results=True,
)
