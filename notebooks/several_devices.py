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
# # Several devices
#
# One array may lie on several devices, and a compiled function then runs on all of them. You write the function as for
# one device; the compiler splits it, and puts in what the devices have to exchange.
#
# This notebook makes eight devices of one processor. That computes nothing faster, but it shows what eight GPUs would
# do. The number is settled before the first array is made.

# %%
import os

os.environ["FT_CPU_DEVICES"], os.environ["FT_PLATFORM"] = "8", "cpu"

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

ft.device_count()

# %% [markdown]
# ## Meshes and specs
#
# A **mesh** is a grid of devices whose axes have names. A **spec** says for each dimension of an array which axes split
# it. Both together are a sharding.

# %%
mesh = ft.make_mesh((4, 2), ("data", "model"))
x = ft.device_put(np.arange(128.0).reshape(8, 16), NamedSharding(mesh, P("data", "model")))
ft.debug.visualize_array_sharding(x)

# %% [markdown]
# Two of the devices may hold the same part: here the rows are split, and the axis `model` splits nothing.

# %%
rows = NamedSharding(mesh, P("data"))
ft.debug.visualize_sharding((8, 16), rows)

# %% [markdown]
# Both axes may split one dimension:

# %%
ft.debug.visualize_sharding((8, 16), NamedSharding(mesh, P(None, ("data", "model"))))

# %% [markdown]
# An array on several devices is used like any other. Its parts are there when you want to see them.

# %%
print(x.sum(), x[2, 3], x.sharding)
x.addressable_shards[3].index, x.addressable_shards[3].data.shape

# %% [markdown]
# ## Compiled functions
#
# The result of this product is split by rows of the left and columns of the right operand; no device needs anything of
# another.

# %%
w = ft.device_put(np.ones((16, 4)), NamedSharding(mesh, P(None, "model")))
layer = ft.jit(lambda x, w: fnp.tanh(x @ w))
ft.debug.visualize_array_sharding(layer(ft.device_put(x, rows), w))

# %% [markdown]
# If the dimension that is summed over is split, parts of sums have to be added up. `explain` shows who chose which
# sharding, and what is exchanged.

# %%
left = ft.device_put(x, NamedSharding(mesh, P("data", "model")))
right = ft.device_put(w, NamedSharding(mesh, P("model")))
print(ft.explain(layer)(left, right))

# %% [markdown]
# ## Training
#
# `data_parallel` splits the batch and leaves the weights whole on each device. The gradient of a mean over the batch is
# that of the whole batch: the compiler adds up the parts.

# %%
rng = np.random.default_rng(0)
truth = rng.standard_normal(16)
images = rng.standard_normal((256, 16))
labels = images @ truth


def step(w, batch):
    x, y = batch
    value, gradient = ft.value_and_grad(lambda w: fnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, value


train = ft.parallel.data_parallel(step)
weights = np.zeros(16)
for _ in range(100):
    weights, loss = train(weights, (images, labels))
print(f"loss {float(loss):.2e}; as far from the truth as {np.abs(np.asarray(weights) - truth).max():.1e}")

# %% [markdown]
# ## Programs of one device
#
# `shard_map` turns it round: the function is written for one device and its part, and exchanges values itself. Here
# each device adds up its part, and `psum` adds up what they have.

# %%
total = ft.shard_map(
    lambda part: lax.psum(part.sum(), ("data", "model")), mesh=mesh, in_specs=P("data", "model"), out_specs=P()
)
float(total(x)), float(np.arange(128.0).sum())

# %% [markdown]
# Devices may also pass their parts on, as around a ring:

# %%
ring = ft.make_mesh((8,), ("ring",))
pairs = [(k, (k + 1) % 8) for k in range(8)]
passed = ft.shard_map(
    lambda part: lax.ppermute(part, "ring", pairs), mesh=ring, in_specs=P("ring"), out_specs=P("ring")
)
print(passed(np.arange(8)))
assert passed(np.arange(8)).tolist() == [7, 0, 1, 2, 3, 4, 5, 6]

# %% [markdown]
# More is in `docs/sharding.md`; programs of several processes and training that outlives its workers in
# `docs/distributed.md`.
