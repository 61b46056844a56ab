"""The error catalogue and the page of mistakes: each message is what the code gives, and the mended code runs."""

import inspect
from pathlib import Path

import pytest
from support import error_pages

from functorch_like import errors

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the tests run without the source tree")
CASES = {f"{page}: {case.title}": case for page in error_pages.PAGES for case in error_pages.cases(page)}
#: Snippets that need a library that is no dependency.
NEEDS = {"CheckpointError": "safetensors"}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_gets_the_message_of_the_page(name):
    case = CASES[name]
    if case.title in NEEDS:
        pytest.importorskip(NEEDS[case.title])
    error = error_pages.raised(case)
    found = error_pages.told(error)
    assert error_pages.same(case.message, found), f"`python tests/support/error_pages.py` writes it anew:\n{found}"
    error_pages.run(case, case.instead)


def test_every_class_of_errors_has_an_example():
    aliases = {"ConcretizationTypeError", "UnexpectedTracerError", "JaxRuntimeError", "TypePromotionError", "FtError"}
    shown = {case.message.split(":")[0] for case in error_pages.cases("errors/catalogue.md")}
    titles = {case.title for case in error_pages.cases("errors/catalogue.md")}
    assert shown == titles
    assert {name for name in errors.__all__ if inspect.isclass(getattr(errors, name))} - aliases == titles
