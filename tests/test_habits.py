"""Habits no linter setting can hold by itself."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the tests run without the source tree")
SOURCES = ("functorch_like", "backends", "primitives", "tests", "benchmarks", "notebooks")


def test_a_shadowed_test_is_never_excused():
    """F811 finds a test that a later one of the same name replaces; silenced, that test never runs again."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    ignored = [*lint["ignore"], *(rule for rules in lint["per-file-ignores"].values() for rule in rules)]
    assert "F" in lint["select"]
    assert not [rule for rule in ignored if "F811".startswith(rule)]
    excused = re.compile(r"noqa:[^#\n]*F811|noqa\s*$", re.MULTILINE)
    files = [path for top in SOURCES for path in (ROOT / top).rglob("*.py") if path != Path(__file__)]
    assert [path for path in files if excused.search(path.read_text())] == []
