"""Arrays written with brackets: `mgrid`, `ogrid`, `r_`, `c_`."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import known


def _line(part: slice) -> Any:
    """Return the numbers of a slice: start:stop:step, or start:stop:5j for five of them, the stop included."""
    start = 0 if part.start is None else part.start
    if isinstance(part.step, complex):
        return fnp.linspace(start, part.stop, int(abs(part.step)))
    if part.stop is None:
        raise promotion.error(ArgumentError, f"the slice {part} has no end", "give one: 0:5")
    return fnp.arange(start, part.stop, 1 if part.step is None else part.step)


class _Grid:
    """Coordinates on a grid, written as slices."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    def __repr__(self) -> str:
        return f"<fnp.{self._name}>"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key)
        made = fnp.meshgrid(*promotion.promote(*map(_line, key)), indexing="ij", sparse=self._sparse) if key else []
        if self._sparse:
            return made
        return fnp.stack(made) if made else fnp.zeros(0, int)


class _Joined:
    """Joined arrays, written between brackets."""

    def __init__(self, name: str, axis: int, least: int, place: int) -> None:
        self._name, self._directive = name, (axis, least, place)

    def __repr__(self) -> str:
        return f"<fnp.{self._name}>"

    def __getitem__(self, key: Any) -> Any:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, least, place = self._directive
        row = column = False
        if parts and isinstance(parts[0], str):
            text = parts.pop(0)
            if text in ("r", "c"):
                row, column = text == "r", text == "c"
            else:
                try:
                    axis, least, place = (*map(int, text.split(",")), *(axis, least, place)[text.count(",") + 1 :])
                except ValueError:
                    raise promotion.error(
                        ArgumentError, f"fnp.{self._name}[{text!r}, ...]", "begin with 'r', 'c', or up to three ints"
                    ) from None
        arrays = [self._raised(p, least, place) for p in parts]
        if row or column:
            arrays = [fnp.reshape(a, (1, -1) if row else (-1, 1)) if aval_of(a).ndim < 2 else a for a in arrays]
            return fnp.concatenate(arrays, 1 if row else 0)
        return fnp.concatenate(arrays, axis)

    def _raised(self, part: Any, least: int, place: int) -> Any:
        """Return an array of at least `least` dimensions; its own begin at `place`, or are the last ones for -1."""
        if isinstance(part, str):
            raise promotion.error(
                ArgumentError, f"fnp.{self._name}: {part!r} is not the first", "put a directive first"
            )
        a = fnp.asarray(_line(part) if isinstance(part, slice) else part)
        own = aval_of(a).ndim
        if own == 0:
            a, own = fnp.reshape(a, (1,)), 1
            if known(part) is not None and least > 1:
                return fnp.reshape(a, (1,) * least)
        if own >= least:
            return a
        more = least - own
        before = more if place == -1 else min(max(place if place >= 0 else more + place + 1, 0), more)
        return fnp.reshape(a, (1,) * before + aval_of(a).shape + (1,) * (more - before))


#: `mgrid[0:2, 0:3]`: coordinates of a grid, stacked.
mgrid = _Grid("mgrid", sparse=False)
#: `ogrid[0:2, 0:3]`: the same, with dimensions of size 1 left to broadcasting.
ogrid = _Grid("ogrid", sparse=True)
#: `r_[0, x, 5:8]`: arrays, numbers and slices joined along the first axis; a string in front sets the axis.
r_ = _Joined("r_", 0, 1, -1)
#: `c_[x, y]`: vectors as columns.
c_ = _Joined("c_", -1, 2, 0)
