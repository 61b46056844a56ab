"""Differentials: `jvp`, `vjp`, `linearize`, `fwd_and_bwd`, on `interpreters/forward.py` and `reverse.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from functorch_like import ad, dtypes, tree
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import Aux, R
from functorch_like.core import UndefinedPrimal, aval_of
from functorch_like.errors import ArgumentError
from functorch_like.interpreters import forward, reverse
from functorch_like.ref.reference import Ref
from functorch_like.transforms.argnums import argnums_partial, as_positions, check_tuples, positions
from functorch_like.transforms.jit import jit
from functorch_like.transforms.tangents import (
    FlatFunction,
    Fun,
    check_tangent,
    cotangent_leaves,
    gradient_of,
    is_strengthened,
    tangent_leaves,
    tangent_of,
)

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...
@overload
def jvp(fun: Fun, primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool) -> tuple[Any, ...]: ...
@api_boundary.public
def jvp(fun: Fun, primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool = False) -> tuple[Any, ...]:
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
    check_tuples("jvp", primals, tangents)
    leaves, in_tree = xla.flatten(tuple(primals))
    tangent_list = tangent_leaves(in_tree, tuple(tangents), "jvp")
    directions = [check_tangent(p, t, i, in_tree) for i, (p, t) in enumerate(zip(leaves, tangent_list, strict=True))]
    result = FlatFunction(lambda args: fun(*args), in_tree, has_aux)
    outs, ts = forward.jvp(result.flat, leaves, directions, "jvp")
    n = result.count
    dots = result.out_tree.unflatten([tangent_of(o, t) for o, t in zip(outs[:n], ts[:n], strict=True)])
    out = result.out_tree.unflatten(outs[:n])
    return (out, dots, result.aux_tree.unflatten(outs[n:])) if has_aux else (out, dots)


@overload
def vjp(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]], *primals: PyTree, has_aux: Literal[True]
) -> tuple[R, Callable[[R], tuple[Any, ...]], Aux]: ...
@overload
def vjp(fun: Fun, *primals: PyTree, has_aux: bool) -> tuple[Any, ...]: ...
@api_boundary.public
def vjp(fun: Fun, *primals: PyTree, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and the function that pulls cotangents of the result back to the arguments.

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the arguments.
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        `(result, pullback)`, and the aux part with `has_aux`. `pullback(ct)`, with `ct` like the result, gives a
        tuple of cotangents, one for each argument. It may be called many times, and is a pytree of the arrays that it
        keeps: jitted functions take and return it.

    Raises:
        TreeError: from the pullback, for a cotangent of another structure than the result.
        DifferentiationError: from the pullback, for a cotangent of another shape or dtype.

    >>> import functorch_like as ft
    >>> y, pullback = ft.vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> [float(g) for g in pullback(1.0)]
    [5.0, 2.0]
    """
    at = Linearized(fun, primals, has_aux, "vjp")
    return at.results(at.pullback)


