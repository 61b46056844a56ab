"""`sparse_jacobian`: the entries of a Jacobian that may differ from zero, from few products with vectors.

One product gives all columns of a group that share no row: each row has an entry in at most one of them. Such groups
are the colours of a graph. A greedy colouring needs few colours where rows have few entries: three for a tridiagonal
Jacobian of any size. (Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices", 1974.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import source_info
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import P
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.primitives.base.shapes import reshape
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.transforms.argnums import check_forward_input, check_output
from functorch_like.transforms.chunked_vmap import check_chunk_size
from functorch_like.transforms.jvp_vjp import Linearized
from functorch_like.transforms.tangents import error_context
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, NestedArrayLike


@transformation
def sparse_jacobian(
    fun: Callable[P, ArrayLike], pattern: NestedArrayLike, mode: str | None = None, *, chunk_size: int | None = None
) -> Callable[P, Array]:
    """The entries of a Jacobian whose pattern is known.

    Args:
        fun: takes and returns an array of real floats; it may take further arguments, which are held fixed.
        pattern: bool array of shape (size of the result, size of the argument), both as flat vectors: true where an
            entry may differ from zero. Entries elsewhere must be zero, or the others come out wrong.
        mode: "fwd" computes groups of columns, "rev" groups of rows; None chooses the one with fewer groups.
        chunk_size: how many groups to compute at once; all of them if None.

    Returns:
        A function of the same arguments that gives a vector: the entries at `numpy.nonzero(pattern)`, in that order.
        The sparse Hessian of f is `sparse_jacobian(grad(f), pattern)`.

    Raises:
        ArgumentError: for a pattern that is not a matrix of booleans, or an unknown mode.
        ShapeError: where the pattern does not fit the sizes of argument and result.
        DifferentiationError: where argument or result are not real floats.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> steps = lambda x: x[1:] ** 2 - x[:-1]
    >>> pattern = np.array([[True, True, False], [False, True, True]])
    >>> ft.sparse_jacobian(steps, pattern)(fnp.asarray([1.0, 2.0, 3.0])).tolist()
    [-1.0, 4.0, -1.0, 6.0]
    """
    check_callable(fun, "sparse_jacobian")
    check_chunk_size(chunk_size, "sparse_jacobian")
    if mode not in (None, "fwd", "rev"):
        raise ArgumentError(f"mode={mode!r} of sparse_jacobian is unknown", fix="use 'fwd', 'rev' or None")
    mask = None if isinstance(pattern, Tracer) else np.asarray(pattern)
    if mask is None or mask.ndim != 2 or mask.dtype != bool:
        raise ArgumentError(
            f"the pattern of sparse_jacobian must be a matrix of booleans, got {pattern!r:.60}",
            fix="pass a NumPy array of shape (results, arguments), e.g. matrix != 0",
        )
    rows, columns = np.nonzero(mask)
    options = [(m, color(a, b)) for m, a, b in (("fwd", rows, columns), ("rev", columns, rows)) if mode in (None, m)]
    chosen, (colors, count) = min(options, key=lambda option: option[1][1])
    grouped, across = (columns, rows) if chosen == "fwd" else (rows, columns)

    function: Callable[..., Any] = fun

    @wraps(fun)
    def entries(x: Any, *args: Any, **kwargs: Any) -> Any:
        check_forward_input(x, False, "sparse_jacobian")
        at = Linearized(lambda x: function(x, *args, **kwargs), (x,), False, "sparse_jacobian")
        (out,) = at.outs if len(at.outs) == 1 else (at.out,)
        y = aval_of(out)
        check_output(y, False, source_info.name_of(fun), "sparse_jacobian")
        aval = aval_of(x)
        if mask.shape != (y.size, aval.size):
            raise ShapeError(
                f"the pattern of sparse_jacobian has shape {mask.shape}, for a result {y!r} and an argument {aval!r}",
                fix=f"give it the shape ({y.size}, {aval.size})",
                **error_context(),
            )
        seed_aval, product_aval = (aval, y) if chosen == "fwd" else (y, aval)
        seeds = np.zeros((count, seed_aval.size), seed_aval.dtype)
        seeds[colors[grouped], grouped] = 1
        push: Callable[..., Any] = at.pushforward if chosen == "fwd" else lambda ct: at.pullback(ct)[0]
        products = vmap(push, chunk_size=chunk_size)(seeds.reshape((count, *seed_aval.shape)))
        return along(
            reshape(products, shape=(count * product_aval.size,)),
            _positions(colors[grouped] * product_aval.size + across),
            0,
        )

    return entries


def _positions(at: np.ndarray) -> np.ndarray:
    return at.astype(np.int32 if at.size == 0 or at.max() < 2**31 else np.int64)


def color(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, int]:
    """Colours of columns such that no two of one colour share a row, and how many there are.

    Greedy, beginning with the columns of most entries.

    Args:
        rows: of the entries.
        columns: of the entries.
    """
    in_row: dict[int, list[int]] = {}
    in_column: dict[int, list[int]] = {}
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        in_row.setdefault(i, []).append(j)
        in_column.setdefault(j, []).append(i)
    colors = np.full(int(columns.max()) + 1 if columns.size else 0, -1)
    for j in sorted(in_column, key=lambda j: -len(in_column[j])):
        taken = {int(colors[other]) for i in in_column[j] for other in in_row[i]}
        colors[j] = next(c for c in range(len(in_column)) if c not in taken)
    return colors, int(colors.max(initial=-1)) + 1
