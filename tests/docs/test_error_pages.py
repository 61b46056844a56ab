"""The error catalogue and the page of mistakes: each message is the code's own, and the corrected code runs."""

import inspect
import re
from pathlib import Path

import pytest
from support import error_pages

import functorch_like as ft
from functorch_like import errors

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the tests run without the source tree")
CASES = {f"{page}: {case.title}": case for page in error_pages.PAGES for case in error_pages.cases(page)}
#: Snippets that need a library that is not a dependency.
NEEDS = {"CheckpointError": ["safetensors"]}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_gets_the_message_of_the_page(name):
    case = CASES[name]
    for library in [*re.findall(r"^import (\w+)", case.refused, re.MULTILINE), *NEEDS.get(case.title, [])]:
        pytest.importorskip(library)
    ft.devices()  # some errors need devices that are in use
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


def test_there_are_a_hundred_mistakes_and_all_but_a_few_have_a_remedy():
    mistakes = error_pages.cases("errors/mistakes.md")
    assert len(mistakes) >= 100 and len({case.title for case in mistakes}) == len(mistakes)
    without = [case.title for case in mistakes if not re.search(r"what to do|; use |did you mean", case.message)]
    assert len(without) <= 4, without  # messages of Python and NumPy
