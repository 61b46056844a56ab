"""Choice of the compile options of a program by its equations and jit's mode.

The rule follows measurements on XLA:CPU. Kernel libraries for products change the speed of attention, convolutions and
recurrent products by a factor of 2 to 3, in either direction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from functorch_like.backends.xla import option_sets as sets
from functorch_like.backends.xla import processor
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var, inner_jaxprs
from functorch_like.primitives.base.shapes import broadcast_in_dim, reshape, transpose
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.contractions.precision import Product

#: Values of `jit(mode=)`.
MODES = ("default", "fast-compile", "reduce-overhead", "max-autotune")

_LARGE = 1 << 16  # elements; smaller arrays do not matter
#: Data movements that YNNPACK fuses with products.
_MOVES = (transpose, reshape, broadcast_in_dim)
_NARROW = frozenset(("bfloat16", "int8", "uint8"))


class Content:
    """Facts about a program that its options depend on. Work is counted in multiplications."""

    products: float = 0  # work of all matrix products and convolutions
    batched: float = 0  # work of batched products with large enough matrices
    narrow: bool = False  # products in bfloat16 or int8
    looped: bool = False  # products inside of a loop
    chained: bool = False  # a product whose left operand depends on another product that nothing else reads
    short_reduction: bool = False  # a short reduction of an array much larger than all arguments
    long_reduction: bool = False  # a long reduction of a large array, as in softmax
    random_bits: bool = False  # large arrays of random bits


def content(jaxpr: Jaxpr) -> Content:
    """Return the facts about a program, inner jaxprs included."""
    result = Content()
    largest = max((v.aval.size for v in jaxpr.inputs), default=0)
    _read(jaxpr, result, largest, looped=False)
    result.chained = _chain(jaxpr, [False] * len(jaxpr.inputs))[0]
    return result


def _read(jaxpr: Jaxpr, facts: Content, largest: int, looped: bool) -> None:
    for e in jaxpr.equations:
        if isinstance(e.prim, Product):
            work = e.prim.multiplications([a.aval for a in e.inputs], e.outputs[0].aval, e.params)
            facts.products += work
            if e.prim is dot_general:
                _read_dot(e, work, facts, looped)
        elif e.prim.kind == "reduction":
            size, short = e.inputs[0].aval.size, e.inputs[0].aval.size / max(1, e.outputs[0].aval.size)
            facts.short_reduction |= size >= _LARGE and short <= 8 and size > 8 * largest
            facts.long_reduction |= size >= _LARGE and short >= 64
        elif e.prim.kind == "bits":
            facts.random_bits |= e.outputs[0].aval.size >= _LARGE // 16
        elif e.prim.partial_eval is not None:
            for inner in inner_jaxprs(e.params):
                _read(inner, facts, largest, looped or e.prim.kind == "loop")


def _read_dot(e: Equation, work: float, facts: Content, looped: bool) -> None:
    _, (batch, _) = e.params["dimension_numbers"]
    left = e.inputs[0].aval
    many = math.prod(left.shape[i] for i in batch)
    facts.looped |= looped
    facts.narrow |= left.dtype.name in _NARROW
    if many > 1 and work / many >= 64 * 64 * 32:
        facts.batched += work


def _chain(jaxpr: Jaxpr, of_product: Sequence[bool]) -> tuple[bool, list[bool]]:
    """Return True if a product's left operand depends on another product; and the mask of outputs that depend on one.

    YNNPACK fuses two such products into one kernel and computes the inner one again for each block of the outer one.

    Args:
        jaxpr: the program, or the jaxpr of a call in it.
        of_product: mask of the inputs that depend on a product that nothing else reads.
    """
    reads = Counter(a for e in jaxpr.equations for a in e.inputs if type(a) is Var)
    reads.update(a for a in jaxpr.outputs if type(a) is Var)
    made = {v for v, m in zip(jaxpr.inputs, of_product, strict=True) if m}
    for e in jaxpr.equations:
        marks = [type(a) is Var and a in made and reads[a] == 1 for a in e.inputs]
        if e.prim is dot_general:
            if marks[0]:
                return True, []
            made.add(e.outputs[0])
        elif e.prim.kind == "call":
            chained, outs = _chain(e.params["jaxpr"], marks)
            if chained:
                return True, []
            made.update(v for v, m in zip(e.outputs, outs, strict=True) if m)
        elif e.prim.partial_eval is not None:
            if any(_chain(inner, [False] * len(inner.inputs))[0] for inner in inner_jaxprs(e.params)):
                return True, []
        elif any(marks) and (e.prim.kind == "elementwise" or e.prim in _MOVES):
            made.add(e.outputs[0])
    return False, [a in made for a in jaxpr.outputs]


def choose(jaxpr: Jaxpr, mode: str, platform: str) -> dict[str, Any]:
    """Return the default compile options of a program.

    Args:
        jaxpr: the program.
        mode: one of `MODES`; "max-autotune" starts from "default".
        platform: "cpu" or "gpu".
    """
    if mode == "fast-compile":
        return sets.UNOPTIMIZED if platform == "cpu" else sets.UNTIMED
    if platform != "cpu":
        return sets.GRAPHS if mode == "reduce-overhead" else {}
    facts = content(jaxpr)
    if facts.narrow or facts.chained:
        return sets.ALL_DOTS
    if facts.looped:
        return sets.PLAIN
    if facts.batched > facts.products / 2:
        return sets.BATCHED_DOTS
    if facts.short_reduction and not facts.long_reduction:
        return sets.NONE
    if facts.random_bits and not facts.products and "avx512f" in processor.features():
        return sets.WIDE
    return {}
