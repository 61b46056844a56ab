"""backends.xla.verbose and ft.profiler: operations that ran, their times, and their source lines."""

import gzip
import io
import json
import os
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, source_info
from functorch_like.backends.xla import profiling
from functorch_like.errors import ArgumentError


def product(x):
    y = fnp.tanh(x @ x)
    return fnp.sort(y, axis=0)  # the line of the sort


X = np.random.default_rng(0).standard_normal((60, 60)).astype(np.float32)
SORT_LINE = product.__code__.co_firstlineno + 2


@pytest.fixture(autouse=True)
def no_programs_from_disk():
    """Turn the disk cache off: its programs carry line numbers of this file from when they were compiled."""
    with backends.cache.flags(enabled=False):
        yield


def test_verbose_reports_programs_and_operations_with_the_users_line():
    out = io.StringIO()
    f = ft.jit(product)
    with backends.xla.verbose(out):
        f(X)
        f(X)
    text = out.getvalue()
    assert "traced product in" in text and ": first call" in text
    assert "compiled product in" in text or "loaded product from the cache on disk in" in text
    assert "in operations of compiled programs" in text
    assert f"product  {os.path.basename(__file__)}:{SORT_LINE}" in text and f"  {__file__}:{SORT_LINE}\n" in text


def test_verbose_is_silent_outside_of_its_block_and_in_other_threads():
    out = io.StringIO()
    with backends.xla.verbose(out):
        thread = threading.Thread(target=lambda: ft.jit(lambda x: fnp.cos(x) * 11)(X))
        thread.start()
        thread.join()
    ft.jit(lambda x: fnp.cos(x) * 12)(X)
    assert "traced" not in out.getvalue()


def test_a_profile_counts_calls():
    f = ft.jit(product)
    f(X)
    with ft.profiler.profile() as found:
        for _ in range(3):
            f(X)
    mine = [op for op in found.operations if op.program == "product"]
    assert mine and all(op.calls % 3 == 0 and op.seconds > 0 for op in mine)
    assert any(op.line.endswith(f":{SORT_LINE}") for op in mine)
    assert sum(op.seconds for op in found.operations) > 0 and found.seconds > 0
    assert "product" in str(found)


def test_a_trace_is_written_for_perfetto_and_tensorboard(tmp_path):
    with ft.profiler.trace(tmp_path), ft.profiler.annotate("my step", number=3):
        ft.jit(product)(X)
    (file,) = tmp_path.rglob("*.trace.json.gz")
    names = {event.get("name", "") for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]}
    assert any(name.startswith("my step") for name in names)
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_one_profiler_at_a_time_and_none_is_left_running(tmp_path):
    with pytest.raises(ZeroDivisionError), ft.profiler.profile():
        raise ZeroDivisionError
    with ft.profiler.profile(), pytest.raises(ft.errors.ArgumentError, match="running already"):
        profiling.Session()
    out = io.StringIO()
    with ft.profiler.profile(), backends.xla.verbose(out):
        ft.jit(product)(X)
    assert "no times of operations here" in out.getvalue()


def test_memory_of_arrays():
    before = ft.profiler.memory_stats()
    x = fnp.zeros((1000, 1000))
    after = ft.profiler.memory_stats()
    assert after.in_use - before.in_use >= x.nbytes
    assert after.limit > after.in_use and after.peak > 0
    assert any(y is x for y in ft.profiler.live_arrays())
    number = len(ft.profiler.live_arrays())
    del x
    assert len(ft.profiler.live_arrays()) < number


def test_a_memory_profile_for_pprof(tmp_path):
    ft.profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())


def test_a_trace_that_is_begun_and_ended_with_named_steps(tmp_path):
    @ft.profiler.TraceAnnotation("outer", kind="once")
    def work(x):
        with ft.profiler.StepTraceAnnotation("train", step_num=3):
            return ft.profiler.annotate_function(lambda x: x + 1, "inner")(x)

    with pytest.raises(ArgumentError, match="no trace"):
        ft.profiler.stop_trace()
    ft.profiler.start_trace(tmp_path)
    try:
        with pytest.raises(ArgumentError, match="running already"):
            ft.profiler.start_trace(tmp_path)
        work(fnp.ones(3))
    finally:
        ft.profiler.stop_trace()
    (file,) = tmp_path.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    named = {e["name"]: e.get("args", {}) for e in events if "name" in e}
    assert {"outer", "train", "inner"} <= set(named)
    assert named["train"]["step_num"] == "3" and named["outer"]["kind"] == "once"


def test_profiles_name_cells_of_notebooks(monkeypatch):
    monkeypatch.setattr(source_info, "_cell", lambda file: "In[7]" if file == __file__ else None)
    f = ft.jit(product)
    f(X)
    with ft.profiler.profile() as found:
        f(X).block_until_ready()
    assert {f"In[7]:{SORT_LINE}"} <= {each.line for each in found.operations}
    assert source_info.in_notebook("/x/y.py:3") == "/x/y.py:3" and source_info.in_notebook("") == ""
