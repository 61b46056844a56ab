"""Products of sparse arrays with dense ones: `bcoo_dot_general` and the values of a product at some indices.

An element (i, k) of a sparse matrix is multiplied by row k of the dense operand, and the products are added up by i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.experimental.sparse import csr_products
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.conversion import is_bcoo
from functorch_like.experimental.sparse.elements import add_up, masked, read, stored
from functorch_like.experimental.sparse.format import method
from functorch_like.experimental.sparse.sparse_products import sparse_dot
from functorch_like.numpy import promotion
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike

Numbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class Pairs(NamedTuple):
    """Pairs of axes of two operands: those that are summed, and those that are batches of the product."""

    contract: tuple[tuple[int, int], ...]
    batch: tuple[tuple[int, int], ...]

    def swapped(self) -> Pairs:
        """Return the pairs for operands in the other order."""
        return Pairs(*(tuple((b, a) for a, b in part) for part in self))


def pairs_of(numbers: Any, left: tuple[int, ...], right: tuple[int, ...], what: str) -> Pairs:
    """Return dimension numbers as pairs of axes.

    Raises:
        ArgumentError: for anything but dimension numbers.
        ShapeError: where sizes differ.
    """
    try:
        (a, b), (c, d) = numbers
        pairs = Pairs(*(tuple((int(x), int(y)) for x, y in zip(p, q, strict=True)) for p, q in ((a, b), (c, d))))
    except (TypeError, ValueError):
        raise promotion.error(
            ArgumentError, f"dimension_numbers={numbers!r:.60} of {what}",
            "give ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))",
        ) from None  # fmt: skip
    both = (*pairs.contract, *pairs.batch)
    fits = all(0 <= x < len(left) and 0 <= y < len(right) and left[x] == right[y] for x, y in both)
    if not fits or any(len({p[k] for p in both}) < len(both) for k in (0, 1)):
        raise promotion.error(
            ShapeError, f"{what} of shapes {left} and {right} over {numbers}", "sizes must be equal in pairs"
        )
    return pairs


@method
def bcoo_dot_general(
    lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, dimension_numbers: Numbers, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> BCOO | Array:  # fmt: skip
    """Return a product that sums over pairs of axes, of which one operand or both are sparse.

    Args:
        lhs: a BCOO or an array.
        rhs: a BCOO or an array.
        dimension_numbers: ((axes of lhs, of rhs) that are summed, (axes of lhs, of rhs) that are batches).
        precision: of products over dense dimensions, as in `lax.dot_general`.
        preferred_element_type: dtype of the result; that of the operands by default.

    Returns:
        An array with the batch axes, the other axes of lhs and those of rhs. Of two BCOOs, a BCOO.

    Raises:
        ShapeError: where sizes differ.
        UnsupportedError: of two sparse operands, with batch axes that are not batches of both.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.BCOO.fromdense(fnp.eye(2))
        >>> sparse.bcoo_dot_general(m, fnp.asarray([3.0, 4.0]), dimension_numbers=(((1,), (0,)), ((), ()))).tolist()
        [3.0, 4.0]
    """
    what = "bcoo_dot_general"
    left, right = (m.shape if isinstance(m, BCOO) else aval_of(fnp.asarray(m)).shape for m in (lhs, rhs))
    pairs = pairs_of(dimension_numbers, left, right, what)
    dtype = None if preferred_element_type is None else fnp.dtype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return sparse_dot(lhs, rhs, pairs.contract, pairs.batch, dtype)
    if isinstance(lhs, BCOO):
        return dot(lhs, rhs, pairs, precision, dtype, False)
    return dot(is_bcoo(rhs, what), lhs, pairs.swapped(), precision, dtype, True)


def dot(mat: BCOO, dense: Any, pairs: Pairs, precision: Any, dtype: Any, swapped: bool) -> Any:
    """Return the product of a sparse and a dense operand.

    Args:
        mat: the sparse one.
        dense: the other.
        pairs: of axes, those of mat first.
        precision: of products over dense dimensions.
        dtype: of the result, or None.
        swapped: True where the axes of the dense operand come first in the result.
    """
    x, y = promotion.promote(mat.data, dense)
    if dtype is not None:
        x, y = x.astype(dtype), y.astype(dtype)
    spec = Spec(mat._sparse_shape, mat.n_batch, mat.indices_sorted, pairs, precision, swapped)
    return dot_parts(x, mat.indices, y, spec)


class Spec(NamedTuple):
    """The static part of a product; `kernel` is False for XLA's operations alone, which have derivatives."""

    sparse: tuple[int, ...]
    n_batch: int
    is_sorted: bool
    pairs: Pairs
    precision: Any
    swapped: bool
    kernel: bool = True


Label = tuple[str, int]


