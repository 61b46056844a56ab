"""Errors of XLA at run time as errors of this package: memory that ran out, memory donated twice, everything else."""

from __future__ import annotations

import re
from typing import Any

from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError
from functorch_like.backends.xla.processes import collective_failure
from functorch_like.errors import CompileError, DonatedError, FtError, OutOfMemoryError, bytes_text

PARTS = (
    "compute in parts (lax.map with batch_size, vmap with chunk_size), use a smaller dtype, or delete arrays that are "
    "no longer used; ft.checkpoint lowers what gradients keep"
)


class XlaCompileError(CompileError, JaxRuntimeError):
    """A `CompileError` that handlers of jaxlib's error catch, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (False, self.reason, self.__dict__)


class XlaOutOfMemoryError(OutOfMemoryError, JaxRuntimeError):
    """An `OutOfMemoryError` that handlers of jaxlib's error catch, too: programs find the largest batch this way."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (True, self.reason, self.__dict__)


def _rebuild(out_of_memory: bool, reason: str, parts: dict[str, Any]) -> CompileError:
    """Return a pickled error: the classes have the names of their bases, so pickle cannot find them."""
    error = (XlaOutOfMemoryError if out_of_memory else XlaCompileError)(reason)
    error.__dict__.update(parts)
    return error


for _error, _base in ((XlaCompileError, CompileError), (XlaOutOfMemoryError, OutOfMemoryError)):
    _error.__name__, _error.__qualname__, _error.__module__ = _base.__name__, _base.__qualname__, _base.__module__


def is_double_donation(error: BaseException) -> bool:
    """Return True for XLA's error, or this package's, of an array that one call donates and uses elsewhere."""
    text = str(error)
    return "Attempt to donate" in text or "previously donated in the same call" in text or DONATED_TWICE in text


DONATED_TWICE = "one call donates an array and uses it a second time"
ONCE = "pass a copy, fnp.copy(x), in one of the places, or do not donate the argument"


def failure(what: str, device: Any, error: BaseException) -> FtError:
    """The error to raise for one that XLA raised while a program ran; `what` names the program."""
    text = str(error)
    if is_double_donation(error):
        return DonatedError(f"{what}: {DONATED_TWICE}", fix=ONCE)
    lost = collective_failure(what, error)
    if lost is not None:
        return lost
    if "RESOURCE_EXHAUSTED" not in text and "Out of memory" not in text:
        return XlaCompileError(f"{what} failed on {device}: {text}")
    return XlaOutOfMemoryError(f"{what} ran out of memory on {device}{_allocation(text)}", fix=PARTS)


def out_of_memory(error: BaseException) -> OutOfMemoryError | None:
    """Return the error for memory that ran out while C++ ran a program without Python; None for another error."""
    text = str(error) if isinstance(error, (ValueError, RuntimeError)) else ""
    if not text.startswith("RESOURCE_EXHAUSTED") or isinstance(error, FtError):
        return None
    return XlaOutOfMemoryError(f"memory ran out{_allocation(text)}", fix=PARTS)


def lost_process(error: BaseException, name: str) -> FtError | None:
    """Return the error for a collective that failed in a program run without Python; None for another error."""
    if not isinstance(error, (ValueError, RuntimeError)) or isinstance(error, FtError):
        return None
    return collective_failure(f"the program {name!r}" if name else "a program", error)


def _allocation(text: str) -> str:
    """The size that could not be allocated, as the end of a sentence; XLA's whole text where it names none."""
    size = re.search(r"allocat\w+ (?:(\d+) ?bytes|([\d.]+) ?([KMGT]iB))", text, re.IGNORECASE)
    if size is None:
        return f": {text}"
    return f": one allocation of {bytes_text(int(size[1])) if size[1] else f'{size[2]} {size[3]}'}"
