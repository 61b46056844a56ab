"""Plant a fault, and run a suite that should detect it: a test file or a law.

Each suite runs in its own process, because caches keep values computed while the fault was planted. The processes are
forks of a server that has imported everything and computed nothing, because imports took most of the time.
"""

# Other compile options: they draw programs until a planted fault is noticed, and are not a test of values.

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
VARIABLE = "FT_PLANTED_FAULT"
NOTICED = 10  # exit status of a process whose law failed; pytest's status for failed tests is 1, as is that of a crash
SECONDS = 300  # time limit of a process


def pytest_sessionstart() -> None:
    """Plant the fault that the environment names, and compile quickly until the process ends (pytest plugin hook)."""
    from functorch_like import backends
    from support.faults import FAULTS, plant
    from support.quick import QUICK

    plant(FAULTS[os.environ[VARIABLE]])
    backends.xla.options(QUICK).__enter__()


def noticed(name: str, suite: str, examples: int) -> str:
    """Return the failure of a suite with the fault planted; empty if the suite passes."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps([name, suite, examples]) + "\n")
    server.stdin.flush()
    line = server.stdout.readline()
    assert line, f"the server ended with status {server.wait()}"
    code, text = json.loads(line)
    assert code in (0, 1 if suite.endswith(".py") else NOTICED), text
    return f"{suite}: {text[-400:]}" if code else ""


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "support.notice"],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)  # closes the server's input and waits for its end
    return server


# ------------------------------------------------------------------------------------------------------- the server
def _serve() -> None:
    """Answer each input line `[name, suite, examples]` with a line `[status, output]`."""
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401

    from functorch_like import primitives
    from support import faults, laws, quick  # noqa: F401

    primitives.load()
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as output:
            child = os.fork()
            if not child:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                os._exit(_status(*json.loads(line)))
            code = _waited(child)
            output.seek(0)
            print(json.dumps([code, output.read()]), flush=True)


def _waited(child: int) -> int:
    """Wait for a process and return its exit status; it is killed after `SECONDS`."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(SECONDS)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(0)
    return code


def _status(name: str, suite: str, examples: int) -> int:
    """Run a suite, print its output, and return the exit status for its process."""
    code: Any = 1
    try:
        if suite.endswith(".py"):
            import pytest

            os.environ[VARIABLE] = name
            code = pytest.main(
                ["-qx", "--tb=line", "-p", "no:cacheprovider", "-p", "support.notice", str(TESTS / suite)]
            )
        else:
            found = by_law(name, suite, examples)
            print(found)
            code = NOTICED if found else 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


def by_law(name: str, law_name: str, examples: int) -> str:
    """Draw programs until one breaks the law; return the error, or an empty text."""
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
    except BaseException as e:  # any exception means that the fault was detected
        return f"{type(e).__name__}: {str(e)[:400]}"
    finally:
        restore()
    return ""


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    _serve()
