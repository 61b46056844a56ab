"""Products are transposed in one operand at a time; for both at once they raise an error, not empty cotangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.core import SampleInput, UndefinedPrimal
from functorch_like.errors import DifferentiationError
from functorch_like.primitives.base.shapes import zeros

PRODUCTS = {
    "mul": (0, 1),
    "dot_general": (0, 1),
    "ragged_dot": (0, 1),
    "conv_general_dilated": (0, 1),
    "scatter_mul": (0, 2),
    "solve": (0, 1),
    "triangular_solve": (0, 1),
}


def transposed(name: str, sample: SampleInput) -> Any:
    """Return the cotangents of the two operands of a primitive's product."""
    primitive, both = ft.extend.primitives()[name], PRODUCTS[name]
    avals = [ft.typeof(x) if isinstance(x, np.ndarray) else x for x in sample.operands]
    given = [UndefinedPrimal(a) if i in both else zeros(a) for i, a in enumerate(avals)]
    back = primitive.transpose(zeros(out_aval(primitive, avals, sample)), given, **sample.params)
    return [back[i] for i in both]


def out_aval(primitive: Any, avals: Any, sample: SampleInput) -> Any:
    out = primitive.shape(*avals, **sample.params)
    return out[0] if isinstance(out, (list, tuple)) else out


@pytest.mark.parametrize("name", PRODUCTS)
def test_both_operands_of_a_product_at_once(name: str) -> None:
    refused = empty = 0
    for sample in ft.extend.primitives()[name].samples():
        first, second = (np.prod(sample.operands[i].shape) for i in PRODUCTS[name])
        if first and second:
            with pytest.raises(DifferentiationError, match=rf"{name} is linear in each operand alone(.|\n)*what to do"):
                transposed(name, sample)
            refused += 1
        else:
            assert all(b is None or not np.asarray(b).any() for b in transposed(name, sample))
            empty += 1
    assert refused


def test_the_square_of_a_product_has_the_right_gradient() -> None:
    a = np.arange(6.0).reshape(2, 3)
    got = ft.vjp(lambda a: a @ a.T, fnp.asarray(a))[1](fnp.ones((2, 2), "float64"))[0]
    np.testing.assert_allclose(got, 2 * np.ones((2, 2)) @ a)
