"""Windows over one padded element. XLA by itself would replace each window by the element, or end the process."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax

#: Zeros added around one row along both dimensions; number of columns; window; padding of the windows.
CASES = [
    ((1, 0), 3, (3, 1), ((0, 2), (0, 0))),
    ((1, 0), 1, (3, 1), ((2, 0), (0, 0))),
    ((1, 1), 1, (3, 3), ((1, 1), (0, 2))),
    ((2, 1), 1, (4, 2), ((0, 4), (1, 0))),
    ((2, 0), 3, (3, 1), ((1, 3), (0, 0))),
    ((0, 1), 1, (2, 2), ((2, 0), (1, 1))),
    ((1, 0), 3, (2, 1), ((0, 2), (0, 2))),
    ((2, 0), 1, (5, 1), ((4, 0), (0, 0))),
]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("zeros", "columns", "window", "padding"), CASES)
def test_sums_of_windows(zeros, columns, window, padding, fast):
    x = np.arange(1.0, columns + 1, dtype="float32").reshape(1, columns)
    around = np.pad(x, [(n, n) for n in zeros])
    want = np.lib.stride_tricks.sliding_window_view(np.pad(around, padding), window).sum((-1, -2))

    def sums(x):
        y = lax.pad(x, np.float32(0), [(n, n, 0) for n in zeros])
        return lax.reduce_window(y, np.float32(0), lax.add, window, (1, 1), padding)

    def of_a_function(x):
        y = lax.pad(x, np.float32(0), [(n, n, 0) for n in zeros])
        return lax.reduce_window(y, np.float32(0), lambda a, b: a + b + 0 * a, window, (1, 1), padding)

    with backends.flags({"cpu.fast_lowerings": fast}):
        np.testing.assert_array_equal(ft.jit(lambda x: sums(x))(x), want)
        np.testing.assert_array_equal(ft.jit(lambda x: of_a_function(x))(x), want)


@pytest.mark.parametrize("n", [3, 5, 31])
def test_cumulative_sums(n):
    x, middle = np.float32([[2.0, 3.0]]), n // 2
    whole = np.pad(x, [(middle, middle), (0, 0)])
    put = lambda x: fnp.zeros((n, 2), "float32").at[middle].set(x[0])
    np.testing.assert_array_equal(ft.jit(lambda x: fnp.cumsum(put(x), axis=0))(x), whole.cumsum(0))
    got = ft.jit(lambda x: lax.cumsum(put(x), axis=0, reverse=True))(x)
    np.testing.assert_array_equal(got, whole[::-1].cumsum(0)[::-1])


def test_gradient_of_one_row_of_cumulative_sums():
    x = np.float32([[0.5, 1.0], [1.0, 2.0], [3.0, 4.0]])
    got = ft.jit(ft.grad(lambda x: fnp.sum(fnp.sin(fnp.cumsum(x, axis=0)[1]))))(x)
    slope = np.cos(x[:2].sum(0, dtype="float64"))
    np.testing.assert_allclose(got, [slope, slope, np.zeros(2)], rtol=1e-6)
