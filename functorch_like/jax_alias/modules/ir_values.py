"""Types, attributes and operations of MLIR, made in the context and at the insertion point in force.

Functions of `jax.interpreters.mlir` for lowering rules. They take NumPy's values and avals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import mlir, mlir_rules
from functorch_like.backends.xla.mlir import ir
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.jax_alias.modules.lowering_contexts import LoweringRuleContext

Value = ir.Value
Token = ir.Value


class ConstantHandler(Protocol):
    """Function that writes a value of a library's class as a constant."""

    def __call__(self, val: Any, aval: Any) -> Any:
        """Return a value of MLIR, or a sequence of them."""


# -------------------------------------------------------------------------------------------------------------- types
def dtype_to_ir_type(dtype: DTypeLike) -> ir.Type:
    """Return the MLIR type of one element.

    Raises:
        DtypeError: for a dtype that XLA does not have.
    """
    return ir.Type.parse(str(mlir.element_type(np.dtype(dtype))))


def _tensor_type(ctx: Any, aval: Any) -> ir.Type:
    return ir.RankedTensorType.get(aval.shape, dtype_to_ir_type(aval.dtype))


#: Functions `(ctx, aval) -> type` by the class of an aval. Libraries add those of their own classes.
ir_type_handlers: dict[type[Any], Callable[..., Any]] = {ShapedArray: _tensor_type}


def aval_to_ir_type(ctx: Any, aval: Any = None) -> Any:
    """Return the MLIR type of an aval. `ctx` may be left out, as in older versions of JAX."""
    aval = ctx if aval is None else aval
    return ir_type_handlers.get(type(aval), _tensor_type)(ctx, aval)


def aval_to_ir_types(ctx: Any, aval: Any = None) -> tuple[Any, ...]:
    """Return the MLIR types of an aval, in a tuple."""
    types = aval_to_ir_type(ctx, aval)
    return tuple(types) if isinstance(types, (list, tuple)) else (types,)


def token_type() -> ir.Type:
    """Return the type of tokens."""
    return ir.Type.parse("!stablehlo.token")


# --------------------------------------------------------------------------------------------------------- attributes
def i32_attr(i: int) -> ir.Attribute:
    """Return an integer of 32 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), int(i))


def i64_attr(i: int) -> ir.Attribute:
    """Return an integer of 64 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(i))


def dense_int_array(xs: Sequence[int]) -> ir.Attribute:
    """Return integers as `array<i64: ...>`."""
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs])


def dense_bool_array(xs: Sequence[bool]) -> ir.Attribute:
    """Return booleans as `array<i1: ...>`."""
    return ir.DenseBoolArrayAttr.get([bool(x) for x in xs])


def dense_int_elements(xs: Sequence[int]) -> ir.Attribute:
    """Return integers as `dense<...> : tensor<Nxi64>`."""
    return _dense(np.asarray(xs, np.int64))


def dense_bool_elements(xs: Sequence[bool]) -> ir.Attribute:
    """Return booleans as `dense<...> : tensor<Nxi1>`."""
    return _dense(np.asarray(xs, np.bool_))


#: Unsigned integers by the size of an element: NumPy's buffers have no bfloat16, so arrays are passed by their bits.
_BITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def _dense(value: np.ndarray[Any, Any]) -> ir.Attribute:
    element, shape = dtype_to_ir_type(value.dtype), list(value.shape)
    if not value.size:
        return ir.Attribute.parse(f"dense<> : tensor<{''.join(f'{n}x' for n in shape)}{element}>")
    bits: Any = np.ascontiguousarray(value).reshape(-1).view(_BITS[value.dtype.itemsize])
    return ir.DenseElementsAttr.get(bits, type=element, shape=shape)


def ir_attribute(val: Any) -> ir.Attribute:
    """Return a Python or NumPy value as an attribute.

    Args:
        val: bool, int (64 bits), float (64 bits), str, bytes, dtype, NumPy scalar or array, or an attribute; or a
            sequence or dictionary of these.

    Returns:
        The attribute.

    Raises:
        ArgumentError: for any other value.
    """
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, ir.Type):
        return ir.TypeAttr.get(val)
    if isinstance(val, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, int):
        return i64_attr(val)
    if isinstance(val, float) and not isinstance(val, np.generic):
        return ir.FloatAttr.get(ir.F64Type.get(), val)
    if isinstance(val, (str, bytes)):
        return ir.StringAttr.get(val if isinstance(val, str) else val.decode())
    if isinstance(val, Mapping):
        return ir.DictAttr.get({str(name): ir_attribute(each) for name, each in val.items()})  # pyright: ignore
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(each) for each in val])  # pyright: ignore
    if isinstance(val, np.dtype) or (isinstance(val, type) and issubclass(val, np.generic)):
        return ir.TypeAttr.get(dtype_to_ir_type(val))
    if isinstance(val, np.ndarray) and val.dtype != object:
        return _dense(val)
    if isinstance(val, np.generic) and dtypes.is_integer(val.dtype):
        return ir.IntegerAttr.get(dtype_to_ir_type(val.dtype), int(val))
    if isinstance(val, np.generic) and dtypes.is_float(val.dtype):
        return ir.FloatAttr.get(dtype_to_ir_type(val.dtype), float(val))
    raise ArgumentError(
        f"ir_attribute: {val!r:.60} of type {type(val).__name__} is not a value of an attribute",
        fix="give a bool, a number, text, a dtype, a NumPy array, or a sequence or dictionary of these",
    )


# ---------------------------------------------------------------------------------------------------------- constants
#: Functions `(value, aval) -> value of MLIR` by the class of a value. Libraries add those of their own classes.
_constant_handlers: dict[type[Any], ConstantHandler] = {}