@overload
def linearize(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: PyTree, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...
@overload
def linearize(fun: Fun, *primals: PyTree, has_aux: bool) -> tuple[Any, ...]: ...
@api_boundary.public
def linearize(fun: Fun, *primals: PyTree, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and its derivative at that point as a linear function of tangents.

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the point.
        has_aux: whether `fun` returns a pair whose second part is passed through.

    Returns:
        `(result, pushforward)`, and the aux part with `has_aux`. `pushforward(*tangents)` gives the tangent of the
        result without evaluating `fun` again.

    Raises:
        TreeError: from the pushforward, for tangents of another structure than the arguments.
        DifferentiationError: from the pushforward, for tangents of other shapes or dtypes.

    >>> import functorch_like as ft
    >>> y, push = ft.linearize(lambda x: x**2, 3.0)
    >>> float(y), float(push(1.0)), float(push(2.0))
    (9.0, 6.0, 12.0)
    """
    at = Linearized(fun, primals, has_aux, "linearize")
    return at.results(at.pushforward)


class Linearized:
    """A function evaluated at a point, and its derivative there as a linear map, with the transpose."""

    def __init__(self, fun: Fun, primals: tuple[Any, ...], has_aux: bool, name: str) -> None:
        check_callable(fun, name)
        leaves, in_tree = xla.flatten(primals)
        inexact = [dtypes.is_inexact(aval_of(a).dtype) for a in leaves]
        self.function = FlatFunction(lambda args: fun(*args), in_tree, has_aux)
        outs, linear = reverse.linearize(self.function.flat, leaves, inexact, name)
        linear.keep()
        n = self.function.count
        self.outs, self.aux = outs[:n], outs[n:]
        linear = linear.of_first(n)
        avals = lambda values: [UndefinedPrimal(aval_of(v)) for v in values]
        facts = linear, in_tree, avals(leaves), self.function.out_tree, avals(self.outs)
        self.pushforward, self.pullback = Pushforward(*facts), Pullback(*facts)

    @property
    def out(self) -> Any:
        return self.function.out_tree.unflatten(self.outs)

    def results(self, derivative: Fun) -> tuple[Any, ...]:
        """Results for the user: the value, the derivative, and the aux part if there is one."""
        function = self.function
        return (
            (self.out, derivative, function.aux_tree.unflatten(self.aux))
            if function.has_aux
            else (self.out, derivative)
        )


class _Derivative:
    """A derivative at a point as a function. It is a pytree of the values it keeps, so jitted functions take it.

    Args:
        linear: the map from tangents of those arguments that have one.
        in_tree, ins: the arguments: their structure, and a `UndefinedPrimal` for each leaf.
        out_tree, outs: the results likewise.
    """

    def __init__(
        self,
        linear: reverse.LinearMap,
        in_tree: Any,
        ins: list[UndefinedPrimal],
        out_tree: Any,
        outs: list[UndefinedPrimal],
    ) -> None:
        self.linear, self.in_tree, self.ins, self.out_tree, self.outs = linear, in_tree, ins, out_tree, outs
        self._static: _Static | None = None

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {len(self.linear.equations)} equations>"

    def tree_flatten(self) -> tuple[list[Any], Any]:
        if self._static is None:
            places = self.linear.places()
            linear = self.linear.holding(places, [None] * len(places))
            self._static = _Static(places, type(self)(linear, self.in_tree, self.ins, self.out_tree, self.outs))
        return self.linear.values(self._static.places), self._static

    @classmethod
    def tree_unflatten(cls, static: _Static, values: Any) -> _Derivative:
        of = static.of
        made = cls(of.linear.holding(static.places, values), of.in_tree, of.ins, of.out_tree, of.outs)
        made._static = static  # the same structure, so that programs compiled for it are found
        return made


class _Static(NamedTuple):
    """Static part of a derivative: all but the values that it keeps. Equality is identity.

    Attributes:
        places: positions of the values, as `LinearMap.places` gives them.
        of: the derivative, without the values.
    """

    places: list[list[tuple[int, int]]]
    of: _Derivative

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return repr(self.of)


@tree.register_pytree_node_class
class Pushforward(_Derivative):
    """The derivative at a point as a function from tangents of the arguments to the tangent of the result."""

    @api_boundary.public
    def __call__(self, *tangents: Any) -> Any:
        tangent_list = tangent_leaves(self.in_tree, tangents, "the linearized function")
        checked = [
            check_tangent(p, t, i, self.in_tree) for i, (p, t) in enumerate(zip(self.ins, tangent_list, strict=True))
        ]
        tangents_in = [t for p, t in zip(self.ins, checked, strict=True) if dtypes.is_inexact(p.aval.dtype)]
        dots = self.linear.apply(tangents_in)
        strong = is_strengthened([p.aval for p in self.ins], tangent_list)
        return self.out_tree.unflatten([tangent_of(o, t, strong) for o, t in zip(self.outs, dots, strict=True)])


@tree.register_pytree_node_class
class Pullback(_Derivative):
    """The derivative at a point as a function from a cotangent of the result to cotangents of the arguments."""

    @api_boundary.public
    def __call__(self, cotangent: Any) -> Any:
        back = self._cotangents(cotangent)
        strong = is_strengthened([o.aval for o in self.outs], xla.flatten(cotangent)[0])
        return self.in_tree.unflatten([gradient_of(ct, p, dtypes.is_inexact(p.aval.dtype), strong) for p, ct in back])

    def _cotangents(self, cotangent: Any) -> list[tuple[UndefinedPrimal, Any]]:
        """Return each argument with its cotangent; None for zero, and for integers."""
        cts = cotangent_leaves(self.out_tree, cotangent, [o.aval for o in self.outs])
        back = iter(self.linear.transpose(cts))
        return [(p, next(back) if dtypes.is_inexact(p.aval.dtype) else None) for p in self.ins]

    @api_boundary.public
    def with_refs(self, *wanted: Any) -> Callable[[Any], Any]:
        """The pullback, adding cotangents to Refs.

        Args:
            wanted: for each argument a Ref, to which its cotangent is added; `ft.ad.GradValue()`, to have it as a
                value; or `ft.ad.DontWant()`. For an argument that is a pytree, one of them, or a tree of them.

        Returns:
            A function of a cotangent of the result. It returns a tuple like the arguments, with `ft.ad.GradRef()` in
            place of what was added to a Ref, and `ft.ad.DidntWant()` in place of what was not wanted.

        Raises:
            ArgumentError: for other objects, or another number of arguments.
            ShapeError, DtypeError: from the function, for a Ref of another shape or dtype than its cotangent.

        >>> import functorch_like as ft
        >>> total = ft.new_ref(1.0)
        >>> ft.vjp(lambda x: 3 * x, 2.0)[1].with_refs(total)(1.0), total[...].item()
        ((GradRef(),), 4.0)
        """
        blank = self.in_tree.unflatten([0] * self.in_tree.num_leaves)
        if len(wanted) != len(blank):
            raise ArgumentError(
                f"with_refs got {len(wanted)} objects for {len(blank)} arguments",
                fix="give one for each argument: a Ref, ft.ad.GradValue() or ft.ad.DontWant()",
            )
        each = tree.broadcast_prefix(wanted, blank, "wanted")
        for one in each:
            if not isinstance(one, (Ref, ad.GradValue, ad.DontWant)):
                raise ArgumentError(
                    f"with_refs got {one!r:.60}", fix="give a Ref, ft.ad.GradValue() or ft.ad.DontWant()"
                )

        @api_boundary.public
        def pull_back(cotangent: Any) -> Any:
            parts = zip(each, self._cotangents(cotangent), strict=True)
            return self.in_tree.unflatten([_delivered(one, primal, ct) for one, (primal, ct) in parts])

        return pull_back


def _delivered(wanted: Any, primal: UndefinedPrimal, ct: Any) -> Any:
    """Return a cotangent as it is wanted, or what stands for it."""
    if isinstance(wanted, ad.GradValue):
        return gradient_of(ct, primal, dtypes.is_inexact(primal.aval.dtype))
    if isinstance(wanted, ad.DontWant):
        return ad.DidntWant()
    if ct is not None:
        wanted[...] += ct
    return ad.GradRef()


@api_boundary.public
def fwd_and_bwd(
    fun: Fun, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two halves of reverse mode as functions: forwards once, and backwards any number of times.

    Where `vjp` gives a new pullback with each call, here both halves are compiled once, apart from each other.

    Args:
        fun: takes and returns pytrees of arrays.
        argnums: position or positions of the arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair whose second part is passed through.
        jitted: whether both are jitted. To jit `bwd` alone compiles it anew for each call of `fwd`.

    Returns:
        `fwd` and `bwd`. `fwd(*args)` gives `(result, residuals)`, and the aux part with `has_aux`; `bwd(residuals,
        ct)`, with `ct` like the result, a cotangent like the argument, or a tuple of them if `argnums` is a sequence.

    Raises:
        ArgumentError: at the call, for positions that it does not have.

    >>> import functorch_like as ft
    >>> fwd, bwd = ft.fwd_and_bwd(lambda a, b: a * b, argnums=(0, 1))
    >>> y, residuals = fwd(2.0, 5.0)
    >>> float(y), [float(g) for g in bwd(residuals, 1.0)]
    (10.0, [5.0, 2.0])
    """
    check_callable(fun, "fwd_and_bwd")
    as_positions(argnums, "fwd_and_bwd")

    def fwd(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        chosen = positions(argnums, len(args), "fwd_and_bwd")
        partial, values = argnums_partial(fun, args, kwargs, chosen)
        at = Linearized(lambda *values: partial(values), values, has_aux, "fwd_and_bwd")
        return at.results(at.pullback)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        back = residuals(cotangent)
        return back if isinstance(argnums, Sequence) else back[0]

    return (jit(fwd), jit(bwd)) if jitted else (api_boundary.public(fwd), api_boundary.public(bwd))
