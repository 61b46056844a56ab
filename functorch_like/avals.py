"""Abstract values: shapes and dtypes of arrays, without data.

A `ShapedArray` is interned: two with equal fields are one object. Comparing and hashing are therefore by
identity, so that the memo of shape rules (`core.py`) and the caches of `jit` are cheap. jaxlib's C++ reads
`.shape`, `.dtype` and `.weak_type` from it and calls the class with those three, positionally.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import ml_dtypes  # noqa: F401  (registers bfloat16, float8 and int4 with NumPy, so that np.dtype has their names)
import numpy as np

from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError, bytes_text

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike

#: Limit on the bytes of an array. XLA aborts the process where a product of sizes overflows 64 bits; the margin below
#: 2**63 is for dtypes that XLA widens. Sizes of 0 count as 1, as in XLA's products.
_MOST_BYTES = 2**60
#: NumPy's limit: an array of more dimensions could be neither shown nor copied out.
MOST_DIMENSIONS = 64


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the short name used in jaxprs and errors: f32, i64, bool, c128, bf16, float8_e4m3fn."""
    if dtype.isbuiltin == 1 and dtype.kind in "fiuc":
        return f"{dtype.kind}{dtype.itemsize * 8}"
    if dtype.names:
        return dtype.names[0]  # float0
    return "bf16" if dtype.name == "bfloat16" else dtype.name


class ExplicitAxes(NamedTuple):
    """Split of an array by the Explicit axes of a mesh.

    Attributes:
        mesh: the mesh, without its devices.
        axes: for each dimension the names of the axes that split it; the first one varies slowest.
    """

    mesh: Any
    axes: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(mesh: Any, axes: Iterable[tuple[str, ...]]) -> ExplicitAxes | None:
        """Return the axes of a type, or None where there are none."""
        each = tuple(axes)
        return ExplicitAxes(mesh, each) if any(each) else None


class ShapedArray:
    """Shape, dtype and weak type of an array.

    `weak_type` marks values that came from Python scalars: their dtype adapts to that of other operands
    (see `dtypes.promote`). `explicit` says how Explicit axes of a mesh split the array; it is None where they do not.
    """

    __slots__ = ("dtype", "explicit", "ndim", "shape", "size", "weak_type")
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    ndim: int
    size: int
    explicit: ExplicitAxes | None

    _interned: ClassVar[dict[Any, ShapedArray]] = {}

    # Libraries written for JAX pass a sharding, too: it is accepted, and is not part of an aval.
    def __new__(cls, shape: Any, dtype: Any, weak_type: bool = False, **placement: Any) -> ShapedArray:
        key = (shape, dtype, weak_type)
        try:
            return cls._interned[key]
        except (KeyError, TypeError):
            pass
        if hasattr(dtype, "aval_of_shape"):  # an extended dtype, such as that of typed keys
            return dtype.aval_of_shape(tuple(shape))
        shape = tuple(int(n) for n in shape)
        dtype = np.dtype(dtype)
        weak_type = bool(weak_type)
        canonical = (shape, dtype, weak_type)
        self = cls._interned.get(canonical)
        if self is None:
            made = object.__new__(cls)
            made.shape, made.dtype, made.weak_type = canonical
            made.ndim, made.size, made.explicit = len(shape), math.prod(shape), None
            if made.size > _MOST_BYTES // 32 or not made.size or made.ndim > MOST_DIMENSIONS:
                made.check_sizes()
            self = cls._interned.setdefault(canonical, made)  # atomic: two threads get one object
        return self

    def check_sizes(self) -> None:
        """Raise ShapeError for more than `MOST_DIMENSIONS` dimensions or `_MOST_BYTES` bytes."""
        if self.ndim > MOST_DIMENSIONS:
            raise too_many_dimensions(f"an array of {self.ndim} dimensions")
        count = math.prod(max(n, 1) for n in self.shape) * self.dtype.itemsize
        if count > _MOST_BYTES:
            shown = f"{self!r} would take {bytes_text(count)}" if self.size else f"the sizes of {self!r} overflow"
            raise ShapeError(
                f"{shown}: no array is that large",
                fix="check the sizes: a shape given as a number of elements, or an outer product by accident?",
            )

    @classmethod
    def forget_unused(cls) -> None:
        """Drop the interned objects without references from elsewhere."""
        table = {None: object()}
        unshared = next(_references(list(table.items())))  # the count for a value that only its table refers to
        known = list(cls._interned.items())
        # Counting and dropping are one call into C: no other thread can look an object up in between.
        unused = compress(map(itemgetter(0), known), map(unshared.__eq__, _references(known)))
        list(map(cls._interned.pop, unused, repeat(None)))

    def update(
        self, shape: tuple[int, ...] | None = None, dtype: np.dtype[Any] | None = None, weak_type: bool | None = None
    ) -> ShapedArray:
        """Return the aval with some fields changed; where `shape` is given, it is split over no Explicit axes."""
        made = ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        return made if self.explicit is None or shape is not None else made.split(self.explicit)

    def strong(self) -> ShapedArray:
        """Return the aval with `weak_type=False`."""
        return self.update(weak_type=False) if self.weak_type else self

    def split(self, explicit: ExplicitAxes | None) -> ShapedArray:
        """Return the aval with another value of `explicit`."""
        if explicit is self.explicit:
            return self
        if explicit is None:
            return ShapedArray(self.shape, self.dtype, self.weak_type)
        key = (self.shape, self.dtype, self.weak_type, explicit)
        found = self._interned.get(key)
        if found is None:
            made = object.__new__(ShapedArray)
            made.shape, made.dtype, made.weak_type, made.explicit = key
            made.ndim, made.size = self.ndim, self.size
            found = self._interned.setdefault(key, made)
        return found

    def without_dimension(self, d: int) -> ShapedArray:
        """Return the aval of one element along a dimension."""
        made = self.update(shape=self.shape[:d] + self.shape[d + 1 :])
        if self.explicit is None:
            return made
        mesh, axes = self.explicit
        return made.split(ExplicitAxes.of(mesh, (*axes[:d], *axes[d + 1 :])))

    def with_dimension(self, d: int, size: int, along: ExplicitAxes | None = None) -> ShapedArray:
        """Return the aval of a stack along a new dimension, which `along`, the type of a vector, says how to split."""
        made = self.update(shape=(*self.shape[:d], size, *self.shape[d:]))
        if self.explicit is None and along is None:
            return made
        taken = () if along is None else along.axes[0]
        whole = self.explicit or along
        assert whole is not None
        each = ((),) * self.ndim if self.explicit is None else self.explicit.axes
        axes = [tuple(name for name in names if name not in taken) for names in each]
        axes.insert(d, taken)
        return made.split(ExplicitAxes.of(whole.mesh, axes))

    strip_weak_type = strong  # JAX's name

    def __repr__(self) -> str:
        sizes = map(str, self.shape)
        if self.explicit is not None:
            sizes = map(_split_size, sizes, self.explicit.axes)
        return f"{dtype_name(self.dtype)}[{','.join(sizes)}]"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.explicit is not None:
            return ShapedArray.split, (self.split(None), self.explicit)
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self

    def __copy__(self) -> ShapedArray:
        return self


