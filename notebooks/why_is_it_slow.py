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
# # Why is it slow?
#
# A function takes longer than expected. There are few reasons, and each is found by one tool:
#
# | it is slow | because | found by |
# |---|---|---|
# | at every call | it is not compiled | a clock, with `block_until_ready` |
# | at the first call | it is traced and compiled | `ft.explain` |
# | at the first call of each process | compiled programs are not found on disk | `ft.explain`: "compiled" or "loaded" |
# | in the first calls of a new program | it runs in the quick tier | `ft.explain`: "in the quick tier" |
# | at some calls, or at all | it is traced again | `ft.explain`: the reason behind "traced" |
# | at every call, although compiled | its operations take that long | `ft.profiler.profile` |
#
# The cells below make each mistake on purpose. Times are those of the machine that ran them. All cells together take
# about ten seconds.

# %%
import os
import tempfile
import time

os.environ["FT_CACHE_DIR"] = (
    tempfile.mkdtemp()
)  # an empty cache on disk: first calls below compile, however often you run this

import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import pictures
from functorch_like.lax import fori_loop

# %% [markdown]
# ## Timing
#
# A timing must leave out the first call, which compiles, and it must wait for the result. On GPUs, and on CPUs under
# `FT_CPU_ASYNC=1`, a call returns before its result is computed.


# %%
def milliseconds(function, *args, repeats=30):
    """Return the shortest time of a call, after a first one. (Other programs on the machine only add to it.)"""
    ft.block_until_ready(function(*args))
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        ft.block_until_ready(function(*args))
        times.append(1e3 * (time.perf_counter() - started))
    return min(times)


def draw_bars(times, alt, xlabel="one call, ms"):
    figure, axes = plt.subplots(figsize=(6.5, 0.5 + 0.3 * len(times)), layout="tight")
    bars = axes.barh(list(times)[::-1], list(times.values())[::-1])
    axes.bar_label(bars, fmt=lambda value: f" {value:,.0f}" if value > 100 else f" {value:.3g}", fontsize=8)
    axes.set(xlabel=xlabel, xlim=(0, 1.15 * max(times.values())))
    pictures.show(figure, alt)


# %% [markdown]
# ## Eager and compiled
#
# Without `jit` each operation is a program of its own: it costs a few microseconds for the call, and one pass over
# memory. With `jit` there is one call, and operations are fused, so there are fewer passes. Small arrays gain from the
# first, large arrays from the second.
#
# `optimised()` waits for the final form of a program; the next section explains it.


# %%
def smooth(x):
    for _ in range(10):
        x = x + 0.1 * fnp.tanh(fnp.sin(x) * fnp.cos(x) - x)
    return x


fast = ft.jit(smooth)
sizes = [10**k for k in range(1, 7)]
arrays = [fnp.linspace(-1, 1, n) for n in sizes]
eager = [milliseconds(smooth, x, repeats=5) for x in arrays]
for x in arrays:
    fast(x)
fast.optimised()
compiled = [milliseconds(fast, x, repeats=5) for x in arrays]

figure, axes = plt.subplots(figsize=(5, 2.4), layout="tight")
axes.loglog(sizes, eager, marker="o", label="eager")
axes.loglog(sizes, compiled, marker="o", label="jit")
axes.set(xlabel="elements", ylabel="one call, ms")
axes.legend(fontsize=8)
pictures.show(figure, "Time against size on logarithmic axes: the compiled function is below the eager one everywhere.")

# %% [markdown]
# ## Tiers
#
# XLA's full optimisation takes several times as long as a quick compilation. So on CPUs a new program is compiled
# quickly at first: it runs in the *quick tier*. Once its calls have taken long enough, it is compiled again in the
# background, and a later call runs the optimised program. `ft.explain` and profiles name what ran in the quick tier.
#
# For programs that are called rarely this saves time. A timing should begin with `f.optimised()`, which waits for the
# optimised program. (`FT_COMPILATION_TIERS=off` optimises all programs at once. See the section on tiers in
# `docs/architecture.md`.)


