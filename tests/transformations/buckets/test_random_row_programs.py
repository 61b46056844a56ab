"""Random programs give the same results with and without buckets, whatever the padding holds."""

import os

import numpy as np
import pytest
from support.row_programs import poisoned, program

import functorch_like as ft
from functorch_like.transforms.buckets import padding

#: Number of programs; for a long run, set FT_RANDOM_PROGRAMS=3000.
COUNT = int(os.environ.get("FT_RANDOM_PROGRAMS", "4"))


@pytest.mark.parametrize("seed", range(COUNT))
def test_padding_is_not_read(seed, monkeypatch):
    monkeypatch.setattr(padding, "pad", poisoned)
    rng = np.random.default_rng(seed)
    fun, names = program(rng)
    bucketed = ft.jit(fun, buckets={"x": 0}, bucket_sizes=(8,))
    for rows in (5, 8):
        x = rng.normal(size=(rows, 3)).astype("float32")
        for got, want in zip(bucketed(x), ft.jit(fun)(x), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype, names
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-3, atol=1e-4, err_msg=str(names))
