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
# This notebook starts from NumPy and adds three transformations of functions:
#
# - **`grad`** turns a function into the function of its derivative,
# - **`vmap`** turns a function of one example into a function of many,
# - **`jit`** turns a function into a compiled program.
#
# Each takes a function and returns a function, so they combine in any order. At the end you train a small network on
# handwritten digits, with the loss and the optimiser written out, and compare compiled steps with uncompiled ones.
#
# Run the cells from the top. All of them together take about fifteen seconds.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples import data, pictures

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
# One thing differs: an array never changes. Assigning to an element is an error, and its message contains the
# expression to write instead.

# %%
try:
    x[0] = 10
except TypeError as e:
    print(e)

# %% [markdown]
# `x.at[...]` makes a changed copy. (A compiled program makes no copy if it does not use the old array again.)

# %%
x.at[0].set(10), x.at[1:3].add(100), x

# %% [markdown]
# Numbers have 32 bits by default. 64 bits need no global switch: pass a 64-bit dtype, or a NumPy array that has one.

# %%
fnp.ones(3).dtype, fnp.ones(3, "float64").dtype, fnp.asarray(np.ones(3)).dtype, fnp.arange(3, dtype="int64") + 2**40

# %% [markdown]
# A Python number takes the dtype of the array it is combined with, so a `2.0` in a formula does not widen the result.

# %%
(fnp.ones(3) * 2.0).dtype, (fnp.ones(3, "bfloat16") * 2.0).dtype, (fnp.ones(3, "float64") * 2.0).dtype

# %% [markdown]
# ## `grad`: derivatives
#
# `grad(f)` is a function that computes the derivative of `f`, exact up to rounding; no finite differences are
# involved. Apply it twice for the second derivative.


# %%
def wave(t):
    return fnp.exp(-t * t / 8) * fnp.sin(2 * t)


wave(0.5), ft.grad(wave)(0.5), ft.grad(ft.grad(wave))(0.5)

# %% [markdown]
# (`weak_type=True` marks a result of Python numbers alone. Like them, it takes the dtype of the array it is combined
# with.)
#
# Under `grad`, Python's `if` and `while` see actual values, so they work as usual. Here is Newton's method for a square
# root, differentiated. The derivative of √a at 9 is 1/6.


# %%
def square_root(a):
    guess = a
    while abs(guess * guess - a) > 1e-4:
        guess = 0.5 * (guess + a / guess)
    return guess


square_root(9.0), ft.grad(square_root)(9.0)

# %% [markdown]
# The argument may be a *pytree*: nested dicts, lists and tuples with arrays at the leaves. The gradient has the same
# structure.


# %%
def distance(line, x, y):
    return fnp.mean((line["slope"] * x + line["offset"] - y) ** 2)


line = {"slope": 2.0, "offset": 0.0}
ft.value_and_grad(distance)(line, np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))

# %% [markdown]
# ## `vmap`: from one to many
#
# `wave` and its derivatives are written for one number. `vmap` maps them over an axis of an array. It does not loop: it
# replaces each operation by one on whole arrays.

# %%
t = fnp.linspace(-6, 6, 400)
figure, axes = plt.subplots(figsize=(7, 2.6), layout="tight")
axes.plot(t, ft.vmap(wave)(t), label="wave")
axes.plot(t, ft.vmap(ft.grad(wave))(t), label="vmap(grad(wave))")
axes.plot(t, ft.vmap(ft.grad(ft.grad(wave)))(t), label="vmap(grad(grad(wave)))")
axes.set(xlabel="t")
axes.legend(fontsize=8)
pictures.show(
    figure, "Three curves over t: a wave packet, its slope, and the slope of its slope, each larger than the last."
)

# %% [markdown]
# `in_axes` gives the axis of each argument to map over; `None` means the same value for all. Two maps turn a function
# of two points into the distances between all pairs of points:


# %%
def gap(p, q):
    return fnp.sqrt(fnp.sum((p - q) ** 2))


points = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
ft.vmap(ft.vmap(gap, in_axes=(None, 0)), in_axes=(0, None))(points, points)

# %% [markdown]
# ## `jit`: compiling
#
# The first call of a jitted function *traces* it: the function runs once with arguments that have a shape and a dtype
# but no values, and its operations are recorded. XLA compiles the record, and later calls run the compiled program.
# So a `print` inside runs once for each new shape or dtype:


# %%
@ft.jit
def normalize(v):
    print("tracing for", v.dtype, v.shape)
    return v / fnp.sqrt(fnp.sum(v * v))


normalize(fnp.ones(4))
normalize(fnp.arange(4.0))
normalize(fnp.ones(9))

# %% [markdown]
# ## What a program looks like
#
# The record is called a *jaxpr*. On the right of each operation is the line of your code that it came from.

# %%
print(ft.make_jaxpr(wave)(0.5))

# %% [markdown]
# The derivative is another such program:

# %%
print(ft.make_jaxpr(ft.grad(wave))(0.5))

# %% [markdown]
# ## In any order
#
# A transformed function is a function, so transformations nest in any order:

