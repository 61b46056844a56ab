"""The repository, a wheel and an editable install have one layout."""

import importlib.metadata
import importlib.resources
import os
import subprocess
import sys
from pathlib import Path

import jaxlib
import numpy
import pytest
from support.floors import PACKAGES

import functorch_like as ft

ROOT = Path(__file__).parents[1]
needs_tree = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the tests run without the source tree")


@needs_tree
@pytest.mark.parametrize("folder", [top for top in PACKAGES if top != "functorch_like"])
def test_the_package_has_a_link_to_each_folder_at_the_top(folder):
    link = ROOT / "functorch_like" / folder
    assert link.is_symlink() and link.samefile(ROOT / folder)


@needs_tree
def test_python_at_the_top_of_a_clone_imports_the_clone():
    """`python -m pytest` does the same there, with any kind of install: an editable one has no hooks under `-S`."""
    libraries = {str(Path(library.__file__).parents[1]) for library in (numpy, jaxlib)}
    code = "import functorch_like as ft; print(*(m.__file__ for m in (ft, ft.backends, ft.primitives)), sep='\\n')"
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    folders = [ROOT / "functorch_like" / name for name in ("", "backends", "primitives")]
    assert [Path(line) for line in run.stdout.split()] == [folder / "__init__.py" for folder in folders], run.stderr


@needs_tree
def test_every_folder_of_code_is_a_package():
    folders = {path.parent for top in PACKAGES for path in (ROOT / top).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_types_are_shipped():
    assert (importlib.resources.files("functorch_like") / "py.typed").is_file()


def test_the_version_is_said_once():
    assert ft.__version__ == importlib.metadata.version("functorch_like")
