"""Refs that a kernel makes for a part of its work: `run_scoped` and its like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import R, X
from functorch_like.errors import ArgumentError
from functorch_like.experimental.pallas import memory
from functorch_like.primitives import structural
from functorch_like.ref.captured import register
from functorch_like.ref.functions import empty_ref, new_ref
from functorch_like.ref.reference import Ref

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import DTypeLike, PyTree, SupportsDType


def run_scoped(f: Callable[..., R], *types: PyTree, collective_axes: object = (), **kw_types: PyTree) -> R:
    """Call a function with new Refs, which hold undefined values at first.

    Args:
        f: function of Refs; returns a pytree of arrays.
        types: descriptions of the Refs, such as `pltpu.VMEM(shape, dtype)`, or pytrees of them.
        collective_axes: () only: axes of devices that share the Refs.
        kw_types: descriptions of those passed by name.

    Returns:
        The result of f.

    Raises:
        ArgumentError: for `collective_axes`, and for objects that describe no Ref.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def sums(total):
        ...     total[...] = fnp.zeros(2)
        ...     total[1] += 3
        ...     return total[...]
        >>> pl.run_scoped(sums, pl.ANY((2,), "float32")).tolist()
        [0.0, 3.0]
    """
    check_callable(f, "run_scoped", "pl.run_scoped(lambda ref: ..., pltpu.VMEM(shape, dtype))")
    if collective_axes not in ((), None):
        raise ArgumentError(f"run_scoped got collective_axes={collective_axes!r}", fix="leave it out: Refs are local")
    made = lambda t: tree.map(
        lambda s: new_ref(memory.initial(memory.described(s))), t, is_leaf=lambda s: hasattr(s, "shape") or _is_kind(s)
    )
    args, kwargs = [made(t) for t in types], {name: made(t) for name, t in kw_types.items()}
    register(tree.leaves((args, kwargs)))
    return f(*args, **kwargs)


def _is_kind(x: Any) -> bool:
    return isinstance(x, memory.SemaphoreType)


def with_scoped(
    *types: PyTree, collective_axes: object = (), **kw_types: PyTree
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Make a decorator that passes new Refs behind the arguments of a function, as `run_scoped` does.

    Args:
        types: as for `run_scoped`.
        collective_axes: () only.
        kw_types: as for `run_scoped`.

    Returns:
        A decorator of functions of arguments and Refs.

    Raises:
        ArgumentError: at the call, as `run_scoped`.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> @pl.with_scoped(pl.ANY((), "float32"))
        ... def twice(x, ref):
        ...     ref[...] = x
        ...     return ref[...] + ref[...]
        >>> twice(fnp.float32(2)).item()
        4.0
    """

    def decorate(f: Callable[..., R]) -> Callable[..., R]:
        @wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            inner = lambda *refs, **named: f(*args, *refs, **kwargs, **named)
            return run_scoped(inner, *types, collective_axes=collective_axes, **kw_types)

        return call

    return decorate


def run_state(f: Callable[[PyTree], object]) -> Callable[[X], X]:
    """Make a function of arrays from one that reads and writes Refs.

    Args:
        f: function of a pytree of Refs.

    Returns:
        A function of a pytree of arrays, which returns the last values of the Refs.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def count(ref):
        ...     ref[0] += 1
        >>> pl.run_state(count)(fnp.zeros(2)).tolist()
        [1.0, 0.0]
    """

    @wraps(f)
    def call(x: Any) -> Any:
        refs = tree.map(new_ref, x)
        f(refs)
        return tree.map(lambda ref: ref[...], refs)

    return call


def empty(shape: int | Sequence[int], dtype: DTypeLike, *, out_sharding: None = None) -> Array:
    """Return an array whose values are not defined; they are zeros.

    Args:
        shape: sizes of the axes.
        dtype: the dtype.
        out_sharding: None only.

    Raises:
        ArgumentError: for `out_sharding`.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.empty((2,), "float32").shape
        (2,)
    """
    if out_sharding is not None:
        raise ArgumentError("pl.empty has no out_sharding", fix="place the array by ft.device_put")
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return structural.zeros(ShapedArray(tuple(map(int, sizes)), dtypes.narrowed(np.dtype(dtype))))


def empty_like(x: X) -> X:
    """Return arrays whose values are not defined; they are zeros.

    Args:
        x: a pytree of objects with a shape and a dtype.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.empty_like({"a": ft.ShapeDtypeStruct((2,), "int32")})["a"].shape
        (2,)
    """
    return tree.map(lambda leaf: empty(leaf.shape, leaf.dtype), x, is_leaf=lambda leaf: hasattr(leaf, "shape"))


def empty_ref_like(x: SupportsDType) -> Ref:
    """Return a Ref of a shape and dtype, whose value is not defined; it holds zeros.

    Args:
        x: an object with a shape and a dtype.

    Raises:
        ArgumentError: for objects without them.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.empty_ref_like(fnp.ones(2)).shape
        (2,)
    """
    return empty_ref(x)
