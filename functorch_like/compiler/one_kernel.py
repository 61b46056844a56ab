"""Choice of the loops and programs that become one kernel on CPUs: those on small arrays, by their jaxprs."""

from __future__ import annotations

import math

from functorch_like.core import Primitive
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs
from functorch_like.primitives.base.kernels import ELEMENTS, REDUCED
from functorch_like.primitives.base.lowering import alternatives_of
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.updates.dynamic_slice import dynamic_update_slice

#: Largest side of matrices that a loop multiplies, because YNNPACK takes those with a side of 8.
_SIDE = 7
#: Largest number of multiplications of an equation, in a loop and in a program: products are plain loops in a kernel.
_IN_LOOPS, _IN_PROGRAMS = 2048, 4096
#: Largest number of equations of a loop's step, and of a program: LLVM takes more than proportionally long for large
#: functions that it optimises, and in the quick tier it does not.
_OF_LOOPS, _OF_PROGRAMS = 128, 512
#: Kinds of primitives that XLA can compile as part of a kernel; sorts, scatters and calls of libraries it cannot.
_KINDS = frozenset(("elementwise", "movement", "reduction", "bits", "random"))
#: Families of others that it can: running sums are loops themselves.
_FAMILIES = frozenset(("cumulative",))
#: Higher-order primitives whose lowering is not that of their jaxprs.
_APART = frozenset(("shard_map", "composite"))


def loop_fits(*jaxprs: Jaxpr) -> bool:
    """Return True if a loop whose step and condition are these jaxprs is better as one kernel."""
    return sum(_equations(jaxpr, in_loop=True) for jaxpr in jaxprs) <= _OF_LOOPS


def program_fits(jaxpr: Jaxpr) -> bool:
    """Return True if a program compiles sooner as one kernel, under options that hand nothing to YNNPACK."""
    return _equations(jaxpr, in_loop=False) <= _OF_PROGRAMS


def is_plain(prim: Primitive) -> bool:
    """Return True if XLA can compile a primitive as part of a kernel, where arrays are small.

    A user's may call libraries, of which its kind says nothing.
    """
    return prim.builtin and (prim.kind in _KINDS or prim.family in _FAMILIES)


def _equations(jaxpr: Jaxpr, in_loop: bool) -> float:
    """Return the number of equations, inner jaxprs included; infinity if one cannot be part of a kernel."""
    where = "equations of a loop's kernel" if in_loop else "equations of a program's kernel"
    return jaxpr.memo(where, lambda: sum(_weight(e, in_loop) for e in jaxpr.equations))


def _weight(e: Equation, in_loop: bool) -> float:
    if e.prim.partial_eval is not None:
        inner = list(inner_jaxprs(e.params))
        if not inner or e.prim.family in _APART:
            return math.inf
        return sum(_equations(jaxpr, in_loop) for jaxpr in inner)
    return 1 if all(map(_is_native, e.outputs)) and _is_short(e, in_loop) else math.inf


def _is_native(v: Var) -> bool:
    """Return True if XLA computes in this dtype without conversions."""
    dtype = v.aval.dtype
    return dtype.kind in "biuc" or (dtype.kind == "f" and dtype.itemsize >= 4)


def _is_short(e: Equation, in_loop: bool) -> bool:
    """Return True if XLA can compile an equation as part of a kernel, which is as fast as one of its own."""
    if e.prim is dot_general:
        return _is_small_product(e, in_loop)
    if e.prim is dynamic_update_slice:  # in place: what counts is the slice
        return e.inputs[1].aval.size <= ELEMENTS
    if not is_plain(e.prim) or any(a.on_host for a in alternatives_of(e.prim.lower)):
        return False
    if e.prim.kind == "reduction" and e.inputs[0].aval.size > (REDUCED if in_loop else ELEMENTS):
        return False
    return all(v.aval.size <= ELEMENTS for v in e.outputs)


def _is_small_product(e: Equation, in_loop: bool) -> bool:
    (contracted, _), (batch, _) = e.params["dimension_numbers"]
    left, right = (a.aval for a in e.inputs)
    out = e.outputs[0].aval
    many = math.prod(left.shape[i] for i in batch)
    k = math.prod(left.shape[i] for i in contracted)
    m, n = (a.size // max(1, many * k) for a in (left, right))
    most = _IN_LOOPS if in_loop else _IN_PROGRAMS
    if e.params.get("precision") is not None or out.size > ELEMENTS or m * n * k * many > most:
        return False
    return not in_loop or 1 in (m, n, k) or max(m, n, k) <= _SIDE
