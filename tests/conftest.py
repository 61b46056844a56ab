"""Settings of the whole run: that every row is there, and how Hypothesis draws."""

import os

from hypothesis import HealthCheck, settings

from functorch_like import primitives

primitives.load()  # many tests are made from the table of rows, which fills as rows are needed

# "ci" draws the same examples every time, so a red build is red for a reason in the change; "nightly" goes looking.
# No deadlines: the first call of anything compiles.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "nightly", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
