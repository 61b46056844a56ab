"""Activations made of exponentials and error functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ShapeError
from functorch_like.nn.activations import plain, real, with_parameter, zero
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.binary import complex_log_add
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


# --------------------------------------------------------------------------------------------- exponentials, logarithms
def _softplus(x: Any) -> Any:
    if dtypes.is_complex(aval_of(x).dtype):
        return complex_log_add(x, zero(x))
    # log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), by selections whose derivatives of all orders are correct at 0.
    above = elementwise.gt(x, zero(x))
    return elementwise.add(
        elementwise.select_n(above, zero(x), x),
        elementwise.log1p(elementwise.exp(elementwise.select_n(above, x, elementwise.neg(x)))),
    )


def _silu(x: Any) -> Any:
    return elementwise.mul(x, elementwise.logistic(x))


def _elu(x: Any, a: Any) -> Any:
    above = elementwise.gt(x, zero(x))
    return elementwise.select_n(
        above, elementwise.mul(a, elementwise.expm1(elementwise.select_n(above, x, zero(x)))), x
    )


def _celu(x: Any, a: Any) -> Any:
    above = elementwise.gt(x, zero(x))
    return elementwise.select_n(
        above, elementwise.mul(a, elementwise.expm1(elementwise.div(elementwise.select_n(above, x, zero(x)), a))), x
    )


_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _selu(x: Any) -> Any:
    return elementwise.mul(structural.full_like(x, _SCALE), _elu(x, structural.full_like(x, _ALPHA)))


def _squareplus(x: Any, b: Any) -> Any:
    return elementwise.mul(
        structural.full_like(x, 0.5), elementwise.add(x, elementwise.sqrt(elementwise.add(elementwise.square(x), b)))
    )


def _log1mexp(x: Any) -> Any:
    # M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012: two formulas, each where it loses no digits.
    small = elementwise.lt(x, structural.full_like(x, math.log(2)))
    near = elementwise.log(
        elementwise.neg(elementwise.expm1(elementwise.neg(elementwise.select_n(small, structural.full_like(x, 1), x))))
    )
    far = elementwise.log1p(
        elementwise.neg(elementwise.exp(elementwise.neg(elementwise.select_n(small, x, structural.full_like(x, 1)))))
    )
    return elementwise.select_n(small, far, near)


log1mexp = plain(
    "log1mexp", _log1mexp, "log(1 - exp(-x)) for positive x, accurate for small and large x.", "1.0", "-0.4587"
)
sigmoid = plain("sigmoid", elementwise.logistic, "1 / (1 + exp(-x)).", "0.0", "0.5", analytic=True)
log_sigmoid = plain(
    "log_sigmoid",
    lambda x: elementwise.neg(_softplus(elementwise.neg(x))),
    "log(sigmoid(x)), accurate for large x.",
    "0.0",
    "-0.6931",
    analytic=True,
)
softplus = plain("softplus", _softplus, "log(1 + exp(x)), without overflow.", "0.0", "0.6931", analytic=True)
soft_sign = plain(
    "soft_sign",
    lambda x: elementwise.div(x, elementwise.add(elementwise.abs(x), structural.full_like(x, 1))),
    "x / (1 + |x|).",
    "1.0",
    "0.5",
)
silu = plain(
    "silu", _silu, "x sigmoid(x).", "1.0", "0.7311",
    "S. Elfwing, E. Uchibe, K. Doya, \"Sigmoid-weighted linear units\", arXiv:1702.03118.", analytic=True,
)  # fmt: skip
swish = silu
mish = plain(
    "mish",
    lambda x: elementwise.mul(x, elementwise.tanh(_softplus(x))),
    "x tanh(softplus(x)).",
    "1.0",
    "0.8651",
    'D. Misra, "Mish", arXiv:1908.08681.',
    analytic=True,
)
selu = plain(
    "selu", _selu, "The exponential linear unit, scaled to keep mean and variance.", "1.0", "1.0507",
    "G. Klambauer et al., \"Self-normalizing neural networks\", arXiv:1706.02515.", weak=True,
)  # fmt: skip
_elu_of, _celu_of = with_parameter("elu", _elu), with_parameter("celu", _celu)
_squareplus_of = with_parameter("squareplus", _squareplus, weak=False)


@with_kernel(1, values=("alpha",))
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x for x > 0, alpha (exp(x) - 1) below.

    D.-A. Clevert et al., "Exponential linear units", arXiv:1511.07289.

    Args:
        x: array or number; integers become floats.
        alpha: number, or array that broadcasts to x.

    Returns:
        Floats, of the shape of x.

    Raises:
        DtypeError: for complex numbers.

    >>> round(float(nn.elu(-1.0)), 4)
    -0.6321
    """
    return _elu_of(x, alpha)


