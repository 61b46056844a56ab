"""Taylor mode: `jet`, an interpreter that carries truncated power series through a program.

A value is a polynomial x0 + x1 t + x2 t**2 + ... in one parameter t, and a primitive maps polynomials to polynomials.
The rules of primitives for coefficients are in a table of their own (`rules.py`). A primitive that is not in it is
differentiated by its `jvp` rule: if z(t) = f(x(t)), then z'(t) is the tangent of f at x(t) along x'(t), a series of one
order less.
(Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 13.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import Primitive, Trace, abstract_eval, aval_of, new_trace, state
from functorch_like.errors import ArgumentError, FtError
from functorch_like.interpreters.forward import TangentTracer
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.primitives.base.shapes import full_like, zeros
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.higher_order.call import apply, call
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import Derived, derive
from functorch_like.transforms.tangents import (
    FlatFunction,
    Fun,
    check_tangent,
    tangent_leaves,
    tangent_of,
)
from functorch_like.transforms.taylor import rules

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@api_boundary.public
def jet(
    fun: Fun, primals: Sequence[PyTree], series: Sequence[Sequence[PyTree]], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """Derivatives of any order along a curve, by Taylor-mode automatic differentiation.

    Nested `jvp` doubles the cost with each order; here all orders up to K together cost O(K**2).

    Args:
        fun: takes and returns pytrees of arrays.
        primals: the arguments, a tuple or list: the curve's value at t = 0.
        series: for each argument a list of K terms, which mirror it: the first, second, ..., K-th derivative of the
            curve at t = 0. None is zero.
        factorial_scaled: whether terms, given and returned, are derivatives; if not, they are coefficients of t**k,
            that is derivatives divided by k!.

    Returns:
        The result, and a pytree of its structure with a list of K terms for each leaf: the derivatives of
        `fun(curve(t))` at t = 0.

    Raises:
        ArgumentError: where there is not one list of terms for each argument, or they differ in length.
        DifferentiationError: where a term's shape or dtype does not fit its primal.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> y, terms = ft.jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))
    >>> float(y), [float(t) for t in terms]
    (8.0, [12.0, 12.0, 6.0])
    """
    check_callable(fun, "jet")
    leaves, in_tree, curves = _given(primals, series, factorial_scaled)
    order = len(curves[0]) if curves else 0
    result = FlatFunction(lambda args: fun(*args), in_tree, False)
    outs, terms = expand(result.flat, leaves, curves, order, "jet")
    scaled = [
        [tangent_of(o, _scaled(t, k, math.factorial) if factorial_scaled else t) for k, t in enumerate(ts, 1)]
        for o, ts in zip(outs, terms, strict=True)
    ]
    return result.out_tree.unflatten(outs), result.out_tree.unflatten(scaled)


def _given(primals: Any, series: Any, factorial_scaled: bool) -> tuple[list[Any], Any, list[list[Any]]]:
    """Leaves of the arguments, their tree, and the coefficients of each leaf."""
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)) or len(primals) != len(series):
        raise ArgumentError(
            f"jet takes a tuple of primals and one list of terms for each, got {primals!r:.40} and {series!r:.40}",
            fix="jet(f, (x,), ([first_derivative, second_derivative],))",
        )
    lengths = [len(s) if isinstance(s, (tuple, list)) else None for s in series]
    if len(set(lengths)) > 1 or None in lengths:
        raise ArgumentError(
            f"the series of jet have {', '.join('no' if n is None else str(n) for n in lengths)} terms",
            fix="give each primal a list of terms, all of one length; None stands for a zero term",
        )
    leaves, in_tree = xla.flatten(tuple(primals))
    curves: list[list[Any]] = [[] for _ in leaves]
    for k, terms in enumerate(zip(*series, strict=True), 1):
        terms_of_order = tangent_leaves(in_tree, terms, f"jet, for terms of order {k},")
        for i, (leaf, term) in enumerate(zip(leaves, terms_of_order, strict=True)):
            checked = check_tangent(leaf, term, i, in_tree)
            curves[i].append(_scaled(checked, k, lambda k: 1 / math.factorial(k)) if factorial_scaled else checked)
    return leaves, in_tree, curves


def _scaled(term: Any, k: int, factor: Callable[[int], float]) -> Any:
    return term if term is None or k == 1 else mul(term, full_like(term, factor(k)))


# ------------------------------------------------------------------------------------------------------ interpreter
class Jet(TangentTracer):
    """The start of a power series: its value at 0, and one coefficient for each order, None where it is zero."""

    __slots__ = ("terms",)

    def __init__(self, trace: Trace, primal: Any, terms: Sequence[Any]) -> None:
        self._trace, self.primal, self.terms = trace, primal, terms


class JetTrace(Trace):
    """Trace that applies a primitive to power series of one order."""

    __slots__ = ("order",)

    def __init__(self, name: str, parent: Trace, order: int) -> None:
        super().__init__(name, parent)
        self.order = order

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals: list[Any] = []
        terms: list[Sequence[Any] | None] = []
        live = False
        for a in args:
            if type(a) is Jet and a._trace is self:
                primals.append(a.primal)
                terms.append(a.terms)
                live = True
            else:
                primals.append(a)
                terms.append(None)
        parent = state.trace = self.parent
        try:
            if not live:
                return parent.process(prim, primals, params)
            outs, series = _through(prim, primals, terms, params, self.order)
        except FtError as e:
            raise core.add_error_context(e, prim, args, params, self, "jet")  # noqa: B904  (the same error, completed)
        finally:
            state.trace = self
        wrapped = [self.wrap(o, s) for o, s in zip(outs, series, strict=True)]
        return wrapped if prim.multiple_results else wrapped[0]

    def wrap(self, primal: Any, terms: Sequence[Any]) -> Any:
        """A tracer; the value alone where all terms are zero."""
        return primal if all(t is None for t in terms) else Jet(self, primal, terms)


def expand(
    fun: Callable[..., Sequence[Any]], primals: Sequence[PyTree], curves: Sequence[Sequence[Any]], order: int, name: str
) -> tuple[list[Any], list[Sequence[Any]]]:
    """Results of a function of flat arguments, and the coefficients of each."""
    trace = JetTrace(name, state.trace, order)
    with new_trace(trace):
        outs = fun(*[trace.wrap(p, c) for p, c in zip(primals, curves, strict=True)])
    is_jet = [type(o) is Jet and o._trace is trace for o in outs]
    none = [None] * order
    return (
        [o.primal if m else o for o, m in zip(outs, is_jet, strict=True)],
        [o.terms if m else none for o, m in zip(outs, is_jet, strict=True)],
    )


# ------------------------------------------------------------------------------------------------- rules of primitives
Through = tuple[Sequence[Any], Sequence[Sequence[Any]]]  # results, and the coefficients of each


def _through(
    prim: Primitive,
    primals: Sequence[PyTree],
    terms: Sequence[Sequence[Any] | None],
    params: dict[str, Any],
    order: int,
) -> Through:
    """A primitive applied to power series, under the parent trace."""
    if prim is call:
        return _call(primals, terms, order, **params)
    series = [[p, *(t or [None] * order)] for p, t in zip(primals, terms, strict=True)]
    result = rules.rule(prim, series, params)
    if result is not None:
        return [z[0] for z in result], [z[1:] for z in result]
    avals = abstract_eval(prim, [aval_of(p) for p in primals], params)
    if not any(dtypes.is_inexact(a.dtype) for a in (avals if prim.multiple_results else (avals,))):
        outs = prim(*primals, **params)
        outs = outs if prim.multiple_results else (outs,)
        return outs, [[None] * order for _ in outs]
    return lifted(prim, series, params, order)


def lifted(prim: Primitive, series: Sequence[Sequence[PyTree]], params: dict[str, Any], order: int) -> Through:
    """Coefficients by the `jvp` rule, one order lower: z'(t) = jvp at x(t) along x'(t)."""

    def both(*flat: Any) -> list[Any]:
        n = len(series)
        rest = iter(flat[n:])
        out, tangent = prim.jvp(list(flat[:n]), [next(rest) if m else None for m in moving], **params)
        outs, tangents = (out, tangent) if prim.multiple_results else ((out,), (tangent,))
        has[:] = [t is not None for t in tangents]
        return [*outs, *(t for t in tangents if t is not None)]

    moving = [any(c is not None for c in s[1:]) for s in series]
    has: list[bool] = []
    slopes = [[_scaled(c, k, float) for k, c in enumerate(s[1:], 1)] for s, m in zip(series, moving, strict=True) if m]
    speeds = [s[0] if s[0] is not None else zeros(_tangent_aval(s)) for s in slopes]
    outs, coefficients = expand(
        both,
        [*(s[0] for s in series), *speeds],
        [*(s[1:order] for s in series), *(s[1:] for s in slopes)],
        order - 1,
        "",
    )
    rest = iter(zip(outs[len(has) :], coefficients[len(has) :], strict=True))
    terms: list[Sequence[Any]] = []
    for h in has:
        if h:
            first, more = next(rest)
            terms.append([first, *(_scaled(t, k, lambda k: 1 / k) for k, t in enumerate(more, 2))])
        else:
            terms.append([None] * order)
    return outs[: len(has)], terms


def _tangent_aval(terms: Sequence[Any]) -> ShapedArray:
    return aval_of(next(t for t in terms if t is not None)).strong()


def _call(
    primals: Sequence[PyTree], terms: Sequence[Sequence[Any] | None], order: int, *, jaxpr: Jaxpr, spec: Any
) -> Any:
    """Rule of calls: the program of a jitted function's coefficients is made once and kept on its jaxpr."""
    some = tuple(tuple(t is not None for t in (ts or [None] * order)) for ts in terms)

    def make() -> Derived:
        has: list[list[bool]] = []

        def fun(*flat: Any) -> list[Any]:
            rest = iter(flat[len(some) :])
            curves = [[next(rest) if s else None for s in row] for row in some]
            outs, coefficients = expand(lambda *xs: evaluate(jaxpr, xs), flat[: len(some)], curves, order, "")
            has[:] = [[t is not None for t in ts] for ts in coefficients]
            return [*outs, *(t for ts in coefficients for t in ts if t is not None)]

        rows = zip(jaxpr.in_avals, some, strict=True)
        avals = [*jaxpr.in_avals, *(a.strong() for a, row in rows for s in row if s)]
        return Derived(*derive(jaxpr, "jet", f"jet of order {order}", fun, avals), has)

    made: Derived = jaxpr.memo(("jet", order, some), make)
    flat_terms = [t for ts in terms for t in ts or () if t is not None]
    outs = apply(made.jaxpr, made.consts, [*primals, *flat_terms], spec)
    rest = iter(outs[len(made.out_info) :])
    return outs[: len(made.out_info)], [[next(rest) if h else None for h in row] for row in made.out_info]
