"""Primitives, the current trace, and `bind`, by which each primitive is applied.

A *primitive* is one record of rules: meaning in NumPy, shape, lowering, jvp, transpose and batch. A *trace* is one
transformation at work: its method `process` applies primitives. A *tracer* is a value of a trace. Every `process` is
short: it unwraps its own tracers, runs under the parent trace, calls one rule of the primitive, and wraps the results.

There is no stack to search: each trace has its parent, and the innermost trace is always applied first.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.backends import xla
from functorch_like.caches import Cache
from functorch_like.errors import DtypeError, FtError, LeakError, NumberError, UnsupportedError
from functorch_like.foreign import values as foreign_values
from functorch_like.masked import unmasked

ArrayImpl = xla.ArrayImpl


# ----------------------------------------------------------------------------------------------------------- primitives
class NotDefined(str):
    """Rule that a primitive lacks on purpose. Its text is "reason; remedy"; a call raises UnsupportedError."""

    def __call__(self, *args: Any, **params: Any) -> NoReturn:
        why, _, instead = self.partition("; ")
        raise UnsupportedError(why, fix=instead)


class UndefinedPrimal(NamedTuple):
    """The unknown linear operand in a transpose rule; only its aval is known."""

    aval: ShapedArray


class BatchAxis(NamedTuple):
    """The axis a batch rule maps over.

    Attributes:
        size: size of the axis.
        name: its name for collectives, or None.
        randomness: draws of a key that is the same for all elements: "same", "different", or "error".
        spmd_name: the mesh axis, or axes, over which it is sharded; None leaves the choice to XLA.
        explicit: how Explicit axes of a mesh split it, as of a vector; None where they do not.
    """

    size: int
    name: Any = None
    randomness: str = "same"
    spmd_name: Any = None
    explicit: ExplicitAxes | None = None


@dataclasses.dataclass(frozen=True)
class SampleInput:
    """One set of operands and parameters that the tests feed a primitive.

    Args:
        operands: a ShapedArray is filled with random values; an ndarray is taken as it is (indices, predicates).
        params: the primitive's parameters.
        domain: the interval from which floats and integers are drawn.
        smooth: False where finite differences do not apply at random points (ties, jumps).
        prepare: applied to each operand drawn, to make it valid: positive definite, for example.
    """

    operands: tuple[Any, ...]
    params: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    domain: tuple[float, float] = (-2.0, 2.0)
    smooth: bool = True
    prepare: Callable[[Any], Any] | None = None


Rule = Callable[..., Any]
TABLE: dict[str, Primitive] = {}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Primitive:
    """One primitive. Every rule is a function or `NotDefined("why; what instead")`.

    Primitives never broadcast or promote: operands have exactly the shapes and dtypes that the primitive takes.

    Args:
        name: unique name, which jaxprs print.
        shape: `(*avals, **params) -> aval`, or a tuple of avals if `multiple_results`. Raises FtError for bad operands.
        ref: `(*ndarrays, **params) -> ndarray(s)`: the meaning, in NumPy; the oracle of the tests.
        lower: `(emitter, *operands, **params) -> value(s)`: StableHLO; `emitter.ins`/`.outs` are the avals.
        jvp: `(primals, tangents, **params) -> (out, tangent)`; a tangent that is zero is None, never all of them.
        transpose: `(ct, args, **params) -> cotangents`, one for each operand, None where it has none; linear
            operands arrive as `UndefinedPrimal`. With `multiple_results`, ct is a list with None for zeros.
        batch: `(axis, args, dims, **params) -> (out, dim)`; dims[i] is None where args[i] is not batched.
        samples: `() -> [SampleInput, ...]`: inputs for the tests.
        partial_eval: partial evaluation of a call with some operands unknown, for linearize; for higher-order
            primitives only.
        evaluate: evaluation on concrete operands; for higher-order primitives only (others are compiled alone).
        stage_params: `(args, params) -> (args, params)`, for primitives whose parameters hold Python functions. In the
            jaxpr, these functions are staged, and the values that they close over are operands.
        dce: `(used, **params) -> (in_mask, out_mask, params)`, for higher-order primitives only: dead code elimination
            of the results not marked in `used`. The masks mark the operands still needed and the results still given.
            (A loop may need a carry whose last value is not used.)
        effects: `(**params) -> frozenset` of "ordered" and "unordered": effects besides computing results. None means
            that there are none, so that an application may be dropped, shared and moved.
        multiple_results: True if the result is a tuple.
        kind: "elementwise", "movement", "reduction", "product", "loop", "call", "bits" (random words, computed from
            a key) or "random" (a draw that `vmap` may make different for each element); "" for others.
        linear: "jointly" if linear in all operands together, "separately" if in each of the first two while the other
            stays, a position if in that operand alone; None if nonlinear, or not known. Integers do not count.
        fusible: True if XLA fuses it into each reader, and so computes it again there. It keeps results of others.
        exact: True if NumPy's result equals XLA's bit for bit, so that constants can be folded.
        repeated: True if equal applications are not merged into one.
        selects: True if each element is one of the operands after the first, so that equal ones are the result.
        where: file and line of the definition; found by the constructor, as the next two.
        family: name of the file of the definition.
        builtin: True for a primitive of the package, False for a user's.
    """

    name: str
    shape: Rule
    ref: Rule
    lower: Rule
    jvp: Rule
    transpose: Rule
    batch: Rule
    samples: Callable[[], list[SampleInput]]
    partial_eval: Rule | None = None
    evaluate: Rule | None = None
    stage_params: Rule | None = None
    dce: Rule | None = None
    effects: Callable[..., frozenset[str]] | None = None
    multiple_results: bool = False
    kind: str = ""
    linear: str | int | None = None
    fusible: bool = False
    exact: bool = False
    repeated: bool = False
    selects: bool = False
    where: str = ""
    family: str = ""
    builtin: bool = False

    def __post_init__(self) -> None:
        if self.name in TABLE:
            raise ValueError(f"primitive {self.name!r} is defined twice; first in {TABLE[self.name].where}")
        path, line = _line_of_making()
        file = "/".join(path.replace("\\", "/").split("/")[-2:])
        object.__setattr__(self, "where", f"{file}:{line}")
        object.__setattr__(self, "family", file.rsplit("/", 1)[-1].removesuffix(".py"))
        object.__setattr__(self, "builtin", not source_info.is_users(path))
        TABLE[self.name] = self

    def __call__(self, *args: Any, **params: Any) -> Any:
        return state.trace.process(self, args, params)

    def __repr__(self) -> str:
        return self.name

    @property
    def __name__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return TABLE.__getitem__, (self.name,)


#: The rules; the tests check that each is a function or a reasoned NotDefined.
RULES = ("shape", "ref", "lower", "jvp", "transpose", "batch")


def _line_of_making() -> tuple[str, int]:
    """Return file and line of the code that makes a primitive: at the top of a module, or in a user's function."""
    # The frames inside of the caller are this function, `__post_init__` and `__init__`.
    frame = sys._getframe(3)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_code.co_name != "<module>" and not source_info.is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


