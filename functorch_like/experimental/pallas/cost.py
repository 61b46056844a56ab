"""Estimates of what a function costs: `CostEstimate`, `estimate_cost`."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.compiler.tier_costs import steps
from functorch_like.ir.jaxpr import Equation, Jaxpr, inner_jaxprs
from functorch_like.primitives.contractions.precision import Product
from functorch_like.transforms.abstract_calls import make_jaxpr

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """Cost of a function, as `pallas_call(cost_estimate=...)` takes it. There it has no effect.

    Attributes:
        flops: number of additions, multiplications and their like.
        transcendentals: number of elements of exp, sin and their like.
        bytes_accessed: size of operands and results.
        remote_bytes_transferred: bytes sent to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """Return the numbers as JSON."""
        return json.dumps(dataclasses.asdict(self)).encode("ascii")


def estimate_cost(fun: Callable[..., object], *args: PyTree, **kwargs: PyTree) -> CostEstimate:
    """Count the operations of a function of arrays. A loop of unknown length counts as often as jit assumes.

    Args:
        fun: takes and returns pytrees of arrays.
        args: pytrees of arrays or `ft.ShapeDtypeStruct`s; numbers and other objects reach the function as they are.
        kwargs: the same by name.

    Returns:
        The estimate.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> x, y = ft.ShapeDtypeStruct((8, 16), "float32"), ft.ShapeDtypeStruct((16, 4), "float32")
        >>> cost = pl.estimate_cost(lambda x, y: fnp.exp(x @ y), x, y)
        >>> cost.flops, cost.transcendentals, cost.bytes_accessed
        (1024, 32, 896)
    """
    leaves, structure = tree.flatten((args, kwargs))
    is_array = [hasattr(x, "shape") and hasattr(x, "dtype") for x in leaves]
    arrays = [x for x, traced in zip(leaves, is_array, strict=True) if traced]

    def of_arrays(*values: Any) -> object:
        given = iter(values)
        some, named = structure.unflatten([next(given) if t else x for x, t in zip(leaves, is_array, strict=True)])
        return fun(*some, **named)

    jaxpr = make_jaxpr(of_arrays)(*arrays)
    flops, transcendentals = _operations(jaxpr)
    size = lambda avals: sum(math.prod(a.shape) * a.dtype.itemsize for a in avals)
    return CostEstimate(flops, transcendentals, size(arrays) + size(jaxpr.out_avals))


def _operations(jaxpr: Jaxpr) -> tuple[int, int]:
    """Return the number of operations of a program, and of those that are transcendental."""
    flops = transcendentals = 0
    for e in jaxpr.equations:
        inner = list(inner_jaxprs(e.params))
        if inner:
            times = steps(e)
            for part in map(_operations, inner):
                flops, transcendentals = flops + times * part[0], transcendentals + times * part[1]
        elif e.prim.kind == "elementwise" and (not e.prim.fusible or e.prim.family == "transcendental"):
            transcendentals += e.outputs[0].aval.size
        else:
            flops += _flops(e)
    return flops, transcendentals


def _flops(e: Equation) -> int:
    """Return the number of additions, multiplications and their like of an equation."""
    out = e.outputs[0].aval if e.outputs else None
    if out is None or e.prim.kind not in ("elementwise", "reduction", "product"):
        return 0
    if isinstance(e.prim, Product):
        return 2 * int(e.prim.multiplications([a.aval for a in e.inputs], out, e.params))
    return e.inputs[0].aval.size if e.prim.kind == "reduction" else out.size
