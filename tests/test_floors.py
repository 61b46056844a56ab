"""The repository keeps to its floors, and the checker of floors finds planted violations."""

import re
from pathlib import Path

import pytest
from support.floors import FLOORS, markdown, violations

ROOT = Path(__file__).parents[1]
needs_tree = pytest.mark.skipif(not (ROOT / "backends").is_dir(), reason="the tests run without the source tree")


@needs_tree
def test_every_import_goes_down():
    assert violations(ROOT) == []


@needs_tree
def test_the_table_names_no_folder_twice():
    rooms = [room for rooms in FLOORS for room in rooms]
    assert len(rooms) == len(set(rooms))


@needs_tree
def test_the_documentation_shows_the_floors():
    page = (ROOT / "docs/architecture.md").read_text()
    assert markdown(ROOT) in page, "run: python tests/support/floors.py"


@needs_tree
def test_files_and_names_of_the_documentation_exist():
    """`dir/file.py` is a file of the tree or of the package; `name` in brackets after it is defined in that file."""
    page = (ROOT / "docs/architecture.md").read_text()
    missing = []
    for file, brackets in re.findall(r"`([\w/]+\.py)`(?: \(((?:`[\w.]+`(?:, )?)+)\))?", page):
        path = next((p for top in (ROOT, ROOT / "functorch_like") if (p := top / file).is_file()), None)
        text = path.read_text() if path else ""
        names = re.findall(r"`(?:\w+\.)*(\w+)`", brackets)
        missing += [file] * (path is None) + [
            f"{file}: {n}" for n in names if not re.search(rf"(def|class) {n}\b", text)
        ]
    assert missing == [] and "functorch_like/errors.py" in page


CLEAN = {
    "functorch_like/errors.py": "",
    "functorch_like/core.py": "from functorch_like.errors import ShapeError",
    "functorch_like/transforms/jit.py": "from functorch_like import core",
    "functorch_like/__init__.py": "from functorch_like.transforms.jit import jit as jit",
    "functorch_like/transforms/__init__.py": "",
    "backends/__init__.py": "",
    "backends/xla/__init__.py": "from functorch_like.backends.xla.client import client",
    "backends/xla/client.py": "import jaxlib._jax",
    "backends/cuda.py": "from functorch_like.backends import xla",
    "primitives/__init__.py": "",
    "primitives/structural/data_movement.py": "from functorch_like.core import Primitive",
    "primitives/structural/__init__.py": "",
    "primitives/higher_order/__init__.py": "",
    "primitives/higher_order/call.py": "from functorch_like.primitives.structural import data_movement",
}

# Each entry is one bad file and a part of the message that it must cause.
PLANTED = {
    "upward": (
        "functorch_like/core.py",
        "import functorch_like.transforms.jit",
        "core.py:1: imports functorch_like/transforms/jit.py",
    ),
    "upward from a package": (
        "functorch_like/core.py",
        "from functorch_like.transforms import jit",
        "imports functorch_like/transforms/jit.py",
    ),
    "upward by the package's name": ("functorch_like/core.py", "from functorch_like import jaxpr", "__init__.py"),
    "upward and relative": ("backends/cuda.py", "from .. import core", "imports functorch_like/core.py"),
    "upward and late": (
        "functorch_like/core.py",
        "def f():\n    from functorch_like.transforms.jit import jit",
        "core.py:2: imports",
    ),
    "upward by string": (
        "functorch_like/core.py",
        "import importlib\njit = importlib.import_module('functorch_like.transforms.jit')",
        "core.py:2: imports functorch_like/transforms/jit.py",
    ),
    "first-order uses higher-order": (
        "primitives/structural/data_movement.py",
        "from functorch_like.primitives.higher_order import call",
        "imports primitives/higher_order/call.py",
    ),
    "neighbour on the same floor": (
        "primitives/linalg/qr.py",
        "from functorch_like.primitives.windows import reduce_window",
        "imports primitives/windows/reduce_window.py",
    ),
    "cycle in a room": (
        "backends/xla/client.py",
        "from functorch_like.backends.xla import __doc__",
        "backends/xla/__init__.py -> backends/xla/client.py -> backends/xla/__init__.py: imports form a cycle",
    ),
    "jax": ("backends/xla/client.py", "import jax", "imports jax;"),
    "jax, late": ("backends/xla/client.py", "def f():\n    from jax._src import core", "client.py:2: imports jax;"),
    "jaxlib outside xla": ("backends/cuda.py", "from jaxlib import xla_client", "imports jaxlib;"),
    "jaxlib for types": (
        "functorch_like/core.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jaxlib",
        "core.py:3: imports jaxlib;",
    ),
    "bare backends": ("functorch_like/transforms/jit.py", "import backends.xla", "imports a bare `backends`"),
    "bare primitives": (
        "functorch_like/transforms/jit.py",
        "from primitives import structural",
        "imports a bare `primitives`",
    ),
}


def plant(root: Path, files: dict[str, str]) -> None:
    for file, text in files.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_clean_tree_is_clean(tmp_path):
    plant(tmp_path, CLEAN)
    assert violations(tmp_path) == []


@pytest.mark.parametrize(("file", "text", "complaint"), PLANTED.values(), ids=PLANTED)
def test_each_planted_violation_is_found(tmp_path, file, text, complaint):
    plant(tmp_path, {**CLEAN, "primitives/windows/reduce_window.py": "", file: text})
    found = violations(tmp_path)
    assert any(complaint in line for line in found), found


def test_a_type_checking_import_may_look_up(tmp_path):
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from functorch_like.transforms.jit import jit"
    plant(tmp_path, {**CLEAN, "functorch_like/core.py": guarded})
    assert violations(tmp_path) == []
