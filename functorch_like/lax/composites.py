"""composite: functions with a name by which a compiler may replace them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import foreign
from functorch_like.caches import Cache
from functorch_like.calling import traced_function
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import wraps
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.lax.operands import error
from functorch_like.primitives.higher_order import composite as higher

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import P, R


@transformation
def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Give a function a name by which a compiler may replace it with a faster implementation.

    In StableHLO a call is one operation, `stablehlo.composite`, with the name, the version, the attributes, and the
    definition as a function. The definition is compiled where the compiler has no implementation. `grad`, `jvp` and
    `vmap` transform the definition.

    Args:
        decomposition: the definition: takes and returns pytrees of arrays; attributes are keyword arguments.
        name: name of the operation, with a namespace: "my.softmax".
        version: version number of the definition.

    Returns:
        A function that takes arrays by position and attributes by name. Attributes are bool, int, float, str, NumPy
        scalars or vectors; those that are None are left out.

    Raises:
        ArgumentError: for a name or version of another type.
        DtypeError: at the call, for attributes of other types.
        UnsupportedError: at the call, where the function prints or calls Python.

    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> float(tangent(0.0)), "my.tangent" in ft.jit(tangent).lower(0.0).as_text()
    (0.0, True)
    """
    if not callable(decomposition) or not isinstance(name, str) or not name or not isinstance(version, int):
        raise error(
            ArgumentError,
            f"lax.composite got {decomposition!r:.40}, name={name!r}, version={version!r}",
            "pass a function, a name and an int",
        )

    caches: dict[Any, Cache[Any, traced_function.TracedFunction]] = {}  # staged functions, for each set of attributes

    @wraps(decomposition)
    def called(*args: Any, **attributes: Any) -> Any:
        texts = tuple((k, foreign.attribute(k, v)) for k, v in sorted(attributes.items()) if v is not None)
        call = traced_function.arguments(args)
        fun = functools.partial(decomposition, **attributes) if attributes else decomposition
        body = traced_function.staged(fun, call, "composite", caches.setdefault(texts, Cache()))
        if body.jaxpr.effects:
            raise error(UnsupportedError, f"the composite {name!r} has effects", "leave out callbacks and debug.print")
        operands = [*body.consts, *traced_function.operands(call)]
        outs = higher.composite(*operands, jaxpr=body.jaxpr, name=name, version=version, attributes=texts)
        return body.out_tree.unflatten(outs)

    return called
