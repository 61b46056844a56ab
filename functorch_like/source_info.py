"""The user's line: the innermost frame of a traceback outside of the package.

Recording a traceback costs a tenth of a microsecond (C++ keeps code objects and offsets). It is decoded only when it
is read, for an error, a printed jaxpr, or the locations of a lowered module.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, NamedTuple

from functorch_like import __file__ as _package_file
from functorch_like.backends import xla


class Line(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{_cell(self.file) or self.file}:{self.line} in {self.function}"

    @property
    def short(self) -> str:
        """`file.py:12`, without the folder; `In[3]:1` in a notebook."""
        return f"{_cell(self.file) or os.path.basename(self.file)}:{self.line}"


def _cell(file: str) -> str | None:
    """Return `In[3]` for the temporary file of the third cell of the running notebook; None for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = shell.compile.format_code_name(file) if shell is not None else None
    return named[1] if named else None


def in_notebook(place: str) -> str:
    """Return "In[3]:1" for the "file:1" of a cell of the running notebook, and other places as they are."""
    file, _, line = place.rpartition(":")
    cell = _cell(file) if file else None
    return f"{cell}:{line}" if cell else place


def _folder(file: str | None) -> str:
    return os.path.dirname(os.path.abspath(file or "")) + os.sep


_PACKAGE = _folder(_package_file)
_USER_FACING = (_PACKAGE + "__main__.py", _PACKAGE + "examples" + os.sep)


#: Libraries that call arrays' methods: the user's line is the one that calls the library.
_BENEATH = tuple(
    os.sep.join(("", "site-packages", name, "")) for name in ("numpy", "pandas", "scipy", "sklearn", "einops")
)


@functools.lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Return True if a source file is the user's: of neither the package nor a library of `_BENEATH`."""
    return not is_ours(file) and not any(folder in file for folder in _BENEATH)


def is_ours(file: str) -> bool:
    """Return True if a source file belongs to the package (and so is hidden from users)."""
    path = os.path.abspath(file)
    inside = path.startswith(_PACKAGE) and not path.startswith(_USER_FACING)
    return inside or f"{os.sep}functools.py" in path or f"{os.sep}contextlib.py" in path


class Scoped(NamedTuple):
    """A recorded traceback with the name of the user's scope around it; `source` may be another one."""

    name: str
    source: Any


class Annotated(NamedTuple):
    """A recorded traceback with attributes for the compiler: pairs of a name and a text."""

    attributes: tuple[tuple[str, str], ...]
    source: Any


_WRAPPERS = frozenset((Scoped, Annotated))


def attributes(source: Any) -> tuple[tuple[str, str], ...] | None:
    """Return the attributes of a recorded traceback, the innermost if there are several; None if there are none."""
    found = None
    while type(source) in _WRAPPERS:
        if type(source) is Annotated:
            found = source.attributes
        source = source.source
    return found


def scope(source: Any) -> str:
    """Return the named scopes of a recorded traceback, outermost first: "encoder/attention"; "" if there are none."""
    names: list[str] = []
    while type(source) in _WRAPPERS:
        if type(source) is Scoped:
            names.append(source.name)
        source = source.source
    return "/".join(names)


def user_line(source: Any = None) -> Line | None:
    """Return the innermost line outside the package, of a recorded traceback or the current call; None if unknown."""
    while type(source) in _WRAPPERS:
        source = source.source
    if source is None:
        source = xla.here()
    if isinstance(source, Line):
        return source
    frame = xla.innermost(source, is_users)
    return None if frame is None else Line(*frame)


def name_of(fun: Any) -> str:
    """Return the name of a function in errors and jaxprs; for other callables the name of their type."""
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else type(fun).__name__
