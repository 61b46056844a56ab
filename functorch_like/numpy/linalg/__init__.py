"""Linear algebra, as in numpy.linalg: stacks of matrices in the last two dimensions.

Where a factorization fails (a matrix that is not positive definite, no convergence) the result is NaN, and nothing is
raised: compiled programs cannot. Half precision is refused; convert with astype("float32").
"""

# ruff: noqa: F401, I001
# fmt: off
from __future__ import annotations

from functorch_like.numpy.matrix_products import (matmul, outer, tensordot, vecdot)
from functorch_like.numpy.linalg.decompositions import (
    EighResult, EigResult, QRResult, SVDResult, cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals,
)
from functorch_like.numpy.linalg.norms import matrix_norm, norm, vector_norm
from functorch_like.numpy.linalg.products import (
    cross, diagonal, matrix_power, multi_dot, tensorinv, tensorsolve, trace,
)
from functorch_like.numpy.linalg.systems import (
    SlogdetResult, cond, det, inv, lstsq, matrix_rank, pinv, slogdet, solve,
)
from functorch_like.numpy.shapes import matrix_transpose
