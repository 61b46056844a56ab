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
# # Backends: what the settings do
#
# `functorch_like.backends` holds the settings, under the names of `torch.backends` where that has them. Each trades one
# thing for another: digits for speed, compile time for run time. This notebook shows the effect of some, each with a
# picture. Times are those of the machine that ran it; look at the ratios.

# %%
import timeit

import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import pictures

rng = np.random.default_rng(0)


def milliseconds(call, number=5):
    """The shortest time of a call, after a first one that compiles."""
    call()
    return 1e3 * min(timeit.repeat(call, number=number, repeat=3)) / number


# %% [markdown]
# ## Which there are
#
# `describe` tells the value of each setting, where it came from, and whether it has an effect here. It takes the first
# part of names.

# %%
ft.backends.describe("mkldnn")

# %% [markdown]
# A setting is assigned for all threads, or holds within a block. A wrong value is an error that names the right ones.

# %%
with ft.backends.flags(fp32_precision="bf16"):
    print("inside: ", ft.backends.fp32_precision)
print("outside:", ft.backends.fp32_precision)

try:
    ft.backends.fp32_precision = "fp16"
except ft.FtError as e:
    print(e)

# %% [markdown]
# ## Precision of products
#
# Products of float32 are computed in float32, everywhere, unless something else is asked for. `fp32_precision="bf16"`
# allows operands rounded to 8 bits. It is for processors and GPUs that have units for it, where it is several times
# faster. Here are the errors of a product of two matrices, against float64.

# %%
a, b = rng.normal(size=(2, 256, 256)).astype("float32")
exact = a.astype("float64") @ b.astype("float64")

figure, axes = plt.subplots(figsize=(7, 2.4), layout="tight")
for precision in ("ieee", "bf16"):
    with ft.backends.flags(fp32_precision=precision):
        product = np.asarray(ft.jit(fnp.matmul)(a, b))
    error = np.abs(product - exact).ravel() / np.abs(exact).mean()
    axes.hist(np.log10(error + 1e-12), bins=80, alpha=0.7, label=precision)
    print(f"{precision}: typical error {np.median(error):.1e} of a typical element")
axes.set(xlabel="log10 of the error, relative to a typical element", ylabel="elements")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Two histograms of errors on a logarithmic axis. Those of ieee lie about four orders of magnitude to the left of "
    "those of bf16.",
)

# %% [markdown]
# `ft.default_matmul_precision("bfloat16")` and `precision=` of a call are JAX's names for the same. On GPUs there is
# `"tf32"` besides: 11 bits, and the full range of exponents.
#
# ## The order of a sum
#
# Additions of floats round, so their order matters. Below, the same ten thousand numbers are added in 300 orders: the
# results differ in the last digits. Which order a compiled program takes is fixed when it is compiled. On CPUs the same
# program gives the same bits in each run.

# %%
numbers = (rng.normal(size=10_000) * np.exp(rng.normal(size=10_000))).astype("float32")
orders = np.array([rng.permutation(len(numbers)) for _ in range(300)])
total = ft.jit(fnp.sum)
sums = np.array([total(numbers[order]) for order in orders])
again = np.array([total(numbers) for _ in range(300)])

figure, axes = plt.subplots(figsize=(7, 2.2), layout="tight")
truth = numbers.astype("float64").sum()
axes.hist(sums - truth, bins=40, color="#9db8dd", label="300 orders")
axes.axvline(again[0] - truth, color="#d8633b", label="one order, 300 times")
axes.set(xlabel="sum in float32, less the exact one", ylabel="orders")
axes.legend(fontsize=8)
pictures.show(
    figure, "A histogram of rounding errors of a sum over 300 orders, and one line: the same order gives one result."
)
print("different results of 300 runs in one order:", len(set(again.tolist())))

# %% [markdown]
# On GPUs some operations add in whichever order threads finish, and kernels are chosen by timing them.
# `ft.backends.use_deterministic_algorithms(True)` fixes both, or refuses what has no fixed order before it compiles.
# `ft.testing.assert_deterministic` runs a function in fresh processes, and compares bits.

# %% [markdown]
# ## The order of an einsum
#
# A chain of products can be computed in many orders, and they differ by orders of magnitude. `einsum` looks for a good
# one; `einsum_path` tells which, and what it costs.

# %%
operands = [rng.normal(size=s).astype("float32") for s in ((300, 8), (8, 300), (300, 8), (8, 300), (300,))]
formula = "ij,jk,kl,lm,m->i"
path, found = fnp.einsum_path(formula, *operands)
print(found)

