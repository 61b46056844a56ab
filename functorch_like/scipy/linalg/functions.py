"""Functions of matrices: exponential, square root, others by Parlett's recurrence; Sylvester's equation; polar forms.

Triangular factors are computed column by column; each column solves a triangular system. N. J. Higham, "Functions of
Matrices: Theory and Computation", SIAM 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.primitives.linalg import eigen
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg.cholesky_lu import triangular_solve
from functorch_like.scipy.linalg.decompositions import matrices
from functorch_like.transforms.custom.custom_jvp import custom_jvp
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.transforms.jvp_vjp import jvp
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


def _over(f: Callable[..., Any], *xs: Any) -> Any:
    """Apply a function of matrices to stacks of matrices, which broadcast."""
    lead = promotion.broadcast_shapes(*(aval_of(x).shape[:-2] for x in xs))
    if not lead:
        return f(*xs)
    flat = [
        fnp.reshape(promotion.broadcast(x, (*lead, *aval_of(x).shape[-2:])), (-1, *aval_of(x).shape[-2:])) for x in xs
    ]
    out = vmap(f)(*flat)
    return fnp.reshape(out, (*lead, *aval_of(out).shape[1:]))


# --------------------------------------------------------------------------------------------------------- exponential
def _pade(degree: int) -> list[float]:
    """Return the coefficients of the numerator of the Padé approximant of exp, the last of them 1."""
    m, f = degree, math.factorial
    return [f(2 * m - j) * f(m) / (f(2 * m) * f(m - j) * f(j)) * (f(2 * m) / f(m)) for j in range(m + 1)]


#: The degree for each precision, and the norm up to which its error is below the rounding (Higham 2008, table 10.2).
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices, by scaling and squaring.

    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM J. Matrix Analysis 26,
    2005.

    Args:
        A: (..., n, n).
        upper_triangular: whether A is known to be upper triangular; its lower triangle is then not read.
        max_squarings: the greatest number of halvings of A to make its norm small. Larger matrices give NaN.

    Returns:
        An array of the shape of A, in floating point.

    Raises:
        ShapeError: for matrices that are not square.

    >>> ft.scipy.linalg.expm(fnp.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _expm(matrices(A, "expm"), upper=bool(upper_triangular), most=int(max_squarings))


@eager_jit(static=("upper", "most"))
def _expm(a: Any, upper: bool, most: int) -> Any:
    a = promotion.to_inexact(a)
    a = M.triu(a) if upper else a
    return _over(lambda x: _exponential(x, upper, most), a) if aval_of(a).size else a


def _exponential(a: Any, upper: bool, most: int) -> Any:
    dtype = dtypes.real_part(aval_of(a).dtype)
    degree, bound = _DEGREES[max(dtype.itemsize, 4)]
    norm = lax.stop_gradient(fnp.abs(a).sum(0).max())
    halvings = fnp.clip(fnp.ceil(fnp.log2(fnp.maximum(norm, bound) / bound)), 0, None)
    a = a * (2.0 ** -fnp.minimum(halvings, most)).astype(dtype)
    b, one = _pade(degree), fnp.eye(aval_of(a).shape[-1], dtype=aval_of(a).dtype)
    square = M.mm(a, a)
    powers = [one, square]
    for _ in range(degree // 2 - 1 if degree < 13 else 2):
        powers.append(M.mm(powers[-1], square))
    if degree < 13:
        odd, even = (sum(c * p for c, p in zip(b[k::2], powers, strict=True)) for k in (1, 0))
    else:  # the higher powers by one product for each part
        low = lambda k: sum(c * p for c, p in zip(b[k:8:2], powers, strict=True))
        high = lambda k: sum(c * p for c, p in zip(b[8 + k :: 2], powers[1:], strict=True))
        odd, even = (low(k) + M.mm(powers[3], high(k)) for k in (1, 0))
    odd = M.mm(a, odd)
    result = fnp.linalg.solve(even - odd, even + odd)

    def step(x: Any, i: Any) -> tuple[Any, None]:
        return lax.cond(i < halvings, lambda x: M.mm(x, x), lambda x: x, x), None

    result, _ = lax.scan(step, result, fnp.arange(most))
    result = fnp.where(halvings > most, fnp.nan, result)
    return M.triu(result) if upper else result


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, compute_expm: Literal[True] = True) -> tuple[Array, Array]: ...
@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, compute_expm: Literal[False]) -> Array: ...
def expm_frechet(A: ArrayLike, E: ArrayLike, *, compute_expm: bool = True) -> Any:
    """The exponential of matrices, and its derivative in a direction.

    Args:
        A: (..., n, n).
        E: (..., n, n): the direction.
        compute_expm: False for the derivative alone.

    Returns:
        Two arrays of the shape of A, the exponential and the derivative; or the derivative alone.

    Raises:
        ShapeError: for matrices that are not square, or differ in shape.

    >>> zero, one = fnp.zeros((1, 1)), fnp.ones((1, 1))
    >>> [x.tolist() for x in ft.scipy.linalg.expm_frechet(zero, one)]
    [[[1.0]], [[1.0]]]
    """
    a, e = (
        promotion.to_inexact(x) for x in promotion.promote(matrices(A, "expm_frechet"), matrices(E, "expm_frechet"))
    )
    if aval_of(a).shape != aval_of(e).shape:
        raise promotion.error(
            ShapeError, f"scipy.linalg.expm_frechet of {aval_of(a)!r} along {aval_of(e)!r}", "give both one shape"
        )
    both = _frechet(a, e)
    return both if compute_expm else both[1]


@eager_jit
def _frechet(a: Any, e: Any) -> Any:
    return jvp(lambda x: _expm.inline(x, False, 16), (a,), (e,))


# ----------------------------------------------------------------------------------------------- triangular, by columns
def _complex_schur(a: Any) -> tuple[Any, Any]:
    a = M.to(a, dtypes.complex_of(dtypes.real_part(aval_of(a).dtype)))
    return tuple(eigen.schur(a, compute_schur_vectors=True))  # type: ignore[return-value]


def _columns(n: int, like: Any, column: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]) -> Any:
    """Compute an upper triangular matrix column by column.

    Args:
        n: its size.
        like: array with its dtype.
        column: function of the columns known so far, the number j of the next one, and masks of the rows above j and
            of row j. It returns a triangular matrix and a right-hand side for the rows above, and the diagonal element.
    """
    rows = fnp.arange(n)
    one = fnp.eye(n, dtype=aval_of(like).dtype)

    def step(known: Any, j: Any) -> tuple[Any, None]:
        above, at = rows < j, rows == j
        system, right, diagonal = column(known, j, above, at)
        system = fnp.where(above[:, None] & above[None, :], system, one)
        x = _upper(system, fnp.where(above, right, 0))
        return fnp.where(at[None, :], fnp.where(at, diagonal, x)[:, None], known), None

    return lax.scan(step, fnp.zeros((n, n), aval_of(like).dtype), rows)[0]


def _upper(a: Any, b: Any) -> Any:
    options = {"left_side": True, "lower": False, "transpose_a": False, "conjugate_a": False, "unit_diagonal": False}
    return triangular_solve(a, b[:, None], **options)[:, 0]


def _at(x: Any, j: Any) -> Any:
    """Return column j."""
    return lax.dynamic_index_in_dim(x, j, 1, keepdims=False)


# ---------------------------------------------------------------------------------------------------------- Sylvester
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike) -> Array:
    """The X of A X + X B = C, by Schur forms of A and B.

    R. H. Bartels, G. W. Stewart, "Solution of the matrix equation AX + XB = C", Communications of the ACM 15, 1972.

    Args:
        A: (..., m, m).
        B: (..., n, n), none of whose eigenvalues is one of -A.
        C: (..., m, n).

    Returns:
        X, of the shape of C.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> two = 2 * fnp.eye(2)
    >>> ft.scipy.linalg.solve_sylvester(two, two, fnp.asarray([[4.0, 8.0], [0.0, 4.0]])).tolist()
    [[1.0, 2.0], [0.0, 1.0]]
    """
    a, b = matrices(A, "solve_sylvester"), matrices(B, "solve_sylvester")
    c = matrices(C, "solve_sylvester", square=False)
    if aval_of(c).shape[-2:] != (aval_of(a).shape[-1], aval_of(b).shape[-1]):
        raise promotion.error(
            ShapeError, f"scipy.linalg.solve_sylvester of {aval_of(a)!r}, {aval_of(b)!r} and {aval_of(c)!r}",
            "give C the rows of A and the columns of B",
        )  # fmt: skip
    return _sylvester(a, b, c)


@eager_jit
def _sylvester(a: Any, b: Any, c: Any) -> Any:
    a, b, c = map(promotion.to_inexact, promotion.promote(a, b, c))
    return _over(_solution, a, b, c) if aval_of(c).size else c


def _solution(a: Any, b: Any, c: Any) -> Any:
    fixed, turned = lax.stop_gradient((a, b)), lax.stop_gradient((M.transposed(a), M.transposed(b)))

    def by(pair: Any) -> Any:
        return lambda _, c: _by_schur(_complex_schur(pair[0]), _complex_schur(pair[1]), c)

    return lax.custom_linear_solve(lambda x: M.mm(a, x) + M.mm(x, b), c, by(fixed), by(turned))


def _by_schur(first: tuple[Any, Any], second: tuple[Any, Any], c: Any) -> Any:
    (r, u), (s, v) = first, second
    right = M.mm(M.adjoint(u), M.to(c, aval_of(r).dtype), v)
    n = aval_of(right).shape[1]
    one = fnp.eye(aval_of(r).shape[0], dtype=aval_of(r).dtype)

    def step(known: Any, j: Any) -> tuple[Any, None]:
        column = _at(s, j)
        y = _upper(r + column[j] * one, _at(right, j) - fnp.matmul(known, column, precision="highest"))
        return fnp.where(fnp.arange(n)[None, :] == j, y[:, None], known), None

    y = lax.scan(step, fnp.zeros_like(right), fnp.arange(n))[0]
    x = M.mm(u, y, M.adjoint(v))
    return x if aval_of(c).dtype.kind == "c" else fnp.real(x)


# --------------------------------------------------------------------------------------------------------------- roots
def sqrtm(A: ArrayLike) -> Array:
    """The principal square root of matrices, complex: S with S S = A and eigenvalues right of the imaginary axis.

    Å. Björck, S. Hammarling, "A Schur method for the square root of a matrix", Linear Algebra and its Applications
    52/53, 1983. Its derivative solves Sylvester's equation S dS + dS S = dA.

    Args:
        A: (..., n, n), without real eigenvalues below 0. For the derivative at most one is 0.

    Returns:
        Complex numbers, of the shape of A.

    Raises:
        ShapeError: for matrices that are not square.

    >>> ft.scipy.linalg.sqrtm(fnp.asarray([[4.0, 0.0], [0.0, 9.0]])).real.tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return _sqrtm(matrices(A, "sqrtm"))


