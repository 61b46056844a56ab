"""Floor 7. Derivatives: `grad` and its relatives, on `interpreters/forward.py` and `interpreters/reverse.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import boundary, dtypes, sources, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import aval_of, chain, state
from functorch_like.errors import ArgumentError, DifferentiationError, FtError, TreeError
from functorch_like.interpreters import forward, reverse
from functorch_like.primitives.structure import convert_element_type, zeros

Fun = Callable[..., Any]


# ------------------------------------------------------------------------------------------------------------- grad
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
        argnums: the position, or positions, of the arguments to differentiate by: pytrees of float arrays.
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
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, _name="grad")

    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(
    fun: Fun,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    _name: str = "value_and_grad",
) -> Fun:
    """The value of a function and its gradient, for the price of the gradient.

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
    _check_callable(fun, _name)

    @functools.wraps(fun, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = _positions(argnums, len(args), _name)
        partial, dynamic = _close_over(fun, args, kwargs, chosen)
        leaves, in_tree = xla.flatten(dynamic)
        wanted = [_check_input(a, holomorphic, allow_int, _name) for a in leaves]
        result = _Result(partial, in_tree, has_aux)
        outs, linear = reverse.linearize(result.flat, leaves, wanted, _name)
        out = _check_scalar(outs, result, holomorphic, fun, _name)
        back = iter(linear.transpose([_one(out)] + [None] * (len(outs) - 1)))
        gradients = [_gradient(next(back) if w else None, a, w) for a, w in zip(leaves, wanted, strict=True)]
        value = (outs[0], result.aux_tree.unflatten(outs[1:])) if has_aux else outs[0]
        trees = in_tree.unflatten(gradients)
        return value, (trees[0] if isinstance(argnums, int) else tuple(trees))

    return boundary.public(value_and_gradient)


def grad_and_value(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any) -> Fun:
    """As `value_and_grad`, in torch.func's order: `(gradient, value)`, or `(gradient, (value, aux))`.

    Args:
        fun: as for `grad`.
        argnums: as for `grad`.
        has_aux: as for `grad`.
        options: `holomorphic` and `allow_int`, as for `grad`.

    Returns:
        A function giving `(gradient, value)`.

    >>> import functorch_like as ft
    >>> slope, value = ft.grad_and_value(lambda x: x**2)(3.0)
    >>> float(slope), float(value)
    (6.0, 9.0)
    """
    both = value_and_grad(fun, argnums, has_aux, _name="grad_and_value", **options)

    @functools.wraps(fun, updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return gradient_and_value


# -------------------------------------------------------------------------------------------------- jvp, vjp, linearize
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
    _check_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError(
            f"jvp takes tuples of primals and tangents, got {type(primals).__name__} and {type(tangents).__name__}",
            fix="jvp(f, (x,), (dx,))",
        )
    leaves, in_tree = xla.flatten(tuple(primals))
    given = _tangent_leaves(in_tree, tuple(tangents), "jvp")
    directions = [_check_tangent(p, t, i, in_tree) for i, (p, t) in enumerate(zip(leaves, given, strict=True))]
    result = _Result(lambda args: fun(*args), in_tree, has_aux)
    outs, ts = forward.jvp(result.flat, leaves, directions, "jvp")
    n = result.count
    dots = result.out_tree.unflatten([_tangent(o, t) for o, t in zip(outs[:n], ts[:n], strict=True)])
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
    _check_callable(fun, "vjp")
    leaves, in_tree = xla.flatten(primals)
    wanted = [dtypes.is_inexact(aval_of(a).dtype) for a in leaves]
    result = _Result(lambda args: fun(*args), in_tree, has_aux)
    outs, linear = reverse.linearize(result.flat, leaves, wanted, "vjp")
    n = result.count

    @boundary.public
    def pullback(cotangent: Any) -> Any:
        """Cotangents of the arguments."""
        cts = _cotangent_leaves(result.out_tree, cotangent, [aval_of(o) for o in outs[:n]])
        back = iter(linear.transpose([*cts, *[None] * (len(outs) - n)]))
        return in_tree.unflatten(
            [_gradient(next(back) if w else None, a, w) for a, w in zip(leaves, wanted, strict=True)]
        )

    out = result.out_tree.unflatten(outs[:n])
    return (out, pullback, result.aux_tree.unflatten(outs[n:])) if has_aux else (out, pullback)


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
    _check_callable(fun, "linearize")
    leaves, in_tree = xla.flatten(primals)
    wanted = [dtypes.is_inexact(aval_of(a).dtype) for a in leaves]
    result = _Result(lambda args: fun(*args), in_tree, has_aux)
    outs, linear = reverse.linearize(result.flat, leaves, wanted, "linearize")
    n = result.count

    @boundary.public
    def pushforward(*tangents: Any) -> Any:
        """The tangent of the result."""
        given = _tangent_leaves(in_tree, tangents, "the linearized function")
        checked = [_check_tangent(p, t, i, in_tree) for i, (p, t) in enumerate(zip(leaves, given, strict=True))]
        dots = linear.apply([t for t, w in zip(checked, wanted, strict=True) if w])
        return result.out_tree.unflatten([_tangent(o, t) for o, t in zip(outs[:n], dots[:n], strict=True)])

    out = result.out_tree.unflatten(outs[:n])
    return (out, pushforward, result.aux_tree.unflatten(outs[n:])) if has_aux else (out, pushforward)


# ------------------------------------------------------------------------------------------------------------ details
class _Result:
    """A function of one tuple, on flat leaves; remembers the tree of its result, and of its aux part."""

    def __init__(self, fun: Callable[[Any], Any], in_tree: Any, has_aux: bool) -> None:
        self.fun, self.in_tree, self.has_aux = fun, in_tree, has_aux
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.count = 0  # leaves of the result; those of aux follow

    def flat(self, *leaves: Any) -> list[Any]:
        out = self.fun(self.in_tree.unflatten(leaves))
        aux: list[Any] = []
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise DifferentiationError(
                    f"with has_aux the function must return a pair (result, aux), it returned {type(out).__name__}",
                    fix="return (result, aux), or leave has_aux out",
                )
            out, rest = out
            aux, self.aux_tree = xla.flatten(rest)
        outs, self.out_tree = xla.flatten(out)
        self.count = len(outs)
        return [*outs, *aux]


def _check_callable(fun: Any, name: str) -> None:
    if not callable(fun):
        raise ArgumentError(
            f"{name} takes a function, got {fun!r:.60} of type {type(fun).__name__}",
            fix=f"{name}(f)(x), not {name}(f(x))",
        )


def _where() -> dict[str, str]:
    return {"chain": chain(state.trace), "at": str(sources.user_line() or "")}


def _positions(argnums: int | Sequence[int], count: int, name: str) -> list[int]:
    given = as_positions(argnums, name)
    if any(not -count <= n < count for n in given):
        raise ArgumentError(
            f"{name} by argnums={argnums}, but the call has {count} positional arguments",
            fix=f"use positions {list(range(count))}; arguments to differentiate by must be positional",
            **_where(),
        )
    chosen = [n % count for n in given]
    if len(set(chosen)) != len(chosen):
        raise ArgumentError(f"{name} by argnums={argnums} names an argument twice", fix="name each once", **_where())
    return chosen


def as_positions(argnums: Any, name: str) -> tuple[int, ...]:
    """An int or a sequence of ints, as a tuple."""
    given = (argnums,) if isinstance(argnums, (int, np.integer)) else argnums
    if not isinstance(given, (tuple, list)) or not all(isinstance(n, (int, np.integer)) for n in given):
        raise ArgumentError(
            f"argnums of {name} must be an int or a tuple of ints, got {argnums!r}", fix="argnums=(0, 1)"
        )
    return tuple(int(n) for n in given)


def _close_over(fun: Fun, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: list[int]) -> tuple[Any, Any]:
    def partial(values: Any) -> Any:
        whole = list(args)
        for n, value in zip(chosen, values, strict=True):
            whole[n] = value
        return fun(*whole, **kwargs)

    return partial, tuple(args[n] for n in chosen)


def _check_input(x: Any, holomorphic: bool, allow_int: bool, name: str) -> bool:
    """Whether to differentiate by a leaf."""
    try:
        aval = aval_of(x)
    except FtError as e:
        e.fix = e.fix or "differentiate by arrays only"
        raise e.complete(operation=name, **_where()) from None
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise DifferentiationError(
            f"holomorphic derivatives are by complex arguments, got {aval!r}",
            fix="convert it with x.astype('complex64'), or leave holomorphic out",
            operation=name,
            **_where(),
        )
    if dtypes.is_complex(aval.dtype) and not holomorphic:
        return True
    if not dtypes.is_inexact(aval.dtype):
        if allow_int:
            return False
        raise DifferentiationError(
            f"the derivative is by a float argument, got {aval!r}",
            fix="pass a float (2.0, not 2; x.astype('float32')), choose other argnums, or set allow_int=True",
            operation=name,
            **_where(),
        )
    return True


def _check_scalar(outs: list[Any], result: _Result, holomorphic: bool, fun: Fun, name: str) -> ShapedArray:
    who = getattr(fun, "__name__", "the function")
    if result.count != 1 or result.out_tree != xla.leaf_structure:
        raise DifferentiationError(
            f"{name} needs a scalar result, {who} returned the tree {result.out_tree}",
            fix="return one scalar; with further results set has_aux=True and return (scalar, others)",
            **_where(),
        )
    aval = aval_of(outs[0])
    if aval.shape != ():
        raise DifferentiationError(
            f"{name} needs a scalar result, {who} returned {aval!r}",
            fix="reduce it, e.g. with .sum() or .mean(); or use vjp for a chosen cotangent, vmap(grad(f)) for each row",
            **_where(),
        )
    good = dtypes.is_complex(aval.dtype) if holomorphic else dtypes.is_float(aval.dtype)
    if not good:
        raise DifferentiationError(
            f"{name} needs a {'complex' if holomorphic else 'real float'} result, {who} returned {aval!r}",
            fix="take its real part or abs, or set holomorphic=True"
            if dtypes.is_complex(aval.dtype)
            else "return a float, e.g. with .astype('float32')",
            **_where(),
        )
    return aval


def _one(aval: ShapedArray) -> Any:
    return np.ones((), aval.dtype)


def _gradient(ct: Any, primal: Any, wanted: bool) -> Any:
    aval = aval_of(primal)
    if not wanted:
        return np.zeros(aval.shape, dtypes.float0)
    if ct is None:
        return zeros(aval.strong())
    return ct if aval_of(ct).weak_type is False else convert_element_type(ct, new_dtype=aval.dtype, weak_type=False)


def _tangent(out: Any, tangent: Any) -> Any:
    if tangent is not None:
        return tangent
    aval = aval_of(out)
    return zeros(aval.strong()) if dtypes.is_inexact(aval.dtype) else np.zeros(aval.shape, dtypes.float0)


def _tangent_leaves(in_tree: Any, tangents: Any, name: str) -> list[Any]:
    # None stands for a zero tangent of a leaf, so it must not vanish in flattening.
    leaves, given = xla.flatten(tangents, lambda x: x is None)
    primal_tree = in_tree
    if given == primal_tree:
        return leaves
    try:
        flat = in_tree.flatten_up_to(tangents)
    except ValueError:
        flat = None
    if flat is None or any(xla.flatten(t)[1] != xla.leaf_structure for t in flat if t is not None):
        raise TreeError(
            f"{name} was given tangents of structure {xla.structure(tangents)} for primals of structure {in_tree}",
            fix="tangents mirror the arguments leaf by leaf",
            **_where(),
        )
    return flat


def _check_tangent(primal: Any, tangent: Any, position: int, in_tree: Any) -> Any:
    """The tangent as the interpreters take it: None where it must be zero."""
    aval = aval_of(primal)
    if tangent is None or getattr(tangent, "dtype", None) == dtypes.float0:
        return None
    given = aval_of(tangent)
    path = tree.leaf_paths(in_tree)[position]
    if not dtypes.is_inexact(aval.dtype):
        raise DifferentiationError(
            f"the tangent of argument {path}, a {aval!r}, must be None or of dtype float0, got {given!r}",
            fix="integers have no tangents: pass None",
            **_where(),
        )
    if given.shape != aval.shape or (given.dtype != aval.dtype and not given.weak_type):
        raise DifferentiationError(
            f"the tangent of argument {path} must be {aval!r} as its primal, got {given!r}",
            fix="give tangents the shapes and dtypes of the primals, e.g. with fnp.ones_like",
            **_where(),
        )
    if given.dtype != aval.dtype or given.weak_type:
        return convert_element_type(_as_operand(tangent, given), new_dtype=aval.dtype, weak_type=False)
    return tangent


def _as_operand(x: Any, aval: ShapedArray) -> Any:
    return np.asarray(x, aval.dtype) if isinstance(x, (int, float, complex, np.generic)) else x


def _cotangent_leaves(out_tree: Any, cotangent: Any, avals: list[ShapedArray]) -> list[Any]:
    leaves, given = xla.flatten(cotangent)
    if given != out_tree:
        raise TreeError(
            f"the pullback was given a cotangent of structure {given}, the function returned {out_tree}",
            fix="pass a cotangent of the structure of the result",
            **_where(),
        )
    checked: list[Any] = []
    for ct, aval in zip(leaves, avals, strict=True):
        if not dtypes.is_inexact(aval.dtype):
            checked.append(None)
            continue
        got = aval_of(ct)
        if got.shape != aval.shape or (got.dtype != aval.dtype and not got.weak_type):
            raise DifferentiationError(
                f"the cotangent of a result {aval!r} must be {aval!r}, got {got!r}",
                fix="give it the shape and dtype of the result, e.g. with fnp.ones_like",
                **_where(),
            )
        same = got.dtype == aval.dtype and not got.weak_type
        checked.append(
            ct if same else convert_element_type(_as_operand(ct, got), new_dtype=aval.dtype, weak_type=False)
        )
    return checked
