import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import find, given, settings

import functorch_like as ft
from functorch_like import dtypes, tree
from functorch_like.testing import check_vmap
from functorch_like.testing import strategies as fts

FEW = settings(max_examples=30)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda x: x.size == 0,
        lambda x: x.ndim == 0,
        lambda x: dtypes.is_inexact(x.dtype) and bool(np.isnan(x.astype(complex)).any()),
        lambda x: dtypes.is_inexact(x.dtype) and bool(np.isinf(x.astype(complex)).any()),
        lambda x: x.dtype == dtypes.bfloat16 and x.size > 1,
        lambda x: x.dtype.kind == "i" and bool((x == np.iinfo(x.dtype).min).any()),
    ],
)
def test_edges_are_drawn(wanted):
    find(fts.arrays(), wanted, settings=settings(max_examples=3000, derandomize=True, deadline=None))


@FEW
@given(fts.arrays(fts.floats(), (3, 2), low=1.0, high=2.0, special=False))
def test_arrays_keep_their_bounds(x):
    assert x.shape == (3, 2) and (x.astype(float) >= 1).all() and (x.astype(float) <= 2).all()


@FEW
@given(fts.broadcastable_arrays(3))
def test_groups_broadcast(group):
    np.broadcast_shapes(*(x.shape for x in group))
    assert len({x.dtype for x in group}) == 1


@FEW
@given(fts.pytrees())
def test_pytrees_go_through_flatten(value):
    leaves, treedef = tree.flatten(value)
    assert tree.structure(treedef.unflatten(leaves)) == treedef


@settings(max_examples=20)
@given(st.data())
def test_axes_and_batches_fit(data):
    args = (np.arange(6.0).reshape(2, 3), {"w": np.ones((3, 2)), "b": np.ones(2)})
    axes = data.draw(fts.in_axes(args))
    size = data.draw(st.integers(0, 3))
    check_vmap(lambda x, p: x @ p["w"] + p["b"], fts.batched(args, axes, size), axes)


@settings(max_examples=5)
@given(fts.programs(depth=1))
def test_programs_run(f):
    x, w = (ft.device_put(np.full((3,) * rank, 0.5)) for rank in f.ranks)
    assert f(x, w).ndim == f.rank and "def f(" in repr(f)
