"""Run as a program with the name of a fault: plants it, runs the suites that should notice, prints who did.

Each fault has a process of its own, because caches remember what was computed while it was there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

TESTS = Path(__file__).parents[1]


def noticed(name: str, examples: int) -> str:
    """Which suite fails with the fault in place, and how; empty if none does."""
    from support.faults import FAULTS, plant
    from support.laws import law

    fault = FAULTS[name]
    plant(fault)
    for suite in fault.laws:
        if suite.endswith(".py"):
            code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--tb=line", str(TESTS.parent / suite)])
            if code == pytest.ExitCode.TESTS_FAILED:
                return suite
            continue
        try:
            law(suite, examples)()
        except BaseException as e:  # whatever it raises, it was noticed
            return f"{suite}: {type(e).__name__}: {str(e)[:200]}"
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    settings.register_profile(
        "notice",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("notice")
    found = noticed(sys.argv[1], int(sys.argv[2]))
    print(found or "nothing noticed")
    sys.exit(0 if found else 1)