# %%
a = np.array([0.1, 0.2, 0.3])
orders = {
    "vmap(grad(f))": ft.vmap(ft.grad(wave)),
    "jit(vmap(grad(f)))": ft.jit(ft.vmap(ft.grad(wave))),
    "vmap(jit(grad(f)))": ft.vmap(ft.jit(ft.grad(wave))),
    "vmap(grad(jit(f)))": ft.vmap(ft.grad(ft.jit(wave))),
    "grad(sum(vmap(f)))": ft.grad(lambda a: fnp.sum(ft.vmap(wave)(a))),
}
for name, slope in orders.items():
    print(f"{name:20s}", np.round(slope(a), 5))

# %% [markdown]
# `grad` is reverse mode. `jvp` is forward mode: it gives the value of a function and its derivative in one direction.
# `jvp` of `grad` is the product of the Hessian with a vector, and the Hessian itself is never computed.


# %%
def bowl(z):
    return z[0] ** 2 + 3 * z[0] * z[1] + 5 * z[1] ** 2


here, direction = fnp.ones(2), fnp.asarray([1.0, 0.0])
ft.jvp(ft.grad(bowl), (here,), (direction,))

# %% [markdown]
# The whole Hessian is that product, mapped over the rows of the identity matrix:

# %%
ft.vmap(lambda direction: ft.jvp(ft.grad(bowl), (here,), (direction,))[1])(fnp.eye(2))

# %% [markdown]
# ## Reading an error
#
# Here the shapes do not fit, inside two transformations. An error message contains, in this order: the operation and
# its operands; the transformations around it (**under**), outermost first; your line; and what to do.


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
# In words: a vector of three numbers cannot be multiplied by a matrix of four rows; this happened while `score` was
# differentiated, inside a map. The size 8 does not appear, because under `vmap` each function sees a single element.
# The weights should have had three rows.
#
# The other frequent error: while `jit` traces a function there are no values, so a Python `if` cannot depend on one.


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
# Now a network. The images come with scikit-learn: 8 by 8 pixels each, 1437 to train on, 360 held out.

# %%
digits = data.load(seed=0)

figure, row = plt.subplots(1, 10, figsize=(8, 1.1), layout="tight")
for axes, image, label in zip(row, digits.train_images, digits.train_labels, strict=False):
    axes.imshow(image[:, :, 0], cmap="gray_r")
    axes.set_title(label, fontsize=8)
    axes.axis("off")
pictures.show(figure, "Ten handwritten digits of 8 by 8 gray pixels, each with its label above.")

# %% [markdown]
# A model is two functions. `init` makes parameters, a dict of arrays. It takes a *key*, from which random numbers are
# drawn. The same key gives the same numbers, so `split` it into as many as you need.
#
# `predict` takes parameters and **one** image, and returns the log-probability of each of ten digits.

# %%
from functorch_like import nn, tree


def init(key):
    first, second = ft.random.split(key)
    return {
        "w1": ft.random.normal(first, (64, 128)) * (2 / 64) ** 0.5,
        "b1": fnp.zeros(128),
        "w2": ft.random.normal(second, (128, 10)) * (2 / 128) ** 0.5,
        "b2": fnp.zeros(10),
    }


def predict(params, image):
    hidden = nn.relu(image.reshape(64) @ params["w1"] + params["b1"])
    return nn.log_softmax(hidden @ params["w2"] + params["b2"])


params = init(ft.random.key(0))
tree.map(lambda p: p.shape, params)

# %% [markdown]
# The loss of one image is minus the log-probability of its label. The loss of a batch is the mean of that over images
# and labels: a `vmap` and a mean.


# %%
def loss_of_one(params, image, label):
    return -predict(params, image)[label]


def loss(params, images, labels):
    return fnp.mean(ft.vmap(loss_of_one, in_axes=(None, 0, 0))(params, images, labels))


float(loss(params, digits.train_images[:64], digits.train_labels[:64]))

# %% [markdown]
# An untrained network guesses among ten classes, so expect about log(10) = 2.3, or somewhat more.
#
# ## Adam, written out
#
# For each parameter the optimiser keeps a running mean of its gradient and one of the gradient's square. A step is
# proportional to the first divided by the root of the second. `tree.map` applies a function to each array of a pytree.
# Nothing is changed in place: a step takes a state and returns the next.


# %%
def adam_start(params):
    zeros = tree.map(fnp.zeros_like, params)
    return {"mean": zeros, "square": zeros, "count": fnp.asarray(0.0)}


def adam(params, state, gradient, rate=2e-3):
    count = state["count"] + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradient)

    def moved(p, m, s):
        # Both means begin at zero; the division corrects for that.
        m, s = m / (1 - 0.9**count), s / (1 - 0.99**count)
        return p - rate * m / (fnp.sqrt(s) + 1e-8)

    return tree.map(moved, params, mean, square), {"mean": mean, "square": square, "count": count}


