"""Compiled functions as bytes, loaded by another process."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import xla
from functorch_like.experimental.serialize_executable import deserialize_and_load, serialize
from functorch_like.experimental.topologies import get_attached_topology, get_topology_desc, make_mesh

X = np.arange(8, dtype=np.float32).reshape(4, 2)
LARGE = np.linspace(0, 1, 4000, dtype=np.float32)


def compiled(f, *args, **options):
    return ft.jit(f, **options).lower(*args).compile()


def loaded(f, *args, **options):
    return deserialize_and_load(*serialize(compiled(f, *args, **options)))


def test_another_process_runs_it(tmp_path):
    file = tmp_path / "program.pickle"
    large = fnp.asarray(LARGE)
    program = compiled(lambda x, y: {"r": x * 2 + y + large.sum()}, X, 1.0)
    file.write_bytes(pickle.dumps(serialize(program)))
    text = f"""
import pickle, numpy as np
from functorch_like.backends.xla import counters
from functorch_like.experimental.serialize_executable import deserialize_and_load
f = deserialize_and_load(*pickle.load(open({str(file)!r}, "rb")))
x = np.arange(8, dtype=np.float32).reshape(4, 2)
for y in (1.0, 3.0):
    np.testing.assert_allclose(f(x, y)["r"], x * 2 + y + 2000, rtol=1e-5)
print(f.out_info["r"].shape, counters.compiles, counters.traces)
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200)
    assert ran.stdout.split("\n")[0] == "(4, 2) 0 0", ran.stderr


def test_a_program_from_the_disk_cache(tmp_path):
    f = lambda x: x * 3.25 + 17
    with ft.backends.cache.flags(directory=str(tmp_path), enabled=True):
        first = loaded(f, X)
        ft.clear_caches()
        before = xla.counters.cache_hits
        again = compiled(f, X)
        assert xla.counters.cache_hits == before + 1
        second = deserialize_and_load(*serialize(again))
    for run in (first, second):
        np.testing.assert_array_equal(run(X), X * 3.25 + 17)


def test_arguments_are_checked_as_before():
    f = loaded(lambda x, n: x**n, X, 3, static_argnums=1)
    np.testing.assert_array_equal(f(X, 3), X**3)
    np.testing.assert_array_equal(f(X), X**3)
    with pytest.raises(ft.errors.ArgumentError, match="static argument 1 = 3, got 5"):
        f(X, 5)
    of_objects = loaded(lambda x, n: x * len(n), X, (frozenset({1, 2}), 3), static_argnums=1)
    np.testing.assert_array_equal(of_objects(X, (frozenset({1, 2}), 3)), 2 * X)  # no such value is stored, nor compared
    for wrong in (X.astype(np.int32), X[:2]):
        with pytest.raises(ft.errors.ArgumentError, match="was compiled for"):
            f(wrong)
    with pytest.raises(ft.errors.ArgumentError, match="compiled for arguments"):
        f()
    with pytest.raises(ft.errors.ConcretizationError):
        ft.vmap(f)(X)
    assert "HloModule" in f.as_text() and f.cost_analysis()


def test_donated_arguments_and_unused_ones():
    f = loaded(lambda x, unused: x + 1, X, X, donate_argnums=0)
    x = fnp.asarray(X)
    np.testing.assert_array_equal(f(x, X), X + 1)
    assert x.is_deleted()


def test_libraries_and_kernels_are_found():
    np.testing.assert_allclose(loaded(lambda x: fnp.linalg.svd(x)[1], X)(X), np.linalg.svd(X)[1], atol=1e-5)
    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    np.testing.assert_array_equal(loaded(fnp.sort, x)(x), np.sort(x))


def test_what_cannot_be_stored():
    for f in (
        lambda x: ft.debug.print("{}", x),
        lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct(x.shape, x.dtype), x),
    ):
        with pytest.raises(ft.errors.UnsupportedError, match="calls Python"):
            serialize(compiled(f, X))
    with pytest.raises(ft.errors.ArgumentError, match="takes a compiled function"):
        serialize(ft.jit(fnp.sin))  # type: ignore[arg-type]


def test_what_cannot_be_loaded():
    stored, *trees = serialize(compiled(fnp.sin, X))
    for wrong in (b"", stored[:-20], pickle.dumps({"format": 1}), pickle.dumps(subprocess.run)):
        with pytest.raises(ft.errors.ArgumentError, match="not those of a compiled function"):
            deserialize_and_load(wrong, *trees)
    content = pickle.loads(stored)
    content["program"] = b"nothing"
    with pytest.raises(ft.errors.CompileError, match="cannot be loaded"):
        deserialize_and_load(pickle.dumps(content), *trees)
    with pytest.raises(ft.errors.DeviceError, match="compiled for 1 device"):
        deserialize_and_load(stored, *trees, execution_devices=[])


def test_topologies():
    topology = get_attached_topology()
    assert topology.devices == ft.devices()
    assert make_mesh(topology, (1, len(topology.devices)), ("a", "b")).devices.shape == (1, len(topology.devices))
    with pytest.raises(ft.errors.ArgumentError, match="does not have"):
        make_mesh(topology, (len(topology.devices), 2), ("a", "b"))
    with pytest.raises(ft.errors.UnsupportedError, match="v4"):
        get_topology_desc("v4", "tpu")
