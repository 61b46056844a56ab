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
# # Thinking in transformations
#
# Some methods that usually need a library are two or three transformations, applied to a function of one example. This
# notebook writes eight of them: per-sample gradients, private training (DP-SGD), Jacobians, Hessians with Newton's
# method, ensembles, neural tangent kernels, meta-learning (MAML), and the spectrum of a Hessian by Lanczos' method.
#
# Read `quickstart` first if `grad`, `vmap` and `jit` are new to you. All cells together take about 20 seconds.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn, tree
from functorch_like.examples import data, pictures

# %% [markdown]
# All sections use one model, a network with one hidden layer. Its functions take one example, not a batch.


# %%
def init(key, sizes):
    first, second, third = ft.random.split(key, 3)
    inputs, hidden, outputs = sizes
    return {
        "w1": ft.random.normal(first, (inputs, hidden)) * (2 / inputs) ** 0.5,
        "b1": ft.random.normal(second, (hidden,)),
        "w2": ft.random.normal(third, (hidden, outputs)) * (1 / hidden) ** 0.5,
        "b2": fnp.zeros(outputs),
    }


def network(params, x):
    return nn.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def descend(params, gradient, rate):
    return tree.map(lambda p, g: p - rate * g, params, gradient)


# %% [markdown]
# ## One gradient for each sample
#
# `grad(loss)` takes one image; `vmap` maps it over a batch. `in_axes=(None, 0, 0)` means: the same parameters for all,
# one image and one label for each.

# %%
digits = data.load(seed=0)
images, labels = fnp.asarray(digits.train_images.reshape(-1, 64)), fnp.asarray(digits.train_labels)
unseen, answers = digits.test_images.reshape(-1, 64), digits.test_labels
rows = np.random.default_rng(0).integers(0, len(labels), (150, 128))  # of the images: a batch for each of 150 steps
sizes = (64, 32, 10)


def loss(params, image, label):
    return -nn.log_softmax(network(params, image))[label]


each = ft.jit(ft.vmap(ft.grad(loss), in_axes=(None, 0, 0)))
params = init(ft.random.key(0), sizes)
tree.map(lambda g: g.shape, each(params, images[:100], labels[:100]))

# %% [markdown]
# A loop over the images gives the same. (Sums are added in another order, so the last digits differ.)

# %%
alone = ft.jit(ft.grad(loss))
one_by_one = [alone(params, image, label) for image, label in zip(images[:5], labels[:5], strict=True)]
together = each(params, images[:5], labels[:5])
max(float(abs(together["w1"][i] - one["w1"]).max()) for i, one in enumerate(one_by_one))

# %% [markdown]
# ## Private training
#
# With a gradient for each sample, differentially private training (DP-SGD, Abadi et al. 2016) is a few lines. The
# gradient of each sample is clipped to a norm of `clip`, and noise is added to the sum.


# %%
def norm(gradient):
    return fnp.sqrt(sum(fnp.sum(g * g) for g in tree.leaves(gradient)))


def clipped_gradient(params, image, label, clip):
    gradient = ft.grad(loss)(params, image, label)
    shrink = fnp.minimum(1.0, clip / norm(gradient))
    return tree.map(lambda g: g * shrink, gradient)


def private_gradient(key, params, images, labels, clip, noise):
    clipped = ft.vmap(clipped_gradient, in_axes=(None, 0, 0, None))(params, images, labels, clip)
    total, unravel = ft.flatten_util.ravel_pytree(tree.map(lambda g: fnp.sum(g, axis=0), clipped))
    noisy = total + noise * clip * ft.random.normal(key, total.shape)
    return unravel(noisy / len(labels))


@ft.jit
def train_privately(key, params, noise):
    """Train for 150 steps in one compiled program, and return the accuracy on held-out images."""

    def step(params, batch):
        key, chosen = batch
        return descend(params, private_gradient(key, params, images[chosen], labels[chosen], 1.0, noise), 1.0), None

    params, _ = ft.lax.scan(step, params, (ft.random.split(key, 150), rows))
    return fnp.mean(fnp.argmax(network(params, unseen), axis=-1) == answers)


noises = np.array([0, 2, 6, 20], np.float32)
accuracies = [float(train_privately(ft.random.key(1), params, noise)) for noise in noises]

figure, axes = plt.subplots(figsize=(5, 2.2), layout="tight")
axes.plot(range(len(noises)), 100 * np.array(accuracies), marker="o")
axes.set_xticks(range(len(noises)), [f"{n:g}" for n in noises])
axes.set(xlabel="noise, in units of the clipping norm", ylabel="accuracy, %")
pictures.show(figure, "Accuracy on held-out digits against noise: above 90 percent without noise, below 30 at 20.")

