"""Conversion of arrays to Python and NumPy: numbers, text, copies; and the errors that traced values raise instead.

A traced value has no number, except under plain `grad`: there `bool()` and `int()` work, because their
derivative is zero anyhow; `float()`, `item()` and NumPy would lose the derivative silently, so they raise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.backends import xla
from functorch_like.calling.lost_derivatives import KINDS, lost
from functorch_like.core import Tracer, aval_of, leak, state, transform_stack
from functorch_like.errors import (
    ArgumentError,
    ConcretizationError,
    DonatedError,
    DtypeError,
    FtError,
    ImmutableError,
    ShapeError,
)
from functorch_like.ir.trace_to_jaxpr import StageTracer, follower

_FOLLOW = "; or let jit trace each path: jit(control_flow='paths')"
_BRANCH = (
    "choose between values with fnp.where, fnp.maximum or lax.cond, combine conditions with &, | and ~, loop with "
    "lax.while_loop or lax.fori_loop, or make the argument that decides static: jit(static_argnums=...)" + _FOLLOW
)
_NUMBER = (
    "keep computing with the array itself (fnp.exp for math.exp), or make the argument static: jit(static_argnums=...)"
    + _FOLLOW
)
_NUMPY = (
    "use functorch_like.numpy instead of numpy inside transformed functions (fnp.asarray(a)[i] where a NumPy array is "
    "indexed), or compute the value outside"
)

#: Conversions that are traced where values are known.
_FOLLOWED = frozenset({"bool", "int", "index", "float", "complex", "item", "tolist", "tobytes", "numpy.asarray"})
_TOO_LARGE = "; arrays of more than 16 elements make no paths"
_UNKNOWN = (
    "only conditions are followed where values are unknown, as they are in bodies of loops, branches, rules and mapped "
    "functions, and in lower and trace; take the number outside, and close over it; or keep computing with the array"
)


def _at() -> str:
    return str(source_info.user_line(state.source) or "")


def refuse(tracer: Tracer, what: str, fix: str) -> NoReturn:
    """Raise for a traced value where Python needs a number."""
    if tracer._trace.finished:
        raise leak(tracer, what)
    if follower(tracer._trace) is not None and what in _FOLLOWED:
        fix = fix.replace(_FOLLOW, "") + _TOO_LARGE if tracer.aval.size > 1 else _UNKNOWN
    made = tracer.creation_site()
    line = source_info.user_line(made) if made is not None else None
    aval, chain = tracer.aval, transform_stack(tracer._trace)
    if chain.rpartition(" > ")[2].startswith("checkpoint("):
        fix = fix.replace("static: jit(", "static: checkpoint(")
    raise KINDS.get(what, ConcretizationError)(
        f"a {aval!r} is only traced and has no value yet" + (f"; it was made at {line}" if line else ""),
        operation=f"{what}({aval!r})",
        chain=chain,
        at=_at(),
        fix=fix,
    )


# ------------------------------------------------------------------------------------------------------------- numbers
def _scalar(x: Any, what: str, value: Any = None) -> Any:
    """Return the number; `value` if it is known already."""
    shape = x.aval.shape
    if shape:
        raise ShapeError(
            f"{what}() takes a single number, got {x.aval!r}",
            fix="reduce it (x.sum(), x.all()) or take one element",
            at=_at(),
        )
    return xla.to_numpy(x) if value is None else value


def array_bool(self: Any) -> bool:
    """Return the truth value of an array of one element."""
    aval = aval_of(self)
    if aval.size != 1:
        raise ShapeError(
            f"the truth of {aval!r} is ambiguous: it has {aval.size} elements",
            fix="use x.any(), x.all() or x.size",
            at=_at(),
        )
    return bool(xla.to_numpy(self).reshape(()))


def array_int(self: Any) -> int:
    """Convert an array of rank 0 to int, rounded towards zero."""
    return int(_scalar(self, "int").item())


def array_float(self: Any) -> float:
    """Convert an array of rank 0 to float."""
    return float(_scalar(self, "float").item())


def array_complex(self: Any) -> complex:
    """Convert an array of rank 0 to complex."""
    return complex(_scalar(self, "complex").item())


def array_index(self: Any) -> int:
    """Convert an integer array of rank 0 to an index."""
    if not dtypes.is_integer(self.aval.dtype):
        raise DtypeError(f"{self.aval!r} cannot be an index", fix="convert it: x.astype('int32')", at=_at())
    return operator.index(_scalar(self, "index").item())


def array_item(self: Any, *args: Any) -> Any:
    """Return one element as a Python number: the only one, or the one at an index."""
    if not args and self.aval.size != 1:
        raise ShapeError(
            f"x.item() takes an array of one element, got {self.aval!r}",
            fix="reduce it (x.sum(), x.all()), take one element, or convert all: x.tolist()",
            at=_at(),
        )
    return xla.to_numpy(self).item(*args)


def array_tolist(self: Any) -> Any:
    """Return the elements as nested lists of Python numbers."""
    return xla.to_numpy(self).tolist()


def array_tobytes(self: Any, order: str = "C") -> bytes:
    """The bytes of the elements, the last index running fastest ("C") or the first ("F")."""
    return xla.to_numpy(self).tobytes(order)  # pyright: ignore[reportArgumentType]


def array_interface(self: Any) -> dict[str, Any]:
    """Shape, dtype and memory as NumPy's array interface, version 3; the memory is read-only, on the host."""
    dtype = self.aval.dtype
    if dtype.isbuiltin != 1:  # before values are read: NumPy's own conversion calls this
        raise AttributeError(f"the array interface has no name for {dtype.name}; convert it: x.astype('float32')")
    try:
        values = xla.to_numpy(self)
    except DonatedError as e:  # callers then try other protocols, whose errors explain it
        raise AttributeError("the array was donated to a computation or deleted") from e
    # A buffer, not an address: the memory lives as long as its reader.
    return {"version": 3, "shape": values.shape, "typestr": values.dtype.str, "data": np.ascontiguousarray(values).data}


