"""Laws between transformations, on random programs that nest them. Rows are tested alone in tests/rows/."""

import os

import pytest
from hypothesis import settings
from support.laws import OF_MAPPINGS, OF_PROGRAMS, law

pytestmark = pytest.mark.usefixtures("quickly")

# Nested programs cost some 50 ms to compile, so the everyday run draws fewer than Hypothesis would.
EXAMPLES = settings.default.max_examples if os.environ.get("HYPOTHESIS_PROFILE", "ci") != "ci" else 40


@pytest.mark.parametrize("name", [*OF_PROGRAMS, *OF_MAPPINGS])
def test_law(name):
    law(name, EXAMPLES)()
