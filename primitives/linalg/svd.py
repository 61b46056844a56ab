"""Singular values: svd, and pinv, which is made of it.

Where two singular values are equal, or one is zero, the vectors have no derivative: it comes out infinite or NaN. The
derivative of the values is finite. The vectors of complex matrices are determined up to a phase, which the derivative
does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput, aval_of
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, nan, routine
from functorch_like.primitives.reductions import reductions

#: Algorithms: the platform's best; by QR iterations; by Jacobi rotations, which is slower, and on GPUs alone.
ALGORITHMS = ("default", "qr", "jacobi")
#: On GPUs rotations are faster up to this size.
SMALL = 1024


def _svd_shape(x: Any, *, dtype: Any, full_matrices: bool, compute_uv: bool, algorithm: str = "default") -> Any:
    if algorithm not in ALGORITHMS:
        raise ArgumentError(f"algorithm={algorithm!r} is unknown", fix=f"use one of {', '.join(ALGORITHMS)}")
    m, n = x
    k = min(m, n)
    outs = [((k,), dtypes.real_part(dtype))]
    if compute_uv:
        outs += [((m, m if full_matrices else k), dtype), ((n if full_matrices else k, n), dtype)]
    return outs


def _svd_ref(x: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str = "default") -> Any:
    flags = {"compute_uv": int(compute_uv), "full_matrices": int(full_matrices)}
    u, s, vt, info = routine(x, "gesdd" if algorithm == "default" else "gesvd")(x, **flags)
    outs = (s, u, vt) if compute_uv else (s,)
    return tuple(np.full_like(o, nan(o.dtype)) for o in outs) if info else outs


def _svd_lower(k: Stack, x: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str = "default") -> Any:
    if algorithm == "jacobi":
        raise UnsupportedError(
            "jaxlib has no kernel for singular values by Jacobi rotations on CPUs",
            fix="use algorithm='default' or 'qr'",
        )
    m, n = k.ins[0].shape[-2:]
    size = min(m, n)
    vectors = k.outs[1:] if compute_uv else [k.aval((m, size)), k.aval((size, n))]
    attrs = {"mode": "N" if not compute_uv else "A" if full_matrices else "S"}
    outs = [k.ins[0], k.outs[0], *vectors, k.aval((), I32)]
    routine = "gesdd" if algorithm == "default" else "gesvd"
    _, s, u, vt, info = k.call(routine, [x], k.ins, outs, attrs=attrs, aliases=[(0, 0)])
    return k.or_nan(info, [s, u, vt][: len(k.outs)], k.outs)


def _svd_lower_gpu(k: Stack, x: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str = "default") -> Any:
    m, n = k.ins[0].shape[-2:]
    size, info = min(m, n), k.aval((), I32)
    attrs = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    if algorithm == "jacobi" or (algorithm == "default" and max(m, n) <= SMALL):
        left, right = k.aval((m, m if full_matrices else size)), k.aval((n, n if full_matrices else size))
        outs = [k.ins[0], k.outs[0], left, right, info]
        _, s, u, v, code = k.call("gesvdj", [x], k.ins, outs, attrs=attrs, aliases=[(0, 0)])
        vt = k.inline(M.adjoint, v, ins=[right])
    else:  # the kernel needs no fewer rows than columns
        wide = m < n
        m, n = max(m, n), size
        x = k.inline(M.adjoint, x) if wide else x
        left, right = k.aval((m, m if full_matrices else n)), k.aval((n, n))
        aval = k.aval((m, n))
        outs, attrs = [aval, k.outs[0], left, right, info], attrs | {"transposed": False}
        _, s, u, vt, code = k.call("gesvd", [x], [aval], outs, attrs=attrs, aliases=[(0, 0)])
        if wide:
            u, vt = k.inline(M.adjoint, vt, ins=[right]), k.inline(M.adjoint, u, ins=[left])
    return k.or_nan(code, [s, u, vt][: len(k.outs)], k.outs)


def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, algorithm: str = "default") -> Any:
    """Use P = U^H dA V: ds = diag P; U and V turn by the rest of P, and out of their own spaces."""
    (x,), (dx,) = primals, tangents
    m, n = aval_of(x).shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise UnsupportedError(
            f"in the complete U and V of a {m} by {n} matrix some vectors are any basis of what is left, and have no "
            "derivative",
            fix="use full_matrices=False",
        )
    s, u, vt = svd(x, full_matrices=False, compute_uv=True, algorithm=algorithm)
    uh, v = M.adjoint(u), M.adjoint(vt)
    p = M.mm(uh, dx, v)
    ds = M.real(M.diagonal(p))
    if not compute_uv:
        return [s], [ds]
    ph = M.adjoint(p)
    gaps = M.differences(elementwise.square(s), p)
    of_rows, of_columns = M.rows(s, p), M.columns(s, p)
    turn_u = elementwise.mul(gaps, elementwise.add(elementwise.mul(p, of_columns), elementwise.mul(of_rows, ph)))
    turn_v = elementwise.mul(gaps, elementwise.add(elementwise.mul(of_rows, p), elementwise.mul(ph, of_columns)))
    if aval_of(p).dtype.kind == "c":  # the phase of a pair, shared by both
        phase = M.only(
            M.on_diagonal(p),
            elementwise.div(elementwise.sub(p, ph), elementwise.mul(of_columns, structural.full_like(p, 4))),
        )
        turn_u, turn_v = elementwise.add(turn_u, phase), elementwise.sub(turn_v, phase)
    du, dv = M.mm(u, turn_u), M.mm(v, turn_v)
    if m > n:
        y = M.mm(dx, v)
        du = elementwise.add(du, elementwise.div(elementwise.sub(y, M.mm(u, uh, y)), M.columns(s, y)))
    if n > m:
        y = M.mm(M.adjoint(dx), u)
        dv = elementwise.add(dv, elementwise.div(elementwise.sub(y, M.mm(v, vt, y)), M.columns(s, y)))
    return [s, u, vt], [ds, du, M.adjoint(dv)]


def _apart(x: Any) -> Any:
    """Singular values apart from each other and from zero."""
    m, n = x.shape[-2:]
    return x * 0.3 + (np.eye(m, n) * (1 + np.arange(n)) * 1.5).astype(x.dtype)


#: Singular values from the largest to the smallest, the left vectors in columns and the right ones in rows.
svd = linalg_primitive(
    "svd", (2,), shape=_svd_shape, ref=_svd_ref, lower=_svd_lower, jvp=_svd_jvp,
    gpu=_svd_lower_gpu,
    samples=lambda: [
        SampleInput(
            (ShapedArray(s, d),),
            {"full_matrices": full, "compute_uv": uv} | dict(zip(["algorithm"], how, strict=False)),
            smooth=not (d[0] == "c" and uv), prepare=_apart,
        )
        for s, d, full, uv, *how in [
            ((3, 2), "float32", False, True), ((2, 2, 3), "float64", False, True), ((3, 3), "float32", True, True),
            ((2, 3, 2), "float32", False, False), ((3, 2), "complex64", False, True),
            ((2, 3), "complex128", False, False),
            ((2, 2, 2), "complex64", True, True), ((0, 2), "float32", True, False), ((3, 0), "float32", False, True),
            ((0, 2, 2), "float32", False, True), ((1, 1), "float32", False, True),
            ((3, 2), "float32", False, True, "qr"), ((2, 2, 2), "complex64", True, True, "qr"),
            ((2, 3), "float64", False, False, "qr"),
        ]
    ],
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- pinv
def _pinv_ref(x: Any, *, rtol: float) -> Any:
    s, u, vt = _svd_ref(x, full_matrices=False, compute_uv=True)
    with np.errstate(all="ignore"):
        inverse = np.where(s > s.max() * s.dtype.type(rtol), 1 / s, 0).astype(s.dtype)
    return (np.conj(vt.T) * inverse) @ np.conj(u.T)


def _pinv_lower(k: Stack, x: Any, *, rtol: float) -> Any:
    def inverted(x: Any) -> Any:
        s, u, vt = svd(x, full_matrices=False, compute_uv=True)
        shape = aval_of(s).shape
        largest = reductions.reduce_max(s, axes=(len(shape) - 1,))
        bound = elementwise.mul(largest, structural.full_like(largest, rtol))
        bound = structural.broadcast_in_dim(bound, shape=shape, broadcast_dimensions=tuple(range(len(shape) - 1)))
        inverse = elementwise.select_n(
            elementwise.gt(s, bound), structural.full_like(s, 0), elementwise.div(structural.full_like(s, 1), s)
        )
        v = M.adjoint(vt)
        return M.mm(elementwise.mul(v, M.columns(inverse, v)), M.adjoint(u))

    return k.inline(inverted, x)


def _pinv_jvp(primals: Any, tangents: Any, *, rtol: float) -> Any:
    """d(A+) = -A+ dA A+ + A+ A+^H dA^H (1 - A A+) + (1 - A+ A) dA^H A+^H A+, where the rank does not change."""
    (a,), (da,) = primals, tangents
    p = pinv(a, rtol=rtol)
    ph, dah = M.adjoint(p), M.adjoint(da)
    left, right = M.mm(p, ph, dah), M.mm(dah, ph, p)
    change = elementwise.add(elementwise.sub(left, M.mm(left, a, p)), elementwise.sub(right, M.mm(p, a, right)))
    return p, elementwise.sub(change, M.mm(p, da, p))


#: The Moore-Penrose inverse; singular values up to rtol times the largest count as zero.
pinv = linalg_primitive(
    "pinv", (2,), ref=_pinv_ref, lower=_pinv_lower, jvp=_pinv_jvp, multiple_results=False,
    shape=lambda x, *, dtype, rtol: [(x[::-1], dtype)],
    samples=lambda: [
        SampleInput((ShapedArray(s, d),), {"rtol": 1e-5}, prepare=_apart)
        for s, d in [
            ((3, 2), "float32"), ((2, 2, 3), "float64"), ((3, 3), "complex64"), ((0, 2), "float32"),
            ((0, 2, 2), "float32"),
        ]
    ],
)  # fmt: skip
