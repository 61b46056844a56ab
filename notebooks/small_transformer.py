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
# # A small transformer
#
# A language model on one page: a transformer is trained on a text letter by letter, text is sampled from it, and its
# attention is drawn. The architecture is that of large models; the sizes are small, so it trains in seconds.
#
# The text ships with every Python: `import this` prints the Zen of Python. The text is so short that the model learns
# it almost by heart. All cells together take about 15 seconds.

# %%
import contextlib
import io

import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import nn, tree
from functorch_like.examples import pictures

with contextlib.redirect_stdout(io.StringIO()) as out:
    import this  # noqa: F401

text = out.getvalue()
letters = sorted(set(text))
print(len(text), "characters,", len(letters), "of them different:", repr("".join(letters)))

# %% [markdown]
# The model takes numbers, so each letter is encoded as one. (Large models encode pieces of words.)

# %%
number_of = {letter: i for i, letter in enumerate(letters)}
encode = lambda text: np.array([number_of[letter] for letter in text], np.int32)
decode = lambda numbers: "".join(letters[i] for i in numbers)

encoded = encode(text)
print(encoded[:20], repr(decode(encoded[:20])))

# %% [markdown]
# ## The parameters
#
# Each letter and each position has a vector of `WIDTH` numbers. Each block has matrices for attention (`query`, `key`,
# `value`, `out`) and for a network with one hidden layer (`up`, `down`).

# %%
LENGTH, WIDTH, HEADS, BLOCKS = 40, 48, 4, 2


def init(key):
    names = ("query", "key", "value", "out")
    shapes = dict.fromkeys(names, (BLOCKS, WIDTH, WIDTH))
    shapes |= {"up": (BLOCKS, WIDTH, 4 * WIDTH), "down": (BLOCKS, 4 * WIDTH, WIDTH)}
    keys = iter(ft.random.split(key, len(shapes) + 2))
    matrix = lambda shape: ft.random.normal(next(keys), shape) * shape[-2] ** -0.5
    return {
        "letters": matrix((len(letters), WIDTH)),
        "positions": matrix((LENGTH, WIDTH)),
        "blocks": {name: matrix(shape) for name, shape in shapes.items()},
    }


params = init(ft.random.key(0))
print(f"{sum(p.size for p in tree.leaves(params)):,} parameters")

# %% [markdown]
# ## Attention
#
# Attention, for one sequence and one head: the query of each position is multiplied with the keys of all positions. A
# softmax makes weights of these scores, and the result is the mean of the values under these weights. Later positions
# get weight 0, as the model is trained to predict them.


# %%
def attention(query, key, value):
    """Return the weighted values of one head and the weights; operands are arrays of (positions, features)."""
    scores = query @ key.T / fnp.sqrt(query.shape[-1])
    earlier = fnp.tril(fnp.ones(scores.shape, bool))
    weights = nn.softmax(fnp.where(earlier, scores, -1e9))
    return weights @ value, weights


# %% [markdown]
# Several heads are a `vmap` of `attention`, with the heads on axis 1.


# %%
def block(x, p):
    split = lambda name: (nn.standardize(x) @ p[name]).reshape(len(x), HEADS, WIDTH // HEADS)
    mixed, weights = ft.vmap(attention, in_axes=1, out_axes=(1, 0))(split("query"), split("key"), split("value"))
    x = x + mixed.reshape(x.shape) @ p["out"]
    return x + nn.gelu(nn.standardize(x) @ p["up"]) @ p["down"], weights


def model(params, sequence):
    """Return the scores of the next letter at each position of one sequence, and the weights of attention."""
    x = params["letters"][sequence] * 8 + params["positions"][: len(sequence)] * 8
    x, weights = ft.lax.scan(block, x, params["blocks"])  # the blocks one after the other, compiled once
    return nn.standardize(x) @ params["letters"].T, weights


def loss_of_one(params, sequence):
    scores = nn.log_softmax(model(params, sequence[:-1])[0])
    return -fnp.mean(fnp.take_along_axis(scores, sequence[1:, None], axis=1))


def loss(params, sequences):
    return fnp.mean(ft.vmap(loss_of_one, in_axes=(None, 0))(params, sequences))


print(f"loss of the untrained model: {float(loss_of_one(params, encoded[:40])):.2f}")
print(f"loss of uniform guessing:    {np.log(len(letters)):.2f}")

# %% [markdown]
# ## Training
#
# (The loss of the untrained model is above that of uniform guessing: random scores give high probabilities to wrong
# letters.) Each step takes 12 pieces from random positions of the text. Adam is that of `quickstart`; its rate falls to
# zero.
#
# All steps are one compiled loop: a `scan` over the pieces. While it is compiled, a line counts the seconds; then
# `ft.progress` shows the steps of the loop and the time left.

# %%
STEPS = 650


def start(params):
    zeros = tree.map(fnp.zeros_like, params)
    return {"params": params, "mean": zeros, "square": zeros}


def step(state, batch):
    sequences, count = batch
    value, gradient = ft.value_and_grad(loss)(state["params"], sequences)
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], gradient)
    rate = 5e-3 * (1 - count / STEPS) * fnp.sqrt(1 - 0.99 ** (count + 1)) / (1 - 0.9 ** (count + 1))
    params = tree.map(lambda p, m, s: p - rate * m / (fnp.sqrt(s) + 1e-8), state["params"], mean, square)
    return {"params": params, "mean": mean, "square": square}, value


