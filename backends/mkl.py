"""Intel's MKL, which XLA does not use.

Products run in YNNPACK, oneDNN or Eigen (`backends.ynn`, `backends.mkldnn`); linear algebra calls the LAPACK that SciPy
brings along, OpenBLAS in the usual wheels.
"""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Return False: no compiled program calls MKL.

    >>> from functorch_like import backends
    >>> backends.mkl.is_available()
    False
    """
    return False


def blas() -> str:
    """Return the BLAS that SciPy was built with; linear algebra on CPUs calls SciPy's LAPACK.

    >>> from functorch_like import backends
    >>> isinstance(backends.mkl.blas(), str)
    True
    """
    import scipy

    configuration: Any = scipy.show_config(mode="dicts")
    library = configuration["Build Dependencies"].get("lapack", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()
