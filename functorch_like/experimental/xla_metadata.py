"""`set_xla_metadata`: attributes of operations, which XLA and tools that read its programs know."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, overload

from functorch_like import tree
from functorch_like.backends.xla import configuration
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import F, T
from functorch_like.core import Tracer
from functorch_like.errors import ArgumentError
from functorch_like.ir.trace_to_jaxpr import Recorded, annotate
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.structural.annotations import xla_metadata

if TYPE_CHECKING:
    from functorch_like.typing import Block

Attributes = tuple[tuple[str, str], ...]


@overload
def set_xla_metadata(x: None = None, /, **attributes: object) -> Block: ...


@overload
def set_xla_metadata(x: T, /, **attributes: object) -> T: ...


@api_boundary.public
def set_xla_metadata(x: Any = None, /, **attributes: Any) -> Any:
    """Give operations attributes in the StableHLO program: `mhlo.frontend_attributes`.

    Without `x` the operations are those traced in a block, or in a decorated function: also those of jitted functions,
    loops and branches, and of derivatives taken of the block. With `x` it is the operation that computes `x`. Blocks
    nest; the innermost value of a name counts. Operations outside of jit have no attributes.

    Args:
        x: array or pytree of arrays; None for a block or decorator.
        **attributes: bools ("true", "false"), and others by their text. In a block, None removes an outer attribute.

    Returns:
        `x`, or a context manager that is a decorator, too.

    Raises:
        ArgumentError: for values that are not hashable.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.xla_metadata import set_xla_metadata
    >>> @ft.jit
    ... def f(x):
    ...     with set_xla_metadata(part="first"):
    ...         y = fnp.sin(x)
    ...     return set_xla_metadata(fnp.cos(y), part="second")
    >>> text = f.lower(1.0).as_text()
    >>> [part in text for part in ('part = "first"', 'part = "second"')]
    [True, True]
    """
    if x is None:
        return _Block({name: None if value is None else text(name, value) for name, value in attributes.items()})
    pairs = tuple((name, text(name, value)) for name, value in sorted(attributes.items()))
    return tree.map(lambda leaf: xla_metadata(leaf, attributes=pairs) if isinstance(leaf, Tracer) else leaf, x)


def text(name: str, value: object) -> str:
    """Return an attribute as text.

    Raises:
        ArgumentError: for a value that is not hashable.
    """
    try:
        hash(value)
    except TypeError:
        raise ArgumentError(f"the attribute {name} is {value!r:.60}", fix="give a text, a number or a bool") from None
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Block:
    """Block and decorator that adds attributes to those around it."""

    def __init__(self, changes: dict[str, str | None]) -> None:
        self._changes = changes
        self._entered: list[tuple[Recorded, Any]] = []

    def __enter__(self) -> None:
        merged = {**dict(configuration.xla_metadata.value), **self._changes}
        value = tuple((name, text) for name, text in sorted(merged.items()) if text is not None)
        self._entered.append((Recorded(), configuration.xla_metadata.swap_local(value)))

    def __exit__(self, *exception: object) -> None:
        recorded, before = self._entered.pop()
        annotate(recorded.equations(), configuration.xla_metadata.value)
        configuration.xla_metadata.restore(before)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def called(*args: Any, **kwargs: Any) -> Any:
            with _Block(self._changes):
                return fun(*args, **kwargs)

        return called


def called_with(fun: F, name: str, pairs: Attributes) -> F:
    """Return a function that is one call in a program, and its call has attributes.

    Args:
        fun: the function, of arguments by position.
        name: name of the call.
        pairs: the attributes.
    """

    @api_boundary.public
    @wraps(fun)
    def called(*args: Any) -> Any:
        flat = traced_function.arguments(args)
        body = traced_function.staged(fun, flat, name)
        recorded = Recorded()
        outs = call(*body.consts, *traced_function.operands(flat), jaxpr=body.jaxpr, spec=CallSpec(name))
        merged = {**dict(configuration.xla_metadata.value), **dict(pairs)}
        annotate(recorded.equations(), tuple(sorted(merged.items())))
        return body.out_tree.unflatten(outs)

    return cast("F", called)


@overload
def xla_metadata_call(fun: F, /, **attributes: str) -> F: ...


@overload
def xla_metadata_call(fun: None = None, /, **attributes: str) -> Callable[[F], F]: ...


def xla_metadata_call(fun: Any = None, /, **attributes: str) -> Any:
    """Make a function one call in the program, and give the call attributes.

    Its derivatives and its batched form are calls with the same attributes.

    Args:
        fun: takes and returns pytrees of arrays, by position. Left out, `xla_metadata_call` returns a decorator.
        **attributes: names and texts.

    Returns:
        A function of the same arguments and results.

    Raises:
        ArgumentError: for something that is not a function, or values that are not text.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.scheduling_groups import xla_metadata_call
    >>> f = ft.jit(xla_metadata_call(lambda x: x * x, part="square"))
    >>> float(f(3.0)), 'part = "square"' in f.lower(3.0).as_text()
    (9.0, True)
    """
    if fun is None:
        return functools.partial(xla_metadata_call, **attributes)
    check_callable(fun, "xla_metadata_call", 'xla_metadata_call(f, name="text")(x)')
    wrong = next((pair for pair in attributes.items() if not isinstance(pair[1], str)), None)
    if wrong is not None:
        raise ArgumentError(f"the attribute {wrong[0]} of xla_metadata_call is {wrong[1]!r:.60}", fix="give a text")
    return called_with(fun, "xla_metadata_call", tuple(attributes.items()))
