"""Checks of the parts of sparse arrays; values are checked where they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, DtypeError, ShapeError, TreeError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.shapes import broadcast_to

T = TypeVar("T")


def expect(mat: Any, kind: type[T], what: str, remedy: str) -> T:
    """Return a sparse array as it is, if it is of a kind.

    Raises:
        DtypeError: for anything else.
    """
    if not isinstance(mat, kind):
        raise promotion.error(DtypeError, f"{what} takes a {kind.__name__}, got {mat!r:.60}", remedy)
    return mat


def known(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the values of an array as NumPy's, or None under transformations that hide them."""
    if isinstance(x, Tracer):
        x = x.concrete()
        if x is None or isinstance(x, Tracer):
            return None
    return np.asarray(x)


def need(x: Any, what: str, fix: str) -> np.ndarray[Any, Any]:
    """Return the values of an array.

    Raises:
        ConcretizationError: where they are not known.
    """
    values = known(x)
    if values is None:
        raise promotion.error(ConcretizationError, f"{what} needs values, and {aval_of(x)!r} is traced", fix)
    return values


def sizes(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises:
        ShapeError: for anything else.
    """
    try:
        result = tuple(int(n.__index__()) for n in shape)
    except (AttributeError, TypeError):
        raise promotion.error(
            ShapeError, f"shape={shape!r:.60} of {what} is not a sequence of ints", "pass a tuple"
        ) from None
    if any(n < 0 for n in result):
        raise promotion.error(ShapeError, f"shape={result} of {what} has a negative size", "sizes start at 0")
    return result


def _leaf(x: Any, what: str) -> Any:
    result = x if promotion.is_array(x) else asarray(x)
    aval_of(result)
    return result


def _parts(args: Any, names: Sequence[str], what: str) -> list[Any]:
    if not isinstance(args, (tuple, list)) or len(args) != len(names):
        raise promotion.error(
            TreeError,
            f"{what} takes ({', '.join(names)}), got {args!r:.60}",
            f"{what}(({', '.join(names)}), shape=...)",
        )
    return [_leaf(x, f"{name} of {what}") for x, name in zip(args, names, strict=True)]


def _on_device(*parts: Any) -> list[Any]:
    """Return checked parts, those of NumPy as arrays, so that no call of a compiled function copies them."""
    return [asarray(x) if isinstance(x, np.ndarray) else x for x in parts]


def _integers(name: str, x: Any, what: str) -> None:
    if not dtypes.is_integer(aval_of(x).dtype):
        raise promotion.error(
            DtypeError, f"{name} of {what}, {aval_of(x)!r}, are not integers", "convert with astype('int32')"
        )


def _batches(parts: dict[str, Any], n_batch: int, shape: tuple[int, ...], what: str) -> None:
    for name, x in parts.items():
        batch = aval_of(x).shape[:n_batch]
        if any(a not in (1, b) for a, b in zip(batch, shape, strict=False)):
            raise promotion.error(
                ShapeError, f"{name} of {what}, {aval_of(x)!r}, have batches {batch}; the shape is {shape}",
                f"the first {n_batch} sizes must be {shape[:n_batch]}, or 1 where all batches share them",
            )  # fmt: skip


def _full(data: Any, indices: Any, n_batch: int, shape: tuple[int, ...]) -> Any:
    """Return data, with those batch dimensions in full that have size 1 in both data and indices."""
    a, b = aval_of(data).shape, aval_of(indices).shape
    batch = tuple(n if x == y == 1 else x for x, y, n in zip(a[:n_batch], b[:n_batch], shape, strict=False))
    return data if batch == a[:n_batch] else broadcast_to(data, (*batch, *a[n_batch:]))


def checked_bcoo(args: Any, shape: Sequence[int], is_sorted: bool, unique: bool) -> tuple[Any, Any, int]:
    """Return the parts of a BCOO, and the number of its dense dimensions.

    Raises:
        FtError: where they do not fit; see `BCOO`.
    """
    what = "BCOO"
    data, indices = _parts(args, ("data", "indices"), what)
    shape = sizes(shape, what)
    _integers("indices", indices, what)
    values, at = aval_of(data), aval_of(indices)
    if at.ndim < 2:
        raise promotion.error(
            ShapeError, f"indices of {what}, {at!r}, have too few dimensions", "the shape is (nse, n_sparse)"
        )
    n_batch, n_sparse = at.ndim - 2, at.shape[-1]
    n_dense = len(shape) - n_batch - n_sparse
    fits = n_dense >= 0 and values.ndim == n_batch + 1 + n_dense
    fits = fits and values.shape[n_batch] == at.shape[n_batch]
    if not fits or values.shape[n_batch + 1 :] != shape[n_batch + n_sparse :]:
        nse, dense = at.shape[n_batch], "".join(f", {n}" for n in shape[n_batch + n_sparse :])
        raise promotion.error(
            ShapeError, f"data {values!r} and indices {at!r} do not fit a {what} of shape {shape}",
            f"for these indices data have the shape ({''.join(f'{n}, ' for n in shape[:n_batch])}{nse}{dense})",
        )  # fmt: skip
    _batches({"data": data, "indices": indices}, n_batch, shape, what)
    concrete = known(indices)
    if concrete is not None:
        tail = np.array(shape[n_batch : n_batch + n_sparse], np.int64)
        _check_bounds(concrete, tail, what)
        _check_promises(concrete, tail, is_sorted, unique, what)
    data, indices = _on_device(data, indices)
    return _full(data, indices, n_batch, shape), indices, n_dense


def _check_bounds(indices: np.ndarray[Any, Any], tail: np.ndarray[Any, Any], what: str) -> None:
    valid = ((indices >= 0) & (indices < tail)).all(-1)
    bad = ~(valid | (indices == tail).all(-1))
    if bad.any():
        at = tuple(map(int, np.argwhere(bad)[0]))
        sparse = tuple(map(int, tail))
        raise promotion.error(
            BoundsError,
            f"indices[{', '.join(map(str, at))}] of {what} are {indices[at].tolist()}, out of bounds of {sparse}; "
            f"{int(bad.sum())} of {bad.size} elements are",
            f"indices count from 0; padding has the indices {list(sparse)}",
        )


def _check_promises(
    indices: np.ndarray[Any, Any], tail: np.ndarray[Any, Any], is_sorted: bool, unique: bool, what: str
) -> None:
    if not (is_sorted or unique) or indices.shape[-2] < 2 or not indices.size:
        return
    rows = indices.reshape(-1, *indices.shape[-2:]).astype(np.int64)
    if not is_sorted:
        rows = np.stack([r[np.lexsort(r.T[::-1])] for r in rows])
    steps = rows[:, 1:] - rows[:, :-1]
    first = np.where((steps != 0).any(-1), np.take_along_axis(
        steps, (steps != 0).argmax(-1)[..., None], -1)[..., 0], 0)  # fmt: skip
    if is_sorted and (first < 0).any():
        raise promotion.error(
            ArgumentError, f"indices of {what} are not in order, and indices_sorted=True promises it",
            "leave the promise out, and call .sort_indices()",
        )  # fmt: skip
    doubled = (first == 0) & (rows[:, 1:] < tail).all(-1)
    if unique and doubled.any():
        at = rows[:, 1:][doubled][0].tolist()
        raise promotion.error(
            ArgumentError, f"indices {at} of {what} are stored twice, and unique_indices=True promises they are not",
            "leave the promise out, and call .sum_duplicates()",
        )  # fmt: skip


def checked_coo(
    args: Any, shape: Sequence[int], rows_sorted: bool, cols_sorted: bool
) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Return the parts of a COO, and its shape.

    Raises:
        FtError: where they do not fit; see `COO`.
    """
    what = "COO"
    data, row, col = _parts(args, ("data", "row", "col"), what)
    shape = matrix_shape(shape, what)
    values, at = aval_of(data), {"row": aval_of(row), "col": aval_of(col)}
    _integers("row", row, what)
    _integers("col", col, what)
    if values.ndim != 1 or any(x.shape != values.shape for x in at.values()):
        raise promotion.error(
            ShapeError, f"data {values!r}, row {at['row']!r} and col {at['col']!r} do not fit a {what}",
            "give three vectors of one size",
        )  # fmt: skip
    rows, columns = known(row), known(col)
    if rows is not None and columns is not None:
        _check_bounds(np.stack([rows, columns], -1).astype(np.int64), np.array(shape, np.int64), what)
    for name, x, promised in (("rows", rows, rows_sorted), ("cols", columns, cols_sorted)):
        if promised and x is not None and (np.diff(x.astype(np.int64)) < 0).any():
            raise promotion.error(
                ArgumentError, f"{name} of {what} are not in order, and {name}_sorted=True promises it",
                "leave the promise out",
            )  # fmt: skip
    data, row, col = _on_device(data, row, col)
    return data, row, col, shape


def matrix_shape(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """Return a shape of two dimensions as a tuple of ints.

    Raises:
        ShapeError: for anything else.
    """
    result = sizes(shape, what)
    if len(result) != 2:
        raise promotion.error(ShapeError, f"{what} of shape {result} is not a matrix", "use BCOO for other ranks")
    return result


def checked_bcsr(
    args: Any, shape: Sequence[int], is_sorted: bool, unique: bool, what: str = "BCSR"
) -> tuple[Any, Any, Any, int]:
    """Return the parts of a BCSR, and the number of its dense dimensions.

    Args:
        args: data, indices and indptr.
        shape: of the array; that of the transpose for "CSC".
        is_sorted: a promise that is checked.
        unique: a promise that is checked.
        what: the format: "BCSR", "CSR" or "CSC".

    Raises:
        FtError: where they do not fit; see `BCSR`.
    """
    data, indices, indptr = _parts(args, ("data", "indices", "indptr"), what)
    shape = sizes(shape, what)
    _integers("indices", indices, what)
    _integers("indptr", indptr, what)
    values, at, pointers = aval_of(data), aval_of(indices), aval_of(indptr)
    n_batch = at.ndim - 1
    n_dense = len(shape) - n_batch - 2
    fits = n_batch >= 0 and n_dense >= 0 and values.ndim == n_batch + 1 + n_dense and pointers.ndim == n_batch + 1
    fits = fits and values.shape[n_batch] == at.shape[n_batch]
    fits = fits and pointers.shape[-1] == shape[n_batch] + 1 and values.shape[n_batch + 1 :] == shape[n_batch + 2 :]
    if not fits:
        forms = "data (nse,), indices (nse,) and indptr ({} + 1,)".format("columns" if what == "CSC" else "rows")
        raise promotion.error(
            ShapeError, f"data {values!r}, indices {at!r} and indptr {pointers!r} do not fit a {what} of shape "
            f"{shape[::-1] if what == 'CSC' else shape}",
            "give data (*batches, nse, *dense), indices (*batches, nse) and indptr (*batches, rows + 1)"
            if what == "BCSR" else f"give {forms}",
        )  # fmt: skip
    _batches({"data": data, "indices": indices, "indptr": indptr}, n_batch, shape, what)
    columns, starts = known(indices), known(indptr)
    if columns is not None and starts is not None:
        _check_rows(columns, starts, shape[n_batch + 1], what)
        if is_sorted or unique:
            _check_promises(*_as_coordinates(columns, starts, shape[n_batch : n_batch + 2]), is_sorted, unique, what)
    data, indices, indptr = _on_device(data, indices, indptr)
    return _full(data, indices, n_batch, shape), indices, indptr, n_dense


#: By format, what `indptr` divides the elements into, and what `indices` count.
_LINES = {"BCSR": ("row", "columns"), "CSR": ("row", "columns"), "CSC": ("column", "rows")}


def _check_rows(columns: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], width: int, what: str) -> None:
    nse = columns.shape[-1]
    rises = bool((starts[..., 0] == 0).all() and (np.diff(starts) >= 0).all() and (starts[..., -1] <= nse).all())
    if not rises:
        raise promotion.error(
            BoundsError, f"indptr of {what} must begin with 0, not fall, and end at most at nse={nse}",
            f"{_LINES[what][0]} i has the elements indptr[i] to indptr[i + 1]; what is left over is padding",
        )  # fmt: skip
    used = np.arange(nse) < starts[..., -1:]
    bad = used & ((columns < 0) | (columns >= width))
    if bad.any():
        at = tuple(map(int, np.argwhere(bad)[0]))
        column = int(np.broadcast_to(columns, bad.shape)[at])
        raise promotion.error(
            BoundsError,
            f"indices[{', '.join(map(str, at))}] of {what} is {column}, out of bounds of {width} {_LINES[what][1]}",
            "indices count from 0",
        )  # fmt: skip


def _as_coordinates(columns: Any, starts: Any, sparse: tuple[int, ...]) -> tuple[Any, Any]:
    """Return indices of two dimensions for checks, padding at the end."""
    batch = np.broadcast_shapes(columns.shape[:-1], starts.shape[:-1])
    nse = columns.shape[-1]
    columns = np.broadcast_to(columns, (*batch, nse)).reshape(-1, nse)
    starts = np.broadcast_to(starts, (*batch, starts.shape[-1])).reshape(-1, starts.shape[-1])
    rows = np.stack([np.searchsorted(s, np.arange(nse), "right") - 1 for s in starts])
    padding = np.arange(nse) >= starts[:, -1:]
    return np.stack([rows, np.where(padding, sparse[1], columns)], -1), np.array(sparse, np.int64)
