"""Reading by index: x[...], take, take_along_axis. Static basic indices become slices; only index arrays gather.

Positions that are data and out of bounds are clamped to the nearest element; `x.at[i].get(mode=...)` has other modes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import ArrayImpl, aval_of
from functorch_like.errors import ArgumentError, BoundsError, NonConcreteBooleanIndexError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.index_plan import Item, Mask, Nothing, Plan, is_plain, parse
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.indexing import gather_and_scatter_add
from functorch_like.primitives.updates import dynamic_slice
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

#: The users' names of modes for positions out of bounds, and the primitives' modes.
MODES = {
    None: "clip",
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "promise_in_bounds": "promise_in_bounds",
    "wrap": "wrap",
}


def mode_of(mode: Any, default: str, what: str) -> str:
    """Return the primitives' mode for a mode argument ("wrap" is computed before them)."""
    if mode is None:
        return default
    name = getattr(mode, "name", mode)
    name = name.lower() if isinstance(name, str) else name
    name = {"fill_or_drop": "fill"}.get(name, name)
    if name not in MODES:
        raise promotion.error(
            ArgumentError,
            f"{what}: mode={mode!r} is unknown",
            "use 'clip', 'fill' ('drop'), 'wrap' or 'promise_in_bounds'",
        )
    return MODES[name]


@eager_jit(ints=True)
def _row(x: Any, i: Any) -> Any:
    """Return x[i] for a position in bounds."""
    shape = aval_of(x).shape
    zero = np.zeros((), aval_of(i).dtype)
    starts = [i] + [zero] * (len(shape) - 1)
    out = dynamic_slice.dynamic_slice(x, *starts, slice_sizes=(1, *shape[1:]))
    return structural.reshape(out, shape=shape[1:])


def getitem(x: Any, index: Any, *, mode: Any = None, fill_value: Any = None) -> Any:
    """x[index], or `x.at[index].get(mode=mode, fill_value=fill_value)` where a mode is given."""
    if mode is not None:
        return x.at[index].get(mode=mode, fill_value=fill_value)
    try:
        if type(x) is ArrayImpl:
            shape = x.aval.shape
            if type(index) is int:
                n = shape[0] if shape else 0
                if -n <= index < n:
                    return _row(x, index if index >= 0 else index + n)
            plan = plan_of(index, shape, dynamic=True)
            if all(v.__class__ is int or is_plain(v) for v in plan.values):
                return _get_kernel(x, plan.values, plan.items)
            plan = parse(index, shape)
        else:
            plan = plan_of(index, aval_of(x).shape)
    except Nothing:
        return structural.full((0, *aval_of(x).shape), 0, aval_of(x).dtype)
    return get(x, plan)


def plan_of(
    index: Any, shape: tuple[int, ...], dynamic: bool = False, outside: str | None = None, wrap: bool = True
) -> Plan:
    """Parse an index for reading, as `parse`; raise for traced masks of unknown size."""
    try:
        return parse(index, shape, dynamic, sized=True, outside=outside, wrap=wrap)
    except Mask as e:
        raise promotion.error(
            NonConcreteBooleanIndexError,
            f"an array of shape {shape} is indexed by a traced mask ({aval_of(e.mask)!r}), so the "
            "shape of the result is unknown",
            "keep the shape: fnp.where(mask, x, 0); or fnp.nonzero(mask, size=n) for a known number of indices",
        ) from None