# ----------------------------------------------------------------------------------------------- the current trace
class Trace:
    """One transformation at work.

    Attributes:
        name: name in errors and reprs.
        parent: the trace that this one runs under.
        staging: True if this trace, or one it runs under, processes every primitive, also those without its tracers
            among the operands: it stages a jaxpr, for example. Concrete values are then not computed with at once.
        finished: True once the transformation has returned; its tracers are leaks from then on.
        broadcasts: Python numbers that the function being staged has broadcast, to be recorded once each: by the
            identity of a key, the key and the result. None for a trace that may treat constants in its own way.
        all_branches: True for a trace with rules of its own for `cond`, which gets it for a known index, too.
    """

    __slots__ = ("broadcasts", "finished", "name", "parent", "staging")
    all_branches = False
    name: str
    parent: Trace
    staging: bool
    finished: bool
    broadcasts: dict[int, tuple[Any, Any]] | None

    def __init__(self, name: str, parent: Trace) -> None:
        self.name, self.parent, self.staging, self.finished = name, parent, parent.staging, False
        self.broadcasts = None

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply a primitive. A transformation defines this method alone."""
        raise NotImplementedError

    def of_program(self, jaxpr: Jaxpr) -> Jaxpr:
        """Return a program as this trace runs it: cast by `autocast`, unchanged by other traces."""
        return jaxpr

    def is_nested_in(self, other: Trace) -> bool:
        """Return True if this one runs under the other."""
        trace = self.parent
        while trace is not other:
            if trace is EVALUATE:
                return False
            trace = trace.parent
        return True

    def __repr__(self) -> str:
        return self.name


class Evaluate(Trace):
    """The outermost trace: primitives run at once. `interpreters/evaluate.py` sets its `process`."""

    __slots__ = ()

    def __init__(self) -> None:
        self.name, self.parent, self.staging, self.finished = "eval", self, False, False
        self.broadcasts = None


EVALUATE = Evaluate()


class _State(threading.local):
    """State of a thread.

    Attributes:
        trace: the current trace.
        source: the recorded source line of the equation that is evaluated again; None for the line of the call.
        axes: names and sizes of the axes in scope.
        following: the trace type that follows Python control flow, or None.
    """

    trace: Trace = EVALUATE
    source: Any = None
    axes: tuple[tuple[Any, int], ...] = ()
    following: Any = None


state = _State()

#: Mirrors `state.trace.staging` in the C++ jit key, so that a compiled function called while staging is staged.
_STAGING = xla.config("staging", False, in_trace_key=False)
#: The default generator of typed keys. It is part of the keys of traces, so it is defined before a function is traced:
#: defined when `random` or `nn` is imported, it would invalidate all earlier traces.
DEFAULT_GENERATOR = xla.config("default_generator", "threefry2x32")

#: True to treat Python's positions out of bounds as those of arrays: reads take the nearest element, updates leave them
#: out. Set under JAX's names only.
LENIENT_POSITIONS = xla.config("lenient_positions", False)


@contextmanager
def set_current_trace(trace: Trace) -> Generator[Trace]:
    """Make a trace the current one within the block."""
    previous = state.trace
    flips = trace.staging != previous.staging
    token = _STAGING.swap_local(trace.staging) if flips else None
    state.trace = trace
    try:
        yield trace
    finally:
        state.trace = previous
        if flips:
            _STAGING.restore(token)


@contextmanager
def new_trace(trace: Trace) -> Generator[Trace]:
    """Make a new trace the current one, and mark it finished at the end: its tracers are leaks from then on."""
    with set_current_trace(trace):
        try:
            yield trace
        finally:
            trace.finished = True
            trace.broadcasts = None  # they would keep tracers alive with a tracer that leaks


@contextmanager
def named_axis(name: Any, size: int) -> Generator[None]:
    """Bring an axis name into scope within the block; None changes nothing."""
    previous = state.axes
    if name is not None:
        state.axes = (*previous, (name, size))
    try:
        yield
    finally:
        state.axes = previous


def bind(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a primitive under the current trace. `prim(*args, **params)` is the same."""
    return state.trace.process(prim, args, params)


