"""`checkpoint`: derivatives that compute intermediate values again instead of keeping them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

from functorch_like import tree
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.call_signature import FlatCall, resolve_argnums
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import P, R, T
from functorch_like.errors import ArgumentError
from functorch_like.primitives.effects.checkpoint_name import name as named
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint as primitive


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@transformation
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Return a function whose derivative in reverse mode recomputes intermediate values instead of storing them.

    As residuals, reverse mode stores the arguments of a checkpointed function and the values that the policy selects.
    It recomputes all other values that the derivative needs. Also called `remat`.

    Args:
        fun: takes and returns pytrees of arrays; it may close over arrays. It is traced, as by `jit`. Left out,
            `checkpoint` gives a decorator.
        prevent_cse: whether to keep XLA's common subexpression elimination (CSE) from merging the recomputation
            with the first computation, which would store the values again. Inside of `lax.scan` XLA has nothing to
            merge, and False lets it optimise freely.
        policy: which intermediate values are kept: one of `checkpoint_policies`, or a function
            `(primitive, *avals, **params) -> bool` that is called for each equation. None keeps nothing.
        static_argnums: positions of arguments that are not traced. The function is traced anew at each call where one
            of their values is not hashable.
        static_argnames: names of such arguments.

    Returns:
        A function of the same arguments and results.

    Raises:
        ConcretizationError: at the call, where `fun` needs the value of a traced argument.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> f = ft.checkpoint(lambda x: fnp.sin(fnp.sin(x)))
    >>> float(ft.grad(f)(2.0)) == float(ft.grad(lambda x: fnp.sin(fnp.sin(x)))(2.0))
    True
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    check_callable(fun, "checkpoint")
    if policy is not None and not callable(policy):
        raise ArgumentError(
            f"policy={policy!r:.60} is not a function", fix="use one of ft.checkpoint_policies, e.g. dots_saveable"
        )
    static = resolve_argnums(fun, static_argnums, static_argnames)

    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        call = FlatCall(static, args, kwargs)
        body = traced_function.staged(fun, call, "checkpoint")
        outs = primitive(
            *body.consts,
            *traced_function.operands(call),
            jaxpr=body.jaxpr,
            policy=policy,
            prevent_cse=bool(prevent_cse),
            again=False,
        )
        return body.out_tree.unflatten(outs)

    return checkpointed


remat = checkpoint


@api_boundary.public
def checkpoint_name(x: T, name: str) -> T:
    """The identity, which names a value for the policies of `checkpoint`.

    Args:
        x: array, or pytree of arrays.
        name: any text. Several values may have one name.

    Returns:
        x. The policy decides by that name whether it is kept for the derivative or computed again.

    Raises:
        ArgumentError: for a name that is not a string.

    >>> import functorch_like as ft
    >>> ft.checkpoint_name(2.0, "two").item()
    2.0
    """
    if not isinstance(name, str):
        raise ArgumentError(f"checkpoint_name takes a string as the name, got {name!r:.60}", fix="give a string")
    return tree.map(lambda leaf: named(leaf, name=name), x)
