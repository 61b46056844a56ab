"""Factorizations with Householder reflections: qr and its parts, hessenberg and tridiagonal forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, aval_of
from functorch_like.errors import ShapeError, UnsupportedError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.cholesky_lu import solved
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, no_jvp, routine, square, stacked
from functorch_like.primitives.linalg.triangular_solve import folded


# --------------------------------------------------------------------------------------- geqrf, householder_product
def _geqrf_ref(x: Any) -> Any:
    return routine(x, "geqrf")(x)[:2]


#: R in the upper triangle, the Householder vectors below it and their factors apart, as LAPACK stores them.
geqrf = linalg_primitive(
    "geqrf", (2,), ref=_geqrf_ref, shape=lambda x, *, dtype: [(x, dtype), ((min(x),), dtype)],
    lower=lambda k, x: k.call("geqrf", [x], k.ins, k.outs, aliases=[(0, 0)]),
    jvp=no_jvp("geqrf", "differentiate qr instead"),
    samples=lambda: [
        SampleInput((ShapedArray(s, d),))
        for s, d in [
            ((3, 2), "float32"), ((2, 2, 3), "float64"), ((2, 2), "complex64"), ((2, 3, 3), "complex128"),
            ((0, 2), "float32"), ((0, 2, 2), "float32"),
        ]
    ],
)  # fmt: skip


def _product_shape(a: Any, taus: Any, *, dtype: Any) -> Any:
    if taus[0] > min(a):
        raise ShapeError(f"{taus[0]} reflections in a matrix of {a[0]} by {a[1]}", fix="take both from one geqrf")
    if a[1] > a[0]:
        raise ShapeError(f"a product of reflections of {a[0]} by {a[1]}", fix="give no more columns than rows")
    return [(a, dtype)]


def _product_sample(shape: Any, count: int, dtype: str) -> SampleInput:
    return SampleInput((ShapedArray(shape, dtype), ShapedArray((*shape[:-2], count), dtype)))


#: The first columns of the product of the reflections that geqrf, hessenberg or tridiagonal gave.
householder_product = linalg_primitive(
    "householder_product", (2, 1), shape=_product_shape, multiple_results=False,
    ref=lambda a, taus: routine(a, "orgqr")(a, taus)[0],
    lower=lambda k, a, taus: k.call("orgqr", [a, taus], k.ins, k.outs, aliases=[(0, 0)])[0],
    jvp=no_jvp("householder_product", "differentiate qr instead"),
    samples=lambda: [
        _product_sample((3, 2), 2, "float32"), _product_sample((2, 3, 3), 2, "float64"),
        _product_sample((2, 2), 2, "complex64"), _product_sample((3, 0), 0, "float32"),
        _product_sample((0, 3, 2), 2, "complex128"),
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- ormqr
def _ormqr_shape(a: Any, taus: Any, c: Any, *, dtype: Any, left: bool, transpose: bool) -> Any:
    if not 0 < taus[0] <= min(a):
        raise ShapeError(f"{taus[0]} reflections in a matrix of {a[0]} by {a[1]}", fix="take both from one geqrf")
    if c[0 if left else 1] != a[0]:
        side = f"{c[0]} rows on the right" if left else f"{c[1]} columns on the left"
        raise ShapeError(f"a matrix of {side} of reflections of size {a[0]}", fix=f"give one with {a[0]}")
    return [(c, dtype)]


def _ormqr_ref(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    adjoint = "C" if a.dtype.kind == "c" else "T"
    multiply = routine(a, "ormqr")
    given = ("L" if left else "R", adjoint if transpose else "N", a[:, : len(taus)], taus, c)
    space = int(multiply(*given, -1)[1][0].real)
    return np.ascontiguousarray(multiply(*given, space)[0])


def _ormqr_by_q(k: Stack, *operands: Any, left: bool, transpose: bool) -> Any:
    """Through Q as a matrix, where there is no kernel that applies the reflections."""

    def multiply(a: Any, taus: Any, c: Any) -> Any:
        m, count = aval_of(a).shape[-2], aval_of(taus).shape[-1]
        taus = M.longer(taus, m - count, 0)
        q = householder_product(M.padded(M.block(a, (0, m), (0, count)), m, m), taus)
        q = M.adjoint(q) if transpose else q
        return M.mm(q, c) if left else M.mm(c, q)

    return k.inline(multiply, *operands)


def _ormqr_jvp(primals: Any, tangents: Any, *, left: bool, transpose: bool) -> Any:
    """Use Q = I - V T V^H with T = (I + D U)^-1 D: V has the vectors, D their factors, U the upper part of V^H V.

    This is the compact WY form of Schreiber and Van Loan, "A storage-efficient WY representation for products of
    Householder transformations" (1989).
    """
    (a, taus, c), (da, dtaus, dc) = primals, tangents
    multiply = lambda c: ormqr(a, taus, c, left=left, transpose=transpose)
    change = None if dc is None else multiply(dc)
    if da is not None or dtaus is not None:
        da = structural.zeros(aval_of(a)) if da is None else da
        dtaus = structural.zeros(aval_of(taus)) if dtaus is None else dtaus
        turned = _change_of_q(a, taus, da, dtaus, c if left else M.adjoint(c), adjoint=transpose == left)
        turned = turned if left else M.adjoint(turned)
        change = turned if change is None else elementwise.add(change, turned)
    return multiply(c), change


def _change_of_q(a: Any, taus: Any, da: Any, dtaus: Any, c: Any, *, adjoint: bool) -> Any:
    """The change of Q, or of its adjoint, times c."""
    m, count = aval_of(a).shape[-2], aval_of(taus).shape[-1]
    below = M.tril(M.block(a, (0, m), (0, count)), -1)
    v, dv = elementwise.add(below, M.eye_like(below)), M.tril(M.block(da, (0, m), (0, count)), -1)
    inner = M.mm(M.adjoint(v), v)
    u, du = M.triu(inner, 1), M.triu(elementwise.add(M.mm(M.adjoint(dv), v), M.mm(M.adjoint(v), dv)), 1)
    d, dd = M.rows(taus, u), M.rows(dtaus, u)  # as factors of the rows
    system = elementwise.mul(d, u)
    inverse = lambda x: solved(system, x, lower=False, unit=True)
    t = inverse(M.only(M.on_diagonal(u), d))
    dsystem = elementwise.add(elementwise.mul(dd, u), elementwise.mul(d, du))
    dt = inverse(elementwise.sub(M.only(M.on_diagonal(u), dd), M.mm(dsystem, t)))
    t, dt = (M.adjoint(t), M.adjoint(dt)) if adjoint else (t, dt)
    z = M.mm(M.adjoint(v), c)
    terms = M.mm(dv, t, z), M.mm(v, dt, z), M.mm(v, t, M.adjoint(dv), c)
    return elementwise.neg(elementwise.add(elementwise.add(*terms[:2]), terms[2]))


def _ormqr_transpose(ct: Any, args: Any, *, left: bool, transpose: bool) -> Any:
    a, taus, _ = args
    return [None, None, M.conj(ormqr(a, taus, M.conj(ct), left=left, transpose=not transpose))]


def _ormqr_batch(axis: BatchAxis, args: Any, dims: Any, **params: Any) -> Any:
    """One Q for all: the mapped axis of c joins its columns (or rows)."""
    a, taus, c = args
    if dims[0] is None and dims[1] is None:
        return folded(lambda c: ormqr(a, taus, c, **params), c, dims[2], -1 if params["left"] else -2)
    return ormqr(*stacked(axis, args, dims), **params), 0


def _ormqr_sample(m: int, n: int, c: Any, dtype: str, lead: Any = (), **how: bool) -> SampleInput:
    params = {"left": True, "transpose": False, **how}
    shapes = (*lead, m, n), (*lead, min(m, n)), (*lead, *c)
    return SampleInput(tuple(ShapedArray(shape, dtype) for shape in shapes), params)


#: The product of a matrix and the square Q that is the product of reflections, or its adjoint.
ormqr = linalg_primitive(
    "ormqr", (2, 1, 2), shape=_ormqr_shape, ref=_ormqr_ref, multiple_results=False, linear=2,
    lower=lambda k, *xs, left, transpose: k.call(
        "ormqr", xs, k.ins, k.outs, attrs={"left": left, "transpose": transpose}, aliases=[(2, 0)]
    )[0],
    gpu=_ormqr_by_q, jvp=_ormqr_jvp, transpose=_ormqr_transpose, batch=_ormqr_batch,
    samples=lambda: [
        _ormqr_sample(4, 2, (4, 3), "float32"), _ormqr_sample(4, 2, (3, 4), "float64", left=False),
        _ormqr_sample(3, 3, (3, 1), "float32", (2,), transpose=True),
        _ormqr_sample(2, 3, (2, 2), "complex64", transpose=True), _ormqr_sample(3, 2, (3, 2), "complex128", (2,)),
        _ormqr_sample(3, 2, (1, 3), "complex128", left=False, transpose=True),
        _ormqr_sample(1, 1, (1, 1), "float64"), _ormqr_sample(3, 2, (3, 0), "float32"),
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- geqp3
def _geqp3_ref(x: Any) -> Any:
    packed, pivots, taus, *_ = routine(x, "geqp3")(x)
    return packed, (pivots - 1).astype(np.int32), taus


def _geqp3_lower(k: Stack, x: Any) -> Any:
    free = k.e.full(0, k.outs[1])  # no column has to come first
    ins = [k.ins[0], k.outs[1]]
    packed, pivots, taus = k.call("geqp3", [x, free], ins, k.outs, aliases=[(0, 0), (1, 1)])
    return [packed, k.e.op("stablehlo.subtract", [pivots, k.e.full(1, k.outs[1])], [k.outs[1]]), taus]


#: As geqrf, of the matrix with its columns in an order that makes the diagonal of R fall; and that order.
geqp3 = linalg_primitive(
    "geqp3", (2,), ref=_geqp3_ref, lower=_geqp3_lower, jvp=no_jvp("geqp3", "differentiate qr instead"),
    shape=lambda x, *, dtype: [(x, dtype), ((x[1],), I32), ((min(x),), dtype)],
    samples=lambda: [
        SampleInput((ShapedArray(s, d),))
        for s, d in [
            ((3, 2), "float32"), ((2, 2, 3), "float64"), ((2, 2), "complex64"), ((3, 3), "complex128"),
            ((0, 2), "float32"),
        ]
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ qr
def _qr_shape(x: Any, *, dtype: Any, full_matrices: bool, pivoting: bool = False) -> Any:
    m, n = x
    k = m if full_matrices else min(m, n)
    return [((m, k), dtype), ((k, n), dtype), *([((n,), I32)] if pivoting else [])]


def _qr_ref(x: Any, *, full_matrices: bool, pivoting: bool = False) -> Any:
    m, n = x.shape
    k = m if full_matrices else min(m, n)
    packed, *order, taus = _geqp3_ref(x) if pivoting else _geqrf_ref(x)
    whole = np.zeros((m, k), x.dtype)
    whole[:, : min(k, n)] = packed[:, :k]
    return routine(x, "orgqr")(whole, taus)[0], np.triu(packed[:k]), *order


def _qr_lower(k: Stack, x: Any, *, full_matrices: bool, pivoting: bool = False) -> Any:
    def factor(x: Any) -> Any:
        m, n = aval_of(x).shape[-2:]
        size = m if full_matrices else min(m, n)
        packed, *order, taus = geqp3(x) if pivoting else geqrf(x)
        whole = M.padded(M.block(packed, (0, m), (0, min(size, n))), m, size)
        return householder_product(whole, taus), M.triu(M.block(packed, (0, size), (0, n))), *order

    return k.inline(factor, x)


def _qr_jvp(primals: Any, tangents: Any, *, full_matrices: bool, pivoting: bool = False) -> Any:
    """Use C = Q^H dA R^-1 and W its part that keeps Q orthogonal: dQ = (dA R^-1 - Q C) + Q W, dR = Q^H dA - W R.

    A wide matrix has the Q of its first columns. The diagonal of R is real, as LAPACK makes it. Pivoted columns stay in
    the order that they have.
    """
    (x,), (dx,) = primals, tangents
    m, n = aval_of(x).shape[-2:]
    if full_matrices and m > n:
        raise UnsupportedError(
            f"the last {m - n} columns of the complete Q of a {m} by {n} matrix are any basis of what is left, so they "
            "have no derivative",
            fix="use mode='reduced' (full_matrices=False)",
        )
    q, r, *order = qr(x, full_matrices=full_matrices, pivoting=pivoting)
    if pivoting:
        dx = M.transposed(M.permuted(M.transposed(dx), order[0]))
    k = min(m, n)
    c = solved(M.block(r, (0, k), (0, k)), M.block(dx, (0, m), (0, k)), left=False, lower=False)
    projected = M.mm(M.adjoint(q), c)
    below = M.tril(projected, -1)
    turn = elementwise.sub(below, M.adjoint(below))
    middle = M.only(M.on_diagonal(projected), projected)
    turn = elementwise.add(turn, elementwise.sub(middle, M.to(M.real(middle), aval_of(q).dtype)))
    dq = elementwise.add(elementwise.sub(c, M.mm(q, projected)), M.mm(q, turn))
    return [q, r, *order], [dq, M.triu(elementwise.sub(M.mm(M.adjoint(q), dx), M.mm(turn, r))), *([None] * len(order))]


qr = linalg_primitive(
    "qr", (2,), shape=_qr_shape, ref=_qr_ref, lower=_qr_lower, jvp=_qr_jvp,
    samples=lambda: [
        SampleInput(
            (ShapedArray(s, d),), {"full_matrices": full} | dict.fromkeys(["pivoting"] * bool(how), True),
            prepare=lambda x: x + 2 * np.eye(*x.shape[-2:]),
        )
        for s, d, full, *how in [
            ((3, 2), "float32", False), ((2, 3, 2), "float64", False), ((2, 2, 3), "float32", True),
            ((2, 3), "complex128", False), ((3, 3), "complex64", True), ((4, 2), "complex64", False),
            ((0, 2), "float32", True), ((3, 0), "float32", False), ((0, 2, 2), "float32", False),
            ((1, 1), "float32", False), ((3, 2), "float32", False, "pivots"), ((2, 2, 3), "complex64", True, "pivots"),
            ((3, 4), "float64", False, "pivots"),
        ]
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------- hessenberg, tridiagonal
def _hessenberg_ref(x: Any) -> Any:
    return routine(x, "gehrd")(x)[:2] if len(x) > 1 else (x, np.zeros((0,), x.dtype))


def _hessenberg_lower(k: Stack, x: Any) -> Any:
    n = k.ins[0].shape[-1]
    attrs = {"low": 1, "high": n}
    packed, taus, info = k.call("gehrd", [x], k.ins, [*k.outs, k.aval((), I32)], attrs=attrs, aliases=[(0, 0)])
    return k.or_nan(info, [packed, taus], k.outs)


def _size(name: str, x: Any) -> int:
    n = square(name, x)
    if not n:
        raise ShapeError(f"{name} of a matrix without rows", fix="give at least one row")
    return n


def _square_samples(**params: Any) -> list[SampleInput]:
    return [
        SampleInput((ShapedArray(s, d),), params)
        for s, d in [
            ((3, 3), "float32"), ((2, 4, 4), "float64"), ((2, 2), "complex64"), ((2, 3, 3), "complex128"),
            ((1, 1), "float32"), ((0, 2, 2), "float32"),
        ]
    ]  # fmt: skip


#: Upper Hessenberg form, with the Householder vectors below its first subdiagonal, and their factors.
hessenberg = linalg_primitive(
    "hessenberg", (2,), ref=_hessenberg_ref, lower=_hessenberg_lower, samples=_square_samples,
    shape=lambda x, *, dtype: [(x, dtype), ((_size("hessenberg", x) - 1,), dtype)], gpu="host",
    jvp=no_jvp("hessenberg", "differentiate eig or eigh instead"),
)  # fmt: skip


def _tridiagonal_shape(x: Any, *, dtype: Any, lower: bool) -> Any:
    n, real = _size("tridiagonal", x), dtypes.real_part(dtype)
    return [(x, dtype), ((n,), real), ((n - 1,), real), ((n - 1,), dtype)]


def _tridiagonal_ref(x: Any, *, lower: bool) -> Any:
    return routine(x, "sytrd")(x, lower=int(lower))[:4]


def _tridiagonal_lower(k: Stack, x: Any, *, lower: bool) -> Any:
    return _reduced(k, x, {"uplo": "L" if lower else "U"})


def _reduced(k: Stack, x: Any, attrs: dict[str, Any]) -> Any:
    *outs, info = k.call("sytrd", [x], k.ins, [*k.outs, k.aval((), I32)], attrs=attrs, aliases=[(0, 0)])
    return k.or_nan(info, outs, k.outs)


#: The tridiagonal form of a Hermitian matrix: Householder vectors, diagonal, off-diagonal, factors.
tridiagonal = linalg_primitive(
    "tridiagonal", (2,), shape=_tridiagonal_shape, ref=_tridiagonal_ref, lower=_tridiagonal_lower,
    gpu=lambda k, x, *, lower: _reduced(k, x, {"lower": lower}),
    jvp=no_jvp("tridiagonal", "differentiate eigh instead"),
    samples=lambda: _square_samples(lower=True) + _square_samples(lower=False)[:4],
)  # fmt: skip