# %% [markdown]
# The noise is an argument of the compiled function, so the four runs need one compilation.
#
# ## Jacobians
#
# The Jacobian of a function holds the derivative of each output in each input. Reverse mode (`jacrev`) takes one pass
# for each output, forward mode (`jacfwd`) one for each input; both are `vmap` over unit vectors. This network has ten
# outputs and 64 inputs, so `jacrev` does less work.

# %%
jacobian = ft.jit(ft.jacrev(network, argnums=1))(params, images[0])
same = ft.jit(ft.jacfwd(network, argnums=1))(params, images[0])
print(jacobian.shape, "largest difference", float(abs(jacobian - same).max()))


# %% [markdown]
# The row of a class shows which pixels raise its score. To see something in it, first train: the whole training loop is
# one `scan`.


# %%
@ft.jit
def train(params):
    def step(params, chosen):
        mean = lambda params: fnp.mean(ft.vmap(loss, in_axes=(None, 0, 0))(params, images[chosen], labels[chosen]))
        value, gradient = ft.value_and_grad(mean)(params)
        return descend(params, gradient, 0.5), value

    return ft.lax.scan(step, params, np.concatenate([rows, rows]))


params, losses = train(params)
jacobian = ft.jacrev(network, argnums=1)(params, images[0])

figure, row = plt.subplots(1, 11, figsize=(9, 1.2), layout="tight")
row[0].imshow(images[0].reshape(8, 8), cmap="gray_r")
row[0].set_title(f"a {labels[0]}", fontsize=8)
for digit, axes in enumerate(row[1:]):
    axes.imshow(jacobian[digit].reshape(8, 8), cmap="RdBu_r", vmin=-2, vmax=2)
    axes.set_title(f"d score {digit}", fontsize=8)
for axes in row:
    axes.axis("off")
pictures.show(
    figure, "A digit, and for each of ten classes the pixels that raise its score in red, those that lower it in blue."
)

# %% [markdown]
# ## Hessians, and Newton's method
#
# The second derivative is a derivative of a derivative: `hessian(f)` is `jacfwd(grad(f))`. With it, Newton's method
# finds the bottom of Rosenbrock's curved valley in a few steps.


# %%
def valley(z):
    return (1 - z[0]) ** 2 + 100 * (z[1] - z[0] ** 2) ** 2


@ft.jit
def newton_step(z):
    return z - fnp.linalg.solve(ft.hessian(valley)(z), ft.grad(valley)(z))


@ft.jit
def gradient_step(z):
    return z - 0.0005 * ft.grad(valley)(z)


def walk(step, count):
    points = [fnp.asarray([-1.2, 1.0])]
    for _ in range(count):
        points.append(step(points[-1]))
    return np.stack(points)


by_newton, by_gradient = walk(newton_step, 6), walk(gradient_step, 1000)
grid = np.stack(np.meshgrid(np.linspace(-1.6, 1.6, 120), np.linspace(-3.5, 2.2, 120)), -1).astype(np.float32)
heights = ft.vmap(ft.vmap(valley))(grid)

figure, axes = plt.subplots(figsize=(5.5, 3), layout="tight")
axes.contour(grid[..., 0], grid[..., 1], np.log(1 + heights), levels=14, linewidths=0.5, cmap="Greys")
axes.plot(*by_gradient.T, label="1000 steps of gradient descent", linewidth=2)
axes.plot(*by_newton.T, marker="o", markersize=4, label="6 steps of Newton's method", linewidth=1)
axes.plot(1, 1, "k*", markersize=9, label="minimum")
axes.set(xlim=(-1.6, 1.6), ylim=(-3.5, 2.2), xlabel="z[0]", ylabel="z[1]")
axes.legend(fontsize=7, loc="lower left")
pictures.show(
    figure, "Contours of a curved valley: Newton's method reaches the minimum in six steps, gradient descent does not."
)

# %% [markdown]
# ## Ensembles
#
# A training run is a function of the initial parameters. Mapped over ten of them, it trains ten networks as one
# program. How much their predictions differ is a measure of uncertainty. Here the data cover two stretches of the axis.

# %%
rng = np.random.default_rng(0)
inputs = np.concatenate([rng.uniform(-3, -1, 30), rng.uniform(1, 2.5, 30)]).astype(np.float32)[:, None]
targets = (np.sin(2 * inputs) + 0.1 * rng.normal(size=inputs.shape)).astype(np.float32)


def fit_wave(start):
    squares = lambda params: fnp.mean((network(params, inputs) - targets) ** 2)
    step = lambda params, _: (descend(params, ft.grad(squares)(params), 0.02), None)
    return ft.lax.scan(step, start, None, length=3000)[0]


