"""Objects that call a function which C++ runs, and edit the exceptions that leave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.backends.xla import callbacks, nesting, pytree
from functorch_like.calling import api_boundary
from functorch_like.errors import FtError


class ErrorsEdited:
    """Base of callables whose errors are complete, name the user's line, and leave out the package's frames.

    Args:
        function: what a call runs.

    An exception of a callback comes out itself in place of C++'s error about it; an error about a tree that C++ cannot
    flatten is one of the package.

    Attributes:
        check: is called before the function, with the arguments as a tuple and a dictionary, unless it is None.
    """

    check: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = nesting.with_room(function)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.check is not None:
                self.check(args, kwargs)
            return self._function(*args, **kwargs)
        except Exception as e:
            refused = e if isinstance(e, FtError) else pytree.refused(e, getattr(self, "__name__", ""), args, kwargs)
            raised = callbacks.original(refused)
            if raised is None:
                error = api_boundary.finalize_error(refused, self) or refused
                if error is e:
                    raise
                try:
                    raise error from None
                finally:
                    error.__traceback__ = api_boundary.filter_traceback(error.__traceback__)
        try:  # not in the clause above, where C++'s error would become the context of the callback's exception
            raise raised
        except BaseException as e:
            error = api_boundary.finalize_error(e, self)
            if error is None:
                raise
            try:
                raise error from None
            finally:
                error.__traceback__ = api_boundary.filter_traceback(error.__traceback__)
