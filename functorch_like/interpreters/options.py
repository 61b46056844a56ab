"""The compile options of a program: a rule on what it contains, for each of jit's modes.

The rule follows measurements on XLA:CPU: what is handed to libraries of kernels is worth 2 to 3 times the speed of
attention, convolutions and recurrent products, in either direction.
"""

from __future__ import annotations

import math
from typing import Any

from functorch_like.backends.xla import option_sets as sets
from functorch_like.backends.xla import processor
from functorch_like.interpreters.jaxpr import Equation, Jaxpr, held

#: What `jit(mode=)` takes.
MODES = ("default", "fast-compile", "reduce-overhead", "max-autotune")

_LARGE = 1 << 16  # elements; below, it does not matter
_LOOPS = frozenset(("while", "scan"))
_REDUCTIONS = frozenset(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin"))
_NARROW = frozenset(("bfloat16", "int8", "uint8"))


class Content:
    """What of a program its options depend on. Work is counted in multiplications."""

    products: float = 0  # of all matrix products and convolutions
    batched: float = 0  # of products of many matrices, none of them tiny
    narrow: bool = False  # products in bfloat16 or int8
    looped: bool = False  # products inside of a loop
    spread: bool = False  # a short reduction of something much larger than all arguments
    rows: bool = False  # a long reduction of something large, as in softmax
    random: bool = False  # random bits, many


def content(jaxpr: Jaxpr) -> Content:
    """What a program contains, the jaxprs inside of its equations included."""
    found = Content()
    largest = max((v.aval.size for v in jaxpr.inputs), default=0)
    _read(jaxpr, found, largest, looped=False)
    return found


def _read(jaxpr: Jaxpr, found: Content, largest: int, looped: bool) -> None:
    for e in jaxpr.equations:
        name = e.prim.name
        if name == "dot_general":
            _read_product(e, found, looped)
        elif name == "conv_general_dilated":
            kernel = e.inputs[1].aval
            found.products += e.outputs[0].aval.size * kernel.size / max(1, max(kernel.shape))
        elif name in _REDUCTIONS:
            size, short = e.inputs[0].aval.size, e.inputs[0].aval.size / max(1, e.outputs[0].aval.size)
            found.spread |= size >= _LARGE and short <= 8 and size > 8 * largest
            found.rows |= size >= _LARGE and short >= 64
        elif name == "threefry2x32":
            found.random |= e.outputs[0].aval.size >= _LARGE // 16
        elif e.prim.split is not None:
            for inner in held(e.params):
                _read(inner, found, largest, looped or name in _LOOPS)


def _read_product(e: Equation, found: Content, looped: bool) -> None:
    (contracted, _), (batch, _) = e.params["dimension_numbers"]
    left, out = e.inputs[0].aval, e.outputs[0].aval
    depth = math.prod(left.shape[i] for i in contracted)
    many = math.prod(left.shape[i] for i in batch)
    work = out.size * depth
    found.products += work
    found.looped |= looped
    found.narrow |= left.dtype.name in _NARROW
    if many > 1 and work / many >= 64 * 64 * 32:
        found.batched += work


def choose(jaxpr: Jaxpr, mode: str, platform: str) -> dict[str, Any]:
    """The options that a program is compiled under where nobody says otherwise.

    Args:
        jaxpr: the program.
        mode: one of `MODES`; "max-autotune" starts from "default".
        platform: "cpu" or "gpu".
    """
    if mode == "fast-compile":
        return sets.UNOPTIMIZED
    if platform != "cpu":
        return sets.GRAPHS if mode == "reduce-overhead" else {}
    found = content(jaxpr)
    if found.narrow:
        return sets.ALL_DOTS
    if found.looped:
        return sets.PLAIN
    if found.batched > found.products / 2:
        return sets.BATCHED_DOTS
    if found.spread and not found.rows:
        return sets.NONE
    if found.random and not found.products and "avx512f" in processor.features():
        return sets.WIDE
    return {}
