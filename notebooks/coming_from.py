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
# # Coming from JAX, coming from PyTorch
#
# One small model, three times. The left column is this package's, and runs in this notebook. The other two are the same
# thing in JAX and in PyTorch, to read beside it. The data are a noisy sine.
#
# In short: who knows JAX changes the imports. Who knows PyTorch keeps parameters outside of the model, and asks for the
# gradient of a *function* instead of calling `backward` on a value.

# %% [markdown]
# ### Imports
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>import functorch_like as ft
# import functorch_like.numpy as fnp</pre></td>
# <td align="left" valign="top"><pre>import jax
# import jax.numpy as jnp</pre></td>
# <td align="left" valign="top"><pre>import torch
# from torch import nn
# from torch.func import functional_call, grad, vmap</pre></td>
# </tr>
# </table>

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import pictures

rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, size=(256, 1)).astype("float32")
y = np.sin(x) + 0.1 * rng.normal(size=x.shape).astype("float32")

# %% [markdown]
# ### Parameters: a pytree here and in JAX, a module in PyTorch
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>def init(key, sizes=(1, 32, 32, 1)):
#     keys = ft.random.split(key, len(sizes) - 1)
#     return [
#         (ft.random.normal(k, (m, n)) * m**-0.5, fnp.zeros(n))
#         for k, m, n in zip(keys, sizes, sizes[1:])
#     ]
# params = init(ft.random.key(0))</pre></td>
# <td align="left" valign="top"><pre>def init(key, sizes=(1, 32, 32, 1)):
#     keys = jax.random.split(key, len(sizes) - 1)
#     return [
#         (jax.random.normal(k, (m, n)) * m**-0.5, jnp.zeros(n))
#         for k, m, n in zip(keys, sizes, sizes[1:])
#     ]
# params = init(jax.random.key(0))</pre></td>
# <td align="left" valign="top"><pre>torch.manual_seed(0)
# model = nn.Sequential(
#     nn.Linear(1, 32), nn.Tanh(),
#     nn.Linear(32, 32), nn.Tanh(),
#     nn.Linear(32, 1),
# )</pre></td>
# </tr>
# </table>


# %%
def init(key, sizes=(1, 32, 32, 1)):
    keys = ft.random.split(key, len(sizes) - 1)
    return [
        (ft.random.normal(k, (m, n)) * m**-0.5, fnp.zeros(n))
        for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


params = init(ft.random.key(0))

# %% [markdown]
# ### The model
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>def model(params, x):
#     for w, b in params[:-1]:
#         x = fnp.tanh(x @ w + b)
#     w, b = params[-1]
#     return x @ w + b</pre></td>
# <td align="left" valign="top"><pre>def model(params, x):
#     for w, b in params[:-1]:
#         x = jnp.tanh(x @ w + b)
#     w, b = params[-1]
#     return x @ w + b</pre></td>
# <td align="left" valign="top"><pre># model(x), from above</pre></td>
# </tr>
# </table>


# %%
def model(params, x):
    for w, b in params[:-1]:
        x = fnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


# %% [markdown]
# ### The loss
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>def loss(params, x, y):
#     return fnp.mean((model(params, x) - y) ** 2)</pre></td>
# <td align="left" valign="top"><pre>def loss(params, x, y):
#     return jnp.mean((model(params, x) - y) ** 2)</pre></td>
# <td align="left" valign="top"><pre>def loss(model, x, y):
#     return ((model(x) - y) ** 2).mean()</pre></td>
# </tr>
# </table>


# %%
def loss(params, x, y):
    return fnp.mean((model(params, x) - y) ** 2)


# %% [markdown]
# ### A step of training, compiled
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>@ft.jit
# def step(params, x, y):
#     value, grads = ft.value_and_grad(loss)(params, x, y)
#     new = ft.tree.map(lambda p, g: p - 0.05 * g, params, grads)
#     return new, value</pre></td>
# <td align="left" valign="top"><pre>@jax.jit
# def step(params, x, y):
#     value, grads = jax.value_and_grad(loss)(params, x, y)
#     new = jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)
#     return new, value</pre></td>
# <td align="left" valign="top"><pre>sgd = torch.optim.SGD(model.parameters(), lr=0.05)
# def step(x, y):  # torch.compile(step) compiles it
#     sgd.zero_grad()
#     value = loss(model, x, y)
#     value.backward()
#     sgd.step()
#     return value.detach()</pre></td>
# </tr>
# </table>


# %%
@ft.jit
def step(params, x, y):
    value, grads = ft.value_and_grad(loss)(params, x, y)
    new = ft.tree.map(lambda p, g: p - 0.05 * g, params, grads)
    return new, value


# %% [markdown]
# ### Training
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>for _ in range(3000):
#     params, value = step(params, x, y)</pre></td>
# <td align="left" valign="top"><pre>for _ in range(3000):
#     params, value = step(params, x, y)</pre></td>
# <td align="left" valign="top"><pre>for _ in range(3000):
#     value = step(x, y)</pre></td>
# </tr>
# </table>

# %%
for _ in range(3000):
    params, value = step(params, x, y)

# %% [markdown]
# ### A gradient for each example
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>def of_one(params, x, y):
#     return loss(params, x[None], y[None])
# each = ft.vmap(ft.grad(of_one), in_axes=(None, 0, 0))
# grads = ft.jit(each)(params, x, y)</pre></td>
# <td align="left" valign="top"><pre>def of_one(params, x, y):
#     return loss(params, x[None], y[None])
# each = jax.vmap(jax.grad(of_one), in_axes=(None, 0, 0))
# grads = jax.jit(each)(params, x, y)</pre></td>
# <td align="left" valign="top"><pre>def of_one(params, x, y):
#     call = lambda x: functional_call(model, params, x)
#     return loss(call, x[None], y[None])
# each = vmap(grad(of_one), in_dims=(None, 0, 0))
# grads = each(dict(model.named_parameters()), x, y)</pre></td>
# </tr>
# </table>


# %%
def of_one(params, x, y):
    return loss(params, x[None], y[None])


each = ft.vmap(ft.grad(of_one), in_axes=(None, 0, 0))
grads = ft.jit(each)(params, x, y)

# %% [markdown]
# ### Slope of the network by its input
#
# <table>
# <tr><th align="left">here</th><th align="left">JAX</th><th align="left">PyTorch</th></tr>
# <tr>
# <td align="left" valign="top"><pre>def f(x):
#     return model(params, x[None])[0]
# slope = ft.vmap(ft.grad(f))(x[:, 0])</pre></td>
# <td align="left" valign="top"><pre>def f(x):
#     return model(params, x[None])[0]
# slope = jax.vmap(jax.grad(f))(x[:, 0])</pre></td>
# <td align="left" valign="top"><pre>def f(x):
#     return model(x[None])[0]
# slope = vmap(grad(f))(x[:, 0])</pre></td>
# </tr>
# </table>


# %%
def f(x):
    return model(params, x[None])[0]


slope = ft.vmap(ft.grad(f))(x[:, 0])

# %%
order = np.argsort(x[:, 0])
norms = np.sqrt(sum(np.asarray(fnp.sum(g**2, axis=tuple(range(1, g.ndim)))) for g in ft.tree.leaves(grads)))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), layout="tight")
dots = left.scatter(x[:, 0], y[:, 0], c=norms, s=8, cmap="viridis_r")
left.plot(x[order, 0], np.asarray(model(params, x))[order, 0], color="#d8633b")
left.set(title="data, the colour is the gradient's norm")
figure.colorbar(dots, ax=left)
right.plot(x[order, 0], np.asarray(slope)[order], label="slope of the network")
right.plot(x[order, 0], np.cos(x[order, 0]), "--", color="#888888", label="cosine")
right.legend(fontsize=8)
pictures.show(
    figure,
    "Left: noisy points of a sine, coloured by the norm of their gradient, and the network through them. Right: the "
    "slope of the network follows a cosine roughly.",
)

