"""Functions that launchers share: the end of child processes, its status and its text."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """Let the kernel end this process when its parent dies, in whatever way."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def exit_status(status: int) -> int:
    """Return the status of a child process as a shell gives it: 128 plus the number of the signal that ended it."""
    return status if status >= 0 else 128 - status


def status_text(status: int) -> str:
    """Return "failed with status 1" or "was ended by SIGKILL"."""
    if status >= 0:
        return f"failed with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
