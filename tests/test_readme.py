"""Code in the README and the pages in docs/ runs, and their commands are those that CI uses."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="the tests run without the source tree")


def test_its_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "tanh" in capsys.readouterr().out


#: Pages whose code needs libraries that are not dependencies.
NEEDS = {
    "training.md": ["safetensors"], "recipes/saving.md": ["safetensors"], "recipes/einops.md": ["einops"],
    "recipes/pytorch.md": ["torch"], "recipes/data_libraries.md": ["pandas", "sklearn", "scipy"],
}  # fmt: skip
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_code_on_pages_runs(page):
    for library in NEEDS.get(page, []):
        pytest.importorskip(library)
    namespace: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    if any("jax_alias.install()" in block for block in blocks):  # its changes last as long as its process
        subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=True)
        return
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)
    for name, test in list(namespace.items()):
        if name.startswith("test_"):
            test()


def test_its_links_lead_somewhere():
    tops = "functorch_like|primitives|backends|notebooks|benchmarks|docs"
    named = re.findall(rf"`((?:{tops})/[\w./]*)`", (ROOT / "README.md").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", "notebooks/README.md"])
def test_links_outside_of_the_site_lead_somewhere(page):
    folder = (ROOT / page).parent
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [path for path in linked if not (folder / path).exists()] == []


def test_pictures_have_a_text_of_their_own():
    pages = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")]
    pictures = [text for page in pages for text in re.findall(r"!\[([^\]]*)\]\(", page.read_text(encoding="utf-8"))]
    assert len(pictures) > 5
    assert all(len(text) > 20 for text in pictures)


def test_ci_installs_what_it_says():
    assert ".venv/bin/pip install -e '.[test]' && .venv/bin/pytest" in (ROOT / "README.md").read_text()
    assert re.search(r"installed .*-e '\.\[test\]'", (ROOT / ".ci" / "run").read_text())
