"""Notes on Python's errors for arguments that do not fit: the signature, and how a loop calls its body."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

_MISMATCH = re.compile(r"^([\w.<>]+)\(\) (takes|missing|got an unexpected|got some|got multiple)")
_PACKAGE = __name__.partition(".")[0]
_ROOMS = ("lax", "nn", "random", "image", "ops", "tree", "io", "data", "debug", "sharding")
#: PyTorch's names of parameters.
_OF_PYTORCH = {"dim": "axis", "dims": "axes", "keepdim": "keepdims"}


def add_note(error: TypeError, fun: Callable[..., Any]) -> None:
    """Tell the signature with an error for arguments that do not fit, once.

    Args:
        error: as it leaves a public function.
        fun: that function.
    """
    found = _MISMATCH.match(str(error))
    if found is None or getattr(error, "__notes__", None) or error.__traceback__ is None:
        return
    name = _name(fun)
    if error.__traceback__.tb_next is None:  # `fun` itself could not be called
        signature = inspect.signature(fun)
        parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        note = f"{name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}"
        note += "".join(
            f"; what PyTorch calls {theirs} is {ours}"
            for theirs, ours in _OF_PYTORCH.items()
            if f"'{theirs}'" in str(error) and ours in signature.parameters
        )
        error.add_note(note)
    elif fun.__module__ == f"{_PACKAGE}.lax" and _inside(error.__traceback__):
        error.add_note(f"{name} called {found[1]}; help({name}) says with which arguments")


def _name(fun: Callable[..., Any]) -> str:
    """The name of a public function as users write it."""
    room = fun.__module__.removeprefix(_PACKAGE + ".")
    if room == "numpy":
        return f"fnp.{fun.__qualname__}"
    return f"ft.{room}.{fun.__qualname__}" if room in _ROOMS else f"ft.{fun.__qualname__}"


def _inside(traceback: TracebackType) -> bool:
    """Return True if the call that failed is in a file of the package: the called function never began."""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE + ".")
