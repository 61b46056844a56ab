"""`ft.distributed.initialize` and `shutdown`, with real processes."""

import socket

import pytest
from support.processes import start

import functorch_like as ft
from functorch_like.errors import DistributedError


def test_processes_see_each_other():
    body = """
        assert not ft.distributed.is_initialized()
        initialize()
        assert ft.distributed.is_initialized()
        assert (ft.process_index(), ft.process_count()) == (RANK, COUNT)
        assert ft.device_count() == 2 * COUNT and ft.local_device_count() == 2
        assert all(d.process_index == RANK for d in ft.local_devices())
        assert len({d.id for d in ft.devices()}) == 2 * COUNT
        x = fnp.arange(4.0) + RANK  # what one process computes is its own
        assert x.device in ft.local_devices() and ft.jit(fnp.sum)(x).tolist() == 6 + 4 * RANK
        try:
            initialize()
        except ft.errors.DistributedError as error:
            assert "called before" in str(error)
        ft.distributed.shutdown()
        assert not ft.distributed.is_initialized()
        ft.distributed.shutdown()  # does nothing
        print("done", RANK)
    """
    ended = start(body, range(3), 3, FT_CPU_DEVICES="2")
    assert [e.status for e in ended] == [0, 0, 0], ended
    assert [e.output for e in ended] == [f"done {rank}\n" for rank in range(3)]


def test_each_process_knows_its_part_of_a_mesh():
    body = """
        from functorch_like.sharding import Mesh, NamedSharding, PartitionSpec as P
        initialize()
        mesh = ft.make_mesh((4, 2), ("a", "b"))
        local = mesh.local_mesh
        assert mesh.is_multi_process and not local.is_multi_process
        assert list(local.devices.flat) == mesh.local_devices == ft.local_devices()
        assert dict(local.shape) == {"a": 2, "b": 2} and local.local_mesh is local
        across = Mesh(mesh.devices.reshape(2, 4).T, ("a", "b")).local_mesh
        assert dict(across.shape) == {"a": 4, "b": 1} and list(across.devices.flat) == ft.local_devices()
        where = NamedSharding(mesh, P("a"))
        assert where.addressable_devices == set(ft.local_devices()) and where.num_devices == 8
        assert where.has_addressable_devices and not where.is_fully_addressable
        assert len(where.addressable_devices_indices_map((8,))) == 4
        refused = {"form no block": mesh.devices.ravel()[[0, 4, 1, 5]], "no device of": mesh.devices[2 - 2 * RANK]}
        for text, devices in refused.items():
            try:
                Mesh(devices, ("a",)).local_mesh
                raise SystemExit("no error")
            except ft.errors.DeviceError as error:
                assert text in str(error), error
        other = NamedSharding(Mesh(mesh.devices[2 - 2 * RANK], ("a",)), P("a"))
        assert not other.has_addressable_devices and other.addressable_devices == set()
    """
    ended = start(body, range(2), 2, FT_CPU_DEVICES="4")
    assert [e.status for e in ended] == [0, 0], ended


def test_what_belongs_to_other_processes_is_shown_and_refused():
    body = """
        from functorch_like.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
        initialize()
        mesh = ft.make_mesh((2,), ("a",))
        spread = ft.device_put(np.arange(4.0), NamedSharding(mesh, P("a")))
        assert repr(spread) == str(spread) == f"{spread}" == "Array(shape=(4,), dtype=float64)"
        assert str(ft.jit(lambda x: x.sum())(spread)) == "6.0"  # all of it is here
        (theirs,) = set(ft.devices()) - set(ft.local_devices())
        away = ft.device_put(np.arange(4.0), NamedSharding(Mesh([theirs], "a"), P()))
        assert repr(away) == "Array(shape=(4,), dtype=float64)"
        for place in (theirs, SingleDeviceSharding(theirs), NamedSharding(Mesh([theirs], "a"), P())):
            try:
                ft.device_put(ft.device_put(fnp.ones(2), ft.local_devices()[0]), place).tolist()
                raise SystemExit(f"no error: {place}")
            except ft.errors.DeviceError as error:
                told = f"belongs to process {1 - RANK}, and this is process {RANK}", "has parts in other processes"
                assert told[isinstance(place, NamedSharding)] in str(error), error
    """
    ended = start(body, range(2), 2, FT_CPU_DEVICES="1")
    assert [e.status for e in ended] == [0, 0], ended


def test_a_process_that_leaves_early_ends_well_though_others_fail():
    """It waits for the others while Python shuts down, when no new threads can start."""
    body = """
        initialize()
        if RANK == 0:
            from functorch_like.distributed.lifecycle import joined
            joined().member.exchange("k", b"", 60)
    """
    ended = start(body, [0, 1], 2)
    assert [e.status for e in ended] == [1, 0], ended
    assert "k waits for process 1, which left the program before" in ended[0].errors
    assert "Exception in thread" not in ended[1].errors


def test_a_process_that_never_comes_is_named():
    ended = start("initialize(initialization_timeout=3)", [0, 2], 3)
    assert [e.status for e in ended] == [1, 1]
    assert all("process 1 of 3 did not come to 127.0.0.1:" in e.errors for e in ended)


def test_an_error_of_one_ends_the_wait_of_the_others():
    body = """
        initialize()
        if RANK == 1:
            raise ValueError("bad luck")
        from functorch_like.distributed.lifecycle import joined
        joined().member.exchange("k", b"", 60)
    """
    ended = start(body, [0, 1], 2)
    assert [e.status for e in ended] == [1, 1]
    assert "process 1 of 2 is gone: it ended with ValueError: bad luck" in ended[0].errors


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (ended,) = start("initialize()", [0], 2, f"127.0.0.1:{taken.getsockname()[1]}")
    assert ended.status == 1
    assert "the coordinator cannot listen at 127.0.0.1:" in ended.errors and "choose another port" in ended.errors


def test_too_late():
    ft.devices()
    with pytest.raises(DistributedError, match="too late: this process has used its devices"):
        ft.distributed.initialize("127.0.0.1:1", 1, 0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "coordinator_address, num_processes, process_id: neither given nor found"),
        (("127.0.0.1:1", 2), "process_id: neither given nor found"),
        (("somewhere", 2, 0), "coordinator_address='somewhere' is not an address"),
        (("h:1", 2, 2), "process_id=2 does not fit num_processes=2"),
        (("h:1", 0, 0), "process_id=0 does not fit num_processes=0"),
    ],
)
def test_wrong_arguments(monkeypatch, arguments, text):
    from functorch_like.distributed import lifecycle

    for name in ("FT_PROCESS_ID", "FT_COORDINATOR_ADDRESS", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(lifecycle.xla, "started", lambda: False)
    with pytest.raises(DistributedError, match=text):
        ft.distributed.initialize(*arguments)
