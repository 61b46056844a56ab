"""Polar decomposition by iterated QR decompositions: qdwh."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError, UnsupportedError
from functorch_like.lax.operands import error
from functorch_like.lax.slicing import dynamic_index_in_dim
from functorch_like.lax.unbounded import run_while
from functorch_like.primitives import structural
from functorch_like.primitives.linalg import matrix_algebra as M
from functorch_like.primitives.linalg import qr
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

#: Default limit of iterations: those that converge for singular values of any size in exact arithmetic, and two more.
_STEPS = 10


def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Polar decomposition x = u h by dynamically weighted Halley iterations (Nakatsukasa, Bai and Gygi 2010).

    For derivatives use `scipy.linalg.polar`: `qdwh` has no reverse mode, and its tangents converge after its values.

    Args:
        x: (m, n) of full rank, with m >= n.
        is_hermitian: accepted for compatibility with JAX; has no effect.
        max_iterations: maximal number of iterations; 10 if None.
        eps: relative tolerance of convergence; the machine epsilon of the dtype if None.
        dynamic_shape: None, or the shape of x.

    Returns:
        u with orthonormal columns, of the shape of x; the positive semidefinite h (n, n); the number of iterations,
        int32; and whether they converged, bool.

    Raises:
        ShapeError: for anything but a matrix, or one with more columns than rows.
        UnsupportedError: for another `dynamic_shape`.

    >>> u, h, _, done = lax.linalg.qdwh(fnp.asarray([[0.0, -2.0], [3.0, 0.0]]))
    >>> bool(done), fnp.allclose(u @ h, fnp.asarray([[0.0, -2.0], [3.0, 0.0]]), atol=1e-5).item()
    (True, True)
    """
    aval = aval_of(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise error(
            ShapeError,
            f"lax.linalg.qdwh got {aval!r}",
            "give a matrix with at least as many rows as columns; use vmap for stacks of matrices",
        )
    if dynamic_shape is not None and tuple(dynamic_shape) != aval.shape:
        raise error(
            UnsupportedError, f"lax.linalg.qdwh got dynamic_shape={dynamic_shape}", "slice the matrix to that shape"
        )
    rounding = float(dtypes.finfo(aval.dtype).eps)
    most = _STEPS if max_iterations is None else int(max_iterations)
    return _qdwh(x, most=most, rounding=rounding, least=rounding if eps is None else float(eps))


@eager_jit(static=("most", "rounding", "least"))
def _qdwh(x: Any, most: int, rounding: float, least: float) -> Any:
    real, n = dtypes.real_part(aval_of(x).dtype), aval_of(x).shape[1]
    weights = _weights(most, rounding)
    settled = sum(abs(b - 1) > 1e-3 for _, b, _ in weights)  # until then singular values may still be far from 1
    table = np.asarray([[c**0.5, b / c, (a - b / c) / c**0.5] for a, b, c in weights], real)
    size = abs(x)
    bound = size.sum(0).max() ** 0.5 * size.sum(1).max() ** 0.5  # not the root of the product, which may underflow
    scaled = x / structural.convert_element_type(bound + (bound == 0), new_dtype=aval_of(x).dtype, weak_type=False)

    one = M.eye_like(structural.full((n, n), 0, aval_of(x).dtype))

    def step(carry: Any) -> Any:
        u, k, _ = carry
        row = M.to(dynamic_index_in_dim(table, k, keepdims=False), aval_of(u).dtype)
        root, old_weight, turned = (row[i] for i in range(3))
        q, _ = qr.qr(structural.concatenate(root * u, one, dimension=0), full_matrices=False, pivoting=False)
        new = old_weight * u + turned * M.mm(q[:-n], M.adjoint(q[-n:]))
        norm = lambda y: (abs(y) ** 2).sum() ** 0.5
        done = (norm(new - u) <= (4 * least) ** (1 / 3) * norm(new)) & (k + 1 >= settled)
        return new, k + 1, done

    start = scaled, np.zeros((), np.int32), structural.full((), False, dtypes.bool_)
    more = lambda carry: (carry[1] < most) & ~carry[2]
    u, count, done = run_while(more, step, start, "polar decomposition", expected_steps=6)
    h = M.mm(M.adjoint(u), x)
    return u, (h + M.adjoint(h)) / 2, count, done


def _weights(most: int, bound: float) -> list[tuple[float, float, float]]:
    """Return a, b, c of each step x (a + b x^2) / (1 + c x^2), for singular values x of at least `bound`."""
    result: list[tuple[float, float, float]] = []
    for _ in range(most):
        square = bound * bound
        d = (4 * max(1 - square, 0.0) / square**2) ** (1 / 3)
        a = math.sqrt(1 + d) + math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * math.sqrt(1 + d))) / 2
        b = (a - 1) ** 2 / 4
        result.append((a, b, a + b - 1))
        bound = min(bound * (a + b * square) / (1 + (a + b - 1) * square), 1.0)
    return result
