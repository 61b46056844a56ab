"""Laws between transformations, on random programs that nest them. Primitives are tested alone in tests/primitives/."""

import os

import pytest
from hypothesis import settings
from support.laws import OF_MAPPINGS, OF_PROGRAMS, law

# A nested program takes half a second to compile under users' options, so the everyday run draws few. Nightly runs draw
# thousands; tests/suite_notices asks for planted faults to be noticed by draws that compile quickly.
EXAMPLES = {"ci": 15, "thin": 4}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), settings.default.max_examples)


@pytest.mark.parametrize("name", [*OF_PROGRAMS, *OF_MAPPINGS])
def test_law(name):
    law(name, EXAMPLES)()
