"""The loop over a grid: nested loops, one for each axis, which carry results and scratch.

A block is cut out of its array outside of the loops over axes that it does not depend on. So a block of a result that
is accumulated over the last axis is what the loop over that axis carries, and the array itself is written once for each
block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.core import Tracer
from functorch_like.experimental.pallas.blocks import Blocks
from functorch_like.experimental.pallas.environment import as_int32
from functorch_like.lax.counted import fori_loop

#: One step: `(ids, blocks of operands, blocks of results, scratch) -> (blocks of results, scratch)`.
Body = Callable[[tuple[Any, ...], list[Any], list[Any], list[Any]], tuple[list[Any], list[Any]]]


@dataclasses.dataclass
class GridLoop:
    """A loop over a grid.

    Attributes:
        sizes: sizes of the axes, ints or traced scalars.
        inputs: blocks of the operands.
        outputs: blocks of the results.
        scalars: operands of index maps.
        body: one step.
    """

    sizes: tuple[Any, ...]
    inputs: list[Blocks]
    outputs: list[Blocks]
    scalars: list[Any]
    body: Body

    def run(
        self, operands: Sequence[Any], results: Sequence[Any], scratch: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run all steps.

        Args:
            operands: arrays.
            results: first values of the results.
            scratch: first values of the scratch.

        Returns:
            The results, and the last values of the scratch.
        """
        padded = [b.pad(x) for b, x in zip(self.inputs, operands, strict=True)]
        outs = [b.pad(x) for b, x in zip(self.outputs, results, strict=True)]
        outs, last = self._level(0, (), padded, outs, list(scratch))
        return [b.unpad(x) for b, x in zip(self.outputs, outs, strict=True)], last

    def _level(
        self, level: int, ids: tuple[Any, ...], operands: list[Any], outs: list[Any], scratch: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run the loops from one axis on; arrays whose block is known by then are blocks already."""
        known = (*ids, *(np.zeros((), np.int32) for _ in self.sizes[level:]))
        operands = [
            b.read(x, b.position(known, self.scalars)) if b.level == level and not b.is_whole else x
            for b, x in zip(self.inputs, operands, strict=True)
        ]
        places = [
            b.position(known, self.scalars) if b.level == level and not b.is_whole else None for b in self.outputs
        ]
        before = [b.read(x, place) for b, x, place in zip(self.outputs, outs, places, strict=True)]
        if level == len(self.sizes):
            after, scratch = self.body(ids, operands, before, scratch)
        else:
            after, scratch = self._loop(level, ids, operands, before, scratch)
        outs = [
            x if new is old else b.write(x, place, new)
            for b, x, place, old, new in zip(self.outputs, outs, places, before, after, strict=True)
        ]
        return outs, scratch

    def _loop(
        self, level: int, ids: tuple[Any, ...], operands: list[Any], outs: list[Any], scratch: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Run the loop over one axis."""
        size = self.sizes[level]
        if not isinstance(size, Tracer):
            if size == 1:
                return self._level(level + 1, (*ids, as_int32(0)), operands, outs, scratch)
            if size <= 0:
                return outs, scratch

        def step(i: Any, carry: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            return self._level(level + 1, (*ids, i), operands, *carry)

        last: Any = size if isinstance(size, Tracer) else np.asarray(size, np.int32)
        return fori_loop(np.zeros((), np.int32), last, step, (outs, scratch))
