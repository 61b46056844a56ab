"""Transposed jaxprs, which pull cotangents of the results back to the linear inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import Derived, derive


def transposed(jaxpr: Jaxpr, linear: Sequence[bool], some: Sequence[bool], instantiate: Sequence[bool] = ()) -> Derived:
    """The transpose of a jaxpr with respect to some of its inputs.

    Args:
        jaxpr: linear in those inputs; equations that do not depend on them are computed again from the others.
        linear: which inputs those are.
        some: which results have cotangents; those of the others are zero.
        instantiate: linear inputs, by their position among all, that get a cotangent even where it is zero; all others
            only where it is not.

    Returns:
        A jaxpr of the other inputs and of the cotangents, giving cotangents; its consts; and which inputs have one.
    """

    def make() -> Derived:
        has: list[bool] = []

        def fun(*flat: Any) -> list[Any]:
            n = len(linear) - sum(linear)
            rest = iter(flat[n:])
            back = iter(reverse.backward_jaxpr(jaxpr, linear, flat[:n], [next(rest) if s else None for s in some]))
            cotangents = [next(back) if lin else None for lin in linear]
            if instantiate:
                cotangents = [
                    zeros(v.aval.strong()) if f is None and w else f
                    for v, f, w in zip(jaxpr.inputs, cotangents, instantiate, strict=True)
                ]
            has[:] = [f is not None for f in cotangents]
            return [f for f in cotangents if f is not None]

        fun.traced_aux = lambda: tuple(has)  # type: ignore[attr-defined]
        avals = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
        avals += [a.strong() for a, s in zip(jaxpr.out_avals, some, strict=True) if s]
        made, consts = derive(jaxpr, "transpose", "transpose", fun, avals)
        return Derived(passes.dead_code(made), consts, has)

    return jaxpr.memo(("transpose", tuple(linear), tuple(some), tuple(instantiate)), make)
