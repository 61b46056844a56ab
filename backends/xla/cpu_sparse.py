"""The product of a CSR matrix and a dense one on CPUs, by Eigen, through the custom call that jaxlib brings along."""

from __future__ import annotations

import functools

import numpy as np

from functorch_like.backends.xla import foreign

#: The name of the custom call: operands (values, row pointers, columns, dense matrix), result (rows, columns).
TARGET = "cpu_csr_sparse_dense_ffi"
_VALUES = frozenset(("float32", "float64", "complex64", "complex128", "int32", "int64"))
_INDICES = frozenset(("int32", "int64"))


@functools.cache
def available() -> bool:
    """Return True if jaxlib has the kernel, and make it callable from compiled programs."""
    try:
        from jaxlib.cpu import _sparse

        handler = _sparse.registrations()[TARGET]
    except (ImportError, KeyError):
        return False
    foreign.register(TARGET, handler, "cpu")
    return True


def takes(values: np.dtype, indices: np.dtype) -> bool:
    """Return True if the kernel takes these dtypes and is there."""
    return values.name in _VALUES and indices.name in _INDICES and available()
