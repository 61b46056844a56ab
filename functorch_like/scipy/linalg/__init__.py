"""Linear algebra under SciPy's names: factors kept to solve with, functions of matrices, matrices of special forms.

Leading dimensions broadcast. Arrays cannot be overwritten and their values are not looked at, so there is no
`overwrite_a` and no `check_finite`.
"""

# ruff: noqa: F401
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from functorch_like.calling import lazy_imports as _late
from functorch_like.numpy.linalg import det, inv
from functorch_like.scipy.linalg.decompositions import hessenberg, qr, schur
from functorch_like.scipy.linalg.factors import cho_factor, cho_solve, lu, lu_factor, lu_solve, solve_triangular

if _TYPE_CHECKING:
    from functorch_like.scipy.linalg.forms import (
        block_diag,
        circulant,
        companion,
        convolution_matrix,
        dft,
        fiedler,
        fiedler_companion,
        hadamard,
        hankel,
        helmert,
        hilbert,
        invhilbert,
        invpascal,
        leslie,
        pascal,
        toeplitz,
    )
    from functorch_like.scipy.linalg.functions import (
        expm,
        expm_frechet,
        funm,
        polar,
        rsf2csf,
        solve_sylvester,
        sqrtm,
    )
    from functorch_like.scipy.linalg.problems import cholesky, eigh, eigh_tridiagonal, qr_multiply, solve, svd

# Imported when they are asked for.
__getattr__, __dir__ = _late.attach(
    __name__,
    {
        "forms": (
            "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion",
            "hadamard", "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
        ),
        "functions": ("expm", "expm_frechet", "funm", "polar", "rsf2csf", "solve_sylvester", "sqrtm"),
        "problems": ("cholesky", "eigh", "eigh_tridiagonal", "qr_multiply", "solve", "svd"),
    },
)
