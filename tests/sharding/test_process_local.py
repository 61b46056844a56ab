"""`make_array_from_process_local_data` in one process; tests/distributed tests it over several processes."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.sharding import NamedSharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P

MESH = ft.make_mesh((4, 2), ("a", "b"))


@pytest.mark.parametrize("spec", [P(), P("a"), P("a", "b"), P(("a", "b")), P(None, ("b", "a"))])
@pytest.mark.parametrize("shape", [None, (8, 16), (None, 16)])
def test_one_process_has_all_parts(spec, shape):
    x = np.arange(128.0).reshape(8, 16)
    made = ft.make_array_from_process_local_data(NamedSharding(MESH, spec), x, shape)
    assert made.sharding == NamedSharding(MESH, spec) and made.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(made), x)


def test_one_device_and_numbers():
    one = SingleDeviceSharding(ft.devices()[3])
    assert ft.make_array_from_process_local_data(one, np.arange(3)).devices() == {ft.devices()[3]}
    assert float(ft.make_array_from_process_local_data(NamedSharding(MESH, P()), 2.5)) == 2.5


@pytest.mark.parametrize(
    ("spec", "shape", "whole", "message"),
    [
        (P("a"), (6,), None, r"dimension 0 of local_data of shape \(6,\) has size 6, .* the 4 parts of this process"),
        (P("a"), (8,), (7,), "has size 8, and global_shape has 7 there"),
        (P("a"), (8,), (8, 1), r"global_shape \(8, 1\) has 2 dimensions, and local_data 1"),
        (P("a", "b"), (8,), None, "has 2 entries for local data of shape"),
    ],
)
def test_refused(spec, shape, whole, message):
    with pytest.raises(ft.errors.ShapeError, match=message):
        ft.make_array_from_process_local_data(NamedSharding(MESH, spec), np.ones(shape), whole)
