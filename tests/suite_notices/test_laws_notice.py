"""Faults planted in the interpreters: each must make a suite fail, the laws or the tests of primitives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults import FAULTS

TESTS = Path(__file__).parents[1]
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EXAMPLES = 400 if NIGHTLY else 120


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(name):
    run = subprocess.run(
        [sys.executable, "-m", "support.notice", name, str(EXAMPLES)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, f"{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