# %% [markdown]
# ### Small things
#
# | | here | JAX | PyTorch |
# |---|---|---|---|
# | random numbers | `ft.random.normal(key, (3,))` | `jax.random.normal(key, (3,))` | `torch.randn(3)` |
# | change an element | `x = x.at[0].set(1)` | `x = x.at[0].set(1)` | `x[0] = 1` |
# | stop the gradient | `lax.stop_gradient(x)` | `lax.stop_gradient(x)` | `x.detach()` |
# | 64 bits | `fnp.ones(3, "float64")` | a switch for the process | `torch.ones(3, dtype=torch.float64)` |
# | choose by value | `lax.cond, or jit(control_flow="paths")` | `lax.cond` | `if` |
# | save | `ft.io.save(file, params)` | a library | `torch.save(model.state_dict(), file)` |
# | where the time went | `ft.profiler.profile()` | `jax.profiler.trace()` | `torch.profiler.profile()` |
# | why it compiled again | `ft.explain(f)(x)` | `jax_explain_cache_misses` | `TORCH_LOGS=recompiles` |

# %% [markdown]
# ## For those who know JAX
#
# Names and meanings are JAX's. These are the differences met first; `docs/differences.md` lists all that are known.
#
# There is no switch for 64 bits. NumPy arrays of float64 stay so, and where one meets float32 a warning names the line:

# %%
import warnings

wide, narrow = np.ones(3), fnp.ones(3)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print((wide * narrow).dtype)
print(str(caught[0].message).splitlines()[0])
print((fnp.asarray(wide, "float32") * narrow).dtype, (narrow * np.float64(2)).dtype)

# %% [markdown]
# An index that is a number is checked, and lists are indices, as in NumPy:

# %%
try:
    fnp.arange(3)[7]
except IndexError as e:
    print(e)
fnp.arange(5)[[0, 3]]

# %% [markdown]
# The slope of `abs` at 0 is 0, the middle of those on both sides:

# %%
ft.grad(abs)(0.0)

# %% [markdown]
# Keys are split as in JAX. The streams are other numbers than JAX's. `python -m functorch_like.as_jax program.py` runs
# a program written for JAX, and the libraries it imports, without a change: `docs/libraries.md`.
#
# ## For those who know PyTorch
#
# Arrays have NumPy's methods. Names of PyTorch that are something else here say so:

# %%
for name in ("backward", "detach", "cuda"):
    try:
        getattr(fnp.ones(3), name)
    except AttributeError as e:
        print(f"x.{name}: {e}\n")

# %% [markdown]
# `backward` has no counterpart, because nothing is recorded until you ask: `ft.grad(f)` is a new function, and so it
# can be differentiated, mapped and compiled again. What is in place in PyTorch is a new array here:

# %%
a = fnp.zeros(3)
try:
    a[0] = 1.0
except TypeError as e:
    print(e)
a = a.at[0].set(1.0)
a

# %% [markdown]
# `model.train()` and `model.eval()` are arguments of the model. So are running averages and random keys: a function
# takes what it depends on, and returns what it changes. `torch.no_grad()` is not needed.
#
# Tensors pass by DLPack without a copy: `ft.numpy.from_dlpack(tensor)`, `torch.from_dlpack(array)`. NumPy arrays can be
# given to any function.
#
# ## Next
#
# - the quickstart, and the notebook on transformations;
# - `docs/differences.md`: all differences, from JAX, torch.func and NumPy;
# - `docs/training.md`: mixed precision, saving, batches.
