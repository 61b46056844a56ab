"""Eigenvalues and eigenvectors: eigh of Hermitian matrices, eig of others, schur.

Where two eigenvalues are equal, their vectors have no derivative: it comes out infinite or NaN. The derivative of the
values, and of functions that do not depend on the vectors, is finite. The vectors of complex Hermitian matrices are
determined up to a phase; their derivative is the one that does not change the phase.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.makers import I32, Stack, linalg_primitive, nan, no_jvp, routine, square
from functorch_like.primitives.linalg.solve import solve
from functorch_like.primitives.reductions import reductions


def _nans(*outs: Any) -> Any:
    return tuple(np.full_like(x, nan(x.dtype)) for x in outs)


# ---------------------------------------------------------------------------------------------------------------- eigh
def _eigh_shape(x: Any, *, dtype: Any, lower: bool, compute_v: bool) -> Any:
    n = square("eigh", x)
    values = ((n,), dtypes.real_part(dtype))
    return [((n, n), dtype), values] if compute_v else [values]


def _eigh_ref(x: Any, *, lower: bool, compute_v: bool) -> Any:
    w, v, info = routine(x, "syevd")(x, compute_v=int(compute_v), lower=int(lower))
    outs = (np.ascontiguousarray(v), w) if compute_v else (w,)
    return _nans(*outs) if info else outs


def _eigh_lower(k: Stack, x: Any, *, lower: bool, compute_v: bool) -> Any:
    return _hermitian(k, x, compute_v, {"mode": "V" if compute_v else "N", "uplo": "L" if lower else "U"})


def _eigh_lower_gpu(k: Stack, x: Any, *, lower: bool, compute_v: bool) -> Any:
    return _hermitian(k, x, compute_v, {"algorithm": 0, "lower": lower})  # 0: by Jacobi if small, else by QR


def _hermitian(k: Stack, x: Any, compute_v: bool, attrs: dict[str, Any]) -> Any:
    outs = [k.ins[0], k.outs[-1], k.aval((), I32)]
    v, w, info = k.call("syevd", [x], k.ins, outs, attrs=attrs, aliases=[(0, 0)])
    return k.or_nan(info, [v, w] if compute_v else [w], k.outs)


def _eigh_jvp(primals: Any, tangents: Any, *, lower: bool, compute_v: bool) -> Any:
    """Use P = V^H dA V: dw = diag P, dV = V (P / (w[j] - w[i]))."""
    v, w = eigh(*primals, lower=lower, compute_v=True)
    p = M.mm(M.adjoint(v), M.hermitian(tangents[0], lower), v)
    dw = M.real(M.diagonal(p))
    if not compute_v:
        return [w], [dw]
    return [v, w], [M.mm(v, elementwise.mul(p, M.differences(w, p))), dw]


def _spread(x: Any) -> Any:
    """Hermitian, with eigenvalues apart."""
    n = x.shape[-1]
    return (x + np.conj(np.swapaxes(x, -1, -2))) * 0.25 + np.diag(np.arange(n) * 1.5).astype(x.dtype)


#: Vectors in the columns, and values from the smallest to the largest. Only one triangle of the matrix is read.
eigh = linalg_primitive(
    "eigh", (2,), shape=_eigh_shape, ref=_eigh_ref, lower=_eigh_lower, jvp=_eigh_jvp,
    gpu=_eigh_lower_gpu,
    samples=lambda: [
        SampleInput((ShapedArray(s, d),), {"lower": low, "compute_v": v}, smooth=d[0] != "c" or not v, prepare=_spread)
        for s, d, low, v in [
            ((3, 3), "float32", True, True), ((2, 2, 2), "float64", False, True), ((2, 3, 3), "float32", True, False),
            ((3, 3), "complex64", True, True), ((2, 2), "complex128", False, False), ((0, 0), "float32", True, True),
            ((0, 2, 2), "complex64", True, True), ((1, 1), "float32", True, True),
        ]
    ],
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- eig
def _eig_shape(x: Any, *, dtype: Any, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    n, out = square("eig", x), dtypes.complex_of(dtypes.real_part(dtype))
    return [((n,), out)] + [((n, n), out)] * (compute_left_eigenvectors + compute_right_eigenvectors)


def _unpacked(v: Any, imag: Any) -> Any:
    """Real LAPACK stores the vectors of a conjugate pair as real part and imaginary part."""
    out = v.astype(np.result_type(v.dtype, np.complex64))
    for j in np.flatnonzero(imag > 0):
        out[:, j], out[:, j + 1] = v[:, j] + 1j * v[:, j + 1], v[:, j] - 1j * v[:, j + 1]
    return out


def _eig_ref(x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    flags = {"compute_vl": int(compute_left_eigenvectors), "compute_vr": int(compute_right_eigenvectors)}
    if x.dtype.kind == "c":
        w, left, right, info = routine(x, "geev")(x, **flags)
    else:
        re, im, left, right, info = routine(x, "geev")(x, **flags)
        w = (re + 1j * im).astype(np.result_type(x.dtype, np.complex64))
        left, right = (
            _unpacked(v, im) if computed else v for v, computed in zip((left, right), flags.values(), strict=True)
        )
    outs = (w, *[v for v, computed in zip((left, right), flags.values(), strict=True) if computed])
    return _nans(*outs) if info else outs


def _eig_lower(k: Stack, x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    flags = compute_left_eigenvectors, compute_right_eigenvectors
    letters = ["V" if w else "N" for w in flags]
    return _general(k, x, *flags, {"compute_left": letters[0], "compute_right": letters[1]})


def _eig_lower_gpu(k: Stack, x: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    flags = compute_left_eigenvectors, compute_right_eigenvectors
    return _general(k, x, *flags, {"left": flags[0], "right": flags[1]})


def _general(k: Stack, x: Any, with_left: bool, with_right: bool, attrs: dict[str, Any]) -> Any:
    w = k.outs[0]
    vectors = w.update(shape=k.ins[0].shape)
    real = k.ins[0].dtype.kind != "c"
    values = [w.update(dtype=dtypes.real_part(w.dtype))] * 2 if real else [w]
    *parts, left, right, info = k.call("geev", [x], k.ins, [*values, vectors, vectors, k.aval((), I32)], attrs=attrs)
    made = k.e.op("stablehlo.complex", parts, [w]) if real else parts[0]
    outs = [made, *[left] * with_left, *[right] * with_right]
    return k.or_nan(info, outs, k.outs)


def _eig_jvp(primals: Any, tangents: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool) -> Any:
    """Use P = V^-1 dA V: dw = diag P, dV = V (P / (w[j] - w[i])), kept at length 1 and of LAPACK's phase.

    Left vectors are the right ones of the adjoint matrix, which has the conjugate values.
    """
    w, left, v = eig(*primals, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    da = M.to(tangents[0], aval_of(w).dtype)
    p = M.mm(solve(v, da, transpose_a=False), v)
    outs, d_outs = [w], [M.diagonal(p)]
    if compute_left_eigenvectors:
        q = M.mm(solve(left, M.adjoint(da), transpose_a=False), left)
        outs.append(left)
        d_outs.append(_normalized(left, M.mm(left, elementwise.mul(q, M.differences(elementwise.conj(w), q)))))
    if compute_right_eigenvectors:
        outs.append(v)
        d_outs.append(_normalized(v, M.mm(v, elementwise.mul(p, M.differences(w, p)))))
    return outs, d_outs


def _normalized(v: Any, dv: Any) -> Any:
    """Add the multiple of v to dv with which v stays of length 1, and its largest entry real."""
    n = aval_of(v).ndim
    if not aval_of(v).size:
        return dv
    size = elementwise.real(elementwise.mul(v, elementwise.conj(v)))
    along = structural.reduce_sum(elementwise.real(elementwise.mul(elementwise.conj(v), dv)), axes=(n - 2,))
    largest = reductions.argmax(size, axes=(n - 2,), index_dtype=dtypes.int32)
    places = structural.iota(dtype=I32, shape=aval_of(v).shape, dimension=n - 2)
    there = elementwise.eq(
        places,
        structural.broadcast_in_dim(largest, shape=aval_of(v).shape, broadcast_dimensions=(*range(n - 2), n - 1)),
    )
    pick = lambda x: structural.reduce_sum(M.only(there, x), axes=(n - 2,))
    turn = elementwise.div(pick(elementwise.imag(dv)), pick(elementwise.real(v)))
    return elementwise.sub(dv, elementwise.mul(v, M.columns(elementwise.complex(along, turn), v)))


#: Values, and left and right vectors where requested, of length 1 and with the largest entry real.
eig = linalg_primitive(
    "eig", (2,), shape=_eig_shape, ref=_eig_ref, lower=_eig_lower, jvp=_eig_jvp, gpu=_eig_lower_gpu,
    samples=lambda: [
        SampleInput(
            (ShapedArray(s, d),), {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right},
            prepare=lambda x: x + np.diag(np.arange(x.shape[-1])).astype(x.dtype),
        )
        for s, d, left, right in [
            ((3, 3), "float32", False, True), ((2, 3, 3), "float64", True, True), ((2, 2), "float32", False, False),
            ((3, 3), "complex64", False, True), ((2, 2, 2), "complex128", True, False),
            ((0, 0), "float32", True, True), ((0, 2, 2), "float32", True, True), ((4, 4), "float64", False, True),
        ]
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- schur
def _schur_shape(x: Any, *, dtype: Any, compute_schur_vectors: bool) -> Any:
    n = square("schur", x)
    return [((n, n), dtype)] * (1 + compute_schur_vectors)


def _schur_ref(x: Any, *, compute_schur_vectors: bool) -> Any:
    results = routine(x, "gees")(lambda *_: None, x, compute_v=int(compute_schur_vectors))
    outs = (results[0], results[-3]) if compute_schur_vectors else (results[0],)
    return _nans(*outs) if results[-1] else outs


def _schur_lower(k: Stack, x: Any, *, compute_schur_vectors: bool) -> Any:
    values = k.aval(k.ins[0].shape[-1:])
    count = 1 if values.dtype.kind == "c" else 2
    outs = [*[k.ins[0]] * 2, *[values] * count, *[k.aval((), I32)] * 2]
    attrs = {"mode": "V" if compute_schur_vectors else "N", "sort": "N"}
    t, z, *_, info = k.call("gees", [x], k.ins, outs, attrs=attrs, aliases=[(0, 0)])
    return k.or_nan(info, [t, z][: len(k.outs)], k.outs)


#: T and Z of A = Z T Z^H; T is triangular, but for blocks of two where real matrices have complex eigenvalues.
schur = linalg_primitive(
    "schur", (2,), shape=_schur_shape, ref=_schur_ref, lower=_schur_lower,
    jvp=no_jvp("schur", "differentiate eig or eigh instead"), gpu="host",
    samples=lambda: [
        SampleInput((ShapedArray(s, d),), {"compute_schur_vectors": v})
        for s, d, v in [
            ((3, 3), "float32", True), ((2, 4, 4), "float64", True), ((3, 3), "complex64", False),
            ((2, 2), "complex128", True), ((0, 0), "float32", True), ((0, 2, 2), "float32", False),
        ]
    ],
)  # fmt: skip
