"""Promotion and broadcasting of a user's operands, for primitives, which do neither.

Also the makers of elementwise functions. Each such function has a *body*, which takes any values and calls primitives,
and a compiled *kernel* of it. Arrays go to the kernel, in C++; tracers go to the body, so a traced operation costs
little more than its primitive.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import promotion as ranks
from functorch_like.backends.settings import NOTHING_SET, Values, in_force
from functorch_like.caches import cleared
from functorch_like.calling import argument_notes
from functorch_like.calling.api_boundary import finalize_error
from functorch_like.calling.second_calls import NO_CALL, second_call
from functorch_like.core import (
    INT32,
    NUMBERS,
    ArrayImpl,
    Tracer,
    argument_aval,
    aval_of,
    is_value,
    native,
    state,
    transform_stack,
)
from functorch_like.errors import FtError, NumberError, ShapeError, UnsupportedArgumentError
from functorch_like.primitives import structural
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.tree import LEFT_OUT

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Binary, Unary

F = TypeVar("F", bound=Callable[..., Any])


def error(cls: type[FtError], reason: str, fix: str, operation: str = "") -> FtError:
    """Return an error of a user-level function, with the user's line and the current transformations."""
    where = str(source_info.user_line(state.source) or "")
    return cls(reason, fix=fix, operation=operation, chain=transform_stack(state.trace), at=where)


def no_out(out: Any, what: str, note: str = "") -> None:
    """Raise for NumPy's `out=`: arrays are immutable."""
    if out is not None:
        message = f"{what} got out={note}, but arrays are immutable"
        raise error(UnsupportedArgumentError, message, "leave it out and use the result")