starts = ft.vmap(lambda key: init(key, (1, 32, 1)))(ft.random.split(ft.random.key(2), 10))
members = ft.jit(ft.vmap(fit_wave))(starts)
x = np.linspace(-4, 4, 161, dtype=np.float32)[:, None]
curves = ft.vmap(network, in_axes=(0, None))(members, x)[..., 0]
middle, spread = np.mean(curves, 0), np.std(curves, 0)

figure, axes = plt.subplots(figsize=(6, 2.4), layout="tight")
axes.fill_between(x[:, 0], middle - 2 * spread, middle + 2 * spread, alpha=0.25, label="two deviations")
axes.plot(x, middle, label="mean of ten networks")
axes.plot(inputs, targets, "k.", markersize=3, label="data")
axes.set(ylim=(-3, 3), xlabel="x")
axes.legend(fontsize=7, loc="upper right")
pictures.show(figure, "The band of ten networks is narrow where there are data, and wide between and beside them.")

# %% [markdown]
# ## Neural tangent kernels
#
# A wide network hardly moves its parameters while it learns, so its output is almost linear in them. Then training is
# regression with a kernel: the inner product of two gradients in the parameters (Jacot et al. 2018). Write it for two
# points; two `vmap`s make the matrix of all pairs. The second form needs one gradient: a `jvp` along it is its product
# with the other.


# %%
def output(params, x):
    return network(params, x)[0]


def by_two_gradients(params, a, b):
    left, right = ft.grad(output)(params, a), ft.grad(output)(params, b)
    return sum(fnp.sum(g * h) for g, h in zip(tree.leaves(left), tree.leaves(right), strict=True))


def by_a_product(params, a, b):
    return ft.jvp(lambda params: output(params, b), (params,), (ft.grad(output)(params, a),))[1]


def all_pairs(kernel):
    return ft.jit(ft.vmap(ft.vmap(kernel, in_axes=(None, None, 0)), in_axes=(None, 0, None)))


wide = init(ft.random.key(3), (1, 512, 1))
kernel = all_pairs(by_a_product)(wide, inputs, inputs)
same = all_pairs(by_two_gradients)(wide, inputs, inputs)
print("largest value", float(kernel.max()), "largest difference", float(abs(kernel - same).max()))

# %% [markdown]
# Gradient descent on the kernel predicts what gradient descent on the network will find, before it is trained.

# %%
rate, steps = 0.004, 3000


@ft.jit
def fit_wide(start):
    squares = lambda params: fnp.mean((network(params, inputs) - targets) ** 2) / 2
    step = lambda params, _: (descend(params, ft.grad(squares)(params), rate), None)
    return ft.lax.scan(step, start, None, length=steps)[0]


before = np.asarray(network(wide, x))[:, 0]
missing = (targets - np.asarray(network(wide, inputs)))[:, 0]
weights = np.zeros(len(inputs))
for _ in range(steps):
    weights += rate / len(inputs) * (missing - np.asarray(kernel) @ weights)
predicted = before + np.asarray(all_pairs(by_a_product)(wide, x, inputs)) @ weights
trained = np.asarray(network(fit_wide(wide), x))[:, 0]

order = np.argsort(inputs[:, 0])
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.4), layout="tight", width_ratios=(1, 2.5))
left.imshow(kernel[order][:, order], cmap="Blues")
left.set(title="kernel of all pairs", xticks=[], yticks=[])
right.plot(x, before, color="lightgray", label="before training")
right.plot(x, predicted, linewidth=4, alpha=0.4, label="predicted by the kernel")
right.plot(x, trained, linewidth=1, label="trained")
right.plot(inputs, targets, "k.", markersize=3, label="data")
right.set(ylim=(-3, 3), xlabel="x")
right.legend(fontsize=7, loc="upper right")
pictures.show(
    figure,
    "Left, a matrix of kernel values, large where both points lie on one side. Right, the curve predicted by "
    "the kernel lies on that of the trained network, far from the curve before training.",
)
print("largest difference of the two curves", abs(predicted - trained).max())

# %% [markdown]
# ## Meta-learning
#
# MAML (Finn et al. 2017) searches for parameters from which *one* step of gradient descent fits a new task. The loss
# after the step is differentiated through the step: a gradient of a function that contains a gradient. Each task here
# is a sine with its own amplitude and phase, of which ten points are known.


# %%
def squares(params, task):
    x, y = task
    return fnp.mean((network(params, x) - y) ** 2)


def adapted(params, known):
    return descend(params, ft.grad(squares)(params, known), 0.05)


def loss_after(params, known, unknown):
    return squares(adapted(params, known), unknown)


def draw_task(key):
    numbers = ft.random.uniform(key, (22,))
    height, shift, x = 0.5 + 1.5 * numbers[0], 3 * numbers[1], 6 * numbers[2:, None] - 3
    y = height * fnp.sin(x + shift)
    return (x[:10], y[:10]), (x[10:], y[10:])


