"""Actions after the import of a module run once, and leave the module as its own loader makes it."""

import copy
import importlib
import importlib.util
import runpy
import sys

import pytest

from functorch_like.on_import import on_import


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "imported_later.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "imported_later"
    sys.modules.pop("imported_later", None)


def test_an_action_waits_for_the_import_and_is_done_once(module):
    seen = []
    on_import(module, lambda m: seen.append(m.x))
    assert importlib.util.find_spec(module) is not None and seen == []  # found, but not loaded
    made = importlib.import_module(module)
    assert seen == [1] and type(made.__loader__).__name__ == type(made.__spec__.loader).__name__ == "SourceFileLoader"
    importlib.reload(made)
    assert seen == [1]


def test_tools_read_a_module_before_its_import(module):
    on_import(module, print)
    loader = importlib.util.find_spec(module).loader
    assert loader.get_source(module) == "x = 1\n" and copy.copy(loader).loader is loader.loader
    assert runpy.run_module(module)["x"] == 1


def test_a_module_that_is_loaded_is_taken_at_once(module):
    made = importlib.import_module(module)
    seen = []
    on_import(module, seen.append)
    assert seen == [made]


def test_a_module_that_is_nowhere_stays_an_error():
    on_import("imported_never", print)
    with pytest.raises(ModuleNotFoundError, match="imported_never"):
        importlib.import_module("imported_never")
