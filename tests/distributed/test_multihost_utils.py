"""Values of several processes: broadcast, gathered, compared."""

import numpy as np
import pytest
from support.processes import start

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import multihost_utils
from functorch_like.errors import ArgumentError


def test_one_process_is_its_own_world():
    tree = {"a": fnp.arange(3.0), "b": (1, np.float32(2))}
    out = multihost_utils.broadcast_one_to_all(tree)
    assert out["a"].tolist() == [0, 1, 2] and out["b"][0] == 1 and out["b"][1].dtype == np.float32
    assert multihost_utils.process_allgather(tree)["a"].shape == (1, 3)
    assert multihost_utils.process_allgather(fnp.ones((2, 3)), tiled=True).shape == (2, 3)
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(tree)


def test_what_it_refuses():
    with pytest.raises(ArgumentError, match="a scalar cannot be concatenated"):
        multihost_utils.process_allgather(1.0, tiled=True)
    with pytest.raises(ArgumentError, match=r"assert_equal is given .* which is only traced"):
        ft.jit(lambda x: multihost_utils.assert_equal(x))(1.0)


BODY = """
    initialize()
    from functorch_like import dtypes, multihost_utils as mu
    def refused(part, f, *args, **kwargs):
        try:
            f(*args, **kwargs)
        except ft.errors.DistributedError as error:
            assert part in str(error), str(error)
        else:
            raise AssertionError(part)

    tree = {"w": fnp.full((2, 3), RANK, dtypes.bfloat16), "s": RANK + 0.5, "e": np.zeros((0, 4), np.int8)}
    first = mu.broadcast_one_to_all(tree)
    assert first["w"].dtype == dtypes.bfloat16 and first["w"].tolist() == [[0.0] * 3] * 2 and first["s"] == 0.5
    assert first["e"].shape == (0, 4)
    last = mu.broadcast_one_to_all(tree, is_source=RANK == COUNT - 1)
    assert last["s"] == COUNT - 0.5

    every = mu.process_allgather(tree)
    assert every["s"].tolist() == [r + 0.5 for r in range(COUNT)] and every["w"].shape == (COUNT, 2, 3)
    assert every["w"][:, 0, 0].tolist() == list(range(COUNT))
    tiled = mu.process_allgather(fnp.arange(2) + 2 * RANK, tiled=True)
    assert tiled.tolist() == list(range(2 * COUNT))

    mu.sync_global_devices("begin")
    mu.assert_equal({"w": np.array([1.0, np.nan]), "n": 3})
    refused("w: ['a'] of process 1 differs from that of process 0: [0. 9.] and [0. 0.]".replace("9", "1"),
            mu.assert_equal, {"a": fnp.arange(2.0) * (RANK == 1)}, "w")
    refused("has PyTreeDef(*) of float64[2]", mu.process_allgather, np.zeros(2 + (RANK == 1)))
    refused("int32[]", mu.assert_equal, np.int32(1) if RANK else np.int64(1))
    refused("no process said is_source", mu.broadcast_one_to_all, 1, is_source=False)
    refused("processes 0 and 1 said is_source", mu.broadcast_one_to_all, 1, is_source=RANK < 2)
    refused("process %d is at " % RANK, mu.sync_global_devices, "point %d" % (RANK == 2))
    if RANK < 2:
        refused("process 2 did not come within 0.5 s", mu.sync_global_devices, "late", timeout=0.5)
    mu.assert_equal(1)
"""


def test_three_processes():
    ended = start(BODY, range(3), 3)
    assert [e.status for e in ended] == [0] * 3, ended
