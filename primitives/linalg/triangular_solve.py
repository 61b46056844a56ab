"""Linear systems that are solved by substitution: triangular_solve, tridiagonal_solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import lapack
from functorch_like.core import BatchAxis, SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.bilinear import both_unknown
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, nan, routine, square, transposed_aval
from functorch_like.primitives.linalg.small_systems_cpu import TRIANGULAR


# ---------------------------------------------------------------------------------------------------- triangular_solve
def _shape(a: Any, b: Any, *, dtype: Any, left_side: bool, **_: Any) -> Any:
    n = square("triangular_solve", a)
    if b[0 if left_side else 1] != n:
        raise ShapeError(
            f"a triangular matrix of size {n} on the {'left' if left_side else 'right'} of {b[0]} by {b[1]}",
            fix=f"give b {n} {'rows' if left_side else 'columns'}",
        )
    return [(b, dtype)]


def _ref(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    from scipy.linalg import blas

    trsm = getattr(blas, lapack.named("trsm", a.dtype))
    a = np.conj(a) if conjugate_a else a
    return np.ascontiguousarray(
        trsm(1.0, a, b, side=not left_side, lower=lower, trans_a=int(transpose_a), diag=int(unit_diagonal))
    )


def _lower(
    k: Stack, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    conjugate_a = conjugate_a and k.ins[0].dtype.kind == "c"
    if conjugate_a and not transpose_a:
        a = k.inline(lambda a, b: elementwise.conj(a), a, b)
    # The transposed equation: LAPACK lays matrices out by columns, so the transpose of an array needs no copy.
    attrs = {
        "side": "R" if left_side else "L",
        "uplo": "U" if lower else "L",
        "trans_x": "N" if not transpose_a else "C" if conjugate_a else "T",
        "diag": "U" if unit_diagonal else "N",
    }
    a, b = k.inline(lambda a, b: (M.transposed(a), M.transposed(b)), a, b)
    ins = [transposed_aval(aval) for aval in k.ins]
    (x,) = k.call("trsm", [a, b], ins, ins[1:], attrs=attrs, aliases=[(1, 0)])
    return k.inline(M.transposed, x, ins=ins[1:])


def _lower_gpu(
    k: Stack, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    if conjugate_a and not transpose_a:
        a = k.inline(lambda a, b: M.conj(a), a, b)
    how = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
    attrs = {
        "left_side": k.e.flag(left_side),
        "lower": k.e.flag(lower),
        "unit_diagonal": k.e.flag(unit_diagonal),
        "transpose_a": k.e.attr(f"#stablehlo<transpose {how}>"),
    }
    return k.e.op("stablehlo.triangular_solve", [a, b], k.outs, attrs)


def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """op(A) X = B: op(A) dX = dB - op(dA) X."""
    (a, b), (da, db) = primals, tangents
    x = triangular_solve(a, b, **params)
    if da is not None:
        shift = 1 if params["unit_diagonal"] else 0
        da = M.tril(da, -shift) if params["lower"] else M.triu(da, shift)
        da = M.transposed(da) if params["transpose_a"] else da
        da = M.conj(da) if params["conjugate_a"] else da
        change = M.mm(da, x) if params["left_side"] else M.mm(x, da)
        db = elementwise.neg(change) if db is None else elementwise.sub(db, change)
    return x, triangular_solve(a, db, **params)


def _transpose(ct: Any, args: Any, *, transpose_a: bool, **params: Any) -> Any:
    a, b = args
    if not isinstance(b, UndefinedPrimal):
        return [None, None]
    if both_unknown("triangular_solve", a, b):
        return [None, structural.zeros(aval_of(ct))]
    return [None, triangular_solve(a, ct, transpose_a=not transpose_a, **params)]


def _batch(axis: BatchAxis, args: Any, dims: Any, *, left_side: bool, **params: Any) -> Any:
    """One matrix for all: the mapped axis of b joins its columns (or rows), and the matrix is used once."""
    (a, b), (at, bt) = args, dims
    params["left_side"] = left_side
    if at is not None:
        a, b = structural.move(a, at, 0), structural.widen(b, axis.size) if bt is None else structural.move(b, bt, 0)
        return triangular_solve(a, b, **params), 0
    return folded(lambda b: triangular_solve(a, b, **params), b, bt, -1 if left_side else -2)


def folded(solve: Any, b: Any, at: int, dim: int) -> Any:
    """Apply a function of the columns (dim -1) or rows (-2) of b, one by one, with a mapped axis joined to them."""
    b = structural.move(b, at, aval_of(b).ndim - 1 + dim)  # just before the columns, or the rows
    shape = aval_of(b).shape
    place = len(shape) - 1 + dim
    joined = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    return structural.reshape(solve(structural.reshape(b, shape=joined)), shape=shape), place


def _samples() -> list[SampleInput]:
    def one(
        a: Any, b: Any, left: bool = True, lower: bool = True, transpose: bool = False, conj: bool = False,
        unit: bool = False, dtype: str = "float32",
    ) -> SampleInput:  # fmt: skip
        params = {
            "left_side": left, "lower": lower, "transpose_a": transpose, "conjugate_a": conj, "unit_diagonal": unit,
        }  # fmt: skip
        return SampleInput((ShapedArray(a, dtype), ShapedArray(b, dtype)), params, (-1.0, 1.0), prepare=_heavy)

    return [
        one((3, 3), (3, 2)),
        one((3, 3), (2, 3), left=False, lower=False),
        one((2, 3, 3), (2, 3, 2), transpose=True),
        one((2, 3, 3), (2, 2, 3), left=False, transpose=True),
        one((3, 3), (3, 3), lower=False, unit=True),
        one((3, 3), (3, 2), conj=True, dtype="complex64"),
        one((3, 3), (3, 2), conj=True, transpose=True, dtype="complex128"),
        one((2, 2), (1, 2), left=False, transpose=True, unit=True, dtype="complex64"),
        one((0, 0), (0, 2)), one((3, 3), (3, 0)), one((0, 2, 2), (0, 2, 1)), one((1, 1), (1, 1), dtype="float64"),
    ]  # fmt: skip


def _heavy(x: Any) -> Any:
    """Square matrices with a heavy diagonal: well-conditioned triangles."""
    return x + 2 * np.eye(x.shape[-1], dtype=x.dtype) if x.shape[-1] == x.shape[-2] else x


triangular_solve = linalg_primitive(
    "triangular_solve", (2, 2), shape=_shape, ref=_ref, lower=_lower, jvp=_jvp, transpose=_transpose, batch=_batch,
    samples=_samples, multiple_results=False, gpu=_lower_gpu, linear=1, alternatives=[TRIANGULAR],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------- tridiagonal_solve
def _tri_shape(dl: Any, d: Any, du: Any, b: Any, *, dtype: Any) -> Any:
    if not dl == d == du == b[:1]:
        raise ShapeError(
            f"diagonals of {dl[0]}, {d[0]} and {du[0]} entries, and a right-hand side of {b[0]} rows",
            fix="give all of them the same length; dl[0] and du[-1] are not read",
        )
    return [(b, dtype)]


def _tri_ref(dl: Any, d: Any, du: Any, b: Any) -> Any:
    if len(d) == 1:
        return b / d[:, None]
    *_, x, info = routine(d, "gtsv")(dl[1:], d, du[:-1], b)
    return np.full_like(b, nan(b.dtype)) if info else np.ascontiguousarray(x)


def _tri_lower(k: Stack, dl: Any, d: Any, du: Any, b: Any) -> Any:
    *_, x, info = k.call("gtsv", [dl, d, du, b], k.ins, [*k.ins, k.aval((), I32)], aliases=[(3, 3)])
    return k.or_nan(info, [x], k.outs)[0]


def _tri_lower_gpu(k: Stack, *operands: Any) -> Any:
    """Fill with zeros outside of the matrix, and up to three rows, as the kernel requires: those added mean 1 x = 0."""
    n, columns = k.ins[3].shape[-2:]
    size = max(n, 3)

    def prepared(dl: Any, d: Any, du: Any, b: Any) -> Any:
        dl, du = _shifted(_shifted(dl, 1, -1), -1, -1), _shifted(_shifted(du, -1, -1), 1, -1)
        more = lambda x, fill: M.longer(x, size - n, fill)
        return more(dl, 0), more(d, 1), more(du, 0), M.padded(b, size, columns)

    avals = [*[k.aval((size,))] * 3, k.aval((size, columns))]
    (x,) = k.call("gtsv", k.inline(prepared, *operands), avals, avals[3:], aliases=[(3, 0)])
    return k.inline(lambda x: M.block(x, (0, n), (0, columns)), x, ins=avals[3:])


def _tri_product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    """Multiply a tridiagonal matrix by x; a diagonal that is None is zero."""
    m = aval_of(x).shape[-2]
    terms = []
    for diagonal, shift in ((dl, -1), (d, 0), (du, 1)):
        if diagonal is not None:
            terms.append(elementwise.mul(M.rows(diagonal, x), _shifted(x, shift) if m else x))
    out = terms[0]
    for t in terms[1:]:
        out = elementwise.add(out, t)
    return out


def _shifted(x: Any, by: int, dim: int = -2) -> Any:
    """Entry i + by in place i, zero where there is none."""
    if not by:
        return x
    aval = aval_of(x)
    config = [(0, 0, 0)] * aval.ndim
    config[dim] = (-by, by, 0)
    return structural.pad(x, np.zeros((), aval.dtype), padding_config=tuple(config))


def _tri_jvp(primals: Any, tangents: Any) -> Any:
    *diagonals, b = primals
    below, middle, above, db = tangents
    x = tridiagonal_solve(*diagonals, b)
    if any(c is not None for c in (below, middle, above)):
        change = _tri_product(below, middle, above, x)
        db = elementwise.neg(change) if db is None else elementwise.sub(db, change)
    return x, tridiagonal_solve(*diagonals, db)


def _tri_transpose(ct: Any, args: Any) -> Any:
    dl, d, du, b = args
    if not isinstance(b, UndefinedPrimal):
        return [None] * 4
    if isinstance(d, UndefinedPrimal):  # and b too, so there is nothing in them
        return [None, None, None, structural.zeros(aval_of(ct))]
    dl, du = (
        structural.zeros(x.aval) if isinstance(x, UndefinedPrimal) else x for x in (dl, du)
    )  # of size 1 they are not read
    return [None, None, None, tridiagonal_solve(_shifted(du, -1, -1), d, _shifted(dl, 1, -1), ct)]


def _tri_samples() -> list[SampleInput]:
    def one(lead: Any, m: int, n: int, dtype: str = "float32") -> SampleInput:
        vector, matrix = ShapedArray((*lead, m), dtype), ShapedArray((*lead, m, n), dtype)
        return SampleInput((vector, vector, vector, matrix), {}, (1.0, 2.0))

    return [
        one((), 4, 2), one((2,), 3, 1), one((2, 1), 3, 2, "complex64"), one((), 1, 2, "float64"), one((), 5, 1),
        one((), 3, 0), one((), 0, 2), one((0,), 3, 1), one((), 2, 2, "complex128"),
    ]  # fmt: skip


#: dl[0] and du[-1], which are outside of the matrix, are not read.
tridiagonal_solve = linalg_primitive(
    "tridiagonal_solve", (1, 1, 1, 2), shape=_tri_shape, ref=_tri_ref, lower=_tri_lower, jvp=_tri_jvp,
    transpose=_tri_transpose, samples=_tri_samples, multiple_results=False, gpu=_tri_lower_gpu, linear=3,
)  # fmt: skip
