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
# # Training in practice
#
# `quickstart` trained a network in a few lines. A real project needs more: a schedule for the learning rate, batches,
# mixed precision, checkpoints to resume from, and a look at the errors of the network. This notebook has a short
# section on each.
#
# It needs safetensors for the checkpoints and scikit-learn for the images; the `notebooks` extra installs both. All
# cells together take about ten seconds.

# %%
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn, tree
from functorch_like.examples import data, pictures

digits = data.load(seed=0)
rows = {"image": digits.train_images, "label": digits.train_labels}

# %% [markdown]
# ## The model
#
# A small conv net: two convolutions with ReLU, and a dense layer. It takes a batch of images, as convolutions do.


# %%
def init(key):
    first, second, third = ft.random.split(key, 3)
    return {
        "conv1": ft.random.normal(first, (3, 3, 1, 16)) * (2 / 9) ** 0.5,
        "conv2": ft.random.normal(second, (3, 3, 16, 32)) * (2 / 144) ** 0.5,
        "dense": ft.random.normal(third, (512, 10)) * (1 / 512) ** 0.5,
        "bias": fnp.zeros(10),
    }


def convolve(images, kernel, stride):
    layout = ("NHWC", "HWIO", "NHWC")  # N images, height H, width W, C channels
    return nn.relu(ft.lax.conv_general_dilated(images, kernel, stride, "SAME", dimension_numbers=layout))


def predict(params, images):
    x = convolve(images, params["conv1"], (1, 1))
    x = convolve(x, params["conv2"], (2, 2))
    return nn.log_softmax(x.reshape(len(images), 512) @ params["dense"] + params["bias"])


def loss(params, batch):
    scores = predict(params, batch["image"])
    return -fnp.mean(fnp.take_along_axis(scores, batch["label"][:, None], axis=1))


# %% [markdown]
# ## A schedule
#
# The learning rate rises for fifteen steps, while Adam's averages are still inexact, and then falls along a cosine. A
# schedule is a function of the number of the step. Written with `fnp`, it becomes part of the compiled step.

# %%
EPOCHS, BATCH = 8, 64
STEPS = EPOCHS * (len(digits.train_labels) // BATCH)


def rate(step, peak=4e-3, warmup=15):
    rising = (step + 1) / warmup
    falling = 0.5 * (1 + fnp.cos(np.pi * (step - warmup) / (STEPS - warmup)))
    return peak * fnp.where(step < warmup, rising, falling)


figure, axes = plt.subplots(figsize=(5, 1.7), layout="tight")
axes.plot(rate(fnp.arange(STEPS)))
axes.set(xlabel="step", ylabel="learning rate")
pictures.show(figure, "The rate climbs within fifteen steps and then falls to zero along half a cosine.")

# %% [markdown]
# ## A step in mixed precision
#
# `ft.autocast(loss)` computes products and convolutions in bfloat16, which has float32's range and fewer digits. All
# other operations stay in float32, and so do the parameters and their gradients. On GPUs, and on CPUs with instructions
# for bfloat16, that is faster.
#
# The state of a training run is one pytree. It holds everything that the next step depends on.


# %%
def start(key):
    params = init(key)
    zeros = tree.map(fnp.zeros_like, params)
    return {"params": params, "mean": zeros, "square": zeros, "step": fnp.asarray(0)}


@ft.jit
def train_step(state, batch):
    value, gradient = ft.value_and_grad(ft.autocast(loss))(state["params"], batch)
    count = state["step"] + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradient)
    scale = rate(state["step"]) * fnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = tree.map(lambda p, m, s: p - scale * m / (fnp.sqrt(s) + 1e-8), state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square, "step": count}, value


# %% [markdown]
# The jaxpr of the loss shows where the casts are:

# %%
state = start(ft.random.key(0))
first = next(iter(ft.data.batches(rows, BATCH)))
program = str(ft.make_jaxpr(ft.autocast(loss))(state["params"], first))
kinds = ("convert_element_type", "conv_general_dilated", "dot_general")
print("\n".join(line.split("(")[0] for line in program.splitlines() if any(kind in line for kind in kinds)))

# %% [markdown]
# ## Batches, checkpoints, and an interrupted run
#
# `ft.data.batches` shuffles by a key, in another order in each epoch; `start=` skips the batches already used.
# `ft.io.CheckpointManager` writes in a thread and keeps the last checkpoints and the best. Files are replaced in one
# operation, so a run may be killed at any moment.
#
# The loop below starts from the last checkpoint, if there is one. Resuming needs nothing else.

# %%
# Programs for CPUs are exchanged for a better optimised form after some time, which may change last digits. Wait for it
# here, so that the two runs below are equal to the last bit.
train_step(state, first)
train_step.optimised()
evaluate = ft.jit(predict)


