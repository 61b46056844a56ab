"""Faults planted in the interpreters: each must make a suite fail, the laws or the tests of primitives."""

import os

import pytest
from support.faults import FAULTS
from support.notice import noticed

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EXAMPLES = 400 if NIGHTLY else 120


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(name):
    assert any(noticed(name, suite, EXAMPLES) for suite in FAULTS[name].suites)
