"""The imports of a side: this package, or JAX where FT_ZOO_SIDE is "jax". Models are the same source on both."""

# pyright: reportMissingImports=false
import os

if os.environ.get("FT_ZOO_SIDE") == "jax":
    import jax as ft
    import jax.numpy as np
    from jax import lax, nn
else:
    import functorch_like as ft
    import functorch_like.numpy as np
    from functorch_like import lax, nn

__all__ = ["ft", "lax", "nn", "np"]
