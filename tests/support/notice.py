"""Plants a fault, and runs a suite that should notice: a file of tests, or, as a program, a law.

Each has a process of its own, because caches remember what was computed while the fault was there.
"""

# Other compile options: they draw programs until a planted fault is noticed, and are not a test of values.

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
VARIABLE = "FT_PLANTED_FAULT"
NOTICED = 10  # the program's status; pytest's is 1, as is that of a program that ends by an error


def pytest_sessionstart() -> None:
    """As a plugin of pytest: plant the fault that the environment names, and compile quickly until the process ends."""
    from functorch_like import backends
    from support.faults import FAULTS, plant
    from support.quick import QUICK

    plant(FAULTS[os.environ[VARIABLE]])
    backends.xla.options(QUICK).__enter__()


def noticed(name: str, suite: str, examples: int) -> str:
    """How a suite fails with the fault in place; empty if it does not."""
    of_tests = ("pytest", "-qx", "--tb=line", "-p", "no:cacheprovider", "-p", "support.notice", str(TESTS / suite))
    tests = suite.endswith(".py")
    module = of_tests if tests else ("support.notice", name, suite, str(examples))
    run = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=TESTS,
        env={**os.environ, VARIABLE: name},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode in (0, 1 if tests else NOTICED), run.stdout + run.stderr
    return f"{suite}: {run.stdout[-400:]}" if run.returncode else ""


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
    found = by_law(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(found)
    sys.exit(NOTICED if found else 0)
