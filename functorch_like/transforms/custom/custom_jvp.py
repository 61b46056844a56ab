"""`custom_jvp`: a function whose derivative is written by the user, as a rule for tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.core import aval_of, state
from functorch_like.errors import ArgumentError, DifferentiationError
from functorch_like.interpreters.batching import BatchTrace, BatchTracer
from functorch_like.interpreters.reverse import TapeTrace, dead_code_elimination
from functorch_like.ir.trace_to_jaxpr import StageTrace, VarTracer
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.base import Called, CustomFunction
from functorch_like.transforms.custom.rule_checks import Column, Report
from functorch_like.transforms.custom.symbolic_zeros import (
    SymbolicZero,
    as_array,
    instantiate,
    is_zero,
    matching,
    strong,
    tangent_aval,
)
from functorch_like.transforms.linearity import nonlinear, surely_not_zero
from functorch_like.transforms.tangents import error_context

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import F
    from functorch_like.typing import PyTree


class custom_jvp(CustomFunction[P, R]):
    """Define a function's derivative by a rule in forward mode, which reverse mode transposes.

    The rule is used by every transformation that differentiates: `jvp`, `grad`, `vjp`, `linearize`, at any order, and
    inside of `jit`, `vmap` and control flow. Outside of `jit` the function and its rule run as plain Python.

    Args:
        fun: takes and returns pytrees of arrays. Left out, `custom_jvp` gives a decorator.
        nondiff_argnums: positions of arguments that are not arrays, such as functions or sizes; or that have no
            derivative. The rule is given them first.
        nondiff_argnames: the same by name.

    Returns:
        The function, with `defjvp` and `defjvps`, one of which must be called before the function is.

    Raises:
        ArgumentError: at the call, where no rule is defined.
        TreeError, ShapeError, DtypeError: where the rule returns a wrong structure, shape or dtype.
        DifferentiationError: where the rule is not linear in its tangents.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> @ft.custom_jvp
    ... def log1pexp(x):
    ...     return fnp.log(1 + fnp.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + fnp.exp(x))) * dx
    >>> float(ft.grad(log1pexp)(100.0))  # exp(100) is infinite, in single precision
    1.0
    """

    kind = "custom_jvp"

    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    @api_boundary.public
    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Define the rule.

        Args:
            jvp: `(*nondiff, primals, tangents) -> (result, tangent of the result)`. Both are tuples with one entry
                for each argument that is not nondiff; a tangent has the structure, shapes and dtypes of its primal,
                or float0 zeros for integers. It must be linear in the tangents. Parts of the result's tangent that
                are None are zero. A tangent of another dtype is an error; only that of a Python number may have any
                float dtype, and is converted.
            symbolic_zeros: give the rule a `SymbolicZero` for a tangent that is zero, instead of an array of zeros.

        Returns:
            The rule, so that this serves as a decorator.
        """
        check_callable(jvp, "defjvp")
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    @api_boundary.public
    def defjvps(self, *jvps: Callable[..., PyTree] | None) -> None:
        """Define the rule in parts, one for each argument.

        Args:
            jvps: `(tangent, result, *primals) -> a summand of the tangent of the result`, or None for zero.

        >>> import functorch_like as ft
        >>> @ft.custom_jvp
        ... def product(x, y):
        ...     return x * y
        >>> product.defjvps(lambda dx, out, x, y: dx * y, lambda dy, out, x, y: x * dy)
        >>> [float(g) for g in ft.grad(product, (0, 1))(2.0, 5.0)]
        [5.0, 2.0]
        """
        if self.nondiff_argnums:
            raise ArgumentError(
                f"defjvps of {self.name} has no place for nondiff arguments", fix="define the whole rule with defjvp"
            )

        bound: Any = self

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise ArgumentError(
                    f"defjvps of {self.name} got {len(jvps)} rules, but the function has {len(primals)} arguments",
                    fix="give one for each argument, None where it adds nothing",
                    **error_context(),
                )
            out = bound(*primals)
            # A tangent that is zero must not meet a slope that is infinite.
            parts = [
                part(tree.map(_instantiated, t), out, *primals)
                for part, t in zip(jvps, tangents, strict=True)
                if part is not None and not all(is_zero(leaf) for leaf in tree.leaves(t))
            ]
            if not parts:
                return out, tree.map(lambda _: None, out)
            return out, tree.map(lambda *summed: sum(summed[1:], summed[0]), *parts)

        rule.__name__ = f"{self.name}_jvps"
        written = next((j for j in jvps if j is not None), None)
        if written is not None:
            rule.__wrapped__ = written  # type: ignore[attr-defined]  # whose line errors quote
        self.jvp, self.symbolic_zeros = rule, True

    def _missing(self) -> str:
        name = self.name
        return "" if self.jvp else f"@{name}.defjvp above a function (primals, tangents) -> (result, tangent)"

    def _called(self, nondiff: tuple[Any, ...], in_tree: Any) -> _Called:
        return _Called(self, nondiff, in_tree)

    def bind(self, called: Called, leaves: list[Any]) -> Sequence[Any]:
        return custom_jvp_call(*leaves, fun=called.function, rule=called, consts=0)