def _concrete(tracer: Tracer, what: str, fix: str) -> Any:
    value = None if tracer._trace.finished else tracer.guarded(what)
    return refuse(tracer, what, fix) if value is None else value


def tracer_bool(self: Any) -> bool:
    """Return the truth value, where it is known."""
    value = _concrete(self, "bool", _BRANCH)
    return array_bool(value) if self.aval.size != 1 else bool(value)


def tracer_int(self: Any) -> int:
    """Convert to int, where the value is known."""
    value = _concrete(self, "int", _NUMBER)
    return int(value if not isinstance(value, np.ndarray) else _scalar(self, "int", value))


def tracer_index(self: Any) -> int:
    """Convert to an index, where the value is known."""
    value = _concrete(
        self, "index", "traced positions work as x[i]; sizes and ranges must be static: jit(static_argnums=...)"
    )
    return operator.index(value if not isinstance(value, np.ndarray) else value[()])


def _losing(what: str, fix: str, convert: Callable[..., Any] | None = None) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        value = _concrete(self, what, fix)
        if convert is None or not isinstance(self, StageTracer):
            raise lost(self.aval, what, self._trace, _at())
        return convert(value, *args, **kwargs)  # a guard: nothing is differentiated

    return method


def _numpy_array(x: np.ndarray[Any, Any], dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    return x if dtype is None else x.astype(dtype)


tracer_float, tracer_complex = _losing("float", _NUMBER, float), _losing("complex", _NUMBER, complex)
tracer_item, tracer_tolist = _losing("item", _NUMBER, np.ndarray.item), _losing("tolist", _NUMBER, np.ndarray.tolist)
tracer_tobytes = _losing("tobytes", _NUMPY, np.ndarray.tobytes)
tracer_array, tracer_dlpack = _losing("numpy.asarray", _NUMPY, _numpy_array), _losing("dlpack", _NUMPY)
tracer_reduce = _losing("pickle", "return the value from the transformed function and store that")


def tracer_hash(self: Any) -> int:
    """Raise: a traced value has no hash for a dict or a set."""
    aval = self.aval
    raise DtypeError(
        f"unhashable: a traced {aval!r} is no key of a dict, no member of a set and no static argument",
        operation=f"hash({aval!r})",
        chain=transform_stack(self._trace),
        at=_at(),
        fix="choose by position: fnp.stack(values)[i], or lax.switch(i, functions); keep trees of values in lists",
    )


# ---------------------------------------------------------------------------------------------------------------- text
def array_repr(self: Any) -> str:
    """`Array([1., 2.], dtype=float32)`, long ones summarised; the shape alone where other processes have parts."""
    aval = self.aval
    if self.is_deleted():
        return f"<deleted Array {aval!r}>"
    tail = f"dtype={aval.dtype.name}" + (", weak_type=True" if aval.weak_type else "") + ")"
    if not xla.values_are_here(self):
        return f"Array(shape={aval.shape}, {tail}"
    if 0 in aval.shape:
        return f"Array({'[]' if aval.ndim == 1 else f'[], shape={aval.shape}'}, {tail}"
    body = np.array2string(_printable(self), separator=", ", prefix="Array(", suffix=",", threshold=_threshold())
    last = body.rsplit("\n", 1)[-1]
    room = np.get_printoptions()["linewidth"] - len(last) - (6 if "\n" not in body else 0)
    return f"Array({body},{' ' if len(tail) + 2 <= room else chr(10) + ' ' * 6}{tail}"


def _threshold() -> int:
    return int(np.get_printoptions()["threshold"])


def _printable(x: Any) -> np.ndarray[Any, Any]:
    return xla.to_numpy(x)


def array_str(self: Any) -> str:
    """Return the elements as NumPy prints them; `repr` where they cannot be read."""
    return array_repr(self) if self.is_deleted() or not xla.values_are_here(self) else str(_printable(self))


def array_format(self: Any, spec: str) -> str:
    """A single number by the rules of Python's numbers, other arrays as text.

    Raises:
        ArgumentError: for a number's format of an array of several.
    """
    number = self.aval.shape == () and spec
    try:
        return format(xla.to_numpy(self)[()] if number else str(self), spec)
    except ValueError as e:
        if number:
            raise ArgumentError(f"the format {spec!r} is not one for {self.aval!r}: {e}", at=_at()) from None
        raise ArgumentError(
            f"the format {spec!r} is for a number, and this is {self.aval!r}",
            fix="format its elements: [f'{v:.2f}' for v in x.tolist()]; or print np.round(x, 2); or "
            "fnp.set_printoptions(precision=2)",
            at=_at(),
        ) from None


def tracer_repr(self: Any) -> str:
    """`Traced<f32[3]> in jit(f)`."""
    where = transform_stack(self._trace) or self._trace.name or "a transformation"
    value = None if self._trace.finished else self.concrete()
    known = "" if value is None else f" with value {np.array2string(np.asarray(value), threshold=6)}"
    return f"Traced<{self.aval!r}> in {where}{known}"


def tracer_format(self: Any, spec: str) -> str:
    """Return the description; the format of a number raises."""
    if spec:
        printed = f"ft.debug.print('{{:{spec}}}', x)"
        refuse(self, "format", f"print it when the program runs, {printed}; or format the result of the function")
    return tracer_repr(self)


# ---------------------------------------------------------------------------------------------------------- assignment
def _shown(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_shown, index)) or "()"
    if isinstance(index, slice):
        ends = ["" if e is None else _shown(e) for e in (index.start, index.stop)]
        return ":".join(ends) + ("" if index.step is None else f":{_shown(index.step)}")
    if index is Ellipsis:
        return "..."
    return repr(index) if index is None or isinstance(index, (int, np.integer, bool)) else "idx"


