"""`python -m functorch_like.primitives` prints the table."""

import pytest

from functorch_like import core
from functorch_like.primitives.__main__ import kinds, main, platforms, table


def test_the_table_has_a_line_for_each_row():
    lines = table().splitlines()
    assert lines[0].split() == ["primitive", "family", *core.COLUMNS, "samples", "dtypes", "platforms"]
    assert sorted(line.split()[0] for line in lines[1:-1]) == sorted(core.TABLE)


@pytest.mark.parametrize(
    ("name", "dtypes", "where"),
    [("sin", "fc", "cpu gpu"), ("and", "iub", "cpu gpu"), ("sort", "fciub", "cpu gpu *"), ("psum", "-", "-")],
)
def test_dtypes_and_platforms_are_derived(name, dtypes, where):
    row = core.TABLE[name]
    assert set(kinds(row)) == set(dtypes)
    assert platforms(row) == where


def test_rows_in_full(capsys):
    assert main(["cumsum", "top_k"]) == 0
    text = capsys.readouterr().out
    assert "dtypes: int32" in text and "platforms: cpu gpu" in text and "not linear" in text
    assert main(["nothing"]) == 2
