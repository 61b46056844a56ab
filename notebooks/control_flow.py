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
# # Python control flow under jit
#
# `jit` runs a function once with stand-ins for its arguments, *tracers*, and compiles what it does. A tracer has a
# shape and a dtype, and no value. So `if x > 0` cannot be decided, and `jit` refuses it by default.
#
# With `control_flow="paths"` it follows such code. This notebook shows how it does so, what it costs, and how a
# bisection in plain Python becomes one compiled loop.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import path_tree, pictures

# %% [markdown]
# ## What is refused
#
# This function makes a vector shorter where it is too long.


# %%
def shorten(x, limit):
    size = fnp.sum(abs(x))
    if size > limit:
        return x * limit / size
    if size < 1e-3:
        return fnp.zeros_like(x)
    return x


long = np.array([3.0, -4.0], "float32")
try:
    ft.jit(shorten)(long, 5.0)
except ft.FtError as e:
    print(e)

# %% [markdown]
# The message names three ways out. `fnp.where` and `lax.cond` are right for small choices. The last one leaves the
# function as it is.
#
# ## Capture
#
# `explain` calls a function, and tells what happened.

# %%
followed = ft.jit(shorten, control_flow="paths")
ft.explain(followed)(long, 5.0)

# %% [markdown]
# The first call ran `shorten` with the arguments at hand. At the first `if`, Python needed a value; it got the one that
# these arguments give, `True`, and the trace recorded a **guard**: this expression, at this line, had this value. What
# was traced is one **path** through the function, and it was compiled.
#
# A call for which the guard has the same value runs that program:

# %%
ft.explain(followed)(2 * long, 5.0)

# %% [markdown]
# ## Guards
#
# The program returns the values of its guards beside the results. Here a guard differs, so the results are dropped, and
# the path that belongs to these arguments is traced:

# %%
short, nothing = long / 10, long * 0
ft.explain(followed)(short, 5.0)

# %% [markdown]
# A third vector takes the third path. After two wrong guesses jit stops guessing. All paths become one program, in
# which each guard is a `cond`.

# %%
ft.explain(followed)(nothing, 5.0)

# %% [markdown]
# From now on no call traces or compiles, whichever path it takes:

# %%
print(ft.explain(followed)(short, 5.0))
for v in (long, short, nothing):
    assert fnp.allclose(followed(v, 5.0), shorten(v, 5.0))  # one program and several may round differently

# %% [markdown]
# ## The tree
#
# `paths()` prints what is known: guards with their lines and values, and how many equations each path has.

# %%
followed.paths()

# %% [markdown]
# The same, drawn. A blue box is a line of this notebook that needed a value. A green box is a result.

# %%
figure, axes = plt.subplots(figsize=(7, 2.6), layout="tight")
path_tree.draw(axes, followed.paths().trees[0])
pictures.show(
    figure, "A tree: the first guard leads to a result where it is True, and to a second guard where it is False."
)

# %% [markdown]
# `breaks` counts for each line what was asked there, how many values it had, and how many paths pass it. Look here if a
# function compiles more often than you think it should.

# %%
followed.paths().breaks

# %% [markdown]
# ## Loops: a bisection
#
# A path through a loop is as long as the loop runs. If each number of steps were another path, the tree would grow with
# every new argument. So jit looks at the state of Python at each guard: where it is, and what the local variables hold.
# A state that comes back, with other values of arrays only, closes a loop.


# %%
def bisect(a):
    lo, hi = a * 0, a
    while hi - lo > 1e-3:
        mid = (lo + hi) / 2
        if mid * mid > a:
            hi = mid
        else:
            lo = mid
    return lo


root = ft.jit(bisect, control_flow="paths")
ft.explain(root)(2.0)

# %% [markdown]
# One path was followed, and it had eleven steps. Both branches of the `if` end in the same state, so they are joined,
# and the `while` closes. The program is complete: `total` says that no argument can leave it.

