"""Updates by a traced mask, alone and beside slices and positions, against NumPy with the mask's values."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

T = np.arange(24.0, dtype="float32").reshape(2, 3, 4)
A, B, C = (np.arange(n) % 2 == 0 for n in T.shape)
AB = T[..., 0] % 3 == 0
V = np.arange(4.0, dtype="float32")
_ = slice(None)
INDICES = {
    "[A]": (A, lambda m: m),
    "[A, 1]": (A, lambda m: (m, 1)),
    "[:, B]": (B, lambda m: (_, m)),
    "[..., C]": (C, lambda m: (..., m)),
    "[A, ..., :2]": (A, lambda m: (m, ..., slice(0, 2))),
    "[:, B, ::2]": (B, lambda m: (_, m, slice(None, None, 2))),
    "[1, B]": (B, lambda m: (1, m)),
    "[0, :, C]": (C, lambda m: (0, _, m)),
    "[..., B, 1]": (B, lambda m: (..., m, 1)),
    "[:, None, B]": (B, lambda m: (_, None, m)),
    "[AB, 1:]": (AB, lambda m: (m, slice(1, None))),
    "[1:, BC]": (T[0] > 5, lambda m: (slice(1, None), m)),
}


@pytest.mark.parametrize("index", INDICES)
def test_beside_slices_and_positions(index):
    mask, at = INDICES[index]
    expected = T.copy()
    expected[at(mask)] = 7
    np.testing.assert_array_equal(ft.jit(lambda x, m: x.at[at(m)].set(7.0))(T, mask), expected)
    expected = T.copy()
    expected[at(mask)] *= 2
    masks = np.stack([mask, ~mask])
    results = ft.vmap(lambda m: fnp.asarray(T).at[at(m)].multiply(2.0))(masks)
    np.testing.assert_array_equal(results[0], expected)


@pytest.mark.parametrize("index", ["[A]", "[:, B]", "[1, B]"])
def test_values_with_the_dimensions_after_the_mask(index):
    mask, at = INDICES[index]
    expected = T.copy()
    expected[at(mask)] = V
    np.testing.assert_array_equal(ft.jit(lambda x, m: x.at[at(m)].set(V))(T, mask), expected)


@pytest.mark.parametrize(
    "update",
    [
        lambda x, m: x.at[m, np.array([0, 1])].set(0.0),
        lambda x, m: x.at[m, m].set(0.0),
        lambda x, m: x.at[m, :, 0].set(np.zeros(3, "float32")),
        lambda x, m: x.at[:, m].set(0.0),
        lambda x, m: x.at[m].get(),
        lambda x, m: x.at[m].apply(fnp.sin),
    ],
)
def test_what_has_no_known_shape_is_refused(update):
    x = fnp.ones((2, 3, 4))
    message = refusal(lambda: ft.jit(update)(x, fnp.asarray(A)), errors.NonConcreteBooleanIndexError, IndexError)
    says(message.remedy, "fnp.where(mask, ")
