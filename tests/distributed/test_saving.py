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
