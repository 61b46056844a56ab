"""lax.ragged_all_to_all on several devices and under vmap, against a loop of assignments."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.sharding import PartitionSpec as P

COUNT = 4
rng = np.random.default_rng(0)


def drawn(each, members):
    """Return operands of all positions: `each` slices of every position go to every member of its group."""
    slices = each * len(members[0])
    sizes = rng.integers(0, 4, (COUNT, slices)).astype(np.int32)
    starts = rng.integers(0, 5, (COUNT, slices)).astype(np.int32)
    places = np.zeros((COUNT, slices), np.int32)
    received = np.zeros((COUNT, slices), np.int32)
    for group in members:
        for to, receiver in enumerate(group):
            free = 1
            for sender_place, sender in enumerate(group):
                for k in range(each):
                    places[sender, to * each + k] = free
                    received[receiver, sender_place * each + k] = sizes[sender, to * each + k]
                    free += sizes[sender, to * each + k]
    rows = rng.normal(size=(COUNT, 8, 2))
    return rows, np.full((COUNT, 40, 2), -1.0), starts, sizes, places, received


def exchanged(rows, output, starts, sizes, places, each, members):
    out = output.copy()
    for group in members:
        for sender in group:
            for i, size in enumerate(sizes[sender]):
                start, place = starts[sender, i], places[sender, i]
                out[group[i // each], place : place + size] = rows[sender, start : start + size]
    return out


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("groups", [None, [[0, 2], [3, 1]]])
def test_slices_arrive(each, groups):
    members = groups or [list(range(COUNT))]
    operands = drawn(each, members)
    wanted = exchanged(*operands[:5], each, members)
    one = lambda *args: lax.ragged_all_to_all(*args, axis_name="i", axis_index_groups=groups)
    np.testing.assert_array_equal(ft.vmap(one, axis_name="i")(*operands), wanted)
    mesh = ft.make_mesh((COUNT,), ("i",), devices=ft.devices()[:COUNT])
    parts = lambda *args: one(*(x[0] for x in args))[None]
    split = ft.jit(ft.shard_map(parts, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    np.testing.assert_array_equal(split(*operands), wanted)


def test_derivatives():
    rows, output, starts, sizes, places, received = drawn(2, [list(range(COUNT))])
    weights = rng.normal(size=output.shape)
    exchange = ft.vmap(lambda *args: lax.ragged_all_to_all(*args, axis_name="i"), axis_name="i")
    loss = lambda rows, output: fnp.vdot(weights, exchange(rows, output, starts, sizes, places, received))
    by_rows, by_output = ft.jit(ft.grad(loss, (0, 1)))(rows, output)
    value = lambda rows, output: np.sum(
        weights * exchanged(rows, output, starts, sizes, places, 2, [list(range(COUNT))])
    )
    step = rng.normal(size=rows.shape)  # the loss is linear
    np.testing.assert_allclose(np.vdot(by_rows, step), value(rows + step, output) - value(rows, output), rtol=1e-9)
    step = rng.normal(size=output.shape)
    np.testing.assert_allclose(np.vdot(by_output, step), value(rows, output + step) - value(rows, output), rtol=1e-9)


def test_what_it_refuses():
    rows, output, *lists = drawn(1, [list(range(COUNT))])
    call = lambda *args: ft.vmap(lambda *a: lax.ragged_all_to_all(*a, axis_name="i"), axis_name="i")(*args)
    with pytest.raises(ShapeError, match="4 k of each"):
        call(rows, output, *(x[:, :3] for x in lists))
    with pytest.raises(ShapeError, match="equal row shapes"):
        call(rows, output[..., :1], *lists)
    with pytest.raises(DtypeError, match="astype"):
        call(rows, output.astype(np.float32), *lists)
    with pytest.raises(DtypeError, match="int32"):
        call(rows, output, *(x * 1.0 for x in lists))