# --------------------------------------------------------------------------------------------------------- conversion
def host(x: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a Python or NumPy value to a NumPy array of a dtype; raise for an int that does not fit."""
    if dtype.kind in "iu" and not isinstance(x, np.ndarray):
        check_int(x, dtype)
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype)


def check_int(x: Any, dtype: np.dtype[Any]) -> None:
    """Raise NumberError for an int, Python's or NumPy's of rank 0, that an integer dtype cannot hold."""
    if dtype.kind in "iu" and (isinstance(x, int) or _is_host_int(x)):
        low, high = bounds(dtype)
        if not low <= x <= high:
            raise error(
                NumberError,
                f"the Python int {x} is out of bounds for {dtype.name}, which holds {low} to {high}",
                "convert the array to a wider dtype with astype first",
            )


def _is_host_int(x: Any) -> bool:
    """Return True for an integer scalar of NumPy, and an array of rank 0 that holds one."""
    return isinstance(x, (np.integer, np.ndarray)) and not x.ndim and x.dtype.kind in "iu"


def is_int(x: Any) -> bool:
    """Return True for a Python int, and an integer of NumPy that counts as one: it takes the dtype of arrays."""
    return type(x) is int or (not dtypes.STRONG_SCALARS.value and _is_host_int(x))


def beyond(number: Any, other: Any) -> int:
    """Return -1 or 1 for an int below or above the range of the integer dtype of an array or scalar; else 0."""
    if is_int(number) and (is_array(other) or isinstance(other, np.integer)):
        dtype = aval_of(other).dtype
        if dtypes.is_integer(dtype):
            low, high = bounds(dtype)
            return int(number > high) - int(number < low)
    return 0


def comparable(x: Any, y: Any) -> tuple[Any, Any]:
    """Replace an int outside of the range of the other operand's dtype by an infinity, which compares the same way."""
    a, b = beyond(x, y), beyond(y, x)
    return np.float64(a * np.inf) if a else x, np.float64(b * np.inf) if b else y


def floats_beyond(x: Any, y: Any) -> tuple[Any, Any]:
    """Return floats where an int is outside of the range of the other operand's dtype: as strong as with one inside."""
    if beyond(x, y):
        return float(x), to_inexact(y)
    return (to_inexact(x), float(y)) if beyond(y, x) else (x, y)


@functools.cache
def bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and greatest number of an integer dtype."""
    info = dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def convert(x: Any, dtype: np.dtype[Any], weak: bool = False) -> Any:
    """Return `x` in a dtype, as an operand of primitives. Numbers stay on the host."""
    if type(x) in NUMBERS or isinstance(x, (np.ndarray, np.generic)):
        if type(x) is np.ndarray and x.dtype == dtype and not dtypes.is_narrowed(x) and not (weak and not x.ndim):
            return x
        value = host(x, dtype)
        if dtypes.narrowed(dtype) != dtype:  # the package uses 64 bits where users' arrays cannot
            if value.ndim:
                return structural.convert_element_type(native(x), new_dtype=dtype, weak_type=weak)
            value = np.array(value)
            value.flags.writeable = False  # a constant, which keeps its dtype
            return structural.convert_element_type(value, new_dtype=dtype, weak_type=True) if weak else value
        if weak and value.ndim:
            return structural.convert_element_type(value, new_dtype=dtype, weak_type=True)
        return value[()] if weak else value  # a NumPy scalar is weak, an array of rank 0 is not
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    return structural.convert_element_type(x, new_dtype=dtype, weak_type=weak)


def like(x: Any, number: Any) -> Any:
    """Return one number in the shape, dtype and weakness of another value."""
    aval = aval_of(x)
    if not aval.weak_type:
        return structural.full(aval.shape, number, aval.dtype)
    scalar = host(number, aval.dtype)[()]
    return structural.broadcast_in_dim(scalar, shape=aval.shape, broadcast_dimensions=()) if aval.shape else scalar


def to_inexact(x: Any) -> Any:
    """Convert `x` to float or complex: integers and booleans become the default float.

    Under JAX's names only Python's numbers and integers of 64 bits do, and narrower ones become float32.
    """
    aval = aval_of(x)
    if dtypes.is_inexact(aval.dtype):
        return convert(x, aval.dtype, aval.weak_type) if type(x) in NUMBERS else x
    return convert(x, dtypes.default_float() if aval.weak_type else dtypes.inexact_dtype(aval.dtype), aval.weak_type)


# ------------------------------------------------------------------------------------------------------- broadcasting
@cleared
@functools.lru_cache(maxsize=8192)
def _broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    ndim = max(map(len, shapes), default=0)
    out: list[int] = []
    for sizes in zip(*((1,) * (ndim - len(s)) + s for s in shapes), strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            return None
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def is_array(x: Any) -> bool:
    """Return True if it is an array of any kind, and not a number."""
    return isinstance(x, (ArrayImpl, Tracer, np.ndarray))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Args:
        shapes: tuples of ints.

    Returns:
        A tuple of ints.

    Raises:
        ShapeError: where they do not broadcast.

    >>> fnp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    result = _broadcast_shapes(*(tuple(s) if not isinstance(s, int) else (s,) for s in shapes))
    if result is None:
        raise error(
            ShapeError,
            f"shapes {', '.join(str(tuple(s)) for s in shapes)} do not broadcast together",
            "sizes must be equal, or 1, counted from the last dimension; add dimensions with x[:, None]",
        )
    return result


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that operands broadcast to, as `broadcast_shapes`; raise where ranks must not differ.

    Raises:
        ShapeError: where they do not broadcast, or ranks must not differ (`backends.promotion.ranks`).
    """
    shape = broadcast_shapes(*shapes)
    rule = ranks.ranks if in_force() is not NOTHING_SET else "allow"
    if rule != "allow" and len({len(s) for s in shapes if s}) > 1:
        text = f"arrays of shapes {', '.join(map(str, shapes))} differ in rank"
        if rule == "raise":
            fix = "add dimensions with x[None], or leave out numpy_rank_promotion('raise')"
            refusal = error(ShapeError, f"{text}, and that is not allowed", fix)
            refusal.promotion = "strict"
            raise refusal
        warnings.warn(f"{text}, at {source_info.user_line(state.source)}", stacklevel=2)
    return shape


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast `x` to a shape; return `x` itself if it has that shape."""
    mine = aval_of(x).shape
    if mine == shape:
        return x
    return structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=_last(len(mine), len(shape)))


def notice(xs: Sequence[Any], avals: Sequence[ShapedArray], dtype: np.dtype[Any]) -> None:
    """Issue a notice of a promotion to 64 bits by NumPy's values, once for each trace of an operation."""
    from functorch_like.calling import widening

    widening.notice(xs, avals, dtype)


def promote(*xs: Any, notify: bool = True) -> list[Any]:
    """Return operands in one dtype; shapes stay.

    With `notify`, a notice is issued where NumPy arrays make floats wider; False is for results of other dtypes.
    """
    avals = [argument_aval(x) for x in xs]
    dtype, weak, widens = dtypes.promotion_of(avals)
    if widens and notify:
        notice(xs, avals, dtype)
    return [_cast(x, a, dtype, weak) for x, a in zip(xs, avals, strict=True)]


def _strengthens(x: Any, weak: bool) -> bool:
    """Return True for NumPy's scalars that are strong, as under JAX's names: inside of primitives they are weak."""
    return isinstance(x, np.generic) and not weak


def _cast(x: Any, aval: ShapedArray, dtype: np.dtype[Any], weak: bool) -> Any:
    if aval.dtype == dtype and type(x) not in NUMBERS and not _strengthens(x, weak):
        return x  # primitives take weak and strong operands together: the result is weak only if all operands are
    return _converted(x, aval, dtype, weak)


def _converted(x: Any, aval: ShapedArray, dtype: np.dtype[Any], weak: bool) -> Any:
    """Return a promoted operand; raise for an integer of NumPy that counts as a number, and does not fit."""
    if aval.weak_type and type(x) is np.ndarray:
        check_int(x, dtype)
    return convert(x, dtype, weak)


@cleared
@functools.lru_cache(maxsize=8192)
def _plan(
    a: ShapedArray, b: ShapedArray, default: str, _set: Values
) -> tuple[np.dtype[Any], bool, bool, tuple[int, ...]]:
    """Return the dtype of two operands, its weakness, whether it is wider, and their shape; settings may raise."""
    return *dtypes.promotion_of((a, b)), common_shape(a.shape, b.shape)


@cleared
@functools.lru_cache(maxsize=4096)
def _number_in(x: Any, dtype: np.dtype[Any], kind: type, signs: Any) -> np.ndarray[Any, Any]:
    # `signs` distinguishes 0.0 from -0.0, which are equal.
    made = host(x, dtype)
    made.flags.writeable = False
    return made


def _signs(number: Any, kind: type) -> Any:
    """Return a key by which a Python number differs from others that equal it: 0.0 is not -0.0."""
    return math.copysign(1.0, number) if kind is float else repr(number) if kind is complex else None


def _fit(x: Any, aval: ShapedArray, dtype: np.dtype[Any], weak: bool, shape: tuple[int, ...]) -> Any:
    kind = type(x)
    if kind in NUMBERS:
        x = _number_in(x, dtype, kind, _signs(x, kind))
        x = x[()] if weak else x  # NumPy's scalars are weak, its arrays of rank 0 are not
    elif aval.dtype != dtype or _strengthens(x, weak):
        x = _converted(x, aval, dtype, weak)
    if aval.shape == shape:
        return x
    return structural.broadcast_in_dim(x, shape=shape, broadcast_dimensions=_last(aval.ndim, len(shape)))


@functools.cache
def _last(count: int, ndim: int) -> tuple[int, ...]:
    """Return the last `count` of `ndim` dimensions."""
    return tuple(range(ndim - count, ndim))


_default = dtypes._DEFAULT_FLOAT  # pyright: ignore[reportPrivateUsage]
_default_int = dtypes._DEFAULT_INT  # pyright: ignore[reportPrivateUsage]


@cleared
@functools.lru_cache(maxsize=8192)
def _beside(
    number: Any, kind: type, signs: Any, aval: ShapedArray, defaults: tuple[str, str], settings: Values
) -> tuple[Any, tuple[int, ...] | None] | None:
    """Return a Python number as a constant beside an operand of this aval, and the shape to broadcast it to, if any.

    The result is None if the operand must be converted or broadcast, too.
    """
    b = aval_of(number)
    dtype, weak, widens, shape = _plan(aval, b, defaults[0], settings)
    if widens or aval.dtype != dtype or aval.shape != shape:
        return None
    return _fit(number, b, dtype, weak, ()), shape or None


def _number_beside(x: Any, number: Any, kind: type) -> Any:
    """Return a Python number as an operand beside a tracer; None if the tracer must be converted or broadcast, too."""
    constant = _beside(number, kind, _signs(number, kind), x.aval, (_default.value, _default_int.value), in_force())
    if constant is None or constant[1] is None:
        return constant and constant[0]
    known = state.trace.broadcasts
    if known is not None and (seen := known.get(id(constant))) is not None:
        return seen[1]
    made = structural.broadcast_in_dim(constant[0], shape=constant[1], broadcast_dimensions=())
    if known is not None:
        known[id(constant)] = constant, made
    return made


def promote_and_broadcast2(x: Any, y: Any, notify: bool = True) -> tuple[Any, Any]:
    """Return two operands in one dtype and one shape, by a faster path."""
    kind = type(y)
    if kind in NUMBERS and isinstance(x, Tracer):
        number = _number_beside(x, y, kind)
        if number is not None:
            return x, number
    else:
        kind = type(x)
        if kind in NUMBERS and isinstance(y, Tracer):
            number = _number_beside(y, x, kind)
            if number is not None:
                return number, y
    a = x.aval if isinstance(x, Tracer) else argument_aval(x)
    b = y.aval if isinstance(y, Tracer) else argument_aval(y)
    dtype, weak, widens, shape = _plan(a, b, _default.value, in_force())
    if widens and notify:
        notice((x, y), (a, b), dtype)
    return _fit(x, a, dtype, weak, shape), _fit(y, b, dtype, weak, shape)


def promote_and_broadcast(*xs: Any, notify: bool = True) -> list[Any]:
    """Return operands in one dtype and one shape; `notify` as for `promote`."""
    if len(xs) == 2:
        return list(promote_and_broadcast2(*xs, notify))
    avals = [argument_aval(x) for x in xs]
    dtype, weak, widens = dtypes.promotion_of(avals)
    if widens and notify:
        notice(xs, avals, dtype)
    shape = common_shape(*(a.shape for a in avals))
    return [broadcast(_cast(x, a, dtype, weak), shape) for x, a in zip(xs, avals, strict=True)]


def align_inexact2(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands in one float or complex dtype and one shape, by a faster path."""
    if is_int(x) or is_int(y):
        x, y = floats_beyond(x, y)
    x, y = promote_and_broadcast2(x, y)
    return (x, y) if dtypes.is_inexact(aval_of(x).dtype) else (to_inexact(x), to_inexact(y))


def align_inexact(*xs: Any) -> list[Any]:
    """Return operands in one float or complex dtype and one shape."""
    return list(align_inexact2(*xs)) if len(xs) == 2 else [to_inexact(x) for x in promote_and_broadcast(*xs)]


def broadcast_arrays(*xs: Any) -> list[Any]:
    """Return operands in one shape; dtypes stay."""
    avals = [argument_aval(x) for x in xs]
    shape = common_shape(*(a.shape for a in avals))
    return [
        broadcast(convert(x, a.dtype, a.weak_type) if type(x) in NUMBERS else x, shape)
        for x, a in zip(xs, avals, strict=True)
    ]


# ------------------------------------------------------------------------------------------------- numbers for kernels
def numbers(*xs: Any) -> tuple[Any, ...]:
    """Return arguments of a kernel, with numbers in a form that C++ passes without loss.

    Beside a 64-bit array a float becomes float64 where a Python float alone is float32. An int must fit the
    integer arrays beside it, and becomes a NumPy scalar where 32 bits do not hold it.
    """
    for x in xs:  # most calls end here
        kind = type(x)
        if kind is ArrayImpl:
            dtype = x.aval.dtype
            if dtype is not dtypes.float32 and dtype is not dtypes.int32:
                break
        elif kind is not float and (kind is not int or not INT32[0] <= x <= INT32[1]):
            break
    else:
        return xs
    plain = True
    for x in xs:
        if type(x) in NUMBERS or is_int(x):
            plain = False
        elif isinstance(x, np.ndarray):
            if not x.dtype.isnative:
                aval_of(x)  # raises: C++ reads bytes in their native order
        elif not is_value(x) and x is not None:
            aval_of(x)  # raises: a list would reach the kernel as a tree of numbers
    if plain:
        return xs
    wide, integer = False, None
    for x in xs:
        if is_array(x) and not is_int(x):
            dtype = aval_of(x).dtype
            wide = wide or dtype == dtypes.float64 or dtype == dtypes.complex128
            if dtype.kind in "iu":
                integer = dtype if integer is None else np.promote_types(integer, dtype)
            else:
                integer = integer or (None if dtype == dtypes.bool_ else dtypes.float32)
    wide = wide and dtypes.default_float() != dtypes.float64
    return tuple(_number(x, wide, integer) for x in xs)


def _number(x: Any, wide: bool, integer: Any) -> Any:
    kind = type(x)
    if kind is float:
        return np.float64(x) if wide else x
    if kind is complex:
        return np.complex128(x) if wide else x
    if kind is int:
        if integer is not None and integer.kind in "iu":
            check_int(x, integer)
            return x if INT32[0] <= x <= INT32[1] else integer.type(x)
        if INT32[0] <= x <= INT32[1]:
            return x
        if integer is not None:  # beside floats
            return np.float64(x) if wide else float(x)
        return np.asarray(x, aval_of(x).dtype)[()]
    if integer is not None and integer.kind in "iu" and is_int(x):
        check_int(x, integer)
    return x


def blame(e: Exception, name: str = "", *operands: Any) -> None:
    """Complete an error with the called function and its arguments, if given; hide the frames in between.

    Raises:
        FtError: in place of a terse error of C++.
    """
    final = finalize_error(e)
    raised = e if final is None else final
    if name and isinstance(raised, FtError):
        raised.add_context(operation=f"{name}({', '.join(map(_shown, operands))})")
    if final is not None:
        raise final from None


def _shown(x: Any) -> str:
    try:
        return repr(aval_of(x))
    except FtError:
        return type(x).__name__


# ------------------------------------------------------------------------------------------------------------- makers
def named(function: F, name: str, doc: str, module: str) -> F:
    """Give a function made by a maker its name and documentation."""
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, module
    return function


def caller() -> str:
    """Return the module that called the maker."""
    return sys._getframe(2).f_globals["__name__"]  # pyright: ignore[reportPrivateUsage]


#: The identities of functions: operands that do not change the other one.
_IDENTITIES: dict[str, Any] = {
    "add": 0, "multiply": 1, "logical_and": True, "logical_or": False, "logical_xor": False, "bitwise_and": -1,
    "bitwise_or": 0, "bitwise_xor": 0, "logaddexp": -float("inf"), "logaddexp2": -float("inf"), "hypot": 0,
}  # fmt: skip


def _with_methods(function: Any, name: str, nin: int, methods: tuple[str, ...]) -> None:
    """Give a function the methods of NumPy's universal functions; they are loaded when one is called."""
    function.nin, function.nout, function.nargs = nin, 1, nin + 1
    function.identity = _IDENTITIES.get(name)
    for method in methods:
        setattr(function, method, functools.partial(_as_ufunc, function, method))


def _as_ufunc(function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    ufuncs = importlib.import_module(f"{__package__}.ufuncs")
    return getattr(ufuncs.of(function), method)(*args, **kwargs)


def _signature(*names: str, by_name: bool = False) -> inspect.Signature:
    """Return the signature of an elementwise function for help() and editors.

    The functions themselves take any arguments, and refuse the others: NumPy's options, and what no function has.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if by_name else inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(name, kind, annotation="ArrayLike") for name in names]
    return inspect.Signature(parameters, return_annotation="Array")


_OPTIONS = ("out", "where", "dtype", "casting")


def _call_otherwise(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call an elementwise function with NumPy's options, with operands by their names, or refuse the arguments."""
    args = tuple(x for x in args if x is not LEFT_OUT)
    options = {name: named.pop(name, None) for name in _OPTIONS}
    if len(args) == function.nin + 1 and options["out"] is None:
        args, options["out"] = args[:-1], args[-1]
    try:
        operands = inspect.signature(function).bind(*args, **named).args
    except TypeError as e:
        raise argument_notes.wrong_call(function, str(e), len(args)) from None
    _check_options(function, **options)
    return function(*operands)


def _check_options(function: Any, out: Any, where: Any, dtype: Any, casting: Any) -> None:
    """Raise for NumPy's options of elementwise functions, unless they have NumPy's default values."""
    name = argument_notes.name_of(function)
    operands = ", ".join(inspect.signature(function).parameters)
    if where is not None and where is not True:
        other = "other" if out is None else "out"
        fix = f"choose afterwards: fnp.where(where, {name}({operands}), {other})"
        raise error(UnsupportedArgumentError, f"{name} got where=, but all elements of a result are computed", fix)
    no_out(out, name, " (in NumPy, the argument after the operands)")
    if dtype is not None:
        fix = f"convert the operands before, with x.astype(dtype), or the result: {name}({operands}).astype(dtype)"
        raise error(UnsupportedArgumentError, f"{name} got dtype=, but the operands have dtypes", fix)
    if casting not in (None, "same_kind"):
        fix = f"leave it out, and convert with astype: {name}({operands}).astype(dtype)"
        raise error(UnsupportedArgumentError, f"{name} got casting={casting!r:.40}", fix)


def unary(name: str, body: Callable[[Any], Any], doc: str, by_name: bool = False) -> Unary:
    """Make a user-level function of one array; `body` takes any value that has an aval.

    With `by_name`, calls may name the operand.
    """
    body.__name__ = name
    fast = eager_jit(ints=True, checked=True)(body)

    # Python calls a function with defaults as fast as one without.
    def function(x: ArrayLike = LEFT_OUT, /, *more: Any, **options: Any) -> Array:
        if options or more or x is LEFT_OUT:
            try:
                return _call_otherwise(function, (x, *more), options)
            except Exception as e:
                blame(e)
                raise
        try:
            if type(x) is ArrayImpl:
                return fast(x)
            return body(x) if isinstance(x, Tracer) else fast(*numbers(x))
        except Exception as e:
            result = second_call(e, function, (x,), {})
            if result is not NO_CALL:
                return result
            blame(e, name, x)
            raise

    function.body, function.fast, function.is_boundary = body, fast, True  # type: ignore[attr-defined]
    function.__signature__ = _signature("x", by_name=by_name)  # type: ignore[attr-defined]
    _with_methods(function, name, 1, ("at",))
    return named(function, name, doc, caller())


def binary(
    name: str, body: Callable[[Any, Any], Any], doc: str, adapt: Callable[..., tuple[Any, ...]] | None = None
) -> Binary:
    """Make a user-level function of two arrays that broadcast; `adapt` changes numbers before they are checked."""
    body.__name__ = name
    fast = eager_jit(ints=True, checked=True)(body)

    def function(x1: ArrayLike = LEFT_OUT, x2: ArrayLike = LEFT_OUT, /, *more: Any, **options: Any) -> Array:
        if options or more or x2 is LEFT_OUT:
            try:
                return _call_otherwise(function, (x1, x2, *more), options)
            except Exception as e:
                blame(e)
                raise
        try:
            if type(x1) is ArrayImpl and type(x2) is ArrayImpl:
                return fast(x1, x2)
            if isinstance(x1, Tracer) or isinstance(x2, Tracer):
                return body(x1, x2)
            return fast(*numbers(*(adapt(x1, x2) if adapt else (x1, x2))))
        except Exception as e:
            result = second_call(e, function, (x1, x2), {})
            if result is not NO_CALL:
                return result
            blame(e, name, x1, x2)
            raise

    function.body, function.fast, function.is_boundary = body, fast, True  # type: ignore[attr-defined]
    function.__signature__ = _signature("x1", "x2")  # type: ignore[attr-defined]
    _with_methods(function, name, 2, ("accumulate", "at", "outer", "reduce", "reduceat"))
    return named(function, name, doc, caller())
