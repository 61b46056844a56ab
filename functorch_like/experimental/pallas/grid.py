"""The loop over a grid: nested loops, one for each axis, which carry results and scratch.

A block is cut out of its array outside of the loops over axes that it does not depend on. So a block of a result that
is accumulated over the last axis is what the loop over that axis carries, and the array itself is written once for each
block.

Where no step along an axis can depend on another one, all steps are computed at once, as vmap does, if that is faster.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.arrays.devices import default_backend
from functorch_like.core import Tracer, aval_of
from functorch_like.experimental.pallas.blocks import Blocks
from functorch_like.experimental.pallas.environment import as_int32
from functorch_like.experimental.pallas.staged_kernel import Body, StagedKernel
from functorch_like.lax.counted import fori_loop
from functorch_like.primitives import structural
from functorch_like.transforms.vmap import vmap

#: Bytes of the largest value up to which products on CPUs are computed for all independent steps at once. A loop over
#: larger blocks keeps them in the processor's caches.
_SMALL = 32 * 1024
#: Bytes that all steps together may take for one value.
_MOST = 256 * 1024 * 1024


@dataclasses.dataclass
class GridLoop:
    """A loop over a grid.

    Attributes:
        sizes: sizes of the axes, ints or traced scalars.
        inputs: blocks of the operands.
        outputs: blocks of the results.
        scalars: operands of index maps.
        body: one step.
        parallel: axes whose steps do not depend on each other by what they leave in scratch, as the user has said.
    """

    sizes: tuple[Any, ...]
    inputs: list[Blocks]
    outputs: list[Blocks]
    scalars: list[Any]
    body: Body
    parallel: frozenset[int] = frozenset()

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
            if self._is_independent(level, size):
                return self._at_once(level, size, ids, operands, outs, scratch), scratch

        def step(i: Any, carry: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            return self._level(level + 1, (*ids, i), operands, *carry)

        last: Any = size if isinstance(size, Tracer) else np.asarray(size, np.int32)
        return fori_loop(np.zeros((), np.int32), last, step, (outs, scratch))

    def _is_independent(self, axis: int, size: int) -> bool:
        """Return True if all steps along an axis are to be computed at once."""
        body = self.body
        if not isinstance(body, StagedKernel) or body.has_effects or body.reads_index(axis):
            return False
        if body.changes_scratch and not self.parallel.issuperset(range(axis + 1)):
            return False
        if not self.outputs or any(b.along(axis, size) is None for b in self.outputs):
            return False
        if any(axis in b.axes and b.along(axis, size) is None for b in self.inputs):
            return False
        largest = body.largest_value
        steps = math.prod(n for n in self.sizes if isinstance(n, int))
        small = largest <= _SMALL or not body.has_products or default_backend() != "cpu"
        return small and largest * steps <= _MOST

    def _at_once(
        self, axis: int, size: int, ids: tuple[Any, ...], operands: list[Any], outs: list[Any], scratch: list[Any]
    ) -> list[Any]:
        """Compute all steps along an axis by vmap, each on its part of the arrays."""
        places = [b.along(axis, size) for b in self.inputs]
        targets = [b.along(axis, size) for b in self.outputs]
        lanes = [_split(x, d, size) for x, d in zip(operands, places, strict=True)]
        results = [_split(x, d, size) for x, d in zip(outs, targets, strict=True)]
        first = (*ids, as_int32(0))

        def lane(lanes: list[Any], results: list[Any]) -> list[Any]:
            return self._level(axis + 1, first, lanes, results, scratch)[0]

        mapped = [None if d is None else 0 for d in places]
        after = vmap(lane, (mapped, 0))(lanes, results)
        return [_joined(x, d) for x, d in zip(after, targets, strict=True)]


def _split(x: Any, axis: int | None, size: int) -> Any:
    """Return an array with an axis of parts in front, for parts of equal size along an axis."""
    if axis is None:
        return x
    shape = aval_of(x).shape
    parts = structural.reshape(x, shape=(*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    order = (axis, *(k for k in range(len(shape) + 1) if k != axis))
    return structural.transpose(parts, permutation=order) if axis else parts


def _joined(x: Any, axis: int | None) -> Any:
    """Return an array from its parts, as `_split` makes them."""
    assert axis is not None
    rank = len(aval_of(x).shape)
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank))
    x = structural.transpose(x, permutation=order) if axis else x
    shape = aval_of(x).shape
    return structural.reshape(x, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
