"""Many networks trained as one program: `vmap` over seeds of the very step that trains one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.examples.data import Digits
from functorch_like.examples.models import Model, Params
from functorch_like.examples.training import predictions, schedule, start, train_step


def ensemble_step(model: Model) -> Any:
    """`train_step` of every member at once, jitted: each has its own state and rows, all share images and rate."""
    return ft.jit(ft.vmap(train_step(model), in_axes=(0, None, None, 0, None)), donate_argnums=0)


def ensemble_predictions(model: Model) -> Callable[..., Any]:
    """The function `(params, images) -> log-probabilities` of shape (members, n, 10)."""
    return ft.vmap(predictions(model), in_axes=(0, None))


def start_all(model: Model, seeds: np.ndarray) -> Any:
    """The first state of every member, stacked."""
    return ft.jit(ft.vmap(lambda seed: start(model, seed)))(seeds)


def vote(log_probabilities: Any) -> Any:
    """The mean of the members' probabilities."""
    return fnp.mean(fnp.exp(log_probabilities), axis=0)


def fit_all(
    model: Model,
    digits: Digits,
    seeds: np.ndarray,
    *,
    epochs: int = 20,
    step: Any = None,
    after_step: Callable[[int, np.ndarray], None] | None = None,
) -> Params:
    """Train one member for each seed.

    Args:
        model: from `models.MODELS`.
        digits: from `data.load`.
        seeds: int32, one for each member; a member comes out as `training.fit` with that seed alone would.
        epochs: the number of passes over all images.
        step: `ensemble_step(model)`, where the caller has it already.
        after_step: called after each step with how many are done and the members' losses.

    Returns:
        The parameters of all members, stacked along a leading axis.
    """
    step = step or ensemble_step(model)
    images, labels = ft.device_put(digits.train_images), ft.device_put(digits.train_labels)
    states = start_all(model, seeds)
    schedules = [schedule(int(seed), len(digits.train_labels), epochs) for seed in seeds]
    for done, batches in enumerate(zip(*schedules, strict=True), 1):
        rows, rate = np.stack([rows for rows, _ in batches]), batches[0][1]
        states, losses = step(states, images, labels, rows, rate)
        if after_step is not None:
            after_step(done, np.asarray(losses))
    return states.params
