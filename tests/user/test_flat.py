"""`x.flat`, and assignments to attributes of arrays: arrays never change."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

VALUES = np.arange(6.0, dtype="float32").reshape(2, 3)
X = fnp.asarray(VALUES)


@pytest.mark.parametrize("index", [0, -1, 4, slice(1, 5, 2), [0, 3]])
def test_elements_by_position(index):
    np.testing.assert_array_equal(np.asarray(X.flat[index]), VALUES.flat[index])
    np.testing.assert_array_equal(np.asarray(ft.jit(lambda x: x.flat[index])(X)), VALUES.flat[index])


def test_elements_in_turn():
    flat = X.flat
    assert len(flat) == 6 and float(next(flat)) == 0.0 and [float(v) for v in flat] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [float(v) for v in X.flat] == VALUES.ravel().tolist()
    np.testing.assert_allclose(ft.grad(lambda x: sum(v**2 for v in x.flat))(X), 2 * VALUES)


def test_elements_are_not_assigned():
    with pytest.raises(ft.errors.ImmutableError, match="at") as e:
        X.flat[0] = 1.0
    assert "x.ravel().at[i].set(value)" in e.value.fix and "test_flat.py" in str(e.value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("shape", "x.reshape(shape)"), ("dtype", "x.astype(dtype)"), ("real", "lax.complex(value, x.imag)"),
        ("imag", "lax.complex(x.real, value)"), ("T", "value.T"), ("flat", "reshape(x.shape)"),
    ],
)  # fmt: skip
def test_attributes_are_not_assigned(name, remedy):
    def assign(x):
        setattr(x, name, VALUES)
        return x

    for work in (assign, ft.jit(assign)):
        with pytest.raises(AttributeError, match="arrays are immutable") as e:
            work(fnp.asarray(VALUES))
        assert remedy in str(e.value)