@eager_jit
def _sqrtm(a: Any) -> Any:
    a = promotion.to_inexact(a)
    a = M.to(a, dtypes.complex_of(dtypes.real_part(aval_of(a).dtype)))
    return _over(_root, a) if aval_of(a).size else a


@custom_jvp
def _root(a: Any) -> Any:
    t, z = _complex_schur(a)
    one = fnp.eye(aval_of(t).shape[0], dtype=aval_of(t).dtype)

    def column(known: Any, j: Any, above: Any, at: Any) -> tuple[Any, Any, Any]:
        right = _at(t, j)
        root = fnp.sqrt(right[j])
        sums = fnp.diagonal(known) + root
        # Of two eigenvalues that are 0 both sides of the equation are.
        return known + fnp.where(sums == 0, 1, root) * one, right, root

    return M.mm(z, _columns(aval_of(t).shape[0], t, column), M.adjoint(z))


@_root.defjvp
def _root_jvp(primals: Any, tangents: Any) -> Any:
    s = _root(*primals)
    return s, _solution(s, s, tangents[0])


def funm(A: ArrayLike, func: Callable[[Array], ArrayLike]) -> Array:
    """Apply a function of numbers to matrices, by Parlett's recurrence on the complex Schur form.

    B. N. Parlett, "A recurrence among the elements of functions of triangular matrices", Linear Algebra and its
    Applications 14, 1976. It loses digits where eigenvalues are close to each other.

    Args:
        A: (..., n, n).
        func: elementwise function of a vector of complex numbers.

    Returns:
        Complex numbers, of the shape of A.

    Raises:
        ShapeError: for matrices that are not square.

    >>> ft.scipy.linalg.funm(fnp.asarray([[1.0, 1.0], [0.0, 2.0]]), lambda x: x * x).real.round(4).tolist()
    [[1.0, 3.0], [0.0, 4.0]]
    """
    a = promotion.to_inexact(matrices(A, "funm"))
    return _over(lambda x: _parlett(x, func), a) if aval_of(a).size else a