def setitem(self: Any, index: Any, value: Any) -> NoReturn:
    """Raise: arrays are immutable."""
    aval = aval_of(self)
    at = _shown(index)
    if isinstance(value, (int, float, complex)):
        fix = f"x = x.at[{at}].set({value!r})"
    else:
        fix = f"x = x.at[{at}].set(value); for x[{at}] += y, x = x.at[{at}].add(y)"
    if getattr(index, "dtype", None) == dtypes.bool_:
        fix += "; or x = fnp.where(mask, value, x)"
    raise ImmutableError(
        f"arrays are immutable, and {aval!r} was assigned to at [{at}]",
        fix=fix,
        at=_at(),
        chain=transform_stack(state.trace),
    )


def delitem(self: Any, index: Any) -> NoReturn:
    """Raise: arrays are immutable."""
    raise ImmutableError(
        f"arrays are immutable: nothing of {aval_of(self)!r} can be deleted", fix="use a slice or fnp.where", at=_at()
    )


def length(self: Any) -> int:
    """Return the size of the first dimension."""
    shape = self.aval.shape
    if not shape:
        raise _unsized("len()", self)
    return shape[0]


def _unsized(what: str, x: Any, more: str = "") -> FtError:
    return ShapeError(
        f"{what} of {aval_of(x)!r}, which has no dimensions", fix=f"use x.size, or fnp.atleast_1d{more}", at=_at()
    )


def rows(self: Any) -> Any:
    """Iterate over the slices along the first dimension."""
    shape = self.aval.shape
    if not shape:
        raise _unsized("iteration", self, "; a value and a gradient come from ft.value_and_grad(f)")
    return (self[i] for i in range(shape[0]))
