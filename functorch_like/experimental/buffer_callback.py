"""`buffer_callback`: calls of Python functions that write their results into given memory.

The memory is the host's. On a GPU operands are copied to it and results from it, as by `ft.pure_callback`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.calling import api_boundary
from functorch_like.calling.host_callbacks import io_callback, promised, pure_callback
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


class ExecutionStage(enum.Enum):
    """Stages of the execution of a program; functions are called in `EXECUTE`."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """Facts about the program that calls a function.

    Attributes:
        stage: `ExecutionStage.EXECUTE`.
    """

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """No stream: functions run on the host.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError("a buffer callback runs on the host, in no stream", fix="use NumPy, or ft.ffi")


class Buffer:
    """Memory of an operand or a result: `np.asarray(buffer)` and `np.from_dlpack(buffer)` share it.

    Attributes:
        shape, dtype, ndim: its type.
        writeable: True for results.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self.writeable = bool(array.flags.writeable)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._array, dtype, copy=True) if copy else np.asarray(self._array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Buffer(shape={self.shape}, dtype={self.dtype})"


@api_boundary.public
def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: PyTree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., object]:
    """Return a function of arrays that calls Python, which writes the results.

    Args:
        callback: `(context, out, *args) -> None`, with an `ExecutionContext`, and pytrees of `Buffer`s for the results
            and the operands. It overwrites all of each result. Operands cannot be changed.
        result_shape_dtypes: a pytree of objects with shape and dtype.
        has_side_effect: True if each call counts, so that the program must not drop or repeat it.
        vmap_method: as for `ft.pure_callback`; functions with side effects are called for each element.
        input_output_aliases: positions of operands, each with the position of the result that begins with its values.
        command_buffer_compatible: no effect.

    Returns:
        A function of pytrees of arrays that returns arrays in the structure of `result_shape_dtypes`.

    Raises:
        ArgumentError: for something that is not a function; at a call, if it returns a value.
        ShapeError: for an aliased operand of another type than the result.

    >>> import functorch_like as ft, numpy as np
    >>> from functorch_like.experimental.buffer_callback import buffer_callback
    >>> def add_one(context, out, x):
    ...     np.add(x, 1, out=np.asarray(out))
    >>> f = buffer_callback(add_one, ft.ShapeDtypeStruct((2,), np.float32))
    >>> ft.jit(f)(np.ones(2, np.float32)).tolist()
    [2.0, 2.0]
    """
    check_callable(callback, "buffer_callback", "buffer_callback(f, result_shape_dtypes)(x)")
    aliases = {out: operand for operand, out in (input_output_aliases or {}).items()}

    @api_boundary.public
    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        results, out_structure = tree.flatten(result_shape_dtypes)
        _check_aliases(aliases, leaves, results)
        ndims = [aval_of(leaf).ndim for leaf in leaves]  # not the leaves: the program would keep them alive

        def host(*arrays: Any) -> Any:
            outs = [_memory(result, k, arrays, ndims, aliases) for k, result in enumerate(results)]
            operands = [_read_only(a) for a in arrays]
            args, kwargs = structure.unflatten(list(map(Buffer, operands)))
            out = callback(ExecutionContext(), out_structure.unflatten(list(map(Buffer, outs))), *args, **kwargs)
            if out is not None:
                raise ArgumentError(f"a buffer callback returned {out!r:.60}", fix="write results into `out` instead")
            return out_structure.unflatten(outs)

        if has_side_effect:
            return io_callback(host, result_shape_dtypes, *leaves)
        return pure_callback(host, result_shape_dtypes, *leaves, vmap_method=vmap_method)

    return call


def _check_aliases(aliases: Mapping[int, int], leaves: list[Any], results: list[Any]) -> None:
    avals, _ = promised(results)
    for out, operand in aliases.items():
        if not (0 <= out < len(avals) and 0 <= operand < len(leaves)):
            raise ArgumentError(
                f"input_output_aliases has {operand}: {out}, of {len(leaves)} operands and {len(avals)} results",
                fix="use positions of flat operands and results",
            )
        aval = aval_of(leaves[operand])
        if (aval.shape, aval.dtype) != (avals[out].shape, avals[out].dtype):
            raise ShapeError(f"operand {operand} is {aval!r}, and result {out} {avals[out]!r}", fix="alias equal types")


def _memory(result: Any, k: int, arrays: Any, ndims: list[int], aliases: Mapping[int, int]) -> np.ndarray[Any, Any]:
    """Return memory for a result; `vmap` may have given the operands further dimensions, and so the results."""
    leading = [np.shape(a)[: np.ndim(a) - ndim] for a, ndim in zip(arrays, ndims, strict=True)]
    shape = (*np.broadcast_shapes(*leading), *result.shape)
    out = np.empty(shape, result.dtype)
    if k in aliases:
        out[...] = arrays[aliases[k]]
    return out


def _read_only(x: Any) -> np.ndarray[Any, Any]:
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view
