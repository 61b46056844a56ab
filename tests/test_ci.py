"""Tests that fail, beside others or alone, fail the build."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci/run"
pytestmark = pytest.mark.skipif(not RUN.is_file(), reason="the tests run without the source tree")

#: A fake pytest: beside others (-n) one test fails, unless TOGETHER is 0; alone it exits with the status ALONE.
PYTEST = """#!/usr/bin/env bash
[[ "$1" == "-n" ]] || { echo "alone: ${!#}"; exit "$ALONE"; }
[[ "$TOGETHER" == 0 ]] && exit 0
mkdir -p "$KEPT/v/cache" && echo '{"tests/test_x.py::test_y[a b]": true}' > "$KEPT/v/cache/lastfailed"
exit 1
"""


def _functions(script, work, environment):
    """Run a script that calls the functions of `.ci/run`."""
    text = RUN.read_text()
    functions = text[text.index('dependent="$work/dependent"') : text.index("mapfile -t found < <(pythons)")]
    start = 'set -euo pipefail; work="$1" workers=2; declare -A running=(); title() { echo "$1"; }\n'
    return subprocess.run(
        ["bash", "-c", f"{start}{functions}\n{script}", "run", str(work)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("together", "alone", "code", "said"),
    [
        (0, 0, 0, "passed (here)"),
        (1, 0, 1, "failed (here): tests depend on their neighbours"),
        (1, 1, 1, "alone: tests/test_x.py::test_y[a b]"),
    ],
)
def test_a_test_that_fails_beside_others_fails_the_build(together, alone, code, said, tmp_path):
    fake = tmp_path / "bin/pytest"
    fake.parent.mkdir()
    fake.write_text(PYTEST)
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "bin/python").symlink_to(sys.executable)
    environment = {"TOGETHER": str(together), "ALONE": str(alone), "KEPT": str(tmp_path / "kept")}
    run = _functions('tested "$work" 2; finish " (here)"', tmp_path, environment)
    assert run.returncode == code and said in run.stdout, run.stdout + run.stderr
    assert ("!!!   tests/test_x.py::test_y[a b]" in run.stdout) is (together > alone)


def test_stages_run_beside_each_other_and_are_shown_as_they_end(tmp_path):
    # Each of the first two waits for the other.
    meets = """
    meets() {
      touch "$work/$1"
      for _ in {1..100}; do [[ -e "$work/$2" ]] && break; sleep 0.1; done
      [[ -e "$work/$2" ]] && echo "met $2"
    }
    for stage in "a b" "b a" "c a"; do beside "stage ${stage% *}" meets $stage; done
    while ((${#running[@]})); do ended; done; finish ""
    """
    run = _functions(meets, tmp_path, {})
    assert run.returncode == 0, run.stdout + run.stderr
    shown = run.stdout.splitlines()
    assert shown.index("started: stage b") < min(shown.index("met a"), shown.index("met b")) < shown.index("stage c")
    assert shown.count("met a") == 2 and shown[-1] == "passed"


def test_a_stage_that_fails_ends_the_build(tmp_path):
    fails = """
    fails() { echo before; false; echo after; }
    beside "stage a" fails; beside "stage b" sleep 1; ended; beside "stage c" true
    """
    run = _functions(fails, tmp_path, {})
    assert run.returncode == 1
    assert run.stdout.splitlines()[-1] == "failed: stage a" and "before" in run.stdout and "after" not in run.stdout
