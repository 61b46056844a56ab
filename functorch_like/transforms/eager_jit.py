"""`eager_jit`: a user-level function runs eagerly as ONE compiled program, and is inlined under a trace.

>>> import functorch_like.numpy as fnp
>>> @eager_jit(static=("power",))
... def moment(x, power):
...     return fnp.mean(x**power)
>>> float(moment(fnp.asarray([1.0, 3.0]), power=2))
5.0
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.backends.xla import events
from functorch_like.caches import Cache
from functorch_like.calling import pickling as pickling  # of the functions made here
from functorch_like.calling.call_signature import FlatCall, Static, flat_call
from functorch_like.calling.simple_calls import Kernels
from functorch_like.compiler.placement import device_for
from functorch_like.core import EVALUATE, ArrayImpl, Tracer, as_argument, in_width, state
from functorch_like.errors import ArgumentError
from functorch_like.interpreters import eager_tiers, host_evaluation
from functorch_like.interpreters.host_evaluation import HostProgram
from functorch_like.ir import dtype_origins
from functorch_like.ir.trace_to_jaxpr import stage

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program
    from functorch_like.ir.jaxpr import Jaxpr

F = TypeVar("F", bound=Callable[..., Any])

#: Programs kept by one function for calls that do not take the C++ path: Python ints, NumPy's kernels, the quick tier.
_MOST_PROGRAMS = 256


def eager_jit(
    fun: Any = None,
    *,
    static: tuple[str, ...] = (),
    ints: bool = False,
    checked: bool = False,
    whole: bool = False,
) -> Any:
    """Compile a user-level function when it is called outside of all transformations.

    Args:
        fun: takes and returns arrays or pytrees of them.
        static: names of parameters that are compiled in; their values must be hashable.
        ints: let Python ints take the C++ path. Callers must have checked that they fit in int32: C++ passes 64
            bits, and the program truncates them unchecked.
        checked: let C++ read small NumPy arrays by itself. Callers must have refused those of the other byte order, as
            `promotion.numbers` and `aval_of` do.
        whole: under transformations outside of jit, too, compile it as one program rather than each operation
            separately. A product and a sum that are compiled together are rounded once.

    Returns:
        A C++-dispatched function. Under a trace it calls `fun` directly.
    """
    if fun is None:
        return functools.partial(eager_jit, static=static, ints=ints, checked=checked, whole=whole)
    name, plain = fun.__name__, fun
    which = _static(fun, static)
    fun = _in_full_width(fun)
    programs: Cache[Any, tuple[Program | HostProgram, Any]] = Cache()

    inner = _jitted(fun, static) if whole else fun  # for tracers of transformations

    def miss(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        if state.trace.staging:
            if dtypes.STRONG_SCALARS.value:
                args = tuple(a if i in which.nums else as_argument(a) for i, a in enumerate(args))
            return fun(*args, **kwargs), None, True
        for a in args:
            if isinstance(a, Tracer):
                return inner(*args, **kwargs), None, True
        call = flat_call(plain, which, args, kwargs)
        if call.traced():
            return inner(*args, **kwargs), None, True
        narrow = call.narrowed or (not ints and any(type(a) is int for a in call.leaves))
        kinds = tuple((type(a), type(a) is ArrayImpl and a._committed) for a in call.leaves)
        key = (call.key, kinds, device_for(call.leaves))
        found = programs.get(key)
        if found is None:
            found = _traced(fun, call, name, key[2])
        program, out_tree = found
        if isinstance(program, HostProgram):
            results = program.run(call.leaves)
            if results is not None:
                programs.keep(key, found, _MOST_PROGRAMS)
                events.emit("numpy", name)
                dtype_origins.follow(call.leaves, results)
                return out_tree.unflatten(results), None, True
            program = _compiled(program.jaxpr, program.consts, call, name)
        if narrow or program.improvement is not None or not program.leaves_python():  # the next call comes here, too
            programs.keep(key, (program, out_tree), _MOST_PROGRAMS)
        else:
            programs.pop(key, None)
        results = eager_tiers.run(program, call.leaves)
        dtype_origins.follow(call.leaves, results)
        out = out_tree.unflatten(results)
        return out, *eager_tiers.remembered(program, out_tree, narrow)

    made = xla.function(
        name,
        plain,
        miss,
        static_argnums=which.nums,
        static_argnames=which.names,
        checks_order=(lambda: True) if checked else None,
    )
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(made, attribute, getattr(plain, attribute))
    made.__wrapped__, made.inline = plain, fun
    return made


def with_kernel(operands: int, values: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Attach `Kernels` to a public function.

    Args:
        operands: number of leading parameters that are arrays.
        values: names of further parameters that are arrays or numbers. All others are options, which are compiled in.
    """

    def mark(fun: F) -> F:
        code = fun.__code__  # type: ignore[attr-defined]
        others = code.co_varnames[operands : code.co_argcount + code.co_kwonlyargcount]
        assert set(values) <= set(others), f"{fun.__name__} has no such parameters"  # type: ignore[attr-defined]
        options = tuple(n for n in others if n not in values)
        most = operands + next((k for k, n in enumerate(others) if n in values), code.co_argcount - operands)

        @functools.cache
        def with_options() -> Any:
            return eager_jit(fun, static=options, ints=True, checked=True)

        plain = eager_jit(fun, ints=True, checked=True)
        fun.kernels = Kernels(operands, most, frozenset(options), plain, with_options)  # type: ignore[attr-defined]
        return fun

    return mark


