"""Errors in a notebook name lines by cell, not by the temporary file that the kernel makes for the cell."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.source_info import Line

CELL = "/tmp/ipykernel_7/123.py"


@pytest.fixture
def kernel(monkeypatch):
    """Name cells as IPython's compiler does."""
    named = lambda file: ("Cell", "In[3]") if file == CELL else None
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(compile=SimpleNamespace(format_code_name=named))
    monkeypatch.setitem(sys.modules, "IPython", ipython)


@pytest.mark.usefixtures("kernel")
def test_a_cell():
    assert str(Line(CELL, 2, "loss")) == "In[3]:2 in loss"
    assert Line(CELL, 2, "loss").short == "In[3]:2"


@pytest.mark.usefixtures("kernel")
def test_a_file_that_a_notebook_imports():
    assert str(Line("/home/me/model.py", 2, "loss")) == "/home/me/model.py:2 in loss"
    assert Line("/home/me/model.py", 2, "loss").short == "model.py:2"


def test_ipython_imported_outside_of_a_notebook(monkeypatch):
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert str(Line(CELL, 2, "loss")) == f"{CELL}:2 in loss"


@pytest.mark.usefixtures("kernel")
def test_errors_name_the_cell():
    code = compile("def double(x):\n    return x @ x.T", CELL, "exec")
    scope = {}
    exec(code, scope)
    with pytest.raises(ft.FtError, match=r"at: In\[3\]:2 in double"):
        ft.jit(scope["double"])(fnp.ones((2, 3, 4)))
