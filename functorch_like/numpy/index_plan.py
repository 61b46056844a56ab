"""Parse an index expression `x[...]` into a plan: hashable items, and the arrays they refer to.

Items of a plan, one for each dimension of the operand, and ("new",) for `None`:
("at", i) a static position; ("dyn", k) a position that is data: scalar number k; ("cut", start, size, step) a slice;
("win", k, size) a slice of fixed size whose start is scalar k; ("arr", k) an integer array, number k. A position
behind a `...` that stands for no dimension ends in "apart": as in NumPy, it is not adjacent to the positions before.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.core import INT32, LENIENT_POSITIONS, ArrayImpl, Tracer, aval_of
from functorch_like.errors import BoundsError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.guarded_sizes import count_true, mask_places, traced_size
from functorch_like.primitives import elementwise

Item = tuple[Any, ...]


class Plan(NamedTuple):
    """A parsed index expression."""

    items: tuple[Item, ...]
    values: tuple[Any, ...]

    @property
    def advanced(self) -> bool:
        return any(item[0] == "arr" for item in self.items)

    @property
    def static(self) -> bool:
        return not self.values


class Mask(Exception):
    """An index that is one traced boolean array, applied by `where`."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask


class Nothing(Exception):
    """The index False: it selects nothing, along a new first dimension of size 0."""


class _Places(NamedTuple):
    """Positions where a mask is true along one of its dimensions, and the dimension's size."""

    places: Any
    size: int


