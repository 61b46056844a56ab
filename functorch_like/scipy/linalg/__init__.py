"""Linear algebra under SciPy's names: factors for solving systems, functions of matrices, matrices of special forms.

Leading dimensions broadcast. Arrays cannot be overwritten and their values are not checked, so there is no
`overwrite_a` and no `check_finite`.
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.numpy.linalg import det as det
from functorch_like.numpy.linalg import inv as inv
from functorch_like.scipy.linalg.decompositions import hessenberg as hessenberg
from functorch_like.scipy.linalg.decompositions import qr as qr
from functorch_like.scipy.linalg.decompositions import schur as schur
from functorch_like.scipy.linalg.factors import cho_factor as cho_factor
from functorch_like.scipy.linalg.factors import cho_solve as cho_solve
from functorch_like.scipy.linalg.factors import lu as lu
from functorch_like.scipy.linalg.factors import lu_factor as lu_factor
from functorch_like.scipy.linalg.factors import lu_solve as lu_solve
from functorch_like.scipy.linalg.factors import solve_triangular as solve_triangular

with _lazy_imports.block(__name__):
    from functorch_like.scipy.linalg.forms import block_diag as block_diag
    from functorch_like.scipy.linalg.forms import circulant as circulant
    from functorch_like.scipy.linalg.forms import companion as companion
    from functorch_like.scipy.linalg.forms import convolution_matrix as convolution_matrix
    from functorch_like.scipy.linalg.forms import dft as dft
    from functorch_like.scipy.linalg.forms import fiedler as fiedler
    from functorch_like.scipy.linalg.forms import fiedler_companion as fiedler_companion
    from functorch_like.scipy.linalg.forms import hadamard as hadamard
    from functorch_like.scipy.linalg.forms import hankel as hankel
    from functorch_like.scipy.linalg.forms import helmert as helmert
    from functorch_like.scipy.linalg.forms import hilbert as hilbert
    from functorch_like.scipy.linalg.forms import invhilbert as invhilbert
    from functorch_like.scipy.linalg.forms import invpascal as invpascal
    from functorch_like.scipy.linalg.forms import leslie as leslie
    from functorch_like.scipy.linalg.forms import pascal as pascal
    from functorch_like.scipy.linalg.forms import toeplitz as toeplitz
    from functorch_like.scipy.linalg.functions import expm as expm
    from functorch_like.scipy.linalg.functions import expm_frechet as expm_frechet
    from functorch_like.scipy.linalg.functions import funm as funm
    from functorch_like.scipy.linalg.functions import polar as polar
    from functorch_like.scipy.linalg.functions import rsf2csf as rsf2csf
    from functorch_like.scipy.linalg.functions import solve_sylvester as solve_sylvester
    from functorch_like.scipy.linalg.functions import sqrtm as sqrtm
    from functorch_like.scipy.linalg.problems import cholesky as cholesky
    from functorch_like.scipy.linalg.problems import eigh as eigh
    from functorch_like.scipy.linalg.problems import eigh_tridiagonal as eigh_tridiagonal
    from functorch_like.scipy.linalg.problems import qr_multiply as qr_multiply
    from functorch_like.scipy.linalg.problems import solve as solve
    from functorch_like.scipy.linalg.problems import svd as svd
