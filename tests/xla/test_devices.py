import numpy as np
import pytest

import functorch_like as ft
from functorch_like.backends import xla
from functorch_like.errors import DeviceError


def test_devices_and_their_names():
    assert xla.default_backend() in ("cpu", "gpu")
    assert xla.default_device() is xla.devices()[0] is xla.find_device(None)
    cpu = xla.devices("cpu")[0]
    assert xla.find_device("cpu") is xla.find_device("CPU:0") is xla.find_device(cpu) is cpu
    assert cpu in xla.local_devices("cpu")


@pytest.mark.parametrize("spec", ["tpu", "cpu:99", "cpu:x", "cpu:-1", 3])
def test_missing_devices_are_distinguished_from_present_ones(spec):
    with pytest.raises(DeviceError, match=r"is not a device|there is no device") as caught:
        xla.find_device(spec)
    assert '"cpu:0"' in str(caught.value)


def test_missing_platform():
    with pytest.raises(DeviceError, match="no platform 'tpu'") as caught:
        xla.devices("tpu")
    assert '"cpu:0"' in str(caught.value)


def test_environment(run):
    text = "from functorch_like.backends import xla; print(xla.default_backend(), xla.devices())"
    assert run(text, FT_PLATFORM="cpu") == "cpu [CpuDevice(id=0)]"
    assert run(text, FT_PLATFORM="cpu", FT_CPU_DEVICES="2") == "cpu [CpuDevice(id=0), CpuDevice(id=1)]"
    assert "FT_PLATFORM='abacus' is not a platform" in run(text, fails=True, FT_PLATFORM="abacus")
    assert "FT_CPU_DEVICES='no'" in run(text, fails=True, FT_PLATFORM="cpu", FT_CPU_DEVICES="no")


def test_two_devices(run):
    """TRAP: for an array on another device, C++ would silently move it, or crash."""
    text = """
    import numpy as np
    from functorch_like.avals import ShapedArray
    from functorch_like.backends import xla
    from functorch_like.errors import DeviceError
    one, two = xla.devices()
    x = xla.device_put(np.arange(3.0))
    y = xla.device_put(x, two)
    assert xla.device_of(y) is two and y._committed and xla.to_numpy(y).tolist() == [0, 1, 2]
    assert xla.device_put(y) is y
    module = xla.build("f", [x.aval] * 2, lambda e, a, b: [e.op("stablehlo.add", [a, b], [x.aval])])
    programs = [xla.compile(module, device=d, out_avals=[x.aval], name="f") for d in (one, two)]
    r = programs[1].execute([x, y], committed=True)[0]  # x is not committed, so it may move
    assert xla.device_of(r) is two and r._committed and xla.to_numpy(r).tolist() == [0, 2, 4]
    for program, args in ((programs[0], [x, y]), (programs[1], [xla.device_put(x, one), y])):
        try:
            program.execute(args)
        except DeviceError as error:
            print(error.reason)
    print(xla.counters.device_to_device)
    """
    first, second, moved = run(text, FT_PLATFORM="cpu", FT_CPU_DEVICES="2").split("\n")
    assert "'f' runs on cpu:0, and its argument f64[3] is bound to cpu:1" in first
    assert "'f' runs on cpu:1, and its argument f64[3] is bound to cpu:0" in second
    assert moved == "2"


def test_many_threads_start_one_client(run):
    text = """
    import threading, numpy as np
    from functorch_like.backends import xla
    found = []
    threads = [threading.Thread(target=lambda: found.append(xla.device_put(np.ones(3)))) for _ in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(len(found), len({id(xla.device_of(a).client) for a in found}))
    """
    assert run(text) == "8 1"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(run):
    """In the child of a process that has started XLA, calls raise instead of hanging; values can still be read."""
    text = """
    import os, sys, warnings, numpy as np
    warnings.simplefilter("ignore")
    from functorch_like.avals import ShapedArray
    from functorch_like.backends import xla
    from functorch_like.errors import FtError
    x = xla.device_put(np.ones(3))
    program = xla.compile(xla.build("f", [x.aval], lambda e, a: [a]), out_avals=[x.aval])
    f = xla.function("f", None, lambda a: (program.execute([a])[0], program.fastpath(xla.leaf_structure), False))
    f(x)
    if os.fork() == 0:
        told = []
        for use in (lambda: xla.device_put(np.ones(3)), lambda: f(x), lambda: f(x)):
            try:
                use()
            except FtError as error:
                told.append("spawn" in str(error))
        print(told, xla.to_numpy(x).tolist())
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    print(xla.to_numpy(f(x)).tolist())
    """
    assert run(text) == "[True, True, True] [1.0, 1.0, 1.0]\n[1.0, 1.0, 1.0]"