def accuracy(params):
    return float(np.mean(np.argmax(evaluate(params, digits.test_images), axis=-1) == digits.test_labels))


def run(folder, stop_at=None):
    """Train, from the last checkpoint if there is one, and return the state and the curves of this part."""
    state = start(ft.random.key(0))
    curves = {"steps": [], "losses": [], "epochs": [], "accuracies": []}
    with ft.io.CheckpointManager(folder, keep_last=2, best_metric="accuracy", best_is="max") as checkpoints:
        if checkpoints.latest_step() is not None:
            state = checkpoints.restore(like=state)
            print("resumed after step", int(state["step"]))
        begin = int(state["step"])
        batches = ft.data.batches(rows, BATCH, ft.random.key(1), epochs=EPOCHS, start=begin)
        for number, batch in enumerate(ft.data.prefetch(batches), begin + 1):
            state, value = train_step(state, batch)
            curves["steps"].append(number)
            curves["losses"].append(float(value))
            if number % 22 == 0:
                curves["epochs"].append(number)
                curves["accuracies"].append(accuracy(state["params"]))
                checkpoints.save(number, state, metrics={"accuracy": curves["accuracies"][-1]})
            if number == stop_at:
                print("interrupted at step", number)
                break
    return state, curves


folder = tempfile.mkdtemp()
_, before = run(folder, stop_at=100)
state, after = run(folder)

# %% [markdown]
# The second run began at the last checkpoint, twelve steps before the end of the first. In these steps both used the
# same batches and computed the same numbers.

# %%
again = [after["losses"][after["steps"].index(n)] == before["losses"][n - 1] for n in range(after["steps"][0], 101)]
print(f"{sum(again)} of {len(again)} losses are equal to the last bit")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.4), layout="tight")
for part, label in ((before, "first run"), (after, "resumed")):
    left.semilogy(part["steps"], part["losses"], linewidth=0.8, label=label)
    right.plot(part["epochs"], 100 * np.array(part["accuracies"]), marker="o", markersize=3, label=label)
left.set(xlabel="step", title="loss")
right.set(xlabel="step", title="accuracy on held-out digits, %")
right.legend(fontsize=7)
pictures.show(
    figure, "Curves of loss and accuracy in two colours; the resumed run continues where the first run ended."
)

# %% [markdown]
# ## Errors of the network
#
# The confusion matrix counts, for each digit, how often it was classified as which; `at[...].add` counts without a
# loop.

# %%
chances = np.exp(evaluate(state["params"], digits.test_images))
predicted = chances.argmax(axis=-1)
confusion = fnp.zeros((10, 10), "int32").at[digits.test_labels, predicted].add(1)

figure, axes = plt.subplots(figsize=(3.6, 3.2), layout="tight")
axes.imshow(np.sqrt(confusion), cmap="Blues")
for i in range(10):
    for j in range(10):
        if confusion[i, j]:
            axes.text(j, i, int(confusion[i, j]), ha="center", va="center", fontsize=7, color="w" if i == j else "k")
axes.set(xlabel="predicted", ylabel="label", xticks=range(10), yticks=range(10))
pictures.show(figure, "A matrix of ten by ten counts: nearly all of them on the diagonal, a few mistakes beside it.")

# %% [markdown]
# These are the digits that are classified wrongly, those with the highest probability first. Some are hard for people,
# too.

# %%
wrong = np.flatnonzero(predicted != digits.test_labels)
wrong = wrong[np.argsort(-chances[wrong, predicted[wrong]])][:8]
print(f"{accuracy(state['params']):.1%} are right; {np.sum(predicted != digits.test_labels)} are wrong")

figure, row = plt.subplots(1, 8, figsize=(8, 1.5), layout="tight")
for axes in row:
    axes.axis("off")
for axes, i in zip(row, wrong, strict=False):
    axes.imshow(digits.test_images[i, :, :, 0], cmap="gray_r")
    guess = predicted[i]
    axes.set_title(f"label {digits.test_labels[i]}\npredicted {guess}, {chances[i, guess]:.0%}", fontsize=7)
pictures.show(
    figure, "Digits that are classified wrongly, each with its label, the predicted class and its probability."
)

# %% [markdown]
# ## The result
#
# `ft.io.save` writes one safetensors file, which other frameworks read, too. `ft.io.load` returns the same numbers to
# the bit.

# %%
path = f"{folder}/digits.safetensors"
ft.io.save(path, state["params"])
restored = ft.io.load(path)
assert all(np.array_equal(restored[name], state["params"][name]) for name in restored)
ft.inspect.tree(restored)

# %% [markdown]
# `docs/training.md` goes on: loss scaling for float16, checkpoints of several processes, memory maps, and progress
# inside of compiled loops.
