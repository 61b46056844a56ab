"""The maker of special functions: promotion, checks of dtypes, documentation, precision, derivatives."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, tree
from functorch_like.calling.api_boundary import finalize_error
from functorch_like.calling.second_calls import NO_CALL, second_call
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, FtError
from functorch_like.numpy import promotion
from functorch_like.primitives.base.shapes import full_like
from functorch_like.transforms.custom.custom_jvp import custom_jvp
from functorch_like.transforms.custom.symbolic_zeros import SymbolicZero
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.transforms.jvp_vjp import jvp

if TYPE_CHECKING:
    from functorch_like.typing import Binary, Unary

_DOC = """{summary}

    Args:
{args}

    Returns:
        {returns} of the shape they broadcast to; integers become the default float.

    Raises:
        {refuses}: for {refused}.

    >>> bool(np.isfinite(ft.scipy.special.{name}({at})){every})
    True
    """


def make(
    name: str, names: str, body: Callable[..., Any], summary: str, at: str, *, complex: bool = False, pair: bool = False
) -> Any:
    """Make a public function.

    Args:
        name: its name.
        names: names of its arguments, separated by spaces.
        body: function of values of one inexact dtype and one shape.
        summary: the first line of its documentation.
        at: arguments of the example there.
        complex: whether it takes complex numbers.
        pair: whether it returns a pair.
    """

    def aligned(*xs: Any) -> Any:
        promoted = promotion.align_inexact(*xs)
        if dtypes.is_complex(aval_of(promoted[0]).dtype) and not complex:
            raise promotion.error(
                DtypeError, f"special.{name} takes real numbers, got {aval_of(promoted[0])!r}", "take the real part"
            )
        return body(*(promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type) for x in promoted))

    aligned.__name__ = name
    fast = eager_jit(aligned)
    parts = names.split()
    signature = Signature(
        [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, annotation="ArrayLike") for n in parts],
        return_annotation="tuple[Array, Array]" if pair else "Array",
    )

    def function(*args: Any, **named: Any) -> Any:
        try:
            values = args if not named and len(args) == len(parts) else _bound(name, signature, args, named)
            return fast(*promotion.numbers(*values))
        except Exception as e:
            result = second_call(e, function, args, named)
            if result is not NO_CALL:
                return result
            if isinstance(e, FtError):
                finalize_error(e)
            raise

    doc = _DOC.format(
        summary=summary, args="\n".join(f"        {n}: array or number." for n in parts), name=name, at=at,
        returns="Two arrays" if pair else "An array", every=".all()" if pair else "",
        refuses="ArgumentError" if complex else "DtypeError",
        refused="another number of arguments" if complex else "complex numbers",
    )  # fmt: skip
    function.is_boundary, function.__signature__ = True, signature  # type: ignore[attr-defined]
    return promotion.named(function, name, doc, promotion.caller())


def _bound(name: str, signature: Signature, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call in their order."""
    try:
        return signature.bind(*args, **named).args
    except TypeError as e:
        fix = f"give {', '.join(signature.parameters)}"
        raise promotion.error(ArgumentError, f"special.{name}: {e}", fix) from None


def one(name: str, body: Callable[..., Any], summary: str, at: str = "0.5", *, complex: bool = False) -> Unary:
    """Make a function of x."""
    made = make(name, "x", body, summary, at, complex=complex)
    made.__module__ = promotion.caller()
    return made


def two(
    name: str, names: str, body: Callable[..., Any], summary: str, at: str = "0.5, 1.5", *, complex: bool = False
) -> Binary:
    """Make a function of two arguments."""
    made = make(name, names, body, summary, at, complex=complex)
    made.__module__ = promotion.caller()
    return made


def in_double(body: Callable[..., Any], narrow: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Make a body that computes in double precision and rounds once at the end.

    Args:
        body: of values in double precision.
        narrow: the same with fewer digits, for values of lower precision.
    """

    def wide(*xs: Any) -> Any:
        aval = aval_of(xs[0])
        dtype = dtypes.complex128 if dtypes.is_complex(aval.dtype) else dtypes.float64
        if aval.dtype == dtype:
            return body(*xs)
        out = (narrow or body)(*(promotion.convert(x, dtype) for x in xs))
        part = dtypes.real_part(aval.dtype)
        to = lambda v: dtypes.complex_of(part) if dtypes.is_complex(aval_of(v).dtype) else part
        weak = all(aval_of(x).weak_type for x in xs)
        return tree.map(lambda v: promotion.convert(v, to(v), weak), out)

    return wide


def elementwise_function(body: Callable[..., Any]) -> Callable[..., Any]:
    """Make a body with loops of data-dependent length, which is differentiated in forward mode.

    Reverse mode cannot run such a loop backwards. Since the elements do not depend on each other, the
    partial derivatives are the tangents for tangents of ones.
    """

    def partial(i: int) -> Callable[..., Any]:
        def slope(*xs: Any) -> Any:
            ones = tuple(full_like(x, float(k == i)) for k, x in enumerate(xs))
            return jvp(body, xs, ones)[1]

        return slope

    function = custom_jvp(body)

    def rule(primals: Any, tangents: Any) -> Any:
        # Slopes that are not needed are not computed: many are infinite, and 0 times that is no zero.
        moving = [i for i, t in enumerate(tangents) if not isinstance(t, SymbolicZero)]
        parts = [elementwise_function(partial(i))(*primals) * tangents[i] for i in moving]
        return function(*primals), functools.reduce(operator.add, parts) if parts else tangents[0]

    function.defjvp(rule, symbolic_zeros=True)

    return function
