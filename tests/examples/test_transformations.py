"""The example's claims about its transformations are true."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import tree
from functorch_like.examples.curvature import curvatures, dot, hessian_vector_product, power_step, random_direction
from functorch_like.examples.ensemble import ensemble_predictions, fit_all, start_all, vote
from functorch_like.examples.models import MODELS
from functorch_like.examples.persample import gradient_norms, per_sample_gradients
from functorch_like.examples.training import (
    accuracy,
    adam,
    compiled_step,
    fit,
    loss_of_batch,
    predictions,
    schedule,
    start,
)


def assert_trees_close(got, wanted, **tolerance):
    assert tree.structure(got) == tree.structure(wanted)
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


def few(digits, count=20):
    return digits.train_images[:count], digits.train_labels[:count]


def doubled(params, images):
    """Convert parameters and images to float64, as finite differences require."""
    return tree.map(lambda p: np.asarray(p, np.float64), params), images.astype(np.float64)


# ------------------------------------------------------------------------------------------------------ per sample
def test_the_mean_of_per_sample_gradients_is_the_gradient_of_the_batch(model, params, digits):
    images, labels = few(digits)
    each = ft.jit(per_sample_gradients(model))(params, images, labels)
    batch = ft.jit(ft.grad(loss_of_batch(model)))(params, images, labels)
    assert_trees_close(tree.map(lambda g: g.mean(axis=0), each), batch, rtol=1e-3, atol=1e-6)


def test_norms_are_those_of_the_gradients_one_by_one(model, params, digits):
    images, labels = few(digits, 3)
    one = ft.jit(ft.grad(loss_of_batch(model)))
    alone = [one(params, images[i : i + 1], labels[i : i + 1]) for i in range(3)]
    wanted = [np.sqrt(sum(float((np.asarray(g) ** 2).sum()) for g in tree.leaves(gradient))) for gradient in alone]
    np.testing.assert_allclose(ft.jit(gradient_norms(model))(params, images, labels), wanted, rtol=1e-4)


# -------------------------------------------------------------------------------------------------------- curvature
def test_hessian_vector_product_is_the_difference_of_gradients(model, params, digits):
    images, labels = few(digits)
    params, images = doubled(params, images)
    direction = tree.map(lambda d: np.asarray(d, np.float64), random_direction(params, 1))
    gradient = ft.jit(ft.grad(loss_of_batch(model)))
    step = 1e-5
    ahead = gradient(tree.map(lambda p, d: p + step * d, params, direction), images, labels)
    behind = gradient(tree.map(lambda p, d: p - step * d, params, direction), images, labels)
    difference = tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * step), ahead, behind)
    product = ft.jit(hessian_vector_product(loss_of_batch(model)))(params, direction, images, labels)
    assert_trees_close(product, difference, rtol=1e-4, atol=1e-6)


def test_power_iteration_finds_the_largest_eigenvalue():
    matrix = np.diag(np.array([5.0, 2.0, -1.0]))
    quadratic = lambda x, a: 0.5 * x @ a @ x
    *_, found = curvatures(ft.jit(power_step(quadratic)), np.ones(3), matrix)
    assert found == pytest.approx(5, rel=1e-4)


def test_random_directions_have_norm_one(params):
    direction = random_direction(params, 0)
    assert float(dot(direction, direction)) == pytest.approx(1, rel=1e-5)
    assert tree.structure(direction) == tree.structure(params)


# --------------------------------------------------------------------------------------------------------- ensemble
def test_a_member_is_the_network_trained_alone_with_its_seed(model, digits):
    digits = digits._replace(train_images=digits.train_images[:320], train_labels=digits.train_labels[:320])
    seeds = np.array([3, 5], np.int32)
    together = fit_all(model, digits, seeds, epochs=2)
    for i, seed in enumerate(seeds):
        alone, _ = fit(model, digits, seed=int(seed), epochs=2)
        assert_trees_close(tree.map(lambda p, i=i: p[i], together), alone, rtol=1e-3, atol=1e-4)


def test_members_start_from_their_seeds(model):
    states = start_all(model, np.array([0, 7], np.int32))
    assert_trees_close(tree.map(lambda p: p[1], states.params), start(model, 7).params, rtol=1e-6)


def test_votes_are_probabilities(model, digits):
    params = start_all(model, np.arange(3, dtype=np.int32)).params
    votes = ensemble_predictions(model)(params, digits.test_images[:5])
    assert votes.shape == (3, 5, 10)
    np.testing.assert_allclose(vote(votes).sum(axis=-1), 1, rtol=1e-5)


# --------------------------------------------------------------------------------------------------------- training
def test_adam_takes_its_first_step_by_the_sign_of_the_gradient():
    state = start(MODELS["mlp"], 0)
    gradient = tree.map(lambda p: np.where(np.asarray(p) > 0, 2.0, -3.0).astype(np.float32), state.params)
    after = adam(state, gradient, np.float32(0.1))
    moved = tree.map(lambda new, old: np.asarray(new) - np.asarray(old), after.params, state.params)
    assert_trees_close(moved, tree.map(lambda g: -0.1 * np.sign(g), gradient), rtol=1e-3)
    assert float(after.count) == 1


def test_a_step_takes_the_memory_of_the_state(model, digits):
    state = start(model, 0)
    rows, rate = next(schedule(0, 128, 1))
    after, loss = compiled_step(model)(state, digits.train_images, digits.train_labels, rows, rate)
    assert float(loss) > 0
    assert all(leaf.is_deleted() for leaf in tree.leaves(state.params))
    assert not any(leaf.is_deleted() for leaf in tree.leaves(after.params))


def test_training_pays(model, digits):
    untrained = predictions(model)(start(model, 0).params, digits.test_images)
    _, history = fit(model, digits, epochs=2)
    assert history.accuracies[-1] > accuracy(untrained, digits.test_labels) + 0.4
    assert history.losses[-1] < history.losses[0] / 2
    assert len(history.accuracies) == 2 and len(history.losses) == 2 * (1437 // 64)


def test_the_schedule_shows_every_row_once_an_epoch():
    batches = list(schedule(0, 128, 3))
    assert len(batches) == 6
    for epoch in range(3):
        rows = np.concatenate([rows for rows, _ in batches[2 * epoch : 2 * epoch + 2]])
        assert sorted(rows) == list(range(128))
    rates = [float(rate) for _, rate in batches]
    assert rates == sorted(rates, reverse=True) and rates[0] == pytest.approx(2e-3)


def test_log_probabilities(model, digits):
    out = predictions(model)(start(model, 0).params, digits.test_images[:3])
    assert out.shape == (3, 10) and out.dtype == np.float32
    np.testing.assert_allclose(fnp.exp(out).sum(axis=-1), 1, rtol=1e-5)
