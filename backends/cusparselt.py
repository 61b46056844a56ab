"""cuSPARSELt: products of matrices of which two in four entries are zero, on NVIDIA's GPUs.

XLA has an instruction for them, but StableHLO, which programs are lowered to, has none, and jaxlib does not
bring the library.
"""

from __future__ import annotations


def is_available() -> bool:
    """Return False: StableHLO cannot express 2:4 sparsity.

    >>> from functorch_like import backends
    >>> backends.cusparselt.is_available()
    False
    """
    return False


def version() -> int | None:
    """Return None: jaxlib does not bring the library.

    >>> from functorch_like import backends
    >>> backends.cusparselt.version() is None
    True
    """
    return None