def _in_full_width(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of the package compute in 64 bits, even where users' arrays are limited to 32.

    NumPy arrays and dtypes among its arguments are narrowed to the users' width first.
    """

    @functools.wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not dtypes._NARROW.value:
            return fun(*args, **kwargs)
        leaves, structure = xla.flatten((args, kwargs))
        args, kwargs = structure.unflatten([_operand(leaf) for leaf in leaves])
        token = dtypes._NARROW.swap_local(False)
        try:
            return fun(*args, **kwargs)
        finally:
            dtypes._NARROW.restore(token)

    return run


def _operand(x: Any) -> Any:
    """Narrow a NumPy array or a dtype to the users' width."""
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return dtypes.narrowed(np.dtype(x)) if np.dtype(x) in dtypes.ALL else x
    return in_width(x)


def _jitted(fun: Callable[..., Any], static: tuple[str, ...]) -> Callable[..., Any]:
    @functools.cache
    def made() -> Any:
        from functorch_like.transforms.jit import jit

        return jit(fun, static_argnames=static)

    return lambda *args, **kwargs: made()(*args, **kwargs)


def _static(fun: Any, names: tuple[str, ...]) -> Static:
    """`resolve_argnums` for plain functions: hundreds are made when the package is imported."""
    code = inspect.unwrap(fun).__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    unknown = set(names).difference(parameters)
    if unknown:
        raise ArgumentError(
            f"static names {unknown} are not parameters of {fun.__name__}", fix=f"they are {parameters}"
        )
    return Static(tuple(i for i, n in enumerate(parameters[: code.co_argcount]) if n in names), names)


def _traced(fun: Callable[..., Any], call: FlatCall, name: str, device: Any) -> tuple[Program | HostProgram, Any]:
    """Trace a call. Return its `HostProgram` or `Program`, and the structure of its results."""
    flat, trees = call.flatten_function(fun)
    jaxpr, consts = stage(
        flat, call.avals, name=name, parent=EVALUATE, chain="", hosts=dtype_origins.hosts(call.leaves)
    )
    by_numpy = host_evaluation.for_function(jaxpr, consts, device)
    return _compiled(jaxpr, consts, call, name) if by_numpy is None else by_numpy, trees[0]


def _compiled(jaxpr: Jaxpr, consts: Sequence[Any], call: FlatCall, name: str) -> Program:
    from functorch_like.compiler.program import Program  # not needed at import

    return Program(jaxpr, consts, call.leaves, name=name, eager=True)
