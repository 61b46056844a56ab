"""Every notebook runs from a clean kernel, and says what its paired text says."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="there are no notebooks here"),
    # Other people's messages about their own event loops and paths; the kernel's own warnings go to the notebook.
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

    notebook = nbformat.read(path, as_version=4)
    # "python3" is the kernel of the environment that runs the tests, whatever the author's was called.
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
