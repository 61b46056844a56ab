"""`jax.scipy.signal`: convolutions of integers in floats."""

from __future__ import annotations

from functorch_like.jax_alias.modules.numpy import in_floats
from functorch_like.scipy import signal

convolve, convolve2d, correlate, correlate2d = (
    in_floats(getattr(signal, name), 2, "jax.scipy.signal")
    for name in ("convolve", "convolve2d", "correlate", "correlate2d")
)
