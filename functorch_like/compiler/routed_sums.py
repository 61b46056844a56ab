"""Pass over jaxprs: sums of computed operands that go to the slower of XLA's loop and YNNPACK by size alone are moved.

XLA and YNNPACK compute the operand of a sum with it, so the time depends on the operand's equations, which the lowering
of a sum does not see.

- YNNPACK makes a product of the sum of `x * y`. Where y repeats along dimensions that stay, the order of dimensions
  decides: weights for each row are fast, others take up to 50 times as long as in XLA's loop.
- LLVM writes vector code for XLA's loop over a few columns of an array in memory. Of computed columns it does so for 8
  or fewer only, and, of two arrays or more, for numbers of columns that are powers of two.
"""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.backends.cpu import fast_lowering
from functorch_like.backends.xla.option_sets import SLOW_COLUMNS
from functorch_like.compiler.repeated_operands import repeated_dimensions
from functorch_like.ir.jaxpr import Equation, Jaxpr
from functorch_like.primitives.base.reduce_sum_cpu import LARGE, columns_alone
from functorch_like.primitives.base.shapes import reduce_sum, routed_sum
from functorch_like.primitives.elementwise.arithmetic import div, mul

_ON = fast_lowering("routed_sums", "sums of computed operands go to XLA's own loop or to YNNPACK by these operands")
#: Most computed columns in XLA's own loop. From jaxlib 0.11 on LLVM writes better code for more.
_COLUMNS = 8 if SLOW_COLUMNS else 16
_DTYPES = frozenset((dtypes.float32, dtypes.float64))


def with_routed_sums(jaxpr: Jaxpr) -> Jaxpr:
    """Return a jaxpr whose sums of computed operands have the faster kernel; the same one if all of them do."""
    makers = {v: e for e in jaxpr.equations if e.prim.kind == "elementwise" for v in e.outputs}
    sums = [e for e in jaxpr.equations if e.prim is reduce_sum and e.inputs[0] in makers and _may_move(e)]
    if not sums or not _ON():
        return jaxpr
    repeats = repeated_dimensions(jaxpr)
    loops: dict[Equation, bool] = {}
    for e in sums:
        if _is_slow_product(e, makers[e.inputs[0]], repeats):
            loops[e] = True
        elif _has_slow_columns(e, makers, repeats):
            loops[e] = False
    if not loops:
        return jaxpr
    moved = lambda e: Equation(routed_sum, e.inputs, {**e.params, "own_loop": loops[e]}, e.outputs, e.source)
    equations = [moved(e) if e in loops else e for e in jaxpr.equations]
    return Jaxpr(jaxpr.inputs, equations, jaxpr.outputs, jaxpr.name, jaxpr.origin)


def _may_move(e: Equation) -> bool:
    aval = e.inputs[0].aval
    axes = e.params["axes"]
    return aval.dtype in _DTYPES and aval.size >= LARGE and len(axes) == 1 and axes[0] < aval.ndim - 1


def _is_slow_product(e: Equation, made: Equation, repeats: dict[Any, frozenset[int]]) -> bool:
    """Return True for the sum of x * y or x / y where the order of dimensions of y is one that YNNPACK is slow for."""
    if made.prim is not mul and made.prim is not div:
        return False
    shape, (axis,) = e.inputs[0].aval.shape, e.params["axes"]
    along = [{d for d in repeats.get(a, ()) if shape[d] > 1} for a in made.inputs]
    missing = along[1] or along[0]
    # The other one is a full array, else the sum is a product of matrices, which YNNPACK is fast for. XLA makes a
    # product of x / y, not of y / x.
    if not missing or (along[0] and (along[1] or made.prim is div)) or axis in missing:
        return False
    last = len(shape) - 1
    return last not in missing or any(axis < d < last for d in missing)


def _has_slow_columns(e: Equation, makers: dict[Any, Equation], repeats: dict[Any, frozenset[int]]) -> bool:
    (operand,) = e.inputs
    columns = columns_alone(operand.aval, e.params["axes"])
    if columns is None or columns in (1, 2, 4, 8):
        return False
    return columns > _COLUMNS or (SLOW_COLUMNS and len(_arrays(operand, makers, repeats)) > 1)


def _arrays(operand: Any, makers: dict[Any, Equation], repeats: dict[Any, frozenset[int]]) -> set[Any]:
    """Return arrays as large as an operand that it is computed from: all of them, or two."""
    found: set[Any] = set()
    seen, stack = {operand}, [operand]
    while stack and len(found) < 2:
        v = stack.pop()
        if v in repeats or v.aval.shape != operand.aval.shape:
            continue
        if v not in makers:
            found.add(v)
            continue
        new = [a for a in makers[v].inputs if a not in seen]
        seen.update(new)
        stack.extend(new)
    return found
