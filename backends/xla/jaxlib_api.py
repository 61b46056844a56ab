"""jaxlib itself, imported once and in the right order; every other file takes `_jax` and `xc` from here.

The order matters: jaxlib reads TF_CPP_MIN_LOG_LEVEL when it is loaded, `jax` must not be imported before, and may
not be imported after it (see `guard.py`).
"""

from __future__ import annotations

import os

from functorch_like.backends.xla import guard

guard.refuse_jax()
VERSION: tuple[int, ...] = guard.check_jaxlib()
# At level 0 creating a client writes INFO lines to stderr. E-lines (use after donation, ...) still come.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

from jaxlib import _jax  # noqa: E402
from jaxlib import xla_client as xc  # noqa: E402

guard.deny_jax()

# TRAP: 0.10 takes one more argument in array_result_handler than later versions.
HANDLER_SKIPS_CHECKS: bool = VERSION < (0, 11)
# TRAP: 0.10 may give batched products layouts that its loops cannot write (primitives/contractions/precision.py).
BATCHED_DOTS_MISLAID: bool = VERSION < (0, 11)
# TRAP: oneDNN of 0.10 starts threads inside of its threads for products of many matrices (library_check.py).
ONEDNN_NESTS_THREADS: bool = VERSION < (0, 11)
# The full version string with the number of the extension interface: part of every key of the on-disk cache.
FULL_VERSION: str = f"{guard.jaxlib_version()}+{xc._version}"

ArrayImpl = _jax.ArrayImpl
Array = _jax.Array
JaxRuntimeError = _jax.JaxRuntimeError
