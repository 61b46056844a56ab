"""`jax.lax.linalg`: choices between implementations, of which the package has one for each platform."""

from __future__ import annotations

import enum


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
