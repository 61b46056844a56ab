"""New arrays: from data, and filled with one number."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import MOST_DIMENSIONS, ShapedArray, ShapeDtypeStruct, too_many_dimensions
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Tracer, argument_aval, aval_of, int_dtype, native, state
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError
from functorch_like.ir import dtype_origins, trace_constants
from functorch_like.masked import unmasked
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import shape_of
from functorch_like.primitives import structural
from functorch_like.primitives.structural.sharding_constraint import split_as

#: Bytes from which an array of one value is made on a GPU, by a program, rather than copied there.
_MUCH = 2**24

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DeviceLike, DTypeLike, NestedArrayLike, Shape


# ----------------------------------------------------------------------------------------------------------- from data
def asarray(
    a: NestedArrayLike | None,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: DeviceLike = None,
) -> Array:
    """Convert anything array-like to an array; an array is returned as it is.

    Args:
        a: array, NumPy array, number, or (nested) sequence of these.
        dtype: dtype of the result. By default NumPy arrays keep their dtype and Python numbers take the default dtypes
            (float32, int32), a single one weakly; lists of arrays are promoted.
        order: accepted for compatibility with NumPy: None, "K" or "C".
        copy: True copies an array, too; False demands that nothing is copied.
        device: the device of the result.

    Returns:
        An array; `a` itself if it is an array with that dtype.

    Raises:
        DtypeError: for values that no array can hold.
        ShapeError: for sequences of unequal lengths.

    >>> fnp.asarray([[1, 2], [3, 4]]).dtype.name, fnp.asarray(np.ones(2)).dtype.name
    ('int32', 'float64')
    """
    if order not in (None, "K", "C"):
        raise promotion.error(
            ArgumentError, f"order={order!r} is not supported: arrays are row-major", "leave order out"
        )
    made = _asarray(a, None if dtype is None else dtypes.as_dtype(dtype), copy)
    return made if device is None or isinstance(made, Tracer) else xla.device_put(made, xla.find_device(device))  # pyright: ignore[reportReturnType]


def _asarray(a: Any, dtype: Any, copy: bool | None) -> Any:
    kind = type(a)
    if kind is ArrayImpl or isinstance(a, Tracer):
        if dtype is None or (aval_of(a).dtype == dtype and not aval_of(a).weak_type):
            if dtype is not None:
                dtype_origins.chosen(a)
            return structural.copy(a) if copy else a
        return structural.convert_element_type(a, new_dtype=dtype, weak_type=False)
    if copy is False:
        raise promotion.error(
            ArgumentError, f"a {kind.__name__} cannot become an array without a copy", "leave copy out"
        )
    if kind in promotion.NUMBERS:
        weak = dtype is None and kind is not bool
        return trace_constants.placed(promotion.host(a, dtype or aval_of(a).dtype), weak_type=weak)
    if isinstance(a, (np.ndarray, np.generic)):
        if dtype is None:
            return dtype_origins.made(trace_constants.placed(native(unmasked(a))))
        if a.dtype != dtype:
            a = np.asarray(unmasked(a)).astype(dtype)
        return trace_constants.placed(native(unmasked(a)))
    if isinstance(a, (list, tuple, range)):
        return _from_sequence(a, dtype)
    if hasattr(kind, "__dlpack_device__"):
        from functorch_like.backends.xla import dlpack  # for tensors of other libraries alone

        if dlpack.is_on_gpu(a):  # NumPy cannot read it
            return _asarray(dlpack.from_dlpack(a), dtype, None)
    for protocol in ("__jax_array__", "__array__", "__array_interface__", "__buffer__"):
        if hasattr(a, protocol):
            return _asarray(a.__jax_array__() if protocol == "__jax_array__" else np.asarray(a), dtype, None)
    if (buffer := _buffer(a)) is not None:
        return _asarray(np.asarray(buffer), dtype, None)
    numbers: tuple[Any, ...] = (bool, int, float, complex)
    for number in numbers:
        if isinstance(a, number):  # of a subclass, such as IntEnum
            return _asarray(number(a), dtype, copy)
    return aval_of(a)  # raises


def _buffer(a: Any) -> memoryview | None:
    """Return the memory of bytes, of an `array.array` and the like; None for other objects."""
    try:
        return memoryview(a)
    except TypeError:
        return None


def _from_sequence(a: Sequence[Any], dtype: Any) -> Any:
    kinds: set[type] = set()
    leaf_types(a, kinds)
    if any(k is ArrayImpl or issubclass(k, Tracer) for k in kinds):
        return _stack_nested(a, dtype)
    if any(issubclass(k, np.ndarray) and k is not np.ndarray for k in kinds):
        _check_masks(a)
    try:
        host = np.asarray(a)
    except ValueError:
        raise promotion.error(
            ShapeError, "a nested sequence has rows of unequal lengths", "pad the rows to one length"
        ) from None
    if not host.dtype.isnative:
        host = native(host)
    named = dtype is not None
    if named and dtype.kind in "iu" and host.dtype.kind in "fO" and _are_ints(kinds):
        host = _ints(a, dtype)
    if not named:
        dtype = _sequence_dtype(a, kinds, host)
    if host.dtype.kind in "iu":
        for extreme in (host.min(), host.max()) if host.size else ():
            promotion.check_int(int(extreme), dtype)
    elif host.dtype.kind == "O" and (dtype.kind == "O" or not _are_numbers(kinds)):
        raise _no_number(host)
    out = trace_constants.placed(host.astype(dtypes.as_dtype(dtype)))
    return out if named else dtype_origins.made(out)


def _no_number(host: np.ndarray[Any, Any]) -> FtError:
    """Return the error for a sequence of objects, which names one that no array can hold, and its place."""
    place = next((i for i, x in np.ndenumerate(host) if not _fits(x)), (0,) * host.ndim)
    element = host[place]
    fix = "use numbers of at most 64 bits"
    if element is None:
        fix = "give a number: fnp.nan for a missing value; a function without `return` gives None"
    elif hasattr(type(element), "__float__") and not isinstance(element, int):
        fix = "convert it with float(...)"
    at = "".join(f"[{n}]" for n in place)
    return promotion.error(DtypeError, f"no array can hold {element!r:.60}, the element at {at}", fix)


def _fits(x: Any) -> bool:
    if isinstance(x, int):
        return -(2**63) <= x < 2**64
    return isinstance(x, (np.generic, float, complex))


def _are_numbers(kinds: set[type]) -> bool:
    return all(issubclass(kind, (np.generic, *promotion.NUMBERS)) for kind in kinds)


def _are_ints(kinds: set[type]) -> bool:
    return bool(kinds) and all(issubclass(k, int) for k in kinds)


def _ints(a: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert Python ints of which NumPy makes floats, since no 64-bit dtype holds all of them."""
    host = np.asarray(a, object)
    for extreme in (host.min(), host.max()):
        promotion.check_int(extreme, dtype)
    return host.astype(dtype)


