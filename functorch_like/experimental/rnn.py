"""`lstm`: recurrent layers whose weights are one vector, in the layout of cuDNN.

A layer has one direction or two, and each direction the weights `W_ih`, `W_hh`, `b_ih` and `b_hh`: those of the input
gate, the forget gate, the cell and the output gate, one below the other. The vector holds the matrices of all layers
and directions, then the biases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import functorch_like.numpy as fnp
from functorch_like import lax, random
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError, UnsupportedError

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PrecisionLike

#: Weights of one kind, by the number of the layer and direction: 2 * layer + direction where there are two.
Weights = dict[int, Any]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the kind (0 to 3), the number and the shape of each weight, in their order in the vector."""
    directions = 2 if bidirectional else 1
    numbers = range(num_layers * directions)
    gates = 4 * hidden_size
    for k in numbers:
        size = input_size if k < directions else hidden_size * directions
        yield 0, k, (gates, size)
        yield 1, k, (gates, hidden_size)
    for k in numbers:
        yield 2, k, (gates,)
        yield 3, k, (gates,)


def _places(*sizes: Any) -> Iterator[tuple[int, int, tuple[int, ...], slice]]:
    """Yield what `_shapes` does, with the place of each weight in the vector."""
    start = 0
    for kind, k, shape in _shapes(*sizes):
        end = start + math.prod(shape)
        yield kind, k, shape, slice(start, end)
        start = end


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """Return the number of weights.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        bidirectional: True for layers of two directions.

    >>> from functorch_like.experimental.rnn import get_num_params_in_lstm
    >>> get_num_params_in_lstm(3, 4, 1, False)  # 4 gates of 4 features: from 3 inputs, 4 states and 2 biases each
    144
    """
    return sum(math.prod(shape) for _, _, shape in _shapes(input_size, hidden_size, num_layers, bidirectional))


@api_boundary.public
def init_lstm_weight(rng: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Draw weights from a uniform distribution between -1 and 1 over the root of `hidden_size`.

    Args:
        rng: a random key.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        bidirectional: True for layers of two directions.

    Returns:
        A vector, float32.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.rnn import init_lstm_weight
    >>> init_lstm_weight(ft.random.key(0), 3, 4, 1, False).shape
    (144,)
    """
    bound = float(np.sqrt(1 / hidden_size))
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), "float32", -bound, bound)


@api_boundary.public
def unpack_lstm_weights(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """Take the vector of weights apart.

    Args:
        weights: a vector of `get_num_params_in_lstm(...)` elements.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        bidirectional: True for layers of two directions.

    Returns:
        `W_ih`, `W_hh`, `b_ih`, `b_hh`: dictionaries by the number of the layer and direction.

    Raises:
        ShapeError: for a vector of another size.

    >>> import functorch_like.numpy as fnp
    >>> from functorch_like.experimental.rnn import unpack_lstm_weights
    >>> W_ih, W_hh, b_ih, b_hh = unpack_lstm_weights(fnp.arange(144.0), 3, 4, 1, False)
    >>> W_ih[0].shape, W_hh[0].shape, float(b_ih[0][0])
    ((16, 3), (16, 4), 112.0)
    """
    kinds: tuple[Weights, ...] = ({}, {}, {}, {})
    flat = _vector(weights, input_size, hidden_size, num_layers, bidirectional)
    for kind, k, shape, place in _places(input_size, hidden_size, num_layers, bidirectional):
        kinds[kind][k] = flat[place].reshape(shape)
    return kinds[0], kinds[1], kinds[2], kinds[3]


def _vector(weights: Any, *sizes: Any) -> Any:
    flat, count = fnp.asarray(weights), get_num_params_in_lstm(*sizes)
    if flat.shape != (count,):
        raise ShapeError(f"an LSTM of these sizes has {count} weights, got {aval_of(flat)!r}", fix="give a vector")
    return flat


@api_boundary.public
def swap_lstm_gates(
    weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Exchange the weights of the cell and of the output gate: libraries differ in the order of the two.

    Args:
        weights: a vector of `get_num_params_in_lstm(...)` elements.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        bidirectional: True for layers of two directions.

    Returns:
        A vector of the same size.

    Raises:
        ShapeError: for a vector of another size.

    >>> import functorch_like.numpy as fnp
    >>> from functorch_like.experimental.rnn import swap_lstm_gates
    >>> swap_lstm_gates(fnp.arange(16), 1, 1, 1, False).tolist()
    [0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14]
    """
    flat = _vector(weights, input_size, hidden_size, num_layers, bidirectional)
    places = [place for *_, place in _places(input_size, hidden_size, num_layers, bidirectional)]
    gates = [np.arange(place.start, place.stop).reshape(4, -1)[[0, 1, 3, 2]].ravel() for place in places]
    return flat[np.concatenate(gates)]


@api_boundary.public
def lstm(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    weights: ArrayLike,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: PrecisionLike = None,
) -> tuple[Array, Array, Array]:
    """Apply layers of LSTM cells to sequences. They are scans on all platforms; no kernel of cuDNN is called.

    Args:
        x: sequences, of shape (batch, time, input_size).
        h_0: first states, of shape (layers * directions, batch, hidden_size).
        c_0: first cells, likewise.
        weights: a vector of `get_num_params_in_lstm(...)` elements.
        seq_lengths: the length of each sequence, of shape (batch,).
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        dropout: 0.
        bidirectional: True for layers of two directions.
        precision: precision of the matrix products.

    Returns:
        States of the last layer, of shape (batch, time, directions * hidden_size), 0 behind the end of a sequence; the
        last states; and the last cells, as `h_0`.

    Raises:
        ShapeError: for arrays of other shapes.
        UnsupportedError: for dropout.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental import rnn
    >>> weights = rnn.init_lstm_weight(ft.random.key(0), 3, 4, 1, False)
    >>> zero = fnp.zeros((1, 2, 4))
    >>> y, h, c = rnn.lstm(fnp.ones((2, 5, 3)), zero, zero, weights, fnp.array([5, 3]), 3, 4, 1, 0.0, False)
    >>> y.shape, h.shape, bool((y[1, 3:] == 0).all())
    ((2, 5, 4), (1, 2, 4), True)
    """
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional)
    return _layers(x, h_0, c_0, *unpacked, seq_lengths, *sizes, precision)


