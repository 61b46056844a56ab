"""Programs and arrays on a GPU, where it differs from a CPU; skipped on machines without one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import SingleDeviceSharding

pytestmark = pytest.mark.gpu
SCRIPT = """
import numpy as np, functorch_like as ft, functorch_like.numpy as fnp
a = np.random.default_rng(0).standard_normal((8, 8))
print(float(fnp.abs(ft.jit(fnp.linalg.eigvals)(a)).sum()), float(ft.jit(lambda x: fnp.tanh(x @ x).sum())(a)))
print(float(ft.jit(lambda x: ft.pure_callback(np.sum, ft.ShapeDtypeStruct((), x.dtype), x))(a)))
stats = ft.backends.cache.stats()
print(stats.hits, stats.compiles)
"""


def test_arrays_move_between_host_and_gpu():
    x = fnp.arange(6.0).reshape(2, 3)
    host = ft.device_put(x, "cpu")
    assert x.device.platform == "gpu" and host.device.platform == (host + 1).device.platform == "cpu"
    back = ft.device_put(host, "gpu")
    assert back.device.platform == "gpu" and back.tolist() == x.tolist()
    assert (x + host).device.platform == "cpu", "an array bound to a device decides"
    with pytest.raises(ft.errors.DeviceError):
        back + host


def test_arrays_move_between_host_and_gpu_weak_types_and_narrow_dtypes():
    for x in (fnp.asarray(2.0), fnp.ones(3, "bfloat16"), fnp.asarray([True, False]), fnp.zeros((0, 2))):
        host = ft.device_put(x, "cpu")
        assert host.aval == x.aval and host.tolist() == x.tolist()


def test_tensors_of_other_libraries_are_copied_on_their_gpu():
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0, device="cuda").reshape(2, 3)
    for made in (fnp.from_dlpack(t), fnp.asarray(t)):
        assert made.device.platform == "gpu" and made.tolist() == t.tolist()
    assert fnp.asarray(t.T).tolist() == t.T.tolist()
    copied = fnp.from_dlpack(t)
    t.zero_()
    assert copied.tolist() == [[0, 1, 2], [3, 4, 5]]
    given = torch.from_dlpack(copied)
    assert given.data_ptr() == copied.unsafe_buffer_pointer()


def test_large_arrays_of_one_value_are_made_there():
    x = fnp.full((4096, 2048), 3.0)
    assert x.device.platform == "gpu" and float(x.sum()) == 3 * 4096 * 2048
    assert fnp.ones((4096, 2048), "int32", device="gpu").device.platform == "gpu"


def test_values_are_kept_in_the_memory_of_the_host():
    host = SingleDeviceSharding(ft.devices()[0], memory_kind="pinned_host")
    x = fnp.arange(4.0)
    assert ft.jit(lambda x: ft.device_put(x * 2, host))(x).tolist() == [0, 2, 4, 6]
    kept = ft.jit(lambda x: x * 3, out_shardings=host)(x)
    assert kept.sharding.memory_kind == "pinned_host" and kept.tolist() == [0, 3, 6, 9]


def test_control_flow_of_python():
    f = ft.jit(lambda x: x * 2 if x.sum() > 0 else -x, control_flow="paths")
    for x in (1.0, -1.0, 2.0, -3.0):
        assert float(f(fnp.asarray(x))) == (2 * x if x > 0 else -x)


def test_a_second_process_compiles_what_calls_python_alone(tmp_path):
    environment = {**os.environ, "FT_CACHE_DIR": str(tmp_path), "FT_CACHE": "1", "FT_CUDA_PREALLOCATE": "0"}
    run = lambda: subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    first, second = run(), run()
    assert first[:2] == second[:2]
    assert int(second[2].split()[0]) > 0 and int(second[2].split()[1]) == 1


def test_profiles_have_operations():
    f = ft.jit(lambda x: fnp.sort(x @ x, 0))
    x = fnp.ones((256, 256))
    f(x).block_until_ready()
    with ft.profiler.profile() as found:
        f(x)
    assert found.operations and all(op.seconds > 0 for op in found.operations)


def test_memory_that_runs_out_is_an_error():
    with pytest.raises(ft.errors.OutOfMemoryError, match="ran out of memory on"):
        ft.jit(lambda: fnp.ones((300_000, 300_000)))().block_until_ready()
    assert fnp.ones(3).tolist() == [1, 1, 1]


def test_scatter_add_and_gather():
    rng = np.random.default_rng(0)
    values, places = rng.standard_normal(10_000), rng.integers(0, 100, 10_000)
    wanted = np.bincount(places, values, 100)
    np.testing.assert_allclose(fnp.zeros(100, "float64").at[places].add(values), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fnp.asarray(values)[places], values[places])
    order = lax.top_k(fnp.asarray(values), 5)[1]
    np.testing.assert_array_equal(order, np.argsort(-values)[:5])
