"""Gradients: `grad`, `value_and_grad`, `grad_and_value`, on `interpreters/reverse.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, overload

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import Aux, P, R, T
from functorch_like.core import aval_of
from functorch_like.errors import DifferentiationError
from functorch_like.interpreters import reverse
from functorch_like.transforms.argnums import argnums_partial, check_input, check_output, positions
from functorch_like.transforms.tangents import FlatFunction, Fun, error_context, gradient_of


# ------------------------------------------------------------------------------------------------------------- grad
@overload
def grad(
    fun: Callable[Concatenate[T, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[T, Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[T, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], T]: ...
@overload
def grad(
    fun: Callable[P, tuple[R, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@transformation
def grad(
    fun: Fun,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Fun:
    """The gradient of a function with a scalar result.

    Args:
        fun: pure; its result is a real scalar (any shape `()` float), or a pair `(scalar, aux)` with `has_aux`.
        argnums: the position, or positions, of the arguments to differentiate with respect to: pytrees of
            float arrays.
        has_aux: whether `fun` returns a pair whose second part is passed through without differentiation.
        holomorphic: promise that `fun` is holomorphic; arguments and result are then complex.
        allow_int: allow integer arguments; their derivative has dtype float0.

    Returns:
        A function of the same arguments that gives the gradient: the structure of the argument, or a tuple of such
        where `argnums` is a sequence; with `has_aux` a pair `(gradient, aux)`.

    Raises:
        DifferentiationError: where the result is not a scalar float, or an argument is not float.

    >>> import functorch_like as ft
    >>> float(ft.grad(lambda x: x**3)(2.0))
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, _name="grad")  # pyright: ignore[reportCallIssue]  # no option for users

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


@overload
def value_and_grad(
    fun: Callable[Concatenate[T, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[tuple[R, Aux], T]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[T, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[R, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[tuple[R, Aux], Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Any]]: ...
@transformation
def value_and_grad(
    fun: Fun,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    _name: str = "value_and_grad",
) -> Fun:
    """The value of a function and its gradient, at the cost of the gradient.

    Args:
        fun: as for `grad`.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        holomorphic: as for `grad`.
        allow_int: as for `grad`.

    Returns:
        A function giving `(value, gradient)`, or `((value, aux), gradient)` with `has_aux`.

    Raises:
        DifferentiationError: as for `grad`.

    >>> import functorch_like as ft
    >>> value, slope = ft.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    check_callable(fun, _name)

    @wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        partial, dynamic = argnums_partial(fun, args, kwargs, positions(argnums, len(args), _name))
        leaves, in_tree = xla.flatten(dynamic)
        inexact = [check_input(a, holomorphic, allow_int, _name) for a in leaves]
        result = FlatFunction(partial, in_tree, has_aux)
        outs, linear = reverse.linearize(result.flat, leaves, inexact, _name)
        out = _check_scalar(outs, result, holomorphic, fun, _name)
        back = iter(linear.transpose([_one(out)] + [None] * (len(outs) - 1)))
        gradients = [gradient_of(next(back) if w else None, a, w) for a, w in zip(leaves, inexact, strict=True)]
        value = (outs[0], result.aux_tree.unflatten(outs[1:])) if has_aux else outs[0]
        trees = in_tree.unflatten(gradients)
        return value, (trees[0] if isinstance(argnums, (int, np.integer)) else tuple(trees))

    return value_and_gradient


@overload
def grad_and_value(
    fun: Callable[Concatenate[T, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[T, P], tuple[T, R]]: ...
@overload
def grad_and_value(
    fun: Callable[P, tuple[R, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, tuple[R, Aux]]]: ...
@overload
def grad_and_value(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Any]]: ...
@transformation
def grad_and_value(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any) -> Fun:
    """`value_and_grad` in torch.func's order: `(gradient, value)`, or `(gradient, (value, aux))`.

    Args:
        fun: as for `grad`.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        options: `holomorphic` and `allow_int`, as for `grad`.

    Returns:
        A function giving `(gradient, value)`.

    Raises:
        DifferentiationError: as for `grad`.

    >>> import functorch_like as ft
    >>> slope, value = ft.grad_and_value(lambda x: x**2)(3.0)
    >>> float(slope), float(value)
    (6.0, 9.0)
    """
    both = value_and_grad(fun, argnums, has_aux, _name="grad_and_value", **options)  # pyright: ignore[reportCallIssue]

    @wraps(fun)
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return gradient_and_value


# ------------------------------------------------------------------------------------------------------------- checks
_NONE = xla.flatten(None)[1]


def _check_scalar(outs: list[Any], result: FlatFunction, holomorphic: bool, fun: Fun, name: str) -> ShapedArray:
    function = source_info.name_of(fun)
    if result.count != 1 or result.out_tree != xla.leaf_structure:
        nothing = result.out_tree == _NONE
        raise DifferentiationError(
            f"{name} needs a scalar result, {function} returned {'None' if nothing else f'the tree {result.out_tree}'}",
            fix="end the function with `return` and its scalar"
            if nothing
            else "return one scalar; with further results set has_aux=True and return (scalar, others)",
            **error_context(),
        )
    aval = aval_of(outs[0])
    if aval.shape != ():
        raise DifferentiationError(
            f"{name} needs a scalar result, {function} returned {aval!r}",
            fix="reduce it, e.g. with .sum() or .mean(); or use vjp for a chosen cotangent, vmap(grad(f)) for each row",
            **error_context(),
        )
    check_output(aval, holomorphic, function, name)
    return aval


def _one(aval: ShapedArray) -> Any:
    return np.ones((), aval.dtype)
