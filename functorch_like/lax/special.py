"""Special functions of several operands, and Bessel functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.core import Tracer
from functorch_like.lax.operands import binary, checked, match, unary
from functorch_like.primitives.elementwise.bessel import bessel_i0e as _i0e
from functorch_like.primitives.elementwise.bessel import bessel_i1e as _i1e
from functorch_like.primitives.elementwise.incomplete_beta import regularized_incomplete_beta
from functorch_like.primitives.elementwise.incomplete_gamma import igamma as _igamma
from functorch_like.primitives.elementwise.incomplete_gamma import igamma_grad_a as _igamma_grad_a
from functorch_like.primitives.elementwise.incomplete_gamma import igammac as _igammac
from functorch_like.primitives.elementwise.incomplete_gamma import random_gamma_grad as _random_gamma_grad
from functorch_like.primitives.elementwise.zeta import zeta as _zeta
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary


def _two(name: str, primitive: Any, summary: str) -> Binary:
    made = binary(name, primitive, summary, f"lax.{name}(2.0, 1.5).shape = ()")
    made.__module__ = __name__
    return made


def _one(name: str, primitive: Any, summary: str) -> Unary:
    made = unary(name, primitive, summary, f"lax.{name}(0.5).shape = ()")
    made.__module__ = __name__
    return made


bessel_i0e = _one("bessel_i0e", _i0e, "exp(-|x|) times the modified Bessel function of order 0.")
bessel_i1e = _one("bessel_i1e", _i1e, "exp(-|x|) times the modified Bessel function of order 1.")
igamma = _two("igamma", _igamma, "The regularized lower incomplete gamma function P(x, y).")
igammac = _two("igammac", _igammac, "The regularized upper incomplete gamma function Q(x, y) = 1 - P(x, y).")
igamma_grad_a = _two("igamma_grad_a", _igamma_grad_a, "The derivative of igamma with respect to its first operand.")
random_gamma_grad = _two(
    "random_gamma_grad",
    _random_gamma_grad,
    "The derivative of a gamma sample y with respect to its shape x, at a fixed quantile.",
)
zeta = _two("zeta", _zeta, "The Hurwitz zeta function: the sum of (y + k)**-x over k = 0, 1, ...")


@eager_jit
def _betainc(a: Any, b: Any, x: Any) -> Any:
    return regularized_incomplete_beta(*match(a, b, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b).

    Args:
        a: array or number.
        b: array or number.
        x: array or number, from 0 to 1.

    Returns:
        An array of their shape.

    Raises:
        ShapeError: where the shapes differ; only scalars are broadcast.
        DtypeError: where the dtypes differ.

    >>> round(lax.betainc(1.0, 1.0, 0.25).item(), 6)
    0.25
    """
    return _betainc(*checked(a, b, x)) if not _traced(a, b, x) else _betainc(a, b, x)


def _traced(*xs: Any) -> bool:
    return any(isinstance(x, Tracer) for x in xs)
