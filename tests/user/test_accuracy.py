"""The accuracy report, and bounds on the errors of primitives."""

import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import core
from functorch_like.backends import compilation
from functorch_like.errors import ArgumentError
from functorch_like.testing import accuracy, peer
from functorch_like.testing.accuracy import Accuracy, Errors
from functorch_like.testing.accuracy_cases import CASES, inputs

# Errors of the lowerings in ulp, rounded up.
SINGLE = {
    "add": 0.51, "mul": 0.51, "div": 0.51, "sqrt": 0.51, "exp": 1.5, "log": 1.5, "log1p": 2, "expm1": 4, "logistic": 3,
    "sinh": 2, "cosh": 2, "tanh": 5, "lgamma": 90, "bessel_i0e": 1, "bessel_i1e": 1, "igamma": 1, "igammac": 1,
    "erf": 4, "erfc": 5, "erf_inv": 5, "polygamma m=1": 1, "zeta": 1, "regularized_incomplete_beta": 1,
    "asin": 0.51, "acos": 0.51, "atan": 0.51, "atan2": 0.51, "cbrt": 0.51, "round rounding_method=1": 0,
    "nextafter": 0, "integer_pow y=3": 2, "pow": 1,
}  # fmt: skip
DOUBLE = {"erfc": 5, "erf_inv": 5, "atanh": 3, "tanh": 4, "sinh": 3, "polygamma m=2": 4}


def test_primitives_exist():
    assert {case.primitive for case in CASES.values()} <= set(core.TABLE)


@pytest.mark.parametrize("name", SINGLE)
def test_errors_stay_small(name):
    found = accuracy.measure(name, "float32", 300)
    assert found.ours.ulp <= SINGLE[name] and not found.ours.wrong, found


@pytest.mark.parametrize("name", DOUBLE)
def test_errors_stay_small_in_double_precision(name):
    found = accuracy.measure(name, "float64", 300)
    assert found.ours.ulp <= DOUBLE[name] and not found.ours.wrong, found


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "rem"])
def test_large_arrays_are_rounded_once(name):
    rng = np.random.default_rng(0)
    count = 20000  # enough for the lowerings of large arrays
    sizes = [10 ** rng.uniform(-30, 4, count) for _ in range(2 if name == "rem" else 1)]
    operands = [(rng.choice([-1, 1], count) * s).astype(np.float32) for s in sizes]
    if name == "rem":
        operands[1] = (operands[0] * rng.uniform(1e-6, 2, count)).astype(np.float32)
    want = {"rem": np.fmod}.get(name, getattr(np, name, None))(*[x.astype(np.float64) for x in operands])
    # The quick tier has the forms of small arrays.
    for tiers, most in (("off", 0.51), ("quick", 1.7)):
        with compilation.flags(tiers=tiers):
            got = np.asarray(ft.jit(core.TABLE[name])(*operands))
        assert accuracy.errors(operands, got, want).ulp <= most, tiers


@pytest.mark.parametrize("name", ["sin", "cosh", "atan", "atanh", "log1p", "sqrt", "tanh"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_results_are_close(name, dtype):
    found = accuracy.measure(name, dtype, 200)
    assert found.ours.ulp <= 4 and not found.ours.wrong, found


def test_the_report_is_printed(capsys):
    assert accuracy.main(["--primitive", "sqrt", "--dtype", "float32", "--dtype", "bfloat16", "--points", "50"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 3 and out[1].startswith("sqrt") and "bfloat16" in out[2]


def test_the_page_is_written(tmp_path, capsys):
    page = tmp_path / "accuracy.md"
    accuracy.main(["--primitive", "sqrt", "--dtype", "float32", "--points", "50", "--markdown", str(page)])
    capsys.readouterr()
    assert page.read_text().splitlines()[-3:-1] == ["| primitive | float32 |", "|---|---|"]


def test_an_error_is_seen():
    x = inputs(CASES["sqrt"], np.dtype(np.float32), 50)
    want = np.sqrt(np.abs(x[0]).astype(np.longdouble))
    got = np.asarray(want, np.float32)
    finite = np.flatnonzero(np.isfinite(got) & (got > 0))
    off = got.copy()
    off[finite[3]] = np.nextafter(np.nextafter(off[finite[3]], np.float32(9)), np.float32(9))
    assert accuracy.errors(x, got, want).ulp <= 0.51 and 1.4 <= accuracy.errors(x, off, want).ulp <= 2.6
    off[finite[5]] = np.nan
    assert accuracy.errors(x, off, want).wrong == 1


def test_what_is_less_exact_than_jax_is_reported():
    found = Accuracy("exp", "float32", "mpmath", 9, Errors(2.0, (), 0, ""), Errors(1.9, (), 0, ""))
    assert not accuracy.worse(found)
    assert accuracy.worse(found._replace(theirs=Errors(1.0, (), 0, "")))
    assert accuracy.worse(found._replace(ours=Errors(1.0, (), 1, "")))
    assert not accuracy.worse(found._replace(theirs="no such function"))


def test_another_python_evaluates():
    jobs = [peer.Job("numpy", "sqrt", [np.float64(2)], {}), peer.Job("numpy", "no_such_function", [], {})]
    root, missing = peer.evaluate(sys.executable, jobs)
    assert root == np.sqrt(2) and "AttributeError" in missing
    with pytest.raises(ArgumentError, match="cannot be run"):
        peer.evaluate("/no/such/python", jobs)


def test_one_primitive_is_measured_in_a_new_process():
    command = [sys.executable, "-m", "functorch_like.testing.accuracy", "--primitive", "bessel_i0e", "--points", "20"]
    done = subprocess.run([*command, "--dtype", "float32"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bessel_i0e" in done.stdout
