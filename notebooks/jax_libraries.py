# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A model of equinox, trained by optax
#
# Libraries written for JAX run on this package as they are. One call puts it under JAX's names; `import jax`, here and
# in the libraries, gives this package from then on.
#
# This notebook needs `equinox` and `optax`: `docs/libraries.md` tells how they are installed without JAX.

# %%
import functorch_like.jax_alias

functorch_like.jax_alias.install()

import os
import subprocess
import sys
import tempfile

import equinox as eqx
import jax
import numpy as np
import optax

jax.__backend__, isinstance(jax.numpy.ones(2), functorch_like.Array)

# %% [markdown]
# ## The data
#
# Two spirals, to be told apart.


# %%
def spirals(count, rng):
    side = rng.integers(0, 2, count)
    turn = rng.uniform(0.5, 3.0, count) * np.pi
    angle = turn + np.pi * side
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) / 6
    return (points + 0.03 * rng.normal(size=points.shape)).astype("float32"), side.astype("float32")


points, sides = spirals(512, np.random.default_rng(0))
points.shape, sides.mean()

# %% [markdown]
# ## The model
#
# A network of equinox is a pytree. `eqx.filter_jit` compiles the step, `eqx.filter_value_and_grad` differentiates with
# respect to the arrays in it.


# %%
def make(key):
    return eqx.nn.MLP(in_size=2, out_size="scalar", width_size=48, depth=3, activation=jax.nn.gelu, key=key)


model = make(jax.random.key(0))
optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-3, 50, 800))
state = optimizer.init(eqx.filter(model, eqx.is_array))


def loss(model, points, sides):
    logits = jax.vmap(model)(points)
    return optax.sigmoid_binary_cross_entropy(logits, sides).mean()


@eqx.filter_jit
def step(model, state, points, sides):
    value, slope = eqx.filter_value_and_grad(loss)(model, points, sides)
    updates, state = optimizer.update(slope, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


# %%
losses = []
for _ in range(800):
    model, state, value = step(model, state, points, sides)
    losses.append(value)
[round(float(losses[k]), 3) for k in (0, 100, 400, 799)]

# %%
right = (jax.vmap(model)(points) > 0) == (sides > 0.5)
assert right.mean() > 0.97
f"{100 * float(right.mean()):.1f} % of the points are on the right side"

# %% [markdown]
# ## What the first step costs, and the second start
#
# The first call of a step traces and compiles it. A program that starts again finds the compiled one on disk: this
# package keeps them by default. The same script, run twice with an empty cache:

# %%
SCRIPT = """
import time
begin = time.perf_counter()
import equinox as eqx, jax, jax.numpy as jnp, numpy as np, optax
model = eqx.nn.MLP(2, "scalar", 48, 3, jax.nn.gelu, key=jax.random.key(0))
optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 5e-3, 50, 800))
params, static = eqx.partition(model, eqx.is_array)
state = jax.jit(optimizer.init)(params)
x, y = np.ones((512, 2), "float32"), np.ones(512, "float32")

def loss(params):
    logits = jax.vmap(eqx.combine(params, static))(x)
    return optax.sigmoid_binary_cross_entropy(logits, y).mean()

def step(params, state):
    value, slope = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(slope, state, params)
    return optax.apply_updates(params, updates), state, value

ready = time.perf_counter()
traced = jax.jit(step).trace(params, state)
after = time.perf_counter()
jax.block_until_ready(jax.jit(step)(params, state))
print(after - ready, time.perf_counter() - after, time.perf_counter() - begin)
"""


def started(folder):
    command = [sys.executable, "-P", "-m", "functorch_like.as_jax", "-c", SCRIPT]
    done = subprocess.run(command, env={**os.environ, "FT_CACHE_DIR": folder}, capture_output=True, text=True)
    return [float(number) for number in done.stdout.split()]


with tempfile.TemporaryDirectory() as folder:
    first, second = started(folder), started(folder)
print("            trace    first step   whole script")
for name, times in (("first", first), ("second", second)):
    print(f"{name:8s}" + "".join(f"{1000 * t:10.0f} ms" for t in times))

# %% [markdown]
# JAX's times of the same script and this package's, taken in turn on one machine, each with an empty cache at first.
# JAX's cache of compiled programs was on (`JAX_COMPILATION_CACHE_DIR`, without a least time or size).
#
#     JAX 0.10.2        trace    first step   whole script
#     first            185 ms       1406 ms        6666 ms
#     second           188 ms        202 ms        2641 ms
#
#     functorch_like    trace    first step   whole script
#     first             24 ms        290 ms        2931 ms
#     second            18 ms        161 ms        1381 ms
#
# "First step" holds lowering, compiling or loading, and the step; "whole script" the imports of the libraries, too.
