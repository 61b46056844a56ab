"""Matrices of special forms: of given elements (Toeplitz, Hankel, ...), or of a given size (Hilbert, Pascal, ...)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.slicing import dynamic_slice_in_dim
from functorch_like.numpy import promotion
from functorch_like.primitives import structural
from functorch_like.scipy.linalg.decompositions import arr
from functorch_like.transforms.eager_jit import eager_jit
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


def _vector(x: Any, name: str, least: int = 1) -> Any:
    x = fnp.atleast_1d(arr(x, f"scipy.linalg.{name}"))
    shape = aval_of(x).shape
    if shape[-1] < least:
        raise promotion.error(
            ShapeError, f"scipy.linalg.{name} of {aval_of(x)!r}", f"give a vector of at least {least}"
        )
    return x


def _size(n: Any, name: str) -> int:
    size = operator.index(n)
    if size < 0:
        raise promotion.error(ArgumentError, f"scipy.linalg.{name} of size {size}", "give a size that is not negative")
    return size


def _picked(values: Any, places: np.ndarray[Any, Any]) -> Any:
    """Return a matrix for each vector, with its elements at these positions."""
    return fnp.take(values, places, axis=-1, mode="clip")


def _windows(values: Any, starts: np.ndarray[Any, Any], size: int) -> Any:
    """Return matrices whose row i is `values[..., starts[i] : starts[i] + size]`."""
    values = structural.materialize(values)  # else XLA computes each element for each row
    row = lambda start: dynamic_slice_in_dim(values, start, size, axis=-1)
    return vmap(row, out_axes=-2)(starts.astype(np.int32))


def _grid(m: int, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.arange(m)[:, None], np.arange(n)[None, :]


# ------------------------------------------------------------------------------------------------------ given elements
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals.

    Args:
        c: (..., m): the first column; a scalar counts as a vector.
        r: (..., n): the first row, whose first element is not read; by default the conjugate of c.

    Returns:
        (..., m, n).

    Raises:
        ShapeError: for vectors of size 0.

    >>> ft.scipy.linalg.toeplitz(fnp.asarray([1, 2]), fnp.asarray([1, 3, 4])).tolist()
    [[1, 3, 4], [2, 1, 3]]
    """
    c = _vector(fnp.atleast_1d(c), "toeplitz")
    return _toeplitz(c, fnp.conj(c) if r is None else _vector(fnp.atleast_1d(r), "toeplitz"))


@eager_jit
def _toeplitz(c: Any, r: Any) -> Any:
    c, r = _leading(c, r)
    m, n = aval_of(c).shape[-1], aval_of(r).shape[-1]
    return _windows(fnp.concatenate([fnp.flip(c, -1), r[..., 1:]], -1), np.arange(m)[::-1], n)


