"""The imports of each side: the only file in which the two differ. The cases are written once, by JAX's names."""

import platform
from importlib.metadata import version
from types import SimpleNamespace

# The same imports as text, for cases that start processes of their own.
IMPORTS = {
    "ours": "import functorch_like as ft, functorch_like.numpy as fnp",
    "jax": "import jax as ft, jax.numpy as fnp",
}


def load(side: str) -> SimpleNamespace:
    """Return `ft`, `fnp`, `lax`, `nn` and `random` of one side, its name and its versions."""
    if side == "ours":
        import functorch_like as ft
        import functorch_like.numpy as fnp
        from functorch_like import lax, nn, random
    else:
        import jax as ft
        import jax.numpy as fnp
        from jax import lax, nn, random
    name = "functorch_like" if side == "ours" else "jax"
    about = {name: version(name), "jaxlib": version("jaxlib"), "python": platform.python_version()}
    return SimpleNamespace(side=side, ft=ft, fnp=fnp, lax=lax, nn=nn, random=random, about=about)
