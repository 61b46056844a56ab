"""Settings of the whole run: that every row is there, how much is drawn and sampled, and how programs are compiled."""

import os

import pytest
from hypothesis import HealthCheck, settings
from support.quick import QUICK

from functorch_like import backends, primitives

primitives.load()  # many tests are made from the table of rows, which fills as rows are needed

# "ci" draws the same examples every time, so a red build is red for a reason in the change; "nightly" goes looking.
# "thin" is for one more Python or jaxlib: it samples what does not depend on them.
# No deadlines: the first call of anything compiles.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("thin", settings.get_profile("ci"), max_examples=10)
settings.register_profile(
    "nightly", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
settings.load_profile(PROFILE)

#: In the thin profile a test has this many of its sets of parameters,
SETS = 4
#: but for those that take every row to XLA, run every public function's example, and draw programs themselves.
WHOLE = {"test_compiled_is_the_meaning", "test_docstring_examples", "test_law"}


def pytest_collection_modifyitems(config, items):
    if PROFILE != "thin":
        return
    sets = {}
    for item in items:
        sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {
        item
        for same in sets.values()
        for item in (same if getattr(same[0], "originalname", "") in WHOLE else same[:: -(-len(same) // SETS)])
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture
def quickly():
    """The test's programs are compiled for quick compiling: tests/support/quick.py says when that is right."""
    with backends.xla.options(QUICK):
        yield
