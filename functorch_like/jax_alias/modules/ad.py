"""`jax.interpreters.ad`: derivative rules of primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functorch_like as ft
from functorch_like import numpy
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DifferentiationError
from functorch_like.interpreters.forward import Dual as JVPTracer
from functorch_like.interpreters.forward import JVPTrace as JVPTrace
from functorch_like.jax_alias.modules.linear_util import WrappedFun
from functorch_like.jax_alias.modules.user_primitives import (
    Primitive,
    UndefinedPrimal,
    Zero,
    primitive_jvps,
    primitive_transposes,
)

__all__ = ["JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "primitive_jvps", "primitive_transposes"]

#: Raised where a function with a `custom_vjp` rule closes over a value that is differentiated.
CustomVJPException = DifferentiationError


def is_undefined_primal(x: Any) -> bool:
    """Return True for the operand in which a transpose rule is linear."""
    return isinstance(x, UndefinedPrimal)


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent as an array."""
    return tangent.instantiate() if isinstance(tangent, Zero) else tangent


def zeros_like_aval(aval: Any) -> Any:
    """Return zeros of an aval's shape and dtype."""
    return numpy.zeros(aval.shape, aval.dtype)


def p2tz(primal: Any) -> Zero:
    """Return the zero tangent of a value."""
    return Zero.from_primal_value(primal)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, either of which may be zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else x + y


def add_jaxvals(x: Any, y: Any) -> Any:
    """Return the sum of two arrays."""
    return numpy.add(x, y)


def defjvp(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Register a derivative rule `(tangent, *operands, **params)` for each operand."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(aval_of(out))
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and not isinstance(tangent, Zero):
                total = add_tangents(total, rule(tangent, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defjvp2(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Register a derivative rule `(tangent, out, *operands, **params)` for each operand."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        total: Any = Zero(aval_of(out))
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and not isinstance(tangent, Zero):
                total = add_tangents(total, rule(tangent, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def deflinear2(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Register the transpose `(ct, *operands, **params)` of a primitive that is linear."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(isinstance(t, Zero) for t in tangents):
            return out, Zero(aval_of(out))
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = lambda ct, *args, **params: transpose(ct, *args, **params)


def deflinear(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Register the transpose `(ct, **params)` of a primitive that is linear."""
    deflinear2(primitive, lambda ct, *args, **params: transpose(ct, **params))


def defbilinear(primitive: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Register the rules of a primitive of two operands that is linear in each of them.

    Args:
        primitive: the primitive.
        lhs_rule: `(ct, x, y, **params) -> cotangent of x`, where x is an `UndefinedPrimal`.
        rhs_rule: `(ct, x, y, **params) -> cotangent of y`, where y is an `UndefinedPrimal`.
    """
    defjvp(
        primitive,
        lambda tangent, x, y, **params: primitive.bind(tangent, y, **params),
        lambda tangent, x, y, **params: primitive.bind(x, tangent, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return (ct if isinstance(ct, Zero) else lhs_rule(ct, x, y, **params)), None
        return None, (ct if isinstance(ct, Zero) else rhs_rule(ct, x, y, **params))

    primitive_transposes[primitive] = transpose


def jvp(fun: Any, *values: Any, has_aux: bool = False, instantiate: bool = True) -> Any:
    """Return values and tangents of a function of flat arguments.

    Args:
        fun: function of arrays, or a `WrappedFun`, whose results are a sequence of arrays.
        values: primals and tangents, a sequence of each. Without them, a `WrappedFun` of both is returned.
        has_aux: True if the function returns a pair whose second part has no tangents.
        instantiate: must be True: tangents that are zero are arrays, too.

    Returns:
        The results and their tangents; with `has_aux`, the auxiliary part follows.

    Raises:
        ArgumentError: for `instantiate=False`.

    Example:
        >>> values, tangents = jvp(lambda x, y: [x * y, x + y], (2.0, 3.0), (1.0, 0.0))
        >>> [float(x) for x in (*values, *tangents)]
        [6.0, 5.0, 3.0, 1.0]
    """
    if not instantiate:
        raise ArgumentError("ad.jvp makes arrays of all tangents", fix="leave out instantiate=False")
    called = fun.call_wrapped if isinstance(fun, WrappedFun) else fun

    def flat(*args: Any) -> Any:
        out = called(*args)
        return (list(out[0]), out[1]) if has_aux else list(out)

    def along(primals: Any, tangents: Any) -> Any:
        directions = [instantiate_zeros(t) for t in tangents]
        return ft.jvp(flat, tuple(primals), tuple(directions), has_aux=has_aux)

    return along(*values) if values else WrappedFun(along)


def get_primitive_transpose(primitive: Primitive) -> Callable[..., Any]:
    """Return the transpose rule of a primitive."""
    return primitive_transposes[primitive]


def __getattr__(name: str) -> Any:
    if name != "add_jaxvals_p":
        raise AttributeError(name)
    from functorch_like.jax_alias.modules import core_primitives  # late: it loads all primitives

    return core_primitives.__getattr__(name)