def listed(a: Any) -> Any:
    """Return a list or tuple as an array; anything else, numbers too, as it is."""
    return asarray(a) if isinstance(a, (list, tuple)) else a


def operand_of(a: Any) -> Any:
    """Return an array or a number; a list becomes an array of default dtypes, anything else one of NumPy."""
    a = listed(a)
    return a if isinstance(a, (ArrayImpl, Tracer)) or type(a) in promotion.NUMBERS else np.asarray(a)


def _check_masks(a: Sequence[Any]) -> None:
    for item in a:
        if isinstance(item, np.ndarray):
            unmasked(item)
        elif isinstance(item, (list, tuple)):
            _check_masks(item)


def leaf_types(a: Any, result: set[type], depth: int = 1) -> None:
    """Add the types of the leaves of a nested sequence to `result`."""
    if depth > MOST_DIMENSIONS:
        raise too_many_dimensions("a sequence that is nested deeper than an array has dimensions (or contains itself)")
    kinds = set(map(type, a))
    result |= {k for k in kinds if not issubclass(k, (list, tuple, range))}
    if len(kinds) > 1 or not result >= kinds:
        for item in a:
            if isinstance(item, (list, tuple, range)):
                leaf_types(item, result, depth + 1)


def _sequence_dtype(a: Any, kinds: set[type], host: np.ndarray[Any, Any]) -> Any:
    if kinds <= promotion.NUMBERS:
        if host.dtype.kind == "b":
            return dtypes.bool_
        if host.dtype.kind in "iu":
            default = dtypes.default_int()
            low, high = promotion.bounds(default)
            fits = host.size == 0 or (low <= int(host.min()) and int(host.max()) <= high)
            if not fits and dtypes._NARROW.value:
                for extreme in (host.min(), host.max()):
                    int_dtype(int(extreme))  # raises
            return default if fits else host.dtype
        return {"f": dtypes.default_float(), "c": dtypes.default_complex()}.get(host.dtype.kind, host.dtype)
    mixed = len(kinds) > 1 and (host.dtype.kind == "O" or dtypes.STRONG_SCALARS.value)
    if mixed and _are_numbers(kinds):
        return dtypes.promotion_of([argument_aval(leaf) for leaf in np.asarray(a, object).flat])[0]
    return dtypes.default_float() if not kinds else host.dtype


