"""A second call of a function of arrays whose first call failed. It costs nothing where the first call succeeds.

A second call is made in three cases. Arguments with `__jax_array__` are converted to arrays. An axis that is an array
of rank 0, which no compiled function takes as a static argument, becomes an int. And strict promotion applies only to
operations that the user writes: a function of the package in which it refused one runs again by the standard rules.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from functorch_like import core, source_info
from functorch_like.avals import MOST_DIMENSIONS
from functorch_like.backends import promotion
from functorch_like.errors import FtError

#: Result of `second_call` where there is none.
NO_CALL: Any = object()

_PACKAGE = __name__.partition(".")[0]
_OF_ARRAYS = ("numpy", "lax", "nn", "scipy", "random", "image", "ops")
#: Files between an operation and the line that calls it.
_BETWEEN = (
    "api_boundary.py", "second_calls.py", "promotion.py", "array_methods.py", "eager_jit.py", "options.py", "makers.py",
)  # fmt: skip


def second_call(error: Exception, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a second call, or `NO_CALL`.

    Args:
        error: the error of the first call.
        fun: a public function. One that takes functions is not called twice.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    values = [*args, *kwargs.values()]
    if not _of_arrays(fun) or any(map(_is_function, values)):
        return NO_CALL
    if isinstance(error, FtError) and error.promotion:
        mark(error)
        if error.promotion == "nested" and not _called_by_package():
            return _by_standard_rules(fun, args, kwargs)
        return NO_CALL
    if is_about_static(error) and any(map(_is_index, values)):
        return _with_axis_as_int(fun, args, kwargs)
    if any(map(_has_protocol, values)):
        return _without_context(fun, [_converted(x) for x in args], {k: _converted(x) for k, x in kwargs.items()})
    return NO_CALL


def is_about_static(error: BaseException) -> bool:
    """Return True for an error of jaxlib or Python about an option that has no hash, such as an array."""
    text = str(error)
    if isinstance(error, ValueError):
        return text.startswith("Non-hashable static arguments")
    return isinstance(error, TypeError) and text.startswith("unhashable type: ")


def _is_index(x: Any) -> bool:
    """Return True for an integer array of rank 0."""
    return hasattr(type(x), "__array__") and getattr(x, "shape", None) == () and x.dtype.kind in "iu"


def _with_axis_as_int(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    bound = inspect.signature(fun).bind(*args, **kwargs)
    axis: Any = bound.arguments.get("axis")
    if not _is_index(axis):
        return NO_CALL
    bound.arguments["axis"] = operator.index(axis)
    return _without_context(fun, bound.args, bound.kwargs)


def mark(error: BaseException) -> None:
    """Note that an operation that strict promotion refused is part of another function of the package."""
    if isinstance(error, FtError) and error.promotion:
        passed = {file for file in _files(error.__traceback__) if _is_numeric(file)}
        if len(passed.union(_callers())) > 1:  # the operation stands in another file than the function
            error.promotion = "nested"


def _by_standard_rules(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with promotion.flags(dtypes="standard", ranks="allow"):
        return _without_context(fun, args, kwargs)


def _without_context(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        return fun(*args, **kwargs)
    except Exception as e:
        raise e from None


def _of_arrays(fun: Callable[..., Any]) -> bool:
    package, _, rest = fun.__module__.partition(".")
    return package == _PACKAGE and rest.partition(".")[0] in _OF_ARRAYS


def _is_function(x: Any) -> bool:
    return callable(x) and not isinstance(x, type) and not _is_array_like(x)


def _is_array_like(x: Any) -> bool:
    return core.is_value(x) or hasattr(type(x), "__jax_array__") or hasattr(x, "dtype")


def _has_protocol(x: Any, rank: int = MOST_DIMENSIONS) -> bool:
    """Return True for an object with `__jax_array__`, and a list with one; lists deeper than arrays have none."""
    if isinstance(x, (list, tuple)):
        return rank > 0 and any(_has_protocol(element, rank - 1) for element in x)
    return hasattr(type(x), "__jax_array__") and not core.is_value(x)


def _converted(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_converted, x))
    return x.__jax_array__() if _has_protocol(x) else x


def _called_by_package() -> bool:
    """Return True if a line of the package called the present operation."""
    return next(_callers(), None) is not None


def _callers() -> Iterator[str]:
    """Files of functions of arrays among the callers, up to the user's line."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and source_info.is_ours(frame.f_code.co_filename):
        if _is_numeric(frame.f_code.co_filename):
            yield frame.f_code.co_filename
        frame = frame.f_back


def _files(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename
        traceback = traceback.tb_next


def _is_numeric(file: str) -> bool:
    return source_info.is_ours(file) and not file.endswith(_BETWEEN) and any(f"/{name}/" in file for name in _OF_ARRAYS)
