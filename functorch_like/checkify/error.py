"""The error value: a pytree of arrays with the first site of a program that failed, and values for its message."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import source_info, tree
from functorch_like.avals import ShapedArray
from functorch_like.errors import CheckError

#: Largest number of failed elements under vmap that a message lists.
_MOST_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """A place in a program that can fail. Equality is identity.

    Attributes:
        text: function `(position, values) -> message`; see `Places` for the position.
        avals: avals of the values.
        source: recorded traceback of the user's line.
        loops: name and level of each loop around it, the outermost last; the level is the index of its step.
    """

    text: Callable[[int, Sequence[Any]], str]
    avals: tuple[ShapedArray, ...]
    source: Any
    loops: tuple[tuple[str, int], ...] = ()

    def message(self, at: int, steps: Sequence[Any], values: Sequence[Any]) -> str:
        """Return the message of a failure, with the steps of the loops around it."""
        around = [_step(int(steps[level]), what) for what, level in reversed(self.loops)]
        return "".join(around) + self.text(at, values)


#: Name of loops over the elements of a sequential vmap.
ELEMENTS = "elements"


def _step(number: int, what: str) -> str:
    return f"at mapped index {number}: " if what == ELEMENTS else f"in step {number} of {what}: "


NUMBER = ShapedArray((), np.dtype(np.int32))


class Places(NamedTuple):
    """Sites that can fail, which determine the layout of failures.

    Failures are a list of arrays, empty without sites: the number of the first site that failed, counted from 1, or 0;
    the row-major position in the checked value; the step of each loop around the site, the innermost first; and the
    values of each site, which are valid for the site with that number.

    Attributes:
        sites: the sites, in program order.
        depth: largest number of loops around a site.
    """

    sites: tuple[Site, ...] = ()
    depth: int = 0

    def avals(self) -> list[ShapedArray]:
        return [NUMBER] * (2 + self.depth) + [a for s in self.sites for a in s.avals] if self.sites else []

    def inside(self, what: str) -> Places:
        """Return the sites as parts of a loop's body."""
        loop = (what, self.depth)
        return Places(tuple(dataclasses.replace(s, loops=(*s.loops, loop)) for s in self.sites), self.depth + 1)


class Error:
    """Error value that a checkified function returns beside its result.

    It is a pytree of arrays, so that it may be returned from `jit`, carried through loops, and mapped. Under vmap it
    has a batch axis, and `get` lists the elements that failed.
    """

    __slots__ = ("_flat", "_places")

    def __init__(self, flat: Sequence[Any], places: Places) -> None:
        self._flat, self._places = list(flat), places

    def get(self) -> str | None:
        """Return the first failure with its line; None if nothing failed.

        Raises:
            ConcretizationError: for a traced error value.
        """
        failures = self.failures()
        return "\n".join(f"{text} ({line})" if line else text for text, line in failures) if failures else None

    def get_exception(self) -> CheckError | None:
        """Return the error that `throw` raises; None if nothing failed."""
        failures = self.failures()
        if not failures:
            return None
        lines = dict.fromkeys(line for _, line in failures)
        return CheckError("\n".join(text for text, _ in failures), at=", ".join(filter(None, lines)))

    def throw(self) -> None:
        """Raise CheckError if there is a failure."""
        failed = self.get_exception()
        if failed is not None:
            raise failed

    def failures(self) -> list[tuple[str, str]]:
        """Return message and line of each failure; under vmap, of each element that failed."""
        if not self._flat:
            return []
        codes, positions, *rest = map(np.asarray, self._flat)
        failed = [tuple(map(int, at)) for at in np.argwhere(codes)]
        texts = [self._message(int(codes[at]), at, int(positions[at]), rest) for at in failed[:_MOST_SHOWN]]
        if len(failed) > len(texts):
            texts.append((f"and {len(failed) - len(texts)} more", ""))
        return texts

    def _message(self, code: int, at: tuple[int, ...], position: int, rest: Sequence[Any]) -> tuple[str, str]:
        sites, depth = self._places
        start = depth + sum(len(s.avals) for s in sites[: code - 1])
        site = sites[code - 1]
        values = [v[at] for v in rest[start : start + len(site.avals)]]
        where = f"at mapped index {', '.join(map(str, at))}: " if at else ""
        text = site.message(position, [v[at] for v in rest[:depth]], values)
        return where + text, str(source_info.user_line(site.source) or "")

    def __repr__(self) -> str:
        return f"Error({len(self._places.sites)} places can fail)"


tree.register_pytree_node(
    Error, lambda e: (tuple(e._flat), e._places), lambda places, children: Error(children, places)
)

#: No error.
init_error = Error([], Places())
