"""The accuracy report judges every row it names, and rows stay as exact as they are."""

import pytest

from functorch_like import core
from functorch_like.testing import accuracy

# Ulp in float32: what the lowerings give, rounded up.
LIMITS = {
    "add": 0.51, "mul": 0.51, "div": 0.51, "sqrt": 0.51, "exp": 1.5, "log": 1.5, "log1p": 2, "expm1": 4, "logistic": 3,
    "sinh": 4, "cosh": 4, "tanh": 5, "lgamma": 12, "bessel_i0e": 1, "bessel_i1e": 1, "igamma": 1, "igammac": 1,
}  # fmt: skip


def test_rows_exist():
    assert set(accuracy.ROWS) <= set(core.TABLE)


@pytest.mark.parametrize("name", LIMITS)
def test_errors_stay_small(name):
    row = accuracy.measure(core.TABLE[name], "float32", 300)
    assert row.ulp <= LIMITS[name] and not row.wrong, row


def test_the_report_is_printed(capsys):
    assert accuracy.main(["--row", "sqrt", "--dtype", "float32", "--dtype", "bfloat16", "--points", "50"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 3 and out[1].startswith("sqrt") and "bfloat16" in out[2]
