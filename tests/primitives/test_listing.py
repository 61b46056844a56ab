"""`python -m functorch_like.primitives` prints the table, and writes the documentation's page of it."""

from pathlib import Path

import pytest

from functorch_like import core
from functorch_like.core import NotDefined
from functorch_like.primitives.__main__ import builtin_primitives, kinds, main, markdown, platforms, table
from functorch_like.primitives.base.lowering import alternatives_of

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"


def test_the_table_has_a_line_for_each_primitive():
    lines = table().splitlines()
    assert lines[0].split() == ["primitive", "family", *core.RULES, "samples", "dtypes", "platforms"]
    names = [line.split()[0] for line in lines[1:-1]]
    assert sorted(names) == sorted(name for name, primitive in core.TABLE.items() if primitive.builtin)
    assert lines[-1] == f"{len(names)} primitives"


@pytest.mark.parametrize(
    ("name", "dtypes", "where"),
    [
        ("sinh", "fc", "cpu gpu"),
        ("exp", "fc", "cpu gpu +"),
        ("and", "iub", "cpu gpu"),
        ("sort", "fciub", "cpu gpu * +"),
        ("psum", "-", "-"),
    ],
)
def test_dtypes_and_platforms_are_derived(name, dtypes, where):
    primitive = core.TABLE[name]
    assert set(kinds(primitive)) == set(dtypes)
    assert platforms(primitive) == where


def test_primitives_in_full(capsys):
    assert main(["cumsum", "top_k"]) == 0
    text = capsys.readouterr().out
    assert "dtypes: int32" in text and "platforms: cpu gpu" in text and "not linear" in text
    assert "on CPUs, more than 32 elements: blocks" in text
    assert main(["nothing"]) == 2


def test_the_page_says_everything_of_each_primitive():
    text = markdown()
    for primitive in builtin_primitives():
        assert f"| {primitive.name} | {primitive.family} |" in text
        for alternative in alternatives_of(primitive.lower):
            assert f"| {primitive.name} | {alternative.limits} | {alternative.name} |" in text
        for rule in core.RULES:
            if isinstance(getattr(primitive, rule), NotDefined):
                assert f"{getattr(primitive, rule)}." in text


def test_the_page_is_written(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert main(["--markdown", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == markdown()
    assert main(["--markdown"]) == 2
    assert "name of one file" in capsys.readouterr().err


def test_the_documentation_s_page_is_up_to_date():
    command = "python -m functorch_like.primitives --markdown docs/primitives.md"
    assert PAGE.read_text(encoding="utf-8") == markdown(), f"run: {command}"