# --------------------------------------------------------------------------------------------------------- tracers
class Tracer:
    """A value inside a transformation: it has a shape and a dtype, but belongs to a trace.

    The methods and operators of arrays are attached to it in `array_methods.py`.
    """

    # Underscored: `x.trace()` and `x.var()` are methods of arrays.
    __slots__ = ("__weakref__", "_aval", "_trace")
    # NumPy's operators defer to a tracer's; its functions call __array__, which raises with the reason.
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # equality is elementwise, as for arrays
    _trace: Trace
    _aval: ShapedArray | None

    def __init__(self, trace: Trace, aval: ShapedArray | None = None) -> None:
        # Tracers of transformations derive their avals from their values; others, as those of libraries, pass one.
        self._trace = trace
        if aval is not None:
            self._aval = aval

    @property
    def aval(self) -> ShapedArray:
        aval = getattr(self, "_aval", None)
        if aval is None:
            raise NotImplementedError(f"{type(self).__name__} has no aval")
        return aval

    def creation_site(self) -> Any:
        """Return the line, or recorded traceback, that made this value; None if unknown."""
        return None

    def concrete(self) -> Any:
        """Return the concrete value that this tracer wraps, as under grad without jit; None if there is none."""
        return None

    def guarded(self, what: str) -> Any:
        """Return the concrete value for a conversion by Python, which `what` names; None if there is none.

        Where jit follows Python control flow, the value becomes a guard of the path that is traced.
        """
        return self.concrete()

    def beneath(self) -> Any:
        """Return the value of the parent trace that this tracer wraps; None unless it is exactly one."""
        return None

    @staticmethod
    def _is_traced_array() -> bool:
        return True  # for jaxlib's isinstance(x, Array)


xla.set_tracer_class(Tracer)
if TYPE_CHECKING:
    from functorch_like.arrays.array_type import Array as Array  # with the attributes that `array_methods.py` attaches
    from functorch_like.ir.jaxpr import Jaxpr
else:
    Array = xla.Array


def leak(tracer: Tracer, using: str) -> LeakError:
    """Return the error for a tracer used after its transformation returned, or outside of it."""
    made = tracer.creation_site()
    line = source_info.user_line(made) if made is not None else None
    trace = tracer._trace
    where = "which has already returned" if trace.finished else "and is used outside of it, where it has no value"
    return LeakError(
        f"{using} got a {tracer.aval!r} that belongs to {trace!r}, {where}"
        + (f"; the value was made at {line}" if line else ""),
        fix="return the value from the transformed function instead of storing it in a list, an attribute or a global"
        if trace.finished
        else "pass the value to functions that have rules of their own as an argument, instead of closing over it",
        at=str(source_info.user_line() or ""),
        chain=transform_stack(state.trace),
    )