@eager_jit(static=("spec",))
def dot_parts(data: Any, indices: Any, dense: Any, spec: Spec) -> Any:
    """Return the product of a sparse operand, given by its parts, and a dense one."""
    match = dict((*spec.pairs.contract, *spec.pairs.batch))
    n_dense = aval_of(data).ndim - spec.n_batch - 1
    ndim = spec.n_batch + len(spec.sparse) + n_dense
    labels: list[Label] = [("l", a) for a in range(ndim)]
    partner = {b: ("l", a) for a, b in match.items()}
    others: list[Label] = [partner.get(b, ("r", b)) for b in range(aval_of(dense).ndim)]
    summed: set[Label] = {("l", a) for a, _ in spec.pairs.contract}
    out, labels_out = _over(data, indices, dense, labels, others, summed, spec)
    batch: list[Label] = [("l", a) for a, _ in spec.pairs.batch]
    mine = [x for x in labels if x not in summed and x not in batch]
    unshared = [x for x in others if x[0] == "r"]
    order = [*batch, *unshared, *mine] if spec.swapped else [*batch, *mine, *unshared]
    return fnp.transpose(out, [labels_out.index(x) for x in order]) if order != labels_out else out


def _over(
    data: Any, indices: Any, dense: Any, labels: list[Label], others: list[Label], summed: set[Label], spec: Spec
) -> tuple[Any, list[Label]]:
    """Map over the batch dimensions of the sparse operand; sum over those to contract at the end."""
    if aval_of(indices).ndim == 2:
        return (_compressed if spec.is_sorted and spec.kernel else _one)(
            data, indices, dense, labels, others, summed, spec
        )
    label, rest = labels[0], labels[1:]
    place = others.index(label) if label in others else None
    left = [x for x in others if x != label]
    result: list[list[Label]] = []

    def inner(d: Any, i: Any, x: Any) -> Any:
        out, names = _over(d, i, x, rest, left, summed, spec)
        result[:] = [names]
        return out

    n, m = aval_of(data).shape[0], aval_of(indices).shape[0]
    if max(n, m) == 1:
        out = inner(data[0], indices[0], dense if place is None else fnp.take(dense, 0, place))[None]
    else:
        d, i = (x[0] if k == 1 else x for x, k in ((data, n), (indices, m)))
        out = vmap(inner, in_axes=(None if n == 1 else 0, None if m == 1 else 0, place))(d, i, dense)
    if label in summed:
        return fnp.sum(out, axis=0, dtype=aval_of(out).dtype), result[0]
    return out, [label, *result[0]]


def _compressed(
    data: Any, indices: Any, dense: Any, labels: list[Label], others: list[Label], summed: set[Label], spec: Spec
) -> tuple[Any, list[Label]]:
    """Return the product of a sorted operand: by rows if it is a matrix whose columns are summed."""
    rest = [x for x in others if x != labels[-1]]
    free = math.prod(aval_of(dense).shape[others.index(x)] for x in rest)
    matrix = len(labels) == 2 and summed == {labels[1]} and labels[0] not in others
    if not matrix or not csr_products.applies(data, indices, dense, free):
        return _one(data, indices, dense, labels, others, summed, spec)
    moved = fnp.moveaxis(dense, others.index(labels[1]), 0)
    flat = fnp.reshape(moved, (spec.sparse[1], free))
    plain = lambda d, i, x: _one(d, i, x, labels, [labels[1], ("r", 0)], summed, spec)[0]
    out = csr_products.product(plain, data, indices, flat, spec.sparse)
    return fnp.reshape(out, (spec.sparse[0], *aval_of(moved).shape[1:])), [labels[0], *rest]


def _one(
    data: Any, indices: Any, dense: Any, labels: list[Label], others: list[Label], summed: set[Label], spec: Spec
) -> tuple[Any, list[Label]]:
    """Return the product without batch dimensions."""
    s = len(spec.sparse)
    sparse, inner = labels[:s], labels[s:]
    met = [k for k, x in enumerate(sparse) if x in others]
    kept = [k for k, x in enumerate(sparse) if x not in summed]
    free = [x for x in others if x not in sparse]
    # Axes that are paired with sparse ones come first: they select the row for each element.
    dense = fnp.transpose(dense, [others.index(x) for x in (*(sparse[k] for k in met), *free)])
    rows = read(dense, indices if len(met) == s else indices[:, met]) if met else dense[None]
    if not kept:
        data = masked(data, stored(indices, spec.sparse))
    values, names = _multiply(data, rows, inner, free, summed, not kept, bool(met), spec.precision)
    if not kept:
        return values, names
    at = indices if len(kept) == s else indices[:, kept]
    if len(kept) < s:  # an index that is out of bounds in a dimension which is summed
        at = fnp.where(stored(indices, spec.sparse)[:, None], at, _beyond(spec.sparse, kept, at))
    ahead = spec.is_sorted and kept == list(range(len(kept)))
    return add_up(values, at, [spec.sparse[k] for k in kept], ahead), [*(sparse[k] for k in kept), *names]


