"""Meshes, shardings, and arrays on several devices, against NumPy."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P

X = np.arange(128, dtype=np.float32).reshape(8, 16)
SPECS = [P(), P("x"), P("y"), P(None, "x"), P(("x", "y")), P(("y", "x")), P("x", "y"), P("y", "x"), P(None, ("y", "x"))]


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


def put(mesh, spec, x=X):
    return ft.device_put(x, NamedSharding(mesh, spec))


# ------------------------------------------------------------------------------------------------------------- meshes
def test_equal_meshes_are_one_object(mesh):
    again = Mesh(np.array(ft.devices()).reshape(4, 2), ("x", "y"))
    assert again is mesh
    assert pickle.loads(pickle.dumps(mesh)) is mesh
    assert Mesh([ft.devices()[:4], ft.devices()[4:]], ("x", "y")).devices.shape == (2, 4)
    assert ft.make_mesh((-1, 2), ("x", "y")) is mesh


def test_a_mesh_describes_itself(mesh):
    assert (mesh.size, mesh.axis_names, dict(mesh.shape)) == (8, ("x", "y"), {"x": 4, "y": 2})
    assert mesh.device_ids.tolist() == np.arange(8).reshape(4, 2).tolist()
    assert mesh.abstract_mesh == AbstractMesh((4, 2), ("x", "y"))
    assert repr(mesh) == "Mesh('x': 4, 'y': 2)"
    assert not mesh.is_multi_process


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ft.make_mesh((3, 3), ("x", "y")), "takes 9 devices, and there are 8"),
        (lambda: ft.make_mesh((0,), ("x",)), "use positive sizes"),
        (lambda: ft.make_mesh((4, 2), ("x",)), "2 axes and 1 names"),
        (lambda: ft.make_mesh((4, 2), ("x", "x")), "one name"),
        (lambda: ft.make_mesh((8,), (1,)), "use strings"),
        (lambda: Mesh([ft.devices()[0]] * 2, ("x",)), "twice"),
        (lambda: Mesh(["cpu:0"], ("x",)), "is not a device"),
        (lambda: Mesh([], ("x",)), "no devices"),
        (lambda: Mesh([ft.devices()[:4], ft.devices()[4:7]], ("x", "y")), "rows of one length"),
        (lambda: PartitionSpec("x", ("y", "x")), "names the axis 'x' twice"),
        (lambda: PartitionSpec(0), "use names of mesh axes"),
        (lambda: ft.set_mesh("x"), "set_mesh takes a Mesh"),
        (lambda: ft.use_mesh(3), "use_mesh takes a Mesh"),
    ],
)
def test_what_is_no_mesh_or_spec_is_refused(make, text):
    with pytest.raises(ft.FtError, match=text):
        make()


def test_the_error_for_too_few_devices_says_how_to_get_more():
    with pytest.raises(ft.FtError, match=r"FT_CPU_DEVICES=64 before Python starts"):
        ft.make_mesh((64,), ("x",))


def test_a_sharding_names_axes_that_its_mesh_has(mesh):
    with pytest.raises(ft.FtError, match=r"names the axis 'xx'.*did you mean 'x'"):
        NamedSharding(mesh, P("xx"))
    with pytest.raises(ft.FtError, match="takes a PartitionSpec"):
        NamedSharding(mesh, ("x",))
    with pytest.raises(ft.FtError, match="names the axis 'z'"):
        NamedSharding(AbstractMesh((2,), ("x",)), P("z"))


def test_specs_that_mean_the_same_are_equal(mesh):
    same = [P("x"), P(("x",)), P("x", None), P(["x"], None)]
    assert len(set(same)) == 1
    assert len({NamedSharding(mesh, spec) for spec in same}) == 1
    assert P("x") != P(None, "x") and P(("x", "y")) != P(("y", "x"))
    assert P("x", None) == ("x", None)
    assert repr(P("x", None, ("y",))) == "P('x', None, ('y',))"
    assert pickle.loads(pickle.dumps(P("x", P.UNCONSTRAINED)))[1] is P.UNCONSTRAINED


def test_the_mesh_of_a_block_gives_specs_a_meaning(mesh):
    with pytest.raises(ft.FtError, match="no mesh was chosen"):
        ft.device_put(X, P("x"))
    with ft.use_mesh(mesh) as chosen:
        assert chosen is mesh and ft.sharding.get_mesh() is mesh
        assert ft.device_put(X, P("x")).sharding == NamedSharding(mesh, P("x"))
        with mesh:
            pass
        assert ft.sharding.get_mesh() is mesh
    assert ft.sharding.get_mesh() is None
    with ft.set_mesh(mesh):
        assert ft.sharding.get_mesh() is mesh
    assert ft.sharding.get_mesh() is None


# ------------------------------------------------------------------------------------------------------------- arrays
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_parts_are_where_the_spec_says(mesh, spec):
    x = put(mesh, spec)
    assert np.array_equal(np.asarray(x), X)
    assert x.sharding == NamedSharding(mesh, spec)
    sizes = dict(mesh.shape)
    splits = [int(np.prod([sizes[a] for a in ((e,) if isinstance(e, str) else e or ())])) for e in (*spec, None, None)]
    assert x.sharding.shard_shape(X.shape) == (8 // splits[0], 16 // splits[1])
    assert len(x.addressable_shards) == len(x.global_shards) == 8
    seen = np.zeros(X.shape, int)
    for shard in x.addressable_shards:
        assert np.array_equal(np.asarray(shard.data), X[shard.index])
        assert shard.data.devices() == {shard.device}
        assert shard.index == x.sharding.devices_indices_map(X.shape)[shard.device]
        seen[shard.index] += shard.replica_id == 0
    assert (seen == 1).all()
    assert x.is_fully_replicated == (splits[:2] == [1, 1])
    assert x.is_fully_addressable and x.devices() == set(ft.devices())


def test_the_first_name_of_a_dimension_varies_slowest(mesh):
    index = NamedSharding(mesh, P(("y", "x"))).devices_indices_map((8,))
    for i, j in itertools.product(range(4), range(2)):
        assert index[mesh.devices[i, j]] == (slice(4 * j + i, 4 * j + i + 1),)


def test_arrays_of_one_device_say_where_they_are():
    x = ft.device_put(X, ft.devices()[2])
    assert isinstance(x.sharding, SingleDeviceSharding) and x.sharding.device_set == {ft.devices()[2]}
    assert x.is_fully_replicated and x.is_fully_addressable
    (shard,) = x.addressable_shards
    assert np.array_equal(X[shard.index], np.asarray(shard.data))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_goes_there_and_back(mesh, dtype):
    whole = np.asarray(fnp.asarray(X % 3).astype(dtype))
    for spec in (P("x", "y"), P("y"), P()):
        x = put(mesh, spec, whole)
        assert x.dtype == whole.dtype
        assert np.array_equal(np.asarray(x), whole)


def test_numpy_memory_may_be_written_to_afterwards(mesh):
    mine = X.copy()
    for spec in SPECS:
        x = put(mesh, spec, mine)
        mine += 1
        assert np.array_equal(np.asarray(x), mine - 1)


def test_weak_types_stay(mesh):
    assert ft.device_put(fnp.asarray(2.0), NamedSharding(mesh, P())).weak_type == fnp.asarray(2.0).weak_type
    x = put(mesh, P("x"), np.arange(8, dtype="int8"))
    assert (x * 2).dtype == "int8" and (x + 1.5).dtype == "float32"


def test_python_reads_numbers_and_text(mesh):
    x = put(mesh, P("x"))
    assert float(x.sum()) == X.sum() and int(x[3, 2]) == X[3, 2] and bool((x >= 0).all())
    assert repr(x[:2, :2]) == repr(fnp.asarray(X[:2, :2])) and str(x) == str(fnp.asarray(X))
    assert x.tolist() == X.tolist() and x.sum().item() == X.sum()
    assert [row.sum().item() for row in x] == X.sum(1).tolist()
    restored = pickle.loads(pickle.dumps(x))
    assert np.array_equal(np.asarray(restored), X)
    assert copy.deepcopy(x).sharding == x.sharding
    assert ft.device_get({"x": x})["x"].tolist() == X.tolist()


@pytest.mark.parametrize(("a", "b"), [(a, b) for a in SPECS[::2] for b in SPECS[1::2]], ids=repr)
def test_arrays_move_between_shardings(mesh, a, b):
    moved = ft.device_put(put(mesh, a), NamedSharding(mesh, b))
    assert moved.sharding == NamedSharding(mesh, b)
    assert np.array_equal(np.asarray(moved), X)


def test_arrays_move_between_meshes_and_devices(mesh):
    x = put(mesh, P("x", "y"))
    turned = Mesh(mesh.devices[::-1], ("x", "y"))
    half = ft.make_mesh((2, 2), ("a", "b"))
    flat = ft.make_mesh((8,), ("d",))
    for other, spec in [(turned, P("x", "y")), (half, P("a")), (half, P("b", "a")), (flat, P("d")), (flat, P())]:
        moved = ft.device_put(x, NamedSharding(other, spec))
        assert moved.sharding == NamedSharding(other, spec)
        assert np.array_equal(np.asarray(moved), X)
        assert np.array_equal(np.asarray(ft.device_put(moved, x.sharding)), X)
    alone = ft.device_put(x, ft.devices()[5])
    assert alone.devices() == {ft.devices()[5]} and np.array_equal(np.asarray(alone), X)
    assert np.array_equal(np.asarray(ft.device_put(alone, x.sharding)), X)
    assert ft.device_put(x, x.sharding) is x


def test_a_prefix_of_places_is_spread_over_the_leaves(mesh):
    tree = {"w": (X, X), "b": X[0]}
    places = {"w": NamedSharding(mesh, P("x")), "b": None}
    out = ft.device_put(tree, places)
    assert [leaf.sharding.spec for leaf in out["w"]] == [P("x"), P("x")]
    assert len(out["b"].devices()) == 1


def test_memory_kinds(mesh):
    x = put(mesh, P("x", "y"))
    host = x.sharding.with_memory_kind("pinned_host")
    there = ft.device_put(x, host)
    assert there.sharding.memory_kind == "pinned_host" and np.array_equal(np.asarray(there), X)
    back = ft.device_put(there, NamedSharding(mesh, P("y")))
    assert back.sharding.memory_kind == "device" and np.array_equal(np.asarray(back), X)
    assert ft.device_put(X, host).sharding == host


# --------------------------------------------------------------------------------------------------------- assembling
def test_a_callback_makes_each_part_once(mesh):
    asked = []

    def part(index):
        asked.append(index)
        return X[index]

    x = ft.make_array_from_callback(X.shape, NamedSharding(mesh, P("x")), part)
    assert np.array_equal(np.asarray(x), X) and x.sharding.spec == P("x")
    assert len(asked) == 4
    wide = ft.make_array_from_callback((8,), NamedSharding(mesh, P("x")), lambda i: np.zeros(8)[i], dtype="float64")
    assert wide.dtype == "float64"


def test_arrays_of_one_device_become_one(mesh):
    where = NamedSharding(mesh, P("x", "y"))
    parts = [ft.device_put(X[index], device) for device, index in where.devices_indices_map(X.shape).items()]
    x = ft.make_array_from_single_device_arrays(X.shape, where, parts[::-1])
    assert np.array_equal(np.asarray(x), X)
    assert float((x + 1).sum()) == (X + 1).sum()


def test_an_array_of_one_device_is_made_of_one_part():
    where = SingleDeviceSharding(ft.devices()[1])
    part = ft.device_put(X, ft.devices()[1])
    x = ft.make_array_from_single_device_arrays(X.shape, where, [part])
    assert x.sharding == where and np.array_equal(np.asarray(ft.jit(lambda x: x + 1)(x)), X + 1)
    for parts in ([], [part, part], [ft.device_put(X, ft.devices()[0])]):
        with pytest.raises(ft.FtError, match=r"for the device of SingleDeviceSharding\(cpu:1\)"):
            ft.make_array_from_single_device_arrays(X.shape, where, parts, dtype=X.dtype)


def test_wrong_parts_are_refused(mesh):
    where = NamedSharding(mesh, P("x"))
    with pytest.raises(ft.FtError, match=r"the part \[0:2, :\] is float32\[8, 16\], expected float32\[2, 16\]"):
        ft.make_array_from_callback(X.shape, where, lambda index: X)
    with pytest.raises(ft.FtError, match="does not divide by 4"):
        ft.make_array_from_callback((6,), where, lambda index: X[0][index])
    single = SingleDeviceSharding(ft.devices()[1])
    for part, shown in ((X[:2], r"float32\[2, 16\]"), (X.astype("int32"), r"int32\[8, 16\]")):
        with pytest.raises(ft.FtError, match=rf"the part \[:, :\] is {shown}, expected float32\[8, 16\]"):
            ft.make_array_from_callback(X.shape, single, lambda index, part=part: part, dtype="float32")
    parts = [ft.device_put(X[:2], device) for device in ft.devices()]
    with pytest.raises(ft.FtError, match="7 in all"):
        ft.make_array_from_single_device_arrays(X.shape, where, parts[:7])
    with pytest.raises(ft.FtError, match=r"a part is f32\[2,16\], expected f32\[1,16\]"):
        ft.make_array_from_single_device_arrays((4, 16), where, parts)
    with pytest.raises(ft.FtError, match="one device each"):
        ft.make_array_from_single_device_arrays(X.shape, where, [X[:2]] * 8)


# --------------------------------------------------------------------------------------------------- eager operations
EAGER = {
    "add": lambda x: x + 1.5,
    "add_numpy": lambda x: x + X,
    "radd": lambda x: 2 - x,
    "matmul": lambda x: x @ x.T,
    "sum": lambda x: x.sum(0),
    "reshape": lambda x: x.reshape(2, 4, 16),
    "ravel": lambda x: x.ravel(),
    "index": lambda x: x[2],
    "slice": lambda x: x[1:7:2, 3:],
    "transpose": lambda x: x.T,
    "sort": lambda x: -np.sort(-x, 0) if isinstance(x, np.ndarray) else -fnp.sort(-x, 0),
    "cumsum": lambda x: x.cumsum(0),
    "where": lambda x: (np if isinstance(x, np.ndarray) else fnp).where(x > 30, x, -x),
    "concatenate": lambda x: (np if isinstance(x, np.ndarray) else fnp).concatenate([x, x[:3]]),
    "mean": lambda x: (x - x.mean()) / x.std(),
    "argmax": lambda x: x.argmax(1),
    "mask": lambda x: x[:, np.arange(16) % 3 == 0],
}


@pytest.mark.parametrize("name", EAGER)
@pytest.mark.parametrize("spec", [P("x", "y"), P(None, ("x", "y")), P()], ids=repr)
def test_eager_operations(mesh, name, spec):
    out = EAGER[name](put(mesh, spec))
    expected = EAGER[name](X)
    assert isinstance(out.sharding, NamedSharding) and out.sharding.mesh is mesh
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(out + 0), expected, rtol=1e-5, atol=1e-5)  # the result is a usable operand


def test_meshes_of_the_same_devices_meet(mesh):
    flat = ft.make_mesh((8,), ("d",))
    total = put(mesh, P(("x", "y"))) + put(flat, P("d"))
    assert np.array_equal(np.asarray(total), X + X)


def test_a_mesh_of_one_device():
    one = ft.make_mesh((1,), ("x",))
    x = ft.device_put(X, NamedSharding(one, P("x")))
    assert np.array_equal(np.asarray(x * 2), X * 2)
    assert float(ft.grad(lambda a: (a * a).sum())(x).sum()) == 2 * X.sum()


def test_derivatives_and_vmap_outside_of_jit(mesh):
    x = put(mesh, P("x", "y"))
    np.testing.assert_allclose(np.asarray(ft.grad(lambda a: fnp.sum(fnp.sin(a) ** 2))(x)), np.sin(2 * X), atol=2e-4)
    assert np.array_equal(np.asarray(ft.vmap(lambda r: r * 2)(x)), X * 2)
    out, vjp = ft.vjp(lambda a: a * a, x)
    assert np.array_equal(np.asarray(vjp(out)[0]), 2 * X * X * X)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda mesh: put(mesh, P("x"), X[:6]), r"dimension 0 of f32\[6,16\] has size 6, which does not divide by 4"),
        (lambda mesh: put(mesh, P("x", "y", None)), "has 3 entries"),
        (lambda mesh: put(mesh, P(P.UNCONSTRAINED)), "leaves a dimension to the compiler"),
        (lambda mesh: ft.device_put(X, NamedSharding(mesh.abstract_mesh, P("x"))), "has no devices"),
        (lambda mesh: ft.device_put(X, 3), "the place of device_put is 3"),
        (lambda mesh: put(mesh, P("x")) + ft.device_put(X, ft.devices()[1]), "is bound to SingleDeviceSharding"),
        (lambda mesh: ft.device_put(X, ft.devices()[1]) + put(mesh, P("x")), "is bound to NamedSharding"),
        (lambda mesh: put(mesh, P("x")) + put(ft.make_mesh((4,), ("d",)), P("d")), "another, f32"),
        (lambda mesh: put(mesh, P("x")) + put(Mesh(mesh.devices[::-1], ("x", "y")), P("x")), "another, f32"),
        (lambda mesh: lax.with_sharding_constraint(X, P("x")), "no mesh was chosen"),
    ],
)
def test_what_does_not_fit_is_refused(mesh, use, text):
    with pytest.raises(ft.FtError, match=text):
        use(mesh)


def test_deleted_arrays_are_refused(mesh):
    x = put(mesh, P("x"))
    x.delete()
    for use in (np.asarray, lambda x: x + 1, lambda x: x.addressable_shards, lambda x: ft.device_put(x, P())):
        with pytest.raises(ft.FtError, match=r"donated|deleted|no mesh"):
            use(x)


def test_live_arrays_are_found(mesh):
    x = put(mesh, P("x"))
    assert any(x is y for y in ft.live_arrays())


def test_deleted_parts_are_named(mesh):
    parts = [ft.device_put(X[:2], device) for device in ft.devices()]
    parts[0].delete()
    for where, given in ((NamedSharding(mesh, P("x")), parts), (SingleDeviceSharding(ft.devices()[0]), parts[:1])):
        shape = X.shape if len(given) > 1 else (2, 16)
        with pytest.raises(ft.FtError, match="was donated to a computation or deleted"):
            ft.make_array_from_single_device_arrays(shape, where, given)
    with pytest.raises(ft.FtError, match="was donated to a computation or deleted"):
        parts[0].copy_to_host_async()


def test_arrays_like_a_split_one_are_split_alike(mesh):
    x = ft.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("x", "y")))
    made = [fnp.zeros_like(x), fnp.ones_like(x, dtype="int32"), fnp.empty_like(x), fnp.full_like(x, fnp.arange(4))]
    for like, value in zip([*made, lax.full_like(x, 2)], [0, 1, 0, np.arange(4), 2], strict=True):
        assert like.sharding == x.sharding
        np.testing.assert_array_equal(np.asarray(like), np.broadcast_to(value, x.shape))
    assert fnp.zeros_like(x, shape=(3,)).sharding.num_devices == 1
    one = NamedSharding(mesh, P())
    assert fnp.zeros_like(x, device=one).sharding == one
    assert float(ft.jit(lambda v: (v + fnp.zeros_like(x)).sum())(np.asarray(x))) == np.asarray(x).sum()


def test_dlpack_of_copies(mesh):
    x = ft.device_put(np.arange(8.0), NamedSharding(mesh, P()))
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(8.0))
