"""pyproject.toml lists every package, and what is installed has them all."""

import importlib.metadata
import importlib.resources
import tomllib
from pathlib import Path

import pytest
from support.floors import PACKAGES

import functorch_like as ft

ROOT = Path(__file__).parents[1]
needs_tree = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the tests run without the source tree")


@needs_tree
def test_every_package_is_listed():
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        ".".join([name, *init.parent.relative_to(ROOT / top).parts])
        for top, name in PACKAGES.items()
        for init in (ROOT / top).rglob("__init__.py")
    }
    assert set(setuptools["packages"]) == folders


@needs_tree
def test_every_folder_of_code_is_a_package():
    folders = {path.parent for top in PACKAGES for path in (ROOT / top).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_types_are_shipped():
    assert (importlib.resources.files("functorch_like") / "py.typed").is_file()


def test_the_version_is_said_once():
    assert ft.__version__ == importlib.metadata.version("functorch_like")
