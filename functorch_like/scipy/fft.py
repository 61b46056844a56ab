"""Discrete cosine transforms of types 1 to 4, under SciPy's names.

Each is a Fourier transform of a sequence that is mirrored, or rotated (J. Makhoul, "A fast cosine transform in one and
two dimensions", IEEE Trans. ASSP 28, 1980). Sums as in SciPy: type 2 is y[k] = 2 sum_j x[j] cos(pi k (2j + 1) / 2n).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.operands import given
from functorch_like.primitives import elementwise
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

    class AlongAxis(Protocol):
        """A transform along one axis."""

        __name__: str

        def __call__(
            self, x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class OverAxes(Protocol):
        """A transform over several axes."""

        __name__: str

        def __call__(
            self,
            x: ArrayLike,
            type: int = 2,
            s: int | Sequence[int] | None = None,
            axes: int | Sequence[int] | None = None,
            norm: str | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_DOC = """{summary}

    Args:
        x: array; integers become the default float.
        type: 1, 2, 3 or 4.
        {sizes}
        norm: the place of the factor that makes the inverse exact: "backward" (the default), "forward", or "ortho",
            which makes the transform orthogonal.

    Returns:
        Floats of at least 32 bits, of the given lengths along the axes; of complex numbers, both parts apart.

    Raises:
        ArgumentError: for another type or norm, and for an axis that is named twice.
        ShapeError: for lengths below 1 (2 for type 1), and axes that do not exist.

    >>> bool(np.allclose(ft.scipy.fft.idct(ft.scipy.fft.dct(fnp.arange(4.0))), np.arange(4.0), atol=1e-5))
    True
    """


def _many(x: Any, type: int, s: Any, axes: Any, norm: Any, inverse: bool, name: str) -> Any:
    (x,) = given(x)
    aval = aval_of(x)
    if type not in _INVERSE or norm not in (None, "backward", "ortho", "forward"):
        raise promotion.error(
            ArgumentError,
            f"fft.{name} of type {type!r}, norm={norm!r}",
            "use types 1 to 4; 'backward', 'ortho', 'forward'",
        )
    s, axes = ((v,) if isinstance(v, (int, np.integer)) else v for v in (s, axes))
    if axes is None:
        axes = range(aval.ndim) if s is None else range(-len(tuple(s)), 0)
    dims = tuple(axis_of(d, aval.ndim, f"fft.{name}") for d in axes)
    if len(set(dims)) < len(dims):
        raise promotion.error(ArgumentError, f"fft.{name} along axes {tuple(axes)}", "name each axis once")
    sizes = tuple(aval.shape[d] for d in dims) if s is None else tuple(map(operator.index, s))
    least = 2 if type == 1 else 1
    if len(sizes) != len(dims) or any(n < least for n in sizes):
        raise promotion.error(
            ShapeError, f"fft.{name} of {aval!r} to lengths {sizes} along {dims}", f"use at least {least}"
        )
    return _transforms(x, type=type, sizes=sizes, axes=dims, norm=norm or "backward", inverse=inverse)


@eager_jit(static=("type", "sizes", "axes", "norm", "inverse"))
def _transforms(x: Any, type: int, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str, inverse: bool) -> Any:
    x = promotion.to_inexact(x)
    if dtypes.is_complex(aval_of(x).dtype):
        parts = (_transforms(part, type, sizes, axes, norm, inverse) for part in (fnp.real(x), fnp.imag(x)))
        return elementwise.complex(*parts)
    x = promotion.convert(x, dtypes.float32) if aval_of(x).dtype.itemsize < 4 else x
    for n, d in zip(sizes, axes, strict=True):
        x = fnp.moveaxis(x, d, -1)
        size = aval_of(x).shape[-1]
        x = x[..., :n] if size > n else fnp.pad(x, [(0, 0)] * (aval_of(x).ndim - 1) + [(0, n - size)])
        x = fnp.moveaxis(_transform(x, type, norm, inverse), -1, d)
    return x


def _transform(x: Any, type: int, norm: str, inverse: bool) -> Any:
    """Transform along the last axis. The inverse is the opposite type over 2 n, or 2 (n - 1) for type 1."""
    kind = _INVERSE[type] if inverse else type
    n, dtype = aval_of(x).shape[-1], aval_of(x).dtype
    total = 2 * (n - 1) if kind == 1 else 2 * n
    if norm == "ortho":
        ends = np.ones(n)
        ends[0] = math.sqrt(2)
        if kind == 1:
            ends[-1] = math.sqrt(2)
        before = ends if kind in (1, 3) else np.ones(n)
        after = 1 / ends if kind in (1, 2) else np.ones(n)
        x = _PLAIN[kind](x * fnp.asarray(before, dtype))
        return x * fnp.asarray(after / math.sqrt(total), dtype)
    out = _PLAIN[kind](x)
    return out / total if inverse == (norm == "backward") else out


def _turn(n: int, quarter: float, like: Any) -> Any:
    """Return exp(-i pi (k + quarter) / 2n) for k = 0 ... n-1."""
    angles = -math.pi * (np.arange(n) + quarter) / (2 * n)
    return fnp.asarray(np.exp(1j * angles), np.result_type(aval_of(like).dtype, np.complex64))


def _first(x: Any) -> Any:
    return fnp.real(fnp.fft.rfft(fnp.concatenate([x, fnp.flip(x, -1)[..., 1:-1]], -1)))


def _interleaved(x: Any) -> Any:
    """Reorder: even positions forwards, then odd positions backwards."""
    return fnp.concatenate([x[..., ::2], fnp.flip(x[..., 1::2], -1)], -1)


def _woven(first: Any, second: Any) -> Any:
    """Return the elements of two sequences in turns; the second has as many as the first, or one less."""
    n = aval_of(first).shape[-1] + aval_of(second).shape[-1]
    padding = [(0, 0)] * (aval_of(second).ndim - 1) + [(0, n % 2)]
    return fnp.stack([first, fnp.pad(second, padding)], -1).reshape((*aval_of(first).shape[:-1], -1))[..., :n]


def _second(x: Any) -> Any:
    """Apply type 2. The spectrum is that of real numbers: its first half has all of the result."""
    n = aval_of(x).shape[-1]
    half = 2 * fnp.fft.rfft(_interleaved(x)) * _turn(n, 0, x)[: n // 2 + 1]
    return fnp.concatenate([fnp.real(half), -fnp.flip(fnp.imag(half)[..., 1 : (n + 1) // 2], -1)], -1)


def _third(x: Any) -> Any:
    """Apply type 3, which undoes type 2 up to a factor."""
    n = aval_of(x).shape[-1]
    mirrored = fnp.concatenate([fnp.zeros_like(x[..., :1]), fnp.flip(x[..., n - n // 2 :], -1)], -1)
    half = lax.complex(x[..., : n // 2 + 1], -mirrored) * fnp.conj(_turn(n, 0, x)[: n // 2 + 1])
    values = n * fnp.fft.irfft(half, n)
    return _woven(values[..., : (n + 1) // 2], fnp.flip(values[..., (n + 1) // 2 :], -1))


def _fourth(x: Any) -> Any:
    """Apply type 4: every second number of type 2 of twice the length, or a transform of half of an even length."""
    n = aval_of(x).shape[-1]
    if n % 2 == 0:
        pairs = lax.complex(x[..., ::2], fnp.flip(x, -1)[..., ::2])
        turn = _turn(n // 2, 0.125, x)
        out = 2 * turn * fnp.fft.fft(pairs * turn)
        return _woven(fnp.real(out), -fnp.flip(fnp.imag(out), -1))
    padded = fnp.concatenate([x * _turn(n, 0.5, x), fnp.zeros_like(x)], -1)
    phases = np.exp(-1j * math.pi * np.arange(n) / (2 * n))
    out = fnp.fft.fft(padded)[..., :n] * fnp.asarray(phases, aval_of(padded).dtype)
    return 2 * fnp.real(out)


_PLAIN = {1: _first, 2: _second, 3: _third, 4: _fourth}

_ONE = "n: length along the axis, which is cut or padded with zeros to it.\n        axis: the axis."
_SEVERAL = (
    "s: lengths along the axes.\n        axes: the axes; all by default, or the last len(s) if lengths are given."
)


def _single(name: str, inverse: bool, summary: str) -> AlongAxis:
    def function(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _many(x, type, None if n is None else (n,), (axis,), norm, inverse, name)

    return promotion.named(function, name, _DOC.format(summary=summary, sizes=_ONE), __name__)


def _multiple(name: str, inverse: bool, summary: str) -> OverAxes:
    def function(
        x: ArrayLike,
        type: int = 2,
        s: int | Sequence[int] | None = None,
        axes: int | Sequence[int] | None = None,
        norm: str | None = None,
    ) -> Array:
        return _many(x, type, s, axes, norm, inverse, name)

    return promotion.named(function, name, _DOC.format(summary=summary, sizes=_SEVERAL), __name__)


dct = _single("dct", False, "The discrete cosine transform along an axis.")
idct = _single("idct", True, "The inverse of `dct`.")
dctn = _multiple("dctn", False, "The discrete cosine transform along several axes.")
idctn = _multiple("idctn", True, "The inverse of `dctn`.")