def _instantiated(tangent: Any) -> Any:
    return instantiate(None, tangent.aval) if isinstance(tangent, SymbolicZero) else tangent


class _Called(Called):
    """One call; as a function it is the rule on flat leaves."""

    custom: custom_jvp

    @property
    def __name__(self) -> str:
        return name_of(self.custom.jvp)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any], expected: Sequence[ShapedArray] | None
    ) -> tuple[list[Any], list[Any]]:
        rule, symbolic = self.custom.jvp, self.custom.symbolic_zeros
        assert rule is not None
        self.in_avals = [aval_of(p) for p in primals]
        args = self.in_tree.unflatten([as_array(p) for p in primals])
        directions = [instantiate(t, a, symbolic) for t, a in zip(tangents, self.in_avals, strict=True)]
        recorded = Recorded(primals, tangents)
        first = "*nondiff, " if self.nondiff else ""
        with self.written_by_user(f"jvp({first}primals, tangents) takes two tuples and returns (result, tangent)"):
            pair = rule(*self.nondiff, args, self.in_tree.unflatten(directions))
        report = self.report(rule)
        out, tangent = report.pair(pair, "(result, tangent of the result)")
        outs = self.results(rule, out, expected)
        avals = [aval_of(o) for o in outs]
        leaves, treedef = matching(self.out_tree, tangent)
        needed = Column("tangent needed", self.out_tree, [tangent_aval(a) for a in avals])
        report.derivative("tangent returned", treedef, leaves, needed, avals)
        result = [strong(t, a) for t, a in zip(leaves, avals, strict=True)]
        recorded.check(result, report)
        return outs, result


class Recorded:
    """Check that a rule is linear in its tangents, by the equations that the current trace records from now on.

    Reverse mode transposes these equations, so they must be linear. Under a trace that records none, nothing is
    checked. A tangent that is also a primal, as in `jvp(f, (x,), (x,))`, is not checked: its uses cannot be
    distinguished from those of the primal.
    """

    def __init__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> None:
        trace: Any = state.trace
        while isinstance(trace, BatchTrace):
            trace = trace.parent
        self.trace = trace if isinstance(trace, (TapeTrace, StageTrace)) else None
        self.start = len(trace.equations) if self.trace is not None else 0
        self.unknown = {self.var(t) for t in tangents} - {self.var(p) for p in primals} - {None}

    def var(self, x: Any) -> Any:
        """The variable of a tangent below its hidden axes; None for one that is not recorded."""
        while type(x) is BatchTracer:
            x = x.value
        return x._var if isinstance(x, VarTracer) and x._trace is self.trace else None

    def check(self, tangents: Sequence[Any], report: Report) -> None:
        """Refuse tangents of the result that are known not to be linear in the tangents of the arguments."""
        if self.trace is None:
            return
        fix = "a tangent is a sum of given tangents, each times something that does not depend on tangents"
        made = dead_code_elimination(self.trace.equations[self.start :], [self.var(t) for t in tangents])
        result = nonlinear(made, self.unknown, {})
        if result is not None:
            raise report.error(DifferentiationError, f"{report.name} is not linear in its tangents: {result[0]}", fix)
        if isinstance(self.trace, TapeTrace) and any(surely_not_zero(t) for t in tangents):
            reason = f"{report.name} returned a tangent that does not depend on the given ones, and is not zero"
            raise report.error(DifferentiationError, reason, fix)