# ------------------------------------------------------------------------------------------------- avals of values
#: Python's numbers: weakly typed, except bool.
NUMBERS = frozenset({int, float, complex, bool})
#: Range of the Python ints that are traced as int32.
INT32 = (-(2**31), 2**31 - 1)
_SCALARS = {bool: dtypes.bool_, float: None, complex: None}


def aval_of(x: Any) -> ShapedArray:
    """Return the abstract value of an array, tracer, NumPy array or number.

    Numbers, Python's and NumPy's scalars, are weakly typed; a Python int beyond 32 bits is a weak int64.

    Raises:
        DtypeError: for anything else.
        NumberError: for a Python int beyond 64 bits.
    """
    kind = type(x)
    if kind is ArrayImpl:
        return x.aval
    if isinstance(x, Tracer):
        return x.aval
    if kind is float:
        return _weak_scalar(dtypes._DEFAULT_FLOAT.value)
    if kind is int:
        return ShapedArray((), int_dtype(x), True)
    if kind is bool:
        return ShapedArray((), dtypes.bool_, False)
    if kind is complex:
        return ShapedArray((), dtypes.default_complex(), True)
    if isinstance(x, UndefinedPrimal):
        return x.aval
    if isinstance(x, np.ndarray):
        if kind is not np.ndarray:
            x = unmasked(x)
        return ShapedArray(x.shape, dtypes.of_host(x), False)
    if isinstance(x, np.generic):
        dtype = dtypes.of_host(x)
        return ShapedArray((), dtype, dtype != dtypes.bool_)
    numbers: tuple[Any, ...] = (bool, int, float, complex)
    for number in numbers:  # subclasses: IntEnum, ...
        if isinstance(x, number):
            return aval_of(number(x))
    raise DtypeError(f"{foreign_values.quote(x)} of type {kind.__name__} is not an array", fix=foreign_values.remedy(x))


@functools.cache
def _weak_scalar(name: str) -> ShapedArray:
    return ShapedArray((), np.dtype(name), True)


