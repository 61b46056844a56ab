"""Public boundaries: errors leave the package complete, and without the frames inside it.

Set FT_TRACEBACK=full to see every frame.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeVar

from functorch_like import core, public_names, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import flag_blocks, settings, xla
from functorch_like.backends.xla import failures
from functorch_like.backends.xla.failures import PARTS
from functorch_like.backends.xla.nesting import unsorted
from functorch_like.calling.second_calls import NO_CALL, mark, second_call
from functorch_like.calling.simple_calls import is_simple
from functorch_like.errors import FtError, OutOfMemoryError, bytes_text

F = TypeVar("F", bound=Callable[..., Any])


def public(fun: F) -> F:
    """Mark a function that users call: errors that leave it name the user's line, without frames of the package.

    If it has `kernels` (see `simple_calls.Kernels`), they compute calls with arrays, NumPy's or others, and simple
    options.
    """
    operands, most, options, kernel, with_options = getattr(fun, "kernels", (-1, -1, frozenset(), fun, lambda: fun))
    assert operands in (-1, 1, 2, 3)
    array = core.ArrayImpl

    @functools.wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            if (
                len(args) == operands
                and type(args[0]) is array
                and (operands == 1 or (type(args[1]) is array and (operands == 2 or type(args[2]) is array)))
                and not kwargs
            ):
                return kernel(*args)  # written out: it takes 1/16 of a call, a loop over operands would take 1/10
            if 0 < operands <= len(args) and is_simple(operands, most, options, args, kwargs):
                return with_options()(*args, **kwargs) if kwargs or len(args) > operands else kernel(*args)
            return fun(*args, **kwargs)
        except Exception as e:
            result = second_call(e, fun, args, kwargs)
            if result is not NO_CALL:
                return result
            replacement = finalize_error(e, boundary, args, kwargs)
            if replacement is None:
                raise
            try:
                raise replacement from None
            finally:
                replacement.__traceback__ = filter_traceback(replacement.__traceback__)

    boundary.is_boundary = True  # type: ignore[attr-defined]
    return boundary  # type: ignore[return-value]


def wrap_public_function(value: Any, module: str = "", name: str = "") -> Any:
    """Return a function, Python's or a compiled one, as a boundary; any other value is returned as it is.

    A class of the package stays itself, and its constructor becomes a boundary.

    Args:
        value: any attribute of a module.
        module: the module that has the boundary, by which pickle finds it; left out for methods.
        name: its name there, or in its class.
    """
    if isinstance(value, type) and not issubclass(value, BaseException):
        _wrap_constructor(value, module)
    if not isinstance(value, (types.FunctionType, xla.PjitFunction)) or hasattr(value, "is_boundary"):
        return value
    made = public(value)
    if module:
        made.__module__, made.__qualname__ = module, name
    elif name:
        made.__name__ = name
    return made


def _wrap_constructor(cls: type, module: str) -> None:
    """Make the functions of a class that take its arguments boundaries; those of other libraries stay as they are."""
    for name, kind in (("__new__", staticmethod), ("__init__", lambda function: function)):
        function = getattr(vars(cls).get(name), "__func__", vars(cls).get(name))
        if not isinstance(function, types.FunctionType) or hasattr(function, "constructs"):
            continue
        if function.__module__.startswith(("functorch_like.", "namedtuple_")):
            made: Any = function if hasattr(function, "is_boundary") else public(function)
            made.constructs, made.public_module = cls, module
            setattr(cls, name, kind(made))


def wrap_public_functions(module: types.ModuleType) -> None:
    """Make every public function of a module a boundary, in one place instead of at each definition.

    The package calls these functions under the names they have in their own files, which stay as they are.
    """
    for name in public_names.defined(module):
        value = vars(module).get(name)
        if getattr(value, "__module__", "").startswith("functorch_like"):
            setattr(module, name, wrap_public_function(value, module.__name__, name))


def finalize_error(
    error: BaseException, fun: Callable[..., Any] | None = None, args: Any = (), kwargs: Any = MappingProxyType({})
) -> FtError | None:
    """Complete an error with the user's line or a note; drop the package's frames where it is explained or the user's.

    Args:
        error: as it leaves a public function.
        fun: that function.
        args: the positional arguments of the call.
        kwargs: its keyword arguments.

    Returns:
        The error of the package to raise in its place, where that of C++ or NumPy is unclear; None otherwise.
    """
    from functorch_like.calling import argument_notes, unclear_errors  # needed by few programs

    unclear = unclear_errors.clearer(error, fun, args, kwargs)
    if unclear is not None:
        unclear.__traceback__ = filter_traceback(error.__traceback__)
        return _placed(unclear)
    clear = unsorted(error) or _out_of_memory(error) or failures.lost_process(error, getattr(fun, "__name__", ""))
    if clear is not None:
        return _placed(clear.add_context(operation=getattr(fun, "__name__", "")))
    mark(error)
    if isinstance(error, FtError):
        if fun is not None and not error.has_left:
            unclear_errors.name_argument(error, fun, args, kwargs)
            unclear_errors.name_function(error, fun)
            error.has_left = hasattr(fun, "is_boundary")
        _placed(error)
    elif isinstance(error, (TypeError, AttributeError)) and fun is not None:
        argument_notes.add_note(error, fun)
    elif isinstance(error, Exception):
        argument_notes.add_note_on_values(error)
    if isinstance(error, FtError) or hasattr(error, "__notes__") or _raised_by_user(error.__traceback__):
        error.__traceback__ = filter_traceback(error.__traceback__)
        if error.__cause__ is not None:
            error.__cause__.__traceback__ = filter_traceback(error.__cause__.__traceback__)
    return None


def _placed(error: FtError) -> FtError:
    """Complete an error by the user's line and the transformations that are at work."""
    return error.add_context(at=str(source_info.user_line() or ""), chain=core.transform_stack(core.state.trace))


def _out_of_memory(error: BaseException) -> FtError | None:
    """Return the error in place of one of XLA or NumPy for an array that does not fit into memory; None for others."""
    if not isinstance(error, MemoryError) or isinstance(error, FtError):
        return failures.out_of_memory(error)
    message = f"memory ran out: {error}"
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is not None and dtype is not None:
        aval = ShapedArray(shape, dtype)
        message = f"an array {aval!r} takes {bytes_text(aval.size * aval.dtype.itemsize)}, for which there is no memory"
    return OutOfMemoryError(message, fix=f"check the sizes; {PARTS}")


xla.on_error(finalize_error)
settings.on_staging(lambda: core.state.trace.staging)
# Settings are assigned by plain attribute access.
for _kind, _names in (
    (settings.Setting, ("__set__", "set")),
    (flag_blocks.Flags, ("__enter__", "__call__")),
    (flag_blocks.Group, ("__getattr__", "__setattr__", "flags")),
    (flag_blocks.Module, ("__setattr__", "flags")),
):
    for _name in _names:
        setattr(_kind, _name, public(getattr(_kind, _name)))
del _kind, _names, _name


def _raised_by_user(traceback: types.TracebackType | None) -> bool:
    """Return True if a line of the user's raised an error; one that the package raised may be its own, so is shown."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and source_info.is_users(traceback.tb_frame.f_code.co_filename)


def filter_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this package."""
    if os.environ.get("FT_TRACEBACK", "").lower() == "full":
        return traceback
    frames: list[types.TracebackType] = []
    while traceback is not None:
        if source_info.is_users(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    result: types.TracebackType | None = None
    for entry in reversed(frames):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
