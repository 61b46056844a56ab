"""Jacobians and Hessians: `jacfwd`, `jacrev`, `hessian`.

A Jacobian is the derivative's linear map, applied to every unit vector at once: forward mode gives its columns, one
for each element of the arguments, reverse mode its rows, one for each element of the results.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, overload

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import Aux, P
from functorch_like.core import BatchAxis, aval_of
from functorch_like.interpreters import batching, forward, reverse
from functorch_like.primitives.base.shapes import broadcast_in_dim, move, reshape, widen, zeros
from functorch_like.primitives.elementwise.arithmetic import sub
from functorch_like.primitives.elementwise.comparison import eq
from functorch_like.primitives.structural import convert_element_type, iota
from functorch_like.primitives.structural.pad_and_slice import slice as slice_primitive
from functorch_like.transforms.argnums import argnums_partial, check_forward_input, check_input, check_output, positions
from functorch_like.transforms.chunked_vmap import check_chunk_size, in_chunks
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.transforms.tangents import FlatFunction, Fun

if TYPE_CHECKING:
    from functorch_like.core import Array


@overload
def jacfwd(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]: ...
@transformation
def jacfwd(
    fun: Fun,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Fun:
    """The Jacobian of a function in forward mode, column by column; efficient for more results than arguments.

    Args:
        fun: pure; takes and returns pytrees of arrays.
        argnums: the position, or positions, of the arguments to differentiate with respect to: pytrees of
            real float arrays.
        has_aux: whether `fun` returns a pair whose second part is passed through without differentiation.
        holomorphic: promise that `fun` is holomorphic; arguments and results are then complex.
        chunk_size: how many columns to compute at once, which bounds the memory; all of them if None. `fun` is
            evaluated once in any case.

    Returns:
        A function of the same arguments that gives the Jacobian, a nested pytree. It has the structure of the result;
        each leaf y is replaced by the structure of the argument, or a tuple of such where `argnums` is a sequence.
        There each leaf x is an array of shape `y.shape + x.shape`. With `has_aux` a pair `(jacobian, aux)`.

    Raises:
        DifferentiationError: where an argument is not real (complex, with `holomorphic`).

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.jacfwd(lambda x: fnp.stack([x[0] * x[1], x[0] ** 2]))(fnp.asarray([2.0, 3.0])).tolist()
    [[3.0, 2.0], [4.0, 0.0]]
    """
    return _jacobian_function(fun, argnums, has_aux, chunk_size, "jacfwd", _columns, holomorphic=holomorphic)


@overload
def jacrev(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]: ...
@transformation
def jacrev(
    fun: Fun,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Fun:
    """The Jacobian of a function in reverse mode, row by row; efficient for more arguments than results.

    Args:
        fun: pure; takes pytrees of arrays, returns a pytree of real float arrays.
        argnums: the position, or positions, of the arguments to differentiate with respect to: pytrees of
            float arrays.
        has_aux: as for `jacfwd`.
        holomorphic: as for `jacfwd`.
        allow_int: allow integer arguments; their derivatives have dtype float0.
        chunk_size: how many rows to compute at once, which bounds the memory; all of them if None.

    Returns:
        As for `jacfwd`.

    Raises:
        DifferentiationError: where a result is not real (complex, with `holomorphic`), or an argument is not float.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.jacrev(lambda x: fnp.stack([x[0] * x[1], x[0] ** 2]))(fnp.asarray([2.0, 3.0])).tolist()
    [[3.0, 2.0], [4.0, 0.0]]
    """
    return _jacobian_function(
        fun, argnums, has_aux, chunk_size, "jacrev", _rows, holomorphic=holomorphic, allow_int=allow_int
    )


jacobian = jacrev  # as JAX has it


@overload
def hessian(
    fun: Callable[Concatenate[Array, P], Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[Array, P], Array]: ...
@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@transformation
def hessian(fun: Fun, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Fun:
    """The second derivatives of a function: forward mode over reverse mode, `jacfwd(jacrev(fun))`.

    Args:
        fun: pure; takes pytrees of arrays, returns a pytree of real float arrays, usually one scalar.
        argnums: as for `jacrev`.
        has_aux: as for `jacrev`.
        holomorphic: as for `jacrev`.

    Returns:
        A function of the same arguments that gives a pytree nested as that of `jacfwd`, one level deeper. For a leaf y
        of the result and leaves x and z of the arguments it has an array of shape `y.shape + x.shape + z.shape`.

    Raises:
        DifferentiationError: as for `jacrev` and `jacfwd`.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.hessian(lambda x: x[0] ** 2 * x[1])(fnp.asarray([2.0, 3.0])).tolist()
    [[6.0, 4.0], [4.0, 0.0]]
    """
    first = _jacobian_function(fun, argnums, has_aux, None, "hessian", _rows, holomorphic=holomorphic, allow_int=False)
    return _jacobian_function(first, argnums, has_aux, None, "hessian", _columns, holomorphic=holomorphic)


def _jacobian_function(
    fun: Fun,
    argnums: int | Sequence[int],
    has_aux: bool,
    chunk_size: int | None,
    name: str,
    make: Callable[..., tuple[Blocks, list[Any]]],
    **kind: bool,
) -> Fun:
    """Make the function that computes Jacobians.

    Args:
        fun: as for `jacfwd`.
        argnums: as for `jacfwd`.
        has_aux: as for `jacfwd`.
        chunk_size: as for `jacfwd`.
        name: name of the transformation that the user called, for errors.
        make: `_columns` or `_rows`.
        kind: further arguments for it.
    """
    check_callable(fun, name)
    check_chunk_size(chunk_size, name)

    @wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        partial, dynamic = argnums_partial(fun, args, kwargs, positions(argnums, len(args), name))
        leaves, in_tree = xla.flatten(dynamic)
        function = FlatFunction(partial, in_tree, has_aux)
        blocks, aux = make(function, leaves, chunk_size, name, source_info.name_of(fun), **kind)
        trees = [in_tree.unflatten(row) for row in blocks]
        out = function.out_tree.unflatten([t[0] if isinstance(argnums, (int, np.integer)) else t for t in trees])
        return (out, function.aux_tree.unflatten(aux)) if has_aux else out

    return jacobian


# ------------------------------------------------------------------------------------------------- columns and rows
Blocks = list[list[Any]]  # for each leaf of the result, one array for each leaf of the arguments


def _columns(
    function: FlatFunction, leaves: list[Any], chunk_size: int | None, name: str, of: str, *, holomorphic: bool
) -> tuple[Blocks, list[Any]]:
    for leaf in leaves:
        check_forward_input(leaf, holomorphic, name)
    avals = [aval_of(a) for a in leaves]
    size, starts = _offsets(avals)
    results: list[Any] = []

    if chunk_size is None or chunk_size >= size:
        # One evaluation for all directions: values that do not depend on them are computed once.
        def push(*directions: Any) -> list[Any]:
            results[:], tangents = forward.jvp(function.flat, leaves, directions, "jacfwd")
            return tangents
    else:
        results, linear = reverse.linearize(function.flat, leaves, [True] * len(leaves), "jacfwd")

        def push(*directions: Any) -> list[Any]:
            return linear.apply(directions)

    def run(start: Any, count: int) -> list[Any]:
        basis = _basis(avals, starts, start, count)
        tangents, dims = batching.batch(push, BatchAxis(count), basis, [0] * len(basis), "")
        outs = [aval_of(o) for o in results[: function.count]]
        return [_placed(t, d, count, o, o.ndim) for t, d, o in zip(tangents, dims, outs, strict=False)]

    whole = in_chunks(run, size, chunk_size, lambda: [aval_of(o).ndim for o in results[: function.count]])
    outs, aux = results[: function.count], results[function.count :]
    blocks: Blocks = []
    for out, columns in zip(outs, whole, strict=True):
        y = aval_of(out)
        if holomorphic:
            check_output(y, holomorphic, of, name)
        blocks.append(
            [
                _float0(y, x)
                if not dtypes.is_inexact(y.dtype)
                else _weak(_cut(columns, y.ndim, start, x.size, (*y.shape, *x.shape)), y, x)
                for x, start in zip(avals, starts, strict=True)
            ]
        )
    return blocks, aux


def _rows(
    function: FlatFunction,
    leaves: list[Any],
    chunk_size: int | None,
    name: str,
    of: str,
    *,
    holomorphic: bool,
    allow_int: bool,
) -> tuple[Blocks, list[Any]]:
    inexact = [check_input(a, holomorphic, allow_int, name) for a in leaves]
    results, linear = reverse.linearize(function.flat, leaves, inexact, "jacrev")
    outs, aux = results[: function.count], results[function.count :]
    out_avals = [aval_of(o) for o in outs]
    for y in out_avals:
        check_output(y, holomorphic, of, name)
    size, starts = _offsets(out_avals)
    some = [aval_of(a) for a, w in zip(leaves, inexact, strict=True) if w]

    def run(start: Any, count: int) -> list[Any]:
        basis = _basis(out_avals, starts, start, count)
        pull = lambda *cts: linear.transpose([*cts, *[None] * len(aux)])
        back, dims = batching.batch(pull, BatchAxis(count), basis, [0] * len(basis), "")
        return [_placed(ct, d, count, x, 0) for ct, d, x in zip(back, dims, some, strict=True)]

    rows = in_chunks(run, size, chunk_size, lambda: [0] * len(some))
    blocks: Blocks = []
    for y, start in zip(out_avals, starts, strict=True):
        result = iter(rows)
        blocks.append(
            [
                _weak(_cut(next(result), 0, start, y.size, (*y.shape, *aval_of(a).shape)), y, aval_of(a))
                if w
                else _float0(y, aval_of(a))
                for a, w in zip(leaves, inexact, strict=True)
            ]
        )
    return blocks, aux


# ------------------------------------------------------------------------------------------------------ unit vectors
def _offsets(avals: list[ShapedArray]) -> tuple[int, list[int]]:
    """Return the number of elements, and the offset of each array."""
    ends = list(itertools.accumulate([a.size for a in avals], initial=0))
    return ends[-1], ends[:-1]


def _basis(avals: list[ShapedArray], starts: list[int], start: Any, count: int) -> list[Any]:
    """Unit vectors number start ... start+count-1 of the space that the arrays make up together."""
    return [
        _unit_vectors(sub(start, np.int32(first)), count=count, shape=a.shape, dtype=a.dtype)
        for a, first in zip(avals, starts, strict=True)
    ]


@eager_jit(static=("count", "shape", "dtype"))
def _unit_vectors(first: Any, count: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Rows of an identity matrix: row k has its 1 at element first + k, and is zero where there is no such element."""
    size = ShapedArray(shape, dtype).size
    table = (count, size)
    column = iota(dtype=np.dtype(np.int32), shape=table, dimension=1)
    row = iota(dtype=np.dtype(np.int32), shape=table, dimension=0)
    hits = eq(sub(column, row), broadcast_in_dim(first, shape=table, broadcast_dimensions=()))
    return reshape(convert_element_type(hits, new_dtype=dtype), shape=(count, *shape))


