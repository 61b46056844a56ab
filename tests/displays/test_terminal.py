"""Text for terminals, and the choice between it and HTML."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from support.markup import Page, page

import functorch_like as ft
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

TREE = {"w": 1, "b": 2}


@pytest.fixture
def environment(monkeypatch):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_colours_are_where_the_terminal_has_them(environment):
    screen, file = SimpleNamespace(isatty=lambda: True), SimpleNamespace(isatty=lambda: False)
    assert terminal.has_colours(screen) and not terminal.has_colours(file) and not terminal.has_colours(None)
    environment.setenv("NO_COLOR", "1")
    assert not terminal.has_colours(screen)
    environment.setenv("NO_COLOR", "")  # empty counts as not set
    environment.setenv("TERM", "dumb")
    assert not terminal.has_colours(screen)


def test_show_prints_with_colours(environment, capsys):
    ft.inspect.show(ft.inspect.tree(TREE))
    assert "\x1b" not in capsys.readouterr().out
    environment.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    ft.inspect.show(ft.inspect.tree(TREE))
    assert "\x1b[34m'b'\x1b[0m" in capsys.readouterr().out
    ft.inspect.show(ft.make_jaxpr(ft.numpy.sin)(1.0))
    assert "\x1b[34msin\x1b[0m" in capsys.readouterr().out
    assert "\x1b" not in repr(ft.inspect.tree(TREE))
    ft.inspect.show(3)
    assert capsys.readouterr().out == "3\n"


def test_show_displays_in_a_notebook(monkeypatch, capsys):
    shown = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=True)
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    tree = ft.inspect.tree(TREE)
    tree.show()
    assert shown == [tree] and capsys.readouterr().out == ""


def test_lines_end_at_words():
    text = "one two three four five six seven eight nine ten " * 5 + "/a/path/without/blanks" * 8
    lines = terminal.wrapped(text, "x: ", columns=40)
    assert all(len(line) <= 40 for line in lines[:-1]) and lines[0].startswith("x: one") and lines[1][:3] == "   "
    assert " ".join(lines).split()[1:] == text.split()
    assert terminal.wrapped("", "x: ") == ["x:"]
    assert terminal.wrapped("a\nb", "x: ") == ["x: a", "   b"]


def test_columns_and_bars():
    painted = [(terminal.ansi("a", "red"), "1"), ("bcd", "20")]
    assert [terminal.length(line) for line in terminal.columns(painted, numbers=[1])] == [7, 7]
    assert [terminal.bar(share, 4) for share in (-1, 0, 0.5, 1, 2)] == ["", "", "##", "####", "####"]
    assert terminal.columns([]) == []
    assert [terminal.trimmed("abcdefgh", most) for most in (8, 7, 3, 1)] == ["abcdefgh", "ab...gh", "abc", "a"]


@pytest.mark.parametrize("text", ["<script>", "a & b", '"quoted"', "\x00\x1b[31m", "\udc80", "é漢"])
def test_everything_is_escaped(text):
    made = elements.document(elements.element("code", text, title=text), elements.table((text,), [(text, 0)]))
    found = Page(made)
    assert found.tags.count("code") == 1 and "0" in found.text
    assert "<script>" not in made and "\x00" not in made and "\x1b" not in made
    made.encode("utf-8")
    assert text in found.text or text in ("\x00\x1b[31m", "\udc80")


def test_rules_outdo_those_of_notebooks():
    """JupyterLab's rules for tables and code name two classes; the package's name three, and match displays alone."""
    style = re.search(r"<style>(.*)</style>", elements.document())[1]
    selectors = [each for rule in re.findall(r"([^{}]+)\{", style) for each in rule.split(",")]
    assert len(selectors) > 15 and all(each.startswith(".ft.ft.ft") for each in selectors)


def test_attributes():
    assert elements.element("rect", x=0, open=True, hidden=False, rx=None) == '<rect x="0" open></rect>'


def test_long_names_and_paths_may_break_within():
    assert elements.breakable("/tmp/a_b.c") == "/<wbr>tmp/<wbr>a_<wbr>b.<wbr>c"
    assert elements.breakable("one, two... _") == "one, two... _"
    assert elements.breakable("a_<b>") == "a_<wbr>&lt;b&gt;"


def test_a_display_without_html_of_its_own():
    class Plain(Display):
        def layout(self, paint=terminal.plain):
            return "a < b"

    assert page(Plain()).text == "a < b" and repr(Plain()) == "a < b"
    printed = []
    Plain()._repr_pretty_(SimpleNamespace(text=printed.append), False)
    assert printed == ["a < b"]


def test_pictures_on_pages_are_there_small_and_described():
    docs = Path(__file__).parents[2] / "docs"
    if not docs.is_dir():
        pytest.skip("the tests run without the source tree")
    text = (docs / "displays.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[([^\]]*)\]\((images/[^)]*)\)", text)
    assert len(pictures) >= 4 and all(len(about.split()) > 5 for about, _ in pictures)
    assert all((docs / path).stat().st_size < 60_000 for _, path in pictures)