@with_kernel(1, values=("alpha",))
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x for x > 0, alpha (exp(x / alpha) - 1) below, with a continuous derivative.

    J. T. Barron, "Continuously differentiable exponential linear units", arXiv:1704.07483.

    Args:
        x: array or number; integers become floats.
        alpha: number, or array that broadcasts to x.

    Returns:
        Floats, of the shape of x.

    Raises:
        DtypeError: for complex numbers.

    >>> round(float(nn.celu(-1.0)), 4)
    -0.6321
    """
    return _celu_of(x, alpha)


def squareplus(x: ArrayLike, b: ArrayLike = 4.0) -> Array:
    """(x + sqrt(x**2 + b)) / 2.

    J. T. Barron, "Squareplus: a softplus-like algebraic rectifier", arXiv:2112.11687.

    Args:
        x: array or number; integers become floats.
        b: number, or array that broadcasts to x.

    Returns:
        Floats, of the shape of x.

    Raises:
        DtypeError: for complex numbers.

    >>> round(float(nn.squareplus(0.0)), 4)
    1.0
    """
    return _squareplus_of(x, b)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x Phi(x), with the cumulative distribution function Phi of the standard normal distribution.

    D. Hendrycks, K. Gimpel, "Gaussian error linear units", arXiv:1606.08415.

    Args:
        x: array or number; integers become floats.
        approximate: True for the paper's approximation by tanh, which complex numbers have, too; False for the error
            function.

    Returns:
        Floats, of the shape of x.

    Raises:
        DtypeError: for complex numbers without the approximation.

    >>> round(float(nn.gelu(1.0)), 4), round(float(nn.gelu(1.0, approximate=False)), 4)
    (0.8412, 0.8413)
    """
    return _gelu(x if isinstance(x, Tracer) else promotion.numbers(x)[0], approximate=bool(approximate))


@eager_jit(static=("approximate",), ints=True, checked=True)
def _gelu(x: Any, approximate: bool) -> Any:
    x = real(x, "gelu", analytic=approximate)
    full = lambda number: structural.full_like(x, number)
    half = elementwise.mul(full(0.5), x)
    if not approximate:
        return elementwise.mul(half, elementwise.erfc(elementwise.mul(full(-math.sqrt(0.5)), x)))
    # x (1 + c x**2) instead of x + c x**3: the derivative stays finite as long as x**2 does.
    inner = elementwise.mul(
        elementwise.mul(full(math.sqrt(2 / math.pi)), x),
        elementwise.add(full(1), elementwise.mul(full(0.044715), elementwise.square(x))),
    )
    return elementwise.mul(half, elementwise.add(full(1), elementwise.tanh(inner)))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of a dimension times the sigmoid of the second.

    Y. N. Dauphin et al., "Language modeling with gated convolutional networks", arXiv:1612.08083.

    Args:
        x: array; integers become floats.
        axis: a dimension of even size.

    Returns:
        Floats or complex numbers, with half the size of that dimension.

    Raises:
        ShapeError: for a dimension of odd size, or one that x does not have.

    >>> nn.glu(np.zeros((2, 6))).shape
    (2, 3)
    """
    at = axis_of(axis, aval_of(x).ndim, "nn.glu")
    if aval_of(x).shape[at] % 2:
        raise promotion.error(
            ShapeError, f"nn.glu cannot halve dimension {axis} of {aval_of(x)!r}", "name a dimension of even size"
        )
    return _glu(x, axis=at)


@eager_jit(static=("axis",))
def _glu(x: Any, axis: int) -> Any:
    x = real(x, "glu", analytic=True)
    shape = aval_of(x).shape
    middle = shape[axis] // 2
    part = lambda a, b: structural.slice(
        x, start_indices=tuple(a if d == axis else 0 for d in range(len(shape))),
        limit_indices=tuple(b if d == axis else n for d, n in enumerate(shape)), strides=None,
    )  # fmt: skip
    return elementwise.mul(part(0, middle), elementwise.logistic(part(middle, shape[axis])))