def fit(avals: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> bool:
    """Return True if operands have the shapes and dtypes that a jaxpr takes.

    Weak types and Explicit axes may differ: the compiler splits an operand as its reader takes it.
    """
    return len(avals) == len(expected) and all(
        a is b or (a.shape == b.shape and a.dtype == b.dtype) for a, b in zip(avals, expected, strict=True)
    )


def _split_size(size: str, axes: tuple[str, ...]) -> str:
    if not axes:
        return size
    return f"{size}@{axes[0]}" if len(axes) == 1 else f"{size}@({','.join(axes)})"


def _references(items: Sequence[tuple[Any, Any]]) -> map[int]:
    """Return how many references there are to the value of each item."""
    return map(sys.getrefcount, map(itemgetter(1), items))


def too_many_dimensions(what: str) -> ShapeError:
    """Return the error for an array of more than `MOST_DIMENSIONS` dimensions, which `what` describes."""
    return ShapeError(
        f"{what}: there are at most {MOST_DIMENSIONS}", fix="reshape to fewer dimensions, or keep a list of arrays"
    )


class ShapeDtypeStruct:
    """Shape and dtype without data; `eval_shape` returns it, and `lower` accepts it in place of an array.

    Args:
        shape: sequence of ints; for `export` and `eval_shape` also symbolic dimensions (`export.symbolic_shape`).
        dtype: anything `numpy.dtype` takes.
        weak_type: True for a dtype that adapts in promotion, as a Python scalar's does.
        sharding: the sharding over a mesh, for `jit(f).lower`; None leaves the choice to XLA.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: Any, dtype: Any, weak_type: bool = False, sharding: Any = None) -> None:
        if dtype is None:
            raise DtypeError("ShapeDtypeStruct with dtype=None", fix="name a dtype")
        self.sharding = sharding
        try:
            self.shape = tuple(shape)
            symbolic = is_symbolic(self)
            aval = ShapedArray(() if symbolic else self.shape, dtype, weak_type)
        except FtError:
            raise
        except (TypeError, ValueError) as e:
            given = f"ShapeDtypeStruct({shape!r:.60}, {dtype!r:.60})"
            raise ArgumentError(f"{given}: {e}", fix='give a tuple of ints and a dtype: (3, 4), "float32"') from e
        self.shape, self.dtype, self.weak_type = self.shape if symbolic else aval.shape, aval.dtype, aval.weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def aval(self) -> ShapedArray:
        if is_symbolic(self):
            raise ArgumentError(f"{self!r} has symbolic dimensions, which are for arguments of export and eval_shape")
        made = ShapedArray(self.shape, self.dtype, self.weak_type)
        return made if self.sharding is None else made.split(self.sharding._explicit_axes(made.ndim))

    @staticmethod
    def like(x: ArrayLike | ShapeDtypeStruct, **changes: object) -> ShapeDtypeStruct:
        """Return the shape and dtype of an array or the like, with some fields changed as by `update`.

        Raises:
            ArgumentError: for an object without shape and dtype.

        >>> import numpy as np
        >>> ShapeDtypeStruct.like(np.ones(3), dtype="float32")
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ArgumentError(f"{x!r:.60} has no shape and dtype", fix="make an array of it: fnp.asarray(x)")
        array: Any = x
        return ShapeDtypeStruct(array.shape, array.dtype, getattr(x, "weak_type", False)).update(**changes)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """Return a copy with some fields changed: shape, dtype, weak_type or sharding.

        >>> ShapeDtypeStruct((2, 3), "float32").update(shape=(4,))
        ShapeDtypeStruct(shape=(4,), dtype=float32)
        """
        parts: dict[str, Any] = {name: getattr(self, name) for name in ("shape", "dtype", "weak_type", "sharding")}
        parts.update(changes)
        return ShapeDtypeStruct(**parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return False
        same = self._fields() == other._fields() if is_symbolic(self) or is_symbolic(other) else self.aval == other.aval
        return same and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash(self._fields() if is_symbolic(self) else self.aval)

    def _fields(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self.weak_type

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        split = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{split})"


def is_symbolic(x: object) -> bool:
    """Return True for a `ShapeDtypeStruct` with symbolic dimensions."""
    return isinstance(x, ShapeDtypeStruct) and any(hasattr(d, "symbolic") for d in x.shape)
