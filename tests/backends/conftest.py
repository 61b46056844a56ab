import os
import subprocess
import sys
import textwrap

import pytest

from functorch_like.backends.settings import SETTINGS


@pytest.fixture(autouse=True)
def as_before():
    """What a test assigns is gone after it."""
    before = {name: (s.value, s.source) for name, s in SETTINGS.items()}
    yield
    for name, s in SETTINGS.items():
        if name in before and s.value != before[name][0]:
            s.set(before[name][0]) if before[name][1] != "default" else s.reset()


@pytest.fixture
def run(tmp_path):
    """Run Python text in a fresh process, away from the source tree; its output, or stderr where it fails."""

    def run(text, *, fails=False, **environment):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            cwd=tmp_path,
            timeout=120,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout.strip()

    return run
