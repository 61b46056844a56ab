"""Exported programs for several devices."""

from pathlib import Path

import numpy as np
import pytest
from support.exported_files import changed

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, export, lax
from functorch_like.exporting.command import summary
from functorch_like.sharding import AbstractMesh, Mesh, NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.cos(X).T.copy()


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("a", "b"))


@pytest.fixture(scope="module")
def split(mesh):
    return lambda *entries: NamedSharding(mesh, P(*entries))


@pytest.fixture(scope="module")
def made(mesh, split):
    total = lambda v: lax.psum(v, "a")

    def layer(x, w):
        y = lax.with_sharding_constraint(fnp.sin(x) @ w, split("b"))
        return {"total": ft.shard_map(total, mesh=mesh, in_specs=P("a"), out_specs=P())(y), "rows": (2 * x).sum(1)}

    jitted = ft.jit(layer, out_shardings={"total": None, "rows": split("b")})
    return export.export(jitted)(ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=split("a", "b")), W)


@pytest.fixture(params=[False, True], ids=["exported", "loaded"])
def program(made, request):
    return export.deserialize(made.serialize(vjp_order=1)) if request.param else made


def check(results, x=X):
    np.testing.assert_allclose(results["total"], (np.sin(x) @ W).reshape(4, 2, 8).sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results["rows"], 2 * x.sum(1), rtol=1e-5, atol=1e-6)


def test_what_is_known_of_the_devices(program, mesh, split):
    assert program.nr_devices == 8 and program.mesh == mesh.abstract_mesh
    assert program.in_shardings(mesh) == (split("a", "b"), None)
    assert program.out_shardings(mesh) == (split("b"), None)
    assert program.in_shardings()[0].spec == P("a", "b")
    assert repr(program) == "<exported layer(f32[8,8], f32[8,8]) for cpu on 8 devices>"
    lines = list(summary(program, "model.ft"))
    assert "  devices: 8, a 4, b 2" in lines and "    [0][0]  f32[8,8]  256 bytes  P('a', 'b')" in lines
    with pytest.raises(errors.ArgumentError, match="was exported for AbstractMesh"):
        program.in_shardings(ft.make_mesh((8,), ("a",)))
    alone = export.export(ft.jit(fnp.sin))(X)
    assert alone.nr_devices == 1 and alone.mesh is None and alone.in_shardings(mesh) == (None,)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_calls(program, mesh, split, wrap):
    results = wrap(program.call)(ft.device_put(X, program.in_shardings(mesh)[0]), W)
    check(results)
    assert results["rows"].sharding == split("b")


def test_other_meshes_of_as_many_devices(program):
    turned = Mesh(np.array(ft.devices())[::-1].reshape(4, 2), ("a", "b"))
    results = program.call(ft.device_put(X, program.in_shardings(turned)[0]), W)
    check(results)
    assert results["rows"].sharding == NamedSharding(turned, P("b"))
    line = ft.make_mesh((8,), ("other",))
    check(program.call(ft.device_put(X, NamedSharding(line, P("other"))), W))
    inside = ft.jit(lambda x, w: program.call(lax.with_sharding_constraint(x, NamedSharding(line, P())) + 0, w))
    check(inside(X, W))


def test_meshes_of_a_program_keep_their_meaning_beside_others(split):
    """The names of meshes in the two programs are the other way round."""
    line = ft.make_mesh((8,), ("a",))

    def f(x):
        y = lax.with_sharding_constraint(x, split("a", "b"))
        total = ft.shard_map(lambda v: lax.psum(v, "a"), mesh=line, in_specs=P("a"), out_specs=P())
        return y * total(fnp.sin(x))

    made = export.export(ft.jit(f))(ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=split("a")))
    text = made.mlir_module()
    assert text.count("sdy.mesh @") == 2
    inside = ft.jit(lambda x: made.call(lax.with_sharding_constraint(x, NamedSharding(line, P(None, "a"))) + 0))
    placed = ft.device_put(X, NamedSharding(line, P("a")))
    np.testing.assert_allclose(inside(placed), X * np.sin(X).sum(0), rtol=1e-5, atol=1e-6)
    assert "all-reduce" in inside.lower(placed).compile().as_text()