# %%
strategies = {"in one loop": None, "left to right": [(0, 1), (0, 3), (0, 2), (0, 1)], "found": path}
counts = {"in one loop": found.flops * found.speedup, "found": found.flops}
counts["left to right"] = fnp.einsum_path(formula, *operands, optimize=[(0, 1), (0, 3), (0, 2), (0, 1)])[1].flops
times = {}
for name in ("left to right", "found"):
    f = ft.jit(lambda *operands, name=name: fnp.einsum(formula, *operands, optimize=strategies[name]))
    times[name] = milliseconds(lambda f=f: f(*operands).block_until_ready(), number=20)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 1.8), layout="tight")
left.barh(list(counts), list(counts.values()), color="#9db8dd")
left.set(xscale="log", xlabel="operations (logarithmic)")
right.barh(list(times), list(times.values()), color="#9db8dd")
right.set(xlabel="milliseconds")
pictures.show(
    figure,
    "Left: operations of one loop over all letters, of products from left to right, and of the path that was found, "
    "each orders of magnitude below the one before. Right: the found path takes a fraction of the time.",
)

# %% [markdown]
# ## Forms of an operation
#
# XLA's own lowering of some operations is slow on CPUs. The package writes other forms of the same meaning for them.
# `cpu.fast_lowerings` switches them, all or one by one, and `docs/lowerings.md` has the measurements.

# %%
rows = rng.normal(size=(200, 2000)).astype("float32")
work = {"sort": fnp.sort, "cumsum": lambda x: fnp.cumsum(x, axis=1)}
shown = {}
for fast in (False, True):
    with ft.backends.flags(cpu_fast_lowerings=fast):
        for name, f in work.items():
            f = ft.jit(f)
            shown[name, fast] = milliseconds(lambda f=f: f(rows).block_until_ready(), number=2)

figure, axes = plt.subplots(figsize=(7, 1.7), layout="tight")
for offset, fast, color in ((-0.2, False, "#bbbbbb"), (0.2, True, "#3b7dd8")):
    axes.barh(
        np.arange(2) + offset, [shown[name, fast] for name in work], 0.4, color=color, label=f"fast_lowerings={fast}"
    )
axes.set(yticks=range(2), yticklabels=work, xscale="log", xlabel="milliseconds (logarithmic)")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Bars of time for sort and cumsum: the package's forms take a fraction of the time of XLA's.",
)

# %% [markdown]
# ## Autotuning
#
# A program can be compiled in several ways: which parts go to which library, and so on. A rule chooses by what the
# program contains. `jit(mode="max-autotune")` measures instead: it compiles each way, times them on the arguments of
# the first call, and keeps the fastest. `explain` tells what it found.


# %%
def pairwise(x):
    distance = fnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    return fnp.sum(fnp.exp(-distance), axis=1)


tuned = ft.jit(pairwise, mode="max-autotune")
told = ft.explain(tuned)(rng.normal(size=(400, 8)).astype("float32"))
(event,) = [event for event in told.events if event.kind == "tune"]
ways = {way.name: 1e3 * seconds for way, seconds in event.about["seconds_of"].items()}

figure, axes = plt.subplots(figsize=(6, 1.8), layout="tight")
best = min(ways, key=ways.get)
axes.barh(list(ways), list(ways.values()), color=["#3b7dd8" if name == best else "#bbbbbb" for name in ways])
axes.set(xlabel="milliseconds", title=f"kept: {best}")
pictures.show(
    figure, "Bars of the time of each way in which the program was compiled; the shortest is marked, and was kept."
)

# %% [markdown]
# ## Where the time goes
#
# `profile` measures the operations of compiled programs, and says which line of yours each comes from. Measure before
# you change a setting.


# %%
@ft.jit
def attention(x, w):
    query, key, value = x @ w[0], x @ w[1], x @ w[2]
    scores = query @ key.T / np.float32(8)
    shares = fnp.exp(scores - fnp.max(scores, axis=1, keepdims=True))
    return fnp.sort(shares / fnp.sum(shares, axis=1, keepdims=True), axis=1) @ value


x, w = rng.normal(size=(500, 64)).astype("float32"), rng.normal(size=(3, 64, 64)).astype("float32") / 8
attention(x, w).block_until_ready()
with ft.profiler.profile() as profile:
    for _ in range(5):
        attention(x, w).block_until_ready()

top = profile.operations[:6][::-1]
figure, axes = plt.subplots(figsize=(8, 2.2), layout="tight")
axes.barh([f"{op.name}  ({op.line})" for op in top], [1e3 * op.seconds / 5 for op in top], color="#9db8dd")
axes.set(xlabel="milliseconds in each call")
pictures.show(
    figure, "Bars of the six operations that take longest, with their lines: the sort takes most of the time by far."
)
profile

# %% [markdown]
# The last line takes longest, and most of that is the `sort`, which was added to look at the shares.
#
# Each setting has an environment variable as well: `FT_FP32_PRECISION=bf16 python train.py`. `docs/settings.md` lists
# all of them, with their effects on CPUs and GPUs.
