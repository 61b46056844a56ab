"""A function of flat leaves that is compiled once for each bucket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.core import Tracer
from functorch_like.errors import FtError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.transforms.buckets import padding, sizes
from functorch_like.transforms.buckets.alignment import Comparison, Mismatch, Sized
from functorch_like.transforms.buckets.masking import Masking
from functorch_like.transforms.buckets.rules import rule
from functorch_like.transforms.buckets.sizes import Extent

_MOST_BUCKETS = 256
_MOST_SIZES = 4096
_FEWEST = 2  # an axis of size 1 is broadcast, and of size 0 there are no rows

#: Sizes of the axes of each leaf.
Extents = Sequence[Sequence[Extent]]


class Alone(Exception):
    """A number of rows for which the function is another program than for the others of its bucket."""


class Bucket:
    """The program of one bucket.

    Args:
        fun: takes and returns flat leaves; returns the structure of its results, too.
        avals: of the leaves at the bucket's size.
        extents: sizes of their axes.
        rows: the bucket's size.
        name: of the function.
        compiled: `jit`, with options.
    """

    def __init__(
        self, fun: Callable[..., Any], avals: Sequence[ShapedArray], extents: Extents, rows: int, name: str,
        compiled: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.fun, self.avals, self.extents = fun, avals, extents
        self.rows, self.name, self.compiled = rows, name, compiled
        self.compared: Comparison | None = None
        self.out_extents: list[list[Extent]] = []
        self.holes: Cache[int, list[Any] | None] = Cache()  # by the number of rows; None: it is a program of its own
        self.lock = threading.RLock()
        self.program: Any = None
        self.tree: Any = None
        self.out_avals: list[ShapedArray] = []
        self.derived: Any = None  # its derivative, a function with buckets

    def __call__(self, leaves: Sequence[Any], rows: int) -> tuple[list[Any], Any]:
        """Results for a number of rows, and their structure.

        Raises:
            Alone: where it is a program of its own.
            UnsupportedError: where the function does something with the rows that cannot be masked.
        """
        holes = self.prepare(rows)
        padded = [padding.placed(padding.pad(x, a.shape)) for x, a in zip(leaves, self.avals, strict=True)]
        outs = self.program(np.int32(rows), holes, padded)
        shapes = [[sizes.at(s, rows) for s in axes] for axes in self.out_extents]
        return [padding.cut(x, shape) for x, shape in zip(outs, shapes, strict=True)], self.tree

    def prepare(self, rows: int) -> list[Any]:
        """Constants of the program for a number of rows; the program is made at the first request.

        Raises:
            Alone, UnsupportedError: as a call does.
        """
        with self.lock:
            if self.compared is None:
                self._compare(rows)
            if rows not in self.holes:
                self.holes.keep(rows, self._read(rows), _MOST_SIZES)
            holes = self.holes[rows]
        if holes is None:
            raise Alone
        return holes

    def trace(self, rows: int) -> Sized:
        """Trace the function for a number of rows."""
        trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, tree = self.fun(*xs)
            trees[:] = [tree]
            return outs

        shapes = [tuple(sizes.at(s, rows) for s in axes) for axes in self.extents]
        avals = [a.update(shape=shape) for a, shape in zip(self.avals, shapes, strict=True)]
        xla.counters.traces += 1
        jaxpr, consts = stage(flat, avals, name=self.name, origin="traced by jit", chain=f"jit({self.name})")
        if any(isinstance(c, Tracer) for c in consts):
            raise Alone
        return Sized(rows, jaxpr, consts, trees[0])

    def _compare(self, rows: int) -> None:
        """Trace at the bucket's size and at two others, and make the program."""
        main = self.trace(self.rows)
        compared = self._agreeing(main, self._probes(rows))
        other = compared.other
        self.out_avals = main.jaxpr.out_avals
        outs = zip(main.jaxpr.out_avals, other.jaxpr.out_avals, strict=True)
        self.out_extents = [compared.extents(a.shape, b.shape) for a, b in outs]

        def masked(rows: Any, holes: list[Any], leaves: list[Any]) -> list[Any]:
            try:
                masking = Masking(compared, rows, holes, self.name, rule)
                return masking.run(main.jaxpr, other.jaxpr, leaves, len(main.consts), len(other.consts))
            except Mismatch as e:
                raise e.error(self.name) from None

        masked.__name__ = masked.__qualname__ = self.name
        self.program, self.tree = self.compiled(masked), main.tree
        self.compared = compared

    def _agreeing(self, main: Sized, probes: Iterator[Sized]) -> Comparison:
        """Compare the trace at the bucket's size with two others that are the same program.

        Some numbers of rows may be special, as where they equal another size of the program.

        Raises:
            UnsupportedError: where there are no such two.
            Alone: where the function takes hardly any other number of rows.
        """
        made: list[Comparison] = []
        first: Mismatch | None = None
        for probe in probes:
            for compared in made:
                try:
                    compared.read(probe)
                    return compared
                except Mismatch as e:
                    first = first or e
            try:
                compared = Comparison(main, probe)
                for a, b in zip(main.jaxpr.out_avals, probe.jaxpr.out_avals, strict=True):
                    compared.extents(a.shape, b.shape)
                made.append(compared)
            except Mismatch as e:
                first = first or e
        if first is None:
            raise Alone
        raise first.error(self.name)

    def _probes(self, rows: int) -> Iterator[Sized]:
        """Traces for other numbers of rows; a function may refuse some."""
        size = self.rows
        for count in dict.fromkeys((2 * size, 3 * size, size + 1, size + 2, size - 1, size // 2, rows)):
            if count < _FEWEST or count == size:
                continue
            try:
                yield self.trace(count)
            except Alone:
                raise
            except (FtError, AssertionError, ValueError):
                continue

    def _read(self, rows: int) -> list[Any] | None:
        """Constants that depend on the number of rows, padded; None where the program is another one."""
        assert self.compared is not None
        if rows == self.rows:
            sized = self.compared.main
        else:
            try:
                sized = self.trace(rows)
            except Alone:
                return None
        try:
            result = self.compared.read(sized)
        except Mismatch:
            return None
        pairs = zip(result, self.compared.hole_avals, strict=True)
        return [padding.placed(padding.pad(np.asarray(x, a.dtype), a.shape)) for x, a in pairs]


class Buckets:
    """A function of flat leaves, compiled once for each bucket.

    Args:
        fun: takes flat leaves; returns flat results and their structure.
        name: of the function.
        allowed: bucket sizes; None: powers of two.
        compiled: `jit`, with options.
    """

    def __init__(
        self, fun: Callable[..., Any], name: str, allowed: tuple[int, ...] | None, compiled: Callable[..., Any]
    ) -> None:
        self.fun, self.name, self.allowed, self.compiled = fun, name, allowed, compiled
        self.entries: Cache[Any, Bucket] = Cache()
        self.lock = threading.Lock()

    def entry(self, avals: Sequence[ShapedArray], extents: Extents, rows: int, axes: Any) -> Bucket:
        """The bucket for leaves of these types, at a number of rows.

        Raises:
            Alone: for none and one, whose programs are other ones.
        """
        size = sizes.bucket(rows, self.allowed, self.name)
        if rows < 1 or size < _FEWEST:
            raise Alone
        shapes = [tuple(sizes.at(s, size) for s in axes) for axes in extents]
        padded = tuple(a.update(shape=shape) for a, shape in zip(avals, shapes, strict=True))
        key = padded, tuple(map(tuple, extents)), size, xla.settings(), axes
        with self.lock:
            result = self.entries.get(key)
            if result is None:
                result = Bucket(self.fun, padded, extents, size, self.name, self.compiled)
                self.entries.keep(key, result, _MOST_BUCKETS)
        return result
