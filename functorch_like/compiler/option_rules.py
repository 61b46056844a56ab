"""Choice of the compile options of a program by its equations and jit's mode.

The rule follows measurements on XLA:CPU. The default options are the best ones for most programs. Others take half of
the time for reductions of a few elements, and three quarters for attention.
"""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes
from functorch_like.backends import cpu
from functorch_like.backends.xla import option_sets as sets
from functorch_like.backends.xla import processor
from functorch_like.ir.jaxpr import Jaxpr, inner_jaxprs
from functorch_like.primitives.base.lowering import takes_another_form
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.contractions.precision import Product
from functorch_like.primitives.elementwise.transcendental import atan, atan2

#: Values of `jit(mode=)`.
MODES = ("default", "fast-compile", "reduce-overhead", "max-autotune")

_LARGE = 1 << 16  # elements; smaller arrays do not matter
#: Elements of a reduction up to which XLA's own loops, which fuse it with the computation of its operand, are faster.
_SHORT = 32
_NARROW = frozenset(("bfloat16", "int8", "uint8"))
_NARROW_FLOATS = frozenset(dtypes.FLOAT8)
#: TRAP: XLA's own arctan computes four of eight float64 numbers in a register of 512 bits, and leaves the others 0; its
#: arctan2 calls it where the second operand is 1.
_WRONG_IF_WIDE = atan, atan2
#: Matrix products from which the quick tier leaves them to Eigen. YNNPACK plans each product when a program first runs,
#: in 0.4 to 2 ms; Eigen, which is as fast later, needs 25 ms for its first product in a process.
_MANY_PLANS = 32
#: Operations in a row from which the quick tier compiles with fusion emitters. TRAP: without them XLA 0.10 recurses
#: into each operand of a fused operation. A stack of 2 MiB holds 8,000 such calls; beyond that the process ends.
_MANY_IN_A_ROW = 1500


class Content:
    """Facts about a program that its options depend on. Work is counted in multiplications."""

    products: float = 0  # work of all matrix products and convolutions
    dots: int = 0  # number of matrix products
    narrow: bool = False  # products in bfloat16 or int8
    short_reduction: bool = False  # a short reduction of an array much larger than all arguments
    long_reduction: bool = False  # a long reduction of a large array, as in softmax
    random_bits: bool = False  # large arrays of random bits
    double_functions: bool = False  # functions of large float64 arrays, by forms for vectors
    wrong_if_wide: bool = False  # functions that XLA computes wrongly in registers of 512 bits
    narrow_floats: bool = False  # arrays of floats of 8 or 4 bits


def content(jaxpr: Jaxpr) -> Content:
    """Return the facts about a program, inner jaxprs included."""

    def read() -> Content:
        result = Content()
        largest = max((v.aval.size for v in jaxpr.inputs), default=0)
        _read(jaxpr, result, largest)
        return result

    return jaxpr.memo(("content for options", cpu.fast_lowerings), read)


def _read(jaxpr: Jaxpr, facts: Content, largest: int) -> None:
    for e in jaxpr.equations:
        facts.narrow_floats = facts.narrow_floats or any(v.aval.dtype in _NARROW_FLOATS for v in e.outputs)
        if isinstance(e.prim, Product):
            facts.products += e.prim.multiplications([a.aval for a in e.inputs], e.outputs[0].aval, e.params)
            if e.prim is dot_general:
                facts.dots += 1
                facts.narrow |= e.inputs[0].aval.dtype.name in _NARROW
        elif e.prim.kind == "reduction":
            size, short = e.inputs[0].aval.size, e.inputs[0].aval.size / max(1, e.outputs[0].aval.size)
            facts.short_reduction |= size >= _LARGE and short <= _SHORT and size > 8 * largest
            facts.long_reduction |= size >= _LARGE and short >= 64
        elif e.prim.kind == "elementwise":
            result = e.outputs[0].aval
            if e.prim in _WRONG_IF_WIDE or (result.dtype == dtypes.float64 and result.size >= _LARGE // 8):
                another = takes_another_form(e.prim.lower, [a.aval for a in e.inputs], [result], e.params)
                facts.double_functions |= another and result.dtype == dtypes.float64
                facts.wrong_if_wide |= not another and e.prim in _WRONG_IF_WIDE
        elif e.prim.kind == "bits":
            facts.random_bits |= e.outputs[0].aval.size >= _LARGE // 16
        elif e.prim.partial_eval is not None:
            for inner in inner_jaxprs(e.params):
                _read(inner, facts, largest)


def longest_chain(jaxpr: Jaxpr) -> int:
    """Return the most operations that need each other's results in a row, and of which XLA may make one kernel.

    Products end such a chain. An inner jaxpr counts as if all of its results needed all of its operands.
    """

    def count() -> int:
        lengths: dict[Any, int] = {}
        for e in jaxpr.equations:
            if isinstance(e.prim, Product):
                continue
            before = max((lengths.get(a, 0) for a in e.inputs), default=0)
            length = before + (sum(map(longest_chain, inner_jaxprs(e.params))) or 1)
            for v in e.outputs:
                lengths[v] = length
        return max(lengths.values(), default=0)

    return jaxpr.memo("longest chain", count)


def choose(jaxpr: Jaxpr, mode: str, platform: str) -> dict[str, Any]:
    """Return the default compile options of a program.

    Args:
        jaxpr: the program.
        mode: one of `MODES`; "max-autotune" starts from "default".
        platform: "cpu" or "gpu".
    """
    if mode == "fast-compile":
        return sets.UNOPTIMIZED if platform == "cpu" else sets.CUBLAS
    if platform != "cpu":
        return sets.GRAPHS if mode == "reduce-overhead" else {}
    facts = content(jaxpr)
    if facts.short_reduction and not facts.long_reduction:
        return sets.NO_FUSIONS
    wide = (facts.random_bits or facts.double_functions) and not facts.wrong_if_wide
    if wide and not facts.products and "avx512f" in processor.features():
        return sets.WIDE
    return {}


def choose_quick(jaxpr: Jaxpr, fitting: dict[str, Any], platform: str) -> dict[str, Any]:
    """Return the compile options of a program in the quick tier.

    Args:
        jaxpr: the program.
        fitting: its options in the last tier, as `choose` gives them.
        platform: "cpu" or "gpu".
    """
    if platform != "cpu":
        return {**fitting, **sets.CUBLAS}
    facts = content(jaxpr)
    many = facts.dots >= _MANY_PLANS and not facts.narrow
    quick = sets.QUICK_WITH_EMITTERS if facts.narrow_floats or longest_chain(jaxpr) > _MANY_IN_A_ROW else sets.QUICK
    return {**(sets.without_products(fitting) if many else fitting), **quick}
