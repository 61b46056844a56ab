"""Clearer errors, in place of those of Python and NumPy that do not name an argument."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from functorch_like import source_info
from functorch_like.calling import argument_notes, second_calls
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError
from functorch_like.foreign.values import ANY, axis_facts, quote, transformation_remedy


class _Kind(NamedTuple):
    """A message of Python or NumPy; its group is the type of the argument that it is about, or the argument's value."""

    message: re.Pattern[str]
    reason: str
    remedy: Callable[[Any], str]
    by_value: bool = False


def _int(x: Any) -> str:
    return f"give an int: {int(x)}" if isinstance(x, float) and x.is_integer() else "give an int"


def _sequence(x: Any) -> str:
    if isinstance(x, int):
        return f"give a tuple: ({x},)"
    return f"{_int(x)}, or a sequence of ints" if isinstance(x, float) else "give a list or a tuple"


def _number(x: Any) -> str:
    return "give a number"


#: Parts of Python's messages about operands: their beginning, and the type of a number.
_OPERANDS = r"^(?:unsupported operand type\(s\) for [^:]+:|'\W+' not supported between instances of)"
_NUMBER = r"'(?:int|float|complex|bool|Array|numpy\.[a-z]+\d+)'"
#: The folder of Python's own modules, such as pathlib, and the part of a path that marks installed packages in it.
_PYTHON, _INSTALLED = os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}"
_NO_ARRAY = re.compile(r"of type (\w+) is not an array$")
_OF_NUMPY = re.compile(r"^fnp\.[\w.]+(?=: axis)")
_HAS_PLACE = re.compile(r"argument |\w+: ")
_KINDS = (
    _Kind(re.compile(r"^'([\w.]+)' object cannot be interpreted as an integer$"), "is not an int", _int),
    _Kind(
        re.compile(
            r"^(?:'([\w.]+)' object is not iterable|object of type '([\w.]+)' has no len\(\)"
            r"|Value after \* must be an iterable, not ([\w.]+))$"
        ),
        "is not a sequence",
        _sequence,
    ),
    _Kind(
        re.compile(r"(?:os\.PathLike|path should be).*, not '?(\w+)'?$"),
        "is not a path",
        lambda x: "give a str or a pathlib.Path",
    ),
    _Kind(
        re.compile(r"^invalid literal for int\(\) with base 10: (?:np\.str_\()?('.*'|\".*\")\)?$"),
        "is not an int",
        _int,
        by_value=True,
    ),
    _Kind(
        re.compile(r"^could not convert string to (?:float|int|complex): (?:np\.str_\()?('.*'|\".*\")\)?$"),
        "is not a number",
        _number,
        by_value=True,
    ),
    _Kind(re.compile(r"(?:^must be|or a) real number, not '?([\w.]+)'?$"), "is not a number", _number),
    _Kind(
        re.compile(r"^flatten\(\): incompatible function arguments[\s\S]*, ([\w.]+)$"),
        "is not a function",
        lambda x: "give a function that returns True for what counts as a leaf",
    ),
    _Kind(re.compile(r"^can't multiply sequence by non-int of type '([\w.]+)'$"), "is not an int", _int),
    _Kind(re.compile(r"^bad operand type for [^:]+: '([\w.]+)'$"), "is not a number", _number),
    _Kind(re.compile(rf"{_OPERANDS} {_NUMBER} and '([\w.]+)'$"), "is not a number", _number),
    _Kind(re.compile(rf"{_OPERANDS} '([\w.]+)' and {_NUMBER}$"), "is not a number", _number),
    _Kind(re.compile(r"^an array and a (\w+) are not combined$"), "is not a number", _number),
    _Kind(
        re.compile(r"^data type ('.*'|\".*\") not understood$"),
        "is not a dtype",
        lambda x: "give a dtype such as fnp.float32, or its name",
        by_value=True,
    ),
    _Kind(
        re.compile(r"^a bytes-like object is required, not '([\w.]+)'$"),
        "is not an object of bytes",
        lambda x: "give bytes, a bytearray or a memoryview",
    ),
)


