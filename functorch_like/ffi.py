"""Calls of the user's compiled kernels, written in C++ or another language that can export handlers of XLA's typed FFI.

A kernel is compiled against the headers in `include_dir()`, loaded with ctypes and registered under a name. It is
called under that name from eager code, `jit` and `vmap`. The file tests/extend/test_ffi.py shows all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like.backends.xla import foreign
from functorch_like.calling import api_boundary
from functorch_like.calling.host_callbacks import promised
from functorch_like.core import argument_aval
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.primitives.effects.ffi_call import METHODS
from functorch_like.primitives.effects.ffi_call import ffi_call as _primitive


@api_boundary.public
def include_dir() -> str:
    """Return the folder of the C++ headers to compile kernels against: for `#include "xla/ffi/api/ffi.h"`.

    >>> import os
    >>> os.path.exists(os.path.join(ft.ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return foreign.include_dir()


@api_boundary.public
def pycapsule(symbol: Any) -> Any:
    """Return a PyCapsule that holds the address of a function of a library loaded with ctypes.

    Args:
        symbol: a function of `ctypes.CDLL(...)`.

    Raises:
        ArgumentError: for another object.

    >>> import ctypes
    >>> type(ft.ffi.pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    return foreign.capsule(symbol)[1]


@api_boundary.public
def register_ffi_target(name: str, fn: Any, platform: str = "cpu") -> None:
    """Register a kernel under a name, for `ffi_call`.

    Args:
        name: the name by which `ffi_call` finds it.
        fn: the handler: a function of a library loaded with ctypes, or a PyCapsule of its pointer. It must be a
            handler of XLA's typed FFI, as XLA_FFI_DEFINE_HANDLER_SYMBOL makes: nothing can check that.
        platform: "cpu" or "gpu".

    Raises:
        ArgumentError: for an object that is no handler, or a name that another function has: XLA cannot replace it.

    >>> ft.ffi.register_ffi_target("mine", 3)
    Traceback (most recent call last):
    ...
    functorch_like.errors.ArgumentError: 3 of type int is not a handler
    ...
    """
    foreign.register(name, fn, platform)


@api_boundary.public
def ffi_call(
    target_name: str, result_shape_dtypes: Any, *, vmap_method: str | None = None, has_side_effect: bool = False
) -> Callable[..., Any]:
    """Return a function that calls a registered kernel.

    Args:
        target_name: the name it was registered under.
        result_shape_dtypes: shape and dtype of the result: a ShapeDtypeStruct, another object with shape and dtype, or
            a pytree of these.
        vmap_method: the meaning of a call under vmap. "sequential": one call for each element. "broadcast_all": one
            call, in which all operands have the mapped axis in front. "expand_dims": likewise, but operands that are
            not mapped get a leading axis of size 1. None: an error.
        has_side_effect: must be False: XLA drops a call whose results are not used.

    Returns:
        `(*operands, **attributes) -> results`. Operands are arrays. Attributes are compiled in: bool, int (64 bits),
        float (64 bits), str, NumPy scalars, and NumPy vectors.

    Raises:
        ArgumentError: for another vmap_method; at compile time, for a name that is not registered.
        UnsupportedError: for has_side_effect=True.
        CompileError: at the call, for an error of the kernel, such as wrong dtypes, ranks or attributes.

    >>> ft.ffi.ffi_call("not there", ft.ShapeDtypeStruct((2,), "float32"))(fnp.ones(2))
    Traceback (most recent call last):
    ...
    functorch_like.errors.ArgumentError: ffi_call(f32[2]...): no foreign function 'not there' is registered...
    ...
    """
    if vmap_method not in METHODS:
        raise ArgumentError(f"vmap_method={vmap_method!r} is unknown", fix=f"use one of {METHODS}")
    if has_side_effect:
        raise UnsupportedError(
            f"{target_name!r} cannot be called for its side effects: programs are pure", fix="return what it computes"
        )
    results, structure = promised(result_shape_dtypes)

    def call(*operands: Any, **attributes: Any) -> Any:
        for x in operands:
            argument_aval(x)  # raises for a value that is not an array
        texts = tuple((name, foreign.attribute(name, value)) for name, value in sorted(attributes.items()))
        out = _primitive(*operands, target=target_name, results=results, attributes=texts, vmap_method=vmap_method)
        return structure.unflatten(out)

    return api_boundary.public(call)