@api_boundary.public
def lstm_ref(
    x: ArrayLike,
    h_0: ArrayLike,
    c_0: ArrayLike,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: ArrayLike,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Apply layers of LSTM cells, as `lstm`, with the weights taken apart.

    Args:
        x: sequences, of shape (batch, time, input_size).
        h_0: first states, of shape (layers * directions, batch, hidden_size).
        c_0: first cells, likewise.
        W_ih: from inputs to gates, as `unpack_lstm_weights` returns them.
        W_hh: from states to gates.
        b_ih: biases.
        b_hh: more biases.
        seq_lengths: the length of each sequence, of shape (batch,).
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: number of layers.
        dropout: 0.
        bidirectional: True for layers of two directions.

    Returns:
        As `lstm`.

    Raises:
        ShapeError: for arrays of other shapes.
        UnsupportedError: for dropout.
    """
    sizes = (input_size, hidden_size, num_layers, dropout, bidirectional)
    return _layers(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, *sizes, None)


def _layers(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Weights,
    W_hh: Weights,
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
) -> tuple[Any, Any, Any]:
    if dropout:
        raise UnsupportedError(
            f"lstm has no dropout, got {dropout!r}", fix="apply layers one by one, with dropout between them"
        )
    directions = 2 if bidirectional else 1
    x, h_0, c_0, lengths = map(fnp.asarray, (x, h_0, c_0, seq_lengths))
    states = (num_layers * directions, x.shape[0], hidden_size)
    if x.ndim != 3 or x.shape[2] != input_size or h_0.shape != states or c_0.shape != states:
        raise ShapeError(
            f"lstm got x of {aval_of(x)!r}, h_0 of {aval_of(h_0)!r} and c_0 of {aval_of(c_0)!r}",
            fix=f"give x of shape (batch, time, {input_size}), and states of shape {states}",
        )
    inside = fnp.arange(x.shape[1])[:, None, None] < lengths[None, :, None]  # time, batch, 1
    y = x.swapaxes(0, 1)
    last: list[tuple[Any, Any]] = []
    for layer in range(num_layers):
        outs: list[Any] = []
        for k in range(layer * directions, (layer + 1) * directions):
            gates = fnp.einsum("tbi,gi->tbg", y, W_ih[k], precision=precision) + (b_ih[k] + b_hh[k])
            backward = k % directions == 1
            state, out = _scan(gates, inside, (h_0[k], c_0[k]), W_hh[k], backward, precision)
            outs.append(out)
            last.append(state)
        y = fnp.concatenate(outs, axis=-1)
    return y.swapaxes(0, 1), fnp.stack([h for h, _ in last]), fnp.stack([c for _, c in last])


def _scan(gates: Any, inside: Any, state: Any, weights: Any, backward: bool, precision: Any) -> tuple[Any, Any]:
    """Return the last state of one direction, and all states; a state stays as it is outside of its sequence."""

    def step(state: Any, slices: Any) -> tuple[Any, Any]:
        (h, c), (gates, inside) = state, slices
        i, f, g, o = fnp.split(gates + fnp.matmul(h, weights.T, precision=precision), 4, axis=-1)
        cell = lax.logistic(f) * c + lax.logistic(i) * fnp.tanh(g)
        out = lax.logistic(o) * fnp.tanh(cell)
        return (fnp.where(inside, out, h), fnp.where(inside, cell, c)), fnp.where(inside, out, 0)

    return lax.scan(step, state, (gates, inside), reverse=backward)