def test_gradients(program, mesh):
    loss = lambda x: (program.call(x, W)["total"] ** 2).sum() + program.call(x, W)["rows"].sum()

    def in_numpy(x):
        total = (np.sin(x) @ np.float64(W)).reshape(4, 2, 8).sum(0)
        return (total**2).sum() + 2 * x.sum()

    x = np.float64(X)
    steps = [1e-6 * np.eye(1, 64, k).reshape(8, 8) for k in range(64)]
    want = np.reshape([(in_numpy(x + d) - in_numpy(x - d)) / 2e-6 for d in steps], (8, 8))
    placed = ft.device_put(X, program.in_shardings(mesh)[0])
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(placed), want, rtol=1e-4, atol=1e-5)
    assert program.vjp().nr_devices == 8


def test_nothing_is_gathered_for_a_call(mesh, split):
    x = ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=split("a", "b"))
    twice = export.export(ft.jit(lambda x: fnp.tanh(x) * 2))(x)
    text = ft.jit(lambda x: twice.call(twice.call(x) + 1)).lower(x).compile().as_text()
    assert "all-gather" not in text and "all-to-all" not in text


def test_calls_on_other_numbers_of_devices_are_refused(program):
    with pytest.raises(errors.DeviceError, match="the program runs on 1 device"):
        program.call(X, W)
    few = ft.make_mesh((4,), ("a",))
    with pytest.raises(errors.DeviceError, match="the program runs on 4 devices"):
        program.call(ft.device_put(X, NamedSharding(few, P("a"))), W)
    parts = ft.shard_map(lambda x, w: program.call(x, w)["rows"], mesh=few, in_specs=P(), out_specs=P())
    with pytest.raises(errors.UnsupportedError, match="in a function of their parts"):
        parts(X, W)


def test_symbolic_sizes_are_for_one_device(split):
    f = ft.jit(lambda x: x * 2, in_shardings=split("a"))
    with pytest.raises(errors.UnsupportedError, match="programs on one device"):
        export.export(f)(ft.ShapeDtypeStruct(export.symbolic_shape("4*n, 3"), "float32"))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"axes": [["a", 0], ["b", 2]]}, "its mesh is"),
        ({"axes": [["a", 4], ["a", 2]]}, "its mesh is"),
        ({"axes": [["a"]]}, "not a list of lists of 2"),
        ({"ins": [None]}, "not a list of 2 specs"),
        ({"ins": [["c"], None]}, r"has the spec \['c'\]"),
        ({"outs": [[3], None]}, r"has the spec \[3\]"),
        ({"outs": 7}, "not a list of 2 specs"),
    ],
)
def test_damaged_files(made, fields, text):
    with pytest.raises(errors.ArgumentError, match=text):
        export.deserialize(changed(made.serialize(), **fields))


def test_a_file_that_the_first_version_wrote(mesh):
    stored = Path(__file__).parent / "exported/format_2.ft"
    program = export.deserialize(stored.read_bytes())
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    results = program.call(ft.device_put(x, program.in_shardings(mesh)[0]))
    np.testing.assert_allclose(results, np.sin(x).reshape(4, 2, 8).sum(0), atol=1e-6)


def test_shardings_on_an_abstract_mesh(mesh, split):
    """The machine that exports a program need not have its devices."""
    abstract = AbstractMesh((4, 2), ("a", "b"))
    x = ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(abstract, P("a")))

    def f(x):
        total = ft.shard_map(lambda v: lax.psum(v, "a"), mesh=abstract, in_specs=P("a"), out_specs=P())
        return total(lax.with_sharding_constraint(fnp.sin(x), NamedSharding(abstract, P(None, "b"))))

    made = export.export(ft.jit(f))(x)
    assert made.in_shardings(mesh) == (split("a"),)
    want = np.sin(X).reshape(4, 2, 8).sum(0)
    np.testing.assert_allclose(made.call(ft.device_put(X, split("a"))), want, rtol=1e-5, atol=1e-6)
    slope = ft.grad(lambda x: made.call(x).sum())(ft.device_put(X, split("a")))
    np.testing.assert_allclose(slope, np.cos(X), rtol=1e-5)
    with ft.use_mesh(mesh):
        assert export.export(ft.jit(lambda x: x * 2))(x).in_shardings(mesh) == (split("a"),)
    many = AbstractMesh((64, 16), ("a", "b"))
    large = ft.ShapeDtypeStruct((1024, 1024), "float32", sharding=NamedSharding(many, P("a", "b")))
    stored = export.export(ft.jit(lambda x: x @ x.T))(large).serialize()
    assert export.deserialize(stored).nr_devices == 1024
