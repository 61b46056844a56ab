"""Convolutions to few output features, which the package lowers in its own way: values and both gradients."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax

RNG = np.random.default_rng(5)
#: Shapes of images and kernels with features first; padding; dilation of the kernel.
CASES = [
    ((2, 8, 14, 15), (3, 8, 3, 3), ((1, 1), (1, 1)), (1, 1)),
    ((3, 16, 12, 11), (1, 16, 5, 4), ((2, 0), (0, 3)), (1, 1)),
    ((1, 4, 40, 30), (4, 4, 3, 2), ((0, 2), (4, 1)), (2, 3)),
    ((2, 32, 90), (8, 32, 7), ((3, 3),), (1,)),
    ((2, 6, 9, 8, 10), (2, 6, 2, 3, 2), ((1, 0), (1, 1), (0, 1)), (1, 1, 1)),
]


def _windows(x, kernel, padding, holes):
    """Return all windows of the padded images, in float64: (n, c, *out, *kernel)."""
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    reach = [(k - 1) * h + 1 for k, h in zip(kernel, holes, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, x.ndim)))
    return seen[(..., *(slice(None, None, h) for h in holes))]


@pytest.mark.parametrize("last", [False, True], ids=["features first", "features last"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(case, last):
    shape, kernel, padding, holes = case
    x, w = RNG.standard_normal(shape), RNG.standard_normal(kernel)
    n, space = x.ndim, list(range(2, x.ndim))
    windows = _windows(x, kernel[2:], padding, holes)
    taps = list(range(n, 2 * n - 2))
    exact = np.einsum(windows, [0, 1, *space, *taps], w, [2 * n, 1, *taps], [0, 2 * n, *space])
    g = RNG.standard_normal(exact.shape)
    slope_w = np.einsum(windows, [0, 1, *space, *taps], g, [0, 2 * n, *space], [2 * n, 1, *taps])
    slope_x = np.pad(np.zeros(shape), ((0, 0), (0, 0), *padding))
    for k in np.ndindex(*kernel[2:]):
        at = tuple(slice(i * h, i * h + c) for i, h, c in zip(k, holes, exact.shape[2:], strict=True))
        slope_x[(..., *at)] += np.einsum("no...,oc->nc...", g, w[(..., *k)])
    slope_x = slope_x[(..., *(slice(lo, lo + m) for m, (lo, _) in zip(shape[2:], padding, strict=True)))]

    to = (lambda a: np.moveaxis(a, 1, -1)) if last else (lambda a: a)
    kernel_to = (lambda a: np.moveaxis(a, (0, 1), (-1, -2))) if last else (lambda a: a)
    letters = "DHW"[-len(space) :]
    numbers = (
        (f"N{letters}C", f"{letters}IO", f"N{letters}C") if last else (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    )

    @ft.jit
    def both(x, w, g):
        f = lambda x, w: lax.conv_general_dilated(
            x, w, (1,) * len(space), padding, rhs_dilation=holes, dimension_numbers=numbers
        )
        y, back = ft.vjp(f, x, w)
        return y, *back(g)

    got = both(*(np.float32(a) for a in (to(x), kernel_to(w), to(g))))
    for a, b in zip(got, (to(exact), to(slope_x), kernel_to(slope_w)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * np.abs(b).max())


def test_the_forms_are_taken():
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME")
    slope = ft.jit(lambda x, w: ft.grad(lambda w: conv(x, w).sum())(w))
    x, w = np.ones((2, 8, 16, 16), np.float32), np.ones((3, 8, 3, 3), np.float32)
    for f in (ft.jit(conv), slope):
        assert "stablehlo.convolution" not in f.lower(x, w).as_text()
