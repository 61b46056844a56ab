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
# # Property-based testing
#
# A test by example says: for this input, that output. A test by *property* says what holds for all inputs, and lets a
# program look for one where it does not. Functions of arrays have many properties: `jit` changes nothing, `vmap` is a
# stack of calls, derivatives are limits of differences, the order of rows does not matter.
#
# `functorch_like.testing` has these laws, and strategies with which [Hypothesis](https://hypothesis.readthedocs.io)
# draws arrays. In this notebook they find four bugs that are easy to overlook.

# %%
import matplotlib.pyplot as plt
import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as hs

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import testing
from functorch_like.examples import pictures
from functorch_like.testing import strategies as st

# %% [markdown]
# In a project, the functions below stand in files for pytest. Here a helper runs one, and prints what it has found.
# `derandomize` makes it draw the same examples each time, so that this notebook always says the same.

# %%
quick = settings(max_examples=50, deadline=None, derandomize=True, database=None, phases=[Phase.generate, Phase.shrink])


def check(test):
    """Run a test, and print how it failed, if it did."""
    try:
        test()
    except AssertionError as e:
        print("failed:", str(e).strip(), *getattr(e, "__notes__", []), sep="\n")
    else:
        print("passed")


# %% [markdown]
# ## Arrays that are drawn
#
# `st.arrays` draws arrays of all dtypes and shapes. It likes the unusual: zeros, infinities, NaN, the smallest and the
# largest numbers, arrays without elements. Some of what it draws:

# %%
drawn = []


@settings(quick, max_examples=150)
@given(st.arrays(dtypes=st.floats(), shapes=st.shapes(max_rank=2, max_size=3)))
def look(x):
    drawn.append(np.asarray(x))


look()
unusual = [x for x in drawn if not np.isfinite(x.astype(float)).all() or not x.size or (x == 0).any()]
for x in drawn[20:60:10] + unusual[::6][:6]:
    print(f"{x.dtype!s:9} {x.shape!s:7} {x.tolist()}")

# %% [markdown]
# ## A first property: stability
#
# The logarithm of a sum of exponentials, as in the textbook:


# %%
def log_sum_exp(x):
    return fnp.log(fnp.sum(fnp.exp(x)))


# %% [markdown]
# Adding a constant to all elements adds it to the result. Is that so?


# %%
def shifting_the_input_shifts_the_result(f):
    @quick
    @given(hs.lists(hs.integers(-100, 100), min_size=1, max_size=3), hs.integers(-100, 100))
    def test(values, shift):
        x = np.array(values, "float32")
        testing.assert_allclose(f(x + shift), f(x) + shift)

    return test


check(shifting_the_input_shifts_the_result(log_sum_exp))

# %% [markdown]
# Hypothesis found an input where it is not, and then the *smallest* one that it could: a single number, shifted just so
# far that its exponential is beyond what float32 can hold. Here is the function over such a number, beside the one that
# subtracts the largest element first.


# %%
def stable(x):
    largest = fnp.max(x)
    return largest + fnp.log(fnp.sum(fnp.exp(x - largest)))


line = np.linspace(-150, 150, 301, dtype="float32")
figure, axes = plt.subplots(figsize=(6, 2.3), layout="tight")
axes.plot(line, ft.vmap(lambda a: stable(a[None]))(line), color="#cccccc", linewidth=5, label="stable")
axes.plot(line, ft.vmap(lambda a: log_sum_exp(a[None]))(line), color="#d8633b", label="as in the textbook")
axes.legend(fontsize=8)
axes.set(xlabel="the one element")
pictures.show(
    figure,
    "Two lines over one another between about -100 and 88. Beyond, the textbook's formula ends, where it gives an "
    "infinity; the stable one goes on.",
)

check(shifting_the_input_shifts_the_result(stable))

# %% [markdown]
# ## A second property: derivatives
#
# `check_grads` compares derivatives with differences: forward mode, reverse mode, and each of each. This distance looks
# right, and its values are:


# %%
def distance(p, q):
    return fnp.sqrt(fnp.sum((p - q) ** 2))


coordinates = hs.lists(hs.integers(-3, 3).map(float), min_size=2, max_size=2).map(np.array)


def its_slope_is_finite(f):
    slope = ft.jit(ft.grad(f))

    @quick
    @given(coordinates, coordinates)
    def test(p, q):
        assert np.isfinite(slope(p, q)).all(), f"slope {slope(p, q)}"

    return test


check(its_slope_is_finite(distance))

# %% [markdown]
# At a point and itself the slope is 0 · ∞. The mended function has a harmless operand there. Both sides of `where`
# are differentiated, so the root itself must not see the zero.


# %%
def safe_distance(p, q):
    square = fnp.sum((p - q) ** 2)
    apart = square > 0
    return fnp.where(apart, fnp.sqrt(fnp.where(apart, square, 1.0)), 0.0)


check(its_slope_is_finite(safe_distance))
testing.check_grads(safe_distance, (np.array([1.0, 2.0]), np.array([-1.0, 0.5])), order=2)

# %% [markdown]
# A derivative rule of one's own is a claim, and `check_grads` tests claims. This one has a wrong sign:


# %%
@ft.custom_jvp
def softplus(x):
    return fnp.logaddexp(x, 0.0)


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), t / (1 + fnp.exp(x))


check(lambda: testing.check_grads(softplus, (np.array([-1.0, 0.0, 2.0]),)))

# %% [markdown]
# The value and the point are printed; at 0 both signs agree, so the test would have passed there. Choose points with no
# symmetry, or let them be drawn.
#
# ## A third property: rows do not know each other
#
# A function of a batch may use the whole batch where it should not. Here the property is written out: a row alone
# gets the scores that it gets among others.


# %%
def scores(x):
    """Each row, centred and scaled."""
    return (x - fnp.mean(x, axis=-1, keepdims=True)) / (fnp.std(x) + 1.0)


@quick
@given(st.arrays(dtypes="float32", shapes=st.shapes(2, 3, zero_size=False, min_rank=2), special=False))
def rows_are_independent(x):
    alone = fnp.concatenate([scores(row[None]) for row in x])
    testing.assert_allclose(scores(x), alone)


check(rows_are_independent)

# %% [markdown]
# `fnp.std(x)` lacks its `axis=-1`. With one row nobody sees it.
#
# ## How much is drawn? How long does it take?
#
# Each shape is compiled once. Small shapes keep that short: bugs of broadcasting, axes and empty arrays show in shapes
# of up to three elements. `count_compiles` tells what a test costs, without a clock:

# %%
with testing.count_compiles() as compiles:
    check(shifting_the_input_shifts_the_result(stable))
print("programs compiled by the second run:", compiles.count)

# %% [markdown]
# ## Programs that are drawn
#
# `st.programs()` draws whole functions, of operations and transformations. It is for tests of things that take
# *functions*, such as a transformation of your own. One of them:

# %%
shown = []


@settings(quick, max_examples=30, phases=[Phase.generate])
@given(st.programs())
def look(program):
    shown.append(str(program))


look()
print(max(shown, key=len)[:1500])

# %% [markdown]
# `docs/testing.md` lists all laws and strategies, the plugin for pytest, and the command that draws programs by the
# hundred thousand and holds the compiler against NumPy.