def _parlett(a: Any, func: Callable[[Any], Any]) -> Any:
    t, z = _complex_schur(a)
    n = aval_of(t).shape[0]
    diagonal = fnp.diagonal(t)
    values, one = func(diagonal), fnp.eye(n, dtype=aval_of(t).dtype)

    def column(known: Any, j: Any, above: Any, at: Any) -> tuple[Any, Any, Any]:
        t_j = fnp.where(above, _at(t, j), 0)
        apart = t - diagonal[j] * one
        apart = fnp.where((one == 1) & (apart == 0), 1, apart)
        return apart, fnp.matmul(known, t_j, precision="highest") - t_j * values[j], values[j]

    return M.mm(z, _columns(n, t, column), M.adjoint(z))


# --------------------------------------------------------------------------------------------------------------- forms
def rsf2csf(T: ArrayLike, Z: ArrayLike) -> tuple[Array, Array]:
    """The complex Schur form from the real one.

    Args:
        T: (..., n, n), triangular except for blocks of two, as from `schur`.
        Z: (..., n, n): the vectors.

    Returns:
        T and Z, complex, of which T is triangular.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> t, z = ft.scipy.linalg.rsf2csf(*ft.scipy.linalg.schur(fnp.asarray([[0.0, 1.0], [-1.0, 0.0]])))
    >>> sorted(fnp.diagonal(t).imag.tolist())
    [-1.0, 1.0]
    """
    t, z = matrices(T, "rsf2csf"), matrices(Z, "rsf2csf")
    if aval_of(t).shape[-1] != aval_of(z).shape[-1]:
        raise promotion.error(
            ShapeError, f"scipy.linalg.rsf2csf of {aval_of(t)!r} and {aval_of(z)!r}", "give both one size"
        )
    return _rsf2csf(t, z)


