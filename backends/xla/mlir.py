"""MLIR: one context for the process, its types and attributes, cached by value. Imported at the first lowering.

The context does not lock (that costs time on every operation), so everything that touches it holds `lock`.
"""

from __future__ import annotations

import io
import math
import os
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

# TRAP: C++ imports these by itself when it first wraps one of their operations, and aborts if Ctrl-C stops it.
from jaxlib.mlir.dialects import builtin as _builtin  # noqa: F401  # pyright: ignore[reportUnusedImport]
from jaxlib.mlir.dialects import stablehlo as _operations  # noqa: F401  # pyright: ignore[reportUnusedImport]

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import memory
from functorch_like.backends.xla.jaxlib_api import _jax
from functorch_like.errors import CompileError, DtypeError

lock = threading.RLock()


def upstream_dialects() -> ir.DialectRegistry:
    """Return the dialects of MLIR that jaxlib has."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def prepare(made: ir.Context) -> None:
    """Load all dialects of lowered programs into a context."""
    made.append_dialect_registry(upstream_dialects())
    made.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(made)
    made.enable_multithreading(False)


def _make_context() -> ir.Context:
    made = ir.Context()
    prepare(made)
    return made


context = _make_context()
unknown = ir.Location.unknown(context)

_ELEMENTS = {
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
}
_DTYPES = {text: np.dtype(getattr(ml_dtypes, name, name)) for name, text in _ELEMENTS.items()}


@lru_cache(None)
def element_type(dtype: np.dtype[Any]) -> ir.Type:
    """The MLIR type of one element."""
    text = _ELEMENTS.get(dtype.name)
    if text is None:
        raise DtypeError(f"XLA has no element type for NumPy dtype {dtype}", fix=f"use one of: {', '.join(_ELEMENTS)}")
    return ir.Type.parse(text, context)


_MOST_TYPES = 65536


class _Types(dict[Any, Any]):
    """Tensor types by aval: one dictionary look-up each, since avals are interned."""

    def __missing__(self, aval: Any) -> Any:
        if len(self) >= _MOST_TYPES:
            self.clear()
        made = ir.RankedTensorType.get(aval.shape, element_type(aval.dtype), loc=unknown)
        self[aval] = made
        return made


types = _Types()


# Attributes by value. The caches are bounded: values come from the user's programs.
@lru_cache(8192)
def parsed(text: str) -> ir.Attribute:
    """The attribute written as `text`."""
    try:
        return ir.Attribute.parse(text, context)
    except ir.MLIRError as error:
        raise CompileError(f"{text!r} is not an MLIR attribute: {error}") from error


@lru_cache(8192)
def i64_array(values: tuple[int, ...]) -> ir.Attribute:
    """array<i64: ...>."""
    return ir.DenseI64ArrayAttr.get([int(value) for value in values], context)


@lru_cache(1024)
def bool_array(values: tuple[bool, ...]) -> ir.Attribute:
    """array<i1: ...>."""
    return ir.DenseBoolArrayAttr.get([bool(value) for value in values], context)


@lru_cache(8192)
def integer(value: int, bits: int) -> ir.Attribute:
    """One signless integer."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits, context), int(value))


@lru_cache(8192)
def string(text: str) -> ir.Attribute:
    """A string."""
    return ir.StringAttr.get(text, context)


@lru_cache(1024)
def signature(in_avals: tuple[ShapedArray, ...], out_avals: tuple[ShapedArray, ...]) -> ir.Attribute:
    """The type of a function, as an attribute."""
    ins, outs = ([types[aval] for aval in avals] for avals in (in_avals, out_avals))
    return ir.TypeAttr.get(ir.FunctionType.get(ins, outs, context))


flags = (ir.BoolAttr.get(False, context), ir.BoolAttr.get(True, context))


#: Attribute that makes XLA keep the body of a function that is called apart from its callers.
apart = ir.DictAttr.get({"inlineable": string("false")}, context)
#: Attribute that makes XLA:CPU compile a function that is called as one kernel.
one_kernel = ir.DictAttr.get({"inlineable": string("false"), "xla_cpu_small_call": string("true")}, context)


@lru_cache(8192)
def location(file: str, line: int, function: str) -> ir.Location:
    """A line of the user's, with the name of the function around it."""
    place = ir.Location.file(file, line, 0, context)
    return ir.Location.name(function, place, context) if function else place


@lru_cache(4096)
def splat(dtype: np.dtype[Any], shape: tuple[int, ...], element: bytes) -> ir.Attribute:
    """One element, by its bytes, in every place."""
    bits: Any = np.frombuffer(element, _STORAGE[dtype.itemsize])
    return ir.DenseElementsAttr.get(bits, type=element_type(dtype), shape=shape, context=context)


