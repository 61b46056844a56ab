"""Report of versions and settings, and a log of compilations."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from functorch_like.backends.xla import events
from functorch_like.calling import api_boundary


@api_boundary.public
def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices, settings and environment, as a bug report needs them.

    Args:
        return_string: return the text instead of printing it.

    Returns:
        The text, or None where it is printed.

    >>> import functorch_like as ft
    >>> "jaxlib" in ft.print_environment_info(return_string=True)
    True
    """
    from functorch_like.backends import report

    text = report.bug_report()
    if return_string:
        return text
    sys.stdout.write(text + "\n")
    return None


@contextmanager
def log_compiles(enable: bool = True) -> Generator[None]:
    """Log each program that is traced, lowered, compiled or loaded in a block, in this thread, with the reason.

    A program that starts in the quick tier here may be optimised in the background later; its line says so.

    Lines go to the logger "functorch_like" of Python's `logging`, as warnings, which it shows by default. The
    environment variable FT_LOG_COMPILES=1 does the same for the whole process. `explain` gives the same as an object,
    `backends.xla.verbose` adds the time that operations take.

    Args:
        enable: False ends an outer block's effect.

    Returns:
        A context manager.

    >>> import functorch_like as ft, logging
    >>> seen = []
    >>> handler = logging.Handler()
    >>> handler.emit = lambda record: seen.append(record.getMessage())
    >>> logging.getLogger("functorch_like").addHandler(handler)
    >>> with ft.log_compiles():
    ...     y = ft.jit(lambda x: x + 1)(1.0)
    >>> seen[0]  # doctest: +ELLIPSIS
    'traced <lambda> in ... ms: first call'
    >>> logging.getLogger("functorch_like").removeHandler(handler)
    """
    with events.LOGGED.held(bool(enable)):
        yield
