"""A counted loop in StableHLO: slices are read from stacked operands and written to stacked results in place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla


@dataclasses.dataclass(frozen=True)
class Steps:
    """A loop to emit.

    Attributes:
        name: of the function that the body becomes, where it is emitted more than once.
        body: emits `(*consts, *carries, *slices, *token) -> (*carries, *slices, *token)`.
        loop: emits a loop, as `Emitter.loop` does.
        consts, carries, token, stacks: the avals; `stacks` of the stacked results.
        length: how many steps.
        reverse: from the last slice to the first.
        unroll: how many steps are emitted one after the other in the body of the loop.
    """

    name: str
    body: Callable[..., list[Any]]
    loop: Callable[..., list[Any]]
    consts: list[ShapedArray]
    carries: list[ShapedArray]
    token: list[ShapedArray]
    xs: list[ShapedArray]
    stacks: list[ShapedArray]
    length: int
    reverse: bool
    unroll: int

    @property
    def index(self) -> ShapedArray:
        return ShapedArray((), np.dtype(np.int32 if self.length < 2**31 else np.int64))

    def emit(self, e: xla.Emitter, consts: Sequence[Any], carries: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The loop: final carries (the token, if any, among them as the last), then stacked results."""
        state = [*carries, *(e.full(0, a) for a in self.stacks)]
        unroll = min(self.unroll, self.length)
        looped = self.length - self.length % unroll if unroll else 0
        if looped > unroll:  # one round needs no loop
            state = self._loop(e, looped, unroll, consts, state, xs)
        else:
            looped = 0
        for k in range(looped, self.length):
            state = self._step(e, self._at(e, k), consts, state, xs)
        return state

    def _loop(self, e: xla.Emitter, end: int, unroll: int, consts: Any, state: Any, xs: Any) -> list[Any]:
        # XLA recognises the counter, and from it the number of iterations.
        scalar = self.index
        constant = lambda inner, n: inner.constant(np.array(n, scalar.dtype))
        n, m = len(consts), len(consts) + len(xs)
        avals = [scalar, *self.consts, *self.xs, *self.carries, *self.token, *self.stacks]

        def more(inner: xla.Emitter, i: Any, *_: Any) -> list[Any]:
            return [inner.compare("LT", i, constant(inner, end), ShapedArray((), np.dtype(bool)), "SIGNED")]

        def body(inner: xla.Emitter, i: Any, *rest: Any) -> list[Any]:
            same, state = rest[:m], rest[m:]
            for k in range(unroll):
                at = inner.op("stablehlo.add", [i, constant(inner, k)], [scalar]) if k else i
                if self.reverse:
                    at = inner.op("stablehlo.subtract", [constant(inner, self.length - 1), at], [scalar])
                state = self._step(inner, at, same[:n], state, same[n:])
            return [inner.op("stablehlo.add", [i, constant(inner, unroll)], [scalar]), *same, *state]

        return self.loop(e, [constant(e, 0), *consts, *xs, *state], avals, more, body)[1 + m :]

    def _at(self, e: xla.Emitter, k: int) -> Any:
        return e.constant(np.array(self.length - 1 - k if self.reverse else k, self.index.dtype))

    def _step(self, e: xla.Emitter, at: Any, consts: Any, state: Any, xs: Any) -> list[Any]:
        carried = len(self.carries)
        n = carried + len(self.token)
        slices = [self._read(e, at, x, aval) for x, aval in zip(xs, self.xs, strict=True)]
        outs = self._apply(e, [*consts, *state[:carried], *slices, *state[carried:n]])
        ys = outs[carried : len(outs) - len(self.token)]
        token = outs[len(outs) - len(self.token) :]
        written = [self._write(e, at, b, y, a) for b, y, a in zip(state[n:], ys, self.stacks, strict=True)]
        return [*outs[:carried], *token, *written]

    def _apply(self, e: xla.Emitter, operands: list[Any]) -> list[Any]:
        if self.length == 1 or (self.unroll == 1 and self.length > 1):
            return self.body(e, *operands)
        ins = [*self.consts, *self.carries, *map(_row, self.xs), *self.token]
        outs = [*self.carries, *map(_row, self.stacks), *self.token]
        return e.call(e.function(self.body, self.name, ins, outs, self.body), operands, outs)

    @staticmethod
    def _starts(e: xla.Emitter, at: Any, aval: ShapedArray, index: ShapedArray) -> list[Any]:
        return [at, *[e.constant(np.zeros((), index.dtype))] * (aval.ndim - 1)]

    def _read(self, e: xla.Emitter, at: Any, x: Any, aval: ShapedArray) -> Any:
        one = aval.update(shape=(1, *aval.shape[1:]))
        attrs = {"slice_sizes": e.i64s(one.shape)}
        sliced = e.op("stablehlo.dynamic_slice", [x, *self._starts(e, at, aval, self.index)], [one], attrs)
        return e.op("stablehlo.reshape", [sliced], [_row(aval)])

    def _write(self, e: xla.Emitter, at: Any, buffer: Any, y: Any, aval: ShapedArray) -> Any:
        one = e.op("stablehlo.reshape", [y], [aval.update(shape=(1, *aval.shape[1:]))])
        starts = self._starts(e, at, aval, self.index)
        return e.op("stablehlo.dynamic_update_slice", [buffer, one, *starts], [aval])


def _row(aval: ShapedArray) -> ShapedArray:
    return aval.update(shape=aval.shape[1:])
