"""`Ref`: an object that holds an array and belongs to a trace.

A jaxpr holds no Refs. A read returns the value held, a write replaces it by a value that was computed from it.
So transformations of values also transform functions that make and use Refs.

A Ref may also be used below its own trace. Traces that compute at once, such as those of grad, read and write the
Ref itself. A trace that stages, of jit or of a loop, has a `Cell` with its value there. The caller of `stage` passes
the first value in and the last one out, by `hold` and `Handed`. Otherwise `stage` raises `CapturedRefs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.core import EVALUATE, ArrayImpl, Trace, Tracer, leak, state, transform_stack
from functorch_like.errors import (
    ArgumentError,
    DifferentiationError,
    DtypeError,
    LeakError,
    UnsupportedError,
)
from functorch_like.frames import without_frames
from functorch_like.interpreters.batching import BatchTrace
from functorch_like.ir.trace_to_jaxpr import StageTrace
from functorch_like.ref import slices
from functorch_like.ref.cells import AbstractRef, Cell, as_held, error, refuse_paths
from functorch_like.ref.views import Viewed, new_value

if TYPE_CHECKING:
    from functorch_like.arrays.array_type import Sharding
    from functorch_like.core import Array
    from functorch_like.ref.slices import RefIndex
    from functorch_like.typing import ArrayLike, Shape


class Ref(Viewed):
    """A mutable reference to an array: `ref[...]` reads it, `ref[...] = x` writes it.

    `ft.new_ref` makes one. It is not an array: functions of arrays take `ref[...]`. Shape and dtype never change.

    Indices are those of arrays, and values broadcast to indexed elements. They must have the dtype of the Ref, or
    be Python numbers that fit it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ref = ft.new_ref(fnp.arange(4))
    >>> ref[0] = 7
    >>> ref[1:3] += 10
    >>> ref, ref[1].item()
    (Ref([ 7, 11, 12,  3], dtype=int32), 11)
    """

    __slots__ = ("__weakref__", "_aval", "_cell", "_ended", "_lent", "_mapped", "_trace")

    is_reference = True  # not the description of an array, though it has a shape and a dtype
    #: Advice in the errors of functions of arrays.
    _remedy = "read it first: ref[...] is the array that a Ref holds"

    def __init__(self, value: Any, lent: bool = False) -> None:
        """Hold an array or tracer; with `lent` in place of a caller's Ref, so that it cannot be frozen."""
        self._trace: Trace = state.trace
        self._cell = Cell(value)
        self._aval: ShapedArray = value.aval
        self._ended = ""  # "frozen" or "freed"
        self._lent = lent
        self._mapped = ""  # name of the transformation that has replaced it by other Refs

    # ------------------------------------------------------------------------------------------------------- facts
    @property
    def aval(self) -> AbstractRef:
        """The type of the Ref, as `ft.typeof` gives it."""
        return AbstractRef(self._aval)

    @property
    def shape(self) -> Shape:
        """Shape of the value."""
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        return self._aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._aval.size

    @property
    def sharding(self) -> Sharding:
        """The sharding of the array that is held."""
        return self.read().sharding

    @property
    def alive(self) -> bool:
        """True if it may still be used somewhere: it is not frozen, and its function has not returned."""
        return not self._ended and not self._trace.finished

    @property
    def outermost(self) -> bool:
        """True if it was made outside of all transformations."""
        return self._trace is EVALUATE

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array that it holds now; writes of compiled programs may change it."""
        held: Any = self.read()
        return held.unsafe_buffer_pointer()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a Ref to a scalar has no length")
        return int(self._aval.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise error(DtypeError, f"NumPy takes arrays, got {self!r}", self._remedy)

    @without_frames
    def __getattr__(self, name: str) -> Any:
        known = not name.startswith("_") and hasattr(ArrayImpl, name)
        raise AttributeError(f"a Ref has no {name!r}{f'; its value has: ref[...].{name}' if known else ''}")

    def __bool__(self) -> bool:
        raise error(DtypeError, f"{self!r} has no truth value", "write `if ref[...]:`")

    def __iter__(self) -> Iterator[Array]:
        return iter(self.read())

    def __repr__(self) -> str:
        held = self._cell.value
        if self._ended or isinstance(held, Tracer):
            return f"Ref({self._aval!r}{', ' if self._ended else ''}{self._ended})"
        text = repr(held)
        return "Ref" + text[text.index("(") :] if "(" in text else f"Ref({text})"

    def replace_in(self, name: str) -> None:
        """Make uses raise while a mapped function has other Refs in its place; "" ends this."""
        self._mapped = name

    # ----------------------------------------------------------------------------------------------------- reading
    def __getitem__(self, index: RefIndex) -> Array:
        value = self.read()
        return value if index is Ellipsis else slices.read(value, index)

    def read(self) -> Array:
        """Return the whole value."""
        return self.cell(False)[0].value

    # ----------------------------------------------------------------------------------------------------- writing
    def __setitem__(self, index: RefIndex, value: ArrayLike) -> None:
        self.combine(index, value, "set")

    def combine(self, index: RefIndex, value: ArrayLike, how: str) -> None:
        """Update the indexed elements by a method of `array.at[index]`."""
        cell, owner = self.cell(True)
        self._put(cell, owner, new_value(cell.value, index, value, how))

    def put(self, value: Array) -> None:
        """Write all of it: a result of a program, of the right shape and dtype, with no other owner."""
        self._put(*self.cell(True), value)

    def _put(self, cell: Cell, owner: Trace, value: Any) -> None:
        """Store a value computed here, if it is valid in the trace that the cell belongs to."""
        if isinstance(value, Tracer):
            made = value._trace
            if made is not owner and made.is_nested_in(owner) and not made.finished:
                raise error(
                    DifferentiationError,
                    f"{self!r} belongs outside of {made.name or 'a derivative'}, but got a value that "
                    "is differentiated or transformed there",
                    "write ft.stop_gradient(x), return the value with has_aux=True, or make the Ref inside",
                )
            if made.finished or (made is not owner and not owner.is_nested_in(made)):
                raise leak(value, "a Ref")
        if value.aval.shape != self.shape or value.aval.dtype != self.dtype:
            raise error(
                DtypeError,
                f"a Ref of {self._aval!r} was to hold {value.aval!r}",
                "write values of its dtype; autocast may have made another",
            )
        cell.value, cell.written = value, True

    # ---------------------------------------------------------------------------------------------- where it belongs
    def cell(self, writing: bool) -> tuple[Cell, Trace]:
        """Return the cell of the value in the current trace, and the trace that it belongs to.

        Raises:
            LeakError: where the Ref belongs to a function that has returned, or to one inside of this one.
            UnsupportedError: where the trace follows Python's control flow; or of a write, where it maps.
            ArgumentError: for a Ref that was frozen or freed.
        """
        home, at = self._trace, state.trace
        if self._mapped:
            raise error(
                ArgumentError,
                f"{self!r} is used inside of {self._mapped}, which maps over it and has a Ref for each element",
                "use the argument that the function is given",
            )
        if self._ended:
            raise error(ArgumentError, f"{self!r} was used again", "make another one: ft.new_ref(x)")
        if home.finished:
            raise self._leak(f"which has already returned; it belongs to {home!r}")
        refuse_paths(self)
        mapped: Trace | None = None
        while at is not home and not isinstance(at, StageTrace):
            if at is EVALUATE:
                raise self._leak(f"but belongs to {home!r}")
            if isinstance(at, BatchTrace):
                mapped = at
            at = at.parent
        if at is home:
            cell = self._cell
        else:
            assert isinstance(at, StageTrace)
            if not at.is_nested_in(home):
                raise self._leak(f"but belongs to {home!r}")
            if at.cells is None:
                at.cells = {}
            cell = at.cells.get(self) or at.cells.setdefault(self, Cell(at.input(self._aval), given=False))
        if writing and mapped is not None:
            raise error(
                UnsupportedError,
                f"{self!r} is written inside of {mapped.name}, and is one Ref for all elements",
                "map over it: an argument with a value for each element, ft.new_ref(fnp.zeros((n, ...)))",
            )
        return cell, at

    def _leak(self, why: str) -> LeakError:
        return LeakError(
            f"{self!r} is used outside of the function that made it, {why}",
            fix="transform first, and jit the result: jit(grad(f)); then rules that run later find it alive"
            if self._lent
            else "return ref[...], its value, from that function; or make the Ref outside, and pass it as an argument",
            chain=transform_stack(state.trace),
            at=str(source_info.user_line(state.source) or ""),
        )

    # ------------------------------------------------------------------------------------------------------- copies
    def __deepcopy__(self, memo: dict[int, Any]) -> Ref:
        made = memo[id(self)] = Ref(self.read())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        value = self.read()
        if isinstance(value, Tracer):
            raise error(ArgumentError, f"{self!r} holds a traced value and cannot be pickled", "pickle it outside")
        return _loaded, (np.asarray(value),)

    def end(self, how: str) -> Array:
        """Return the value, and make later uses raise; `how` is a word for errors.

        Raises:
            ArgumentError: where the Ref was made outside of the current function.
        """
        cell, at = self.cell(False)
        if self._lent or at is not self._trace or at is not state.trace:
            raise error(
                ArgumentError,
                f"{self!r} cannot be {how} here, because it was made outside of {state.trace.name or 'this function'}",
                "freeze it where ft.new_ref made it; inside, read ref[...]",
            )
        self._ended = how
        value, cell.value = cell.value, None
        return value


def _loaded(value: np.ndarray) -> Ref:
    return Ref(as_held(value, value.dtype))
