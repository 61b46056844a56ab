"""Python functions that compiled programs call.

A program refers to a function by its position in the list it was compiled with. C++ hands it copies of the operands
as read-only NumPy arrays, on the thread the program happens to run on, and takes a tuple of NumPy arrays.

TRAP: C++ checks nothing. It copies as many bytes as the results should have, whatever was returned, and crashes where
there is no such position. And of an exception it keeps the text only. `HostCall` stands in between.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError
from functorch_like.errors import DtypeError, ShapeError, UnsupportedError

_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "gpu": "xla_ffi_python_gpu_callback"}

# Exceptions that pass through C++, which keeps their text alone, by a number in it. Bounded, since one may get lost.
_MOST_FAILURES = 64
_failures: dict[int, BaseException] = {}
_numbers = itertools.count()
_MARK = re.compile(r"functorch_like callback failure (\d+)")
_INTERRUPT = re.compile(r"\bKeyboardInterrupt\b")


def target(platform: str) -> str:
    """Return the name of the custom call by which programs of a platform call Python."""
    target_of = _TARGETS.get("gpu" if platform in ("cuda", "gpu") else platform)
    if target_of is None:
        raise UnsupportedError(
            f"programs on {platform!r} cannot call Python", fix=f"callbacks run on {' and '.join(_TARGETS)}"
        )
    return target_of


class HostCall:
    """A Python function as C++ may call it.

    Args:
        fun: takes NumPy arrays, returns a sequence of NumPy values.
        out_avals: avals of its results.
        ordered: whether the last operand and the last result are a token.
        pure: whether it only computes results, so that `barrier` need not wait for it.
    """

    __slots__ = ("fun", "ordered", "out_avals", "pure")

    def __init__(
        self, fun: Callable[..., Sequence[Any]], out_avals: Sequence[ShapedArray], ordered: bool, pure: bool = False
    ) -> None:
        self.fun, self.out_avals, self.ordered, self.pure = fun, list(out_avals), ordered, pure

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        _inside.depth += 1
        try:
            outs = checked(self.fun(*(args[:-1] if self.ordered else args)), self.out_avals)
        except BaseException as error:
            raise recorded(error) from None
        finally:
            _inside.depth -= 1
        return (*outs, np.False_) if self.ordered else tuple(outs)


def checked(outs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[np.ndarray[Any, Any]]:
    """Convert a callback's result to arrays of exactly the promised shapes and dtypes."""
    return [_checked(out, aval, k) for k, (out, aval) in enumerate(zip(outs, avals, strict=True))]


def _checked(out: Any, aval: ShapedArray, position: int) -> np.ndarray[Any, Any]:
    host = np.asarray(out)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    if host.dtype == aval.dtype and host.shape == aval.shape and host.flags.c_contiguous:
        return host
    if host.shape != aval.shape:
        raise ShapeError(
            f"result {position} of the callback has shape {host.shape}, and {aval!r} was promised",
            fix="return an array of the promised shape, or promise the shape that it returns",
        )
    if host.dtype != aval.dtype:
        number = isinstance(out, (bool, int, float, complex, np.generic))
        if not (number and np.can_cast(host.dtype, aval.dtype, "same_kind")) and not _is_int(out, aval):
            raise DtypeError(
                f"result {position} of the callback has dtype {host.dtype}, and {aval!r} was promised",
                fix=f"return it with .astype({aval.dtype.name!r}), or promise {host.dtype}",
            )
        host = host.astype(aval.dtype)
    return np.ascontiguousarray(host).reshape(aval.shape)  # contiguous: C++ looks at no strides


def _is_int(out: Any, aval: ShapedArray) -> bool:
    """Return True if it is a Python int where an unsigned dtype or a float is expected."""
    return isinstance(out, (bool, int)) and aval.dtype.kind != "b"


def recorded(error: BaseException) -> RuntimeError:
    """Store an exception for `original`, and return one to raise into C++ in its place."""
    while len(_failures) >= _MOST_FAILURES:
        _failures.pop(next(iter(_failures)), None)
    number = next(_numbers)
    _failures[number] = error
    return RuntimeError(f"functorch_like callback failure {number}")


def original(error: BaseException) -> BaseException | None:
    """Return the exception of a callback that an error of C++ stands for; None if it has another cause."""
    if not isinstance(error, (JaxRuntimeError, ValueError)):
        return None
    text = str(error)
    match = _MARK.search(text)
    if match is not None:
        return _failures.pop(int(match[1]), None)
    # An interrupt before the first line of the callback.
    return KeyboardInterrupt() if _INTERRUPT.search(text) else None


# ----------------------------------------------------------------------------------------------------------- waiting
class _Inside(threading.local):
    depth = 0


_inside = _Inside()
# TRAP: `with` of a condition runs Python code, and an interrupt there would leave the lock taken for good.
_lock = threading.Lock()
_changed = threading.Condition(_lock)
_running: set[int] = set()


@contextmanager
def running() -> Generator[None]:
    """Mark the run of a program with callbacks within the block; `barrier` waits for its end."""
    number = next(_numbers)
    _running.add(number)
    try:
        yield
    finally:
        with _lock:
            _running.discard(number)
            _changed.notify_all()


def barrier() -> None:
    """Wait for the programs with callbacks that run now, in other threads. (In a callback it returns at once.)"""
    if _inside.depth:
        return
    with _lock:
        before = set(_running)
        while not _changed.wait_for(lambda: not before & _running, timeout=1.0):  # an interrupt may stop a notice
            pass
