"""Memory that many shapes and static values leave behind is bounded, and `clear_caches` gives it back."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest
from support import background

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import caches
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import dispatch, mlir
from functorch_like.caches import Cache
from functorch_like.transforms.jit_state import JitState

MOST = 8


def programs():
    """Return the number of compiled programs in this process."""
    gc.collect()
    return len(ft.devices()[0].client.live_executables())


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(dispatch, "MOST_SIGNATURES", MOST)
    monkeypatch.setitem(JitState.traced.__globals__, "_MOST_TRACES", MOST)


def test_programs_of_many_shapes_are_bounded(few):
    f = ft.jit(lambda x: (2 * x + 1).sum())
    before = programs()
    for n in range(1, 4 * MOST):
        assert float(f(np.ones(n, np.float32))) == 3 * n
        assert programs() - before <= 2 * MOST
    assert float(f(np.ones(1, np.float32))) == 3  # forgotten, and compiled again


def test_programs_of_many_static_values_are_bounded(few):
    f = ft.jit(lambda x, k: x * k, static_argnums=1)
    before = programs()
    for k in range(4 * MOST):
        assert f(np.ones(3, np.float32), k).tolist() == [k] * 3
        assert programs() - before <= 2 * MOST


def test_calls_within_the_bound_stay_in_c(few):
    f = ft.jit(lambda x: x + 1)
    for n in [*range(1, 3 * MOST), *range(1, MOST // 2), *range(1, MOST // 2)]:
        f(np.ones(n, np.float32))
    before = xla.counters.misses
    for n in range(1, MOST // 2):
        f(np.ones(n, np.float32))
    assert xla.counters.misses == before


def test_the_oldest_go_first():
    cache = Cache()
    for k in range(9):
        cache.keep(k, -k, 8)
    assert list(cache) == [3, 4, 5, 6, 7, 8] and cache[8] == -8
    for k in (9, 10, 9):
        cache.keep(k, k, 8)
    assert len(cache) == 8 and cache[3] == -3  # a key that is there already needs no room


def entries():
    """Return the number of entries that caches keep between calls."""
    memos = (mlir.parsed, mlir.i64_array, mlir.integer, mlir.location, mlir.splat)
    return {
        "avals": len(ShapedArray._interned),
        "types": len(mlir.types),
        "attributes": sum(memo.cache_info().currsize for memo in memos),
        "caches": sum(len(kept) for kept in caches._kept.values() if isinstance(kept, dict)),
    }


def test_hundreds_of_shapes_leave_no_entries_behind():
    """10,000 compiled shapes took 283 MB for 1,000 programs and the entries counted here; clearing left 39 MB."""
    f = ft.jit(lambda x: (fnp.where(x > 0, x, 0) * 2 + 1).sum())
    ft.clear_caches()
    before = entries()
    for n in range(2001, 2301):
        f.lower(ft.ShapeDtypeStruct((n,), "float32")).as_text()
    after = entries()
    assert after["avals"] >= before["avals"] + 300 and after["types"] >= before["types"] + 300
    assert after["caches"] >= before["caches"] + 300
    ft.clear_caches()
    left = entries()
    assert all(left[kind] <= before[kind] for kind in before), (before, left)


def test_clearing_lets_traces_programs_and_avals_go():
    f = ft.jit(lambda x: fnp.where(x > 0, x, 0).sum())
    ft.clear_caches()
    before, avals = programs(), len(ShapedArray._interned)
    for n in range(7001, 7011):
        f(np.ones(n, np.float32))
        fnp.tanh(np.ones(n, np.float32))
    traced = [weakref.ref(f.trace(np.ones(n, np.float32))) for n in range(7001, 7011)]
    jaxprs = [weakref.ref(t().jaxpr) for t in traced]
    assert programs() >= before + 20 and len(ShapedArray._interned) >= avals + 20
    background.finish()
    ft.clear_caches()
    assert programs() <= before and not any(r() for r in [*traced, *jaxprs])
    assert len(ShapedArray._interned) <= avals + 2
    assert float(f(np.ones(7001, np.float32))) == 7001


def test_what_is_in_use_survives_clearing():
    """An aval that is still referenced stays unique; arrays and compiled functions keep working."""
    x = fnp.ones(1234)
    held = ShapedArray((1234, 5), np.float32)
    compiled = ft.jit(lambda x: x + 1).lower(x).compile()
    ft.clear_caches()
    assert ShapedArray((1234, 5), np.float32) is held and x.aval is ShapedArray((1234,), np.float32)
    assert float(compiled(x)[0]) == 2 and float((x + x)[0]) == 2


RSS = """
import numpy as np
import functorch_like as ft

# Other compile options: a program that runs slowly would be compiled again, beside what is measured.
ft.backends.compilation.tiers = "quick"

def megabytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))

f = ft.jit(lambda x: (x * 2 + 1).sum())
found = []
for _ in range(4):
    for n in range(1, 101):
        f(np.ones(n, np.float32))
    after = megabytes()
    ft.clear_caches()
    found += [after, megabytes()]
print(*found)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it is measured by way of /proc, and returned by glibc")
def test_clearing_gives_memory_back_to_the_system(tmp_path):
    """The programs are on disk from the second round on."""
    env = {**os.environ, "FT_CACHE": "1", "FT_CACHE_DIR": str(tmp_path / "cache"), "FT_PLATFORM": "cpu"}
    done = subprocess.run([sys.executable, "-P", "-c", RSS], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    _, _, full, cleared, *_, full_again, cleared_again = map(float, done.stdout.split())
    assert full - cleared > 6 and full_again - cleared_again > 6, done.stdout  # 0.18 MB per program
    # 18 MB is half of what the programs of two rounds take; the allocator sometimes keeps 9 MB.
    assert cleared_again < cleared + 18, done.stdout
