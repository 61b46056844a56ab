"""Universal functions: `ufunc` objects, and the methods of elementwise functions, such as `fnp.add.reduce`.

The functions themselves stay functions. `of` returns the `ufunc` object of a function. It is of the class that
`frompyfunc` returns.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.calling.api_boundary import public
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axes_of, axis_of
from functorch_like.numpy.operands import given
from functorch_like.numpy.reductions import check_mask
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Axis, DTypeLike, Index, NestedArrayLike


_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min",
    "divide": "divide", "power": "power",
}  # fmt: skip


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        """Return True for elementwise functions, too."""
        return super().__instancecheck__(instance) or (hasattr(instance, "nargs") and hasattr(instance, "body"))


class ufunc(metaclass=_Kind):
    """An elementwise function with NumPy's methods: reduce, accumulate, outer, at, reduceat.

    Args:
        func: function of `nin` scalars that returns `nout`; it is vectorized.
        nin: the number of arguments.
        nout: the number of results.
        name: its name.
        identity: the operand that does not change the other one; the result of empty reductions.

    >>> plus = fnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    >>> plus.reduce(fnp.arange(4)).item(), isinstance(fnp.add, fnp.ufunc)
    (6, True)
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None, identity: Any = None
    ) -> None:
        if not callable(func):
            raise promotion.error(ArgumentError, f"fnp.ufunc of {func!r:.60}", "give a function")
        self.nin, self.nout = operator.index(nin), operator.index(nout)
        self.nargs, self.identity = self.nin + self.nout, identity
        self.__name__ = name or name_of(func)
        self.__doc__ = getattr(func, "__doc__", None)
        self._call = func if hasattr(func, "body") else fnp.vectorize(func)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    @public
    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """Apply the function to arrays, which broadcast. `out` and `where` take None only."""
        if out is not None or where is not None:
            raise _not_in_place(self.__name__, out)
        if len(args) != self.nin:
            raise promotion.error(
                ArgumentError, f"{self.__name__} takes {self.nin} arguments, got {len(args)}", "give that many"
            )
        return self._call(*args)

    def _binary(self, method: str, out: Any = None) -> None:
        if out is not None:
            raise _not_in_place(f"{self.__name__}.{method}", out)
        if (self.nin, self.nout) != (2, 1):
            raise promotion.error(
                ArgumentError, f"{self.__name__}.{method}: it has {self.nin} arguments and {self.nout} results",
                f"{method} takes a function of two arguments and one result",
            )  # fmt: skip

    @public
    def reduce(
        self,
        a: NestedArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: NestedArrayLike | None = None,
    ) -> Array:
        """Combine the elements along an axis from left to right: f(f(a[0], a[1]), a[2]), ...

        Args:
            a: array.
            axis: int, tuple of ints, or None for all.
            dtype: dtype to convert to first.
            out: not supported: arrays are immutable.
            keepdims: keep the reduced axes, with size 1.
            initial: the value to begin with.
            where: boolean array: the elements to take; needs an identity, or `initial`.
        """
        self._binary("reduce", out)
        (a,) = given(a)
        a = fnp.asarray(a, dtype)
        shape = aval_of(a).shape
        axes = axes_of(axis, len(shape), f"{self.__name__}.reduce")
        name = _REDUCTIONS.get(self.__name__) if hasattr(self._call, "body") else None
        if name and (name in ("sum", "prod") or (name in ("all", "any") and initial is None)):
            more = {} if name in ("all", "any") else {"initial": initial, "dtype": dtype}
            return getattr(fnp, name)(a, axes, keepdims=keepdims, where=where, **more)
        if name in ("max", "min") and where is None and 0 not in (shape[d] for d in axes):
            return getattr(fnp, name)(a, axes, keepdims=keepdims, initial=initial)
        rest = tuple(n for d, n in enumerate(shape) if d not in axes)
        moved = fnp.moveaxis(a, axes, tuple(range(len(axes))))
        out_ = self._folded(
            fnp.reshape(moved, (-1, *rest)) if a.size else _empty(moved, axes, rest), initial, where, axes
        )
        return fnp.reshape(out_, tuple(1 if d in axes else n for d, n in enumerate(shape))) if keepdims else out_

    def _folded(self, x: Any, initial: Any, where: Any, axes: tuple[int, ...]) -> Any:
        start = self._identity(aval_of(x).dtype) if initial is None else initial
        mask = None
        if where is not None:
            check_mask(where)
            if start is None:
                raise promotion.error(
                    ArgumentError, f"{self.__name__}.reduce with where= has no identity", "give initial="
                )
            shape = aval_of(x).shape
            wide = fnp.broadcast_to(where, self._shape_before(shape, axes, where))
            mask = fnp.reshape(fnp.moveaxis(wide, axes, tuple(range(len(axes)))), shape)
        n = aval_of(x).shape[0]
        if start is None and not n:
            raise promotion.error(
                ShapeError, f"{self.__name__}.reduce over empty axes, and it has no identity", "give initial="
            )
        if start is None or (initial is None and mask is None and n):
            first, x = x[0], x[1:]
        else:
            first = fnp.full(aval_of(x).shape[1:], start, dtypes.promote(aval_of(start), aval_of(x))[0])
        item = x[0] if aval_of(x).shape[0] else fnp.zeros_like(first, dtype=aval_of(x).dtype)
        first = fnp.asarray(first, aval_of(self(first, item)).dtype)
        if not aval_of(x).shape[0]:
            return first

        def step(total: Any, item: Any) -> Any:
            value, taken = item if mask is not None else (item, None)
            new = fnp.asarray(self(total, value), aval_of(total).dtype)
            return (new if taken is None else fnp.where(taken, new, total)), None

        return lax.scan(step, first, x if mask is None else (x, mask))[0]

    def _identity(self, dtype: Any) -> Any:
        """Return the identity; that of a bitwise function has the operand's dtype, in which -1 is all bits."""
        if dtype.kind in "biu" and self.__name__.startswith("bitwise_") and self.identity is not None:
            return np.asarray(self.identity).astype(dtype)
        return self.identity

    def _shape_before(self, shape: tuple[int, ...], axes: tuple[int, ...], where: Any) -> tuple[int, ...]:
        if len(axes) != 1:
            raise promotion.error(
                ArgumentError, f"{self.__name__}.reduce with where= over axes {axes}", "reduce over one axis"
            )
        rest = list(shape[1:])
        rest.insert(axes[0], shape[0])
        return tuple(rest)

    def _counted(self, a: Any, dtype: Any) -> Array:
        """Return the operand; booleans are added and multiplied as integers, as in sums."""
        if dtype is None and self.__name__ in ("add", "multiply") and aval_of(a).dtype == dtypes.bool_:
            dtype = dtypes.default_int()
        return fnp.asarray(a, dtype)

    @public
    def accumulate(
        self, a: NestedArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The results of combining the elements up to each position along an axis, from left to right.

        With `axis=None` the array is flattened.

        >>> fnp.subtract.accumulate(fnp.asarray([5, 1, 1])).tolist()
        [5, 4, 3]
        """
        self._binary("accumulate", out)
        (a,) = given(a)
        a = self._counted(a, dtype)
        a, axis = (fnp.ravel(a), 0) if axis is None else (a, axis)
        d = axis_of(axis, aval_of(a).ndim, f"{self.__name__}.accumulate")
        if self.__name__ in _RUNNING and hasattr(self._call, "body") and aval_of(a).dtype.kind in "fc":
            return getattr(fnp, _RUNNING[self.__name__])(a, d)
        x = fnp.moveaxis(a, d, 0)
        if not aval_of(x).shape[0]:
            return a
        first = fnp.asarray(x[0], aval_of(self(x[0], x[0])).dtype)

        def step(total: Any, value: Any) -> Any:
            total = fnp.asarray(self(total, value), aval_of(total).dtype)
            return total, total

        rest = lax.scan(step, first, x[1:])[1]
        return fnp.moveaxis(fnp.concatenate([first[None], rest]), 0, d)

    @public
    def outer(self, A: NestedArrayLike, B: NestedArrayLike, /) -> Array:
        """The results for all pairs of elements, one of each array.

        >>> fnp.subtract.outer(fnp.arange(2), fnp.arange(3)).tolist()
        [[0, -1, -2], [1, 0, -1]]
        """
        self._binary("outer")
        x, y = (fnp.asarray(x) if not promotion.is_array(x) else x for x in given(A, B))
        return self(fnp.reshape(x, aval_of(x).shape + (1,) * aval_of(y).ndim), y)

    @public
    def at(
        self, a: NestedArrayLike, indices: Index, b: NestedArrayLike | None = None, /, *, inplace: bool = True
    ) -> Array:
        """`a` with a[indices] = f(a[indices], b), once for each time an index occurs. Pass inplace=False.

        >>> fnp.add.at(fnp.zeros(3), fnp.asarray([0, 0, 2]), 1.0, inplace=False).tolist()
        [2.0, 0.0, 1.0]
        """
        if inplace:
            raise promotion.error(
                UnsupportedError, f"{self.__name__}.at cannot change an array", "pass inplace=False, and use the result"
            )
        if (b is None) != (self.nin == 1):
            raise promotion.error(
                ArgumentError, f"{self.__name__}.at takes {self.nin - 1} further arrays", "give b only for two"
            )
        array = fnp.asarray(*given(a))
        if self.__name__ in _UPDATES and hasattr(self._call, "body"):
            return getattr(array.at[indices], _UPDATES[self.__name__])(b)
        # Apply it one after the other, at the flat positions of the indices.
        flat = fnp.reshape(array, -1)
        places = fnp.reshape(fnp.arange(aval_of(flat).size), aval_of(array).shape)[indices]
        values = () if b is None else (fnp.reshape(fnp.broadcast_to(fnp.asarray(b), aval_of(places).shape), -1),)

        def step(x: Any, item: Any) -> Any:
            place, *value = item
            return x.at[place].set(fnp.asarray(self(x[place], *value), aval_of(x).dtype)), None

        return fnp.reshape(lax.scan(step, flat, (fnp.reshape(places, -1), *values))[0], aval_of(array).shape)

    @public
    def reduceat(
        self,
        a: NestedArrayLike,
        indices: NestedArrayLike,
        axis: int = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array:
        """Reduce parts of an axis, from each index to the next; only one element where the next index is not larger.

        >>> fnp.add.reduceat(fnp.arange(6), fnp.asarray([0, 3, 1])).tolist()
        [3, 3, 15]
        """
        self._binary("reduceat", out)
        a, starts = given(a, indices)
        a = self._counted(a, dtype)
        if aval_of(starts).ndim != 1 or aval_of(starts).dtype.kind not in "iu":
            raise promotion.error(
                ShapeError, f"{self.__name__}.reduceat at {aval_of(starts)!r}", "give one dimension of ints"
            )
        d = axis_of(axis, aval_of(a).ndim, f"{self.__name__}.reduceat")
        x = fnp.moveaxis(a, d, 0)
        n = aval_of(x).shape[0]
        stops = fnp.append(starts[1:], fnp.asarray([n], aval_of(starts).dtype))
        wide = lambda v: fnp.reshape(v, (-1,) + (1,) * (aval_of(x).ndim - 1))
        first = x[starts]
        start = fnp.asarray(first, aval_of(self(first, first)).dtype)

        def step(total: Any, item: Any) -> Any:
            k, value = item
            inside = wide((k > starts) & (k < stops))
            return fnp.where(inside, fnp.asarray(self(total, value), aval_of(total).dtype), total), None

        return fnp.moveaxis(lax.scan(step, start, (fnp.arange(n), x))[0], 0, d)


def _not_in_place(name: str, out: Any) -> Exception:
    """Return the error for `out` or `where`: arrays are immutable."""
    if out is not None:
        return promotion.error(UnsupportedError, f"{name} with out=: arrays cannot be changed", "use the result")
    return promotion.error(UnsupportedError, f"{name} with where=", f"use fnp.where(mask, {name}(...), other)")


def _empty(moved: Any, axes: tuple[int, ...], rest: tuple[int, ...]) -> Any:
    size = functools.reduce(operator.mul, aval_of(moved).shape[: len(axes)], 1)
    return fnp.reshape(moved, (size, *rest))


@functools.cache
def of(function: Any) -> ufunc:
    """Return the `ufunc` of an elementwise function."""
    name = function.__name__
    return ufunc(function, function.nin, function.nout, name=name, identity=function.identity)


def frompyfunc(
    func: Callable[..., ArrayLike | tuple[ArrayLike, ...]], /, nin: int, nout: int, *, identity: ArrayLike | None = None
) -> ufunc:
    """Make a universal function of a Python function of scalars, which is traced once per call.

    Args:
        func: function of `nin` scalars that returns `nout`.
        nin: the number of arguments.
        nout: the number of results.
        identity: the operand that does not change the other one.

    Returns:
        A `ufunc`: it broadcasts, and has the methods reduce, accumulate, outer, at and reduceat.

    Raises:
        ArgumentError: where func is not a function.

    >>> fnp.frompyfunc(lambda x, y: x - y, 2, 1).reduce(fnp.asarray([9, 1, 2])).item()
    6
    """
    return ufunc(func, nin, nout, identity=identity)
