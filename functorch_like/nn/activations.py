"""Piecewise activations, and the makers of elementwise activations: each is one kernel, also for extreme values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import DtypeError
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Unary

_DOC = """{summary}

    Args:
        x: array or number; integers {ints}.

    Returns:
        An array of the shape of x.

    Raises:
        DtypeError: for {refused}.
    {source}
    >>> round(float(nn.{name}({at})), 4)
    {shows}
    """


def real(x: Any, name: str, ints: bool = False, analytic: bool = False, weak: bool = False) -> Any:
    """Convert the operand to a float; with `ints`, integers stay, and with `analytic`, complex numbers.

    With `weak`, floats from integers are weak, as they are where Python floats meet integers.

    Booleans are the Python ints 0 and 1.
    """
    aval = aval_of(x)
    if aval.dtype.kind == "c" and not analytic:
        raise promotion.error(DtypeError, f"nn.{name} takes real numbers, got {aval!r}", "use x.real, or abs(x)")
    if aval.dtype == dtypes.bool_:
        x = promotion.convert(x, dtypes.default_int(), weak=True)
        aval = aval_of(x)
    if ints and dtypes.is_integer(aval.dtype):
        return promotion.convert(x, aval.dtype, aval.weak_type)
    if weak and dtypes.is_integer(aval.dtype):
        return promotion.convert(x, dtypes.default_float(), weak=True)
    return promotion.to_inexact(x)


def plain(
    name: str,
    body: Callable[[Any], Any],
    summary: str,
    at: str,
    shows: str,
    source: str = "",
    ints: bool = False,
    analytic: bool = False,
    weak: bool = False,
) -> Unary:
    """Make an activation without parameters.

    Args:
        name: name of the function.
        body: function of one array, already converted by `real`.
        summary: first line of the docstring.
        at: operand of the example in the docstring.
        shows: result of the example.
        source: reference of the formula.
        ints: True to keep integers as they are; otherwise they become floats.
        analytic: True for a function of complex numbers, too.
        weak: True for weak floats from integers.
    """
    doc = _DOC.format(
        name=name, summary=summary, at=at, shows=shows, ints="stay integers" if ints else "become floats",
        source=f"\n    {source}\n" if source else "",
        refused="values that are no arrays" if analytic else "complex numbers",
    )  # fmt: skip
    made = promotion.unary(name, lambda x: body(real(x, name, ints, analytic, weak)), doc, by_name=True)
    made.__module__ = promotion.caller()
    return made


def with_parameter(name: str, body: Callable[[Any, Any], Any], weak: bool = True) -> Callable[[Any, Any], Any]:
    """Make an activation with a parameter, a number or an array that broadcasts."""

    def traced(x: Any, a: Any) -> Any:
        x = real(x, name, weak=weak)
        aval = aval_of(x)
        return body(x, promotion.broadcast(promotion.convert(a, aval.dtype, aval_of(a).weak_type), aval.shape))

    traced.__name__ = name
    fast = eager_jit(ints=True, checked=True)(traced)

    def function(x: Any, a: Any) -> Any:
        if isinstance(x, Tracer) or isinstance(a, Tracer):
            return traced(x, a)
        return fast(*promotion.numbers(x, a))

    return function


# ------------------------------------------------------------------------------------------------ piecewise functions
def zero(x: Any) -> Any:
    """Return zeros in the shape and dtype of x."""
    return structural.full_like(x, 0)


def _relu(x: Any) -> Any:
    return elementwise.select_n(
        elementwise.le(x, zero(x)), x, zero(x)
    )  # a selection, since max would give slope 1/2 at 0; NaN stays


def _relu6(x: Any) -> Any:
    return elementwise.select_n(elementwise.ge(x, structural.full_like(x, 6)), _relu(x), structural.full_like(x, 6))


def _hard_sigmoid(x: Any) -> Any:
    return elementwise.div(_relu6(elementwise.add(x, structural.full_like(x, 3))), structural.full_like(x, 6))


def _hard_tanh(x: Any) -> Any:
    one, minus = structural.full_like(x, 1), structural.full_like(x, -1)
    return elementwise.select_n(elementwise.gt(x, one), elementwise.select_n(elementwise.lt(x, minus), x, minus), one)


def _sparse_plus(x: Any) -> Any:
    one = structural.full_like(x, 1)
    bend = elementwise.mul(elementwise.square(elementwise.add(x, one)), structural.full_like(x, 0.25))
    return elementwise.select_n(
        elementwise.ge(x, one), elementwise.select_n(elementwise.le(x, elementwise.neg(one)), bend, zero(x)), x
    )


def _sparse_sigmoid(x: Any) -> Any:
    one = structural.full_like(x, 1)
    rise = elementwise.mul(elementwise.add(x, one), structural.full_like(x, 0.5))
    return elementwise.select_n(
        elementwise.ge(x, one), elementwise.select_n(elementwise.le(x, elementwise.neg(one)), rise, zero(x)), one
    )


sparse_plus = plain("sparse_plus", _sparse_plus, "(x + 1)**2 / 4 for -1 < x < 1; 0 below, x above.", "0.0", "0.25")
sparse_sigmoid = plain(
    "sparse_sigmoid", _sparse_sigmoid, "(x + 1) / 2, limited to [0, 1]: the derivative of sparse_plus.", "0.5", "0.75"
)
identity = promotion.unary(
    "identity",
    lambda x: promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type),
    _DOC.format(
        name="identity", summary="x itself.", at="0.5", shows="0.5", source="", ints="stay integers",
        refused="values that are no arrays",
    ),
    by_name=True,
)  # fmt: skip
relu = plain("relu", _relu, "max(x, 0), with slope 0 at 0.", "-1.5", "0.0", ints=True)
relu6 = plain("relu6", _relu6, "min(max(x, 0), 6).", "7.0", "6.0", weak=True)
hard_tanh = plain("hard_tanh", _hard_tanh, "min(max(x, -1), 1).", "0.5", "0.5", ints=True)
hard_sigmoid = plain("hard_sigmoid", _hard_sigmoid, "relu6(x + 3) / 6.", "0.0", "0.5", weak=True)
hard_silu = plain("hard_silu", lambda x: elementwise.mul(x, _hard_sigmoid(x)), "x relu6(x + 3) / 6.", "1.0", "0.6667")
hard_swish = hard_silu
_leaky_relu = with_parameter(
    "leaky_relu", lambda x, a: elementwise.select_n(elementwise.ge(x, zero(x)), elementwise.mul(a, x), x)
)


@with_kernel(1, values=("negative_slope",))
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x for x >= 0, negative_slope x below.

    Args:
        x: array or number; integers become floats.
        negative_slope: the slope for negative x: number, or array that broadcasts to x.

    Returns:
        Floats, of the shape of x.

    Raises:
        DtypeError: for complex numbers.

    >>> round(float(nn.leaky_relu(-1.0)), 4)
    -0.01
    """
    return _leaky_relu(x, negative_slope)
