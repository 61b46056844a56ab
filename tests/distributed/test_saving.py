"""ft.io in programs of several processes: each writes its parts, and any number of processes reads them."""

import numpy as np
import pytest
from support.processes import start

import functorch_like as ft

pytest.importorskip("safetensors", reason="the io extra is not installed")

HEAD = """
    from functorch_like.sharding import NamedSharding, PartitionSpec as P
    initialize()
    mesh = ft.make_mesh((ft.device_count(),), ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    FOLDER = os.environ["FOLDER"]
    X, Y = np.arange(32.0).reshape(8, 4), np.arange(24, dtype="int32").reshape(3, 8)
    tree = {"x": ft.device_put(X, split), "y": ft.device_put(Y, NamedSharding(mesh, P(None, "data"))),
            "w": ft.device_put(X, whole), "host": np.arange(3), "n": 5, "own": fnp.arange(2.0)}
"""

SAVE = (
    HEAD
    + """
    for round in range(2):
        ft.io.save(FOLDER + "/a", tree)
    back = ft.io.load(FOLDER + "/a", tree)
    for name in ("x", "y"):
        for mine, saved in zip(back[name].addressable_shards, tree[name].addressable_shards):
            np.testing.assert_array_equal(mine.data, saved.data)
    assert back["n"] == 5 and back["own"].tolist() == [0, 1]
    try:
        ft.io.save(FOLDER + "/one.safetensors", tree)
    except (ft.errors.CheckpointError, ft.errors.DistributedError) as error:
        assert "x, y" in str(error)
    else:
        raise AssertionError
    ft.io.save(FOLDER + "/one.safetensors", {"w": tree["w"]})
    try:
        ft.io.save(FOLDER + "/bad", {"f": print if RANK == 1 else 1})
    except ft.errors.CheckpointError as error:
        assert RANK == 1
    except ft.errors.DistributedError as error:
        assert RANK == 0 and "process 1 failed" in str(error)
    with ft.io.CheckpointManager(FOLDER + "/run", keep_last=2) as manager:
        for step in range(4):
            manager.save(step, tree)
    ft.multihost_utils.sync_global_devices("saved")
    assert manager.steps() == [2, 3]
"""
)


LATER = (
    HEAD
    + """
    # Process 1 saves later than process 0 goes on: nobody waits in the call.
    if RANK == 0:
        future = ft.io.save_async(FOLDER + "/a", tree)
        assert not future.done()
    ft.multihost_utils.sync_global_devices("process 0 went on", timeout=60)
    if RANK == 1:
        future = ft.io.save_async(FOLDER + "/a", tree)
    tree["x"].delete()
    future.result()
    assert os.path.exists(FOLDER + "/a/index.json")
    del tree["x"]
    for step in range(5):                                    # of both kinds, in one order
        futures = [ft.io.save_async(FOLDER + f"/b{step}", {"k": step, **tree}) for step in range(3)]
        ft.io.save(FOLDER + "/b3", tree)
        assert all(f.done() for f in futures)
    try:
        future = ft.io.save_async(FOLDER + "/bad", {"f": print if RANK == 1 else 1, **tree})
        assert RANK == 0
        future.result()
    except ft.errors.CheckpointError as error:
        assert RANK == 1 and "cannot be saved" in str(error)
    except ft.errors.DistributedError as error:
        assert RANK == 0 and "process 1 failed" in str(error)
    with ft.io.CheckpointManager(FOLDER + "/run", keep_last=2) as manager:
        for step in range(4):
            manager.save(step, tree)
            if step == 2 and RANK == 1:
                time.sleep(0.5)
    assert manager.steps()[-1] == 3
    ft.io.save_async(FOLDER + "/last", tree)                 # Python waits for it
"""
)


def test_asynchronous_writes_of_several_processes(tmp_path):
    ended = start(LATER, range(2), 2, FOLDER=str(tmp_path))
    assert [e.status for e in ended] == [0] * 2, ended
    np.testing.assert_array_equal(ft.io.load(tmp_path / "a")["x"], np.arange(32.0).reshape(8, 4))
    assert [ft.io.load(tmp_path / f"b{k}")["k"] for k in range(3)] == [0, 1, 2]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["step-000000000002", "step-000000000003"]
    np.testing.assert_array_equal(ft.io.load(tmp_path / "last")["w"], np.arange(32.0).reshape(8, 4))
    assert not (tmp_path / "bad" / "index.json").exists() and not list(tmp_path.rglob("*.tmp"))


def test_parts_of_several_processes(tmp_path):
    ended = start(SAVE, range(2), 2, FT_CPU_DEVICES="2", FOLDER=str(tmp_path))
    assert [e.status for e in ended] == [0] * 2, ended
    assert len(list((tmp_path / "a").glob("part*"))) == 2 and not list(tmp_path.rglob("*.tmp"))
    back = ft.io.load(tmp_path / "a")  # by one process
    np.testing.assert_array_equal(back["x"], np.arange(32.0).reshape(8, 4))
    np.testing.assert_array_equal(back["y"], np.arange(24).reshape(3, 8))
    np.testing.assert_array_equal(back["w"], back["x"])
    np.testing.assert_array_equal(ft.io.load(tmp_path / "one.safetensors")["w"], back["x"])
    assert not (tmp_path / "bad" / "index.json").exists()