# %%
print(root.paths())
print("every path is known:", root.paths().total)

# %% [markdown]
# Its jaxpr has one `while`, with a `cond` in its body. `hi` and `lo` are carried around.

# %%
ft.make_jaxpr(root)(2.0)

# %% [markdown]
# So larger numbers, which need more steps, compile nothing:

# %%
print(ft.explain(root)(1000.0))
for a in (1.5, 9.0, 1000.0, 12345.0):
    print(f"root of {a:<8} {root(a).item():10.4f}   NumPy {np.sqrt(a):10.4f}")

# %% [markdown]
# What is it worth? The same bisection in plain Python runs one small program for each operation. Times are of this
# machine; look at the ratio.

# %%
import timeit

thousand = fnp.asarray(1000.0)
times = {
    "plain Python": min(timeit.repeat(lambda: bisect(thousand).block_until_ready(), number=3, repeat=3)) / 3,
    "paths": min(timeit.repeat(lambda: root(thousand).block_until_ready(), number=30, repeat=3)) / 30,
}
figure, axes = plt.subplots(figsize=(6, 1.5), layout="tight")
axes.barh(list(times), [1e6 * t for t in times.values()], color=["#bbbbbb", "#3b7dd8"])
axes.set(xscale="log", xlim=(1, None), xlabel="microseconds for one root (logarithmic)")
pictures.show(figure, "Bars on a logarithmic axis: the compiled loop takes a small part of the time of plain Python.")

# %% [markdown]
# ## Counting steps
#
# A Python number that counts makes another state at each step, because Python may do anything with it. Such a loop is
# unrolled, as far as its steps differ; jit warns when that gets long. Count in an array and the loop closes. Here is
# the number of steps until Collatz' sequence reaches 1: from 27 there are 111, and from 97, 118.


# %%
@ft.jit(control_flow="paths")
def collatz(n):
    steps = fnp.int32(0)
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


collatz(27), collatz(97), ft.explain(collatz)(703)

# %% [markdown]
# ## Sizes
#
# `int(n)` is followed, too, and so are shapes that depend on values. The guard is on the count, not on the array: two
# masks with the same number of elements share a program.


# %%
@ft.jit(control_flow="paths")
def mean_of_positive(x):
    return fnp.mean(x[x > 0])


print(mean_of_positive(np.array([1.0, -2.0, 3.0, 4.0])), mean_of_positive(np.array([-1.0, 5.0, 6.0, 7.0])))
mean_of_positive.paths()

# %% [markdown]
# ## With other transformations
#
# Derivatives are those of the path that was taken. Under `vmap` each element takes its own path.

# %%
total = ft.jit(lambda x, limit: fnp.sum(shorten(x, limit) ** 2), control_flow="paths")
print("grad:", ft.grad(total)(short, 5.0), ft.grad(total)(long, 5.0))
print("vmap:", ft.vmap(followed, in_axes=(0, None))(np.stack([long, short, nothing]), 5.0), sep="\n")

# %% [markdown]
# A bisection halves and compares, so its derivative says nothing of the root. That of Newton's formula does: the
# derivative of the root at 9 is 1/6.


# %%
@ft.jit(control_flow="paths")
def newton(a):
    x = a
    while fnp.abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


try:
    print(ft.grad(newton)(9.0))
except ft.FtError as e:
    print(e)

# %% [markdown]
# ## Limits
#
# A signature may have 16 paths (`max_paths`). One more is an error. It prints the tree, and says what would do instead.


# %%
@ft.jit(control_flow="paths", max_paths=2)
def scaled(x, n):
    return x * int(n)


try:
    for n in range(3):
        scaled(2.0, n)
except ft.FtError as e:
    print(e)

# %% [markdown]
# The function must be pure: for the same values of its guards it must do the same. `docs/control_flow.md` has all that
# is followed, what happens with effects such as `debug.print`, and the limits.