# %%
@ft.jit
def polished(x):
    for _ in range(10):
        x = x + 0.1 * fnp.tanh(fnp.cos(x) - x)
    return x


large = fnp.linspace(-1, 1, 10_000)
polished(large)
calls = []
for number in range(500):
    if number == 400:
        polished.optimised()
    started = time.perf_counter()
    ft.block_until_ready(polished(large))
    calls.append(1e3 * (time.perf_counter() - started))

figure, axes = plt.subplots(figsize=(6.5, 2.2), layout="tight")
axes.plot(calls, ".", markersize=3)
axes.axvline(400, color="gray", linewidth=0.8)
top = 2 * np.median(calls[:50])
axes.text(395, 0.95 * top, "optimised()", ha="right", va="top", fontsize=8)
axes.set(xlabel="call", ylabel="ms", ylim=(0, top))
pictures.show(figure, "The time of 500 calls: high in the quick tier at first, and a fraction of that once optimised.")

# %% [markdown]
# ## The first call
#
# `ft.explain(f)` is a function that calls `f` and reports what that did: tracing, lowering, compiling, each with its
# time. A notebook displays the report; in a script, print it.


# %%
def energy(x):
    return fnp.sum(fnp.sin(smooth(x)) ** 2)


x = fnp.linspace(-1, 1, 1000)
slope = ft.jit(ft.grad(energy))
first = ft.explain(slope)(x)
first

# %% [markdown]
# ## The cache
#
# Compiled programs are kept on disk. `ft.clear_caches` empties the caches in memory, as in a new process; then the same
# call loads the program instead of compiling it. (`FT_CACHE=0` switches the cache off, `FT_CACHE_DIR` moves it.)

# %%
ft.clear_caches()
new_process = ft.explain(slope)(x)
new_process

# %%
slope.optimised()
draw_bars(
    {
        "first call, nothing on disk": 1e3 * first.seconds,
        "first call of a new process": 1e3 * new_process.seconds,
        "later calls": milliseconds(slope, x),
    },
    "Bars: the first call takes longest, that of a new process less, and later calls take a small part of both.",
)

# %% [markdown]
# ## Traced again: shapes
#
# A program is made for shapes and dtypes. For each new one the function is traced and compiled again. `explain` names
# the argument and what was new:


# %%
@ft.jit
def norm(v):
    return fnp.sqrt(fnp.sum(v * v))


norm(fnp.ones(10))
print(ft.explain(norm)(fnp.ones(11)), "\n")
print(ft.explain(norm)(np.ones(11)))  # NumPy's ones are float64

# %% [markdown]
# Pad data of many lengths to a few, with a mask that is False for the padding. (`ft.jit(f, buckets=...)` does that for
# you: see `docs/control_flow.md`.)


# %%
def traced(calls):
    """Return the number of traces of some calls, and their time in seconds."""
    before = time.perf_counter()
    count = sum(ft.explain(function)(*args).count("trace") for function, args in calls)
    return count, time.perf_counter() - before


def total(v, mask):
    return fnp.sum(fnp.where(mask, fnp.tanh(v), 0))


