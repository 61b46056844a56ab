"""The shardings that the compiler chooses, as `ft.debug` reports them."""

import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import NamedSharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("a", "b"))


@pytest.fixture
def split(mesh):
    return ft.device_put(X, NamedSharding(mesh, P("a", "b")))


def inspected(seen, fun=lambda x: x @ x.T):
    def f(x):
        y = fun(x)
        ft.debug.inspect_array_sharding(y, callback=seen.append)
        return y

    return f


def test_a_value_inside_of_a_program(mesh, split):
    seen = []
    f = ft.jit(inspected(seen))
    for _ in range(3):
        np.testing.assert_allclose(f(split), X @ X.T, rtol=1e-5)
    assert seen == [NamedSharding(mesh, P("a"))]
    lowered = ft.jit(inspected(seen, fnp.sin), in_shardings=NamedSharding(mesh, P(None, "b"))).lower(X)
    assert len(seen) == 1
    lowered.compile()
    assert seen[1:] == [NamedSharding(mesh, P(None, "b"))]


def test_transformations(mesh, split):
    of = lambda transformed, *args: (seen := [], transformed(inspected(seen, lambda x: x * 1))(*args))[0]
    row = NamedSharding(mesh, P("a"))
    total = lambda f: lambda x: f(lax.with_sharding_constraint(x, row)).sum()
    assert of(lambda f: ft.jit(ft.grad(total(f))), split) == [row]
    assert of(lambda f: ft.jit(ft.vmap(f)), split[None]) == [NamedSharding(mesh, P(None, "a", "b"))]
    assert of(lambda f: ft.jit(ft.checkpoint(f)), split) == [split.sharding]
    loop = lambda f: ft.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])
    assert of(loop, split) == [split.sharding]
    parts = lambda f: ft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    assert of(parts, X) == [NamedSharding(mesh, P())]


def test_outside_of_programs_and_on_one_device(mesh, split):
    seen = []
    ft.debug.inspect_array_sharding({"x": split, "n": 1.0}, callback=seen.append)
    assert seen == [SingleDeviceSharding(ft.devices()[0]), split.sharding]
    for place in (0, 3):
        here = ft.device_put(X, ft.devices()[place])
        ft.jit(inspected(seen))(here)
        ft.jit(inspected(seen)).lower(here).compile()
    assert seen[2:] == [SingleDeviceSharding(ft.devices()[k]) for k in (0, 0, 3, 3)]


def test_a_mesh_of_one_device():
    one = ft.make_mesh((1,), ("a",), devices=ft.devices()[2:3])
    seen = []
    ft.jit(inspected(seen))(ft.device_put(X, NamedSharding(one, P("a"))))
    assert seen == [NamedSharding(one, P())]


def test_pictures_of_traced_arrays(split, capsys):
    def f(x):
        ft.debug.visualize_array_sharding(x @ x.T)
        return x

    ft.jit(f)(split)
    assert "| CPU 2,3 |" in capsys.readouterr().out
    ft.jit(ft.vmap(f))(split[None])
    assert capsys.readouterr().out.startswith("(1, 8, 8) on NamedSharding(")
    with pytest.raises(ft.errors.ShapeError, match="0 dimensions"):
        ft.jit(lambda x: ft.debug.visualize_array_sharding(x.sum()))(split)


def test_errors(split):
    with pytest.raises(ft.errors.ArgumentError, match="a function as callback"):
        ft.debug.inspect_array_sharding(split, callback=3)
    with pytest.raises(ft.errors.DtypeError, match="is not an array"):
        ft.debug.inspect_array_sharding("x", callback=print)
    wrong = lambda x: ft.debug.inspect_array_sharding(x, callback=lambda where: where.no_such_attribute)
    with pytest.raises(ft.errors.CompileError, match="no_such_attribute"):
        ft.jit(wrong)(split)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        ft.jit(wrong)(X)


PROGRAM = """
import functorch_like as ft
from functorch_like.sharding import NamedSharding, PartitionSpec as P

def f(x):
    ft.debug.inspect_array_sharding(x, callback=lambda where: print(where.spec))
    return x * 2

where = NamedSharding(ft.make_mesh((8,), ("a",)), P("a"))
ft.jit(f)(ft.device_put(ft.numpy.arange(8), where))
"""


def test_programs_on_disk_report_again():
    run = lambda: subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert [run(), run()] == ["P('a')\n"] * 2
