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
# # Quickstart
#
# You know NumPy. This notebook adds three verbs to it:
#
# - **`grad`** turns a function into the function of its derivative,
# - **`vmap`** turns a function of one thing into a function of many,
# - **`jit`** turns a function into a compiled program.
#
# Each takes a function and returns a function, so they combine in any order. At the end we train a small network on
# handwritten digits and ask it questions that are hard to ask without them.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp

# %% [markdown]
# ## Arrays
#
# `functorch_like.numpy` has NumPy's names.

# %%
x = fnp.linspace(0, 1, 5)
x

# %%
fnp.sum(x**2), x[1:3], x.reshape(5, 1) @ x.reshape(1, 5)

# %% [markdown]
# One thing differs: an array never changes. Assigning to an element is an error, and the error says what to write
# instead.

# %%
try:
    x[0] = 10
except TypeError as e:
    print(e)

# %% [markdown]
# `x.at[...]` describes a changed copy. (Inside a compiled program no copy is made where nobody looks at the old one.)

# %%
x.at[0].set(10), x.at[1:3].add(100), x

# %% [markdown]
# Numbers have 32 bits unless you ask for more. There is no switch to turn for 64: say so once, or bring a NumPy array
# that has them, and they stay.

# %%
fnp.ones(3).dtype, fnp.ones(3, "float64").dtype, fnp.asarray(np.ones(3)).dtype, fnp.arange(3, dtype="int64") + 2**40

# %% [markdown]
# A Python number takes the precision of the array it meets, so a stray `2.0` does not make your program wider.

# %%
(fnp.ones(3) * 2.0).dtype, (fnp.ones(3, "bfloat16") * 2.0).dtype, (fnp.ones(3, "float64") * 2.0).dtype

# %% [markdown]
# ## `grad`: derivatives
#
# `grad(f)` is a function that computes the derivative of `f`: exactly, up to rounding, not by differences. Apply it
# twice for the second derivative.


# %%
def wave(t):
    return fnp.exp(-t * t / 8) * fnp.sin(2 * t)


wave(0.5), ft.grad(wave)(0.5), ft.grad(ft.grad(wave))(0.5)

# %% [markdown]
# Under `grad` a function is still Python: an `if` looks at real values, and a `while` runs as often as it must. Here is
# Newton's method for a square root, differentiated. The derivative of √a at 9 is 1/6.


# %%
def square_root(a):
    guess = a
    while abs(guess * guess - a) > 1e-4:
        guess = 0.5 * (guess + a / guess)
    return guess


square_root(9.0), ft.grad(square_root)(9.0)

# %% [markdown]
# The argument may be any nest of dicts, lists and tuples with arrays at the leaves, a *pytree*. The gradient has the
# same nest.


# %%
def distance(line, x, y):
    return fnp.mean((line["slope"] * x + line["offset"] - y) ** 2)


line = {"slope": 2.0, "offset": 0.0}
ft.value_and_grad(distance)(line, np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))

# %% [markdown]
# ## `vmap`: from one to many
#
# `wave` and its derivatives are written for one number. `vmap` maps them over an axis: not by looping, but by moving
# the axis through every operation, so that each works on whole arrays.

# %%
t = fnp.linspace(-6, 6, 400)
plt.figure(figsize=(7, 2.6))
plt.plot(t, ft.vmap(wave)(t), label="wave")
plt.plot(t, ft.vmap(ft.grad(wave))(t), label="vmap(grad(wave))")
plt.plot(t, ft.vmap(ft.grad(ft.grad(wave)))(t), label="vmap(grad(grad(wave)))")
plt.legend(fontsize=8)
plt.tight_layout()
plt.show()

# %% [markdown]
# `in_axes` says which axis of each argument to map over; `None` means the same value for all. Distances between all
# pairs of points, from a function of two points, are two maps:


# %%
def gap(p, q):
    return fnp.sqrt(fnp.sum((p - q) ** 2))


points = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
ft.vmap(ft.vmap(gap, in_axes=(None, 0)), in_axes=(0, None))(points, points)