def _beyond(sparse: tuple[int, ...], kept: Sequence[int], like: Any) -> Any:
    return fnp.asarray([sparse[k] for k in kept], dtype=aval_of(like).dtype)


def _multiply(
    data: Any, rows: Any, inner: list[Label], free: list[Label], summed: set[Label], over_elements: bool, met: bool,
    precision: Any,
) -> tuple[Any, list[Label]]:  # fmt: skip
    """Multiply values and rows of the dense operand, element by element.

    Args:
        data: (nse, *inner).
        rows: (nse, *free), or (1, *free) where the dense operand does not depend on the element.
        inner, free: labels of their dimensions.
        summed: labels of the dimensions to sum over.
        over_elements: True to sum over the elements, too.
        met: True where rows depend on the element.
        precision: of the sums.
    """
    shared = [x for x in inner if x in free]
    names = [x for x in inner if x not in summed] + [x for x in free if x not in inner]
    if not (over_elements or any(x in summed for x in shared)):
        left = fnp.expand_dims(data, [1 + len(inner) + k for k in range(len(free) - len(shared))])
        right = fnp.transpose(rows, [0, *(1 + free.index(x) for x in (*shared, *(y for y in free if y not in inner)))])
        right = fnp.expand_dims(right, [1 + k for k, x in enumerate(inner) if x not in shared]) if inner else right
        return left * right, names
    every = [("k", 0), *inner, *(x for x in free if x not in inner)]
    letter = {x: k for k, x in enumerate(every)}
    k = letter["k", 0]
    out = [letter[x] for x in names]
    operands = [data, [k, *(letter[x] for x in inner)]]
    operands += [rows, [k, *(letter[x] for x in free)]] if met else [rows[0], [letter[x] for x in free]]
    return fnp.einsum(*operands, out if over_elements else [k, *out], precision=precision), names


@method
def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: Numbers) -> Array:
    """Return a product of dense arrays at some indices of its result, without computing the rest.

    Args:
        A: array.
        B: array.
        indices: of elements of the result: (*batches, n, axes), whose batches are the first axes of the result.
        dimension_numbers: as for `bcoo_dot_general`.

    Returns:
        The values: (*batches, n); zeros for indices out of bounds.

    Raises:
        ShapeError: where shapes do not fit.
        UnsupportedError: for indices that leave out axes of the result.
    """
    what = "bcoo_dot_general_sampled"
    a, b = promotion.promote(A, B)
    at: Any = fnp.asarray(indices)
    left, right = aval_of(a), aval_of(b)
    pairs = pairs_of(dimension_numbers, left.shape, right.shape, what)
    batch = [p for p, _ in pairs.batch], [q for _, q in pairs.batch]
    summed = [p for p, _ in pairs.contract], [q for _, q in pairs.contract]
    free = [
        [k for k in range(x.ndim) if k not in (*s, *t)] for x, s, t in zip((left, right), batch, summed, strict=True)
    ]
    lead = aval_of(at).ndim - 2
    if lead < 0 or lead + aval_of(at).shape[-1] != len(batch[0]) + len(free[0]) + len(free[1]):
        raise promotion.error(
            UnsupportedError, f"{what} with indices {aval_of(at)!r} of a result with "
            f"{len(batch[0]) + len(free[0]) + len(free[1])} axes", "give an index for each axis",
        )  # fmt: skip
    for k, n in enumerate(aval_of(at).shape[:lead]):  # the batches of indices are indices, too
        shape = (*aval_of(at).shape[:-1], 1)
        grid = fnp.reshape(fnp.arange(n, dtype=aval_of(at).dtype), (*(n if j == k else 1 for j in range(lead)), 1, 1))
        at = fnp.concatenate([at[..., :k], fnp.broadcast_to(grid, shape), at[..., k:]], axis=-1)
    n = len(batch[0])
    flat = fnp.reshape(at, (-1, aval_of(at).shape[-1]))
    lhs_at = flat[:, : n + len(free[0])]
    rhs_at = fnp.concatenate([flat[:, :n], flat[:, n + len(free[0]) :]], axis=-1)
    x = read(fnp.transpose(a, (*batch[0], *free[0], *summed[0])), lhs_at)
    y = read(fnp.transpose(b, (*batch[1], *free[1], *summed[1])), rhs_at)
    out = fnp.sum(x * y, axis=tuple(range(1, x.ndim)), dtype=left.dtype)
    return fnp.reshape(out, aval_of(at).shape[:-1])