def native(x: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array or scalar as an array that XLA reads: native byte order, and the dtype of an operand.

    Raises:
        DtypeError: for dtypes that no array has.
    """
    ordered = x if x.dtype.isnative else np.asarray(x, dtypes.exact_dtype(x.dtype.newbyteorder("=")))
    return np.asarray(ordered, dtypes.of_host(ordered))


def in_width(x: Any) -> Any:
    """Return a NumPy array with the dtype it has as an operand now, and other values as they are; for tracers."""
    return native(x) if isinstance(x, (np.ndarray, np.generic)) and dtypes.is_narrowed(x) else x


def array_of(x: Any) -> Any:
    """Return an operand as a result: a NumPy array becomes an array."""
    return xla.device_put(native(x)) if isinstance(x, np.ndarray) and x.dtype != object else x


def argument_aval(x: Any) -> ShapedArray:
    """Return `aval_of` a user's argument, among which NumPy's scalars and its arrays of rank 0 are alike.

    They are weakly typed; under JAX's names they are not. Inside the package a scalar of NumPy is a weak constant and
    an array of rank 0 is a constant of exactly its dtype.
    """
    aval = aval_of(x)
    if aval.shape or aval.dtype == dtypes.bool_ or not isinstance(x, (np.ndarray, np.generic)):
        return aval
    weak = not dtypes.STRONG_SCALARS.value
    return aval if aval.weak_type == weak else aval.update(weak_type=weak)


def as_argument(x: Any) -> Any:
    """Return a NumPy scalar of a user as an array of rank 0, if it counts as an array."""
    return native(x) if isinstance(x, np.generic) and dtypes.STRONG_SCALARS.value else x


def int_dtype(value: int) -> np.dtype[Any]:
    """Return the dtype of a Python int, alone or in a sequence.

    Raises:
        NumberError: for an int that neither the default dtype nor, unless 64 bits are off, int64 holds.
    """
    if INT32[0] <= value <= INT32[1]:
        return dtypes.default_int()
    if dtypes._NARROW.value:
        raise NumberError(
            f"the Python int {value} does not fit int32, and 64-bit types are off",
            fix="turn `jax_enable_x64` on, or name a dtype that holds it, as in jnp.asarray(n, 'uint32')",
        )
    if -(2**63) <= value < 2**63:
        return dtypes.int64
    raise NumberError(
        f"the Python int {value} does not fit int64, the widest dtype that ints become by themselves",
        fix="name a dtype that holds it, as in fnp.asarray(n, 'uint64'); or make it a float",
    )


_VALUES = (ArrayImpl, Tracer, np.ndarray, np.generic, *NUMBERS)


def is_value(x: Any) -> bool:
    """Return True if `aval_of` takes a value."""
    return type(x) in NUMBERS or isinstance(x, _VALUES)


# ---------------------------------------------------------------------------------------------------- shape rules
class Signature:
    """A primitive with its parameters and the avals of its operands. Equal equations share one.

    Attributes:
        out: the result of the shape rule, an aval or a tuple of avals.
        interned: True if all equal signatures are this object, so that they are compared by identity.
        plain: True if the lowering depends on the signature and the settings alone.
    """

    __slots__ = ("interned", "out", "plain")

    def __init__(self, out: Any, interned: bool, plain: bool) -> None:
        self.out, self.interned, self.plain = out, interned, plain


_SIGNATURES: Cache[Any, Signature] = Cache()
_MOST_SIGNATURES = 65536
#: Parameters that templates of lowerings must not keep alive, or whose state changes a lowering.
_CONTEXTUAL = frozenset(("jaxpr", "mesh"))


def signature_of(prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Signature:
    """Return the signature of an application of a primitive (avals are interned, so the key hashes fast).

    Raises:
        FtError: where the shape rule refuses the operands.
    """
    try:
        key = (prim, *avals, *params.items())
        signature = _SIGNATURES.get(key)
    except TypeError:  # an unhashable parameter: rare, and mostly an error
        return Signature(abstract_eval_uncached(prim, avals, params), False, False)
    if signature is None:
        out = abstract_eval_uncached(prim, avals, params)
        # Keys of higher-order primitives would keep whole jaxprs alive, or users' functions; collectives depend on the
        # names in scope, too.
        interned = prim.partial_eval is None and prim.evaluate is None and "axis_name" not in params
        plain = interned and prim.builtin and prim.effects is None and params.keys().isdisjoint(_CONTEXTUAL)
        signature = Signature(out, interned, plain)
        if interned:
            _SIGNATURES.keep(key, signature, _MOST_SIGNATURES)
    return signature


def find_signature(prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Signature | None:
    """Return the interned signature of an application that has been seen before, or None."""
    try:
        return _SIGNATURES.get((prim, *avals, *params.items()))
    except TypeError:
        return None


def abstract_eval(prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    """Apply the shape rule, memoised on avals and parameters."""
    return signature_of(prim, avals, params).out


def abstract_eval_uncached(prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    """Apply the shape rule, and add context to its errors."""
    try:
        for aval in avals:
            if aval.explicit is not None:
                from functorch_like.explicit_axes import results_of  # few programs have such types

                return results_of(prim, avals, params)
        return prim.shape(*avals, **params)
    except FtError as e:
        raise add_error_context(e, prim, avals, params)  # noqa: B904  (the same error, completed)


# ---------------------------------------------------------------------------------------------------------- errors
def transform_stack(trace: Trace) -> str:
    """Return the names of the transformations in force, outermost first: "jit(loss) > grad"."""
    names: list[str] = []
    while trace is not EVALUATE:
        if trace.name:
            names.append(trace.name)
        trace = trace.parent
    return " > ".join(reversed(names))


def add_error_context(
    error: FtError,
    prim: Primitive,
    args: Sequence[Any],
    params: dict[str, Any],
    trace: Trace | None = None,
    rule: str = "",
) -> FtError:
    """Add the operation with its avals, the chain of transformations and the source lines to an error.

    `rule` is the name of the rule that raised, shown if it is `NotDefined`.
    """
    if not error.operation:
        avals = [a if isinstance(a, ShapedArray) else aval_of(a) for a in args]
        shown = [f"{k}={v!r}" for k, v in params.items() if isinstance(v, (int, str, tuple, np.dtype))]
        shown = [text for text in shown if "\n" not in text]  # tuples of jaxprs
        error.operation = f"{prim.name}({', '.join([*map(repr, avals), *shown])})"
        if rule and isinstance(error, UnsupportedError):
            error.operation = f"{rule} of {error.operation}"
    return error.add_context(
        chain=transform_stack(trace or state.trace), at=str(source_info.user_line(state.source) or ""), rule=prim.where
    )