# %% [markdown]
# ## `jit`: compiling
#
# The first call of a jitted function runs it once with stand-ins for its arguments and records what it does. XLA
# compiles the record, and later calls run that. So a `print` inside is heard once for each new shape or dtype:


# %%
@ft.jit
def normalize(v):
    print("recording for", v.dtype, v.shape)
    return v / fnp.sqrt(fnp.sum(v * v))


normalize(fnp.ones(4))
normalize(fnp.arange(4.0))
normalize(fnp.ones(9))

# %% [markdown]
# ## What a program looks like
#
# The record is called a *jaxpr*, and you can read it. On the right is the line of your code that each step came from.

# %%
print(ft.make_jaxpr(wave)(0.5))

# %% [markdown]
# The program of the derivative is a program like any other:

# %%
print(ft.make_jaxpr(ft.grad(wave))(0.5))

# %% [markdown]
# ## In any order
#
# A transformed function is a function, so nothing stops you here:

# %%
a = np.array([0.1, 0.2, 0.3])
orders = {
    "vmap(grad(f))": ft.vmap(ft.grad(wave)),
    "jit(vmap(grad(f)))": ft.jit(ft.vmap(ft.grad(wave))),
    "vmap(jit(grad(f)))": ft.vmap(ft.jit(ft.grad(wave))),
    "vmap(grad(jit(f)))": ft.vmap(ft.grad(ft.jit(wave))),
    "grad(sum(vmap(f)))": ft.grad(lambda a: fnp.sum(ft.vmap(wave)(a))),
}
for name, way in orders.items():
    print(f"{name:20s}", np.round(way(a), 5))

# %% [markdown]
# `grad` walks backwards through a program. `jvp` walks forwards, beside it: it gives the value, and how the value
# changes in one direction. Forwards over backwards is a product of the Hessian with a vector, without the Hessian.


# %%
def bowl(z):
    return z[0] ** 2 + 3 * z[0] * z[1] + 5 * z[1] ** 2


here, direction = fnp.ones(2), fnp.asarray([1.0, 0.0])
ft.jvp(ft.grad(bowl), (here,), (direction,))

# %% [markdown]
# And the whole Hessian is that product, mapped over the columns of the identity:

# %%
ft.vmap(lambda direction: ft.jvp(ft.grad(bowl), (here,), (direction,))[1])(fnp.eye(2))

# %% [markdown]
# ## Reading an error
#
# Sooner or later shapes do not fit, deep inside several transformations. An error tells, in this order: the operation
# and what it was given; the transformations it happened **under**, outermost first; your line; and what to do.


# %%
def layer(weights, x):
    return fnp.tanh(x @ weights)


def score(weights, x):
    return fnp.sum(layer(weights, x))


try:
    ft.vmap(ft.grad(score), in_axes=(None, 0))(fnp.ones((4, 2)), fnp.ones((8, 3)))
except ft.FtError as e:
    print(e)

# %% [markdown]
# Read aloud: a matrix product of three numbers with a matrix of four rows cannot be; it happened while `score` was
# differentiated, inside a map. The eight is nowhere to be seen, because `vmap` shows each function a single element.
# The weights should have had three rows.
#
# The other error to know: under `jit` a value is not there yet, so Python cannot decide by it.


# %%
@ft.jit
def absolute(x):
    return x if x > 0 else -x


try:
    absolute(-2.0)
except ft.FtError as e:
    print(e)

# %% [markdown]
# ## Digits
#
# Now a network. The functions below are those that `python -m functorch_like` runs; each file of
# `functorch_like/examples` is short and has one idea.
#
# The model is two functions: one makes parameters, a pytree; the other takes parameters and **one** image of 8 by 8
# pixels, and returns the log-probability of each of ten digits.

# %%
from functorch_like import tree
from functorch_like.examples import curvature, data, ensemble, models, persample, training

digits = data.load(seed=0)
model = models.MODELS["conv"]
params = model.init(ft.random.key(0))
tree.map(lambda p: p.shape, params)

