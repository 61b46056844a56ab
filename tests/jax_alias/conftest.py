import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run(tmp_path):
    """Run Python text in a fresh process outside the source tree, with or without the alias. Return its output."""

    def run(text, *arguments, alias=True, paths=(), fails=False, **environment):
        search = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])
        how = ["-m", "functorch_like.as_jax"] if alias else []
        done = subprocess.run(
            [sys.executable, *how, "-c", textwrap.dedent(text), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": search, **environment},
            cwd=tmp_path,
            timeout=300,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout.strip()

    return run


@pytest.fixture
def library(tmp_path):
    """Return a folder with a library written for JAX, whose text the test gives."""

    def library(text):
        folder = tmp_path / "site"
        folder.mkdir(exist_ok=True)
        (folder / "library.py").write_text(textwrap.dedent(text))
        return folder

    return library
