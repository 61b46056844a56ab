"""Floor 7. Differentials: `jvp`, `vjp` and `linearize`, on `interpreters/forward.py` and `interpreters/reverse.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import boundary, dtypes
from functorch_like.backends import xla
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.interpreters import forward, reverse
from functorch_like.tangents import (
    FlatFunction,
    Fun,
    check_callable,
    check_tangent,
    cotangent_leaves,
    gradient_of,
    tangent_leaves,
    tangent_of,
)


@boundary.public
def jvp(fun: Fun, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """The derivative of a function in one direction, by forward mode.

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the arguments, a tuple or list.
        tangents: the direction: the same structure, shapes and dtypes (float0 or None for integers).
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        `(result, tangent of the result)`, and the aux part with `has_aux`.

    Raises:
        TreeError: where the structures of primals and tangents differ.
        DifferentiationError: where a tangent's shape or dtype does not fit its primal.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> y, dy = ft.jvp(fnp.sin, (0.0,), (2.0,))
    >>> float(y), float(dy)
    (0.0, 2.0)
    """
    check_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError(
            f"jvp takes tuples of primals and tangents, got {type(primals).__name__} and {type(tangents).__name__}",
            fix="jvp(f, (x,), (dx,))",
        )
    leaves, in_tree = xla.flatten(tuple(primals))
    given = tangent_leaves(in_tree, tuple(tangents), "jvp")
    directions = [check_tangent(p, t, i, in_tree) for i, (p, t) in enumerate(zip(leaves, given, strict=True))]
    result = FlatFunction(lambda args: fun(*args), in_tree, has_aux)
    outs, ts = forward.jvp(result.flat, leaves, directions, "jvp")
    n = result.count
    dots = result.out_tree.unflatten([tangent_of(o, t) for o, t in zip(outs[:n], ts[:n], strict=True)])
    out = result.out_tree.unflatten(outs[:n])
    return (out, dots, result.aux_tree.unflatten(outs[n:])) if has_aux else (out, dots)


@boundary.public
def vjp(fun: Fun, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and the function that pulls cotangents of the result back to the arguments.

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the arguments.
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        `(result, pullback)`, and the aux part with `has_aux`. `pullback(ct)`, with `ct` like the result, gives a
        tuple of cotangents, one for each argument. It may be called many times.

    >>> import functorch_like as ft
    >>> y, pullback = ft.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> [float(g) for g in pullback(1.0)]
    [5.0, 2.0]
    """
    at = Linearized(fun, primals, has_aux, "vjp")
    return at.results(boundary.public(at.pullback))


@boundary.public
def linearize(fun: Fun, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and its derivative at that point as a linear function of tangents.

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the point.
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        `(result, pushforward)`, and the aux part with `has_aux`. `pushforward(*tangents)` gives the tangent of the
        result without evaluating `fun` again.

    >>> import functorch_like as ft
    >>> y, push = ft.linearize(lambda x: x**2, 3.0)
    >>> float(y), float(push(1.0)), float(push(2.0))
    (9.0, 6.0, 12.0)
    """
    at = Linearized(fun, primals, has_aux, "linearize")
    return at.results(boundary.public(at.pushforward))


class Linearized:
    """A function evaluated at a point, and its derivative there as a linear map that goes both ways."""

    def __init__(self, fun: Fun, primals: tuple[Any, ...], has_aux: bool, name: str) -> None:
        check_callable(fun, name)
        self.leaves, self.in_tree = xla.flatten(primals)
        self.wanted = [dtypes.is_inexact(aval_of(a).dtype) for a in self.leaves]
        self.function = FlatFunction(lambda args: fun(*args), self.in_tree, has_aux)
        outs, self.linear = reverse.linearize(self.function.flat, self.leaves, self.wanted, name)
        self.linear.keep()
        self.outs, self.aux = outs[: self.function.count], outs[self.function.count :]

    @property
    def out(self) -> Any:
        return self.function.out_tree.unflatten(self.outs)

    def results(self, derivative: Fun) -> tuple[Any, ...]:
        """What the user gets: the result, the derivative, and the aux part if there is one."""
        function = self.function
        return (
            (self.out, derivative, function.aux_tree.unflatten(self.aux))
            if function.has_aux
            else (self.out, derivative)
        )

    def pushforward(self, *tangents: Any) -> Any:
        """The tangent of the result."""
        given = tangent_leaves(self.in_tree, tangents, "the linearized function")
        checked = [
            check_tangent(p, t, i, self.in_tree) for i, (p, t) in enumerate(zip(self.leaves, given, strict=True))
        ]
        dots = self.linear.apply([t for t, w in zip(checked, self.wanted, strict=True) if w])
        outs = self.outs
        return self.function.out_tree.unflatten(
            [tangent_of(o, t) for o, t in zip(outs, dots[: len(outs)], strict=True)]
        )

    def pullback(self, cotangent: Any) -> Any:
        """Cotangents of the arguments."""
        cts = cotangent_leaves(self.function.out_tree, cotangent, [aval_of(o) for o in self.outs])
        back = iter(self.linear.transpose([*cts, *[None] * len(self.aux)]))
        return self.in_tree.unflatten(
            [gradient_of(next(back) if w else None, a, w) for a, w in zip(self.leaves, self.wanted, strict=True)]
        )
