"""The documentation site builds without a warning; a broken link is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="the tests run without the source tree")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="pip install -e '.[docs]' to build the site")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-P", "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", out]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_public_names_are_listed_once_with_a_line(site):
    index = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in ("ft.grad", "fnp.linalg.solve", "ft.scipy.special.logsumexp", "ft.errors.ShapeError", "fnp.nanmean"):
        assert index.count(f"<code>{name}</code>") == 1, name


def test_pages_of_functions_have_arguments_and_examples(site):
    page = (site / "api" / "functorch_like" / "index.html").read_text(encoding="utf-8")
    assert "argnums" in page and 'id="grad"' in page and "Raises" in page


def test_nothing_is_loaded_from_elsewhere(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in page and "unpkg.com" not in page
