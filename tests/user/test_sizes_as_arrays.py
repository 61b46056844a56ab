"""Sizes that are arrays of rank 0, and numbers of points that are floats: other computations made them."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.errors import FtError

SIX = [np.array(6, np.int32), np.int64(6), fnp.asarray(6)]


@pytest.mark.parametrize("six", SIX, ids=["numpy", "scalar", "array"])
def test_sizes_of_rank_0(six):
    x = fnp.ones((6, 1))
    assert fnp.reshape(x, (six,)).shape == (6,) == x.reshape(six).shape == x.reshape((six,)).shape
    assert x.reshape(1, six).shape == (1, 6)
    assert lax.iota("int32", six).tolist() == [0, 1, 2, 3, 4, 5]
    assert nn.one_hot(fnp.asarray([1, 5]), six).tolist() == np.eye(6)[[1, 5]].tolist()


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("points", [5.0, fnp.asarray(5.0), fnp.asarray(5, "bfloat16"), np.float32(5), np.int8(5)])
def test_points_without_a_fraction(name, points):
    np.testing.assert_allclose(getattr(fnp, name)(points), getattr(np, name)(5), atol=1e-6)
    np.testing.assert_allclose(fnp.kaiser(points, 2.0), np.kaiser(5, 2.0), rtol=1e-5)


def test_what_is_no_size_is_refused():
    x = fnp.ones((6, 1))
    wrong = [
        lambda: fnp.reshape(x, (fnp.asarray(6.0),)),
        lambda: ft.jit(lambda n: fnp.reshape(x, (n,)))(6),
        lambda: nn.one_hot(fnp.asarray([1]), fnp.asarray(2.0)),
        lambda: nn.one_hot(fnp.asarray([1]), fnp.asarray(-2)),
        lambda: fnp.hanning(5.5),
        lambda: ft.jit(fnp.hanning)(5),
    ]
    for call in wrong:
        with pytest.raises(FtError):
            call()