# ------------------------------------------------------------------------------------------------------------- reading
def get(
    x: Any,
    plan: Plan,
    mode: str = "clip",
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """Gather the elements that a plan selects."""
    if plan.advanced:
        return _gathered(x, plan, mode, fill_value, indices_are_sorted, unique_indices)
    dims = [item for item in plan.items if item[0] != "new"]
    if any(item[0] == "dyn" for item in dims) and mode == "fill":
        return _gathered(x, plan, mode, fill_value, indices_are_sorted, unique_indices)
    x = _windows(x, dims, plan.values, mode)
    x = _cuts(x, dims)
    return _final(x, plan.items)


def _windows(x: Any, dims: list[Item], values: tuple[Any, ...], mode: str) -> Any:
    """Apply all starts that are data in one dynamic_slice."""
    if not any(item[0] in ("dyn", "win") for item in dims):
        return x
    shape = aval_of(x).shape
    _not_empty(x, [d for d, item in enumerate(dims) if item[0] == "dyn"])
    starts = [
        position(values[item[1]], n, mode) if item[0] in ("dyn", "win") else None
        for item, n in zip(dims, shape, strict=True)
    ]
    kinds = {aval_of(s).dtype for s in starts if s is not None}
    wide = dtypes.int32 if all(k == dtypes.int32 or k.itemsize < 4 for k in kinds) else dtypes.int64
    starts = [structural.full((), 0, wide) if s is None else promotion.convert(s, wide) for s in starts]
    sizes = tuple(1 if i[0] == "dyn" else i[2] if i[0] == "win" else n for i, n in zip(dims, shape, strict=True))
    return dynamic_slice.dynamic_slice(x, *starts, slice_sizes=sizes)


def _not_empty(x: Any, dims: list[int]) -> None:
    """Raise for an empty dimension, which has no nearest element."""
    for d in dims:
        if aval_of(x).shape[d] == 0:
            raise promotion.error(
                BoundsError, f"axis {d} of {aval_of(x)!r} is empty and has no positions", "test x.size first"
            )


def position(i: Any, n: int, mode: str = "clip") -> Any:
    """Return positions as primitives take them: signed, and counted from 0."""
    if type(i) is int:
        return np.asarray(i, np.int32 if n < 2**31 else np.int64)
    if type(i) is np.ndarray:
        return _wide(i) % n if mode == "wrap" and n else np.where(i < 0, i + i.dtype.type(n), i)
    dtype = aval_of(i).dtype
    if not dtypes.is_unsigned(dtype):
        if dtype.itemsize < 4:
            i = promotion.convert(i, dtypes.int32)
        zero, size = structural.full_like(i, 0), structural.full_like(i, n)
        if mode == "wrap" and n:
            return elementwise.rem(elementwise.add(elementwise.rem(i, size), size), size)
        return elementwise.select_n(elementwise.lt(i, zero), i, elementwise.add(i, size))
    if mode != "wrap" or not n:
        return i
    i = promotion.convert(i, dtypes.int32) if dtype.itemsize < 4 else i
    return elementwise.rem(i, structural.full_like(i, n))


def _wide(i: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return positions in a dtype that holds every size."""
    return i.astype(np.int32) if i.dtype.itemsize < 4 else i


def _cuts(x: Any, dims: list[Item]) -> Any:
    """Apply static positions and slices: one slice primitive, and one rev for negative steps."""
    shape = aval_of(x).shape
    low, high, steps, turned, whole = [], [], [], [], True
    for d, (item, n) in enumerate(zip(dims, shape, strict=True)):
        start, size, step = (item[1], 1, 1) if item[0] == "at" else item[1:] if item[0] == "cut" else (0, n, 1)
        if step < 0:
            turned.append(d)
            start, step = start + (size - 1) * step if size else 0, -step
        whole = whole and start == 0 and size == n
        low.append(start)
        high.append(start + (size - 1) * step + 1 if size else start)
        steps.append(step if size > 1 else 1)
    if not whole:
        strides = tuple(steps) if any(s != 1 for s in steps) else None
        x = structural.slice(x, start_indices=tuple(low), limit_indices=tuple(high), strides=strides)
    return structural.rev(x, dimensions=tuple(turned)) if turned else x


def _final(x: Any, items: tuple[Item, ...]) -> Any:
    """Drop the dimensions of positions, and insert new ones."""
    sizes = iter(aval_of(x).shape)
    shape: list[int] = []
    for item in items:
        if item[0] == "new":
            shape.append(1)
        else:
            n = next(sizes)
            if item[0] not in ("at", "dyn"):
                shape.append(n)
    return x if tuple(shape) == aval_of(x).shape else structural.reshape(x, shape=tuple(shape))


# ----------------------------------------------------------------------------------------------------------- gathering
def is_position(item: Item) -> bool:
    """Return True if an item belongs to the index arrays: NumPy counts ints among them where there is one."""
    return item[0] in ("arr", "at", "dyn")


def batch_place(items: tuple[Item, ...]) -> int:
    """Return the number of dimensions of the result before those of the index arrays."""
    at = [k for k, item in enumerate(items) if is_position(item)]
    together = at == list(range(at[0], at[0] + len(at))) and not any("apart" in items[k] for k in at[1:])
    return at[0] if together else 0


def index_vectors(positions: list[Any]) -> Any:
    """Return index arrays, broadcast, as vectors in a new last dimension."""
    positions = promotion.promote_and_broadcast(*positions)
    shape = aval_of(positions[0]).shape
    columns = [structural.reshape(p, shape=(*shape, 1)) for p in positions]
    return columns[0] if len(columns) == 1 else structural.concatenate(*columns, dimension=len(shape))


def _gathered(x: Any, plan: Plan, mode: str, fill_value: Any, is_sorted: bool, unique: bool) -> Any:
    dims = [item for item in plan.items if item[0] != "new"]
    basic = [
        item if not is_position(item) else ("cut", 0, n, 1) for item, n in zip(dims, aval_of(x).shape, strict=True)
    ]
    indexed = [d for d, item in enumerate(dims) if is_position(item)]
    sizes = aval_of(x).shape
    x = _cuts(_windows(x, basic, plan.values, mode), basic)
    positions = []
    for d in indexed:
        value = dims[d][1] if dims[d][0] == "at" else plan.values[dims[d][1]]
        positions.append(position(value, sizes[d], mode))
    vectors = index_vectors(positions)
    if aval_of(vectors).size:
        _not_empty(x, indexed)
    batch = aval_of(vectors).ndim - 1
    place = batch_place(plan.items)
    before = sum(item[0] != "new" for item in plan.items[:place])  # slices that come before the index arrays
    shape = aval_of(x).shape
    kept = [d for d in range(len(shape)) if d not in indexed]
    offset = tuple(k if k < before else k + batch for k in range(len(kept)))
    out = gather_and_scatter_add.gather(
        x,
        vectors,
        dimension_numbers=gather_and_scatter_add.GatherDimensionNumbers(offset, tuple(indexed), tuple(indexed)),
        slice_sizes=tuple(min(n, 1) if d in indexed else n for d, n in enumerate(shape)),
        mode="clip" if mode == "wrap" else mode,
        fill_value=fill_value,
        indices_are_sorted=is_sorted,
        unique_indices=unique,
    )
    return structural.reshape(out, shape=result_shape(plan.items, out, place, batch)) if ("new",) in plan.items else out


def result_shape(items: tuple[Item, ...], out: Any, place: int, batch: int) -> tuple[int, ...]:
    """Return the shape of a result read by index arrays, with the new dimensions."""
    sizes = list(aval_of(out).shape)
    before = sum(item[0] != "new" for item in items[:place])
    lead, rest = sizes[before : before + batch], iter(sizes[:before] + sizes[before + batch :])
    shape: list[int] = []
    for k, item in enumerate(items):
        if k == place:
            shape += lead
        if not is_position(item):
            shape.append(1 if item[0] == "new" else next(rest))
    return tuple(shape)


@eager_jit(static=("items", "mode", "fill_value", "indices_are_sorted", "unique_indices"), ints=True)
def _get_kernel(
    x: Any, values: Any, items: Any, mode: str = "clip", fill_value: Any = None, indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:  # fmt: skip
    return get(x, Plan(items, tuple(values)), mode, fill_value, indices_are_sorted, unique_indices)


# ------------------------------------------------------------------------------------------------------------- take
@with_kernel(2, values=("fill_value",))
def take(
    a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None,
    unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Elements at positions along an axis.

    Args:
        a: array.
        indices: integers, or an array or list of integers.
        axis: the axis; None for the flattened array.
        out: not supported: arrays are immutable.
        mode: the values at positions out of bounds: "fill" (default: NaN, or the most extreme integer), "clip" (the
            nearest element, and the first for negative ones), "wrap" (modulo the size), "promise_in_bounds".
        unique_indices: promise that no position occurs twice.
        indices_are_sorted: promise that positions ascend.
        fill_value: value for mode "fill".

    Returns:
        An array of the dtype of `a`, with the dimensions of the indices in place of the axis.

    Raises:
        BoundsError: for indices that are not integers.

    >>> fnp.take(fnp.asarray([10, 20, 30]), [2, 0]).tolist()
    [30, 10]
    """
    promotion.no_out(out, "fnp.take")
    a = asarray(a)
    if axis is None:
        a, axis = structural.reshape(a, shape=(aval_of(a).size,)), 0
    d = axis_of(axis, aval_of(a).ndim, "fnp.take")
    where = indices if promotion.is_array(indices) else np.asarray(indices)
    where = where.astype(dtypes.default_int()) if isinstance(where, np.ndarray) and where.size == 0 else where
    where = promotion.convert(where, dtypes.default_int()) if aval_of(where).dtype == dtypes.bool_ else where
    items = tuple(("cut", 0, n, 1) if k != d else ("arr", 0) for k, n in enumerate(aval_of(a).shape))
    how = mode_of(mode, "fill", "fnp.take")
    if (isinstance(where, np.ndarray) and not dtypes.is_integer(where.dtype)) or not dtypes.is_integer(
        aval_of(where).dtype
    ):
        raise promotion.error(
            BoundsError, f"positions must be integers, got {aval_of(where)!r}", "convert them with astype('int32')"
        )
    if mode == "clip":  # as in NumPy, negative positions do not count from the end then
        where = (
            np.maximum(where, 0)
            if isinstance(where, np.ndarray)
            else elementwise.max(where, structural.full_like(where, 0))
        )
    fill = gather_and_scatter_add.fill_parameter(fill_value)
    return _get_kernel(a, (where,), items, how, fill, indices_are_sorted, unique_indices)


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool = True,
) -> Array:
    """Elements at positions along an axis, which may differ for each of the other indices, as from `argsort`.

    Args:
        arr: array.
        indices: integers, with as many dimensions as the array, broadcasting outside of the axis.
        axis: along which; of the flattened array if None.
        mode: as for `take`.
        fill_value: as for `take`.
        wrap_negative_indices: False where negative positions are out of bounds, instead of counting from the end.

    Returns:
        An array of the dtype of `arr`, and the shape of the indices along the axis.

    Raises:
        ShapeError: where the numbers of dimensions differ.

    >>> x = fnp.asarray([[3, 1, 2]])
    >>> fnp.take_along_axis(x, fnp.argsort(x, axis=1), axis=1).tolist()
    [[1, 2, 3]]
    """
    if axis is None:
        arr, axis = structural.reshape(arr, shape=(aval_of(arr).size,)), 0
    n = aval_of(arr).ndim
    if aval_of(indices).ndim != n:
        raise promotion.error(
            ShapeError,
            f"fnp.take_along_axis of {aval_of(arr)!r} at {aval_of(indices)!r}: the numbers of dimensions differ",
            "give indices with as many dimensions",
        )
    if not dtypes.is_integer(aval_of(indices).dtype):
        raise promotion.error(
            BoundsError, f"fnp.take_along_axis at {aval_of(indices)!r}", "give integers; a mask selects by fnp.where"
        )
    d = axis_of(axis, n, "fnp.take_along_axis")
    how = mode_of(mode, "fill", "fnp.take_along_axis")
    fill = gather_and_scatter_add.fill_parameter(fill_value)
    return _along(arr, indices, d, how, fill, bool(wrap_negative_indices))


def elements(x: Any, indices: Any) -> Any:
    """Elements of a vector at positions of any shape, none of which is negative; beyond the end the last one."""
    flat = structural.reshape(indices, shape=(aval_of(indices).size,))
    found = _along.inline(x, flat, 0, "clip", None, wrap=False)
    return structural.reshape(found, shape=aval_of(indices).shape)


@eager_jit(static=("d", "mode", "fill_value", "wrap"))
def _along(x: Any, indices: Any, d: int, mode: str, fill_value: Any, wrap: bool) -> Any:
    shape, index_shape = aval_of(x).shape, aval_of(indices).shape
    if aval_of(indices).size:
        _not_empty(x, [d])
    others = tuple(k for k in range(len(shape)) if k != d)
    lead = promotion.broadcast_shapes(tuple(shape[k] for k in others), tuple(index_shape[k] for k in others))
    full = lambda n: (*lead[:d], n, *lead[d:])
    x, indices = (
        promotion.broadcast(x, full(shape[d])),
        promotion.broadcast(position(indices, shape[d], mode) if wrap else indices, full(index_shape[d])),
    )
    vectors = structural.reshape(indices, shape=(*full(index_shape[d]), 1))
    return gather_and_scatter_add.gather(
        x,
        vectors,
        dimension_numbers=gather_and_scatter_add.GatherDimensionNumbers((), (d,), (d,), others, others),
        slice_sizes=tuple(min(n, 1) for n in aval_of(x).shape),
        mode="clip" if mode == "wrap" else mode,
        fill_value=fill_value,
        indices_are_sorted=False,
        unique_indices=False,
    )
