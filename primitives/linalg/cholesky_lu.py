"""Factorizations by elimination: cholesky, lu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import cusolver
from functorch_like.core import NotDefined, SampleInput, aval_of
from functorch_like.errors import ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.counted_loop import INDEX, counted_loop, piece
from functorch_like.primitives.base.rows_at import rows_at
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.cholesky_cpu import WRITTEN_OUT
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, nan, routine, square
from functorch_like.primitives.linalg.small_systems_cpu import LU
from functorch_like.primitives.linalg.triangular_solve import triangular_solve


def solved(a: Any, b: Any, *, left: bool = True, lower: bool = True, back: bool = False, unit: bool = False) -> Any:
    """A triangular system; `back` takes the adjoint of the matrix."""
    return triangular_solve(a, b, left_side=left, lower=lower, transpose_a=back, conjugate_a=back, unit_diagonal=unit)


# ------------------------------------------------------------------------------------------------------------ cholesky
def _cholesky_ref(x: Any) -> Any:
    factor, info = routine(x, "potrf")(x, lower=1, clean=1)
    return np.full_like(x, nan(x.dtype)) if info else factor


def _cholesky_lower(k: Stack, x: Any) -> Any:
    # The transpose of A is U^H U, and U the transpose of L. LAPACK lays matrices out by columns: nothing is copied.
    return _factorized(k, k.inline(M.transposed, x), {"uplo": "U"}, lambda u: M.tril(M.transposed(u)))


def _cholesky_lower_gpu(k: Stack, x: Any) -> Any:
    # For upper triangles cuSOLVER takes 2.5 times as long. To transpose takes a hundredth of it.
    return _factorized(k, x, {"lower": True}, M.tril)


def _factorized(k: Stack, x: Any, triangle: dict[str, Any], result: Callable[[Any], Any]) -> Any:
    """Call `potrf`, which gets its attribute for a triangle, and return the result of its factor."""
    outs = [k.outs[0], k.aval((), I32)]
    factor, info = k.call("potrf", [x], k.ins, outs, attrs=triangle, aliases=[(0, 0)])
    return k.or_nan(info, [k.inline(result, factor)], k.outs)[0]


def _cholesky_jvp(primals: Any, tangents: Any) -> Any:
    """L^-1 dL is the lower triangle of P = L^-1 dA L^-H, with half of the diagonal."""
    factor = cholesky(*primals)
    change = solved(factor, M.hermitian(tangents[0]))
    p = solved(factor, change, left=False, back=True)
    half = M.only(M.on_diagonal(p), elementwise.mul(p, structural.full_like(p, 0.5)))
    return factor, M.mm(factor, elementwise.add(M.tril(p, -1), half))


def _positive(x: Any) -> Any:
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1], dtype=x.dtype)


#: Of Hermitian positive definite matrices, of which only the lower triangle is read. NaN where it is not definite.
cholesky = linalg_primitive(
    "cholesky", (2,), shape=lambda x, *, dtype: [((square("cholesky", x),) * 2, dtype)],
    ref=_cholesky_ref, lower=_cholesky_lower, jvp=_cholesky_jvp, multiple_results=False, gpu=_cholesky_lower_gpu,
    alternatives=[WRITTEN_OUT],
    samples=lambda: [
        *(
            SampleInput((ShapedArray(s, d),), prepare=_positive)
            for s, d in [
                ((3, 3), "float32"), ((2, 1, 2, 2), "float64"), ((2, 3, 3), "complex64"), ((2, 2), "complex128"),
                ((0, 0), "float32"), ((0, 2, 2), "float32"), ((1, 1), "float32"),
            ]
        ),
        SampleInput((np.array([[1, 9], [2, 1]], np.float32),), smooth=False),
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ lu
def _lu_shape(x: Any, *, dtype: Any) -> Any:
    m, n = x
    return [((m, n), dtype), ((min(m, n),), I32), ((m,), I32)]


def _permutation(pivots: Any, size: int) -> Any:
    order = np.arange(size, dtype=np.int32)
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return order


def _lu_ref(x: Any) -> Any:
    factors, pivots, _ = routine(x, "getrf")(x)
    pivots = pivots.astype(np.int32)
    return factors, pivots, _permutation(pivots, x.shape[0])


def _lu_lower(k: Stack, x: Any) -> Any:
    factors, pivots, info = k.call("getrf", [x], k.ins, [*k.outs[:2], k.aval((), I32)], aliases=[(0, 0)])
    (factors,) = k.or_nan(info, [factors], k.outs[:1], fails="LT")  # a positive code means that it is singular
    one = k.e.full(1, k.outs[1])
    pivots = k.e.op("stablehlo.subtract", [pivots, one], [k.outs[1]])
    return [factors, pivots, _swaps(k.e, pivots, k.outs[1], k.outs[2])]


def _lu_jvp(primals: Any, tangents: Any) -> Any:
    """Use P A = L U, both made square by the identity: G = L^-1 dPA U^-1, dL = L tril(G, -1), dU = triu(G) U."""
    factors, pivots, order = lu(*primals)
    m, n = aval_of(factors).shape[-2:]
    size = min(m, n)
    left = M.padded(M.tril(M.block(factors, (0, m), (0, size)), -1), m, m)
    right = M.padded(M.triu(M.block(factors, (0, size), (0, n))), n, n)
    if n > m:  # ones for the rows that were added
        right = elementwise.select_n(_beyond(right, m), right, M.eye_like(right))
    g = solved(left, M.permuted(tangents[0], order), unit=True)
    g = solved(right, g, left=False, lower=False)
    below = M.tril(g, -1)
    change = elementwise.add(elementwise.add(M.mm(left, below), below), M.mm(M.triu(g), right))
    return [factors, pivots, order], [change, None, None]


def _beyond(x: Any, row: int) -> Any:
    shape = aval_of(x).shape
    return elementwise.ge(
        structural.iota(dtype=I32, shape=shape, dimension=len(shape) - 2), structural.full(shape, row, I32)
    )


def turned(x: Any) -> Any:
    """Rows reversed and a heavy diagonal before that, so that rows must change places."""
    return (x + 3 * np.eye(*x.shape[-2:], dtype=x.dtype))[..., ::-1, :]


#: P A = L U: both factors in one matrix (the diagonal of L is one), the rows swapped in turn, and their order.
lu = linalg_primitive(
    "lu", (2,), shape=_lu_shape, ref=_lu_ref, lower=_lu_lower, jvp=_lu_jvp, alternatives=[LU],
    samples=lambda: [
        SampleInput((ShapedArray(s, d),), prepare=turned)
        for s, d in [
            ((3, 3), "float32"), ((2, 4, 3), "float64"), ((2, 4), "complex64"), ((2, 1, 2, 2), "complex128"),
            ((0, 2), "float32"), ((3, 0), "float32"), ((0, 2, 2), "float32"), ((1, 1), "float32"),
        ]
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------- lu_pivots_to_permutation
def _swaps(e: Any, pivots: Any, aval: ShapedArray, out: ShapedArray) -> Any:
    """The order of rows after row i and row pivots[i] were swapped, for each i in turn: a loop, a kernel on GPUs."""
    if e.platform != "cpu":
        return cusolver.permutation(e, pivots, aval, out)
    lead, last = aval.shape[:-1], aval.ndim - 1
    one = aval.update(shape=(*lead, 1))
    flags, row = out.update(dtype=dtypes.bool_), out.update(shape=out.shape[-1:])
    dims = tuple(range(len(lead)))

    def step(f: Any, i: Any, order: Any, p: Any, places: Any) -> list[Any]:
        starts = [f.full(0, INDEX)] * last + [i]
        column = lambda x: piece(f, x, starts, one)
        over = lambda x: f.broadcast_in_dim(x, out, (*dims, last))
        all_places, j = f.broadcast_in_dim(places, out, (last,)), column(p)
        at_i = f.compare("EQ", all_places, f.broadcast_in_dim(i, out, ()), flags, "SIGNED")
        at_j = f.compare("EQ", all_places, over(j), flags, "SIGNED")
        swapped = f.op("stablehlo.select", [at_j, over(column(order)), order], [out])
        swapped = f.op("stablehlo.select", [at_i, over(rows_at(f, order, j, one, one, last)), swapped], [out])
        return [swapped, p, places]

    # Places are read from memory: compilers make vector instructions of that, but not of computed counters.
    places = e.op("stablehlo.iota", [], [row], {"iota_dimension": e.i64(0)})
    start = [e.broadcast_in_dim(places, out, (last,)), pivots, places]
    return counted_loop(e, aval.shape[-1], start, [out, aval, row], step)


def _order_shape(pivots: Any, *, dtype: Any, permutation_size: int) -> Any:
    if permutation_size < pivots[0]:
        raise ShapeError(f"{pivots[0]} pivots for {permutation_size} rows", fix="give at least as many rows as pivots")
    return [((permutation_size,), I32)]


_PIVOTS = np.array([[2, 1, 3], [0, 3, 3]], np.int32)
lu_pivots_to_permutation = linalg_primitive(
    "lu_pivots_to_permutation", (1,), shape=_order_shape, takes=(I32,), multiple_results=False,
    ref=lambda pivots, *, permutation_size: _permutation(pivots, permutation_size),
    lower=lambda k, pivots, *, permutation_size: _swaps(k.e, pivots, k.ins[0], k.outs[0]),
    jvp=NotDefined("pivots are integers, and have no derivative; use stop_gradient where a float is involved"),
    samples=lambda: [
        SampleInput((_PIVOTS[0],), {"permutation_size": 4}), SampleInput((_PIVOTS,), {"permutation_size": 5}),
        SampleInput((_PIVOTS[:0],), {"permutation_size": 4}),
    ],
)  # fmt: skip