@eager_jit
def _rsf2csf(t: Any, z: Any) -> Any:
    t, z = map(promotion.to_inexact, promotion.promote(t, z))
    form, turned = _complex_schur(t)
    return form, fnp.matmul(M.to(z, aval_of(turned).dtype), turned, precision="highest")


def polar(a: ArrayLike, side: str = "right") -> tuple[Array, Array]:
    """Polar forms, by singular values: U with orthonormal columns (or rows) and P, Hermitian without negative values.

    Args:
        a: (..., m, n).
        side: "right" for a = U P, "left" for a = P U.

    Returns:
        U, of the shape of a, and the Hermitian P.

    Raises:
        ArgumentError: for another side.

    >>> u, p = ft.scipy.linalg.polar(fnp.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> u.tolist(), p.tolist()
    ([[0.0, -1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]])
    """
    if side not in ("right", "left"):
        raise promotion.error(ArgumentError, f"scipy.linalg.polar with side={side!r}", "use 'right' or 'left'")
    return _polar(matrices(a, "polar", square=False), right=side == "right")


@eager_jit(static=("right",))
def _polar(a: Any, right: bool) -> Any:
    u, s, vh = fnp.linalg.svd(promotion.to_inexact(a), full_matrices=False)
    times = lambda x, y: fnp.matmul(x, y, precision="highest")
    scaled = times(M.adjoint(vh) * s[..., None, :], vh) if right else times(u * s[..., None, :], M.adjoint(u))
    return times(u, vh), scaled
