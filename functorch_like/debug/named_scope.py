"""`named_scope`: names for parts of a program, shown in its texts and profiles."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.errors import ArgumentError
from functorch_like.ir.trace_to_jaxpr import Recorded
from functorch_like.source_info import Scoped, name_of

if TYPE_CHECKING:
    from functorch_like.typing import Block


def named_scope(name: str) -> Block:
    """Return a block, or decorator, that names the equations traced inside of it.

    The name stands in the text of jaxprs, in the locations of StableHLO (`lower(...).as_text(debug_info=True)`) and in
    the `op_name` of compiled operations, hence in profiles; derivatives keep it. Scopes nest: "encoder/attention". It
    changes nothing else, and costs nothing when the program runs.

    Args:
        name: name of the scope.

    Returns:
        A context manager, and a decorator.

    Raises:
        ArgumentError: for a name that is not text, or empty.

    >>> import functorch_like as ft
    >>> @ft.make_jaxpr
    ... def f(x):
    ...     with ft.named_scope("squares"):
    ...         return x * x
    >>> "in squares" in str(f(1.0))
    True
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name of a scope is a text, got {name!r:.60}", fix='named_scope("attention")')
    return _scope(name)


@transformation
def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Return a function whose operations carry a name, as in a `named_scope`.

    Args:
        fun: any function.
        name: the name; by default that of the function.

    Returns:
        A function of the same arguments and results.

    Raises:
        ArgumentError: for something that is not a function, or a name that is not text.

    >>> import functorch_like as ft
    >>> def encoder(x):
    ...     return x * x
    >>> "in encoder" in str(ft.make_jaxpr(ft.named_call(encoder))(1.0))
    True
    """
    check_callable(fun, "named_call")
    return named_scope(name_of(fun) if name is None else name)(fun)


@contextmanager
def _scope(name: str) -> Generator[None]:
    # Equations recorded in the meantime are named at the end, so that recording does not depend on scopes.
    recorded = Recorded()
    try:
        yield
    finally:
        for e in recorded.equations():
            e.source = Scoped(name, e.source)
