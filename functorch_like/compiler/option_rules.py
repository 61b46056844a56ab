"""Choice of the compile options of a program by its equations and jit's mode.

The rule follows measurements on XLA:CPU. Kernel libraries for products change the speed of attention, convolutions and
recurrent products by a factor of 2 to 3, in either direction.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
    result.chained = result.products > 0 and _chained(jaxpr)
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


class _Step(NamedTuple):
    """An equation outside of calls.

    Attributes:
        equation: the equation.
        inputs, outputs: names of its values, which are unique where a function is called several times.
    """

    equation: Equation
    inputs: list[Any]
    outputs: list[Any]


def _steps(jaxpr: Jaxpr, names: dict[Any, Any], place: tuple[int, ...] = ()) -> Iterator[_Step]:
    """Yield the equations of a jaxpr with those of the functions that it calls.

    Args:
        jaxpr: the jaxpr.
        names: of its inputs; receives those of its values.
        place: positions of the calls that led here.
    """
    for k, e in enumerate(jaxpr.equations):
        inputs = [names.get(a) if type(a) is Var else None for a in e.inputs]
        if e.prim.kind == "call":
            inner = e.params["jaxpr"]
            inside = dict(zip(inner.inputs, inputs, strict=True))
            yield from _steps(inner, inside, (*place, k))
            outputs = [inside.get(a) if type(a) is Var else None for a in inner.outputs]
        else:
            outputs = [(place, k, i) for i in range(len(e.outputs))]
            yield _Step(e, inputs, outputs)
        names.update(zip(e.outputs, outputs, strict=True))


def _chained(jaxpr: Jaxpr) -> bool:
    """Return True if a product's left operand is computed of another product by what YNNPACK fuses with products.

    Where nothing else reads what is between them, YNNPACK makes one kernel of both. It may then compute the inner
    product again for each block of the outer one.
    """
    names: dict[Any, Any] = {v: ("input", k) for k, v in enumerate(jaxpr.inputs)}
    steps = list(_steps(jaxpr, names))
    makers = {name: k for k, step in enumerate(steps) for name in step.outputs}
    readers: dict[Any, list[int]] = {}
    for k, step in enumerate(steps):
        for name in step.inputs:
            readers.setdefault(name, []).append(k)
    for a in jaxpr.outputs:
        readers.setdefault(names.get(a) if type(a) is Var else None, []).append(len(steps))
    for k, step in enumerate(steps):
        e = step.equation
        if e.prim is dot_general and step.inputs[0] != step.inputs[1] and _reaches_product(k, steps, makers, readers):
            return True
        if e.prim.partial_eval is not None and any(map(_chained, inner_jaxprs(e.params))):
            return True
    return False


def _reaches_product(
    product: int, steps: Sequence[_Step], makers: Mapping[Any, int], readers: Mapping[Any, list[int]]
) -> bool:
    """Return True if the kernel of a product takes another one in, by its left operand.

    Equations are taken in from the last one back, so that all readers of a value are known before its maker.
    """
    fused = {product}
    candidates = [-makers[name] for name in steps[product].inputs[:1] if name in makers]
    while candidates:
        k = -heapq.heappop(candidates)
        equation, inputs, outputs = steps[k]
        if k in fused or not all(r in fused for name in outputs for r in readers.get(name, ())):
            continue
        if equation.prim is dot_general:
            return True
        if equation.prim.kind == "elementwise" or equation.prim in _MOVES:
            fused.add(k)
            for name in inputs:
                if name in makers:
                    heapq.heappush(candidates, -makers[name])
    return False


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