def clearer(error: BaseException, fun: Callable[..., Any] | None, args: Any, kwargs: Any) -> FtError | None:
    """Return a clearer error to raise in the place of another one, or None.

    Args:
        error: as it leaves a public function.
        fun: that function, if it is known.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    if type(error) is ValueError and isinstance(error.__cause__, FtError):
        return _assigned(error.__cause__, str(error))
    if type(error) not in (TypeError, ValueError, DtypeError) or fun is None or not _in_package(error.__traceback__):
        return None
    if getattr(fun, "__name__", "").startswith("__"):  # an operator, whose operands its error names
        return None
    if second_calls.is_about_static(error):
        return _static(str(error), fun, args, kwargs)
    message = getattr(error, "reason", str(error))
    for kind in _KINDS:
        match = kind.message.search(message)
        about = "" if match is None else next(filter(None, match.groups()))
        matches = list((_of_value if kind.by_value else _of_type)(about, fun, args, kwargs)) if about else []
        if matches:
            arguments = ", ".join(f"{name}={quote(value)}" for name, value, _ in matches)
            one = "one of " if len(matches) > 1 else ""
            reason = f"{argument_notes.name_of(fun)}: {one}{arguments} {kind.reason}"
            remedy = f"{kind.remedy(matches[0][2])}; the arguments are {argument_notes.call_of(fun)}"
            return ArgumentError(reason, fix=remedy)
    return None


def _static(message: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> FtError | None:
    """Return the error for an option without a hash, such as an array or a list in the place of an int."""
    called = argument_notes.name_of(fun)
    for name, value in _options(fun, args, kwargs):
        kind = type(value)
        if getattr(kind, "__hash__", None) is None and re.search(rf"\b{re.escape(kind.__name__)}['>]", message):
            if name in ("axis", "axes"):
                reason, fix = axis_facts(value, name, called)
                return ShapeError(reason, fix=fix)
            text = f"an array of shape {value.shape}" if hasattr(value, "shape") else quote(value)
            call = argument_notes.call_of(fun)
            fix = f"options are compiled in: give a number, a string or a tuple; the arguments are {call}"
            return ArgumentError(f"{called}: the option {name} is {text}", fix=fix)
    return None


#: Parameters with defaults that take arrays.
_VALUES = ("initial", "where", "weights", "mean", "bias", "mask")


def _options(fun: Callable[..., Any], args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Arguments for parameters that have a default value and take no arrays, by their names."""
    for name, value in _given(fun, args, kwargs).items():
        if inspect.signature(fun).parameters[name].default is not inspect.Parameter.empty and name not in _VALUES:
            yield name, value


def name_argument(error: FtError, fun: Callable[..., Any], args: Any, kwargs: Any) -> None:
    """Add the names of the function and the parameter to an error about a value that is not an array."""
    match = _NO_ARRAY.search(error.reason)
    if match is None:
        return
    if error.fix == ANY and _transforms(fun):
        error.fix += f"; or {transformation_remedy(match[1])}"
    if error.operation or _HAS_PLACE.match(error.reason):
        return
    error.operation = argument_notes.name_of(fun)
    parameters = [(name, quote(value)) for name, value, part in _of_type(match[1], fun, args, kwargs) if value is part]
    if len(parameters) > 1:
        parameters = [(name, text) for name, text in parameters if error.reason.startswith(f"{text} of type")]
    if len(parameters) == 1:
        name, text = parameters[0]
        value = name if text == "a value" else f"{name}={text}"
        error.reason = f"{value} of type {match[1]} is not an array"


def name_function(error: FtError, fun: Callable[..., Any]) -> None:
    """Name the function that the user called, where the error names one that this function is made of."""
    called = argument_notes.name_of(fun) if hasattr(fun, "is_boundary") else ""
    is_dtype = error.reason.endswith(" is not a dtype") and error.reason[0] not in "'\""  # no misspelt name
    is_shape = isinstance(error, ShapeError) and " needs a shape of " in error.reason
    if called and (is_dtype or is_shape):
        error.fix += f"; the arguments are {argument_notes.call_of(fun)}"
    if called.startswith("fnp."):
        error.reason = _OF_NUMPY.sub(called, error.reason, count=1)


def _transforms(fun: Any) -> bool:
    """Return True for a transformed function, and for those that transform and call at once: `vjp`, `jvp`."""
    return hasattr(fun, "_made_by") or fun.__module__.startswith("functorch_like.transforms")


def _assigned(cause: FtError, message: str) -> FtError | None:
    """Complete an error of NumPy's assignments ("setting an array element with a sequence") of traced values."""
    if not message.startswith("setting an array element"):
        return None
    cause.operation = "assignment to an element of a NumPy array"
    cause.fix = "make the array with functorch_like.numpy, and change it by a = a.at[i].set(x)"
    return cause


def _of_type(kind: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Arguments of a type, or with elements of it: the parameter, its value, and the part of that type."""
    kind = kind.rpartition(".")[2]
    for name, value in _given(fun, args, kwargs).items():
        if type(value).__name__ == kind:
            yield name, value, value
        elif isinstance(value, (list, tuple, np.ndarray)):
            listed = value.reshape(-1)[:1] if isinstance(value, np.ndarray) else value
            parts = [part for part in listed if type(part).__name__ == kind]
            if parts:
                yield name, value, parts[0]


def _of_value(text: str, fun: Callable[..., Any], args: Any, kwargs: Any) -> Iterator[tuple[str, Any, Any]]:
    """Arguments that are the string which a message quotes."""
    for name, value in _given(fun, args, kwargs).items():
        if isinstance(value, str) and repr(value) == text:
            yield name, value, value


def _given(fun: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by their names; none where they do not fit the function."""
    try:
        return inspect.signature(fun).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}


def _in_package(traceback: TracebackType | None) -> bool:
    """Return True if no line of the user's was running when the error was raised, beyond the call."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if source_info.is_users(file) and not (file.startswith(_PYTHON) and _INSTALLED not in file):
            return False
        traceback = traceback.tb_next
    return True