def step(params, state, batch):
    images, labels = batch
    value, gradient = ft.value_and_grad(loss)(params, images, labels)
    params, state = adam(params, state, gradient)
    return params, state, value


# %% [markdown]
# ## Compiled and eager
#
# `step` runs without `jit`, too: one operation after the other, each a small program. That is called *eager*, and suits
# exploring and debugging. `jit(step)` is one program. `ft.explain` calls a function and reports what that did, with the
# time of each stage. (Compiling that takes longer than two seconds also shows a line below the cell, which counts the
# seconds.)

# %%
fast_step = ft.jit(step)
batch = digits.train_images[:64], digits.train_labels[:64]
state = adam_start(params)

ft.explain(fast_step)(params, state, batch)

# %% [markdown]
# The second call only runs the program:

# %%
ft.explain(fast_step)(params, state, batch)

# %% [markdown]
# "In the quick tier" means that XLA compiled the program fast, at the expense of its speed. A program that runs often
# is compiled again in the background with full optimisation. `fast_step.optimised()` waits for that; call it before you
# measure anything.
#
# A result may be returned before it is computed, so timings also wait for it with `block_until_ready`.

# %%
import time


def milliseconds(function, repeats=20):
    ft.block_until_ready(function(params, state, batch))  # not the first call: it traces and compiles
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        ft.block_until_ready(function(params, state, batch))
        times.append(1e3 * (time.perf_counter() - started))
    return min(times)  # other programs on the machine only add to it


fast_step.optimised()
took = {"eager": milliseconds(step), "jit": milliseconds(fast_step)}

figure, axes = plt.subplots(figsize=(6, 1.4), layout="tight")
bars = axes.barh(list(took), list(took.values()), color=["tab:gray", "tab:blue"])
axes.bar_label(bars, fmt=" %.2f ms", fontsize=8)
axes.set(xlabel="one training step, ms", xlim=(0, 1.2 * took["eager"]))
pictures.show(figure, "Two bars: an eager training step takes many times as long as the compiled one.")

# %% [markdown]
# ## Training
#
# `ft.data.batches` shuffles the images and cuts them into batches. `ft.progress` shows how far the loop is, and the
# time left.

# %%
fast_predict = ft.jit(ft.vmap(predict, in_axes=(None, 0)))


def accuracy(params):
    return np.mean(np.argmax(fast_predict(params, digits.test_images), axis=-1) == digits.test_labels)


params = init(ft.random.key(0))
state = adam_start(params)
batches = ft.data.batches((digits.train_images, digits.train_labels), 64, ft.random.key(1), epochs=30)
losses, accuracies = [], []
for number, batch in enumerate(ft.progress(batches, label="training")):
    params, state, value = fast_step(params, state, batch)
    losses.append(float(value))
    if number % 22 == 21:  # at the end of each epoch
        accuracies.append(accuracy(params))

print(f"{accuracies[-1]:.1%} of {len(digits.test_labels)} held-out digits are classified correctly")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.4), layout="tight")
left.semilogy(np.arange(len(losses)) / 22, losses, linewidth=0.8)
left.set(xlabel="epoch", title="training loss")
right.plot(1 + np.arange(len(accuracies)), 100 * np.array(accuracies), marker="o", markersize=3)
right.set(xlabel="epoch", title="accuracy on held-out digits, %")
pictures.show(
    figure, "Left, the training loss falls by a factor of a hundred; right, accuracy rises to about 97 percent."
)

# %% [markdown]
# ## One gradient for each image
#
# The gradient of the batch's loss is the mean over all images. `vmap(grad(loss_of_one))` gives the gradient of each
# image. Its norm shows how much that image would still change the trained network. Those with the largest norms are
# hard to read for people, too.

# %%
each = ft.jit(ft.vmap(ft.grad(loss_of_one), in_axes=(None, 0, 0)))(params, digits.train_images, digits.train_labels)
norms = np.sqrt(sum(np.sum(np.square(g), axis=tuple(range(1, g.ndim))) for g in tree.leaves(each)))
hardest = np.argsort(-norms)[:10]
chances = np.exp(fast_predict(params, digits.train_images[hardest]))

figure, row = plt.subplots(1, 10, figsize=(8, 1.3), layout="tight")
for axes, i, chance in zip(row, hardest, chances, strict=True):
    label = digits.train_labels[i]
    axes.imshow(digits.train_images[i, :, :, 0], cmap="gray_r")
    axes.set_title(f"label {label}\np = {chance[label]:.0%}", fontsize=7, pad=3)
    axes.axis("off")
pictures.show(
    figure, "The ten training images with the largest gradients, each with its label and the probability given to it."
)

# %% [markdown]
# ## Where to go from here
#
# - `thinking_in_transformations`: Jacobians, Hessians, ensembles, differential privacy, meta-learning.
# - `training_in_practice`: a schedule, mixed precision, checkpoints, and the digits that are classified wrongly.
# - `why_is_it_slow`: how to find out why a function takes longer than expected.
# - `coming_from`: the same model in JAX and in PyTorch.
# - The `README.md` beside this notebook lists all notebooks.