def _leading(*xs: Any) -> list[Any]:
    """Promote arrays to one dtype, and broadcast their leading dimensions."""
    xs = tuple(promotion.promote(*xs))
    lead = promotion.broadcast_shapes(*(aval_of(x).shape[:-1] for x in xs))
    return [promotion.broadcast(x, (*lead, aval_of(x).shape[-1])) for x in xs]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant antidiagonals.

    Args:
        c: (..., m): the first column.
        r: (..., n): the last row, whose first element is not read; by default m zeros.

    Returns:
        (..., m, n).

    Raises:
        ShapeError: for anything but vectors.

    >>> ft.scipy.linalg.hankel(fnp.asarray([1, 2]), fnp.asarray([9, 3, 4])).tolist()
    [[1, 2, 3], [2, 3, 4]]
    """
    c = _vector(c, "hankel")
    return _hankel(c, fnp.zeros_like(c) if r is None else _vector(r, "hankel"))


@eager_jit
def _hankel(c: Any, r: Any) -> Any:
    c, r = _leading(c, r)
    m, n = aval_of(c).shape[-1], aval_of(r).shape[-1]
    return _windows(fnp.concatenate([c, r[..., 1:]], -1), np.arange(m), n)


def circulant(c: ArrayLike) -> Array:
    """The circulant matrix: each column is the one before it, rotated down by one.

    Args:
        c: (..., n): the first column.

    Returns:
        (..., n, n), in the dtype of c.

    >>> ft.scipy.linalg.circulant(fnp.asarray([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    c = _vector(c, "circulant")
    return _circulant(c)


@eager_jit
def _circulant(c: Any) -> Any:
    n, back = aval_of(c).shape[-1], fnp.flip(c, -1)
    return _windows(fnp.concatenate([back, back], -1), np.arange(n)[::-1], n)


def companion(a: ArrayLike) -> Array:
    """The companion matrix, whose eigenvalues are the zeros of a polynomial.

    Args:
        a: (..., n), n > 1: its coefficients, from the highest power down; the first is not zero.

    Returns:
        (..., n - 1, n - 1).

    >>> ft.scipy.linalg.companion(fnp.asarray([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    return _companion(_vector(a, "companion", 2))


@eager_jit
def _companion(a: Any) -> Any:
    a = promotion.to_inexact(a)
    n = aval_of(a).shape[-1] - 1
    first = -a[..., None, 1:] / a[..., None, :1]
    rest = fnp.eye(n - 1, n, dtype=a.dtype)
    return fnp.concatenate([first, fnp.broadcast_to(rest, (*aval_of(first).shape[:-2], n - 1, n))], -2)


def fiedler(a: ArrayLike) -> Array:
    """The Fiedler matrix, which is symmetric: abs(a[i] - a[j]).

    Args:
        a: (..., n).

    Returns:
        (..., n, n), in the dtype of a.

    >>> ft.scipy.linalg.fiedler(fnp.asarray([1, 4])).tolist()
    [[0, 3], [3, 0]]
    """
    x = _vector(a, "fiedler", 0)
    return fnp.abs(x[..., :, None] - x[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """The companion matrix whose nonzero elements are within two places of the diagonal.

    M. Fiedler, "A note on companion matrices", Linear Algebra and its Applications 372, 2003.

    Args:
        a: (n,), n > 1: coefficients of a polynomial, from the highest power down; the first is not zero.

    Returns:
        (n - 1, n - 1), in floating point.

    >>> ft.scipy.linalg.fiedler_companion(fnp.asarray([1.0, -3.0, 2.0])).tolist()
    [[3.0, -2.0], [1.0, 0.0]]
    """
    return _fiedler_companion(_vector(a, "fiedler_companion", 2))


@eager_jit
def _fiedler_companion(a: Any) -> Any:
    a = promotion.to_inexact(a)
    n = aval_of(a).shape[-1] - 1
    a = -a / a[..., :1]
    # Positions of the coefficients: -1 stands for a one, 0 for a zero.
    places = np.zeros((n, n), int)
    places[0, 0] = 1
    for k in range(n):
        if k % 2 == 0:
            places[k, k + 1 : k + 2], places[k, k + 2 : k + 3] = k + 2, -1
            places[k, max(k - 1, 0) : k] = k + 1
        else:
            places[k, max(k - 2, 0) : max(k - 1, int(k == 1))] = -1
    values = _picked(a, np.maximum(places, 0))
    return fnp.where(places > 0, values, (places < 0).astype(np.int8))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix that convolves vectors with one: its product with v is fnp.convolve(a, v, mode).

    Args:
        a: (..., m), not empty.
        n: number of columns: the length of v.
        mode: "full", "same" or "valid".

    Returns:
        A matrix with n columns, in the dtype of a.

    Raises:
        ArgumentError: for another mode, or a size that is not positive.

    >>> ft.scipy.linalg.convolution_matrix(fnp.asarray([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    a = _vector(a, "convolution_matrix")
    if mode not in ("full", "same", "valid") or n < 1:
        raise promotion.error(
            ArgumentError, f"scipy.linalg.convolution_matrix with n={n}, mode={mode!r}",
            "give a positive n, and 'full', 'same' or 'valid'",
        )  # fmt: skip
    m = aval_of(a).shape[-1]
    least, most = min(m, n), max(m, n)
    first, count = {"full": (0, m + n - 1), "same": ((least - 1) // 2, most), "valid": (least - 1, most - least + 1)}[
        mode
    ]
    i, j = _grid(count, n)
    at = i + first - j
    return _taken(a, Places(at))


class Places:
    """Positions that a program is compiled for; those out of bounds stand for zeros."""

    def __init__(self, at: np.ndarray[Any, Any]) -> None:
        self.at, self.key = at, (at.shape, at.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@eager_jit(static=("places",))
def _taken(a: Any, places: Places) -> Any:
    inside = (places.at >= 0) & (places.at < aval_of(a).shape[-1])
    values = _picked(a, np.where(inside, places.at, 0))
    return fnp.where(inside, values, fnp.zeros_like(values))


@eager_jit
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """The Leslie matrix of a population in age classes: f in the first row, s below the diagonal.

    Args:
        f: (..., n): the number of offspring of each class.
        s: (..., n - 1): the fraction of each class that survives.

    Returns:
        (..., n, n), in the common dtype.

    Raises:
        ShapeError: where the sizes do not fit.

    >>> ft.scipy.linalg.leslie(fnp.asarray([0, 2]), fnp.asarray([1])).tolist()
    [[0, 2], [1, 0]]
    """
    births, rest = _leading(_vector(f, "leslie", 2), _vector(s, "leslie"))
    n = aval_of(births).shape[-1]
    if aval_of(rest).shape[-1] != n - 1:
        raise promotion.error(
            ShapeError, f"scipy.linalg.leslie of {aval_of(births)!r} and {aval_of(rest)!r}", "give s one element less"
        )
    below = fnp.eye(n - 1, n, dtype=aval_of(births).dtype) * rest[..., :, None]
    return fnp.concatenate([births[..., None, :], below], -2)


def block_diag(*arrs: ArrayLike) -> Array:
    """A block diagonal matrix: matrices along the diagonal, zeros elsewhere.

    Args:
        arrs: matrices; vectors count as rows, numbers as matrices of one element.

    Returns:
        A matrix of the common dtype.

    Raises:
        ShapeError: for arrays of more dimensions.

    >>> ft.scipy.linalg.block_diag(fnp.asarray([[1], [2]]), 3).tolist()
    [[1, 0], [2, 0], [0, 3]]
    """
    arrays = [arr(a, "scipy.linalg.block_diag") for a in arrs] or [fnp.zeros((1, 0))]
    for a in arrays:
        if aval_of(a).ndim > 2:
            raise promotion.error(ShapeError, f"scipy.linalg.block_diag of {aval_of(a)!r}", "give matrices")
    return _block_diag(arrays)


@eager_jit
def _block_diag(arrs: Any) -> Any:
    blocks = [fnp.atleast_2d(a) for a in promotion.promote(*arrs)]
    width, start, rows = sum(aval_of(b).shape[1] for b in blocks), 0, []
    for block in blocks:
        n = aval_of(block).shape[1]
        rows.append(fnp.pad(block, ((0, 0), (start, width - start - n))))
        start += n
    return fnp.concatenate(rows, 0)


# ----------------------------------------------------------------------------------------------------------- of a size
def _floats(values: Any, n: int) -> Any:
    shape = (n, n)
    return fnp.asarray(np.asarray(values, np.float64).reshape(shape), dtypes.default_float())


def _filled(n: int, element: Callable[[int, int], float]) -> Any:
    """Return a matrix of elements computed in Python, which is exact for ints."""
    return _floats([[float(element(i, j)) for j in range(n)] for i in range(n)], n)


def hilbert(n: int) -> Array:
    """The Hilbert matrix, 1 / (i + j + 1), in the default float dtype.

    Args:
        n: int: number of rows and columns.

    Returns:
        (n, n), in floating point.

    >>> ft.scipy.linalg.hilbert(2).tolist()[0]
    [1.0, 0.5]
    """
    return _filled(_size(n, "hilbert"), lambda i, j: 1 / (i + j + 1))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, of whole numbers, in the default float dtype.

    M.-D. Choi, "Tricks or treats with the Hilbert matrix", American Mathematical Monthly 90, 1983.

    Args:
        n: int: number of rows and columns.

    Returns:
        (n, n).

    >>> ft.scipy.linalg.invhilbert(2).tolist()
    [[4.0, -6.0], [-6.0, 12.0]]
    """
    size, choose = _size(n, "invhilbert"), math.comb

    def element(i: int, j: int) -> int:
        return (-1) ** (i + j) * (i + j + 1) * (
            choose(size + i, size - j - 1) * choose(size + j, size - i - 1) * choose(i + j, i) ** 2
        )  # fmt: skip

    return _filled(size, element)


def _kind(kind: str | None, name: str) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise promotion.error(
            ArgumentError, f"scipy.linalg.{name} with kind={kind!r}", "use 'symmetric', 'lower' or 'upper'"
        )
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix, in the default float dtype.

    Args:
        n: size.
        kind: "symmetric" (default), "lower" or "upper"; the first is the product of the other two.

    Returns:
        (n, n).

    >>> ft.scipy.linalg.pascal(3, kind="lower").tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 1.0]]
    """
    how = _kind(kind, "pascal")
    elements = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    return _filled(_size(n, "pascal"), elements[how])


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`, of whole numbers, in the default float dtype.

    Args:
        n: int: number of rows and columns.
        kind: "symmetric" (default), "lower" or "upper".

    Returns:
        (n, n).

    >>> ft.scipy.linalg.invpascal(2).tolist()
    [[2.0, -1.0], [-1.0, 1.0]]
    """
    how, size = _kind(kind, "invpascal"), _size(n, "invpascal")
    signed = lambda i, j: (-1) ** (i + j) * math.comb(i, j)
    elements = {
        "symmetric": lambda i, j: sum(signed(k, i) * signed(k, j) for k in range(size)),
        "lower": signed,
        "upper": lambda i, j: signed(j, i),
    }
    return _filled(size, elements[how])


def hadamard(n: int, dtype: DTypeLike | None = None) -> Array:
    """Sylvester's Hadamard matrix: of 1 and -1, with orthogonal rows.

    Args:
        n: a power of 2.
        dtype: the default int by default.

    Returns:
        (n, n), of 1 and -1.

    Raises:
        ArgumentError: for another size.

    >>> ft.scipy.linalg.hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    size = _size(n, "hadamard")
    if size & (size - 1) or not size:
        raise promotion.error(ArgumentError, f"scipy.linalg.hadamard of size {size}", "give a power of 2")
    i, j = _grid(size, size)
    odd = np.bitwise_count(i & j) % 2
    return fnp.asarray(1 - 2 * odd.astype(np.int8), dtypes.default_int() if dtype is None else dtype)


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix: orthonormal contrasts of each element with those before it; the default float dtype.

    Args:
        n: size.
        full: include a first row of equal elements, which makes it orthogonal.

    Returns:
        (n - 1, n), or (n, n) if full; in floating point.

    >>> ft.scipy.linalg.helmert(2).round(4).tolist()
    [[0.7070..., -0.7070...]]
    """
    size = _size(n, "helmert")
    i, j = _grid(size, size)
    below = np.where(j < i, 1.0, np.where(j == i, -1.0 * i, 0.0)) / np.sqrt(np.maximum(i * (i + 1.0), 1.0))
    whole = np.where(i == 0, 1 / math.sqrt(max(size, 1)), below)
    return fnp.asarray(whole if full else whole[1:], dtypes.default_float())


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: exp(-2 pi i j k / n).

    Args:
        n: size.
        scale: "sqrtn" divides by the square root of n, which makes it unitary; "n" divides by n.
        dtype: complex64 by default, or complex128.

    Returns:
        (n, n), complex.

    Raises:
        ArgumentError: for another scale.

    >>> ft.scipy.linalg.dft(2).real.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    size = _size(n, "dft")
    if scale not in (None, "sqrtn", "n"):
        raise promotion.error(ArgumentError, f"scipy.linalg.dft with scale={scale!r}", "use None, 'sqrtn' or 'n'")
    i, j = _grid(size, size)
    by = {None: 1.0, "sqrtn": math.sqrt(max(size, 1)), "n": float(max(size, 1))}[scale]
    # Reduced to one turn as an integer, so that no digits are lost.
    values = np.exp(-2j * np.pi * ((i * j) % max(size, 1)) / max(size, 1)) / by
    return fnp.asarray(values, dtypes.complex_of(dtypes.default_float()) if dtype is None else dtype)
