"""One program for many sizes, from the texts of programs for some of them.

The texts are the same but for numbers, and each of these is a function of the dimensions: `c * m + d` or
`c * m + k * l + d`, where m and l are products of dimensions; for floats also the reciprocal of such a number, its root
and the root's reciprocal. There are more texts than the function has coefficients, so each function is checked.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from functorch_like.errors import UnsupportedError

_NUMBER = re.compile(r"(\d+\.\d+(?:[eE][+-]?\d+)?|\d+)")
_FLOATS: tuple[tuple[Callable[[float], float], Callable[[float], float]], ...] = (
    (float, float),
    (lambda v: 1 / v, lambda p: 1 / p),
    (lambda v: v * v, math.sqrt),
    (lambda v: 1 / (v * v), lambda p: 1 / math.sqrt(p)),
)
_LARGEST_DENOMINATOR = 64
_MOST_PARTS = 4_000_000

Dimensions = Mapping[str, int]
#: A function of the dimensions, as the coefficients of products of them.
Polynomial = dict[tuple[str, ...], Fraction]


class Template:
    """Text with numbers that depend on dimensions.

    Args:
        texts: of programs.
        dimensions: those of each.
        name: of the function.

    Raises:
        UnsupportedError: where the texts are not those of one program.
    """

    def __init__(self, texts: Sequence[str], dimensions: Sequence[Dimensions], name: str) -> None:
        split = [_NUMBER.split(text) for text in texts]
        if len({len(parts) for parts in split}) > 1 or len(split[0]) > _MOST_PARTS:
            raise refusal(name, "it has more operations or constants for some sizes than for others")
        self.parts, self.holes = list(split[0]), dict[int, Callable[[Dimensions], str]]()
        known: dict[tuple[str, ...], Callable[[Dimensions], str]] = {}
        for i, values in enumerate(zip(*split, strict=True)):
            if len(set(values)) == 1:
                continue
            if not i % 2:
                raise refusal(
                    name, f"it has {values[0].strip()!r:.60} for some sizes, {values[1].strip()!r:.60} for others"
                )
            if values not in known:
                formula = _fitted(values, dimensions)
                if formula is None:
                    raise refusal(name, f"a number in it is {', '.join(values)} for {_shown(dimensions)}")
                known[values] = formula
            self.holes[i] = known[values]

    def at(self, dimensions: Dimensions) -> str:
        """The text for some dimensions."""
        return "".join(self._parts(dimensions))

    def is_text(self, text: str, dimensions: Dimensions) -> bool:
        """Return True where a text is that for some dimensions; floats count as equal however they are written."""
        parts = self._parts(dimensions)
        pieces = _NUMBER.split(text)
        return len(pieces) == len(parts) and all(
            a == b or (i % 2 == 1 and "." in a and "." in b and _same(a, b))
            for i, (a, b) in enumerate(zip(pieces, parts, strict=True))
        )

    def _parts(self, dimensions: Dimensions) -> list[str]:
        parts = list(self.parts)
        for i, value in self.holes.items():
            parts[i] = value(dimensions)
        return parts


def refusal(name: str, reason: str) -> UnsupportedError:
    """Make the error for a function whose programs differ by more than sizes."""
    return UnsupportedError(
        f"{name} is another program for other sizes: {reason}",
        fix="write constants that depend on sizes with functorch_like.numpy, loops over them with lax.scan or vmap; "
        'or leave sizes out by constraints, such as "mod(b, 2) == 0" or "b <= 64"',
    )


def _shown(dimensions: Sequence[Dimensions]) -> str:
    return "; ".join(", ".join(f"{k} = {v}" for k, v in d.items()) for d in dimensions)


def _fitted(values: Sequence[str], dimensions: Sequence[Dimensions]) -> Callable[[Dimensions], str] | None:
    if all(v.isdigit() for v in values):
        formula = polynomial([Fraction(v) for v in values], dimensions)
        return None if formula is None else lambda d: str(whole(formula, d))
    numbers = [float(v) for v in values]
    for undo, make in _FLOATS:
        if any(v <= 0 for v in numbers):
            return None
        near = [Fraction(undo(v)).limit_denominator(1) for v in numbers]
        formula = polynomial(near, dimensions) if min(near) > 0 else None
        if formula is not None and all(_same(v, f"{make(int(p)):.17e}") for p, v in zip(near, values, strict=True)):
            return _float_of(formula, make)
    return None


def _same(written: str, other: str) -> bool:
    """Compare floats as those of the precision in which the first is written."""
    digits = len(written.lower().split("e")[0].replace(".", "").lstrip("0"))
    return float(written) == float(other) if digits > 10 else np.float32(written) == np.float32(other)


def _float_of(found: Polynomial, make: Callable[[float], float]) -> Callable[[Dimensions], str]:
    return lambda d: f"{make(whole(found, d)):.17e}"


def polynomial(values: Sequence[Fraction], dimensions: Sequence[Dimensions]) -> Polynomial | None:
    """The function of the dimensions that has these values; None if there is none of the forms above."""
    products = list(_products(sorted(dimensions[0])))
    for count in (1, 2):
        for chosen in itertools.combinations(products, count):
            rows = [[Fraction(_product(m, d)) for m in chosen] + [Fraction(1)] for d in dimensions]
            solution = _solved(rows[: count + 1], values[: count + 1])
            if solution is None or max(c.denominator for c in solution) > _LARGEST_DENOMINATOR:
                continue
            if all(
                sum(c * x for c, x in zip(solution, r, strict=True)) == v for r, v in zip(rows, values, strict=True)
            ):
                return dict(zip([*chosen, ()], solution, strict=True))
    return None


def _products(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for degree in (1, 2, 3):
        yield from itertools.combinations_with_replacement(names, degree)


def _product(names: Sequence[str], dimensions: Dimensions) -> int:
    return math.prod(dimensions[n] for n in names)


def _solved(rows: Sequence[Sequence[Fraction]], values: Sequence[Fraction]) -> list[Fraction] | None:
    """Solve a linear system exactly; None where it is singular."""
    table = [[*row, value] for row, value in zip(rows, values, strict=True)]
    for k in range(len(table)):
        pivot = next((i for i in range(k, len(table)) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(len(table)):
            if i != k and table[i][k]:
                table[i] = [x - table[i][k] * y for x, y in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


def whole(found: Polynomial, dimensions: Dimensions) -> int:
    """Evaluate a function of the dimensions whose value is a size.

    Raises:
        UnsupportedError: where the value is negative or not an integer.
    """
    value = sum((c * _product(names, dimensions) for names, c in found.items()), Fraction(0))
    if value.denominator != 1 or value < 0:
        raise UnsupportedError(
            f"a size in the program is {value} for {_shown([dimensions])}", fix="export it with a constraint on sizes"
        )
    return int(value)
