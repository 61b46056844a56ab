"""Only so that `from jaxlib import _jax` finds the stub beside this file; the other modules are jaxlib's own."""

from typing import Any

from . import _jax as _jax

__version__: str
xla_client: Any
plugin_support: Any
