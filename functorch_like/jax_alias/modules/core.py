"""`jax.core`, `jax.extend.core`: types, primitives and views of programs."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like import core as _core
from functorch_like import dtypes as _dtypes
from functorch_like.avals import ShapedArray as ShapedArray
from functorch_like.core import Tracer as Tracer
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Atom, Literal, Var
from functorch_like.jax_alias.modules import key_operands as _key_operands
from functorch_like.jax_alias.modules.arrays import LiteralArray
from functorch_like.jax_alias.modules.debug_info import DebugInfo
from functorch_like.jax_alias.modules.library_traces import Trace, TraceTag
from functorch_like.jax_alias.modules.programs import (
    ClosedJaxpr,
    DropVar,
    Effect,
    Jaxpr,
    JaxprEqn,
    eval_jaxpr,
    gensym,
    jaxpr_as_fun,
    jaxprs_in_params,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    subjaxprs,
    trace_state_clean,
    unmapped_aval,
)
from functorch_like.jax_alias.modules.tokens import Token
from functorch_like.jax_alias.modules.user_primitives import CallPrimitive, Primitive

__all__ = [
    "Atom", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Jaxpr", "JaxprEqn", "Literal",
    "LiteralArray", "Primitive", "ShapedArray", "Token", "Trace", "TraceTag", "Tracer", "Var", "eval_jaxpr", "gensym",
    "jaxpr_as_fun",
    "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects", "subjaxprs", "trace_state_clean", "unmapped_aval",
]  # fmt: skip

Primitive.bind_keys = staticmethod(_key_operands.bind)

AbstractValue = ShapedArray
Value = Any
ParamDict = dict[str, Any]
Effects = frozenset[Any]
InconclusiveDimensionOperation = JaxprTypeError = FtError
set_current_trace = _core.set_current_trace
trace_ctx = _core.state  #: its attribute `trace` is the trace in force
ensure_compile_time_eval = eval_context = ft.ensure_compile_time_eval
array_types = {_core.ArrayImpl}
#: Libraries add their own types, with the entry of NumPy's arrays as the value. The package does not read it.
pytype_aval_mappings: dict[Any, Any] = {np.ndarray: _core.aval_of}


AbstractToken = abstract_token = Token


def get_aval(x: Any) -> ShapedArray:
    """Return the aval of a value."""
    return _core.aval_of(x)


def raise_to_shaped(aval: ShapedArray) -> ShapedArray:
    """Return an aval unchanged."""
    return aval


def valid_jaxtype(x: Any) -> bool:
    """Return True for arrays and numbers."""
    return _core.is_value(x)


def is_concrete(x: Any) -> bool:
    """Return True for anything but traced values."""
    return not isinstance(x, Tracer) or x.concrete() is not None


def concrete_or_error(force: Any, value: Any, context: str = "") -> Any:
    """Return a value that is known, converted by `force`."""
    return value if force is None else force(value)


def find_top_trace(values: Any, *rest: Any) -> _core.Trace:
    """Return the trace in force."""
    return _core.state.trace


@contextlib.contextmanager
def take_current_trace() -> Generator[_core.Trace]:
    """Run the block outside of all transformations; yield the trace that was in force."""
    trace = _core.state.trace
    with _core.set_current_trace(_core.EVALUATE):
        yield trace


def get_opaque_trace_state(convention: Any = None) -> Any:
    """Return a value that identifies the current trace: equal to others from the same trace only."""
    return _TraceState(_core.state.trace)


class _TraceState:
    def __init__(self, trace: _core.Trace) -> None:
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TraceState) and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)


def _traces() -> Iterator[_core.Trace]:
    trace = _core.state.trace
    while trace is not _core.EVALUATE:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return True while a function is traced to be compiled."""
    return _core.state.trace.staging


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return True while a function is mapped."""
    return any(trace.name.startswith("vmap") for trace in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of mapped axes in scope."""
    return [name for name, _ in _core.state.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return True if a mapped axis has a name here."""
    return bool(_core.state.axes)


def primal_dtype_to_tangent_dtype(dtype: Any) -> Any:
    """Return the dtype of derivatives with respect to a dtype."""
    inexact = _dtypes.is_float(dtype) or _dtypes.is_complex(dtype)
    return dtype if inexact else _dtypes.float0


def check_jaxpr(jaxpr: Any) -> None:
    """Do nothing: programs are checked as they are made."""


def call_impl(fun: Any, *args: Any, **params: Any) -> Any:
    """Call a function."""
    return fun.call_wrapped(*args)


def is_constant_dim(d: Any) -> bool:
    """Return True for a size that is an int, False for a symbolic one."""
    return isinstance(d, (int, np.integer))


def max_dim(a: Any, b: Any) -> int:
    """Return the larger of two sizes."""
    return max(a, b)


def min_dim(a: Any, b: Any) -> int:
    """Return the smaller of two sizes."""
    return min(a, b)


def canonicalize_shape(shape: Any, context: str = "") -> tuple[int, ...]:
    """Return a shape as a tuple of ints."""
    return tuple(map(int, shape))


def full_lower(x: Any) -> Any:
    """Return a value as its trace holds it: the array itself, if a library's tracer wraps one."""
    lowered = getattr(x, "full_lower", None) if isinstance(x, Tracer) else None
    return x if lowered is None else lowered()
