"""A step of AdamW on a causal transformer of equinox: 6 blocks of 256, 8 heads, 64 tokens, 8 sequences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCABULARY, WIDTH, HEADS, BLOCKS, LENGTH, BATCH = 512, 256, 8, 6, 64, 8


class Block(eqx.Module):
    """Attention and a dense network, each with a residual connection."""

    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP
    norms: list

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=first)
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, 1, jax.nn.gelu, key=second)
        self.norms = [eqx.nn.LayerNorm(WIDTH), eqx.nn.LayerNorm(WIDTH)]

    def __call__(self, x):
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        y = jax.vmap(self.norms[0])(x)
        x = x + self.attention(y, y, y, mask)
        return x + jax.vmap(lambda row: self.mlp(self.norms[1](row)))(x)


class Transformer(eqx.Module):
    """Logits of the next token, for each token."""

    words: eqx.nn.Embedding
    places: eqx.nn.Embedding
    blocks: list
    last: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, BLOCKS + 3)
        self.words = eqx.nn.Embedding(VOCABULARY, WIDTH, key=keys[0])
        self.places = eqx.nn.Embedding(LENGTH, WIDTH, key=keys[1])
        self.last = eqx.nn.Linear(WIDTH, VOCABULARY, key=keys[2])
        self.blocks = [Block(key) for key in keys[3:]]

    def __call__(self, tokens):
        x = jax.vmap(self.words)(tokens) + jax.vmap(self.places)(jnp.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.last)(x)


def make(given):
    """Return the step, its arguments, and a function of its results: the value that the sides must agree on."""
    arrays, static = eqx.partition(Transformer(jax.random.key(0)), eqx.is_array)
    arrays = given(arrays)
    optimizer = optax.adamw(1e-3)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)

    def loss(arrays):
        logits = jax.vmap(eqx.combine(arrays, static))(tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def step(arrays, state):
        value, slopes = jax.value_and_grad(loss)(arrays)
        updates, state = optimizer.update(slopes, state, arrays)
        return optax.apply_updates(arrays, updates), state, value

    return step, (arrays, jax.jit(optimizer.init)(arrays)), lambda out: out[2]
