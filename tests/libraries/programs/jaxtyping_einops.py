"""Annotated functions that check shapes, and einops on arrays."""

import einops
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, Shaped, jaxtyped


@jaxtyped(typechecker=None)
def fits(x, i):
    """Return True if `x` is a matrix of floats and `i` a vector of integers."""
    return isinstance(x, Float[Array, "n d"]) and isinstance(i, Int[Array, "m"])


def attend(q, k, v):
    assert isinstance(q, Float[Array, "t d"])
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])) @ v


def main():
    x = jnp.asarray(np.random.default_rng(2).normal(size=(5, 4)).astype(np.float32))
    i = jnp.array([2, 0])
    answers = [
        fits(x, i), fits(x, x), fits(i, i), isinstance(x, Shaped[Array, "4 5"]), isinstance(x, Shaped[Array, "5 _"]),
        isinstance(jax.random.key(0), Key[Array, ""]), isinstance(jax.random.PRNGKey(0), PRNGKeyArray),
        isinstance(np.ones(2), Float[Array, "2"]), isinstance(np.ones(2), Float[np.ndarray, "2"]),
    ]  # fmt: skip
    images = jnp.arange(2 * 4 * 4 * 3, dtype=jnp.float32).reshape(2, 4, 4, 3)
    patches = jax.jit(lambda x: einops.rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2))(images)
    pooled = einops.reduce(images, "b (h p) (w q) c -> b h w c", "mean", p=2, q=2)
    return {
        "attended": jax.jit(attend)(x, x, x), "answers": answers,
        "patches": patches, "pooled": pooled, "repeated": einops.repeat(x, "n d -> n r d", r=2).sum(),
    }  # fmt: skip
