"""Elimination in many small matrices, written out: calling LAPACK for each takes longer than the work itself.

Each entry is a vector over all matrices. The pivots are those of LAPACK, and so are zeros where a matrix is singular.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.linalg.makers import I32, Stack

#: Up to this size, and so many right-hand sides, from so many matrices on. Larger ones take seconds to compile.
SMALL, MANY = 3, 64

#: Entries of matrices, row by row.
Rows = list[list[Any]]


def entries(x: Any) -> Rows:
    """The entries of matrices, each as a vector over all of them, side by side in memory."""
    *lead, m, n = aval_of(x).shape
    count = math.prod(lead)
    flat = structural.transpose(structural.reshape(x, shape=(count, m * n)), permutation=(1, 0))
    flat = structural.materialize(flat)

    def entry(at: int) -> Any:
        one = structural.slice(flat, start_indices=(at, 0), limit_indices=(at + 1, count), strides=None)
        return structural.reshape(one, shape=(count,))

    return [[entry(n * i + j) for j in range(n)] for i in range(m)]


def joined(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The array of this shape whose entries, one after the other, are vectors over all matrices."""
    flat = structural.concatenate(*[structural.reshape(v, shape=(1, *aval_of(v).shape)) for v in values], dimension=0)
    return structural.reshape(structural.transpose(structural.materialize(flat), permutation=(1, 0)), shape=shape)


def _matrices(rows: Rows, shape: tuple[int, ...]) -> Any:
    return joined([v for row in rows for v in row], shape)


