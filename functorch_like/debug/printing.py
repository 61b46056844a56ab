"""`debug.print`, `debug.log` and `debug.callback`: output of a compiled program while it runs."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.calling import api_boundary
from functorch_like.calling.format_strings import check_format
from functorch_like.calling.host_callbacks import host_function
from functorch_like.primitives.effects.callbacks import debug_callback

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@api_boundary.public
def callback(callback: Callable[..., object], *args: PyTree, ordered: bool = False, **kwargs: PyTree) -> None:
    """Call a Python function with values of the program, when it runs; its result is ignored.

    The call is made as often as the program gets there: in a loop, each time around. Derivatives do not repeat it:
    `grad` calls it once, with the values of the function; `checkpoint` does not call it again when it computes again.
    Under vmap it is called for each element; in a `cond` or `while_loop` whose predicate vmap maps over, for
    those elements that come there, one after the other.

    Args:
        callback: takes the arguments with NumPy arrays (read-only) in the place of arrays. It may use this package.
        args: pytrees of arrays; all else, numbers included, is handed over as it is.
        ordered: whether the call keeps its place among the other ordered ones: before those that come after it in
            the Python code, through loops, branches and nested calls. Under vmap it is called for all elements, in
            order, before the next one is.
        kwargs: further arguments for `callback`.

    Raises:
        Exception: at the call of the program, any exception of the function.

    >>> import functorch_like as ft
    >>> seen = []
    >>> @ft.jit
    ... def f(x):
    ...     ft.debug.callback(lambda v: seen.append(float(v)), x * 2)
    ...     return x
    >>> y = f(1.5)
    >>> seen
    [3.0]
    """
    host, operands, _ = host_function(callback, None, args, kwargs, "debug.callback", numbers=False)
    debug_callback(*operands, fun=host, ordered=bool(ordered))


@api_boundary.public
def print(fmt: str, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Print values of the program when it runs: `debug.print("loss {:.3f} at {step}", loss, step=step)`.

    For when and how often, see `debug.callback`.

    Args:
        fmt: as for `str.format`. (Not an f-string: that would be filled in while the function is traced, when there
            are no values yet.)
        args: for the fields {}, {0}, ...
        ordered: whether lines keep the order of the Python code.
        kwargs: for the fields {name}.

    Raises:
        ArgumentError: for fields without a value, and values without a field.

    >>> import functorch_like as ft
    >>> @ft.jit
    ... def f(x):
    ...     ft.debug.print("{:.2f} and {y}", x, y=x + 1)
    ...     return x
    >>> y = f(1.5)
    1.50 and 2.5
    """
    _formatted("print", builtins.print, fmt, args, ordered, kwargs)


@api_boundary.public
def log(fmt: str, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Log values as `print` prints them, to the logger "functorch_like" of Python's `logging`, at its level INFO.

    Args:
        fmt: as for `print`.
        args: for the fields {}, {0}, ...
        ordered: whether lines keep the order of the Python code.
        kwargs: for the fields {name}.

    Raises:
        ArgumentError: for fields without a value, and values without a field.

    >>> import functorch_like as ft, logging
    >>> logger, seen = logging.getLogger("functorch_like"), logging.Handler()
    >>> seen.emit = lambda record: builtins.print(record.levelname, record.getMessage())
    >>> logger.addHandler(seen); logger.setLevel("INFO")
    >>> y = ft.jit(lambda x: ft.debug.log("loss {:.2f}", x))(1.5)
    INFO loss 1.50
    >>> logger.removeHandler(seen); logger.setLevel("NOTSET")
    """
    _formatted("log", lambda text: logging.getLogger("functorch_like").info("%s", text), fmt, args, ordered, kwargs)


def _formatted(
    name: str, write: Callable[[str], Any], fmt: str, args: Sequence[Any], ordered: bool, kwargs: dict[str, Any]
) -> None:
    check_format(f"debug.{name}", fmt, args, kwargs)
    printed = lambda *a, **k: write(fmt.format(*a, **k))
    printed.__name__ = name
    host, operands, _ = host_function(printed, None, args, kwargs, f"debug.{name}", numbers=False)
    debug_callback(*operands, fun=host, ordered=bool(ordered))
