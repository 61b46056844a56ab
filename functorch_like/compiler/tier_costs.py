"""Estimates from a jaxpr of the compile time that full options cost, and the run time that they save, on CPUs.

Both are fitted to measurements of about 30 programs: networks, recurrences, stencils, linear algebra, single
operations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like.backends.xla.jaxlib_api import VERSION
from functorch_like.ir.jaxpr import Equation, Jaxpr, inner_jaxprs
from functorch_like.primitives.base.lowering import compiles_slowly, is_for_the_last_tier

#: Seconds that XLA compiles longer under full options: for a program, and for each equation that computes.
_PROGRAM, _EQUATION = (10e-3, 3e-3) if VERSION < (0, 11) else (5e-3, 1.5e-3)
#: Seconds that an element of an elementwise result is computed longer under quick options.
_ELEMENT = 2e-9
#: Cost of an element in units of `_ELEMENT`: of transcendental functions, and of random bits.
_FUNCTION, _BITS = 5, 100
#: Assumed steps of a loop of unknown length that gives no expected number.
_STEPS = 1000
#: The same inside of a loop of known length, such as the trajectory of each sample. (With 1,000 steps, 2,000 samples of
#: NUTS are estimated to take 45 s. They take 2, and full options take 5 to compile them.)
_STEPS_IN_KNOWN = 30
#: The same inside of another loop of unknown length, such as a line search.
_STEPS_IN_UNKNOWN = 3
#: Cost, in equations, of an operation of several kernels: sorting, cumulative sums, factorizations, random bits.
_KERNELS = 6
#: Cost of special functions, by family, in equations and elements. Iterative ones cost as much as whole programs.
_SPECIAL = {"incomplete_gamma": (150, 2000), "incomplete_beta": (300, 400), "zeta": (20, 40), "erf_and_gamma": (4, 30)}
#: Cost of an equation whose form compiles much longer under full options, in equations.
_SLOW_COMPILE = 20
#: Operands of what moves data, such as a concatenation, from which on each costs as much as an equation.
_MANY_PARTS = 4
#: Number of equations below which both forms compile in about the same time.
FEWEST = 2


class Estimate(NamedTuple):
    """Estimate of a program.

    Attributes:
        equations: number of equations that compute, each counted as often as it is compiled.
        elements: number of elements that one run computes, weighted by their cost.
    """

    equations: int
    elements: float

    @property
    def compile_seconds(self) -> float:
        """Seconds that XLA compiles longer under full options."""
        return _PROGRAM + _EQUATION * self.equations

    @property
    def run_seconds(self) -> float:
        """Seconds that one run takes longer under quick options."""
        return _ELEMENT * self.elements


def estimate(jaxpr: Jaxpr, *, unknown: int = _STEPS) -> Estimate:
    """Return the estimate of a program, or of a part of it; `unknown` steps are assumed where the number is unknown."""

    def add() -> Estimate:
        parts = [_of_equation(e, unknown) for e in jaxpr.equations]
        return Estimate(sum(p.equations for p in parts), sum(p.elements for p in parts))

    return jaxpr.memo(("tier estimate", unknown), add)


def steps(e: Equation, *, unknown: int = _STEPS) -> int:
    """Return how often an equation runs the jaxprs among its parameters."""
    known = _known_steps(e)
    return unknown if known is None else known


def _known_steps(e: Equation) -> int | None:
    return e.params.get("length", e.params.get("expected_steps")) if e.prim.kind == "loop" else 1


def _unknown_inside(e: Equation, unknown: int) -> int:
    """Return the steps to assume of loops in an equation's jaxprs, if their number is unknown."""
    known = _known_steps(e)
    if known is None:
        return _STEPS_IN_UNKNOWN
    return min(unknown, _STEPS_IN_KNOWN) if known > 1 else unknown


def has_optimised_forms(jaxpr: Jaxpr) -> bool:
    """Return True if an equation of a program takes another form in the last tier than in the quick one."""

    def takes(e: Equation) -> bool:
        inner = inner_jaxprs(e.params)
        return is_for_the_last_tier(e.prim.lower, *_of_lower(e)) or any(map(has_optimised_forms, inner))

    return jaxpr.memo("optimised forms", lambda: any(map(takes, jaxpr.equations)))


def _of_lower(e: Equation) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Return what a `lower` rule decides by: avals of operands and results, and parameters."""
    return [v.aval for v in e.inputs], [v.aval for v in e.outputs], e.params


def _of_equation(e: Equation, unknown: int) -> Estimate:
    if e.prim.partial_eval is not None:
        inner = [estimate(j, unknown=_unknown_inside(e, unknown)) for j in inner_jaxprs(e.params)]
        if inner:
            times = steps(e, unknown=unknown)
            return Estimate(sum(i.equations for i in inner), times * sum(i.elements for i in inner))
    size = max((v.aval.size for v in (*e.inputs, *e.outputs)), default=0)
    if compiles_slowly(e.prim.lower, *_of_lower(e)):
        return Estimate(_SLOW_COMPILE, _FUNCTION * size)
    if e.prim.kind == "movement":
        parts = sum(v.aval.ndim > 0 for v in e.inputs)  # numbers are positions
        return Estimate(parts if parts >= _MANY_PARTS else 0, size)
    if e.prim.where.startswith("random/"):
        return Estimate(_KERNELS, _BITS * size)
    if e.prim.family in _SPECIAL:
        equations, elements = _SPECIAL[e.prim.family]
        return Estimate(equations, elements * size)
    if e.prim.kind not in ("elementwise", "reduction", "product"):
        return Estimate(_KERNELS, size)
    return Estimate(1, size if e.prim.fusible or e.prim.kind != "elementwise" else _FUNCTION * size)
