"""Errors in notebooks: the parts laid out, wrapped at words, escaped."""

import json
import re
import subprocess
import sys

import pytest
from support.markup import fits, page

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.markup import error_page

WORDS = "sizes must be equal, or one of them 1, counted from the last dimension; add dimensions with x[:, None] " * 3


def error():
    return ft.errors.ShapeError(
        "shapes (3,) and (2,) do not broadcast: " + WORDS, operation="add(f32[3], f32[2])", chain="jit(loss) > grad",
        at="In[3]:2 in loss", rule="binary.py:12", fix="<script>alert(1)</script> " + WORDS,
    )  # fmt: skip


def test_the_parts_stand_below_each_other():
    lines = error_page.layout("ShapeError", error()._parts()).split("\n")
    assert lines[0] == "ShapeError: add(f32[3], f32[2])"
    names = [line[2:14].strip() for line in lines[1:] if line[2:3] != " "]
    assert names == ["reason", "under", "at", "rule", "what to do"]
    assert fits("\n".join(lines)) and all(line.startswith("    ") for line in lines[2:5])
    words = " ".join(lines).replace("what to do", "").split()
    assert all(word in words for word in str(error()).split() if word not in {"what", "to", "do:"} and ":" not in word)


def test_an_error_without_an_operation():
    parts = ft.errors.ArgumentError("no such thing", fix="leave it out")._parts()
    assert error_page.layout("ArgumentError", parts).split("\n") == [
        "ArgumentError: no such thing",
        "  what to do  leave it out",
    ]
    assert error_page.layout("FtError", ft.FtError("")._parts()) == ""


def test_html_of_an_error():
    found = page(error())
    assert "<script>" in found.text and "ShapeError: add(f32[3], f32[2])" in found.text
    assert found.tags.count("tr") == 5


def test_outside_of_ipython(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    try:
        fnp.ones(3) + fnp.ones(2)
    except ft.FtError as e:
        lines = e._render_traceback_()
    assert lines[0].startswith("Traceback") and "what to do" in lines[-1]


CELLS = """
import io, json, sys
from contextlib import redirect_stdout
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import functorch_like as ft, functorch_like.numpy as fnp")
found = {}
for mode in ("Context", "Plain", "Verbose", "Minimal"):
    shell.run_line_magic("xmode", mode)
    out = io.StringIO()
    with redirect_stdout(out):
        shell.run_cell('''def loss(x):
    return fnp.ones((2, 3, 4)) @ fnp.ones((7, 5)) + x
ft.jit(loss)(fnp.ones(3))''')
    found[mode] = out.getvalue()
shell.run_line_magic("xmode", "Context")
out = io.StringIO()
with redirect_stdout(out):
    shell.run_cell('''try:
    1 / 0
except ZeroDivisionError:
    fnp.ones(3) + fnp.ones(2)''')
found["chained"] = out.getvalue()
print(json.dumps(found))
"""


def test_in_ipython():
    pytest.importorskip("IPython")
    made = subprocess.run([sys.executable, "-P", "-c", CELLS], capture_output=True, text=True, check=True)
    found = json.loads(made.stdout.splitlines()[-1])
    for mode, coloured in found.items():
        text = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert text.count("what to do") == 1 and "\n  what to do  " in text, text
        assert text.count("ShapeError: ") == 1, text
        assert "interpreters" not in text and "run_code" not in text
        end = text[text.index("ShapeError: ") :]
        assert max(map(len, end.splitlines())) <= 100
        if mode in ("Context", "Verbose"):
            assert "fnp.ones((2, 3, 4)) @" in text  # the user's frame
    assert "ZeroDivisionError" in found["chained"]