def test_arrays_that_a_forked_pool_receives(run):
    """Its workers read the values; an operation on them raises in the caller, who would else wait for ever."""
    text = """
    import multiprocessing, warnings, numpy as np
    warnings.simplefilter("ignore")
    import functorch_like.numpy as fnp
    from functorch_like.errors import FtError
    x = fnp.arange(4.0)
    def add(v): return fnp.sum(v)
    def read(v): return float(np.sum(v))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.apply_async(read, [x]).get(60))
        try:
            pool.apply_async(add, [x]).get(60)
        except FtError as error:
            print("spawn" in str(error))
    """
    assert run(text) == "6.0\nTrue"


def test_fork_before_the_first_array(run):
    text = """
    import os, warnings, numpy as np
    warnings.simplefilter("ignore")
    from functorch_like.backends import xla
    if os.fork() == 0:
        print(xla.to_numpy(xla.device_put(np.ones(2))).tolist(), flush=True)
        os._exit(0)
    os.wait()
    """
    assert run(text) == "[1.0, 1.0]"


def test_no_plugin_is_no_error(monkeypatch):
    from functorch_like.backends.xla import cuda

    monkeypatch.setattr(cuda, "find_plugin", lambda: None)
    assert cuda.make_client() is None
    with pytest.raises(DeviceError, match="the CUDA plugin is not installed"):
        cuda.make_client(required=True)


def test_plugin_is_found_without_importing_it(monkeypatch, tmp_path):
    from functorch_like.backends.xla import cuda

    folder = tmp_path / "jax_plugins" / "xla_cuda12"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    (folder / "xla_cuda_plugin.so").write_bytes(b"no library")
    monkeypatch.syspath_prepend(tmp_path)
    assert cuda.find_plugin() == folder / "xla_cuda_plugin.so"
    monkeypatch.setattr(cuda, "_has_device", lambda: False)
    assert cuda.make_client() is None
    with pytest.raises(DeviceError, match="no GPU is visible"):
        cuda.make_client(required=True)
    monkeypatch.setattr(cuda, "_has_device", lambda: True)
    with pytest.warns(UserWarning, match="does not start, so the CPU is used"):
        assert cuda.make_client() is None


def test_host_values_move_in(double):
    assert xla.to_numpy(double.execute([np.ones(8, np.float32)])[0]).tolist() == [2] * 8


def test_the_default_device_is_chosen_for_a_block_or_for_good(run):
    text = """
    import threading
    import functorch_like as ft, functorch_like.numpy as fnp
    one, two = ft.devices()
    place = lambda x: x.device.id
    f = ft.jit(lambda x: fnp.sin(x) + fnp.ones(3))
    assert [place(v) for v in (fnp.zeros(3), f(1.0), fnp.asarray(2.0) + 1)] == [0, 0, 0]
    with ft.default_device(two):
        assert [place(v) for v in (fnp.zeros(3), f(1.0), fnp.asarray(2.0) + 1)] == [1, 1, 1]
        stays = ft.device_put(1.0, one)
        assert place(fnp.sin(stays)) == 0 and not fnp.zeros(3)._committed
        seen = []
        thread = threading.Thread(target=lambda: seen.append(place(fnp.zeros(3))))
        thread.start(); thread.join()
        with ft.default_device(None):
            assert place(fnp.zeros(3)) == 0
    assert place(f(1.0)) == 0 and place(fnp.zeros(3)) == 0 and seen == [0]
    ft.set_default_device("cpu:1")
    assert place(f(1.0)) == 1 and ft.backends.describe("default_device").rows[0][1] == repr(two)
    ft.set_default_device(None)
    assert place(f(1.0)) == 0
    kept = ft.device_put(fnp.ones(5), two)
    assert any(x is kept for x in ft.live_arrays())
    assert any(x is kept for x in ft.profiler.live_arrays(two))
    assert not any(x is kept for x in ft.profiler.live_arrays())
    print(ft.local_device_count(), ft.process_index(), ft.process_count(), isinstance(one, ft.Device))
    """
    assert run(text, FT_PLATFORM="cpu", FT_CPU_DEVICES="2") == "2 0 1 True"


def test_a_default_device_must_be_there():
    with pytest.raises(DeviceError, match="no device 'cpu:99'"):
        ft.default_device("cpu:99")
    with pytest.raises(DeviceError, match="no device 'cpu:99'"):
        ft.set_default_device("cpu:99")
