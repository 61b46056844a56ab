"""Choice of the loops and programs that become one kernel on CPUs: those on small arrays, by their jaxprs."""

from __future__ import annotations

import math

from functorch_like.backends.xla.kernel_limits import LOOPS, PROGRAMS, Limits
from functorch_like.core import TABLE, Primitive
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs
from functorch_like.primitives.base.lowering import alternatives_of
from functorch_like.primitives.contractions.dot_general import dot_general

#: Kinds of primitives that XLA can compile as part of a kernel, unlike sorts, scatters and calls of libraries.
_KINDS = frozenset(("elementwise", "movement", "reduction", "bits", "random"))
#: Families of other primitives that it can, too: running sums are loops.
_FAMILIES = frozenset(("cumulative", "recurrence"))
#: Higher-order primitives whose lowering is not that of their jaxprs.
_APART = frozenset(("shard_map", "composite"))


def loop_fits(*jaxprs: Jaxpr) -> bool:
    """Return True if a loop whose step and condition are these jaxprs is better as one kernel."""
    return sum(_equations(jaxpr, LOOPS) for jaxpr in jaxprs) <= LOOPS.operations


def program_fits(jaxpr: Jaxpr) -> bool:
    """Return True if a program compiles sooner as one kernel, under options that hand nothing to YNNPACK."""
    return _equations(jaxpr, PROGRAMS) <= PROGRAMS.operations


def is_plain(prim: Primitive) -> bool:
    """Return True if XLA can compile a primitive as part of a kernel, where arrays are small.

    A user's primitive may call libraries, whatever its kind is.
    """
    return prim.builtin and (prim.kind in _KINDS or prim.family in _FAMILIES)


def _equations(jaxpr: Jaxpr, limits: Limits) -> float:
    """Return the number of equations, inner jaxprs included; infinity if one cannot be part of a kernel."""
    return jaxpr.memo(("equations of a kernel", limits), lambda: sum(_weight(e, limits) for e in jaxpr.equations))


def _weight(e: Equation, limits: Limits) -> float:
    if e.prim.partial_eval is not None:
        inner = list(inner_jaxprs(e.params))
        if not inner or e.prim.family in _APART:
            return math.inf
        return sum(_equations(jaxpr, limits) for jaxpr in inner)
    return 1 if all(map(_is_native, e.outputs)) and _is_short(e, limits) else math.inf


def _is_native(v: Var) -> bool:
    """Return True if XLA computes in this dtype without conversions."""
    dtype = v.aval.dtype
    return dtype.kind in "biuc" or (dtype.kind == "f" and dtype.itemsize >= 4)


def _is_short(e: Equation, limits: Limits) -> bool:
    """Return True if XLA can compile an equation as part of a kernel, which is as fast as one of its own."""
    if e.prim is dot_general:
        return _is_small_product(e, limits)
    if e.prim is TABLE.get("dynamic_update_slice"):  # in place: what counts is the slice
        return e.inputs[1].aval.size <= limits.elements
    if not is_plain(e.prim) or any(a.on_host for a in alternatives_of(e.prim.lower)):
        return False
    if e.prim.kind == "reduction" and e.inputs[0].aval.size > limits.reduced:
        return False
    return all(v.aval.size <= limits.elements for v in e.outputs)


def _is_small_product(e: Equation, limits: Limits) -> bool:
    (contracted, _), (batched, _) = e.params["dimension_numbers"]
    left, right = (a.aval.shape for a in e.inputs)
    return e.params.get("precision") is None and limits.admit_product(left, right, batched, contracted)
