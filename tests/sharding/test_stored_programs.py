"""Compiled functions of a mesh, as bytes."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.experimental.serialize_executable import deserialize_and_load, serialize
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32).reshape(4, 2)


def test_programs_of_a_mesh():
    mesh = ft.make_mesh((2, 2), ("x", "y"))
    large = fnp.linspace(0, 1, 4000)
    x = ft.device_put(X, NamedSharding(mesh, P("x", "y")))
    stored = serialize(ft.jit(lambda x: (x.sum(0), large.sum() + x)).lower(x).compile())
    f = deserialize_and_load(*stored)
    total, rest = f(x)
    np.testing.assert_array_equal(total, X.sum(0))
    np.testing.assert_allclose(rest, X + 2000, rtol=1e-5)
    assert total.sharding == NamedSharding(mesh, P("y")) and rest.sharding == x.sharding

    other = deserialize_and_load(*stored, execution_devices=ft.devices()[4:])
    assert other(X)[0].devices() == set(ft.devices()[4:])
    np.testing.assert_array_equal(other(X)[0], X.sum(0))
    with pytest.raises(ft.errors.DeviceError, match="compiled for 4 devices"):
        deserialize_and_load(*stored, execution_devices=ft.devices())
