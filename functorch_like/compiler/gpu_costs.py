"""Estimate from a jaxpr of the time that XLA spends on the timing of its own kernels when it compiles for a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from functorch_like import dtypes
from functorch_like.ir.jaxpr import Equation, Jaxpr, inner_jaxprs
from functorch_like.primitives.contractions.dot_general import dot_general

#: Seconds for a product, with 16 cores that compile the candidates and an H100 that runs them. For other dtypes XLA has
#: no kernels of its own.
_SECONDS = {dtypes.float32: 2.0, dtypes.bfloat16: 0.4, dtypes.float16: 0.4}
#: Products of fewer multiplications are left to other kernels.
_LEAST = 1 << 18


def seconds_of_timing(jaxpr: Jaxpr) -> float:
    """Return the seconds for the matrix products of a program; products of equal operands are timed once."""
    return jaxpr.memo("seconds of timing", lambda: sum(_of_products(jaxpr).values()))


def _of_products(jaxpr: Jaxpr) -> dict[object, float]:
    return {
        (*(a.aval.strong() for a in e.inputs), e.params["dimension_numbers"]): _SECONDS[e.inputs[0].aval.dtype]
        for e in _equations(jaxpr)
        if e.prim is dot_general
        and e.inputs[0].aval.dtype in _SECONDS
        and dot_general.multiplications([a.aval for a in e.inputs], e.outputs[0].aval, e.params) >= _LEAST
    }


def _equations(jaxpr: Jaxpr) -> Iterator[Equation]:
    for e in jaxpr.equations:
        yield e
        if e.prim.partial_eval is not None:
            for inner in inner_jaxprs(e.params):
                yield from _equations(inner)
