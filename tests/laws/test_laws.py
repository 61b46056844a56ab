"""Laws between transformations, on random programs that nest them. Primitives are tested alone in tests/primitives/."""

import itertools
import os

import pytest
from hypothesis import settings
from support.laws import OF_MAPPINGS, OF_PROGRAMS, law

from functorch_like import backends

# A nested program takes half a second to compile in its optimised form, so the everyday run draws few. Nightly runs
# draw thousands; tests/suite_notices checks that draws which compile quickly find planted faults.
EXAMPLES = {"ci": 15, "thin": 4}.get(os.environ.get("HYPOTHESIS_PROFILE", "ci"), settings.default.max_examples)


@pytest.mark.parametrize("name", [*OF_PROGRAMS, *OF_MAPPINGS])
def test_law(name):
    # Other compile options: each fourth program begins with its optimised form, the others as users' programs do.
    tiers = itertools.cycle(("off", "auto", "auto", "auto"))
    law(name, EXAMPLES, lambda: backends.compilation.flags(tiers=next(tiers)))()
