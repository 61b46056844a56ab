import copy
import os
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import arrays
from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError
from functorch_like.errors import DonatedError, DtypeError, OutOfMemoryError

DTYPES = [
    np.dtype(d)
    for d in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
        *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3b11fnuz),
        *(ml_dtypes.int4, ml_dtypes.uint4),
    )
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3)])
def test_there_and_back(dtype, shape):
    value = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    array = xla.device_put(value)
    assert array.aval is ShapedArray(shape, dtype)
    for back in (xla.to_numpy(array), np.asarray(array)):
        assert back.dtype == dtype and back.shape == shape and back.tobytes() == value.tobytes()
    assert not xla.to_numpy(array).flags.writeable


@pytest.mark.parametrize("value", [np.float64(0.1), np.int64(2**40), np.bool_(True), np.complex128(1j), 2**40, 0.1])
def test_scalars_keep_64_bits(value):
    back = xla.to_numpy(xla.device_put(value))
    assert back.shape == () and back == value and back.dtype == np.asarray(value).dtype


def test_layouts_of_numpy():
    value = np.arange(24.0).reshape(4, 6)
    for view in (value.T, value[::-1], value[:, ::2], np.asfortranarray(value), np.broadcast_to(value, (2, 4, 6))):
        np.testing.assert_array_equal(xla.to_numpy(xla.device_put(view)), view)
    swapped = value.astype(">f8")
    np.testing.assert_array_equal(xla.to_numpy(xla.device_put(swapped)), value)


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([None]), np.longdouble(1), np.array(["2020"], "M8[D]")])
def test_values_no_array_can_hold(bad):
    with pytest.raises(DtypeError, match="an array cannot hold NumPy dtype"):
        xla.device_put(bad)


@pytest.mark.parametrize("count", [1, 8, 2_000, 500_000])
@pytest.mark.parametrize("offset", [0, 4])
def test_writing_to_numpy_after_put_changes_nothing(aligned, count, offset):
    """TRAP: C++ would alias aligned memory; jaxlib 0.10 would copy a large unaligned array in the background."""
    for _ in range(5):
        value = aligned(count, offset)
        value[:] = 1
        array = xla.device_put(value)
        value[:] = 9
        assert xla.to_numpy(array).min() == xla.to_numpy(array).max() == 1


def test_weak_type_and_committed():
    array = xla.device_put(np.float32(1), weak_type=True)
    assert array.aval is ShapedArray((), np.float32, True) and not array._committed
    device = xla.default_device()
    assert xla.device_put(np.float32(1), device)._committed
    bound = xla.device_put(array, device)
    assert bound._committed and xla.to_numpy(bound) == 1
    assert xla.device_put(bound, device) is bound and xla.device_put(array) is array
    assert xla.device_put(xla.device_put(np.float32(1)), weak_type=True).aval.weak_type


def test_deleted_arrays_say_so(x):
    x.delete()
    assert xla.is_deleted(x)
    for use in (xla.to_numpy, np.asarray, xla.block_until_ready, xla.device_put):
        with pytest.raises(DonatedError, match=r"the array f32\[8\] was donated to a computation or deleted") as caught:
            use(x)
        assert "donate_argnums" in caught.value.fix


def test_a_view_outlives_its_array():
    array = xla.device_put(np.arange(4.0))
    view = np.asarray(array)
    array.delete()
    assert view.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_numpy_protocol(dtype):
    array = xla.device_put(np.ones(3, dtype))
    assert array.__array__(np.float64).dtype == np.float64
    fresh = array.__array__(copy=True)
    fresh[:] = 2
    assert xla.to_numpy(array).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="without a copy"):
        array.__array__(np.float64, copy=False)


def test_pickle_and_copy():
    array = xla.device_put(np.float32(2), weak_type=True)
    for other in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
        assert type(other) is xla.ArrayImpl and other.aval is array.aval and xla.to_numpy(other) == 2


def test_attach_and_tracers(run):
    """These functions affect all arrays of a process, so they run in a separate one."""
    text = """
    import numpy as np
    from functorch_like.backends import xla
    class Tracer:
        def _is_traced_array(self):
            return True
    assert not isinstance(3, xla.Array)
    xla.set_tracer_class(Tracer)
    xla.attach("twice", property(lambda self: 2 * xla.to_numpy(self)))
    x = xla.device_put(np.float32(4))
    print(isinstance(Tracer(), xla.Array), isinstance(x, xla.Array), isinstance(3, xla.Array), x.twice)
    """
    assert run(text) == "True True False 8.0"


def test_transfers_are_counted(x):
    before = xla.counters.snapshot()
    xla.to_numpy(xla.device_put(np.zeros(2)))
    assert xla.counters.since(before) == {"host_to_device": 1, "device_to_host": 1}


def test_computations_that_fail_late_raise_the_packages_errors(monkeypatch):
    def fail(x):
        raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 335.28GiB with allocator GPU")

    x = xla.device_put(np.ones(3, np.float32))
    monkeypatch.setattr(arrays, "_wait", fail)
    with pytest.raises(OutOfMemoryError, match=r"f32\[3\] ran out of memory .* allocation of 335.28 GiB"):
        arrays.block_until_ready(x)
    x.delete()
    with pytest.raises(DonatedError):
        arrays.block_until_ready(x)


def test_the_method_raises_them_where_computations_may_fail_late():
    script = """
import functorch_like as ft, functorch_like.numpy as fnp
x = fnp.ones(3)
ft.jit(lambda x: x + 1, donate_argnums=0)(x)
try:
    x.block_until_ready()
except ft.errors.DonatedError:
    print("donated")
print(fnp.ones(2).block_until_ready().tolist())
"""
    environment = {**os.environ, "FT_CPU_ASYNC": "1", "FT_PLATFORM": "cpu"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["donated", "[1.0, 1.0]"]
