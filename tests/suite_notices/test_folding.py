"""Constants are folded, and to the right values."""

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.ir import passes


def folded(x):
    return x * (fnp.add(2.0, 3.0) * 4.0) + fnp.where(fnp.asarray(3) > 2, 1.5, 2.5)


def test_folding_leaves_fewer_equations_and_the_same_value():
    jaxpr = ft.make_jaxpr(folded)(np.ones(2))
    simple = passes.simplify(jaxpr)
    assert len(simple.equations) < len(jaxpr.equations)
    np.testing.assert_array_equal(ft.jit(folded)(np.ones(2)), [21.5, 21.5])