def _placed(value: Any, dim: int | None, count: int, aval: ShapedArray, at: int) -> Any:
    """Move the axis of unit vectors in a derivative to position `at`, or add it where the derivative has none."""
    if value is None:
        dtype = aval.dtype if dtypes.is_inexact(aval.dtype) else np.dtype(np.float32)
        return zeros(ShapedArray((*aval.shape[:at], count, *aval.shape[at:]), dtype))
    return widen(value, count, at) if dim is None else move(value, dim, at)


def _cut(x: Any, axis: int, start: int, count: int, shape: tuple[int, ...]) -> Any:
    """One leaf's part of all rows or columns, in the shape of the block."""
    whole = aval_of(x).shape
    if whole[axis] != count:
        first = tuple(start if d == axis else 0 for d in range(len(whole)))
        last = tuple(start + count if d == axis else n for d, n in enumerate(whole))
        x = slice_primitive(x, start_indices=first, limit_indices=last, strides=None)
    return reshape(x, shape=shape)


def _weak(block: Any, y: ShapedArray, x: ShapedArray) -> Any:
    """Return a derivative as an array of the package, weakly typed between Python numbers."""
    aval = aval_of(block)
    weak = y.weak_type and x.weak_type
    if weak is aval.weak_type and not isinstance(block, np.ndarray):
        return block
    return convert_element_type(block, new_dtype=aval.dtype, weak_type=weak)


def _float0(y: ShapedArray, x: ShapedArray) -> Any:
    return np.zeros((*y.shape, *x.shape), dtypes.float0)
