"""Transposed convolutions of float64 against sums over the kernel, for phases of all kinds."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax

CASES = [  # kernel, holes, strides, distances in the kernel, padding
    ((3, 3), (2, 2), (1, 1), (1, 1), ((2, 1), (1, 2))),
    ((3, 2), (2, 1), (1, 2), (1, 1), ((1, 1), (0, 3))),
    ((1, 3), (3, 2), (1, 1), (1, 2), ((0, 2), (2, 2))),  # phases that meet no element of the kernel
    ((4, 3), (2, 3), (1, 1), (2, 1), ((-2, 3), (3, -1))),
    ((2, 4), (1, 2), (2, 1), (2, 3), ((-1, 0), (5, 5))),
    ((3, 3), (2, 4), (3, 2), (1, 1), ((1, 2), (2, 1))),  # holes and strides
    ((1, 3), (2, 3), (2, 3), (1, 3), ((1, 1), (1, 0))),  # of holes alone
]


def by_definition(x, kernel, holes, strides, apart, padding):
    wide = [(n - 1) * d + 1 for n, d in zip(x.shape[2:], holes, strict=True)]
    line = np.zeros((*x.shape[:2], *wide))
    line[:, :, :: holes[0], :: holes[1]] = x
    grow, cut = ([(max(sign * lo, 0), max(sign * hi, 0)) for lo, hi in padding] for sign in (1, -1))
    line = np.pad(line, [(0, 0), (0, 0), *grow])
    line = line[:, :, *(slice(lo, n - hi) for (lo, hi), n in zip(cut, line.shape[2:], strict=True))]
    counts = [
        (n - (k - 1) * r - 1) // s + 1
        for n, k, r, s in zip(line.shape[2:], kernel.shape[2:], apart, strides, strict=True)
    ]
    out = np.zeros((x.shape[0], kernel.shape[0], *counts))
    for i, j in np.ndindex(*kernel.shape[2:]):
        rows, columns = (
            slice(k * r, k * r + (n - 1) * s + 1, s) for k, r, n, s in zip((i, j), apart, counts, strides, strict=True)
        )
        out += np.einsum("bfhw,of->bohw", line[:, :, rows, columns], kernel[:, :, i, j])
    return out


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("last", [False, True])
def test_values(case, last):
    wide, holes, strides, apart, padding = case
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(3, 8, 22, 21)), rng.normal(size=(7, 8, *wide))
    want = by_definition(x, kernel, holes, strides, apart, padding)
    numbers = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
    operands = (x.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0)) if last else (x, kernel)
    found = ft.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, strides, padding, lhs_dilation=holes, rhs_dilation=apart, dimension_numbers=numbers
        )
    )(*operands)
    np.testing.assert_allclose(found, want.transpose(0, 2, 3, 1) if last else want, rtol=1e-12, atol=1e-12)


def test_gradients_of_strides():
    rng = np.random.default_rng(1)
    x, kernel = rng.normal(size=(2, 8, 21, 22)), rng.normal(size=(8, 8, 3, 3))

    def total(x, kernel):
        return (lax.conv_general_dilated(x, kernel, (2, 3), "SAME") ** 2).sum()

    by_x, by_kernel = ft.jit(ft.grad(total, (0, 1)))(x, kernel)
    for position, found in ((0, by_x), (1, by_kernel)):
        for _ in range(5):
            operands, step = [x, kernel], 1e-6
            at = tuple(rng.integers(operands[position].shape))
            moved = []
            for sign in (1, -1):
                other = operands[position].copy()
                other[at] += sign * step
                moved.append(float(total(*(other if i == position else v for i, v in enumerate(operands)))))
            np.testing.assert_allclose(found[at], (moved[0] - moved[1]) / (2 * step), rtol=1e-6, atol=1e-4)
