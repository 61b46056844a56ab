"""Evaluation: outside of all transformations each primitive runs at once, as a kernel.

A C++-dispatched function is cached for each primitive and set of parameters; it compiles for each new signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.compiler.inspection import INSPECTED
from functorch_like.compiler.placement import device_for, physical_dtype
from functorch_like.core import ArrayImpl, Primitive, Tracer, aval_of
from functorch_like.interpreters import eager_notice, eager_tiers, host_evaluation
from functorch_like.ir import dtype_origins
from functorch_like.ir.trace_to_jaxpr import stage

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program

_KERNELS: Cache[Any, Any] = Cache()
_MOST_KERNELS = 8192
_MOST_PROGRAMS = 256


def process(self: core.Evaluate, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """`Evaluate.process`: run one primitive."""
    if prim.evaluate is not None:
        return prim.evaluate(args, params)
    key = (prim, *params.items())
    kernel = _KERNELS.get(key)
    if kernel is None:
        kernel = _kernel_of(prim, params)
        _KERNELS.keep(key, kernel, _MOST_KERNELS)
    for x in args:
        if type(x) is not ArrayImpl and isinstance(x, np.ndarray):
            args = [_strong(x) for x in args]
            break
    return kernel(*args)


def _strong(x: Any) -> Any:
    """Return a NumPy array of rank 0 as an array: C++ would treat it as a NumPy scalar, which is weakly typed.

    Raises:
        DtypeError: for a NumPy array of the other byte order.
    """
    if isinstance(x, np.ndarray) and not x.dtype.isnative:
        aval_of(x)  # raises
    return xla.device_put(core.native(x)) if type(x) is np.ndarray and not x.ndim else x


core.Evaluate.process = process  # type: ignore[method-assign]


def _kernel_of(prim: Primitive, params: dict[str, Any]) -> Any:
    def fun(*args: Any) -> list[Any]:
        out = prim(*args, **params)
        return list(out) if prim.multiple_results else [out]

    programs: Cache[Any, Program] = Cache()
    on_host = host_evaluation.for_primitive(prim, params)

    def make(*args: Any) -> Program:
        from functorch_like.compiler.program import Program  # not needed at import

        with eager_notice.compiling(prim.name):
            jaxpr, consts = stage(fun, [aval_of(a) for a in args], name=prim.name, parent=core.EVALUATE, chain="")
            return Program(jaxpr, consts, args, name=prim.name, eager=True)

    def miss(*args: Any) -> tuple[Any, Any, bool]:
        for a in args:
            if isinstance(a, Tracer):
                raise core.leak(a, prim.name)
        if on_host is not None and INSPECTED.value is None:
            made = on_host(args)
            if made is not None:
                dtype_origins.follow(args, [made])
                return made, None, True
        narrowed = any(map(dtypes.is_narrowed, args))  # C++ would pass all 64 bits
        if narrowed:
            args = tuple(map(core.in_width, args))
        program = program_for(args, programs, make)
        out = eager_tiers.run(program, args)
        dtype_origins.follow(args, out)
        tree = xla.structure(list(range(len(out))) if prim.multiple_results else 0)
        return out if prim.multiple_results else out[0], *eager_tiers.remembered(program, tree, narrowed)

    return xla.function(prim.name, fun, miss, checks_order=lambda: True)


def program_for(args: Sequence[Any], programs: Cache[Any, Program], make: Callable[..., Program]) -> Program:
    """Return the program for these arguments: `make(*args)`, or a cached one if every call goes through Python."""
    kinds = [(aval_of(a), physical_dtype(a), type(a) is ArrayImpl and a._committed) for a in args]
    key = (device_for(args), xla.settings(), *kinds)
    result = programs.get(key)
    if result is None:
        result = make(*args)
        if result.improvement is not None or not result.leaves_python():
            programs.keep(key, result, _MOST_PROGRAMS)
    return result
