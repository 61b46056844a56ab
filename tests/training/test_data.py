"""ft.data: every row once in an epoch, the same order in every process and run, and threads that end."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.data import batches, prefetch
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

KEY = ft.random.key(5)
X = np.arange(23.0).reshape(23, 1)
TREE = {"x": X, "y": (np.arange(23, dtype="int8"), fnp.arange(23))}


# ------------------------------------------------------------------------------------------------------------- batches
def test_rows_stay_together_and_come_once():
    got = list(batches(TREE, 5, KEY, remainder="keep"))
    assert [len(b["x"]) for b in got] == [5, 5, 5, 5, 3]
    rows = np.concatenate([b["x"][:, 0] for b in got])
    assert sorted(rows) == list(range(23)) and list(rows) != list(range(23))
    for b in got:
        np.testing.assert_array_equal(b["x"][:, 0], b["y"][0])
        np.testing.assert_array_equal(b["x"][:, 0], b["y"][1])
        assert [type(a) for a in ft.tree.leaves(b)] == [np.ndarray] * 3
        assert (b["x"].dtype, b["y"][0].dtype, b["y"][1].dtype) == ("float64", "int8", "int32")


def test_epochs_have_orders_of_their_own_and_runs_have_the_same():
    first, second = np.split(np.concatenate(list(batches(X, 1, KEY, epochs=2)))[:, 0], 2)
    assert sorted(first) == sorted(second) and list(first) != list(second)
    again = np.concatenate(list(batches(X, 1, KEY, epochs=2)))[:, 0]
    np.testing.assert_array_equal(again, [*first, *second])
    other = np.concatenate(list(batches(X, 1, ft.random.key(6))))[:, 0]
    assert list(other) != list(first)


def test_without_a_key_the_order_is_that_of_the_rows():
    got = list(batches(X, 10))
    np.testing.assert_array_equal(np.concatenate(got), X[:20])
    got[0][:] = -1
    assert X[0] == 0  # batches are copies


@pytest.mark.parametrize("remainder", ["drop", "keep", "pad"])
@pytest.mark.parametrize("key", [None, KEY])
def test_resuming_at_every_position(remainder, key):
    options = {"epochs": 3, "remainder": remainder}
    whole = list(batches(TREE, 6, key, **options))
    assert len(whole) == len(batches(TREE, 6, key, **options))
    for start in range(len(whole) + 2):
        rest = batches(TREE, 6, key, start=start, **options)
        got = list(rest)
        assert len(got) == len(rest) == max(len(whole) - start, 0)
        for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(whole[start:]), strict=True):
            np.testing.assert_array_equal(a, b)
        assert len(list(rest)) == len(got)  # it can be iterated again


@pytest.mark.parametrize("count", [1, 2, 3])
def test_processes_have_parts_of_the_same_batch(count):
    for options in ({}, {"remainder": "pad"}):
        whole = list(batches(X, 6, KEY, **options))
        parts = [list(batches(X, 6, KEY, process=(k, count), **options)) for k in range(count)]
        for batch, *mine in zip(whole, *parts, strict=True):
            for w, *m in zip(*(b if options else (b,) for b in (batch, *mine)), strict=True):
                np.testing.assert_array_equal(np.concatenate(m), w)


def test_padding_is_marked():
    got = list(batches(X, 10, remainder="pad"))
    assert [mask.tolist() for _, mask in got] == [[True] * 10, [True] * 10, [True] * 3 + [False] * 7]
    assert got[-1][0][:, 0].tolist() == [20, 21, 22, *[22] * 7]
    small, mask = next(iter(batches(np.arange(2), 4, remainder="pad")))
    assert small.tolist() == [0, 1, 1, 1] and mask.tolist() == [True, True, False, False]


def test_batches_for_ever():
    endless = batches(X, 10, KEY, epochs=None, start=4)
    taken = [b for b, _ in zip(endless, range(5), strict=False)]
    np.testing.assert_array_equal(taken, list(batches(X, 10, KEY, epochs=10))[4:9])
    with pytest.raises(TypeError, match="no length"):
        len(endless)


def test_memory_maps_stay_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for key in (None, KEY):
        got = next(iter(batches(mapped, 4, key)))
        assert type(got) is np.ndarray and not isinstance(got.base, np.memmap)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: batches({"a": X, "b": X[:5]}, 2), ShapeError, r"\['a'\]: \(23, 1\)\n    \['b'\]: \(5, 1\)"),
        (lambda: batches(np.asarray(1), 2), ShapeError, "first dimension"),
        (lambda: batches({}, 2), ShapeError, "no arrays"),
        (lambda: batches(X, 24), ShapeError, "do not fill a batch of 24"),
        (lambda: batches([1, 2], 1), DtypeError, "int at"),
        (lambda: batches(X, 0), ArgumentError, "size=0"),
        (lambda: batches(X, 2.0), ArgumentError, "size=2.0"),
        (lambda: batches(X, 2, epochs=0), ArgumentError, "epochs=0"),
        (lambda: batches(X, 2, start=-1), ArgumentError, "start=-1"),
        (lambda: batches(X, 2, remainder="fill"), ArgumentError, "remainder='fill'"),
        (lambda: batches(X, 3, process=(0, 2)), ArgumentError, "multiple of the number of processes"),
        (lambda: batches(X, 2, process=(2, 2)), ArgumentError, "number 2"),
        (lambda: batches(X, 2, remainder="keep", process=(0, 2)), ArgumentError, "do not divide"),
        (lambda: ft.jit(lambda x: batches(x, 2))(X), DtypeError, "batches takes arrays"),
    ],
)
def test_errors_of_batches(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ------------------------------------------------------------------------------------------------------------ prefetch
def threads():
    return [t for t in threading.enumerate() if t.name == "prefetch"]


def ended():
    for thread in threads():
        thread.join(10)
    return not threads()


def test_items_come_in_order_on_the_device():
    got = list(prefetch(batches(TREE, 5, KEY), size=1))
    want = list(batches(TREE, 5, KEY))
    assert all(isinstance(a, ft.Array) for a in ft.tree.leaves(got))
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    assert ended()
    assert len(prefetch(batches(TREE, 5, KEY))) == 4


def test_memory_that_is_used_again():
    def reused():
        memory = np.zeros(1000)
        for k in range(20):
            memory[:] = k
            yield memory

    assert [x.sum().item() for x in prefetch(reused(), size=3)] == [1000 * k for k in range(20)]


def test_other_leaves():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    (got,) = prefetch([{"text": "a", "none": None, "number": 3, "tensor": Tensor(), "names": np.array(["x"])}])
    assert got["text"] == "a" and got["number"] == 3 and got["names"].tolist() == ["x"]
    assert isinstance(got["tensor"], ft.Array)


def test_a_sharding():
    where = NamedSharding(ft.make_mesh((1,), ("i",)), P("i"))
    (got,) = prefetch([(X, X[:, 0])], (where, None))
    assert got[0].sharding == where and not isinstance(got[1].sharding, NamedSharding)
    with ft.use_mesh(ft.make_mesh((1,), ("i",))):
        ahead = prefetch([X], P("i"))  # uses the mesh of the calling thread
    assert next(ahead).sharding.spec == P("i")
    ahead.close()


def test_the_default_device_is_that_of_the_thread_that_calls():
    with ft.default_device("cpu"):
        (x,) = prefetch([X])
    assert x.device.platform == "cpu" and not x._committed


def test_an_error_is_raised_in_its_place():
    def failing():
        yield X
        raise ZeroDivisionError("in the iterable")

    ahead = prefetch(failing())
    next(ahead)
    with pytest.raises(ZeroDivisionError, match="in the iterable"):
        next(ahead)
    with pytest.raises(StopIteration):
        next(ahead)
    assert ended()


def test_threads_end_however_the_loop_does():
    finished = []

    def endless():
        try:
            while True:
                yield X
        finally:
            finished.append(True)

    for _ in prefetch(endless()):
        break
    gc.collect()
    assert ended()
    with prefetch(endless()) as ahead:
        next(ahead)
    assert ended()
    ahead = prefetch(endless())
    ahead.close()
    ahead.close()
    assert ended() and list(ahead) == []
    gc.collect()
    assert len(finished) == 3


def test_python_ends_with_items_left():
    program = """
import numpy as np, itertools
import functorch_like as ft
ahead = ft.data.prefetch(np.ones(1000) for _ in itertools.count())
next(ahead)
print("end")
"""
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "end\n", "")


def test_no_more_items_are_made_than_there_is_room_for():
    made = []
    ahead = prefetch((made.append(k) or np.ones(1) for k in range(100)), size=3)
    next(ahead)
    next(ahead)
    # Two taken, three ready, and one that waits for room.
    for _ in range(1000):
        if len(made) >= 6:
            break
        threading.Event().wait(0.005)
    threading.Event().wait(0.05)
    assert len(made) == 6
    ahead.close()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: prefetch(3), "takes an iterable"),
        (lambda: prefetch([X], size=0), "size=0"),
        (lambda: prefetch([X], "cpu"), "the sharding of prefetch"),
    ],
)
def test_errors_of_prefetch(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()
