"""The plugin in a pytest of its own, loaded by entry point, or by name if the installation has no entry point."""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "pytest_functorch_like.py"
INSTALLED = any(e.value == "pytest_functorch_like" for e in importlib.metadata.entry_points(group="pytest11"))
pytestmark = pytest.mark.skipif(not (INSTALLED or PLUGIN.is_file()), reason="the plugin is neither installed nor here")

TESTS = """
import pytest

@pytest.mark.gpu
def test_on_gpu():
    import functorch_like as ft
    assert ft.devices("gpu")

kept = []

@pytest.mark.check_leaks
def test_leak():
    import functorch_like as ft
    ft.jit(lambda x: kept.append(x) or x)(1.0)

@pytest.mark.check_leaks
def test_error_is_reported_as_itself():
    import functorch_like as ft
    ft.jit(lambda x: 1 / 0)(1.0)

def test_unmarked_leak():
    import functorch_like as ft
    ft.jit(lambda x: kept.append(x) or x)(2)

def test_counts(ft_counts):
    import functorch_like as ft
    ft.jit(lambda x: x * 3.5)(1.0)
    assert ft_counts.each["traces"] == 1
"""


def run(tmp_path, text, *options):
    (tmp_path / "test_it.py").write_text(text)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-W", "error", "--strict-markers", "-rA", "-q"]
    command += ["-p", "no:cacheprovider", *options]
    if not INSTALLED:
        shutil.copy(PLUGIN, tmp_path)
        command += ["-p", "pytest_functorch_like"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout


def test_markers_and_fixtures(tmp_path):
    out = run(tmp_path, TESTS)
    assert "PASSED test_it.py::test_on_gpu" in out or "needs a GPU: Unknown backend: there is no" in out
    assert "FAILED test_it.py::test_leak" in out and "1 traced value outlived its transformation" in out
    assert "FAILED test_it.py::test_error_is_reported_as_itself - ZeroDivisionError" in out
    assert "PASSED test_it.py::test_unmarked_leak" in out and "PASSED test_it.py::test_counts" in out


def test_the_option_checks_every_test(tmp_path):
    assert "FAILED test_it.py::test_unmarked_leak" in run(tmp_path, TESTS, "--ft-check-leaks", "-k", "unmarked")


def test_nothing_is_imported_for_other_tests(tmp_path):
    text = "import sys\ndef test(): assert not {'functorch_like', 'jaxlib'} & set(sys.modules)\n"
    assert "1 passed" in run(tmp_path, text)
