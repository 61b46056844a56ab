"""A mesh of one device: programs written for many devices run as they do without a mesh, ordered effects included."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.arange(8, dtype=np.float32)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((1, 1), ("x", "y"), devices=ft.devices()[2:3])


@pytest.fixture(params=[False, True], ids=["unordered", "ordered"])
def ordered(request):
    return request.param


class Heard(list):
    """Record of the values that a callback received."""

    def note(self, value):
        self.append(np.asarray(value).tolist())
        return np.asarray(value)


def put(mesh):
    return ft.device_put(X, NamedSharding(mesh, P("x")))


def twice(heard, ordered):
    def f(x):
        kind = ft.ShapeDtypeStruct(x.shape, x.dtype)
        return ft.io_callback(heard.note, kind, x, ordered=ordered) + ft.io_callback(
            heard.note, kind, x + 1, ordered=ordered
        )

    return f


def test_callbacks_of_compiled_functions(mesh, ordered):
    heard = Heard()
    f = twice(heard, ordered)
    place = NamedSharding(mesh, P("x"))
    calls = [
        lambda: ft.jit(f)(put(mesh)),
        lambda: ft.jit(f, in_shardings=place, out_shardings=NamedSharding(mesh, P()))(X),
        lambda: ft.jit(f).lower(put(mesh)).compile()(put(mesh)),
        lambda: f(put(mesh)),
    ]
    for call in calls:
        heard.clear()
        out = call()
        ft.effects_barrier()
        assert np.array_equal(np.asarray(out), 2 * X + 1)
        assert out.devices() == {ft.devices()[2]}
        assert sorted(heard) == [X.tolist(), (X + 1).tolist()] and (not ordered or heard == sorted(heard))


def test_prints_in_loops_and_derivatives(mesh, ordered, capfd):
    def loss(x):
        def body(i, c):
            ft.debug.print("step {}", i, ordered=ordered)
            return c + fnp.sin(x).sum()

        return lax.fori_loop(0, 3, body, 0.0)

    out = ft.jit(ft.grad(loss))(put(mesh))
    ft.effects_barrier()
    np.testing.assert_allclose(np.asarray(out), 3 * np.cos(X), rtol=1e-5)
    assert capfd.readouterr().out.split("\n")[:3] == ["step 0", "step 1", "step 2"]


@pytest.mark.parametrize("axes", [("x", "y"), ("x",)], ids=["manual", "partly manual"])
def test_effects_inside_of_shard_map(mesh, ordered, axes):
    heard = Heard()

    def f(x):
        total = lax.psum(x.sum(), "x") + lax.axis_index("x")
        ft.debug.callback(heard.note, total, ordered=ordered)

        def body(c, row):
            ft.debug.callback(heard.note, row, ordered=ordered)
            return c + row, lax.pmax(row, "x")

        return lax.scan(body, total, x)[1]

    mapped = ft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names=set(axes))
    for call in (ft.jit(mapped), mapped):
        heard.clear()
        out = call(put(mesh))
        ft.effects_barrier()
        assert np.array_equal(np.asarray(out), X)
        assert sorted(heard) == sorted([*X.tolist(), X.sum()])
        assert not ordered or heard == [X.sum(), *X.tolist()]


def test_every_collective(mesh):
    """Along an axis of one device, collectives equal those under vmap with one element."""

    def f(x):
        gathered = lax.all_gather(x, "x", tiled=True) + lax.psum_scatter(x, "x", tiled=True)
        moved = lax.all_to_all(x, "x", 0, 0, tiled=True) + lax.ppermute(x, "x", [(0, 0)])
        folded = lax.psum(x, "x") * lax.pmin(x, "x") + lax.pmean(x, "x")
        return gathered + moved + folded + lax.axis_index("x") + lax.axis_size("x")

    mapped = ft.jit(ft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))(put(mesh))
    expected = ft.vmap(f, axis_name="x")(X[None])[0]
    np.testing.assert_array_equal(np.asarray(mapped), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(mapped), 4 * X + X * X + X + 1)


def test_one_map_inside_of_another(mesh):
    heard = Heard()

    def inner(x):
        ft.debug.callback(heard.note, x.sum(), ordered=True)
        return lax.psum(x, "y") + lax.psum(x, "x")

    def outer(x):
        return ft.shard_map(inner, mesh=mesh, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})(x)

    f = ft.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    out, vjp = ft.vjp(ft.jit(f), put(mesh))
    ft.effects_barrier()
    assert np.array_equal(np.asarray(out), 2 * X) and heard == [X.sum()]
    assert np.array_equal(np.asarray(vjp(fnp.ones(8, "float32"))[0]), np.full(8, 2.0))


def test_pmap_over_one_device(ordered):
    heard = Heard()

    def f(x):
        ft.debug.callback(heard.note, x, ordered=ordered)
        return lax.psum(x, "i")

    assert ft.pmap(f, axis_name="i")(X[:1]).tolist() == [0.0]
    ft.effects_barrier()
    assert heard == [0.0]


def test_pmap_donates_its_first_argument():
    for donated in (0, (0,)):
        x = fnp.ones((1, 3)) + 1
        assert ft.pmap(lambda x: x * 2, donate_argnums=donated)(x).tolist() == [[4.0] * 3]
        assert x.is_deleted()


def test_several_devices_have_no_order():
    line = ft.make_mesh((8,), ("x",))
    f = ft.shard_map(lambda x: ft.debug.print("{}", x, ordered=True), mesh=line, in_specs=P("x"), out_specs=P())
    with pytest.raises(ft.errors.UnsupportedError, match="ordered effects have no order among devices"):
        ft.jit(f)(X)


@pytest.mark.parametrize(("in_axes", "shape"), [(3, (1, 2, 1)), (-4, (1, 2, 1)), (0, ())])
def test_pmap_over_an_axis_that_is_not_there(in_axes, shape):
    with pytest.raises(ft.errors.ShapeError, match=rf"axis {in_axes} .* has {len(shape)} axes"):
        ft.pmap(lambda x: x, in_axes=in_axes)(fnp.ones(shape))
    assert ft.pmap(lambda x: x + 1, in_axes=-1)(fnp.ones((2, 1))).shape == (1, 2)


@pytest.mark.parametrize("name", ["static_broadcasted_argnums", "donate_argnums"])
def test_pmap_counts_positions_from_the_front(name):
    with pytest.raises(errors.ArgumentError, match=rf"{name}=\(-1,\) of pmap\(<lambda>\) counts from the end"):
        ft.pmap(lambda x, n: x * n, **{name: -1})
