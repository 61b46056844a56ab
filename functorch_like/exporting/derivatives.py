"""Derivatives of exported programs in reverse mode: programs of their own, exported and stored with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.primitives.effects.call_exported import Artifact, shardings_on
from functorch_like.transforms.custom.custom_vjp import custom_vjp
from functorch_like.transforms.jvp_vjp import vjp


def _inexact(avals: Sequence[Any]) -> list[bool]:
    return [dtypes.is_inexact(a.dtype) for a in avals]


def backward_of(jaxpr: Jaxpr) -> Callable[..., list[Any]]:
    """Return the derivative of a program: a function of its arguments and of cotangents of its results.

    Only floats and complex numbers have cotangents.
    """
    count, moving, kept = len(jaxpr.inputs), _inexact([v.aval for v in jaxpr.inputs]), _inexact(jaxpr.out_avals)

    def backward(*values: Any) -> list[Any]:
        leaves, cts = values[:count], values[count:]

        def of_floats(*floats: Any) -> list[Any]:
            rest = iter(floats)
            outs = evaluate(jaxpr, [next(rest) if move else x for x, move in zip(leaves, moving, strict=True)])
            return [x for x, keep in zip(outs, kept, strict=True) if keep]

        _, pullback = vjp(of_floats, *(x for x, move in zip(leaves, moving, strict=True) if move))
        return list(pullback(list(cts)))

    backward.__name__ = f"{jaxpr.name}_vjp"
    return backward


def backward_avals(artifact: Artifact, mesh: Any = None) -> list[ShapeDtypeStruct]:
    """Return what the derivative of a program takes, on the mesh that the program is split over."""
    split, kept = artifact.split, _inexact(artifact.out_avals)
    avals = [*artifact.in_avals, *(a for a, keep in zip(artifact.out_avals, kept, strict=True) if keep)]
    if split is None:
        return [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
    specs = [*split.ins, *(s for s, keep in zip(split.outs, kept, strict=True) if keep)]
    where = zip(avals, shardings_on(mesh, specs), strict=True)
    return [ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in where]


def with_backward(
    run: Callable[..., list[Any]], artifact: Artifact, backward: Callable[[], Any]
) -> Callable[..., list[Any]]:
    """Return the call of a program with a derivative in reverse mode.

    Args:
        run: takes and returns leaves.
        artifact: the program.
        backward: returns its exported derivative.
    """
    moving, kept = _inexact(artifact.in_avals), _inexact(artifact.out_avals)

    def back(leaves: Any, cts: Any) -> tuple[Any, ...]:
        floats = iter(backward().call(*leaves, *(ct for ct, keep in zip(cts, kept, strict=True) if keep)))
        return tuple(next(floats) if move else None for move in moving)

    run.__name__ = artifact.name  # type: ignore[attr-defined]
    called: Any = custom_vjp(run)
    called.defvjp(lambda *leaves: (called(*leaves), leaves), back)
    return called
