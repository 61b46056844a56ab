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
# # Follow a value
#
# A number goes in, and another comes out. In between, transformations rewrite the function, and XLA compiles it. Each
# of these stages can be looked at. This notebook follows one value through all of them, and answers three questions on
# the way: what takes the memory, why a function compiled again, and which line gives NaN.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import pictures

# %% [markdown]
# ## The function
#
# One layer and a loss. All that follows is about the value `h`.


# %%
def loss(w, x):
    h = fnp.tanh(x @ w)
    return fnp.mean((h - 1.0) ** 2)


rng = np.random.default_rng(0)
w, x = rng.normal(size=(3, 2)).astype("float32"), rng.normal(size=(5, 3)).astype("float32")
loss(w, x)

# %% [markdown]
# ## Its value, while the program runs
#
# `print` in a jitted function shows a stand-in, and shows it once, when the function is recorded. `ft.debug.print` is
# part of the program: it shows the value in each run. Under `vmap` it prints for each element.


# %%
@ft.jit
def shown(w, x):
    h = fnp.tanh(x @ w)
    print("print sees     ", h)
    ft.debug.print("debug.print sees {}", h[0])
    return fnp.mean((h - 1.0) ** 2)


shown(w, x)
shown(w, 2 * x)
ft.effects_barrier()  # wait until all is printed

# %% [markdown]
# `ft.debug.callback` hands values to any function of Python. Here it collects how large the values of a deep network
# are, layer by layer, for three scales of its weights.


# %%
@ft.jit
def deep(scale, x, weights):
    for layer, w in enumerate(weights):
        x = fnp.tanh(scale * x @ w)
        ft.debug.callback(
            lambda size, scale, layer=layer: sizes.append((float(scale), layer, float(size))), x.std(), scale
        )
    return x


sizes = []
weights = list(rng.normal(size=(12, 64, 64)).astype("float32") / 8)
for scale in (0.7, 1.0, 2.0):
    deep(scale, rng.normal(size=(100, 64)).astype("float32"), weights)
ft.effects_barrier()

figure, axes = plt.subplots(figsize=(6, 2.4), layout="tight")
for scale in (0.7, 1.0, 2.0):
    found = sorted((layer, size) for s, layer, size in sizes if abs(s - scale) < 1e-6)
    axes.semilogy(*zip(*found, strict=True), "o-", markersize=3, label=f"weights × {scale}")
axes.set(xlabel="layer", ylabel="standard deviation")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Standard deviation of values over twelve layers. With small weights it falls by a constant factor in each layer; "
    "with large ones it stays near 0.8.",
)

# %% [markdown]
# ## What transformations do to it
#
# `probe` returns its argument, and reports what happens to it: that it is mapped, that it has a tangent, that it gets a
# cotangent, that it is lowered.


# %%
def probed(w, x):
    h = ft.inspect.probe(fnp.tanh(x @ w), "h")
    return fnp.mean((h - 1.0) ** 2)


print("--- grad")
ft.grad(probed)(w, x)
print("--- vmap(grad)")
ft.vmap(ft.grad(probed), in_axes=(None, 0))(w, x)
print("--- jit(vmap(grad))")
_ = ft.jit(ft.vmap(ft.grad(probed), in_axes=(None, 0)))(w, x)

# %% [markdown]
# Read the last one from top to bottom. `vmap` hides the axis of 5 from `h`. `grad` gives it a tangent on the way
# forward and a cotangent on the way back. `jit` lowers both, with the axis in place.
#
# ## The program as data: jaxprs
#
# `make_jaxpr` records a function. Each line is an equation: a variable with its type, a primitive, and the line of the
# notebook it came from. `h` is the variable `d`.

# %%
forward = ft.make_jaxpr(loss)(w, x)
print(forward)

# %% [markdown]
# The gradient uses the same `d`, and then goes back: the last lines are in reverse order of the first.

# %%
backward = ft.make_jaxpr(ft.grad(loss))(w, x)
print(backward)

# %% [markdown]
# In a notebook the last expression of a cell is displayed: a jaxpr with colours and lines that fold, the differences
# between two, or a graph. Follow the arrows from `tanh` to see where `h` is used.

# %%
ft.inspect.diff(forward, backward)

# %%
ft.inspect.graph(backward)

# %% [markdown]
# A jaxpr is an object: `equations`, `inputs`, `outputs`. Counting primitives tells how much a transformation adds.

# %%
from collections import Counter

