import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run(tmp_path):
    """Run Python code in a new process, outside the source tree; return its stripped output, or stderr if it fails."""

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
