"""Linear systems solved by iteration: cg, bicgstab, gmres.

The operator is a matrix, dense or sparse, or a function, also of pytrees. Derivatives of solutions are solutions by
the same method: of the right-hand side, and of values that the operator closes over. Y. Saad, "Iterative Methods for
Sparse Linear Systems", SIAM 2003.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from functorch_like import dtypes, flatten_util, lax, tree
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, TreeError
from functorch_like.numpy import promotion
from functorch_like.transforms.linear_transpose import linear_transpose

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.experimental.sparse.format import JAXSparse
    from functorch_like.typing import ArrayLike

    Operator: TypeAlias = ArrayLike | JAXSparse | Callable[[Any], Any]


__all__ = ("bicgstab", "cg", "gmres")

Map = Callable[[Any], Any]


class _Limits(NamedTuple):
    """Stopping criteria: a norm of the residual, relative and absolute, and a number of steps."""

    tol: Any
    atol: Any
    most: int

    def bound(self, b: Any) -> Any:
        return fnp.maximum(self.tol * fnp.linalg.norm(b), self.atol)


_ARGS = """
    Args:
        A: a dense or sparse matrix, or a linear function from a pytree like b to another one{kind}.
        b: the right-hand side: an array, or a pytree of them.
        x0: the start, like b; zeros by default.
        tol: the norm of the residual, relative to that of b, at which to stop.
        atol: the norm of the residual at which to stop in any case.
        maxiter: {most}.
        M: an approximation of the inverse of A, which saves steps: a matrix or a function, like A{kind}.

    Returns:
        x, like b; and an int: 0 if the residual became small enough, otherwise the number of steps.

    Raises:
        TreeError, ShapeError: where A, M or x0 are not like b.

    >>> a, b = fnp.asarray([[4.0, 1.0], [1.0, 3.0]]), fnp.asarray([1.0, 2.0])
    >>> x, info = ft.scipy.sparse.linalg.{name}(a, b)
    >>> bool(fnp.allclose(a @ x, b, atol=1e-4)), info.item()
    (True, 0)
    """


def _documented(kind: str, most: str = "the greatest number of steps; ten times the elements of b by default") -> Any:
    def fill(f: Any) -> Any:
        f.__doc__ = f.__doc__ + _ARGS.format(kind=kind, most=most, name=f.__name__)
        return f

    return fill


def _solve(method: Callable[..., Any], A: Any, b: Any, x0: Any, limits: tuple[Any, Any, Any], M: Any, name: str) -> Any:
    """Apply a method for vectors to pytrees, and make it differentiable."""
    what = f"scipy.sparse.linalg.{name}"
    if promotion.is_array(A) and promotion.is_array(b) and not dtypes.is_inexact(aval_of(b).dtype):
        b = promotion.convert(b, dtypes.inexact_dtype(aval_of(A).dtype))
    b = tree.map(promotion.to_inexact, b)
    vector, unravel = flatten_util.ravel_pytree(b)
    dtype, size = aval_of(vector).dtype, aval_of(vector).size
    if x0 is None:
        start = fnp.zeros_like(vector)
    else:
        if tree.structure(x0) != tree.structure(b):
            raise promotion.error(TreeError, f"x0 of {what} is not like b", "give both one structure")
        start = flatten_util.ravel_pytree(x0)[0].astype(dtype)
        if aval_of(start).shape != aval_of(vector).shape:
            raise promotion.error(
                ShapeError, f"x0 of {what}, {aval_of(start)!r} in all, is not like b", "give both one shape"
            )
    flat = lambda f: lambda v: flatten_util.ravel_pytree(f(unravel(v)))[0].astype(dtype)
    operator, precondition = flat(_map(A, b, what)), flat(_map(M, b, what)) if M is not None else lambda v: v
    tol, atol, most = limits
    stop = _Limits(tol, atol, 10 * size if most is None else most)

    def forward(matvec: Map, c: Any) -> Any:
        return method(matvec, c, start, stop, precondition)

    def backward(vecmat: Map, c: Any) -> Any:
        turned = lambda v: linear_transpose(precondition, c)(v)[0]
        return method(vecmat, c, fnp.zeros_like(c), stop, turned)

    x, info = lax.custom_linear_solve(operator, vector, forward, backward, has_aux=True)
    return unravel(x), info


def _map(f: Any, b: Any, what: str) -> Map:
    if callable(f):
        return f
    if getattr(f, "n_sparse", 0) and f.ndim == 2 and promotion.is_array(b):  # a sparse matrix
        return lambda x: f @ x
    if not promotion.is_array(f) or aval_of(f).ndim != 2 or not promotion.is_array(b):
        raise promotion.error(
            ArgumentError, f"{what} got {type(f).__name__} as the operator, and {type(b).__name__} as b",
            "give a function, or a matrix and an array b",
        )  # fmt: skip
    return lambda x: fnp.matmul(f, x, precision="highest")


def _inner(x: Any, y: Any) -> Any:
    return fnp.vdot(x, y, precision="highest")


def _info(residual: Any, bound: Any, steps: Any) -> Any:
    return fnp.where(fnp.linalg.norm(residual) <= bound, 0, steps)


# ------------------------------------------------------------------------------------------------- conjugate gradients
@overload
def cg(
    A: Operator,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Array, Array]: ...
@overload
def cg(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, Array]: ...
@_documented(", Hermitian and positive definite")
def cg(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> Any:
    """The solution x of A x = b by conjugate gradients.

    M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
    """
    return _solve(_cg, A, b, x0, (tol, atol, maxiter), M, "cg")


def _cg(matvec: Map, b: Any, x: Any, stop: _Limits, precondition: Map) -> Any:
    bound = stop.bound(b)

    def step(state: Any) -> Any:
        k, x, r, p, size = state
        image = matvec(p)
        by = size / _inner(p, image).real
        x, r = x + by * p, r - by * image
        z = precondition(r)
        new = _inner(r, z).real
        return k + 1, x, r, z + (new / size) * p, new

    more = lambda state: (fnp.linalg.norm(state[2]) > bound) & (state[0] < stop.most)
    r = b - matvec(x)
    z = precondition(r)
    k, x, r, *_ = lax.while_loop(more, step, (0, x, r, z, _inner(r, z).real))
    return x, _info(r, bound, k)


# --------------------------------------------------------------------------------------------- biconjugate, stabilized
@overload
def bicgstab(
    A: Operator,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Array, Array]: ...
@overload
def bicgstab(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, Array]: ...
@_documented("")
def bicgstab(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> Any:
    """The solution x of A x = b by stabilized biconjugate gradients.

    H. A. van der Vorst, "Bi-CGSTAB", SIAM J. Scientific and Statistical Computing 13, 1992.
    """
    return _solve(_bicgstab, A, b, x0, (tol, atol, maxiter), M, "bicgstab")


def _bicgstab(matvec: Map, b: Any, x: Any, stop: _Limits, precondition: Map) -> Any:
    bound = stop.bound(b)
    first = b - matvec(x)
    over = lambda a, b: fnp.where(b == 0, 0, a / fnp.where(b == 0, 1, b))

    def step(state: Any) -> Any:
        k, x, r, p, image, rho, alpha, omega, _ = state
        new = _inner(first, r)
        p = r + over(new * alpha, rho * omega) * (p - omega * image)
        near = precondition(p)
        image = matvec(near)
        alpha = over(new, _inner(first, image))
        s = r - alpha * image
        other = precondition(s)
        turned = matvec(other)
        omega = over(_inner(turned, s), _inner(turned, turned))
        x, r = x + alpha * near + omega * other, s - omega * turned
        # The method breaks down where the two sequences have become orthogonal.
        return k + 1, x, r, p, image, new, alpha, omega, (new == 0) | (alpha == 0)

    one, none = fnp.ones((), aval_of(b).dtype), fnp.zeros_like(b)
    more = lambda state: (fnp.linalg.norm(state[2]) > bound) & (state[0] < stop.most) & ~state[-1]
    k, x, r, *_ = lax.while_loop(more, step, (0, x, first, none, none, one, one, one, fnp.asarray(False)))
    return x, _info(r, bound, k)


# ------------------------------------------------------------------------------------------------------------ residuals
@overload
def gmres(
    A: Operator,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[Array, Array]: ...
@overload
def gmres(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> tuple[T, Array]: ...
@_documented("", "the greatest number of restarts; ten times the elements of b by default")
def gmres(
    A: Operator,
    b: T,
    x0: T | None = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Operator | None = None,
) -> Any:
    """The solution x of A x = b by least residuals in Krylov spaces of `restart` dimensions, one after the other.

    Y. Saad, M. H. Schultz, "GMRES", SIAM J. Scientific and Statistical Computing 7, 1986; orthogonalized twice,
    preconditioned from the right.
    """
    if restart < 1:
        raise promotion.error(ArgumentError, f"scipy.sparse.linalg.gmres with restart={restart}", "give a positive int")
    return _solve(functools.partial(_gmres, restart), A, b, x0, (tol, atol, maxiter), M, "gmres")


def _gmres(restart: int, matvec: Map, b: Any, x: Any, stop: _Limits, precondition: Map) -> Any:
    bound, size = stop.bound(b), aval_of(b).size
    m, dtype = min(restart, size), aval_of(b).dtype
    tiny = float(fnp.finfo(dtype).eps)
    times = lambda a, b: fnp.matmul(a, b, precision="highest")

    def widen(state: Any, k: Any) -> Any:
        basis, form = state  # rows of the basis that are not computed yet are zero
        w = matvec(precondition(lax.dynamic_index_in_dim(basis, k, 0, keepdims=False)))
        length = fnp.linalg.norm(w)
        column = fnp.zeros(m + 1, dtype)
        for _ in range(2):
            along = times(fnp.conj(basis), w)
            w, column = w - times(along, basis), column + along
        rest = fnp.linalg.norm(w)
        new = rest > tiny * length  # otherwise the space holds the solution
        column = column.at[k + 1].set(fnp.where(new, rest, 0).astype(dtype))
        w = fnp.where(new, w / fnp.where(new, rest, 1), 0)
        return (basis.at[k + 1].set(w), form.at[:, k].set(column)), None

    def step(state: Any) -> Any:
        k, x, r = state
        length = fnp.linalg.norm(r)
        basis = fnp.zeros((m + 1, size), dtype).at[0].set(r / length)
        (basis, form), _ = lax.scan(widen, (basis, fnp.zeros((m + 1, m), dtype)), fnp.arange(m))
        right = fnp.zeros(m + 1, dtype).at[0].set(length.astype(dtype))
        weights = fnp.linalg.lstsq(form, right)[0]
        x = x + precondition(times(weights, basis[:m]))
        return k + 1, x, b - matvec(x)

    if not size:
        return x, fnp.zeros((), fnp.int32)
    more = lambda state: (fnp.linalg.norm(state[2]) > bound) & (state[0] < stop.most)
    k, x, r = lax.while_loop(more, step, (0, x, b - matvec(x)))
    return x, _info(r, bound, k)
