"""Failures that have been found so far, while a jaxpr is evaluated with checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.checkify.error import NUMBER, Error, Places, Site
from functorch_like.core import aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.reductions.reductions import reduce_min

#: Sets of kinds of checks; `|` joins them.
user_checks = frozenset({"user"})
nan_checks = frozenset({"nan"})
index_checks = frozenset({"index"})
div_checks = frozenset({"div"})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

NONE, ONE = np.zeros((), np.int32), np.ones((), np.int32)


#: Number for no failure, greater than that of any site: the least number is that of the first site that failed.
_NEVER = 2**31 - 1


class _Candidate(NamedTuple):
    """Number of a site that failed, or `_NEVER`; the position in its value, and the steps of the loops around it."""

    number: Any
    position: Any
    steps: list[Any]


class State:
    """Sites recorded so far, with the traced values of their failures.

    Most sites check for elements that are not finite. For all arrays of one shape, one array holds for each element the
    number of the first such site. So a check is two elementwise operations, which fuse with the checked operation, and
    there is one reduction at the end.
    """

    def __init__(self, checks: frozenset[str]) -> None:
        self.checks = checks
        self.places = Places()
        self._values: list[Any] = []
        self._candidates: list[_Candidate] = []
        self._elements: dict[tuple[int, ...], Any] = {}  # arrays of numbers, by shape

    def look(self, site: Site, bad: Any) -> None:
        """Record a site that fails if an element of `bad` is true."""
        shape = aval_of(bad).shape
        self.places = Places((*self.places.sites, site), self.places.depth)
        number, never = (structural.full(shape, n, NUMBER.dtype) for n in (len(self.places.sites), _NEVER))
        index = elementwise.select_n(bad, never, number)
        before = self._elements.get(shape)
        self._elements[shape] = index if before is None else elementwise.min(before, index)

    def add(self, site: Site, failed: Any, position: Any, values: Sequence[Any] = ()) -> None:
        """Record a site, with a flag of its failure, the position of that, and values for its message."""
        self.absorb(Places((site,)), [elementwise.select_n(failed, NONE, ONE), position, *values])

    def absorb(self, places: Places, flat: Sequence[Any]) -> None:
        """Record the sites of a part that has been evaluated, with its failures."""
        if not places.sites:
            return
        before, count = len(self.places.sites), 2 + places.depth
        code, position, *steps = flat[:count]
        number = elementwise.select_n(elementwise.eq(code, NONE), elementwise.add(code, _int(before)), _int(_NEVER))
        self._candidates.append(_Candidate(number, position, steps))
        self._values += flat[count:]
        self.places = Places((*self.places.sites, *places.sites), max(self.places.depth, places.depth))

    def flat(self) -> list[Any]:
        """Return the failures as a list, in the layout of `Places`."""
        candidates = [*self._candidates, *(_least(x) for x in self._elements.values())]
        if not candidates:
            return []
        number = candidates[0].number
        for each in candidates[1:]:
            number = elementwise.min(number, each.number)
        where = [NONE] * (1 + self.places.depth)
        for each in candidates:
            mine = elementwise.eq(number, each.number)
            own = [each.position, *each.steps]
            where = [
                *(t if o is t else elementwise.select_n(mine, t, o) for t, o in zip(where, own, strict=False)),
                *where[len(own) :],
            ]
        return [elementwise.select_n(elementwise.eq(number, _int(_NEVER)), number, NONE), *where, *self._values]

    def error(self) -> Error:
        return Error(self.flat(), self.places)


def _int(number: int) -> Any:
    return np.array(number, NUMBER.dtype)


def _least(numbers: Any) -> _Candidate:
    """Return the least number of an array, with its first position."""
    size = aval_of(numbers).size
    if not aval_of(numbers).shape:
        return _Candidate(numbers, NONE, [])
    flat = structural.reshape(numbers, shape=(size,))
    least = reduce_min(flat, axes=(0,))
    here = elementwise.eq(flat, structural.broadcast_in_dim(least, shape=(size,), broadcast_dimensions=()))
    return _Candidate(least, first_true(here)[1], [])


def first_true(flags: Any) -> tuple[Any, Any]:
    """Return a flag that any element is true, and the row-major position of the first such element."""
    size = aval_of(flags).size
    if not aval_of(flags).shape:
        return flags, NONE
    flat = structural.reshape(flags, shape=(size,))
    positions = structural.iota(dtype=NUMBER.dtype, shape=(size,), dimension=0)
    position = reduce_min(
        elementwise.select_n(flat, structural.full((size,), size, NUMBER.dtype), positions), axes=(0,)
    )
    return elementwise.lt(position, _int(size)), position


def first(before: Any, now: Any) -> Any:
    """Return a flag of a failure now without one before."""
    return elementwise.and_(elementwise.eq(before, NONE), elementwise.ne(now, NONE))


def chosen(which: Any, old: Any, new: Any) -> Any:
    """Select `new` where a scalar is true, `old` elsewhere."""
    if not aval_of(new).shape:
        return elementwise.select_n(which, old, new)
    return elementwise.select_n(
        structural.broadcast_in_dim(which, shape=aval_of(new).shape, broadcast_dimensions=()), old, new
    )
