"""Run a program written for JAX on this package, unmodified.

    python -m functorch_like.as_jax script.py ...
    python -m functorch_like.as_jax -m module ...
    python -m functorch_like.as_jax -c "code" ...
    python -m functorch_like.as_jax --missing script.py

The last form runs nothing: it lists the names of JAX that the script and what it imports mention, and that this package
does not have.
"""

from __future__ import annotations

import os
import runpy
import sys
from types import TracebackType

from functorch_like import jax_alias

#: Files whose functions start a program.
_STARTING = (__file__, runpy.run_path.__code__.co_filename)


def main(argv: list[str]) -> int:
    """Run the script or module of the command line; return the exit status."""
    if argv[:1] in ([], ["-h"], ["--help"]):
        print(__doc__)
        return 0 if argv else 2
    if argv[0] == "--missing":
        from functorch_like.jax_alias.listing import report

        return report(argv[1:])
    jax_alias.install()
    sys.excepthook = _show
    run(argv)
    return 0


def _show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an error as Python does, without the frames that start the program."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _STARTING:
        traceback = traceback.tb_next
    sys.__excepthook__(kind, error.with_traceback(traceback), traceback)


def run(argv: list[str]) -> None:
    """Run a script, a module or code as Python would, with its own arguments."""
    option, *rest = argv
    if option == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif option == "-m":
        sys.argv[:] = rest
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(option)))
        runpy.run_path(option, run_name="__main__")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