def _stack_nested(a: Any, dtype: Any) -> Any:
    """Stack a nested sequence that contains arrays or tracers."""
    parts = [_stack_nested(item, None) if isinstance(item, (list, tuple, range)) else item for item in a]
    if not parts:
        return zeros((0,), dtype)
    shapes = {aval_of(p).shape for p in parts}
    if len(shapes) > 1:
        raise promotion.error(
            ShapeError, f"a sequence of arrays of shapes {sorted(shapes)} cannot become an array", "give all one shape"
        )
    parts = promotion.promote(*parts)
    joined = structural.concatenate(*[structural.reshape(p, shape=(1, *aval_of(p).shape)) for p in parts], dimension=0)
    return promotion.convert(joined, dtype or aval_of(joined).dtype)


def array(
    object: NestedArrayLike | None,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: DeviceLike = None,
) -> Array:
    """A new array from anything array-like.

    Args:
        object: array, NumPy array, number, or (nested) sequence of these.
        dtype: dtype of the result; by default as for `asarray`.
        copy: make a copy. Arrays are immutable, so it only matters where the original will be donated.
        order: accepted for compatibility with NumPy.
        ndmin: the least number of dimensions; missing ones are added in front, with size 1.
        device: the device of the result.

    Returns:
        An array of the shape of the nested sequences.

    >>> fnp.array([1.0, 2.0], ndmin=2).shape
    (1, 2)
    """
    made = asarray(object, dtype, order, copy=copy or None, device=device)
    lead = operator.index(ndmin) - aval_of(made).ndim
    return made if lead <= 0 else structural.reshape(made, shape=(1,) * lead + aval_of(made).shape)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array, in memory of its own.

    Args:
        a: array-like.
        order: accepted for compatibility with NumPy: None, "K" or "C"; arrays have no order in memory.

    Returns:
        An array of the same shape and dtype, in memory of its own.

    >>> fnp.copy(fnp.ones(2)).tolist()
    [1.0, 1.0]
    """
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: DeviceLike = None) -> Array:
    """Convert an array to another dtype; from complex to real, take the real part.

    An array that has the dtype already is returned as it is. (The array API standard would copy it by default, which
    makes no visible difference for immutable arrays; `copy=True` does.)

    Args:
        x: array-like.
        dtype: dtype of the result.
        copy: make a copy even if the dtype is the same.
        device: device or sharding to put it on; the default device if None.

    Returns:
        An array of the shape of x, in that dtype.

    >>> fnp.astype(fnp.asarray([1.7, -1.7]), int).tolist()
    [1, -1]
    """
    return asarray(asarray(x), dtype, copy=copy or None, device=device)


# ---------------------------------------------------------------------------------------------------------- one number
def full(
    shape: Shape, fill_value: NestedArrayLike, dtype: DTypeLike | None = None, *, device: DeviceLike = None
) -> Array:
    """An array of one value.

    Args:
        shape: int or sequence of ints.
        fill_value: number, or array that broadcasts to the shape.
        dtype: dtype of the result; by default that of the value.
        device: the device of the result.

    Returns:
        An array of that shape; the dtype is that of the value unless one is given.

    Raises:
        ShapeError: for an invalid shape.

    >>> fnp.full((2,), 7).tolist()
    [7, 7]
    """
    weak = dtype is None and not isinstance(fill_value, np.generic) and aval_of(listed(fill_value)).weak_type
    return _filled(shape_of(shape, "fnp.full"), fill_value, dtype, device, weak)


def _filled(sizes: tuple[int, ...], fill_value: Any, dtype: Any, device: Any, weak: bool = False) -> Any:
    """Return `full` of a checked shape, weakly typed or not."""
    if type(fill_value) is int and dtype is not None:  # only uint64 may hold it
        fill_value = promotion.host(fill_value, dtypes.as_dtype(dtype))
    aval = aval_of(listed(fill_value))
    result_dtype = aval.dtype if dtype is None else dtypes.as_dtype(dtype)
    if aval.shape and promotion.broadcast_shapes(sizes, aval.shape) != sizes:
        why = f"fnp.full of shape {sizes} with values {aval!r}"
        raise promotion.error(ShapeError, why, "give values that broadcast to the shape")
    if isinstance(fill_value, (Tracer, ArrayImpl, list, tuple)):
        made = promotion.broadcast(promotion.convert(asarray(fill_value), result_dtype, weak), sizes)
        return made if device is None or isinstance(made, Tracer) else xla.device_put(made, xla.find_device(device))
    ShapedArray(sizes, result_dtype)  # raises for sizes beyond 64 bits, before NumPy does
    value = promotion.host(fill_value, result_dtype)
    if state.trace.staging and value.ndim == 0:
        if weak:
            return promotion.broadcast(trace_constants.array_of(value, weak_type=True), sizes)
        return structural.full(sizes, value.item(), result_dtype) if sizes else asarray(value, result_dtype)
    if value.itemsize * math.prod(sizes) >= _MUCH:
        where = xla.find_device(device)
        if isinstance(where, xla.Device) and where.platform != "cpu":
            one = xla.device_put(value, None if device is None else where, weak_type=weak)
            return promotion.broadcast(one, sizes)
    return _put(np.broadcast_to(value, sizes), device, weak)


def _put(host: np.ndarray[Any, Any], device: Any, weak: bool) -> Any:
    where = None if device is None else xla.find_device(device)
    if isinstance(where, xla.Device) or where is None:
        host = np.asarray(host, order="C")
    return trace_constants.placed(host, where, weak_type=weak)  # to several devices it is copied part by part


def zeros(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> Array:
    """An array of zeros, float32 by default.

    Args:
        shape: int or tuple of ints.
        dtype: dtype of the result.
        device: device or sharding to put it on; the default device if None.

    Returns:
        An array of that shape; the default float unless a dtype is given.

    >>> fnp.zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    return _filled(shape_of(shape, "fnp.zeros"), 0, dtypes.default_float() if dtype is None else dtype, device)


