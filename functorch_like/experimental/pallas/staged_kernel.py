"""A kernel as a program of one step, from values of blocks to values of blocks; it is traced once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.ir.jaxpr import Jaxpr, evaluate, inner_jaxprs
from functorch_like.ir.trace_to_jaxpr import CapturedRefs, stage
from functorch_like.ref.captured import captured_here, hold
from functorch_like.ref.reference import Ref
from functorch_like.transforms.disable_jit import jit_is_disabled

#: One step: `(ids, blocks of operands, blocks of results, scratch) -> (blocks of results, scratch)`.
Body = Callable[[tuple[Any, ...], list[Any], list[Any], list[Any]], tuple[list[Any], list[Any]]]


@dataclasses.dataclass
class StagedKernel:
    """One step of a grid as a program.

    Attributes:
        jaxpr: takes the values that the kernel closes over, the ids, and the blocks of operands, results and scratch;
            returns those of results and scratch.
        consts: values that it closes over.
        grid: number of the grid's axes.
        results: number of results.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    grid: int
    results: int

    def __call__(
        self, ids: tuple[Any, ...], blocks: list[Any], outs: list[Any], scratch: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Apply the step; values that it does not change are the same objects."""
        after = evaluate(self.jaxpr, [*self.consts, *ids, *blocks, *outs, *scratch])
        return after[: self.results], after[self.results :]

    def reads_index(self, axis: int) -> bool:
        """Return True if the step depends on the index along an axis of the grid."""
        index = self.jaxpr.inputs[len(self.consts) + axis]
        return any(index in e.inputs for e in self.jaxpr.equations) or index in self.jaxpr.outputs

    @property
    def changes_scratch(self) -> bool:
        """True if a step may leave other values in scratch than it found there."""
        held = self.jaxpr.outputs[self.results :]
        return any(
            a is not b for a, b in zip(held, self.jaxpr.inputs[len(self.jaxpr.inputs) - len(held) :], strict=True)
        )

    @property
    def has_effects(self) -> bool:
        """True if a step prints, or has other effects."""
        return bool(self.jaxpr.effects)

    @property
    def has_products(self) -> bool:
        """True if a step computes products of matrices, or their like."""
        return _has_products(self.jaxpr)

    @property
    def largest_value(self) -> int:
        """Size in bytes of the largest value that a step computes."""
        return _largest(self.jaxpr)


def _has_products(jaxpr: Jaxpr) -> bool:
    return any(e.prim.kind == "product" or any(map(_has_products, inner_jaxprs(e.params))) for e in jaxpr.equations)


def _largest(jaxpr: Jaxpr) -> int:
    avals = [v.aval for e in jaxpr.equations for v in e.outputs]
    inner = [_largest(j) for e in jaxpr.equations for j in inner_jaxprs(e.params)]
    return max([*inner, *(a.size * a.dtype.itemsize for a in avals)], default=0)


def staged_step(
    body: Body, grid: int, blocks: Sequence[Any], outs: Sequence[Any], scratch: Sequence[Any], name: str
) -> tuple[Body, list[Ref]]:
    """Stage one step of a grid.

    Args:
        body: the step.
        grid: number of the grid's axes.
        blocks: avals of the blocks of operands.
        outs: avals of the blocks of results.
        scratch: values of scratch.
        name: name of the kernel.

    Returns:
        The staged step, and Refs from outside of the kernel that it uses: their values are further scratch. Without
        jit, the step itself.
    """
    if jit_is_disabled():
        return body, []
    index = ShapedArray((), np.dtype(np.int32))
    avals = [*[index] * grid, *blocks, *outs]
    refs: list[Ref] = []
    while True:
        values = [*scratch, *(ref.read() for ref in refs)]

        def flat(*args: Any, refs: Sequence[Ref] = tuple(refs)) -> list[Any]:
            ids, rest = args[:grid], list(args[grid:])
            some, rest = rest[: len(blocks)], rest[len(blocks) :]
            results, rest = rest[: len(outs)], rest[len(outs) :]
            own = len(rest) - len(refs)
            cells = hold(refs, rest[own:])
            after, held = body(ids, some, results, rest[:own])
            return [*after, *held, *(cell.value for cell in cells)]

        try:
            jaxpr, consts = stage(flat, [*avals, *map(aval_of, values)], name=name, chain="")
        except CapturedRefs as e:
            refs += captured_here(e)
        else:
            return StagedKernel(jaxpr, consts, grid, len(outs)), refs
