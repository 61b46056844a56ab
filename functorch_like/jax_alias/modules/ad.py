"""`jax.interpreters.ad`: derivative rules of primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import numpy
from functorch_like.core import aval_of
from functorch_like.errors import DifferentiationError
from functorch_like.interpreters.forward import Dual as JVPTracer
from functorch_like.interpreters.forward import JVPTrace as JVPTrace
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


def get_primitive_transpose(primitive: Primitive) -> Callable[..., Any]:
    """Return the transpose rule of a primitive."""
    return primitive_transposes[primitive]
