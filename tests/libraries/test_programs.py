"""Small programs that use libraries written for JAX give the results recorded on JAX.

`record.py` records them. A program is skipped where its libraries are not installed, unless FT_NEED_LIBRARIES is set;
`pip install --no-deps` installs them without JAX: see docs/libraries.md.
"""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
VALUES = json.loads((HERE / "values.json").read_text())
PROGRAMS = sorted((HERE / "programs").glob("*.py"))


def missing(program):
    """Return the libraries that a program imports and the environment lacks."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return sorted(name for name in names - {"jax"} if importlib.util.find_spec(name) is None)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_it_gives_what_it_gives_on_jax(program):
    if absent := missing(program):
        (pytest.fail if os.environ.get("FT_NEED_LIBRARIES") else pytest.skip)(f"needs {', '.join(absent)}")
    command = [sys.executable, "-P", "-m", "functorch_like.as_jax", str(HERE / "record.py"), "--print", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found, want = json.loads(done.stdout.splitlines()[-1]), VALUES[program.stem]["values"]
    assert found.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=2e-5, err_msg=name)
