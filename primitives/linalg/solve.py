"""Linear systems of any square matrix: solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.cholesky_lu import lu, turned
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, routine, square
from functorch_like.primitives.linalg.small_systems_cpu import SOLVE
from functorch_like.primitives.linalg.triangular_solve import folded, triangular_solve
from functorch_like.primitives.ordering.sort import sort


def _solve_shape(a: Any, b: Any, *, dtype: Any, transpose_a: bool) -> Any:
    n = square("solve", a)
    if b[0] != n:
        raise ShapeError(f"a system of size {n} and a right-hand side of {b[0]} rows", fix=f"give b {n} rows")
    return [(b, dtype)]


def _solve_ref(a: Any, b: Any, *, transpose_a: bool) -> Any:
    factors, pivots, _ = routine(a, "getrf")(a)
    return np.ascontiguousarray(routine(a, "getrs")(factors, pivots, b, trans=int(transpose_a))[0])


def _with_lu(factors: Any, order: Any, b: Any, transpose_a: bool, flipped: bool = False) -> Any:
    """Solve with the factors of P A, which are given transposed if `flipped`.

    The inverse of the order of rows is 0, 1, 2, ... sorted by it.
    """
    same = {"left_side": True, "conjugate_a": False, "transpose_a": transpose_a != flipped}
    lower = lambda x: triangular_solve(factors, x, lower=not flipped, unit_diagonal=True, **same)
    upper = lambda x: triangular_solve(factors, x, lower=flipped, unit_diagonal=False, **same)
    if not transpose_a:
        return upper(lower(M.permuted(b, order)))
    shape = aval_of(order).shape
    places = structural.iota(dtype=I32, shape=shape, dimension=len(shape) - 1)
    _, back = sort(order, places, dimension=len(shape) - 1)
    return M.permuted(lower(upper(b)), back)


def _solve_lower(k: Stack, a: Any, b: Any, *, transpose_a: bool) -> Any:
    def solve_with(a: Any, b: Any) -> Any:
        if k.e.platform == "cpu":
            # LAPACK factors a matrix laid out by columns: the transpose of one that is laid out by rows, at no cost.
            factors, _, order = lu(M.transposed(a))
            return _with_lu(M.transposed(factors), order, b, not transpose_a, flipped=True)
        factors, _, order = lu(a)
        return _with_lu(factors, order, b, transpose_a)

    return k.inline(solve_with, a, b)


def _solve_jvp(primals: Any, tangents: Any, *, transpose_a: bool) -> Any:
    """A dX = dB - dA X, with the factors of A that gave X."""
    (a, b), (da, db) = primals, tangents
    factors, _, order = lu(a)
    x = _with_lu(factors, order, b, transpose_a)
    if da is not None:
        change = M.mm(M.transposed(da) if transpose_a else da, x)
        db = elementwise.neg(change) if db is None else elementwise.sub(db, change)
    return x, _with_lu(factors, order, db, transpose_a)


def _solve_transpose(ct: Any, args: Any, *, transpose_a: bool) -> Any:
    a, b = args
    if not isinstance(b, UndefinedPrimal):
        return [None, None]
    if both_unknown("solve", a, b):
        return [None, structural.zeros(aval_of(ct))]
    return [None, solve(a, ct, transpose_a=not transpose_a)]


def _solve_batch(axis: BatchAxis, args: Any, dims: Any, **params: Any) -> Any:
    (a, b), (at, bt) = args, dims
    if at is not None:
        a, b = structural.move(a, at, 0), structural.widen(b, axis.size) if bt is None else structural.move(b, bt, 0)
        return solve(a, b, **params), 0
    return folded(lambda b: solve(a, b, **params), b, bt, -1)  # one matrix is factorized once


#: A X = B, or with the transpose of A. Of a singular matrix the result is infinite or NaN.
solve = linalg_primitive(
    "solve", (2, 2), shape=_solve_shape, ref=_solve_ref, lower=_solve_lower, jvp=_solve_jvp,
    transpose=_solve_transpose, batch=_solve_batch, multiple_results=False, linear=1, alternatives=[SOLVE],
    samples=lambda: [
        SampleInput((ShapedArray((*lead, n, n), d), ShapedArray((*lead, n, m), d)), {"transpose_a": t}, prepare=_heavy)
        for lead, n, m, d, t in [
            ((), 3, 2, "float32", False), ((), 3, 2, "float32", True), ((2,), 2, 3, "complex64", False),
            ((2,), 2, 1, "complex128", True), ((), 0, 2, "float32", False), ((0,), 2, 2, "float32", True),
            ((), 1, 1, "float64", False),
        ]
    ],
)  # fmt: skip


def _heavy(x: Any) -> Any:
    return turned(x) if x.shape[-1] == x.shape[-2] else x