forms = {
    "f": loss,
    "grad(f)": ft.grad(loss),
    "vmap(f)": ft.vmap(loss, in_axes=(None, 0)),
    "vmap(grad(f))": ft.vmap(ft.grad(loss), in_axes=(None, 0)),
    "jvp(grad(f))": lambda w, x: ft.jvp(lambda w: ft.grad(loss)(w, x), (w,), (w,)),
}
counts = {name: Counter(e.prim.name for e in ft.make_jaxpr(f)(w, x).equations) for name, f in forms.items()}
common = [name for name, _ in sum(counts.values(), Counter()).most_common(6)]

figure, axes = plt.subplots(figsize=(7, 2.4), layout="tight")
left = np.zeros(len(forms))
for name in [*common, "other"]:
    each = np.array(
        [c[name] if name != "other" else sum(c.values()) - sum(c[k] for k in common) for c in counts.values()]
    )
    axes.barh(list(forms), each, left=left, label=name)
    left += each
axes.invert_yaxis()
axes.set(xlabel="equations")
axes.legend(fontsize=7, loc="upper right")
pictures.show(
    figure,
    "Bars of how many equations five forms of the function have, by primitive: the function has the fewest, its "
    "gradient about twice as many, and the product with the Hessian the most. vmap adds two or three.",
)

# %% [markdown]
# ## What is kept for the way back
#
# Between the way forward and the way back, values wait in memory. `print_saved_residuals` names them, with the line
# that made them.

# %%
ft.print_saved_residuals(loss, w, x)

# %% [markdown]
# For a deep network these add up. `ft.checkpoint` computes values again instead of keeping them. What that saves is
# measured by the compiled program: XLA says how many bytes it needs besides arguments and results.


# %%
def network(weights, x, wrap):
    layer = wrap(lambda w, x: fnp.tanh(fnp.tanh(fnp.tanh(x @ w) @ w) @ w))
    for w in weights:
        x = layer(w, x)
    return fnp.sum(x**2)


def temporary_bytes(wrap):
    step = ft.jit(ft.grad(lambda weights, x: network(weights, x, wrap)))
    specs = [ft.ShapeDtypeStruct((64, 64), "float32")] * 6, ft.ShapeDtypeStruct((4000, 64), "float32")
    return step.lower(*specs).compile().memory_analysis()["temp"]


memory = {"as it is": temporary_bytes(lambda f: f), "ft.checkpoint": temporary_bytes(ft.checkpoint)}
figure, axes = plt.subplots(figsize=(6, 1.5), layout="tight")
axes.barh(list(memory), [b / 2**20 for b in memory.values()], color=["#bbbbbb", "#3b7dd8"])
axes.set(xlabel="temporary memory, MiB")
pictures.show(figure, "Two bars: with ft.checkpoint the gradient takes about half of the temporary memory.")

# %% [markdown]
# ## Every stage at once
#
# `history` shows all stages of a function, and how each was made: the jaxpr, what is left after passes that remove and
# share equations, **StableHLO**, which is what XLA is given, and the **optimized HLO**, which is what XLA made of it.

# %%
stages = ft.inspect.history(ft.grad(loss))(w, x)
for stage in stages.stages:
    print(f"{stage.name:18} {stage.size:16} {stage.how}")

# %% [markdown]
# In StableHLO, `h` is the result of `stablehlo.tanh`. Constants and broadcasts are operations of their own here.

# %%
print(stages.stages[-2].text)

# %% [markdown]
# XLA *fuses* operations: it computes many in one loop over the elements, so that values between them never reach the
# memory. In the text below, `fusion` calls a `fused_computation`; `h` lives only inside it.

# %%
print(stages.stages[-1].text)
print("memory in bytes:", stages.memory)

# %% [markdown]
# ## Why did it compile again?
#
# `explain` calls a function and tells what happened, and why.

# %%
step = ft.jit(ft.grad(loss))
print(ft.explain(step)(w, x))
print(ft.explain(step)(w, x[:4]))
print(ft.explain(step)(w, x[:4]))

# %% [markdown]
# ## Which line gives NaN?
#
# The derivative of a root at 0 is infinite, and 0 times infinity is not a number. In a block of `ft.debug.nans()` each
# result is looked at, and the first NaN is an error at the line it comes from.


# %%
def norm(x):
    return fnp.sqrt(fnp.sum(x * x))


try:
    with ft.debug.nans():
        ft.jit(ft.grad(norm))(fnp.zeros(3))
except ft.FtError as e:
    print(e)

# %% [markdown]
# - `ft.debug.breakpoint()` stops within a program, and opens a prompt.
# - `ft.debug.minify` finds the smallest part of a program that fails.
# - `ft.profiler` says where the time goes; `ft.log_compiles` logs each stage with its time.
