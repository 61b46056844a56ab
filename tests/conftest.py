"""Settings of the whole run: primitives, numbers of draws and samples, and the compilation of programs."""

import gc
import os
import platform
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from support import background

import functorch_like as ft
from functorch_like import caches, errors, primitives
from functorch_like.backends.settings import SETTINGS
from functorch_like.backends.xla import processor

primitives.load()  # many tests are parametrized by the table of primitives, which fills on demand

# "ci" draws the same examples every time, so a build fails because of the change; "nightly" draws new ones.
# "thin" is for a further Python or jaxlib: it runs a sample of the tests that do not depend on them.
# There is no deadline, because first calls compile, and no check of the time of draws, because machines may stall.
EACH = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **EACH)
settings.register_profile("thin", settings.get_profile("ci"), max_examples=10)
settings.register_profile("nightly", max_examples=2_000, **EACH)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)

#: In the thin profile a test keeps every twelfth of its sets of parameters, and at least two where it has two.
EVERY, LEAST = 12, 2
#: Tests that keep all sets: they compile every primitive, or draw programs themselves.
WHOLE = {"test_compiled_is_the_meaning", "test_law"}
#: Folders whose tests take turns on newer versions of Python: of two such versions each test runs on one. Tests of
#: primitives, XLA and the settings depend most on jaxlib and run on each.
BY_TURNS = {
    "displays", "distributed", "effects", "jax_alias", "laws", "messages", "numerics", "sharding", "testing",
    "training", "transformations", "types", "user",
}  # fmt: skip


def pytest_collection_modifyitems(config, items):
    if PROFILE != "thin":
        return
    sets = {}
    for item in items:
        sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = set()
    for name, same in sets.items():
        whole = name.rpartition("::")[2] in WHOLE
        others = (zlib.crc32(name.encode()) + sys.version_info[1]) % 2
        if others and not whole and not BY_TURNS.isdisjoint(name.split("/")):
            continue
        kept.update(same if whole else same[:: min(EVERY, -(-len(same) // LEAST))])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish(session):
    """Freeze the collected tests: they stay until the end, and the garbage collector need not visit them each time."""
    gc.collect()
    gc.freeze()


#: Names by which a test that counts is recognised: it uses one, or a helper of its module does.
COUNTERS = {"Counted", "count_compiles", "count_traces", "counters", "explain"}


def _counts(function, deeper=True):
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    helpers = [function.__globals__.get(name) for name in code.co_names] if deeper else []
    return not COUNTERS.isdisjoint(code.co_names) or any(_counts(helper, deeper=False) for helper in helpers)


@pytest.fixture(autouse=True)
def _nothing_kept(request):
    """Finish background compilations and clear the caches before a test that counts traces or compilations."""
    if _counts(getattr(request, "function", None)):
        background.finish()
        caches.drop()


@pytest.fixture(autouse=True)
def _draws_of_its_own(request):
    """Seed a module's generators anew for each test, so that its numbers do not depend on the tests before it."""
    for value in vars(getattr(request, "module", None) or object).values():
        if isinstance(value, np.random.Generator):
            seed = zlib.crc32(request.node.nodeid.encode())
            value.bit_generator.state = type(value.bit_generator)(seed).state


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test if XLA cannot compile conversions of float16, because the processor has no instructions for them."""
    try:
        return (yield)
    except errors.CompileError as e:
        if platform.machine() == "x86_64" and "f16c" not in processor.features() and "materialize symbols" in str(e):
            pytest.skip("XLA cannot compile float16 without F16C")
        raise


# Other compile options: values are tested in both tiers, and most programs of tests run too briefly to leave the first.
@pytest.fixture(autouse=True)
def _both_tiers(request, _settings_as_before):
    """Let every third test begin with optimised programs; in the thin profile, every sixth; by night, every second.

    The optimised form takes two to three times as long to make.
    """
    if not os.environ.get("FT_COMPILATION_TIERS"):
        every = {"thin": 6, "nightly": 2}.get(PROFILE, 3)
        ft.backends.compilation.tiers = "off" if zlib.crc32(request.node.nodeid.encode()) % every == 1 else "auto"


@pytest.fixture(autouse=True)
def _settings_as_before():
    """Restore the settings that a test, or an example in a docstring, assigns."""
    before = {name: (s.value, s.source) for name, s in SETTINGS.items()}
    yield
    for name, (value, source) in before.items():
        setting = SETTINGS[name]
        if (setting.value, setting.source) != (value, source):
            setting.reset() if source == "default" else setting.set(value)


@pytest.fixture
def users_tiers(tmp_path):
    """Tiers of compilation as users have them, with no program in memory or on disk."""
    background.finish()  # compilations of earlier tests
    ft.clear_caches()  # jitted forms of one function share programs
    with ft.backends.cache.flags(directory=str(tmp_path)):
        ft.backends.compilation.tiers = "auto"
        yield
