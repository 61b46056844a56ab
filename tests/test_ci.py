"""What fails a build: tests that fail, beside others or alone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci/run"
pytestmark = pytest.mark.skipif(not RUN.is_file(), reason="the tests run without the source tree")

#: Beside others (-n) one test fails; alone it does as the environment says.
PYTEST = """#!/usr/bin/env bash
[[ "$1" == "-n" ]] || { echo "alone: ${!#}"; exit "$ALONE"; }
[[ "$TOGETHER" == 0 ]] && exit 0
mkdir -p "$KEPT/v/cache" && echo '{"tests/test_x.py::test_y[a b]": true}' > "$KEPT/v/cache/lastfailed"
exit 1
"""


@pytest.mark.parametrize(
    ("together", "alone", "code", "said"),
    [
        (0, 0, 0, "passed (here)"),
        (1, 0, 1, "failed (here): tests depend on their neighbours"),
        (1, 1, 1, "alone: tests/test_x.py::test_y[a b]"),
    ],
)
def test_a_test_that_fails_beside_others_fails_the_build(together, alone, code, said, tmp_path):
    text = RUN.read_text()
    functions = text[text.index("dependent=()") : text.index("mapfile -t found < <(pythons)")]
    fake = tmp_path / "bin/pytest"
    fake.parent.mkdir()
    fake.write_text(PYTEST)
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    script = 'set -euo pipefail; work="$1" workers=2; title() { echo "$1"; }\n' + functions
    run = subprocess.run(
        ["bash", "-c", f'{script}\ntested "$1"; finish " (here)"', "run", str(tmp_path)],
        env={**os.environ, "TOGETHER": str(together), "ALONE": str(alone), "KEPT": str(tmp_path / "kept")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code and said in run.stdout, run.stdout + run.stderr
    assert ("!!!   tests/test_x.py::test_y[a b]" in run.stdout) is (together > alone)
