"""Every notebook runs from a clean kernel, and agrees with its paired text."""

import importlib.util
import re
from pathlib import Path

import pytest

#: Libraries of notebooks that the tests do not depend on.
NEEDS = {"jax_libraries": ("equinox", "optax")}
FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="there are no notebooks here"),
    # Other libraries warn about their event loops and paths; the kernel's own warnings go to the notebook.
    pytest.mark.filterwarnings("default"),
]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_text_and_notebook_agree(path):
    import jupytext

    cells, text = (
        [(cell.cell_type, cell.source) for cell in jupytext.read(file).cells]
        for file in (path, path.with_suffix(".py"))
    )
    assert cells == text, f"run: jupytext --sync {path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_a_clean_kernel(path, tmp_path):
    import nbclient
    import nbformat

    if absent := [name for name in NEEDS.get(path.stem, ()) if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(absent)}: docs/libraries.md")
    notebook = nbformat.read(path, as_version=4)
    # "python3" is the kernel of the environment that runs the tests, whatever the author's was called.
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_have_a_text_for_those_who_do_not_see_them(path):
    import nbformat

    outputs = [out for cell in nbformat.read(path, as_version=4).cells for out in cell.get("outputs", [])]
    pictures = [
        (kind, out.get("metadata", {})) for out in outputs for kind in out.get("data", {}) if kind.startswith("image/")
    ]
    missing = [kind for kind, metadata in pictures if len(metadata.get(kind, {}).get("alt", "")) < 20]
    assert not missing, "show pictures by functorch_like.examples.pictures.show(figure, alt)"
    drawn = [
        tag for out in outputs for tag in re.findall("<img[^>]*>", "".join(out.get("data", {}).get("text/html", "")))
    ]
    assert [tag for tag in drawn if "alt=" not in tag] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_was_run(path):
    import nbformat

    assert path.stat().st_size < 400_000
    cells = nbformat.read(path, as_version=4).cells
    assert all(cell.execution_count for cell in cells if cell.cell_type == "code")


def test_the_index_names_every_notebook():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"]({path.name})" not in index] == []
