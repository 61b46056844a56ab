"""Views of Refs: `ref.at[i:j]` reads and writes a part of what a Ref holds, under a shape or dtype of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import argument_aval, aval_of
from functorch_like.errors import DtypeError
from functorch_like.primitives.elementwise import bitwise
from functorch_like.ref import slices
from functorch_like.ref.cells import AbstractRef, as_held, error

if TYPE_CHECKING:
    from functorch_like.avals import ShapedArray
    from functorch_like.core import Array
    from functorch_like.ref.slices import RefIndex
    from functorch_like.typing import ArrayLike, DTypeLike, Shape


class Viewed:
    """Base of Refs and of their views: methods that make views, and JAX's names for reading and writing."""

    __slots__ = ()

    if TYPE_CHECKING:

        def read(self) -> Array:
            """Return the whole value."""
            raise NotImplementedError

        def __getitem__(self, index: RefIndex) -> Array: ...
        def __setitem__(self, index: RefIndex, value: ArrayLike) -> None: ...

        def combine(self, index: RefIndex, value: ArrayLike, how: str) -> None:
            """Update the indexed elements by a method of `array.at[index]`: "set", "add", "max"."""
            raise NotImplementedError

    def addupdate(self, x: ArrayLike, idx: RefIndex = ...) -> None:
        """Add to the indexed elements. Where a position occurs several times, all its addends are added.

        Args:
            x: an array that broadcasts to the indexed elements, or a number.
            idx: an index as of arrays; all of it by default.
        """
        self.combine(idx, x, "add")

    @property
    def at(self) -> Parts:
        """`ref.at[index]` is a view of the indexed elements, which reads and writes the Ref."""
        return Parts(self)

    @property
    def T(self) -> RefView:
        """A view with its axes in reverse order."""
        return self.transpose()

    def reshape(self, *shape: Any) -> RefView:
        """Return a view of the same elements in another shape.

        Args:
            shape: the sizes, or a tuple of them; one may be -1.
        """
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return RefView(self, lambda x: x.reshape(sizes), lambda x, part: part.reshape(x.shape))

    def transpose(self, *axes: Any) -> RefView:
        """Return a view with its axes in another order.

        Args:
            axes: the axes, or a tuple of them; in reverse order by default.
        """
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(order) or tuple(reversed(range(self.read().ndim)))
        back = tuple(int(k) for k in np.argsort(order))
        return RefView(self, lambda x: x.transpose(order), lambda _, part: part.transpose(back))

    def bitcast(self, dtype: DTypeLike) -> RefView:
        """Return a view of the same bits as another dtype of equal width.

        Args:
            dtype: the dtype.

        Raises:
            DtypeError: for a dtype of another width.
        """
        new, old = np.dtype(dtype), aval_of(self.read()).dtype
        if new.itemsize != old.itemsize:
            raise error(
                DtypeError,
                f"a Ref of {old} cannot be seen as {new}",
                "take a dtype of equal width; or convert ref[...]",
            )
        cast = lambda x, to: bitwise.bitcast_convert_type(x, new_dtype=to)
        return RefView(self, lambda x: cast(x, new), lambda _, part: cast(part, old))

    def get(self) -> Array:
        """Return the value: `ref[...]`."""
        return self[...]

    def set(self, value: ArrayLike) -> None:
        """Write the value: `ref[...] = value`."""
        self[...] = value

    def swap(self, value: ArrayLike) -> Array:
        """Write the value, and return the one before."""
        before = self[...]
        self[...] = value
        return before


class RefView(Viewed):
    """A part of a Ref, or the Ref in another form; `ref.at[...]` and its like make it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ref = ft.new_ref(fnp.zeros(4))
    >>> ref.at[1:3].at[0][...] = 5.0
    >>> ref
    Ref([0., 5., 0., 0.], dtype=float32)
    """

    __slots__ = ("_backward", "_forward", "index", "parent")

    is_reference = True
    _remedy = "read it first: view[...] is an array"

    def __init__(
        self,
        parent: Viewed,
        forward: Callable[[Any], Any],
        backward: Callable[[Any, Any], Any],
        index: Any = None,
    ) -> None:
        """Make a view.

        Args:
            parent: the Ref or view that it belongs to.
            forward: gives the value of the view from the parent's.
            backward: gives the parent's new value from its value before and the view's new value.
            index: the index of the parent that it stands for; None for another form of the parent.
        """
        self.parent, self.index, self._forward, self._backward = parent, index, forward, backward

    def read(self) -> Array:
        """Return the whole value."""
        return self._forward(self.parent.read())

    def __getitem__(self, index: RefIndex) -> Array:
        value = self.read()
        return value if index is Ellipsis else slices.read(value, index)

    def __setitem__(self, index: RefIndex, value: ArrayLike) -> None:
        self.combine(index, value, "set")

    def combine(self, index: RefIndex, value: ArrayLike, how: str) -> None:
        """Update the indexed elements by a method of `array.at[index]`."""
        parent = self.parent.read()
        held: Any = self._forward(parent)
        self.parent[...] = self._backward(parent, new_value(held, index, value, how))

    @property
    def aval(self) -> AbstractRef:
        """The type of the view, as `ft.typeof` gives it."""
        return AbstractRef(aval_of(self.read()))

    @property
    def shape(self) -> Shape:
        """Shape of the value."""
        return aval_of(self.read()).shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        return aval_of(self.read()).dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return aval_of(self.read()).ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return aval_of(self.read()).size

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return f"RefView({aval_of(self.read())!r})"


class Parts:
    """The result of `ref.at`: indices give views."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Viewed) -> None:
        self._ref = ref

    def __getitem__(self, index: RefIndex) -> RefView:
        if index is Ellipsis:
            return RefView(self._ref, lambda x: x, lambda _, part: part)
        return RefView(
            self._ref, lambda x: slices.read(x, index), lambda x, part: slices.updated(x, index, part, "set"), index
        )


def fits(held: ShapedArray, value: ShapedArray) -> bool:
    """Return True if a Ref of one aval takes a value of the other: of its dtype, or a number that adapts to it."""
    return value.dtype == held.dtype or (value.weak_type and dtypes.promote(held, value)[0] == held.dtype)


def new_value(held: Any, index: Any, value: Any, how: str) -> Any:
    """Return a Ref's new value.

    Args:
        held: the value before.
        index: an index of arrays that may have Slices.
        value: an array of the dtype of `held`, or a number that fits it; broadcasts to the indexed elements.
        how: "set", "add" or another method of `array.at[index]`.

    Raises:
        DtypeError: for another dtype, and for Refs.
    """
    if isinstance(value, Viewed):
        raise error(DtypeError, f"a Ref holds an array, got {value!r}", "write its value: ref[...]")
    aval, mine = argument_aval(value), aval_of(held)
    if not fits(mine, aval):
        raise error(DtypeError, f"a Ref of {mine!r} got {aval!r}", f"convert it: x.astype({mine.dtype.name!r})")
    if index is Ellipsis and how == "set" and aval.shape == mine.shape:
        return as_held(value, mine.dtype)
    return slices.updated(held, index, value, how)