# Bit patterns pass through these: NumPy's buffers have no bfloat16, float8 and int4. Complex ones go as pairs.
_STORAGE: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def dense(value: np.ndarray[Any, Any]) -> ir.Attribute:
    """An array as an attribute, bit for bit; a single value if all elements have the same bits."""
    value = np.asarray(value, order="C")
    dtype, shape = value.dtype, value.shape
    if math.prod(shape) == 0:
        sizes = "".join(f"{n}x" for n in shape)
        return parsed(f"dense<> : tensor<{sizes}{element_type(dtype)}>")
    bits: Any = value.reshape(-1).view(_STORAGE[dtype.itemsize])
    if bits.size == 1 or _uniform(bits):
        return splat(dtype, shape, bits[:1].tobytes())
    return ir.DenseElementsAttr.get(bits, type=element_type(dtype), shape=shape, context=context)


def _uniform(bits: np.ndarray[Any, Any]) -> bool:
    if bits[0] != bits[-1]:
        return False
    if bits.dtype == np.complex128:  # compare bits, not values: NaN differs from itself, and 0 equals -0
        bits = bits.view(np.uint64).reshape(-1, 2)
        return bool((bits == bits[0]).all())
    return bool((bits == bits[0]).all())


def operations_in(operation: Any) -> Iterator[Any]:
    """All operations in the regions of one, each before those inside of it."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from operations_in(inner.operation)


def argument_avals(module: ir.Module) -> list[ShapedArray]:
    """Return the avals of the arguments of the module's `main`."""
    with lock:
        main: Any = module.body.operations[0]  # `build` writes it first
        taken: Any = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
        return [ShapedArray(tuple(each.shape), _DTYPES[str(each.element_type)]) for each in taken]


def bytecode(module: ir.Module) -> bytes:
    """The module in MLIR's binary form."""
    with lock:
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return buffer.getvalue()


def secluded(module: ir.Module) -> ir.Module:
    """Copy a module to a context that nothing else uses. (3 ms)"""
    return ir.Module.parse(bytecode(module), _make_context())


@lru_cache(1)
def _stripping() -> Any:
    return passmanager.PassManager.parse("builtin.module(strip-debuginfo)", context)


def anonymous_bytecode(module: ir.Module) -> bytes:
    """Copy a module without the user's lines: what the program computes, and nothing else."""
    with lock, context:
        copied = module.operation.clone()
        try:
            _stripping().run(copied.operation)  # verifies it too
        except ir.MLIRError as error:
            raise _invalid(error) from error
        buffer = io.BytesIO()
        copied.operation.write_bytecode(buffer)
        return buffer.getvalue()


def module_text(module: ir.Module, debug_info: bool = False) -> str:
    """StableHLO text, with or without the locations of its operations."""
    with lock:
        return str(module.operation.get_asm(enable_debug_info=debug_info))


def hlo(module: ir.Module) -> Any:
    """A module as XLA takes it in."""
    return _jax.mlir.mlir_module_to_xla_computation(bytecode(module), use_tuple_args=False, return_tuple=False)


def hlo_text(module: ir.Module) -> str:
    """HLO text of a module, before it is optimised."""
    return hlo(module).as_hlo_text()


def parse_module(text: str) -> ir.Module:
    """A module from StableHLO text.

    Raises:
        CompileError: for text that is not a valid program.
    """
    with lock, context:
        try:
            return ir.Module.parse(text)
        except ir.MLIRError as error:
            raise _invalid(error) from error


def copied(module: ir.Module) -> ir.Module:
    """Return a copy of a module.

    Raises:
        CompileError: for a module that is not valid StableHLO.
    """
    with lock, context:
        try:
            return ir.Module.parse(bytecode(module))
        except ir.MLIRError:
            verify(module)  # raises a better error
            raise


def verify(module: ir.Module) -> None:
    """Raise CompileError if the module is not valid StableHLO."""
    with lock:
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise _invalid(error) from error


def _invalid(error: Exception) -> CompileError:
    return CompileError(
        f"the lowered module is not valid StableHLO: {error}",
        fix="correct the lowering rule of a primitive of your own; jit(f).lower(x).as_text() shows what it writes",
    )


def _forget() -> None:
    """Drop the Python objects of types and attributes. MLIR's context keeps its own, some hundred bytes each."""
    types.clear()
    for memo in (parsed, i64_array, bool_array, integer, string, signature, location, splat):
        memo.cache_clear()


memory.on_clear(_forget)


def _after_fork() -> None:
    global lock
    lock = threading.RLock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