def ones(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> Array:
    """An array of ones, float32 by default.

    Args:
        shape: int or tuple of ints.
        dtype: dtype of the result.
        device: device or sharding to put it on; the default device if None.

    Returns:
        An array of that shape; the default float unless a dtype is given.

    >>> fnp.ones(3, int).tolist()
    [1, 1, 1]
    """
    return _filled(shape_of(shape, "fnp.ones"), 1, dtypes.default_float() if dtype is None else dtype, device)


def empty(shape: Shape, dtype: DTypeLike | None = None, *, device: DeviceLike = None) -> Array:
    """An array of unspecified content: zeros.

    Args:
        shape: int or tuple of ints.
        dtype: dtype of the result.
        device: device or sharding to put it on; the default device if None.

    Returns:
        An array of that shape and dtype; its elements are zeros.

    >>> fnp.empty((2, 0)).shape
    (2, 0)
    """
    return _filled(shape_of(shape, "fnp.empty"), 0, dtypes.default_float() if dtype is None else dtype, device)


def _like(a: Any) -> Any:
    if hasattr(a, "is_reference"):  # kernels write fnp.zeros_like(ref)
        return a.aval.inner_aval
    return a.aval if isinstance(a, ShapeDtypeStruct) else argument_aval(listed(a))


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Shape | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """An array of one value, with the shape and dtype of another array.

    Args:
        a: array-like whose shape and dtype are taken.
        fill_value: number, or array that broadcasts to the shape.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device or sharding to put it on. If None, that of `a` if it is split over several devices and `shape` is
            None; else the default device.

    Returns:
        An array of the shape and dtype of `a`, unless others are given.

    >>> fnp.full_like(fnp.zeros(2), 3).tolist()
    [3.0, 3.0]
    """
    aval = _like(a)
    if device is None and shape is None:
        device = xla.split_of(a)
    sizes = aval.shape if shape is None else shape_of(shape, "fnp.full_like")
    made = _filled(sizes, fill_value, dtype or aval.dtype, device, dtype is None and aval.weak_type)
    return made if aval.explicit is None or device is not None or shape is not None else split_as(made, aval.explicit)


def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: DeviceLike = None
) -> Array:
    """Zeros with the shape and dtype of another array.

    Args:
        a: array-like whose shape and dtype are taken.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device or sharding to put it on. If None, that of `a` if it is split over several devices and `shape` is
            None; else the default device.

    Returns:
        An array of the shape and dtype of `a`, unless others are given.

    >>> fnp.zeros_like(fnp.arange(2)).tolist()
    [0, 0]
    """
    return full_like(a, 0, dtype, shape, device=device)


def ones_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: DeviceLike = None
) -> Array:
    """Ones with the shape and dtype of another array.

    Args:
        a: array-like whose shape and dtype are taken.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device or sharding to put it on. If None, that of `a` if it is split over several devices and `shape` is
            None; else the default device.

    Returns:
        An array of the shape and dtype of `a`, unless others are given.

    >>> fnp.ones_like(fnp.arange(2)).tolist()
    [1, 1]
    """
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: DeviceLike = None
) -> Array:
    """An array of unspecified content (zeros), with the shape and dtype of another array.

    Args:
        a: array-like whose shape and dtype are taken.
        dtype: dtype of the result; that of `a` if None.
        shape: shape of the result; that of `a` if None.
        device: device or sharding to put it on. If None, that of `a` if it is split over several devices and `shape` is
            None; else the default device.

    Returns:
        An array of that shape and dtype; its elements are zeros.

    >>> fnp.empty_like(fnp.ones(2)).shape
    (2,)
    """
    return full_like(a, 0, dtype, shape, device=device)


def is_static(x: Any) -> bool:
    """Return True if a value is known while the function runs and may decide on shapes."""
    return math.isfinite(x) if isinstance(x, (int, float, np.integer, np.floating)) else False