def padded(v, step=32):
    size = -(-len(v) // step) * step
    return np.pad(v, (0, size - len(v))), np.arange(size) < len(v)


lengths = np.random.default_rng(0).integers(1, 100, 30)
rows = [np.ones(n, np.float32) for n in lengths]
each, few = ft.jit(total), ft.jit(total)
results = {
    "each length": traced([(each, (v, np.ones(len(v), bool))) for v in rows]),
    "padded to multiples of 32": traced([(few, padded(v)) for v in rows]),
}
for name, (count, seconds) in results.items():
    print(f"{name}: {count} traces, {seconds:.2f} s")

# %%
draw_bars(
    {name: seconds for name, (_, seconds) in results.items()},
    "Two bars: thirty calls with padding take a small part of the time of thirty calls without.",
    "thirty calls, s",
)

# %% [markdown]
# ## Traced again: static arguments
#
# A static argument is a constant of the program. That suits options, and not numbers that change:


# %%
def step(w, rate):
    return w - rate * w


static = ft.jit(step, static_argnums=1)
for rate in (0.1, 0.2):
    print(ft.explain(static)(fnp.ones(3), rate), "\n")

# %% [markdown]
# Without `static_argnums` the rate is an ordinary argument. Python numbers are allowed as arguments.
#
# ## Traced again: a new function each time
#
# Traces are kept with the function. A `lambda` inside a loop makes a new function in each iteration, so it is traced
# each time:

# %%
inside = traced([(ft.jit(lambda v: fnp.sum(v) * 2), (x,)) for _ in range(10)])
once = ft.jit(lambda v: fnp.sum(v) * 2)
outside = traced([(once, (x,)) for _ in range(10)])
print(f"jit inside the loop:  {inside[0]} traces, {1e3 * inside[1]:.1f} ms")
print(f"jit outside the loop: {outside[0]} trace,  {1e3 * outside[1]:.1f} ms")

# %% [markdown]
# ## Python loops are unrolled
#
# A `for` loop in a traced function is unrolled: the program holds the operations of all iterations. Ten iterations are
# fine; with hundreds, compiling takes long. `scan` and `fori_loop` trace the body once:


# %%
def rolled(x):
    return fori_loop(0, 100, lambda i, x: x + 0.1 * fnp.tanh(fnp.sin(x) - x), x)


def unrolled(x):
    for _ in range(100):
        x = x + 0.1 * fnp.tanh(fnp.sin(x) - x)
    return x


took = {}
for function in (unrolled, rolled):
    report = ft.explain(ft.jit(function))(x)
    took[function.__name__] = 1e3 * report.seconds
    print(report, "\n")
draw_bars(
    took, "Two bars: the first call of the unrolled loop takes longer than that of the rolled one.", "first call, ms"
)

# %% [markdown]
# ## Which operation?
#
# If all is compiled and it is still slow, the profiler shows which operations take the time. Guess first: is it the
# sorting of 10 000 numbers below, the tangents, or the products?


# %%
@ft.jit
def ranked(a, b, v, x):
    scores = a @ b @ v
    return fnp.sort(fnp.tanh(scores)), fnp.sort(fnp.tan(x))


rng = np.random.default_rng(0)
a, b, v, x = (rng.normal(size=shape).astype(np.float32) for shape in ((800, 800), (800, 800), (800,), (10_000,)))
ranked(a, b, v, x)
ranked.optimised()
with ft.profiler.profile() as profile:
    for _ in range(5):
        ft.block_until_ready(ranked(a, b, v, x))
profile

# %% [markdown]
# Each row is an operation of the compiled program, with the line of Python that it came from; the last table adds them
# up by line. Most of the time goes to the line with the products. `a @ b @ v` is `(a @ b) @ v`: it multiplies two
# matrices, and the result by a vector. `a @ (b @ v)` has only products of a matrix and a vector, 400 times less work.
# (`fnp.linalg.multi_dot` and `einsum` choose the cheapest order.)


# %%
@ft.jit
def better(a, b, v, x):
    scores = a @ (b @ v)
    return fnp.sort(fnp.tanh(scores)), fnp.sort(fnp.tan(x))


better(a, b, v, x)
better.optimised()
draw_bars(
    {
        "(a @ b) @ v": milliseconds(ranked, a, b, v, x, repeats=5),
        "a @ (b @ v)": milliseconds(better, a, b, v, x, repeats=5),
    },
    "Two bars: with other parentheses the function takes about a tenth of the time.",
)

# %% [markdown]
# ## Checklist
#
# 1. Is it the first call? `ft.explain(f)(...)` shows the time of each stage.
# 2. Does a later call trace or compile? `explain` gives the reason; `ft.backends.xla.verbose()` does so for all calls
#    in a block.
# 3. Does it run in the quick tier? Call `f.optimised()` before measuring.
# 4. Does it run eagerly? Put `jit` around the largest function that is called repeatedly.
# 5. Then profile, and change the operation at the top.
#
# `docs/performance.md` goes on from here.
