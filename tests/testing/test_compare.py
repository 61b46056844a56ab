import numpy as np
import pytest

import functorch_like.numpy as fnp
from functorch_like.testing import assert_allclose, assert_trees_equal, tolerance


def message(check, *args, **options):
    with pytest.raises(AssertionError) as caught:
        check(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize("dtype", [fnp.bfloat16, np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_tolerances_follow_the_dtype(dtype):
    near = np.ones(2, dtype) * 4
    off = np.asarray(near.astype(np.complex128) * (1 + 0.5 * tolerance(dtype)), dtype) if near.dtype.kind == "c" else (
        near.astype(np.float64) * (1 + 0.5 * tolerance(dtype))).astype(dtype)  # fmt: skip
    assert_allclose(fnp.asarray(off), near)
    assert "differs in 2 of 2" in message(assert_allclose, near + near.dtype.type(1), near)


def test_the_first_path_that_differs():
    got, want = {"a": np.ones(2), "b": [np.ones((2, 2))]}, {"a": np.ones(2), "b": [np.eye(2)]}
    assert message(assert_allclose, got, want, what="step").startswith("step: ['b'][0] differs in 2 of 4 elements")
    assert "has another shape" in message(assert_allclose, np.ones(2), np.ones(3))
    assert "has another dtype" in message(assert_allclose, np.ones(2, np.float32), np.ones(2))
    assert_allclose(np.ones(2, np.float32), np.ones(2), check_dtypes=False)
    assert "the structures differ" in message(assert_allclose, (1, 2), [1, 2])


def test_values_that_are_not_finite():
    special = np.array([np.nan, np.inf, -np.inf])
    assert_allclose(special, special)
    for other in ([np.nan, np.inf, np.inf], [0.0, np.inf, -np.inf], [np.nan, 1e300, -np.inf]):
        assert "differs in 1 of 3" in message(assert_allclose, special, np.array(other))
        assert "differs in 1 of 3" in message(assert_allclose, np.array(other), special)


def test_exact_values():
    assert_trees_equal((np.arange(3), True, None), (np.arange(3), True, None))
    assert "differs" in message(assert_trees_equal, np.float32(1), np.nextafter(np.float32(1), np.float32(2)))
    assert "differs" in message(assert_allclose, np.array([2**62]), np.array([2**62 + 1]))
    assert_trees_equal(np.array(-0.0), np.array(0.0))
    assert "sign of zero" in message(assert_trees_equal, np.array(-0.0), np.array(0.0), signed_zeros=True)


def test_infinities_are_met_exactly():
    assert_allclose(np.array([np.inf, -np.inf, np.nan]), np.array([np.inf, -np.inf, np.nan]))
    for got in (-88.0, np.inf, np.nan):
        with pytest.raises(AssertionError, match=r"allowed is 0$"):
            assert_allclose(np.array(got), np.array(-np.inf))
