"""Linear algebra, as in numpy.linalg: stacks of matrices in the last two dimensions.

Where a factorization fails (a matrix that is not positive definite, no convergence) the result is NaN, and nothing is
raised, since compiled programs cannot raise. Half precision is not supported; convert with astype("float32").
"""

from __future__ import annotations

from functorch_like.numpy.linalg.decompositions import EighResult as EighResult
from functorch_like.numpy.linalg.decompositions import EigResult as EigResult
from functorch_like.numpy.linalg.decompositions import QRResult as QRResult
from functorch_like.numpy.linalg.decompositions import SVDResult as SVDResult
from functorch_like.numpy.linalg.decompositions import cholesky as cholesky
from functorch_like.numpy.linalg.decompositions import eig as eig
from functorch_like.numpy.linalg.decompositions import eigh as eigh
from functorch_like.numpy.linalg.decompositions import eigvals as eigvals
from functorch_like.numpy.linalg.decompositions import eigvalsh as eigvalsh
from functorch_like.numpy.linalg.decompositions import qr as qr
from functorch_like.numpy.linalg.decompositions import svd as svd
from functorch_like.numpy.linalg.decompositions import svdvals as svdvals
from functorch_like.numpy.linalg.determinants import SlogdetResult as SlogdetResult
from functorch_like.numpy.linalg.determinants import det as det
from functorch_like.numpy.linalg.determinants import slogdet as slogdet
from functorch_like.numpy.linalg.norms import matrix_norm as matrix_norm
from functorch_like.numpy.linalg.norms import norm as norm
from functorch_like.numpy.linalg.norms import vector_norm as vector_norm
from functorch_like.numpy.linalg.products import cross as cross
from functorch_like.numpy.linalg.products import diagonal as diagonal
from functorch_like.numpy.linalg.products import matrix_power as matrix_power
from functorch_like.numpy.linalg.products import multi_dot as multi_dot
from functorch_like.numpy.linalg.products import tensorinv as tensorinv
from functorch_like.numpy.linalg.products import tensorsolve as tensorsolve
from functorch_like.numpy.linalg.products import trace as trace
from functorch_like.numpy.linalg.systems import cond as cond
from functorch_like.numpy.linalg.systems import inv as inv
from functorch_like.numpy.linalg.systems import lstsq as lstsq
from functorch_like.numpy.linalg.systems import matrix_rank as matrix_rank
from functorch_like.numpy.linalg.systems import pinv as pinv
from functorch_like.numpy.linalg.systems import solve as solve
from functorch_like.numpy.matrix_products import matmul as matmul
from functorch_like.numpy.matrix_products import outer as outer
from functorch_like.numpy.matrix_products import tensordot as tensordot
from functorch_like.numpy.matrix_products import vecdot as vecdot
from functorch_like.numpy.shapes import matrix_transpose as matrix_transpose
