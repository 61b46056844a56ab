"""Training one network: a loss, Adam in a few lines of `tree.map`, and a step compiled once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random, tree
from functorch_like.examples.data import Digits
from functorch_like.examples.models import Model, Params

BATCH = 64
RATE = 2e-3


class State(NamedTuple):
    """State that a step changes: parameters, Adam's running means of gradients and their squares, and a count."""

    params: Params
    mean: Params
    square: Params
    count: Any


# ------------------------------------------------------------------------------------------------------------- loss
def loss_of_one(model: Model) -> Callable[..., Any]:
    """The function `(params, image, label) -> -log p(label)`."""

    def loss(params: Params, image: Any, label: Any) -> Any:
        return -model.apply(params, image)[label]

    return loss


def loss_of_batch(model: Model) -> Callable[..., Any]:
    """The function `(params, images, labels) -> mean loss`: that of one image, mapped."""
    losses = ft.vmap(loss_of_one(model), in_axes=(None, 0, 0))

    def loss(params: Params, images: Any, labels: Any) -> Any:
        return fnp.mean(losses(params, images, labels))

    return loss


def predictions(model: Model) -> Callable[..., Any]:
    """The function `(params, images) -> log-probabilities`, of shape (n, 10)."""

    def predict(params: Params, images: Any) -> Any:
        return ft.vmap(model.apply, in_axes=(None, 0))(params, images)

    return predict


def accuracy(log_probabilities: Any, labels: np.ndarray) -> float:
    """The share of labels that are the likeliest class."""
    return float(np.mean(np.argmax(np.asarray(log_probabilities), -1) == labels))


# ------------------------------------------------------------------------------------------------------------- step
def start(model: Model, seed: Any) -> State:
    """Parameters drawn from a seed (a number, traced or not), and moments of zero."""
    params = model.init(random.key(seed))
    zeros = tree.map(fnp.zeros_like, params)
    return State(params, zeros, tree.map(fnp.zeros_like, params), fnp.zeros((), "float32"))


def adam(state: State, gradient: Params, rate: Any, decay: tuple[float, float] = (0.9, 0.99)) -> State:
    """One step of Adam (Kingma and Ba 2015)."""
    count = state.count + 1
    mean = tree.map(lambda m, g: decay[0] * m + (1 - decay[0]) * g, state.mean, gradient)
    square = tree.map(lambda s, g: decay[1] * s + (1 - decay[1]) * g * g, state.square, gradient)
    m_scale, s_scale = 1 / (1 - decay[0] ** count), 1 / (1 - decay[1] ** count)
    params = tree.map(
        lambda p, m, s: p - rate * m * m_scale / (fnp.sqrt(s * s_scale) + 1e-8), state.params, mean, square
    )
    return State(params, mean, square, count)


def train_step(model: Model) -> Callable[..., Any]:
    """The function `(state, images, labels, rows, rate) -> (state, loss)` that learns from some rows of the images."""
    loss = loss_of_batch(model)

    def step(state: State, images: Any, labels: Any, rows: Any, rate: Any) -> tuple[State, Any]:
        value, gradient = ft.value_and_grad(loss)(state.params, images[rows], labels[rows])
        return adam(state, gradient, rate), value

    return step


def compiled_step(model: Model) -> Any:
    """`train_step`, jitted, with the old state's memory given to the new one."""
    return ft.jit(train_step(model), donate_argnums=0)


# ------------------------------------------------------------------------------------------------------------- loop
def steps_per_epoch(count: int) -> int:
    """Return the number of full batches in so many images; the rest waits for the next shuffle."""
    return count // BATCH


def schedule(seed: int, count: int, epochs: int, rate: float = RATE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows and the rate of each step: shuffled anew for each epoch, the rate falling to zero along a cosine."""
    rng = np.random.default_rng(seed)
    per_epoch = steps_per_epoch(count)
    for epoch in range(epochs):
        order = rng.permutation(count).astype(np.int32)
        for i in range(per_epoch):
            done = (epoch * per_epoch + i) / (epochs * per_epoch)
            cosine = 0.5 * (1 + np.cos(np.pi * done))
            yield order[i * BATCH : (i + 1) * BATCH], np.asarray(rate * cosine, np.float32)


class History(NamedTuple):
    """Record of `fit`: the loss of each step, and the accuracy on the held-out images after each epoch."""

    losses: list[float]
    accuracies: list[float]


def fit(
    model: Model,
    digits: Digits,
    *,
    seed: int = 0,
    epochs: int = 20,
    step: Any = None,
    predict: Any = None,
    after_step: Callable[[int, float, float | None], None] | None = None,
) -> tuple[Params, History]:
    """Train a network from a seed.

    Args:
        model: from `models.MODELS`.
        digits: from `data.load`.
        seed: decides the first parameters and the order of the images.
        epochs: the number of passes over all images.
        step: `compiled_step(model)`, where the caller has it already.
        predict: likewise, `predictions(model)` jitted.
        after_step: called after each step with how many are done, the loss, and the latest test accuracy, if any.

    Returns:
        The parameters and the history.
    """
    step = step or compiled_step(model)
    predict = predict or ft.jit(predictions(model))
    images, labels = ft.device_put(digits.train_images), ft.device_put(digits.train_labels)
    state = start(model, seed)
    history = History([], [])
    per_epoch = steps_per_epoch(len(digits.train_labels))
    for done, (rows, rate) in enumerate(schedule(seed, len(digits.train_labels), epochs), 1):
        state, loss = step(state, images, labels, rows, rate)
        history.losses.append(float(loss))
        if done % per_epoch == 0:
            history.accuracies.append(accuracy(predict(state.params, digits.test_images), digits.test_labels))
        if after_step is not None:
            after_step(done, history.losses[-1], history.accuracies[-1] if history.accuracies else None)
    return state.params, history
