"""Output and checks of kernels: `debug_print`, `debug_check`; and `delay`, which does nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from functorch_like.checkify import check
from functorch_like.debug import printing

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike


class _Checks(threading.local):
    enabled = False


_checks = _Checks()


def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Print values when the kernel runs, once for each step that gets there.

    Args:
        fmt: as for `str.format`, with a field {} for each value; without fields, values stand behind the text.
        args: the values.

    Raises:
        ArgumentError: where fields and values differ in number.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     pl.debug_print("got {}", x_ref[0])
        >>> out = pl.pallas_call(kernel, ft.ShapeDtypeStruct((1,), "int32"))(fnp.arange(2))
        got 0
    """
    if args and "{" not in fmt:
        fmt += " {}" * len(args)
    printing.print(fmt, *args)


@contextlib.contextmanager
def enable_debug_checks(new_val: bool = True) -> Iterator[None]:
    """Switch `debug_check` on in a `with` block; kernels must be traced in it.

    Args:
        new_val: False to switch it off.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> with pl.enable_debug_checks():
        ...     pass
    """
    before, _checks.enabled = _checks.enabled, bool(new_val)
    try:
        yield
    finally:
        _checks.enabled = before


def debug_check(condition: ArrayLike, message: str) -> None:
    """Check a condition where `enable_debug_checks` is on, in a function under `checkify`; elsewhere, do nothing.

    Args:
        condition: a boolean scalar.
        message: the text of the error.

    Raises:
        CheckError: by the error that `checkify` returns, where the condition does not hold.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def kernel(x_ref, o_ref):
        ...     pl.debug_check(x_ref[0] == 0, "x begins with 0")
        ...     o_ref[...] = x_ref[...]
        >>> f = pl.pallas_call(kernel, ft.ShapeDtypeStruct((2,), "int32"))
        >>> with pl.enable_debug_checks():
        ...     failed, _ = ft.checkify.checkify(f)(fnp.arange(2) + 1)
        >>> "x begins with 0" in failed.get()
        True
    """
    if _checks.enabled:
        check(condition, message, debug=True)


def delay(nanos: ArrayLike) -> None:
    """Do nothing: where TPUs wait, an XLA program has no clock.

    Args:
        nanos: nanoseconds.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.delay(10)
    """
