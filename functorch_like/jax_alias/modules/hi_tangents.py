"""The primitive of tangents of an operation: its transpose is the operation's rule for cotangents, which need not be
linear, and is applied to values where cotangents are values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import functorch_like as ft
from functorch_like.avals import ShapedArray
from functorch_like.jax_alias.modules.hi_operations import filled, moves
from functorch_like.jax_alias.modules.user_primitives import (
    AxisData,
    Primitive,
    UndefinedPrimal,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_transposes,
)

#: `(known arrays, tangents) -> tangents of results`, or `(known arrays, cotangents) -> cotangents of arguments`.
Map = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Tangents:
    """Tangents of the results of one operation.

    Attributes:
        forth: the map from tangents of arguments; used in forward mode only.
        back: its transpose; used in reverse mode only.
        count: how many operands of the primitive are known arrays; the others are tangents.
        out_avals: avals of the tangents of results.
    """

    forth: Map
    back: Map
    count: int
    out_avals: tuple[ShapedArray, ...]

    def apply(self, known: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        """Return the tangents of the results."""
        return hi_tangents_p.bind(*known, *tangents, _tangents=self)

    def value(self, *operands: Any) -> list[Any]:
        """Apply the map from tangents to operands of the primitive."""
        return list(self.forth(operands[: self.count], operands[self.count :]))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Differentiate the map by those operands that move."""
        moving = [k for k, t in enumerate(tangents) if moves(t)]

        def fun(*xs: Any) -> list[Any]:
            given = dict(zip(moving, xs, strict=True))
            return self.value(*(given.get(k, p) for k, p in enumerate(primals)))

        return ft.jvp(fun, [primals[k] for k in moving], [tangents[k] for k in moving])

    def transpose(self, cts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """Apply the map from cotangents."""
        back = self.back(operands[: self.count], list(map(filled, cts)))
        wanted = [isinstance(x, UndefinedPrimal) for x in operands[self.count :]]
        return [None] * self.count + [ct if want else None for ct, want in zip(back, wanted, strict=True)]

    def batch(self, axis: AxisData, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, list[int]]:
        """Map both maps; cotangents of tangents that all elements share are added."""
        known, moved = list(dims[: self.count]), list(dims[self.count :])

        def back(arrays: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            mapped = ft.vmap(
                lambda arrays, cts: list(self.back(arrays, cts)),
                (known, 0),
                [0 if d is None else d for d in moved],
                axis_size=axis.size,
            )
            outs = mapped(list(arrays), list(cts))
            return [ct.sum(0) if d is None else ct for ct, d in zip(outs, moved, strict=True)]

        def forth(arrays: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
            mapped = ft.vmap(
                lambda arrays, tangents: list(self.forth(arrays, tangents)), (known, moved), axis_size=axis.size
            )
            return mapped(list(arrays), list(tangents))

        wide = tuple(a.with_dimension(0, axis.size) for a in self.out_avals)
        outs = Tangents(forth, back, self.count, wide).apply(operands[: self.count], operands[self.count :])
        return outs, [0] * len(wide)


hi_tangents_p = Primitive("hi_tangents")
hi_tangents_p.multiple_results = True
hi_tangents_p.def_impl(lambda *operands, _tangents: _tangents.value(*operands))
hi_tangents_p.def_abstract_eval(lambda *avals, _tangents: _tangents.out_avals)
primitive_jvps[hi_tangents_p] = lambda primals, tangents, *, _tangents: _tangents.jvp(primals, tangents)
primitive_transposes[hi_tangents_p] = lambda cts, *operands, _tangents: _tangents.transpose(cts, operands)
fancy_primitive_batchers[hi_tangents_p] = lambda axis, operands, dims, *, _tangents: _tangents.batch(
    axis, operands, dims
)
