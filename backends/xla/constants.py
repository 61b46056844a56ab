"""Constants of programs, as methods of the emitter, and what is known of a value at lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import mlir

Value = Any

_create = ir.Operation.create
_types = mlir.types


class Constants:
    """Writes constants, and recognises them."""

    __slots__ = ()

    def constant(self: Any, value: Any) -> Value:
        """Write a NumPy value as a constant. The same rank-0 value is written once per block."""
        value = np.asarray(value)
        if value.ndim:
            return self._constant(value)
        return self._constant_of((ShapedArray((), value.dtype), value.tobytes()))

    def _constant(self: Any, value: np.ndarray[Any, Any]) -> Value:
        aval = ShapedArray(value.shape, value.dtype)
        if not aval.size:
            return self._empty(aval)
        return self.op("stablehlo.constant", [], [aval], {"value": mlir.dense(value)})

    def known(self: Any, x: Value) -> int | None:
        """Return the integer value of a constant of rank 0; None for any other value."""
        self.forbid_template()
        owner = x.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.constant":
            return None
        return int(ir.DenseIntElementsAttr(owner.attributes["value"])[0])

    def is_constant(self: Any, x: Value) -> bool:
        """Return True for a constant, and for one that is broadcast."""
        self.forbid_template()
        made = getattr(x.owner, "operation", None)  # of an argument it is a block, which is not an operation
        if made is not None and made.name == "stablehlo.broadcast_in_dim":
            return self.is_constant(made.operands[0])
        return made is not None and made.name == "stablehlo.constant"

    def is_constant_without_zeros(self: Any, x: Value) -> bool:
        """Return True for a constant of integers without a 0, broadcast or not."""
        if not self.is_constant(x):
            return False
        made = x.owner.operation
        if made.name == "stablehlo.broadcast_in_dim":
            return self.is_constant_without_zeros(made.operands[0])
        try:
            return bool(np.asarray(ir.DenseIntElementsAttr(made.attributes["value"])).all())
        except TypeError:  # jaxlib gives no buffer for integers of 2 and 4 bits
            return False

    def full(self: Any, scalar: Any, aval: ShapedArray) -> Value:
        """An array of this aval with `scalar` everywhere."""
        if not aval.size:
            return self._empty(aval)
        return self._constant_of((aval, np.asarray(scalar, aval.dtype).tobytes()))

    def _constant_of(self: Any, key: tuple[ShapedArray, bytes]) -> Value:
        """An array with the same element everywhere, which is written once per block."""
        result = self._constants.get(key)
        if result is None:
            aval, element = key
            attrs = {"value": mlir.splat(aval.dtype, aval.shape, element)}
            made = _create("stablehlo.constant", [_types[aval]], [], attrs, None, 0, self.place, self._ip)
            result = self._constants[key] = made.result
        if self._written is not None:
            self._written.append((None, key, None, None, (), result))
        return result

    def _empty(self: Any, aval: ShapedArray) -> Value:
        # MLIR's bindings cannot make an empty attribute of complex numbers.
        return self.broadcast_in_dim(self.constant(np.zeros((), aval.dtype)), aval, ())


def element_constant(x: Value) -> Any:
    """The operation that makes the one constant which an array has everywhere, or the array; None for other values."""
    made = getattr(x.owner, "operation", None)  # of an argument it is a block, which is not an operation
    if made is not None and made.name == "stablehlo.broadcast_in_dim" and not made.operands[0].type.shape:
        return element_constant(made.operands[0])
    if made is None or made.name != "stablehlo.constant":
        return None
    return made if not x.type.shape or _is_splat(made, x) else None


def _is_splat(made: Any, x: Value) -> bool:
    """Return True if the constant x, an array that the operation makes, has one element everywhere."""
    if isinstance(
        x.type.element_type, ir.ComplexType
    ):  # MLIR's bindings cannot read such an attribute; as text, other arrays have brackets
        return "dense<(" in made.get_asm(large_elements_limit=1)
    return ir.DenseElementsAttr(made.attributes["value"]).is_splat
