"""`jax.experimental.pallas.ops.tpu.matmul`."""

from __future__ import annotations

from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of


def matmul(
    x: Any, y: Any, *, block_shape: Any = None, block_k: int = 256, out_dtype: Any = None, debug: bool = False
) -> Any:
    """Return x @ y, summed in float32, in `out_dtype` or the dtype of x; the other options have no effect."""
    wide = fnp.promote_types(aval_of(x).dtype, "float32")
    out = fnp.matmul(x, y, preferred_element_type=wide)
    return fnp.astype(out, aval_of(x).dtype if out_dtype is None else out_dtype)