def parse(
    index: Any,
    shape: tuple[int, ...],
    dynamic: bool = False,
    sized: bool = False,
    outside: str | None = None,
    lenient: str = "clip",
    wrap: bool = True,
) -> Plan:
    """Parse an index expression.

    Args:
        index: the expression between the brackets.
        shape: shape of the operand.
        dynamic: pass static positions as data, so that one compiled function computes them all.
        sized: where jit follows Python's control flow, guard the number of true elements of traced masks.
        outside: the user's mode for positions out of bounds: "clip", "wrap" or "fill"; None if there is none.
        lenient: the mode if there is none, under `LENIENT_POSITIONS`.
        wrap: False where negative positions are out of bounds, instead of counting from the end.

    Raises:
        BoundsError: for too many indices, masks that do not fit, static positions out of bounds without a mode, and
            indices that are neither integers nor booleans.
        ConcretizationError: for slices with traced ends.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    if len(entries) == 1:
        entries = _alone(entries[0])
    entries = [e for entry in entries for e in _expand(entry, shape, sized)]
    taken = sum(e is not None and e is not Ellipsis for e in entries)
    dots = [k for k, e in enumerate(entries) if e is Ellipsis]
    if taken > len(shape) or len(dots) > 1:
        raise promotion.error(
            BoundsError,
            f"{taken} indices for an array of {len(shape)} dimensions, shape {shape}"
            if taken > len(shape)
            else "two ... in one index",
            "use at most one index for each dimension" if taken > len(shape) else "use ... once",
        )
    fill = [slice(None)] * (len(shape) - taken)
    at = dots[0] if dots else len(entries)
    entries[at : at + 1] = fill
    items: list[Item] = []
    values: list[Any] = []
    d = 0
    apart = at if dots and not fill else None
    for k, entry in enumerate(entries):
        if entry is None:
            items.append(("new",))
            continue
        if type(entry) is _Places:
            if entry.size not in (0, shape[d]):
                raise promotion.error(
                    BoundsError,
                    f"a mask of size {entry.size} along axis {d} of an array of shape {shape}",
                    "give a mask of the shape of the array, or of its first dimensions",
                )
            entry = entry.places
        if not wrap and type(entry) is not slice:
            entry = _unwrapped(_positions(entry, shape[d]), shape[d], outside)
        item = _item(entry, shape[d], d, shape, values, dynamic, outside, lenient)
        items.append((*item, "apart") if k == apart and item[0] in ("at", "dyn", "arr") else item)
        d += 1
    return Plan(tuple(items), tuple(values))


def _alone(entry: Any) -> list[Any]:
    """Parse the only index. A truth value, a mask of no dimensions, adds a first dimension of size 1 or 0."""
    if not isinstance(entry, (bool, np.bool_)):
        if not promotion.is_array(entry) or entry.ndim or aval_of(entry).dtype != dtypes.bool_:
            return [entry]
        concrete = entry.concrete() if isinstance(entry, Tracer) else entry
        if concrete is None:
            raise Mask(entry)
        entry = concrete
    if not bool(entry):
        raise Nothing
    return [None]


def _expand(entry: Any, shape: tuple[int, ...], sized: bool) -> list[Any]:
    """Convert masks to integer arrays, one for each dimension they cover; and lists to arrays."""
    if entry is None or entry is Ellipsis or type(entry) in (int, slice):
        return [entry]
    if isinstance(entry, (bool, np.bool_)):
        return _scalar_mask(bool(entry))
    if isinstance(entry, (list, tuple)):
        entry = np.asarray(entry, dtypes.default_int()) if len(entry) == 0 else asarray(entry)
    if not promotion.is_array(entry):
        if not hasattr(type(entry), "__jax_array__"):
            return [entry]
        entry = entry.__jax_array__()
    if aval_of(entry).dtype != dtypes.bool_:
        return [entry]
    concrete = entry.concrete() if isinstance(entry, Tracer) else entry
    if concrete is None:
        shape = aval_of(entry).shape
        size = count_true(entry) if sized and shape else None
        if size is None:
            raise Mask(entry)
        return [_Places(places, n) for places, n in zip(mask_places(entry, size), shape, strict=True)]
    if not np.ndim(concrete):
        return _scalar_mask(bool(concrete))
    mask = np.asarray(concrete)
    return [_Places(places, n) for places, n in zip(np.nonzero(mask), mask.shape, strict=True)]


def _scalar_mask(value: bool) -> list[Any]:
    raise promotion.error(
        BoundsError,
        f"the boolean {value} cannot be combined with other indices",
        "use None for True, or an array of booleans as a mask",
    )


def _item(
    entry: Any,
    n: int,
    d: int,
    shape: tuple[int, ...],
    values: list[Any],
    dynamic: bool,
    outside: str | None,
    lenient: str,
) -> Item:
    """Plan one entry along dimension d, which has size n."""
    if type(entry) is slice:
        return _slice(entry, n, values, dynamic)
    entry = _positions(entry, n)
    if type(entry) is not int:
        values.append(entry)
        return ("dyn" if entry.ndim == 0 else "arr", len(values) - 1)
    if not -n <= entry < n:
        if outside is None and n and LENIENT_POSITIONS.value:
            outside = lenient
        if outside is None or (outside != "fill" and not n):
            raise promotion.error(
                BoundsError,
                f"index {entry} is out of bounds for axis {d} of size {n}, shape {shape}",
                f"use {-n} to {n - 1}",
            )
        if outside != "fill":
            return ("at", entry % n if outside == "wrap" else 0 if entry < 0 else n - 1)
        least, most = promotion.bounds(dtypes.int64)
        values.append(static_positions(np.asarray(min(max(entry, least), most)), n))
    elif dynamic:
        values.append(entry % n)
    else:
        return ("at", entry % n)
    return ("dyn", len(values) - 1)


def _positions(entry: Any, n: int) -> Any:
    """Return a known scalar index as an int, and any other index as an array of integers."""
    if isinstance(entry, (int, np.integer)):
        return int(entry)
    if not promotion.is_array(entry):
        if hasattr(entry, "__index__"):
            return operator.index(entry)
        if not hasattr(entry, "__array__"):
            raise promotion.error(
                BoundsError,
                f"{entry!r:.60} of type {type(entry).__name__} is not an index",
                "use ints, slices, None, ..., integer arrays or boolean arrays",
            )
        entry = np.asarray(entry)
    aval = aval_of(entry)
    if not dtypes.is_integer(aval.dtype):
        raise promotion.error(BoundsError, f"indices must be integers, got {aval!r}", "convert it: i.astype('int32')")
    if type(entry) is not np.ndarray:
        return entry
    return static_positions(entry, n) if entry.ndim else int(entry)


def _unwrapped(entry: Any, n: int, outside: str | None) -> Any:
    """Return positions with the negative ones moved: to the first element by "clip", behind the last by "fill"."""
    if outside not in ("clip", "fill"):
        return entry
    low = 0 if outside == "clip" else n
    if type(entry) is int:
        return entry if entry >= 0 else low
    if type(entry) is np.ndarray:
        return static_positions(np.where(entry < 0, low, entry), n)
    if dtypes.is_unsigned(aval_of(entry).dtype):
        return entry
    if aval_of(entry).dtype.itemsize < 4:
        entry = promotion.convert(entry, dtypes.int32)
    below = elementwise.lt(entry, promotion.like(entry, 0))
    return elementwise.select_n(below, entry, promotion.like(entry, low))


def static_positions(places: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """Return known positions along a dimension of size n, in the narrowest index dtype that holds them."""
    if places.dtype == np.uint64:  # beyond any end
        places = np.minimum(places, np.uint64(promotion.bounds(dtypes.int64)[1]))
    least, most = (places.min(), places.max()) if places.size else (0, 0)
    narrow = n <= INT32[1] and INT32[0] <= least and most <= INT32[1]
    return places.astype(np.int32 if narrow else np.int64)


def _slice(entry: slice, n: int, values: list[Any], dynamic: bool) -> Item:
    ends = []
    for end in (entry.start, entry.stop, entry.step):
        if isinstance(end, Tracer):
            end = _guarded_end(end)
        ends.append(None if end is None else int(operator.index(end)))
    try:
        start, stop, step = slice(*ends).indices(n)
    except ValueError:
        raise promotion.error(BoundsError, "a slice has step 0", "use a positive or negative step") from None
    size = len(range(start, stop, step))
    if dynamic and step == 1 and 0 < size < n:
        values.append(start)
        return ("win", len(values) - 1, size)
    return ("cut", start if size else 0, size, step)


def _guarded_end(end: Tracer) -> int:
    """Return the value of a traced end of a slice, where jit follows Python's control flow."""
    aval = aval_of(end)
    if aval.shape or not dtypes.is_integer(aval.dtype):
        raise promotion.error(
            BoundsError, f"a slice has the end {aval!r}, which is no single integer", "convert it: n.astype('int32')"
        )
    return traced_size(
        end,
        f"a slice has a traced end ({aval!r}), which determines the shape of the result",
        "use lax.dynamic_slice(x, starts, sizes), whose sizes are static, or a mask with fnp.where",
    )


def with_positions_as_data(plan: Plan, shape: tuple[int, ...]) -> Plan:
    """Return a plan whose static positions and starts of slices are data, so that one program serves a loop over them.

    Args:
        plan: of an index.
        shape: shape of the operand.
    """
    values = list(plan.values)
    sizes = iter(shape)
    items = [item if item[0] == "new" else _with_data(item, next(sizes), values) for item in plan.items]
    return Plan(tuple(items), tuple(values))


def _with_data(item: Item, n: int, values: list[Any]) -> Item:
    if item[0] == "at" or (item[0] == "cut" and item[3] == 1 and 0 < item[2] < n):
        values.append(item[1])
        return ("dyn", len(values) - 1, *item[2:]) if item[0] == "at" else ("win", len(values) - 1, item[2])
    return item


def is_plain(x: Any) -> bool:
    """Return True if a value is an array rather than a tracer."""
    return type(x) is ArrayImpl or isinstance(x, np.ndarray)
