"""Choice of the loops and programs that become one kernel on CPUs: those on small arrays, by their jaxprs."""

from __future__ import annotations

import math

from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs
from functorch_like.primitives.base.kernels import ELEMENTS, REDUCED
from functorch_like.primitives.base.lowering import alternatives_of
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.updates.dynamic_slice import dynamic_update_slice

#: Largest side of matrices that are multiplied, because YNNPACK takes those with a side of 8.
_SIDE = 7
#: Largest number of multiplications of an equation: products are plain loops in such a kernel.
_MULTIPLICATIONS = 2048
#: Largest number of equations of a step: LLVM takes more than proportionally long for large functions.
_EQUATIONS = 128
#: Kinds of primitives that XLA can compile as part of a kernel; sorts, scatters and calls of libraries it cannot.
KINDS = frozenset(("elementwise", "movement", "reduction", "bits", "random"))
#: Higher-order primitives whose lowering is not that of their jaxprs.
_APART = frozenset(("shard_map", "composite"))


def loop_fits(*jaxprs: Jaxpr) -> bool:
    """Return True if a loop whose step and condition are these jaxprs is better as one kernel."""
    return sum(map(_equations, jaxprs)) <= _EQUATIONS


def program_fits(jaxpr: Jaxpr) -> bool:
    """Return True if a program compiles sooner as one kernel."""
    return _equations(jaxpr) <= _EQUATIONS


def _equations(jaxpr: Jaxpr) -> float:
    """Return the number of equations, inner jaxprs included; infinity if one cannot be part of a kernel."""
    return jaxpr.memo("equations of a kernel", lambda: sum(map(_weight, jaxpr.equations)))


def _weight(e: Equation) -> float:
    if e.prim.partial_eval is not None:
        inner = list(inner_jaxprs(e.params))
        return sum(map(_equations, inner)) if inner and e.prim.family not in _APART else math.inf
    return 1 if all(map(_is_plain, e.outputs)) and _is_short(e) else math.inf


def _is_plain(v: Var) -> bool:
    """Return True if XLA computes in this dtype without conversions."""
    dtype = v.aval.dtype
    return dtype.kind in "biuc" or (dtype.kind == "f" and dtype.itemsize >= 4)


def _is_short(e: Equation) -> bool:
    """Return True if XLA can compile an equation as part of a kernel, which is as fast as one of its own."""
    if e.prim is dot_general:
        return _is_small_product(e)
    if e.prim is dynamic_update_slice:  # in place: what counts is the slice
        return e.inputs[1].aval.size <= ELEMENTS
    if e.prim.kind not in KINDS or any(a.on_host for a in alternatives_of(e.prim.lower)):
        return False
    if e.prim.kind == "reduction" and e.inputs[0].aval.size > REDUCED:
        return False
    return all(v.aval.size <= ELEMENTS for v in e.outputs)


def _is_small_product(e: Equation) -> bool:
    (contracted, _), (batch, _) = e.params["dimension_numbers"]
    left, right = (a.aval for a in e.inputs)
    out = e.outputs[0].aval
    many = math.prod(left.shape[i] for i in batch)
    k = math.prod(left.shape[i] for i in contracted)
    m, n = (a.size // max(1, many * k) for a in (left, right))
    if e.params.get("precision") is not None or out.size > ELEMENTS or m * n * k * many > _MULTIPLICATIONS:
        return False
    return 1 in (m, n, k) or max(m, n, k) <= _SIDE
