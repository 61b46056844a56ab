"""Each primitive is linear in the operands that its `linear` names, by its NumPy reference."""

import numpy as np
import pytest
from support.primitive_samples import differentiable, direction, ref

from functorch_like import dtypes
from functorch_like.core import TABLE

NAMED = {name for name, prim in TABLE.items() if prim.linear is not None}
MEANINGLESS_ALONE = {
    "psum", "all_gather", "all_to_all", "ppermute", "reduce_scatter", "pvary", "sum_where_same", "divide_where_same",
}  # fmt: skip
ROUNDING = {"reduce_precision"}
CASES = [
    pytest.param(c, id=c.label)
    for c in differentiable()
    if c.prim.name in NAMED - ROUNDING and not c.sample.params.get("fill_value")
]


@pytest.mark.parametrize("case", CASES)
def test_sums_go_to_sums(case):
    xs, linear = case.draw(), case.prim.linear
    sets = [[0], [1]] if linear == "separately" else [[linear] if isinstance(linear, int) else case.floats]
    vs = direction(case, xs, 1)
    for some in sets:
        alone = [v if k in some else x for k, (x, v) in enumerate(zip(xs, vs, strict=True))]
        total = [np.asarray(x + v) if k in some else x for k, (x, v) in enumerate(zip(xs, vs, strict=True))]
        for z, a, b in zip(ref(case, total), ref(case, xs), ref(case, alone), strict=True):
            if dtypes.is_inexact(z.dtype):
                np.testing.assert_allclose(z, a + b, rtol=1e-4, atol=1e-4)


def test_every_name_is_a_row_with_samples():
    assert {c.values[0].prim.name for c in CASES} == NAMED - ROUNDING - MEANINGLESS_ALONE
