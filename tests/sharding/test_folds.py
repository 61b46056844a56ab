"""Reductions over split dimensions: those whose partial results XLA can exchange, and those where it cannot."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.random.default_rng(0).standard_normal((8, 16))
INTEGERS = np.random.default_rng(1).integers(-100, 100, (8, 16))
LOW = fnp.asarray(-1e9)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("a", "b"))


def greatest(x, axes):
    """Return the greatest elements, by `lax.reduce` with a user-defined function."""
    return lax.reduce(x, LOW, lambda a, b: fnp.where(a > b, a, b), axes)


@pytest.mark.parametrize("spec", [P("a"), P("a", "b"), P(None, "b"), P(("a", "b"))])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_a_computation_of_the_user(mesh, spec, axes):
    x = ft.device_put(X, NamedSharding(mesh, spec))
    np.testing.assert_array_equal(np.asarray(ft.jit(lambda x: greatest(x, axes))(x)), X.max(axes))


def test_its_gradient(mesh):
    x = ft.device_put(X, NamedSharding(mesh, P("a", "b")))
    gradient = ft.jit(ft.grad(lambda x: greatest(x, (0,)).sum()))(x)
    np.testing.assert_array_equal(np.asarray(gradient), X.max(0) == X)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_folds_of_bits(mesh, name, dtype):
    values = (INTEGERS > 0) if dtype == "bool" else INTEGERS.astype(dtype)
    fold = getattr(lax, f"reduce_{name}")
    expected = getattr(np, f"bitwise_{name}").reduce(values, 0)
    for spec in (P("a"), P("a", "b")):
        out = ft.jit(lambda x: fold(x, (0,)))(ft.device_put(values, NamedSharding(mesh, spec)))
        np.testing.assert_array_equal(np.asarray(out), expected)


def test_inside_of_shard_map(mesh):
    """Each device reduces its part; the compiler splits by the axes that shard_map leaves automatic."""
    f = lambda x: greatest(x, (1,)) + lax.reduce_xor(x.astype("int32"), (1,))
    expected = lambda x: X.max(1) + np.bitwise_xor.reduce(X.astype(np.int32), 1)
    part = ft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    whole = ft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    for mapped in (part, whole):
        out = ft.jit(mapped)(ft.device_put(X, NamedSharding(mesh, P("a", "b"))))
        np.testing.assert_array_equal(np.asarray(out), expected(X))
