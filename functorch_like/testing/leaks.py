"""`check_leaks`: an assertion that a block leaves no traced values behind."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from functorch_like.debug.tracer_leaks import alive, left


@contextmanager
def check_leaks() -> Generator[None]:
    """Raise at the end of the block if tracers made in it are still alive.

    As `ft.checking_leaks`, with the error that tests fail by.

    Raises:
        AssertionError: with each tracer and the kinds of objects that hold it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> kept = []
    >>> with check_leaks():
    ...     y = ft.jit(lambda x: kept.append(x) or 2 * x)(fnp.ones(3))
    Traceback (most recent call last):
        ...
    AssertionError: 1 traced value outlived its transformation:
      ...held by list of length 1...
    """
    before = alive()
    yield
    text = left(before)
    if text:
        raise AssertionError(text)
