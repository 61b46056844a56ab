"""Plants a fault, and runs a suite that should notice: a file of tests, or a law.

Each has a process of its own, because caches remember what was computed while the fault was there. These processes are
forks of a server that has imported everything and has computed nothing: importing took most of the time.
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
NOTICED = 10  # the status of a process that draws programs for a law; pytest's is 1, as is that of an error
SECONDS = 300  # after which a process is ended


def pytest_sessionstart() -> None:
    """As a plugin of pytest: plant the fault that the environment names, and compile quickly until the process ends."""
    from functorch_like import backends
    from support.faults import FAULTS, plant
    from support.quick import QUICK

    plant(FAULTS[os.environ[VARIABLE]])
    backends.xla.options(QUICK).__enter__()


def noticed(name: str, suite: str, examples: int) -> str:
    """How a suite fails with the fault in place; empty if it does not."""
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
    atexit.register(server.communicate)  # which closes what it reads from, and waits for its end
    return server


# ------------------------------------------------------------------------------------------------------- the server
def _serve() -> None:
    """Answer each line, `[name, suite, examples]`, by `[status, output]`."""
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
    """Wait for a process, some minutes at most."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(SECONDS)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(0)
    return code


def _status(name: str, suite: str, examples: int) -> int:
    """The status that the process of a suite ends with; what it finds is printed."""
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
    _serve()