def _turned(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


def _less(x: Any, factor: Any, y: Any) -> Any:
    return elementwise.sub(x, elementwise.mul(factor, y))


def _pivots(column: Sequence[Any]) -> list[Any]:
    """For each entry but the first, where it is the greatest of all, and the first one of that size."""
    greatest, greater = elementwise.abs(column[0]), []
    for x in column[1:]:
        size = elementwise.abs(x)
        greater.append(elementwise.gt(size, greatest))
        greatest = elementwise.select_n(greater[-1], greatest, size)
    chosen: list[Any] = []
    later: Any = None
    for here in reversed(greater):
        chosen.insert(0, here if later is None else elementwise.and_(here, elementwise.not_(later)))
        later = here if later is None else elementwise.or_(here, later)
    return chosen


def _exchanged(values: Sequence[Any], k: int, chosen: Sequence[Any]) -> list[Any]:
    """Exchange the value of row k with that of a row after it, where it was chosen."""
    made = list(values)
    for i, here in enumerate(chosen, k + 1):
        made[k] = elementwise.select_n(here, made[k], values[i])
        made[i] = elementwise.select_n(here, values[i], values[k])
    return made


def _eliminated(rows: Rows, n: int) -> tuple[Rows, list[list[Any]]]:
    """Eliminate in the first n columns; multipliers take the places of the zeros.

    Returns:
        The rows, and which row was exchanged with row k, for each k: for those after it, where.
    """
    steps = []
    for k in range(n - 1):
        steps.append(_pivots([row[k] for row in rows[k:]]))
        rows = _turned([_exchanged(column, k, steps[-1]) for column in _turned(rows)])
        pivot = rows[k][k]
        none = elementwise.eq(pivot, structural.full_like(pivot, 0))  # then the entries under it are zeros, too
        for i in range(k + 1, n):
            factor = elementwise.select_n(none, elementwise.div(rows[i][k], pivot), rows[i][k])
            rest = [_less(x, factor, y) for x, y in zip(rows[i][k + 1 :], rows[k][k + 1 :], strict=True)]
            rows[i] = [*rows[i][:k], factor, *rest]
    return rows, steps


def _substituted(a: Rows, b: Rows, lower: bool, unit: bool) -> Rows:
    """Solve triangular systems."""
    n = len(a)
    found: dict[int, list[Any]] = {}
    for k in range(n) if lower else reversed(range(n)):
        row = b[k]
        for j, solved in found.items():
            row = [_less(x, a[k][j], y) for x, y in zip(row, solved, strict=True)]
        found[k] = row if unit else [elementwise.div(x, a[k][k]) for x in row]
    return [found[k] for k in range(n)]


def _solve(a: Any, b: Any, *, transpose_a: bool) -> Any:
    left, right, n = entries(a), entries(b), aval_of(a).shape[-1]
    left = _turned(left) if transpose_a else left
    rows, _ = _eliminated([[*p, *q] for p, q in zip(left, right, strict=True)], n)
    x = _substituted([row[:n] for row in rows], [row[n:] for row in rows], False, False)
    return _matrices(x, aval_of(b).shape)


def _lu(x: Any) -> list[Any]:
    shape = aval_of(x).shape
    (*lead, n, _), count = shape, math.prod(shape[:-2])
    rows, steps = _eliminated(entries(x), n)
    number = lambda i: structural.full((count,), i, I32)
    order, pivots = [number(i) for i in range(n)], [number(i) for i in range(n)]
    for k, chosen in enumerate(steps):
        order = _exchanged(order, k, chosen)
        for i, here in enumerate(chosen, k + 1):
            pivots[k] = elementwise.select_n(here, pivots[k], number(i))
    return [_matrices(rows, shape), joined(pivots, (*lead, n)), joined(order, (*lead, n))]


def _triangular(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """X op(A) = B is op(A)^T X^T = B^T."""
    left, right = entries(a), entries(b)
    if transpose_a == left_side:
        left, lower = _turned(left), not lower
    x = _substituted(left, right if left_side else _turned(right), lower, unit_diagonal)
    return _matrices(x if left_side else _turned(x), aval_of(b).shape)


def _takes(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray], **_: Any) -> bool:
    """Return True for many small square matrices, and as few right-hand sides."""
    a, *more = ins
    real = a.dtype in (dtypes.float32, dtypes.float64)
    few = all(2 <= n <= SMALL for n in a.shape[-2:]) and all(1 <= n <= SMALL for b in more for n in b.shape[-2:])
    return real and few and a.shape[-1] == a.shape[-2] and math.prod(a.shape[:-2]) >= MANY


def _alternative(
    form: Callable[..., Any], what: str, edges: Callable[[], list[tuple[SampleInput, bool]]]
) -> Alternative:
    return Alternative(
        "written out",
        f"at least {MANY} real matrices of size 2 to {SMALL}{what}",
        _takes,
        lambda e, *operands, **params: Stack(e, e.ins[0].ndim - 2).inline(lambda *xs: form(*xs, **params), *operands),
        edges,
        slow_compile=True,
        optimised_only=True,
    )


def _heavy(x: Any) -> Any:
    """Well-conditioned matrices whose rows must change places; right-hand sides as they are."""
    return (x + 4 * np.eye(*x.shape[-2:], dtype=x.dtype))[..., ::-1, :] if x.shape[-1] == x.shape[-2] else x


def _few(n: int) -> Any:
    """Matrices of small integers, of which some are singular, with equal pivots and zeros."""
    return (np.arange(MANY * n * n).reshape(MANY, n, n) * 7919 % 1009 % 4 - 1).astype(np.float32)


def _shapes(*columns: int | None) -> list[tuple[tuple[int, ...], int | None, str, bool]]:
    """Shapes of matrices, of columns of right-hand sides, a dtype, and whether the form is taken."""
    cases: list[tuple[tuple[int, ...], int | None, str, bool]] = []
    for m in columns:
        cases += [((MANY, 2, 2), m, "float32", True), ((MANY // 2, 2, SMALL, SMALL), m, "float64", True)]
    last = columns[-1]
    cases += [((MANY - 1, 2, 2), last, "float32", False), ((MANY, SMALL + 1, SMALL + 1), last, "float32", False)]
    return [*cases, ((MANY, 2, 2), last, "complex64", False), ((MANY, 1, 1), last, "float32", False)]


def _solve_edges() -> list[tuple[SampleInput, bool]]:
    made = []
    for shape, m, dtype, taken in [*_shapes(1, SMALL), ((MANY, 2, 2), SMALL + 1, "float32", False)]:
        avals = ShapedArray(shape, dtype), ShapedArray((*shape[:-1], m), dtype)
        made += [(SampleInput(avals, {"transpose_a": t}, (-1.0, 1.0), prepare=_heavy), taken) for t in (False, True)]
    return made


def _lu_edges() -> list[tuple[SampleInput, bool]]:
    made = [
        (SampleInput((ShapedArray(s, d),), {}, (-1.0, 1.0), prepare=_heavy), taken) for s, _, d, taken in _shapes(None)
    ]
    singular = [(SampleInput((_few(n),), smooth=False), True) for n in range(2, SMALL + 1)]
    return [*made, *singular, (SampleInput((ShapedArray((MANY, 2, 3), "float32"),)), False)]


def _triangular_edges() -> list[tuple[SampleInput, bool]]:
    made = []
    for shape, m, dtype, taken in _shapes(1, SMALL):
        for turn in range(8 if taken else 1):
            left, lower, transposed = turn % 2 == 0, turn // 2 % 2 == 0, turn // 4 % 2 == 0
            params = {
                "left_side": left, "lower": lower, "transpose_a": transposed, "conjugate_a": False,
                "unit_diagonal": turn in (3, 4),
            }  # fmt: skip
            b = (*shape[:-1], m) if left else (*shape[:-2], m, shape[-1])
            avals = ShapedArray(shape, dtype), ShapedArray(b, dtype)
            made.append((SampleInput(avals, params, (-1.0, 1.0), prepare=_dominant), taken))
    return made


def _dominant(x: Any) -> Any:
    return x + 4 * np.eye(x.shape[-1], dtype=x.dtype) if x.shape[-1] == x.shape[-2] else x


_SIDES = f", 1 to {SMALL} right-hand sides"
SOLVE = _alternative(_solve, _SIDES, _solve_edges)
LU = _alternative(_lu, "", _lu_edges)
TRIANGULAR = _alternative(_triangular, _SIDES, _triangular_edges)
