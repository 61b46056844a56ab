"""Functions that fill: diagonals, margins, missing results; and sequences that are filled between two ends."""

import array

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError, ShapeError


# ------------------------------------------------------------------------------------------- sequences between two ends
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("linspace", (-np.pi, np.pi, 9)),
        ("linspace", (-3.3, 7.7, 101)),
        ("logspace", (-3.3, 2, 101)),
        ("geomspace", (1e-3, 77.0, 101)),
        ("geomspace", (-1, -1000, 17)),
        ("kaiser", (51, 8.6)),
    ],
)
def test_sequences_of_float32_are_the_nearest_numbers(name, arguments):
    x, exact = getattr(fnp, name)(*arguments), getattr(np, name)(*arguments)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, exact, rtol=6.1e-8, atol=1e-15)


def test_sequences_between_traced_ends_lose_no_digits():
    a, b = np.float32(-3.3), np.float32(7.7)
    x = ft.jit(lambda a, b: fnp.linspace(a, b, 101))(a, b)
    np.testing.assert_allclose(x, np.linspace(np.float64(a), np.float64(b), 101), rtol=6.1e-8, atol=1e-15)


def test_sequences_of_whole_numbers():
    assert (
        fnp.geomspace(1, 1000, 4, dtype=int).tolist() == fnp.logspace(0, 3, 4, dtype=int).tolist() == [1, 10, 100, 1000]
    )
    step = fnp.linspace(0, 10, 5, retstep=True)[1]
    assert step.item() == 2.5 and not step.weak_type
    step = fnp.linspace(0, 1, 3, dtype=complex, retstep=True)[1]
    assert step.item() == 0.5 and step.dtype == np.float32


# ------------------------------------------------------------------------------------------------------------ diagonals
@pytest.mark.parametrize("values", [7, [3, 4], list(range(9)), [[1, 2], [3, 4]]])
@pytest.mark.parametrize(("shape", "wrap"), [((4, 4), False), ((2, 5), False), ((7, 2), True), ((3, 3, 3), False)])
def test_values_fill_a_diagonal_again_and_again(values, shape, wrap):
    expected = np.zeros(shape, int)
    np.fill_diagonal(expected, values, wrap)
    values = fnp.asarray(values)
    np.testing.assert_array_equal(fnp.fill_diagonal(fnp.zeros(shape, int), values, wrap, inplace=False), expected)


def test_no_values_fill_no_diagonal():
    with pytest.raises(ShapeError, match="at least one"):
        fnp.fill_diagonal(fnp.ones((2, 2)), fnp.ones(0), inplace=False)


# -------------------------------------------------------------------------------------------------------------- margins
def test_a_function_fills_margins():
    def in_numpy(row, widths, axis, options):
        row[: widths[0]] = options["before"] + axis
        row[row.size - widths[1] :] = options["after"]

    def functional(row, widths, axis, options):
        row = row.at[: widths[0]].set(options["before"] + axis)
        return row.at[row.size - widths[1] :].set(options["after"])

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for widths in (2, ((1, 0), (0, 2))):
        expected = np.pad(x, widths, in_numpy, before=-10, after=10)
        np.testing.assert_array_equal(fnp.pad(x, widths, functional, before=-10, after=10), expected)
    with pytest.raises(ArgumentError, match="takes no before"):
        fnp.pad(x, 1, before=3)


# ------------------------------------------------------------------------------------------------- places and elements
def test_places_in_numbers():
    for x in (0, 1, 2.5):
        assert fnp.argwhere(x).shape == np.argwhere(x).shape
    assert fnp.argwhere(fnp.asarray(3), size=2).shape == (2, 0)


def test_traced_numbers_fill_missing_places():
    x = fnp.asarray([[0, 1], [0, 2]])
    places = ft.jit(lambda x, fill: fnp.argwhere(x, size=3, fill_value=(fill, fill + 1)))(x, 7)
    assert places.tolist() == [[0, 1], [1, 1], [7, 8]]
    (places,) = ft.jit(lambda x, fill: fnp.nonzero(x, size=4, fill_value=fill))(x.ravel(), fnp.asarray(9))
    assert places.tolist() == [1, 3, 9, 9]


def test_masks_longer_than_the_array():
    mask = np.array([True, False, True, False, False, False])
    np.testing.assert_array_equal(fnp.extract(mask, fnp.arange(4)), np.extract(mask, np.arange(4)))


def test_one_condition_for_each_function():
    x = fnp.arange(-2, 3)
    functions = [lambda x: 0 * x, lambda x: 10 * x, lambda x: 100 * x]
    assert fnp.piecewise(x, fnp.asarray([False, True, False]), functions).tolist() == [-20, -10, 0, 10, 20]


# --------------------------------------------------------------------------------------------------------------- others
def test_arrays_of_the_standard_library():
    x = fnp.asarray(array.array("i", [2, 3, 5]))
    assert x.dtype == np.int32 and x.tolist() == [2, 3, 5]


def test_complex_numbers_are_rounded_by_parts():
    z = np.array([1.5 - 2.5j, -0.4 + 3.6j], np.complex64)
    np.testing.assert_array_equal(fnp.rint(z), np.rint(z))


def test_identities_of_elementwise_functions():
    for name in ("add", "multiply", "logaddexp", "logical_and", "bitwise_and", "subtract", "maximum"):
        assert getattr(fnp, name).identity == getattr(np, name).identity
    assert fnp.sin.identity is None


def test_broadcasting_exchanges_dimensions():
    x = np.arange(3.0, dtype=np.float32).reshape(3, 1)
    made = ft.jit(lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 0)))(x)
    np.testing.assert_array_equal(made, np.broadcast_to(x.T[:, :, None], (2, 3, 4)))
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(lax.broadcast_in_dim(x, (2, 3), (1, 0)), x.T)
