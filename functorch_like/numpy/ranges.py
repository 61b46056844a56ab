"""Regular sequences and grids: arange, linspace, eye, triangles."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Tracer, aval_of, state
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.ir import trace_constants
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of, shape_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.guarded_sizes import traced_size
from functorch_like.primitives import elementwise, structural
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DeviceLike, DTypeLike, NestedArrayLike


def _known(value: Any, what: str) -> Any:
    """Return a number on which a shape depends."""
    if isinstance(value, Tracer):
        return traced_size(
            value,
            f"{what} has a traced argument ({aval_of(value)!r}), whose value determines the shape of the result",
            "make the argument static (static_argnums or static_argnames), or use fnp.linspace with a fixed num",
        )
    return np.asarray(value).item() if isinstance(value, (ArrayImpl, np.ndarray, np.generic)) else value


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Numbers from `start` (included) to `stop` (excluded) by `step`.

    Args:
        start: first number; a single argument is `stop`, and the start is 0.
        stop: the end, which is excluded.
        step: 1 by default; may be negative or a fraction.
        dtype: dtype of the result; by default that of the promoted arguments: int32 or float32. Numbers beyond the
            range of an integer dtype wrap around, as in NumPy, but the first two have to fit.
        device: the device of the result.

    Returns:
        A one-dimensional array.

    Raises:
        ArgumentError: for step 0.
        NumberError: for a start, or a second number, that an integer dtype cannot hold.
        ConcretizationError: for traced arguments, whose values would determine the shape.

    >>> fnp.arange(3).tolist(), fnp.arange(1, 2, 0.5).tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    endpoints = [v for v in (start, stop, step) if v is not None]
    bounds: Any = [None if v is None else _known(v, "fnp.arange") for v in (start, stop, step)]
    first, end, by = bounds
    if end is None:
        first, end = 0, first
    by = 1 if by is None else by
    if by == 0:
        raise promotion.error(
            ArgumentError, "fnp.arange takes a nonzero step, got 0", "use a positive or negative step"
        )
    result_dtype = dtypes.promote(*(aval_of(v) for v in endpoints))[0] if dtype is None else dtypes.as_dtype(dtype)
    span = (end - first) / by
    if not math.isfinite(span):
        raise promotion.error(
            ArgumentError, f"fnp.arange from {first} to {end} by {by} has no end", "use finite numbers"
        )
    size = max(0, math.ceil(span))
    ShapedArray((size,), result_dtype)  # raises for sizes beyond 64 bits, before NumPy does
    if result_dtype.kind in "iu" and size:
        # As in NumPy, the first two numbers have to fit into a dtype that was asked for; later ones wrap around.
        for number in (first, first + min(size - 1, 1 if dtype is not None else size) * by):
            promotion.check_int(int(number), result_dtype)
    if (
        state.trace.staging
        and size > 16
        and all(isinstance(v, int) for v in (first, by))
        and result_dtype.kind in "iuf"
    ):
        x = structural.iota(dtype=result_dtype, shape=(size,), dimension=0)
        of = lambda number: np.asarray(number).astype(result_dtype).item()  # a negative step is a large unsigned number
        x = x if by == 1 else elementwise.mul(x, structural.full_like(x, of(by)))
        return x if first == 0 else elementwise.add(x, structural.full_like(x, first))
    values = first + by * np.arange(size) if size else np.zeros(0)
    where = None if device is None else xla.find_device(device)
    return trace_constants.placed(values.astype(result_dtype), where)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: DTypeLike | None = None,
    axis: int = 0, *, device: DeviceLike = None,
) -> Any:  # fmt: skip
    """Numbers at equal distances.

    Args:
        start: first number, or array of first numbers.
        stop: last number, or array of last numbers.
        num: the number of elements.
        endpoint: whether `stop` is one of them.
        retstep: return the distance too.
        dtype: float32 by default.
        axis: the axis of the result along which the numbers lie, if start or stop is an array.
        device: the device of the result.

    Returns:
        An array of `num` elements along the axis; with `retstep` a pair of it and the distance.

    Raises:
        ArgumentError: for negative `num`.

    >>> fnp.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    n = operator.index(num)
    if n < 0:
        raise promotion.error(ArgumentError, f"fnp.linspace takes a non-negative num, got {n}", "use 0 or more")
    promoted = dtypes.promote(aval_of(start), aval_of(stop))[0]
    result_dtype = dtypes.inexact_dtype(promoted) if dtype is None else dtypes.as_dtype(dtype)
    start, stop = with_all_digits(widest(promoted), start, stop)
    out = _linspace(
        *promotion.numbers(start, stop), num=n, endpoint=bool(endpoint), axis=operator.index(axis), dtype=result_dtype
    )
    out = out if device is None else xla.device_put(out, xla.find_device(device))
    if not retstep:
        return out
    spaces = n - 1 if endpoint else n
    return out, asarray((stop - start) / spaces if spaces > 0 else math.nan, dtypes.inexact_dtype(promoted))