def register_constant_handler(type_: type[Any], handler_fun: ConstantHandler) -> None:
    """Register the function `(value, aval)` by which `ir_constant` writes values of a class, and of its subclasses."""
    _constant_handlers[type_] = handler_fun


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """Write an array or number as a constant.

    Args:
        val: array, NumPy value or Python number, or a value of a class that has a handler.
        const_lowering: has no effect, since constants are not shared between functions.
        aval: gives the dtype; by default that of the value.

    Returns:
        The value of MLIR.

    Raises:
        DtypeError: for a value that is not an array or number.
    """
    handler = next((h for kind in type(val).__mro__ if (h := _constant_handlers.get(kind)) is not None), None)
    if handler is not None:
        return handler(val, aval)
    if isinstance(val, core.Tracer) or not core.is_value(val):
        raise DtypeError(
            f"ir_constant: {val!r:.60} of type {type(val).__name__} is not an array with a value",
            fix="give an array, or register a handler of the class by mlir.register_constant_handler",
        )
    dtype = core.aval_of(val).dtype if aval is None else aval.dtype
    value = np.asarray(val, dtype)
    kind = ir.RankedTensorType.get(list(value.shape), dtype_to_ir_type(dtype))
    if not value.size and dtype.kind == "c":  # MLIR's bindings cannot make an empty attribute of complex numbers
        attributes: dict[str, Any] = {"broadcast_dimensions": dense_int_array(())}
        return _write("stablehlo.broadcast_in_dim", [kind], [ir_constant(np.zeros((), dtype))], attributes)
    return _write("stablehlo.constant", [kind], [], {"value": _dense(value)})


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple[Any, ...]:
    """Write a constant; return its values in a tuple."""
    return tuple(mlir_rules.values_in(ir_constant(val, const_lowering=const_lowering, aval=aval)))


def _write(name: str, types: Sequence[Any], operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    return ir.Operation.create(name, types, operands, attributes).result


def full_like_aval(ctx: LoweringRuleContext, value: Any, aval: Any) -> Any:
    """Write an array of an aval with one number everywhere."""
    number = ir_constant(np.asarray(value, aval.dtype))
    return _broadcast(number, (), aval)


def multi_broadcast_in_dim(
    ctx: LoweringRuleContext, ops: Sequence[Any], ops_avals: Sequence[Any], out_shape: Sequence[int], *rest: Any
) -> tuple[Any, ...]:
    """Write arrays broadcast to a shape, by NumPy's rules."""
    out = []
    for x, aval in zip(ops, ops_avals, strict=True):
        start = len(out_shape) - aval.ndim
        # Axes of size 1 are repeated as they are: an axis of the result is that size, or the operand's is 1.
        out.append(_broadcast(x, range(start, len(out_shape)), aval.update(shape=tuple(out_shape))))
    return tuple(out)


def _broadcast(x: Any, dims: Iterable[int], aval: Any) -> Any:
    attributes: dict[str, Any] = {"broadcast_dimensions": dense_int_array(tuple(dims))}
    return _write("stablehlo.broadcast_in_dim", [aval_to_ir_type(aval)], [x], attributes)


def shape_tensor(ctx: Any, sizes: Any = None) -> Any:
    """Write sizes as an int32 vector; a size may be a value of MLIR. `ctx` may be left out."""
    parts: list[Any] = []
    one = ShapedArray((1,), np.dtype(np.int32))
    for size in ctx if sizes is None else sizes:
        if not isinstance(size, ir.Value):
            parts.append(ir_constant(np.asarray([size], np.int32)))
            continue
        known: Any = size.type
        if known.element_type != dtype_to_ir_type(np.int32):
            whole = ir.RankedTensorType.get(known.shape, dtype_to_ir_type(np.int32))
            size = _write("stablehlo.convert", [whole], [size], {})
        parts.append(_write("stablehlo.reshape", [aval_to_ir_type(one)], [size], {}))
    if not parts:
        return ir_constant(np.zeros(0, np.int32))
    if len(parts) == 1:
        return parts[0]
    vector = aval_to_ir_type(one.update(shape=(len(parts),)))
    return _write("stablehlo.concatenate", [vector], parts, {"dimension": i64_attr(0)})


# -------------------------------------------------------------------------------------------------------------- trees
def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Return the values in a sequence of values, and of sequences of them."""
    return list(mlir_rules.values_in(xs))


def flatten_ir_types(xs: Iterable[Any]) -> list[Any]:
    """Return the types in a sequence of types, and of sequences of them."""
    return [t for x in xs for t in (x if isinstance(x, (list, tuple)) else (x,))]


def unflatten_ir_values_like_types(xs: Iterable[Any], ys: Sequence[Any]) -> list[Any]:
    """Return values in the structure of types: one for each type, a tuple for each sequence of types."""
    values = iter(xs)
    out = [tuple(next(values) for _ in y) if isinstance(y, (list, tuple)) else next(values) for y in ys]
    if next(values, None) is not None:
        raise ArgumentError("unflatten_ir_values_like_types got more values than types", fix="give one for each type")
    return out


def wrap_singleton_ir_values(x: Any) -> Any:
    """Return a single value in a tuple, and a sequence of values unchanged."""
    return (x,) if isinstance(x, ir.Value) else tuple(x)


def _registry() -> Any:
    from functorch_like.backends.xla.jaxlib_api import _jax

    made = _jax.pytree.PyTreeRegistry(
        enable_none=False, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=False
    )
    made.register_node(ir.OpResultList, lambda xs: (tuple(xs), None), lambda _, xs: tuple(xs))
    return made


#: Registry of jaxlib that flattens sequences of values: `ir_tree_registry.flatten(xs)`.
ir_tree_registry = _registry()
