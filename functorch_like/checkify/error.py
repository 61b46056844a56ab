"""The error value, a pytree of arrays: which place of a program failed first, and the values kept there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import source_info, tree
from functorch_like.avals import ShapedArray
from functorch_like.errors import CheckError

#: Number of failed elements of a map that are listed.
_MOST_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """A place in a program that can fail. Equality is identity.

    Attributes:
        text: the message, from a position (see `Places`) and the values that were kept.
        avals: of these values.
        source: the user's line.
        loops: the loops around it, the outermost last: the name of each, and the level of its steps.
    """

    text: Callable[[int, Sequence[Any]], str]
    avals: tuple[ShapedArray, ...]
    source: Any
    loops: tuple[tuple[str, int], ...] = ()

    def message(self, at: int, steps: Sequence[Any], values: Sequence[Any]) -> str:
        """Message of the failure."""
        around = [_step(int(steps[level]), what) for what, level in reversed(self.loops)]
        return "".join(around) + self.text(at, values)


#: Name of loops that take the elements of a map one after the other.
ELEMENTS = "elements"


def _step(number: int, what: str) -> str:
    return f"at mapped index {number}: " if what == ELEMENTS else f"in step {number} of {what}: "


NUMBER = ShapedArray((), np.dtype(np.int32))


class Places(NamedTuple):
    """Places that can fail, and the layout of their failures when a program runs.

    Failures are flat arrays (none where nothing can fail): the number of the first place that failed, from 1, or 0; the
    position in the checked value, counted in rows; the steps of the loops around it, of the innermost first; and
    values of each place, which mean something where the number is its own.
    """

    sites: tuple[Site, ...] = ()
    depth: int = 0

    def avals(self) -> list[ShapedArray]:
        return [NUMBER] * (2 + self.depth) + [a for s in self.sites for a in s.avals] if self.sites else []

    def inside(self, what: str) -> Places:
        """The same places in a loop."""
        loop = (what, self.depth)
        return Places(tuple(dataclasses.replace(s, loops=(*s.loops, loop)) for s in self.sites), self.depth + 1)


class Error:
    """Error value that a checkified function returns beside its result.

    It is a pytree of arrays, so that it may be returned from `jit`, carried through loops, and mapped: under vmap
    there is one for each element, and `get` names those that failed.
    """

    __slots__ = ("_flat", "_places")

    def __init__(self, flat: Sequence[Any], places: Places) -> None:
        self._flat, self._places = list(flat), places

    def get(self) -> str | None:
        """Return the first failure with its line; None if nothing failed.

        Raises:
            ConcretizationError: inside of a transformation, where it is not known yet.
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
        """Raise CheckError if something went wrong."""
        failed = self.get_exception()
        if failed is not None:
            raise failed

    def failures(self) -> list[tuple[str, str]]:
        """Return the failure and its line for each element of a map."""
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
