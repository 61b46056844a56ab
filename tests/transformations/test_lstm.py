"""LSTM layers, compared with a loop in float64."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.experimental import rnn

BATCH, TIME, INPUT, HIDDEN = 3, 5, 2, 4
LENGTHS = np.array([5, 3, 0])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(x, h, c, weights, layers, directions):
    """Return states, last states and last cells; one sequence, layer and direction at a time, in float64."""
    x, h, c, flat = (np.array(a, np.float64) for a in (x, h, c, weights))
    matrices, biases = [], []
    for layer in range(layers):
        for _ in range(directions):
            size = INPUT if layer == 0 else HIDDEN * directions
            for columns in (size, HIDDEN):
                count = 4 * HIDDEN * columns
                matrices.append(flat[:count].reshape(4 * HIDDEN, columns))
                flat = flat[count:]
    biases = flat.reshape(layers * directions, 2, 4 * HIDDEN)
    for layer in range(layers):
        y = np.zeros((BATCH, TIME, directions * HIDDEN))
        for direction in range(directions):
            k = layer * directions + direction
            for b in range(BATCH):
                steps = range(LENGTHS[b])
                for t in reversed(steps) if direction else steps:
                    gates = matrices[2 * k] @ x[b, t] + matrices[2 * k + 1] @ h[k, b] + biases[k].sum(0)
                    i, f, g, o = np.split(gates, 4)
                    c[k, b] = sigmoid(f) * c[k, b] + sigmoid(i) * np.tanh(g)
                    h[k, b] = sigmoid(o) * np.tanh(c[k, b])
                    y[b, t, direction * HIDDEN : (direction + 1) * HIDDEN] = h[k, b]
        x = y
    return x, h, c


def drawn(layers, directions):
    rng = np.random.default_rng(0)
    states = (layers * directions, BATCH, HIDDEN)
    x, h, c = (rng.standard_normal(s).astype(np.float32) for s in ((BATCH, TIME, INPUT), states, states))
    return x, h, c, rnn.init_lstm_weight(ft.random.key(1), INPUT, HIDDEN, layers, directions == 2)


@pytest.mark.parametrize(("layers", "directions"), [(1, 1), (2, 2), (3, 1)])
def test_layers_and_directions(layers, directions):
    x, h, c, weights = drawn(layers, directions)
    sizes = (INPUT, HIDDEN, layers, 0.0, directions == 2)
    wanted = by_hand(x, h, c, weights, layers, directions)
    unpacked = rnn.unpack_lstm_weights(weights, INPUT, HIDDEN, layers, directions == 2)
    for result in (rnn.lstm(x, h, c, weights, LENGTHS, *sizes), rnn.lstm_ref(x, h, c, *unpacked, LENGTHS, *sizes)):
        for found, desired in zip(result, wanted, strict=True):
            np.testing.assert_allclose(found, desired, rtol=1e-5, atol=1e-6)


def test_the_derivative_is_the_finite_difference():
    x, h, c, weights = drawn(2, 2)
    direction = np.random.default_rng(2).standard_normal(weights.shape)
    loss = lambda w: sum((a**2).sum() for a in rnn.lstm(x, h, c, w, LENGTHS, INPUT, HIDDEN, 2, 0.0, True))
    wide = lambda w: sum((a**2).sum() for a in by_hand(x, h, c, w, 2, 2))
    base, eps = np.asarray(weights, np.float64), 1e-5
    slope = (wide(base + eps * direction) - wide(base - eps * direction)) / (2 * eps)
    np.testing.assert_allclose(np.asarray(ft.jit(ft.grad(loss))(weights)) @ direction, slope, rtol=1e-3)


def test_weights():
    assert rnn.get_num_params_in_lstm(3, 4, 2, True) == 2 * (16 * 3 + 16 * 4 + 32) + 2 * (16 * 8 + 16 * 4 + 32)
    weights = rnn.init_lstm_weight(ft.random.key(0), 3, 4, 2, True)
    assert weights.dtype == "float32" and 0.4 < float(abs(weights).max()) <= 0.5
    flat = np.arange(84.0)
    swapped = rnn.swap_lstm_gates(flat, 2, 3, 1, False)
    np.testing.assert_array_equal(np.sort(swapped), flat)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(swapped, 2, 3, 1, False), flat)
    for before, after in zip(
        rnn.unpack_lstm_weights(flat, 2, 3, 1, False), rnn.unpack_lstm_weights(swapped, 2, 3, 1, False), strict=True
    ):
        i, f, g, o = fnp.split(before[0], 4)
        np.testing.assert_array_equal(after[0], fnp.concatenate([i, f, o, g]))


def test_what_is_refused():
    x, h, c, weights = drawn(1, 1)
    with pytest.raises(ft.errors.UnsupportedError, match="dropout"):
        rnn.lstm(x, h, c, weights, LENGTHS, INPUT, HIDDEN, 1, 0.5, False)
    with pytest.raises(ft.errors.ShapeError, match="128 weights"):
        rnn.lstm(x, h, c, weights[1:], LENGTHS, INPUT, HIDDEN, 1, 0.0, False)
    with pytest.raises(ft.errors.ShapeError, match="lstm got x"):
        rnn.lstm(x, h[:, :2], c, weights, LENGTHS, INPUT, HIDDEN, 1, 0.0, False)
