"""Sequences of random choices, from which anything is built, and a shrinker of whatever was built from one.

A generator draws bounded integers. They are recorded, and can be given again. A changed recording makes a
smaller thing of the same kind. Generators put the simplest alternative first, so smaller integers are simpler.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Choices:
    """A source of choices.

    Args:
        seed: of the generator that draws them; anything that `random.Random` takes.
        replay: choices to give first. Those out of range are brought into it; after the last all are 0.

    Attributes:
        made: all that were given so far.

    >>> Choices(0).pick("abc") == Choices(0).pick("abc")
    True
    >>> Choices(replay=[2]).pick("abc")
    'c'
    """

    def __init__(self, seed: Any = None, replay: Sequence[int] | None = None) -> None:
        self._replay = None if replay is None else list(replay)
        self._random = random.Random(seed)
        self.made: list[int] = []

    def below(self, n: int) -> int:
        """Return an integer of [0, n), or 0 where there is none."""
        n = max(1, n)
        if self._replay is None:
            chosen = self._random.randrange(n)
        else:
            k = len(self.made)
            chosen = min(self._replay[k], n - 1) if k < len(self._replay) else 0
        self.made.append(chosen)
        return chosen

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options, the simplest of which stands first."""
        return options[self.below(len(options))]

    def chance(self, one_in: int) -> bool:
        """Return True once in `one_in` times, on average."""
        return self.below(one_in) == one_in - 1

    def between(self, low: int, high: int) -> int:
        """Return an integer of [low, high]."""
        return low + self.below(high - low + 1)

    def order(self, n: int) -> list[int]:
        """Return a permutation of range(n); the simplest is the identity."""
        left, taken = list(range(n)), []
        while left:
            taken.append(left.pop(self.below(len(left))))
        return taken

    def subset(self, n: int) -> list[int]:
        """Return some of range(n), in order."""
        return [k for k in range(n) if self.below(2)]


def shrink(made: Sequence[int], fails: Callable[[list[int]], bool], attempts: int = 400) -> list[int]:
    """Return a recording that still fails, shorter or of smaller choices where one was found.

    Args:
        made: a recording from which something that fails is built.
        fails: whether what is built from a recording fails, too.
        attempts: how often `fails` is called at most.

    >>> shrink([5, 9, 3, 7], lambda made: max(made, default=0) > 6)
    [7]
    """
    best = list(made)
    tried: set[tuple[int, ...]] = {tuple(best)}
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best):
            key = tuple(candidate)
            if key in tried:
                continue
            if len(tried) > attempts:
                return best
            tried.add(key)
            if fails(candidate):
                best, progress = candidate, True
                break
    return best


def _smaller(made: list[int]) -> Iterator[list[int]]:
    """Recordings to try: without a block, then with a choice made smaller."""
    size = len(made)
    while size:
        for at in range(0, len(made), size):
            yield made[:at] + made[at + size :]
        size //= 2
    for at, value in enumerate(made):
        for less in sorted({0, value // 2, value - 1}):
            if 0 <= less < value:
                yield [*made[:at], less, *made[at + 1 :]]