@eager_jit(static=("num", "endpoint", "axis", "dtype"), ints=True)
def _linspace(start: Any, stop: Any, num: int, endpoint: bool, axis: int, dtype: Any) -> Any:
    start, stop = aligned_in_widest(start, stop)
    aval, real = aval_of(start), dtypes.float64
    axis = axis_of(axis, aval.ndim + 1, "fnp.linspace")
    shape = (*aval.shape[:axis], num, *aval.shape[axis:])
    spaces = max(num - 1 if endpoint else num, 1)
    others = tuple(d for d in range(len(shape)) if d != axis)
    spread = lambda v: structural.broadcast_in_dim(v, shape=shape, broadcast_dimensions=others)
    count = structural.iota(dtype=real, shape=shape, dimension=axis)
    part = elementwise.div(count, structural.full_like(count, spaces))
    part = part if real == aval.dtype else structural.convert_element_type(part, new_dtype=aval.dtype)
    # The weighted mean of both ends is free of overflow. XLA divides by multiplying with a rounded 1 / spaces, so the
    # last part may miss 1.
    rest = elementwise.sub(structural.full_like(part, 1), part)
    out = elementwise.add(elementwise.mul(spread(start), rest), elementwise.mul(spread(stop), part))
    if endpoint and num > 1:
        out = elementwise.select_n(elementwise.eq(count, structural.full_like(count, spaces)), out, spread(stop))
    if dtypes.is_integer(dtype):
        out = whole_below(out, elementwise.max(elementwise.abs(spread(start)), elementwise.abs(spread(stop))))
    return promotion.convert(out, dtype)


# ---------------------------------------------------------------------------------------------------------- precision
# Sequences are computed in float64, of which a result is the nearest number of its dtype.
def widest(*kinds: Any) -> Any:
    """Return the dtype with most digits: complex128 if a dtype is complex, else float64."""
    return dtypes.complex128 if any(map(dtypes.is_complex, kinds)) else dtypes.float64


def with_all_digits(dtype: Any, *values: Any) -> tuple[Any, ...]:
    """Return Python's numbers in a dtype, since by themselves they would count as float32; other values unchanged."""
    return tuple(np.asarray(v, dtype)[()] if type(v) in promotion.NUMBERS else v for v in values)