# %% [markdown]
# The loss of one image is one line. The loss of a batch is that, mapped and averaged; a training step is its
# `value_and_grad` and a few lines of Adam over `tree.map`; `jit` compiles the whole step.

# %%
import inspect

print(inspect.getsource(training.loss_of_one))
print(inspect.getsource(training.loss_of_batch))
print(inspect.getsource(training.train_step))

# %%
params, history = training.fit(model, digits, seed=0, epochs=15)

steps = np.arange(len(history.losses)) / training.steps_per_epoch(len(digits.train_labels))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
left.semilogy(steps, history.losses, linewidth=0.8)
left.set(xlabel="epoch", title="training loss")
right.plot(np.arange(1, 16), 100 * np.array(history.accuracies), marker="o", markersize=3)
right.set(xlabel="epoch", title="accuracy on held-out digits, %")
figure.tight_layout()
plt.show()

# %%
print(f"{history.accuracies[-1]:.0%} of {len(digits.test_labels)} held-out digits are read right")

# %% [markdown]
# ## One gradient for each image
#
# `grad` of the batch's loss is the mean of every image's gradient, and the mean is all one usually gets to see.
# `vmap(grad(loss))` gives each of them. The loss knows one image, so this is all there is to it:

# %%
print(inspect.getsource(persample.per_sample_gradients))

# %% [markdown]
# How hard does each image pull on the trained network? The hardest ones are those a person would look at twice.

# %%
norms = np.asarray(ft.jit(persample.gradient_norms(model))(params, digits.train_images, digits.train_labels))
hardest = np.argsort(-norms)[:12]
sure = np.exp(np.asarray(training.predictions(model)(params, digits.train_images[hardest])))

figure = plt.figure(figsize=(9, 3.6))
left, right = figure.subfigures(1, 2, width_ratios=(4, 5))
axes = left.subplots()
axes.hist(np.log10(norms), bins=40)
axes.set(xlabel="log10 of the gradient's norm", ylabel="images")
left.subplots_adjust(bottom=0.17, left=0.16, right=0.97, top=0.95)
for axes, i, p in zip(right.subplots(3, 4).flat, hardest, sure, strict=True):
    label = digits.train_labels[i]
    axes.imshow(digits.train_images[i, :, :, 0], cmap="gray_r")
    axes.set_title(f"a {label}, {p[label]:.0%} sure", fontsize=7, pad=3)
    axes.axis("off")
right.subplots_adjust(left=0.02, right=0.98, bottom=0.02, top=0.92, wspace=0.05, hspace=0.25)
plt.show()

# %% [markdown]
# ## How curved is the loss?
#
# The Hessian of this loss has 2.8 billion entries. Twenty products with a vector, each a forward walk over a backward
# one, find its largest eigenvalue. Plain gradient descent with a step above 2 divided by it would leave the minimum.

# %%
product = ft.jit(curvature.power_step(training.loss_of_batch(model)))
found = list(curvature.curvatures(product, params, digits.train_images, digits.train_labels))
print("estimates:", *(f"{value:.2g}" for value in found[::3]))

# %% [markdown]
# ## Many networks as one
#
# A training step is a function too. Map it over states that started from different seeds, and five networks train as
# one program; each comes out as it would have alone.

# %%
seeds = np.arange(5, dtype=np.int32)
members = ensemble.fit_all(model, digits, seeds, epochs=10)
votes = ft.jit(ensemble.ensemble_predictions(model))(members, digits.test_images)
print("wrong alone:   ", [round(360 * (1 - training.accuracy(vote, digits.test_labels))) for vote in votes])
print("wrong together:", round(360 * (1 - training.accuracy(ensemble.vote(votes), digits.test_labels))))

# %% [markdown]
# ## Where to go from here
#
# - `python -m functorch_like --help` runs all of this in a terminal and shows what tracing and compiling cost.
# - `ft.vjp`, `ft.linearize` and `ft.jvp` are the parts that `grad` is made of.
# - `functorch_like.lax` has the operations below NumPy's: convolutions, loops and branches inside compiled programs.
# - `python -m functorch_like.primitives` prints every primitive operation and its rules.