rng = np.random.default_rng(0)
pieces = np.lib.stride_tricks.sliding_window_view(encoded, LENGTH + 1)
batches = pieces[rng.integers(0, len(pieces), (STEPS, 12))], np.arange(STEPS, dtype=np.float32)


@ft.jit
def train(params, batches):
    state, losses = ft.lax.scan(step, start(params), ft.progress(batches, label="training"))
    return state["params"], losses


params, losses = train(params, batches)

figure, axes = plt.subplots(figsize=(5, 1.9), layout="tight")
axes.plot(losses, linewidth=0.8)
axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
pictures.show(figure, "The loss falls from more than three to nearly zero in 650 steps.")

# %% [markdown]
# ## Sampling
#
# To sample a text: compute the scores of the next letter, draw a letter, append it, and repeat. The scores are divided
# by a temperature. Near 0 the letter with the highest score is drawn; above 1 unlikely letters are drawn more often.
#
# The window has a fixed size, so one program serves all lengths. Positions not written yet hold padding; attention does
# not see it, as it is later. The loop is a `scan`, so a whole text is one call. `vmap` over keys gives several texts.


# %%
def sample(params, key, prompt, temperature, count=80):
    """Return the letters that follow a prompt of 8 letters."""
    window = fnp.zeros(LENGTH, "int32").at[:8].set(prompt)

    def next_letter(carry, key):
        window, filled = carry
        scores = model(params, window)[0][filled - 1]
        letter = ft.random.categorical(key, scores / temperature)
        # A full window moves on by one position.
        full = filled == LENGTH
        window = fnp.where(full, fnp.roll(window, -1), window)
        filled = fnp.where(full, LENGTH - 1, filled)
        return (window.at[filled].set(letter), filled + 1), letter

    _, written = ft.lax.scan(next_letter, (window, 8), ft.random.split(key, count))
    return written


samples = ft.jit(ft.vmap(sample, in_axes=(None, 0, None, None)))
for temperature in (0.3, 1.0, 2.0):
    texts = samples(params, ft.random.split(ft.random.key(7), 2), encode("Errors s"), temperature)
    for numbers in np.asarray(texts):
        print(f"temperature {temperature}: Errors s" + decode(numbers).replace("\n", " / "))

# %% [markdown]
# (A `/` stands for the end of a line.) At a low temperature the model repeats the text. At higher ones it makes new
# sentences of it, and then new words.
#
# ## Attention
#
# `model` also returns the weights of attention: for each block and head a matrix with a row for each position. Here are
# those for one sentence.

# %%
sentence = "Now is better than never."
scores, weights = model(params, encode(sentence))

figure, panels = plt.subplots(2, 4, figsize=(11, 5.8), layout="tight")
for (layer, head), axes in np.ndenumerate(panels):
    axes.imshow(np.sqrt(weights[layer, head]), cmap="magma")
    axes.set_title(f"block {layer + 1}, head {head + 1}", fontsize=9, pad=3)
    axes.set_xticks(range(len(sentence)), sentence, fontsize=7, family="monospace")
    axes.set_yticks(range(len(sentence)), sentence, fontsize=7, family="monospace")
    axes.tick_params(length=0, pad=2)
pictures.show(
    figure, "Eight lower triangles of weights: bright cells near the diagonal, and in columns of some letters."
)

# %% [markdown]
# A row shows the weights with which the letter at its left takes in the letters below the columns. The upper right is
# black: later letters have weight 0. Many large weights lie near the diagonal, on the last few letters.
#
# And this is the probability that the model gave to each letter of the sentence, from those before it:

# %%
chances = np.exp(nn.log_softmax(scores))[np.arange(len(sentence) - 1), encode(sentence)[1:]]

figure, axes = plt.subplots(figsize=(7, 1.6), layout="tight")
axes.bar(range(len(chances)), chances)
axes.set_xticks(range(len(chances)), sentence[1:])
axes.set(ylabel="probability", ylim=(0, 1.05))
axes.margins(x=0.01)
pictures.show(
    figure, "A bar for each letter: most are close to one, those where the text may go on otherwise are lower."
)

# %% [markdown]
# ## Further
#
# - `nn.dot_product_attention` is attention with heads and masks, and uses less memory for long sequences.
# - `functorch_like/examples/transformer.py` is a batched version; `sharded_transformer.py` splits it over devices.
# - `training_in_practice` shows how to save such a model and resume its training.