def aligned_in_widest(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands of one shape, in the dtype with most digits."""
    x, y = promotion.align_inexact(x, y)
    wide = widest(aval_of(x).dtype)
    return promotion.convert(x, wide), promotion.convert(y, wide)


def whole_below(x: Any, size: Any) -> Any:
    """Round x down, unless rounding errors put it below a whole number; `size` is that of the numbers it comes from."""
    near = elementwise.round(x, rounding_method=1)
    error = elementwise.mul(size, structural.full_like(size, 4 * float(dtypes.finfo(aval_of(size).dtype).eps)))
    return elementwise.select_n(
        elementwise.le(elementwise.abs(elementwise.sub(x, near)), error), elementwise.floor(x), near
    )


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Powers of `base`, with exponents at equal distances.

    Args:
        start: first exponent.
        stop: last exponent.
        num: int: the number of elements.
        endpoint: include `stop`.
        base: the base of the powers.
        dtype: dtype of the result.
        axis: int: the axis of the result along which the numbers lie, if `start` or `stop` is an array.

    Returns:
        An array of `num` elements along the axis.

    >>> fnp.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    promoted = dtypes.inexact_dtype(dtypes.promote(*(aval_of(v) for v in (start, stop, base)))[0])
    wide = widest(promoted)
    (base,) = with_all_digits(wide, base)
    exponents = linspace(start, stop, num, endpoint, dtype=wide, axis=axis)
    return _power(*promotion.numbers(base, exponents), dtype=promoted if dtype is None else dtypes.as_dtype(dtype))


@eager_jit(static=("dtype",))
def _power(base: Any, exponents: Any, dtype: Any) -> Any:
    return promotion.convert(elementwise.pow(*promotion.align_inexact(base, exponents)), dtype)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *, device: DeviceLike = None
) -> Array:
    """Ones on a diagonal, zeros elsewhere.

    Args:
        N: rows.
        M: columns; as many as rows by default.
        k: the diagonal: 0 the main one, positive above it.
        dtype: float32 by default.
        device: the device of the result.

    Returns:
        (N, M), ones on the diagonal and zeros elsewhere.

    >>> fnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = shape_of((N, N if M is None else M), "fnp.eye")
    result_dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    k = _offset(k, "fnp.eye")
    if state.trace.staging or isinstance(k, Tracer):
        return structural.convert_element_type(diagonal_band(shape, k, elementwise.eq), new_dtype=result_dtype)
    ShapedArray(shape, result_dtype)  # raises for sizes beyond 64 bits, before NumPy does
    values = np.eye(shape[0], shape[1], k, dtype=result_dtype)
    return trace_constants.placed(values, None if device is None else xla.find_device(device))


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Args:
        n: int: number of rows and columns.
        dtype: dtype of the result.

    Returns:
        (n, n), ones on the diagonal and zeros elsewhere.

    >>> fnp.identity(2, int).tolist()
    [[1, 0], [0, 1]]
    """
    return eye(n, dtype=dtype)


def _offset(k: Any, what: str) -> Any:
    """Return the number of a diagonal: an int, or a traced integer."""
    if not isinstance(k, Tracer):
        return operator.index(k)
    aval = aval_of(k)
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise promotion.error(
            DtypeError, f"{what} takes an integer k, got {aval!r}", "give an int, or an integer scalar"
        )
    return k


def diagonal_band(shape: tuple[int, ...], k: Any, compare: Any) -> Any:
    """Return booleans over the last two dimensions: `compare(row + k, column)`."""
    ndim = len(shape)
    rows = structural.iota(dtype=dtypes.int32, shape=shape, dimension=ndim - 2)
    columns = structural.iota(dtype=dtypes.int32, shape=shape, dimension=ndim - 1)
    offset = (
        promotion.broadcast(promotion.convert(k, dtypes.int32), shape)
        if isinstance(k, Tracer)
        else structural.full_like(rows, k)
    )
    return compare(elementwise.add(rows, offset), columns)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Ones on and below a diagonal, zeros above.

    Args:
        N: int: number of rows.
        M: int: number of columns; `N` if None.
        k: int: the diagonal; above the main one if positive.
        dtype: dtype of the result.

    Returns:
        (N, M), ones and zeros.

    >>> fnp.tri(2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    shape = shape_of((N, N if M is None else M), "fnp.tri")
    result_dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    return structural.convert_element_type(
        diagonal_band(shape, _offset(k, "fnp.tri"), elementwise.ge), new_dtype=result_dtype
    )


@with_kernel(1)
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle of matrices: zeros above a diagonal.

    Args:
        m: array of at least two dimensions.
        k: the diagonal.

    Returns:
        An array of the shape and dtype of m.

    Raises:
        ShapeError: for fewer dimensions.

    >>> fnp.tril(fnp.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    return _part(m, k, lower=True)


@with_kernel(1)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle of matrices: zeros below a diagonal.

    Args:
        m: array of shape (..., m, n).
        k: int: the diagonal that bounds the triangle; above the main one if positive.

    Returns:
        An array of the shape and dtype of m.

    >>> fnp.triu(fnp.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    return _part(m, k, lower=False)


def _part(m: Any, k: Any, lower: bool) -> Any:
    k = _offset(k, "fnp.tril" if lower else "fnp.triu")
    return (_triangle_body if isinstance(k, Tracer) else _triangle)(asarray(m), k, lower=lower)


def _triangle_body(m: Any, k: Any, lower: bool) -> Any:
    aval = aval_of(m)
    if aval.ndim < 2:
        raise promotion.error(
            ShapeError, f"a triangle of {aval!r}, which is not a matrix", "give an array of two dimensions or more"
        )
    mask = diagonal_band(aval.shape, k, elementwise.ge if lower else elementwise.le)
    return elementwise.select_n(mask, structural.full_like(m, 0), m)


_triangle = eager_jit(static=("k", "lower"))(_triangle_body)


def meshgrid(*xi: NestedArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Coordinates on a grid, one array for each axis.

    Args:
        xi: one-dimensional arrays.
        copy: ignored, since arrays are immutable.
        sparse: leave dimensions of size 1 to broadcasting.
        indexing: "xy" (the first array runs along columns) or "ij" (along rows).

    Returns:
        A list of arrays, as many as there are arguments, each of as many dimensions.

    Raises:
        ArgumentError: for another `indexing`.

    >>> [a.tolist() for a in fnp.meshgrid(fnp.arange(2), fnp.arange(2))]
    [[[0, 1], [0, 1]], [[0, 0], [1, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise promotion.error(ArgumentError, f"indexing={indexing!r}", "use 'xy' or 'ij'")
    arrays = [asarray(x) for x in xi]
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [aval_of(a).size for a in arrays]
    shape = [0] * len(order)
    for axis, n in zip(order, sizes, strict=True):
        shape[axis] = n
    out: list[Any] = []
    for axis, a in zip(order, arrays, strict=True):
        flat = structural.reshape(a, shape=tuple(n if d == axis else 1 for d, n in enumerate(shape)))
        out.append(flat if sparse else promotion.broadcast(flat, tuple(shape)))
    return out


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of the elements of an array of a given shape.

    Args:
        dimensions: the shape.
        dtype: dtype of the result; the default int if None.
        sparse: give one array for each dimension, with dimensions of size 1 left to broadcasting.

    Returns:
        An array of shape `(len(dimensions), *dimensions)`; with `sparse` a tuple of arrays.

    Raises:
        ShapeError: for sizes that are negative or not ints.

    >>> fnp.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape = shape_of(tuple(dimensions), "fnp.indices")
    result_dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    parts = meshgrid(*(arange(n, dtype=result_dtype) for n in shape), sparse=sparse, indexing="ij")
    if sparse:
        return tuple(parts)
    if not shape:
        return asarray(np.zeros(0, result_dtype))
    return structural.concatenate(*(structural.reshape(part, shape=(1, *shape)) for part in parts), dimension=0)