def meta_loss(params, key):
    known, unknown = ft.vmap(draw_task)(ft.random.split(key, 16))
    return fnp.mean(ft.vmap(loss_after, in_axes=(None, 0, 0))(params, known, unknown))


@ft.jit
def meta_train(params, key):
    start, unravel = ft.flatten_util.ravel_pytree(params)

    def step(state, key):  # Adam, on all parameters as one vector
        p, m, s, count = state
        value, g = ft.value_and_grad(lambda p: meta_loss(unravel(p), key))(p)
        m, s, count = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g * g, count + 1
        p = p - 0.003 * m / (1 - 0.9**count) / (fnp.sqrt(s / (1 - 0.99**count)) + 1e-8)
        return (p, m, s, count), value

    state = (start, fnp.zeros_like(start), fnp.zeros_like(start), 0.0)
    state, losses = ft.lax.scan(step, state, ft.random.split(key, 5000))
    return unravel(state[0]), losses


plain = init(ft.random.key(4), (1, 40, 1))
maml, losses = meta_train(plain, ft.random.key(3))
known, _ = draw_task(ft.random.key(11))
x = np.linspace(-3, 3, 121, dtype=np.float32)[:, None]

figure, panels = plt.subplots(1, 2, figsize=(8, 2.4), layout="tight", sharey=True)
for axes, params_before, title in zip(
    panels, (plain, maml), ("from random parameters", "from meta-learnt parameters"), strict=True
):
    axes.plot(x, network(params_before, x), ":", label="before")
    axes.plot(x, network(adapted(params_before, known), x), label="after one step")
    axes.plot(*known, "k.", label="ten known points")
    axes.set_title(title, fontsize=9)
    axes.set(ylim=(-2.6, 2.6), xlabel="x")
panels[0].legend(fontsize=7)
pictures.show(
    figure, "One step from random parameters misses ten points of a sine; one from meta-learnt ones is near them."
)

# %% [markdown]
# ## The spectrum of a Hessian
#
# The loss of the digits has a Hessian of 2410 by 2410 numbers; for larger networks it does not fit into memory. A
# product with a vector needs no matrix: it is the `jvp` of the `grad`. Lanczos' method turns sixty such products into a
# small tridiagonal matrix, whose eigenvalues approximate the outermost ones of the Hessian.


# %%
@ft.jit
def hessian_times(params, flat):
    start, unravel = ft.flatten_util.ravel_pytree(params)
    mean = lambda flat: fnp.mean(ft.vmap(loss, in_axes=(None, 0, 0))(unravel(flat), images, labels))
    return ft.jvp(ft.grad(mean), (start,), (flat,))[1]


def lanczos(product, size, steps, seed=0):
    """Return the tridiagonal matrix of Lanczos' method; each new vector is made orthogonal to all before it."""
    vectors = [np.random.default_rng(seed).normal(size=size)]
    vectors[0] /= np.linalg.norm(vectors[0])
    diagonal, off_diagonal = [], []
    for _ in range(steps):
        new = np.asarray(product(vectors[-1].astype(np.float32)), np.float64)
        diagonal.append(new @ vectors[-1])
        basis = np.stack(vectors)
        for _ in range(2):  # twice, for rounding
            new = new - basis.T @ (basis @ new)
        off_diagonal.append(np.linalg.norm(new))
        vectors.append(new / off_diagonal[-1])
    return np.diag(diagonal) + np.diag(off_diagonal[:-1], 1) + np.diag(off_diagonal[:-1], -1)


count = sum(p.size for p in tree.leaves(params))
eigenvalues = np.linalg.eigvalsh(lanczos(lambda v: hessian_times(params, v), count, 60))

figure, axes = plt.subplots(figsize=(6.5, 1.8), layout="tight")
axes.stem(eigenvalues, np.ones_like(eigenvalues), markerfmt=" ", basefmt=" ", linefmt="tab:blue")
axes.set(xlabel=f"eigenvalues of the Hessian; the largest is {eigenvalues[-1]:.2f}", yticks=[])
pictures.show(figure, "A spectrum: most eigenvalues lie near zero, and about ten are spread out far to the right.")

# %% [markdown]
# The loss is steep in a few directions and flat in most, as in much larger networks. Gradient descent with a rate above
# 2 divided by the largest eigenvalue would diverge here.
#
# ## To remember
#
# - Write the function for one example, one task, one run. Map it afterwards.
# - A training loop is a function, too: `scan` its steps, `vmap` it over initial values, differentiate through it.
# - Matrices of derivatives are `vmap`s of products with vectors. Often the products are enough.
