"""Run as a program with the name of a fault: plants it, runs the suites that should notice, prints who did.

Each fault has a process of its own, because caches remember what was computed while it was there.
"""

# Other compile options: they draw programs until a planted fault is noticed, and are not a test of values.

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
VARIABLE = "FT_PLANTED_FAULT"


def pytest_sessionstart() -> None:
    """As a plugin of pytest: plant the fault that the environment names, and compile quickly until the process ends."""
    from functorch_like import backends
    from support.faults import FAULTS, plant
    from support.quick import QUICK

    plant(FAULTS[os.environ[VARIABLE]])
    backends.xla.options(QUICK).__enter__()


def noticed(name: str, examples: int) -> str:
    """Which suite fails with the fault in place, and how; empty if none does."""
    from support.faults import FAULTS

    for suite in FAULTS[name].suites:
        found = by_tests(name, suite) if suite.endswith(".py") else by_law(name, suite, examples)
        if found:
            return f"{suite}: {found}"
    return ""


def by_tests(name: str, file: str) -> str:
    """Run a file of tests with the fault in place."""
    command = [sys.executable, "-m", "pytest", "-qx", "--tb=line", "-p", "no:cacheprovider", "-p", "support.notice"]
    run = subprocess.run(
        [*command, str(TESTS / file)],
        cwd=TESTS,
        env={**os.environ, VARIABLE: name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr  # 1: some tests failed; others: pytest did
    return run.stdout[-400:] if run.returncode else ""


def by_law(name: str, law_name: str, examples: int) -> str:
    """Draw programs until one breaks the law."""
    from hypothesis import HealthCheck, Phase, settings

    from functorch_like import backends
    from support.faults import FAULTS, plant
    from support.laws import law
    from support.quick import QUICK

    settings.register_profile(
        "notice",
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("notice")
    restore = plant(FAULTS[name])
    try:
        with backends.xla.options(QUICK):
            law(law_name, examples)()
    except BaseException as e:  # whatever it raises, it was noticed
        return f"{type(e).__name__}: {str(e)[:400]}"
    finally:
        restore()
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    found = noticed(sys.argv[1], int(sys.argv[2]))
    print(found or "nothing noticed")
    sys.exit(0 if found else 1)
