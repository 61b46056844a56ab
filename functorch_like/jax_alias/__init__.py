"""Run libraries written for JAX on this package: `import jax` gives functorch_like under JAX's names.

    import functorch_like.jax_alias
    functorch_like.jax_alias.install()

    import optax  # and with it "jax"

`python -m functorch_like.as_jax script.py` does the same for a program as it is, `pytest --as-jax` for tests. An
installed JAX is neither imported nor changed. `jax.__version__` is the version of JAX that the installed jaxlib belongs
to, and `jax.__backend__` is "functorch_like".

A name of JAX that this package lacks is inert while modules are imported, and raises `MissingNameError` when it is
used.
"""

from __future__ import annotations

from functorch_like.jax_alias.finder import install as install
from functorch_like.jax_alias.finder import is_installed as is_installed
from functorch_like.jax_alias.missing import MissingNameError as MissingNameError

__all__ = ["MissingNameError", "install", "is_installed"]
