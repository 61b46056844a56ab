import os
import subprocess
import sys
import textwrap

import pytest


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
