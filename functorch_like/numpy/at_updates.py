"""Updates by index: `x.at[idx].set(value)` and its relatives. Arrays are immutable; each returns a new one.

Positions that are out of bounds are dropped (see `mode`). Where an index occurs twice, `add`, `multiply`, `min` and
`max` use all values, and `set` keeps one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.calling.api_boundary import wrap_public_function
from functorch_like.core import ArrayImpl, Tracer, aval_of, state
from functorch_like.errors import (
    ArgumentError,
    DtypeError,
    ImmutableError,
    NonConcreteBooleanIndexError,
    ShapeError,
    nearest,
)
from functorch_like.frames import without_frames
from functorch_like.numpy import promotion
from functorch_like.numpy.binary import divide, power
from functorch_like.numpy.creation import asarray, ones_like
from functorch_like.numpy.index_plan import Item, Mask, Nothing, Plan, is_plain, parse, with_positions_as_data
from functorch_like.numpy.indexing import (
    _get_kernel,
    batch_place,
    get,
    getitem,
    index_vectors,
    is_position,
    mode_of,
    plan_of,
    position,
)  # fmt: skip
from functorch_like.numpy.logic import truth
from functorch_like.numpy.selection import where
from functorch_like.numpy.unary import negative
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.indexing import gather_and_scatter_add
from functorch_like.primitives.indexing.dimension_numbers import ScatterDimensionNumbers
from functorch_like.primitives.updates import dynamic_slice
from functorch_like.primitives.updates.scatter import scatter, scatter_max, scatter_min, scatter_mul
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Index

_PRIMITIVES = {
    "set": scatter,
    "add": gather_and_scatter_add.scatter_add,
    "mul": scatter_mul,
    "min": scatter_min,
    "max": scatter_max,
}
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": elementwise.add,
    "mul": elementwise.mul,
    "min": elementwise.min,
    "max": elementwise.max,
}


class IndexUpdate:
    """`x.at`: index it, then call a method of the result, which returns a changed copy.

    The methods are `set`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max`, `apply` and `get`.

    >>> fnp.zeros(3).at[1].set(5).tolist()
    [0.0, 5.0, 0.0]
    """

    __slots__ = ("array",)
    __iter__ = None  # without it, Python would go through x.at[0], x.at[1], ... without end

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Index) -> IndexRef:
        return IndexRef(self.array, index)

    @without_frames
    def __setitem__(self, index: Index, value: Any) -> Never:
        raise _no_assignment("x = x.at[i].set(value)")

    @without_frames
    def __call__(self, *index: Any) -> Never:
        raise ArgumentError(
            "x.at is indexed, not called", fix="x = x.at[i].set(value), in square brackets", at=_user_line()
        )

    if not TYPE_CHECKING:  # type checkers find missing attributes without it

        @without_frames
        def __getattr__(self, name: str) -> Never:
            method = name if hasattr(IndexRef, name) else "set"
            raise AttributeError(f"x.at has no attribute {name!r}; use x.at[i].{method}(value)", name=name)

    def __repr__(self) -> str:
        return f"IndexUpdate({self.array!r})"


class IndexRef:
    """`x.at[idx]`: its methods return updated copies.

    All take `indices_are_sorted` and `unique_indices`, promises that make them faster and are not checked, and `mode`:
    "drop" (default: positions out of bounds are left out), "clip" (moved to the nearest element), "wrap" (taken
    modulo the size) or "promise_in_bounds". With `wrap_negative_indices=False` negative positions are out of bounds,
    instead of counting from the end.
    """

    __slots__ = ("array", "index")
    _remedy = "call one of its methods: x.at[i].set(value), x.at[i].add(value), x.at[i].get()"

    def __init__(self, array: Any, index: Index) -> None:
        self.array, self.index = array, index

    @without_frames
    def __iadd__(self, values: Any) -> Never:
        raise _no_assignment("x = x.at[i].add(value)")

    @without_frames
    def __isub__(self, values: Any) -> Never:
        raise _no_assignment("x = x.at[i].subtract(value)")

    @without_frames
    def __imul__(self, values: Any) -> Never:
        raise _no_assignment("x = x.at[i].multiply(value)")

    @without_frames
    def __itruediv__(self, values: Any) -> Never:
        raise _no_assignment("x = x.at[i].divide(value)")

    @without_frames
    def __ipow__(self, values: Any) -> Never:
        raise _no_assignment("x = x.at[i].power(value)")

    if not TYPE_CHECKING:  # type checkers find missing attributes without it

        @without_frames
        def __getattr__(self, name: str) -> Never:
            methods = [
                method for method in vars(IndexRef) if not method.startswith("_") and method not in self.__slots__
            ]
            remedy = nearest({"sub": "subtract", "div": "divide", "pow": "power"}.get(name, name), methods)
            raise AttributeError(
                f"x.at[i] has no method {name!r}{remedy or '; it has ' + ', '.join(methods)}", name=name
            )

    def __repr__(self) -> str:
        return f"IndexRef({self.array!r}, {self.index!r})"

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] = values; of several values for one element any may stay (on CPUs the last)."""
        return _update("set", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] += values, once for each time an index occurs."""
        return _update("add", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] -= values, once for each time an index occurs."""
        return _update("sub", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] *= values."""
        return _update("mul", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    mul = multiply

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] = minimum(x[idx], values)."""
        return _update("min", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] = maximum(x[idx], values)."""
        return _update("max", self, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)

    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] /= values. If x has integers, all elements become floats."""
        values = asarray(values) if isinstance(values, (list, tuple)) else values
        own = aval_of(self.array)
        dtype, wide = dtypes.inexact_dtype(own.dtype), _wider("divide", self.array, values)
        if wide is not None and dtypes.is_inexact(wide):
            wide = dtypes.result_type(dtype, wide)
        ones = ones_like(self.array, wide)
        ones = _update(
            "mul", IndexRef(ones, self.index), values, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )
        return promotion.convert(divide(self.array, ones), dtype, own.weak_type)  # quotients of integers are floats

    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] **= values, in the dtype of x."""
        values = _as_array(self.array, values)
        by_floats = dtypes.is_integer(aval_of(self.array).dtype) and dtypes.is_inexact(aval_of(values).dtype)
        ones = IndexRef(ones_like(self.array, dtypes.float64 if by_floats else None), self.index)
        ones = _update("mul", ones, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if by_floats:  # float64 cannot represent all integers of 64 bits
            return where(ones == 1, self.array, _cast(self.array, power(self.array, ones)))
        return power(self.array, ones)

    def apply(
        self,
        func: Callable[[Array], Array],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x, with x[idx] = func(x[idx]), once for each time an index occurs.

        Derivatives by reverse mode need `unique_indices` where an index occurs twice, or may do so under `jit`; so do
        functions that close over arrays.
        """
        x = self.array
        if not unique_indices:
            from functorch_like.numpy.at_apply import apply_repeatedly, repeated

            how = mode_of(mode, "fill", "x.at[...].apply")
            outside = _outside_mode(mode, how, wrap_negative_indices)
            plan = plan_of(self.index, aval_of(x).shape, outside=outside, wrap=wrap_negative_indices)
            places = repeated(x, plan, how)
            if places is not None:
                return apply_repeatedly(x, places, func)
        found = self.get(mode="clip" if mode is None else mode, wrap_negative_indices=wrap_negative_indices)
        return self.set(func(found), indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
                        wrap_negative_indices=wrap_negative_indices)  # fmt: skip

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: ArrayLike | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x[idx]; positions out of bounds are clamped, or give `fill_value` (by default NaN) in mode "fill"."""
        x, how = self.array, mode_of(mode, "clip", "x.at[...].get")
        try:
            outside = _outside_mode(mode, how, wrap_negative_indices)
            plan = plan_of(self.index, aval_of(x).shape, outside=outside, wrap=wrap_negative_indices)
        except Nothing:
            return getitem(x, False)
        if fill_value is not None:
            fill_value = gather_and_scatter_add.fill_parameter(np.asarray(fill_value).item())
        if type(x) is ArrayImpl and all(map(is_plain, plan.values)):
            return _get_kernel(x, plan.values, plan.items, how, fill_value, indices_are_sorted, unique_indices)
        return get(x, plan, how, fill_value, indices_are_sorted, unique_indices)


for _name, _method in vars(IndexRef).copy().items():
    if not _name.startswith("_"):
        setattr(IndexRef, _name, wrap_public_function(_method, name=_name))


def _user_line() -> str:
    return str(source_info.user_line(state.source) or "")


def _no_assignment(fix: str) -> ImmutableError:
    return ImmutableError("x.at returns updated copies, and cannot be assigned to", fix=fix, at=_user_line())


def _update(
    op: str,
    ref: IndexRef,
    values: Any,
    is_sorted: bool = False,
    unique: bool = False,
    mode: Any = None,
    wrap: bool = True,
) -> Any:
    x = ref.array
    how = mode_of(mode, "fill", "x.at[...]")
    values = _as_array(x, values)
    try:
        plan = parse(ref.index, aval_of(x).shape, outside=_outside_mode(mode, how, wrap), lenient="fill", wrap=wrap)
    except Mask as e:
        return _masked(op, x, e.mask, values, ref.index)
    except Nothing:
        return x
    x, values = promotion.numbers(x, values)
    if type(x) is ArrayImpl and not isinstance(values, Tracer) and not state.trace.staging:
        plan = with_positions_as_data(plan, x.aval.shape)
    return _kernel(x, values, plan.values, op, plan.items, how, bool(is_sorted), bool(unique))


def _as_array(x: Any, values: Any) -> Any:
    """Convert lists to arrays; a Python float becomes float64 if `x` has integers, since float32 would lose digits."""
    if isinstance(values, (list, tuple)):
        return asarray(values)
    is_exact = isinstance(values, float) and dtypes.is_integer(aval_of(x).dtype)
    return np.asarray(values, np.float64) if is_exact else values


def _outside_mode(mode: Any, how: str, wrap: bool = True) -> str | None:
    """Return the user's mode for positions out of bounds; None by default, where these raise an error if known."""
    return None if (mode is None and wrap) or how == "promise_in_bounds" else how


def _masked(op: str, x: Any, mask: Any, values: Any, index: Any) -> Any:
    """Update by a traced mask, which chooses element by element if one value serves all elements."""
    shape = aval_of(x).shape
    mask, count = _selected(x, mask, index)
    if mask is None or aval_of(values).ndim > count:
        raise promotion.error(
            NonConcreteBooleanIndexError,
            f"x.at[mask].{op} with a traced mask on {aval_of(x)!r} and values {aval_of(values)!r}",
            "use fnp.where(mask, values, x) with values of the shape of x",
        )
    wide = _wider(op, x, values)
    if op == "sub":
        values, op = negative(_cast(x, values) if wide is None else values), "add"
    old = x if wide is None else promotion.convert(x, wide)
    new = _combined(op, old, promotion.broadcast(_cast(old, values), shape))
    return elementwise.select_n(mask, x, _cast(x, new))


def _selected(x: Any, mask: Any, index: Any) -> tuple[Any, int]:
    """Find the elements that an index with one traced mask selects.

    Args:
        x: the array that is updated.
        mask: the traced mask.
        index: the whole index expression, with the mask.

    Returns:
        A mask of the shape of `x`, or None if the mask does not fit or the index has other arrays; and the number of
        dimensions after those of the mask that are whole, which values may have.
    """
    shape, mask_shape = aval_of(x).shape, aval_of(mask).shape
    entries = [_as_array(x, e) for e in (index if isinstance(index, tuple) else (index,))]
    arrays = [n for n, e in enumerate(entries) if not isinstance(e, slice) and np.ndim(e)]
    if len(entries) == 1 and not mask_shape:
        arrays = [0]
    if len(arrays) != 1 or any(isinstance(e, bool) for e in entries):
        return None, 0
    before, after = entries[: arrays[0]], entries[arrays[0] + 1 :]
    used = lambda part: sum(e is not None and e is not Ellipsis for e in part)
    first = len(shape) - used(after) - len(mask_shape) if any(e is Ellipsis for e in before) else used(before)
    dims = tuple(range(first, first + len(mask_shape)))
    if mask_shape != tuple(shape[d] for d in dims if 0 <= d < len(shape)):
        return None, 0
    selected = structural.broadcast_in_dim(truth(mask), shape=shape, broadcast_dimensions=dims)
    is_whole = lambda e: e is Ellipsis or (isinstance(e, slice) and e == slice(None))
    if not all(map(is_whole, (*before, *after))):
        everywhere = (*before, *[slice(None)] * len(mask_shape), *after)
        region = IndexRef(promotion.broadcast(np.zeros((), bool), shape), everywhere).set(True)
        selected = elementwise.and_(selected, region)
    return selected, len(shape) - first - len(mask_shape) if all(map(is_whole, after)) else 0


def _wider(op: str, x: Any, values: Any) -> Any:
    """Return the dtype in which integers and booleans are combined with values that theirs may not hold, or None.

    Sums and products of integers need no wider dtype: modulo 2**n, it does not matter when values are converted.
    """
    own, other = aval_of(x).dtype, aval_of(values).dtype
    if op == "set" or dtypes.is_complex(other):
        return None
    if own == dtypes.bool_ and op != "divide":
        return None if other == own else other
    if not dtypes.is_integer(own):
        return None
    if dtypes.is_inexact(other):
        return other if op == "divide" else dtypes.float64
    if op not in ("min", "max", "divide") or own == other or not dtypes.is_integer(other):
        return None
    wide = np.promote_types(own, other) if dtypes.uint64 in (own, other) else dtypes.int64
    return None if wide == own else wide


def _combined(op: str, old: Any, new: Any) -> Any:
    if aval_of(old).dtype == dtypes.bool_:
        return {"add": elementwise.or_, "max": elementwise.or_, "mul": elementwise.and_, "min": elementwise.and_}.get(
            op, _COMBINE["set"]
        )(old, new)
    return _COMBINE[op](old, new)


def _cast(x: Any, values: Any) -> Any:
    """Convert values to the dtype of x; complex values raise, since their imaginary part would be lost silently."""
    dtype = aval_of(x).dtype
    if aval_of(values).dtype.kind == "c" and dtype.kind != "c":
        raise promotion.error(
            DtypeError, f"{aval_of(values)!r} cannot be written into {aval_of(x)!r}", "take fnp.real, or make x complex"
        )
    return promotion.convert(values, dtype, aval_of(x).weak_type)


@eager_jit(static=("op", "items", "mode", "is_sorted", "unique"), ints=True)
def _kernel(x: Any, values: Any, data: Any, op: str, items: Any, mode: str, is_sorted: bool, unique: bool) -> Any:
    wide = _wider(op, x, values)
    if wide is not None:
        out = _kernel.inline(promotion.convert(x, wide), values, data, op, items, mode, is_sorted, unique)
        if wide != dtypes.float64 or aval_of(x).dtype.itemsize < 8:
            return _cast(x, out)
        nowhere = promotion.broadcast(np.zeros((), bool), aval_of(x).shape)
        touched = _kernel.inline(nowhere, np.ones((), bool), data, "set", items, mode, is_sorted, False)
        return elementwise.select_n(touched, x, _cast(x, out))
    values = _cast(x, values)
    x = promotion.convert(x, aval_of(x).dtype, aval_of(x).weak_type)
    if op == "sub":
        values, op = _cast(x, negative(values)), "add"
    if aval_of(x).dtype == dtypes.bool_ and op != "set":  # combined as integers, for which scatters exist
        out = _kernel.inline(promotion.convert(x, dtypes.int32), values, data, op, items, mode, is_sorted, unique)
        return truth(out)
    plan = Plan(items, tuple(data))
    dims = [item for item in items if item[0] != "new"]
    if plan.static and op == "set" and all(item[0] == "at" or abs(item[3]) == 1 or item[2] < 2 for item in dims):
        return _static_set(x, values, items, dims)
    return _scattered(op, x, values, plan, mode, is_sorted, unique)


def _fitted(values: Any, shape: tuple[int, ...], x: Any) -> Any:
    """Broadcast values to the shape of x[idx]."""
    sizes = aval_of(values).shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    values = values if sizes == aval_of(values).shape else structural.reshape(values, shape=sizes)
    if len(sizes) > len(shape) or any(n not in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False)):
        raise promotion.error(
            ShapeError,
            f"values {aval_of(values)!r} do not broadcast to {shape}, the shape of x[idx] for x {aval_of(x)!r}",
            "give values that broadcast to it",
        )
    return promotion.broadcast(values, shape)


def _static_set(x: Any, values: Any, items: tuple[Item, ...], dims: list[Item]) -> Any:
    shape = tuple(1 if item[0] == "new" else item[2] for item in items if item[0] != "at")
    values = _fitted(values, shape, x)
    window = tuple(1 if item[0] == "at" else item[2] for item in dims)
    values = structural.reshape(values, shape=window)
    turned = tuple(d for d, item in enumerate(dims) if item[0] == "cut" and item[3] < 0 and item[2] > 1)
    values = structural.rev(values, dimensions=turned) if turned else values
    starts = [
        item[1] if item[0] == "at" or item[3] > 0 or not item[2] else item[1] + (item[2] - 1) * item[3] for item in dims
    ]
    if window == aval_of(x).shape:
        return values
    wide = np.int32 if all(s < 2**31 for s in starts) else np.int64
    return dynamic_slice.dynamic_update_slice(x, values, *[np.asarray(s, wide) for s in starts])


def _scattered(op: str, x: Any, values: Any, plan: Plan, mode: str, is_sorted: bool, unique: bool) -> Any:
    """Update by a scatter: slices are dimensions of its windows; positions, and slices with steps, index them."""
    items, sizes = plan.items, aval_of(x).shape
    place = batch_place(items) if plan.advanced else -1
    arrays: dict[int, Any] = {}
    d = -1
    for item in items:
        d += item[0] != "new"
        if is_position(item):
            arrays[d] = position(item[1] if item[0] == "at" else plan.values[item[1]], sizes[d], mode)
    batch = promotion.broadcast_shapes(*(aval_of(a).shape for a in arrays.values())) if arrays else ()
    # The kind of each dimension of x[idx], in order: part of the batch, new, within windows, or with its own positions.
    shape: list[int] = []
    within: dict[int, int] = {}  # dimension of x -> dimension of x[idx]
    starts: dict[int, Any] = {}  # of windows in dimensions that they do not fill
    turned: list[int] = []
    ranges: dict[int, tuple[int, Item]] = {}
    lead, d = 0, -1
    for k, item in enumerate(items):
        if k == place:
            lead = len(shape)
            shape += batch
        d += item[0] != "new"
        if item[0] == "new":
            shape.append(1)
        elif item[0] == "win":
            within[d] = len(shape)
            starts[d] = plan.values[item[1]]
            shape.append(item[2])
        elif item[0] == "cut":
            _, start, size, step = item
            if abs(step) == 1 and size:
                within[d] = len(shape)
                if step < 0:
                    start -= size - 1
                    turned.append(len(shape))
                if size != sizes[d]:
                    starts[d] = start
            else:
                ranges[d] = (len(shape), item)
            shape.append(size)
    values = _fitted(values, tuple(shape), x)
    values = structural.rev(values, dimensions=tuple(turned)) if turned else values
    outside = [k for k in range(len(shape)) if k not in within.values()]  # the scatter dimensions
    outer = tuple(shape[k] for k in outside)
    vectors = []
    indexed = tuple(sorted((*arrays, *ranges, *starts)))
    for d in indexed:
        if d in starts:
            vectors.append(promotion.broadcast(position(starts[d], sizes[d]), outer))
        elif d in arrays:
            into = tuple(outside.index(lead + k) for k in range(len(batch)))
            full = promotion.broadcast(arrays[d], batch)
            vectors.append(structural.broadcast_in_dim(full, shape=outer, broadcast_dimensions=into))
        else:
            at, (_, start, size, step) = ranges[d]
            places = np.arange(start, start + size * step, step, dtype=np.int32 if sizes[d] < 2**31 else np.int64)[
                :size
            ]
            vectors.append(structural.broadcast_in_dim(places, shape=outer, broadcast_dimensions=(outside.index(at),)))
    if not indexed:
        return _combined(op, x, structural.reshape(values, shape=sizes))
    return _PRIMITIVES[op](
        x,
        index_vectors(vectors),
        values,
        dimension_numbers=ScatterDimensionNumbers(
            tuple(within[d] for d in sorted(within)), tuple(sorted((*arrays, *ranges))), indexed
        ),
        mode="clip" if mode == "wrap" else mode,
        indices_are_sorted=is_sorted,
        unique_indices=unique or not plan.advanced,
    )
