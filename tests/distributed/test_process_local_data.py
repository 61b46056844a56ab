"""`make_array_from_process_local_data` over the devices of several processes."""

from support.processes import start

PARTS = """
    from functorch_like.sharding import NamedSharding, PartitionSpec as P
    initialize()
    multihost = ft.multihost_utils
    mesh = ft.make_mesh((2, 2), ("a", "b"))  # the processes differ along a
    x = np.arange(32.0).reshape(8, 4)
    own = slice(4 * RANK, 4 * RANK + 4)
    make = ft.make_array_from_process_local_data
    gathered = lambda array: multihost.process_allgather({"x": array}, tiled=True)["x"]

    def check(made, expected):
        assert made.shape == expected.shape
        for shard in made.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index])

    check(make(NamedSharding(mesh, P("a")), x[own]), x)
    check(make(NamedSharding(mesh, P("a", "b")), x[own], (8, 4)), x)
    check(make(NamedSharding(mesh, P(("a", "b"))), x[own]), x)
    check(make(NamedSharding(mesh, P("a")), x, (8, 4)), x)  # all of it, the same in both
    check(make(NamedSharding(mesh, P(None, "b")), x), x)
    # The parts of a process are not beside each other: rows 0:2 and 4:6, 2:4 and 6:8.
    rows = np.r_[0:2, 4:6] + 2 * RANK
    check(make(NamedSharding(mesh, P(("b", "a"))), x[rows]), x)
    # Processes that hold parts in common, and others.
    turned = ft.sharding.Mesh(mesh.devices.ravel()[[0, 1, 3, 2]], ("c",))
    check(make(NamedSharding(turned, P("c")), x[own]), x)
    try:
        make(NamedSharding(mesh, P("a")), x[:3])
        make(NamedSharding(mesh, P(("a", "b"))), x[:3])
        raise SystemExit("no error")
    except ft.errors.ShapeError as error:
        assert "has size 3, which does not divide by the 2 parts of this process" in str(error), error
    uneven = ft.sharding.Mesh(mesh.devices.ravel()[[0, 1, 2]], ("c",))
    try:
        make(NamedSharding(uneven, P("c")), x[:2])
        raise SystemExit("no error")
    except ft.errors.ShapeError as error:
        assert "give every process the whole dimension" in str(error), error
    check(make(NamedSharding(uneven, P("c")), x[:6], (6, 4)), x[:6])
"""


def test_parts_of_two_processes():
    ended = start(PARTS, range(2), 2, FT_CPU_DEVICES="2")
    assert [e.status for e in ended] == [0, 0], ended


ONE_ARRAY = """
    from functorch_like.sharding import Mesh, NamedSharding, PartitionSpec as P
    initialize(agreement_timeout_seconds=30)
    mesh = ft.make_mesh((2, 2), ("a", "b"))
    split, whole = NamedSharding(mesh, P("a")), NamedSharding(mesh, P())
    tree = {"w": np.arange(4.0), "n": 3, "half": fnp.ones((2, 2), "bfloat16"), "none": None}
    for _ in range(2):
        out = ft.device_put(tree, {"w": split, "n": whole, "half": split, "none": None})
    assert ft.device_put(out["w"], whole).tolist() == [0, 1, 2, 3] and out["half"].weak_type is False
    own = Mesh(ft.local_devices(), "a")
    assert ft.device_put(np.arange(2) + RANK, NamedSharding(own, P("a"))).tolist() == [RANK, RANK + 1]
    assert ft.device_put(np.arange(2) + RANK).tolist() == [RANK, RANK + 1]

    def refused(*parts, **options):
        try:
            ft.device_put(**options)
            raise SystemExit("no error")
        except ft.errors.DistributedError as error:
            assert all(part in str(error) for part in ("the values of device_put differ", *parts)), error

    refused("process 0: f64[4] with hash", "process 1: f64[4]", x=np.arange(4.0) + RANK, device=split)
    refused("process 0: f64[4], f64[4] with hash", x=[np.arange(4.0), np.full(4, 1.0 * RANK)], device=whole)
    refused("process 0: f32[4] with", "process 1: f32[8] with", x=fnp.ones(4 + 4 * RANK), device=split)
    refused("process 0: i32[] with", x=fnp.asarray(RANK, "int32"), device=whole)
"""


def test_each_process_puts_the_same_values_on_devices_of_all():
    ended = start(ONE_ARRAY, range(2), 2, FT_CPU_DEVICES="2")
    assert [e.status for e in ended] == [0, 0], ended


UNEQUAL = """
    from functorch_like.sharding import NamedSharding, PartitionSpec as P
    initialize(agreement_timeout_seconds=3)
    where = NamedSharding(ft.make_mesh((2,), ("a",)), P("a"))
    make = ft.make_array_from_process_local_data

    def refused(data, *parts):
        try:
            make(where, data)
        except ft.errors.DistributedError as error:
            assert all(part in str(error) for part in parts), str(error)
        else:
            raise SystemExit(f"no error: {parts}")

    assert make(where, np.ones((4, 3))).shape == (8, 3)
    refused(np.ones((2 + 2 * RANK, 2)), "process 0: f64[4,2]; process 1: f64[8,2]", "as many rows")
    refused(np.ones(2, "f4" if RANK else "f8"), "process 0: f64[4]; process 1: f32[4]")
    ft.multihost_utils.sync_global_devices("before the last batch")
    if RANK:  # the other one knows its shape, and does not come to compare it
        refused(np.ones((3, 3)), "process 0 did not come within 3 s")
    else:
        make(where, np.ones((4, 3)))
    ft.multihost_utils.sync_global_devices("end")
"""


def test_processes_with_different_amounts_of_data():
    ended = start(UNEQUAL, range(2), 2)
    assert [e.status for e in ended] == [0, 0], ended


BY_JAX_S_NAMES = """
    from functorch_like.jax_alias.modules.multihost_utils import (
        global_array_to_host_local_array as local, host_local_array_to_global_array as joined,
    )
    from functorch_like.sharding import PartitionSpec as P
    initialize()
    mesh = ft.make_mesh((2, 2), ("a", "b"))  # the processes differ along a
    x = np.arange(32.0).reshape(8, 4)
    own = x[4 * RANK : 4 * RANK + 4]
    for spec in (P("a"), P("a", "b"), P(("a", "b"))):
        made = joined({"x": own}, mesh, spec)["x"]
        assert made.shape == (8, 4) and made.sharding.spec == spec
        for shard in made.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), x[shard.index])
        back = local({"x": made}, mesh, spec)["x"]
        assert back.is_fully_addressable and back.sharding.mesh == mesh.local_mesh
        np.testing.assert_array_equal(np.asarray(back), own)
        assert joined(made, mesh, spec) is made and local(back, mesh, spec) is back
    whole = joined([x, x[:4]], mesh, [P(None, "b"), P()])
    assert whole[0].shape == (8, 4) and whole[1].shape == (4, 4)
    np.testing.assert_array_equal(np.asarray(local(whole[0], mesh, P(None, "b"))), x)
    np.testing.assert_array_equal(np.asarray(local(whole[0], mesh, P("a", "b"))), own)  # split in another way
"""


def test_host_local_arrays_of_two_processes():
    ended = start(BY_JAX_S_NAMES, range(2), 2, FT_CPU_DEVICES="2")
    assert [e.status for e in ended] == [0, 0], ended
