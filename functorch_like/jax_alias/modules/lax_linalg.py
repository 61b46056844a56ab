"""`jax.lax.linalg`: results as lists, and choices between implementations, of which the package has one a platform."""

from __future__ import annotations

import enum

from functorch_like.jax_alias.modules.lax import listed
from functorch_like.lax import linalg

for _name in ("hessenberg", "lu", "schur", "tridiagonal"):
    globals()[_name] = listed(getattr(linalg, _name), "jax.lax.linalg")
del _name


class EighImplementation(enum.Enum):
    """An algorithm of `eigh`. It has no effect: the package chooses by platform and size."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """A library for `eig`. It has no effect: LAPACK computes it."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"
