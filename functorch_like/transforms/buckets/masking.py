"""Interpreter of jaxprs with padded values: their valid parts are the values of the unpadded program.

Each axis of a value has a constant size, or the size `scale * rows + offset`. Along the latter the first elements are
valid; those behind them, up to the bucket's size, may hold anything, NaN included. A rule for each primitive preserves
this: before a primitive reads along such an axis, the padding is replaced by a neutral value. A primitive without a
rule is refused where an operand or result has such an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, aval_of, state
from functorch_like.errors import UnsupportedError
from functorch_like.ir.jaxpr import Equation, Jaxpr, effects
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.buckets.alignment import Comparison
from functorch_like.transforms.buckets.sizes import Extent, Size


class Step:
    """One equation, as rules take it.

    Attributes:
        masking: the interpreter.
        e: the equation at the bucket's size.
        o: the same equation for another number of rows.
        ins: sizes of the axes of each operand.
        outs: sizes of the axes of each result.
    """

    def __init__(self, masking: Masking, e: Equation, o: Equation) -> None:
        self.masking, self.e, self.o = masking, e, o
        sized = masking.compared.extents
        self.ins = [sized(a.aval.shape, b.aval.shape, e) for a, b in zip(e.inputs, o.inputs, strict=True)]
        self.outs = [sized(a.aval.shape, b.aval.shape, e) for a, b in zip(e.outputs, o.outputs, strict=True)]

    @property
    def params(self) -> dict[str, Any]:
        return self.e.params

    def moving(self, operand: int = 0) -> set[int]:
        """The axes of an operand that are padded."""
        return {d for d, s in enumerate(self.ins[operand]) if isinstance(s, Size)}

    def padded(self) -> bool:
        """Return True if an operand or result is padded."""
        return any(isinstance(s, Size) for axes in (*self.ins, *self.outs) for s in axes)

    def size(self, first: int, second: int) -> Extent:
        """A size in the parameters, from its values in both equations."""
        return self.masking.compared.extent(first, second, self.e)

    def apply(self, xs: Sequence[Any], **changed: Any) -> list[Any]:
        """Apply the primitive at the bucket's size."""
        out = state.trace.process(self.e.prim, list(xs), {**self.e.params, **changed})
        return list(out) if self.e.prim.multiple_results else [out]

    def mask(self, x: Any, operand: int, axes: Sequence[int], fill: Any) -> Any:
        """An operand with the padding along some of its axes replaced."""
        return self.masking.mask(x, self.ins[operand], axes, fill)

    def refuse(self, why: str, fix: str = "") -> UnsupportedError:
        """The error for an operation that cannot be masked."""
        masking, e = self.masking, self.e
        operands = ", ".join(repr(a.aval) for a in e.inputs)
        return UnsupportedError(
            f"{masking.name} has its rows padded to {masking.compared.rows[0]}, and {why}",
            operation=f"{e.prim.name}({operands})",
            at=str(source_info.user_line(e.source) or ""),
            fix=fix or "compute this part outside of the function with buckets, or call the function without buckets",
        )


Rule = Callable[[Step, Sequence[Any]], list[Any]]


class Masking:
    """One program for any number of rows up to that of its bucket.

    Args:
        compared: the traces of the function.
        rows: the number of rows of a call, traced.
        holes: values of the constants that depend on it.
        name: of the function.
        rules: the rule of a primitive, or None.
    """

    def __init__(
        self,
        compared: Comparison,
        rows: Any,
        holes: Sequence[Any],
        name: str,
        rules: Callable[[Primitive], Rule | None],
    ) -> None:
        self.compared, self.rows, self.name, self.rules = compared, rows, name, rules
        self.holes = [_as(h, a) for h, a in zip(holes, compared.hole_avals, strict=True)]

    def run(self, main: Jaxpr, other: Jaxpr, args: Sequence[Any], consts: int = 0, others: int = 0) -> list[Any]:
        """Evaluate a jaxpr at the bucket's size, beside the same jaxpr for another number of rows.

        Args:
            main: the jaxpr.
            other: the same one.
            args: for the inputs of `main` without the first.
            consts: number of the inputs of `main` that are constants, and left out of `args`.
            others: the same of `other`.
        """
        values: dict[Any, Any] = dict(zip(main.inputs[consts:], args, strict=True))
        carried = state.source
        try:
            for e, o in zip(main.equations, other.equations, strict=True):
                state.source = e.source
                xs = [self._read(values, a) for a in e.inputs]
                values.update(zip(e.outputs, self._step(Step(self, e, o), xs), strict=True))
        finally:
            state.source = carried
        return [self._read(values, a) for a in main.outputs]

    def _step(self, step: Step, xs: Sequence[Any]) -> list[Any]:
        e = step.e
        rule = self.rules(e.prim)
        if step.padded() and effects(e):
            raise step.refuse(f"{e.prim.name} would run on the padding", "leave effects out of functions with buckets")
        if rule is None:
            if step.padded():
                raise step.refuse(f"it is not known which elements {e.prim.name} reads")
            return step.apply(xs)
        return [_as(x, v.aval) for x, v in zip(rule(step, xs), e.outputs, strict=True)]

    def _read(self, values: dict[Any, Any], atom: Any) -> Any:
        place = self.compared.holes.get(id(atom))
        if place is not None:
            return self.holes[place]
        return values[atom] if atom in values else self.compared.constant(atom)

    # ---------------------------------------------------------------------------------------------------- quantities
    def valid(self, extent: Extent, dtype: Any = np.int32) -> Any:
        """The number of valid elements along an axis, as a traced integer or a number."""
        if not isinstance(extent, Size):
            return np.array(extent, dtype)
        scale, offset = np.array(extent.scale, np.int32), np.array(extent.offset, np.int32)
        count = elementwise.add(elementwise.mul(self.rows, scale), offset)
        return (
            count if np.dtype(dtype) == np.int32 else elementwise.convert_element_type(count, new_dtype=np.dtype(dtype))
        )

    def inside(self, shape: Sequence[int], axis: int, extent: Extent) -> Any:
        """Return for each element of a shape whether it is valid along one axis."""
        places = structural.iota(dtype=np.dtype("int32"), shape=tuple(shape), dimension=axis)
        return elementwise.lt(places, spread(self.valid(extent), shape))

    def mask(self, x: Any, extents: Sequence[Extent], axes: Sequence[int], fill: Any) -> Any:
        """An array with the padding along some axes replaced by a number."""
        aval = aval_of(x)
        for axis in axes:
            if isinstance(extents[axis], Size):
                value = spread(np.asarray(fill, aval.dtype), aval.shape)
                x = elementwise.select_n(self.inside(aval.shape, axis, extents[axis]), value, x)
        return x


def spread(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast a scalar to a shape."""
    return structural.broadcast_in_dim(x, shape=tuple(shape), broadcast_dimensions=())


def _as(x: Any, aval: ShapedArray) -> Any:
    """A value with the weak type that the equation's result has."""
    if aval_of(x).weak_type == aval.weak_type and aval_of(x).dtype == aval.dtype:
        return x
    return elementwise.convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
