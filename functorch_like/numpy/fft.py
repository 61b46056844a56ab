"""Discrete Fourier transforms, as in numpy.fft; single precision stays single, integers become the default float.

`fft` computes y[k] = sum_j x[j] exp(-2 pi i j k / n). `norm` places the factor 1/n: in the inverse ("backward", the
default), in the forward transform ("forward"), or its root in both ("ortho").
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion, shapes
from functorch_like.numpy.axes import axis_of
from functorch_like.numpy.frequencies import fftfreq as fftfreq
from functorch_like.numpy.frequencies import fftshift as fftshift
from functorch_like.numpy.frequencies import ifftshift as ifftshift
from functorch_like.numpy.frequencies import rfftfreq as rfftfreq
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions import fft as fft_primitive
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike

    class AlongAxis(Protocol):
        """A transform along one axis."""

        __name__: str

        def __call__(self, a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class OverTwoAxes(Protocol):
        """A transform over two axes."""

        __name__: str

        def __call__(
            self, a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...

    class OverAxes(Protocol):
        """A transform over several axes."""

        __name__: str

        def __call__(
            self,
            a: ArrayLike,
            s: Sequence[int] | None = None,
            axes: Sequence[int] | None = None,
            norm: str | None = None,
        ) -> Array:
            """Compute the result; the function's own docstring describes it."""
            ...


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _norm(norm: str | None, name: str) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _OPPOSITE:
        raise promotion.error(ArgumentError, f"fnp.fft.{name}: norm={norm!r}", "use 'backward', 'ortho' or 'forward'")
    return norm


def _length(n: Any, name: str) -> int:
    try:
        n = operator.index(n)
    except TypeError:
        why = f"fnp.fft.{name}: {n!r} is not a length"
        raise promotion.error(ShapeError, why, "lengths are ints, fixed while tracing") from None
    if n < 1:
        raise promotion.error(ShapeError, f"fnp.fft.{name} of {n} points", "a transform has at least 1 point")
    return n


def _many(kind: str, a: Any, s: Any, axes: Any, norm: Any, name: str) -> Any:
    """Apply a transform over several axes: check lengths and axes, then call the compiled function."""
    a = shapes.arr(a, f"fnp.fft.{name}")
    shape = aval_of(a).shape
    if axes is None:
        axes = range(len(shape)) if s is None else range(-len(tuple(s)), 0)
    dims = tuple(axis_of(d, len(shape), f"fnp.fft.{name}") for d in axes)
    if not dims and kind in ("RFFT", "IRFFT"):
        raise promotion.error(ShapeError, f"fnp.fft.{name} over no axes", "name at least one axis")
    sizes = [shape[d] for d in dims]
    if s is not None:
        if len(tuple(s)) != len(dims):
            raise promotion.error(ShapeError, f"fnp.fft.{name}: s={s} for axes {dims}", "give one length for each axis")
        sizes = [size if n is None or n == -1 else n for n, size in zip(s, sizes, strict=True)]
    if kind == "IRFFT" and (s is None or tuple(s)[-1] in (None, -1)):
        sizes[-1] = 2 * (shape[dims[-1]] - 1)
    return _transform(a, kind, tuple(_length(n, name) for n in sizes), dims, _norm(norm, name), name)


def _single(kind: str, a: Any, n: Any, axis: Any, norm: Any, name: str) -> Any:
    return _many(kind, a, None if n is None else (_length(n, name),), (axis,), norm, name)


@eager_jit(static=("kind", "s", "axes", "norm", "name"))
def _transform(a: Any, kind: str, s: tuple[int, ...], axes: tuple[int, ...], norm: str, name: str) -> Any:
    a = _operand(a, kind, name)
    steps = _steps(kind, list(zip(s, axes, strict=True)))
    for step, lengths, over in steps:
        a = _apply(a, step, lengths, over)
    total = math.prod(s)
    inverse = kind in ("IFFT", "IRFFT")
    scale = {"backward": 1.0, "ortho": math.sqrt(total), "forward": float(total)}[norm]
    return a if scale == 1 else elementwise.mul(a, structural.full_like(a, scale if inverse else 1 / scale))


def _operand(a: Any, kind: str, name: str) -> Any:
    a = promotion.to_inexact(a)
    aval = aval_of(a)
    if dtypes.is_complex(aval.dtype):
        if kind == "RFFT":
            raise promotion.error(
                DtypeError, f"fnp.fft.{name} takes real numbers, got {aval!r}", "take the real part, or use fnp.fft.fft"
            )
        return a
    a = a if aval.dtype == dtypes.float64 else promotion.convert(a, dtypes.float32, aval.weak_type)
    return a if kind == "RFFT" else elementwise.complex(a, structural.full_like(a, 0))


def _steps(kind: str, pairs: list[tuple[int, int]]) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Return the primitives to apply, in order: each takes up to three axes; the real one is first or last."""
    plain = {"RFFT": "FFT", "IRFFT": "IFFT"}.get(kind, kind)
    groups: list[list[tuple[int, int]]] = []
    for pair in reversed(pairs):  # the last axis first, as in NumPy
        if not groups or len(groups[-1]) == fft_primitive.MOST or pair[1] in [axis for _, axis in groups[-1]]:
            groups.append([])
        groups[-1].insert(0, pair)
    if kind == "IRFFT":  # the group with the halved axis comes last; the others commute with it
        groups = groups[1:] + groups[:1]
        if len({axis for _, axis in pairs}) < len(pairs):
            groups = [[pair] for pair in pairs[:-1]] + [pairs[-1:]]
    kinds = [plain] * len(groups)
    if kind != plain:
        kinds[0 if kind == "RFFT" else -1] = kind
    return [(k, *zip(*g, strict=True)) for k, g in zip(kinds, groups, strict=True)]  # type: ignore[misc]


def _apply(a: Any, kind: str, lengths: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    in_sizes = [n // 2 + 1 if kind == "IRFFT" and k == len(axes) - 1 else n for k, n in enumerate(lengths)]
    shape = aval_of(a).shape
    if any(shape[d] != n for d, n in zip(axes, in_sizes, strict=True)):
        size = dict(zip(axes, in_sizes, strict=True))
        config = tuple((0, size.get(d, n) - n, 0) for d, n in enumerate(shape))
        a = structural.pad(a, structural.full((), 0, aval_of(a).dtype), padding_config=config)
    rest = tuple(d for d in range(len(shape)) if d not in axes)
    order = (*rest, *axes)
    moved = order != tuple(range(len(shape)))
    a = structural.transpose(a, permutation=order) if moved else a
    a = fft_primitive.fft(a, fft_type=kind, fft_lengths=lengths)
    return structural.transpose(a, permutation=tuple(order.index(d) for d in range(len(shape)))) if moved else a


# ------------------------------------------------------------------------------------------------------- the functions
_DOC = """{summary}

    Args:
        a: array{real}.
        {sizes}
        norm: the place of the factor 1/n: "backward" (the default), "ortho" or "forward".

    Returns:
        An array of {gives} numbers.

    Raises:
        ShapeError: for axes that do not exist, or lengths below 1.
        ArgumentError: for another norm.
        DtypeError: where a is not an array of numbers{complex}.

    >>> x = np.arange(12.0).reshape(3, 4)
    >>> bool(np.allclose(fnp.fft.{name}(x), np.fft.{name}(x), atol=1e-4))
    True
    """
_ONE = "n: length along the axis, which is cut or padded with zeros to it{half}.\n        axis: the axis."
_ALL = """s: lengths along the axes, which are cut or padded with zeros to them{half}.
        axes: the axes; {default}."""


def _document(name: str, kind: str, summary: str, sizes: str) -> str:
    real, half = kind == "RFFT", "; of the result" if kind == "IRFFT" else ""
    return _DOC.format(
        summary=summary, name=name, sizes=sizes.replace("{half}", half), real=" of real numbers" if real else "",
        gives="real" if kind == "IRFFT" else "complex", complex=", or complex" if real else "",
    )  # fmt: skip


def _one(name: str, kind: str, summary: str) -> AlongAxis:
    def function(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
        return _single(kind, a, n, axis, norm, name)

    return promotion.named(function, name, _document(name, kind, summary, _ONE), __name__)


def _two(name: str, kind: str, summary: str) -> OverTwoAxes:
    def function(
        a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Array:
        return _many(kind, a, s, axes, norm, name)

    sizes = _ALL.replace("{default}", "the last two by default")
    return promotion.named(function, name, _document(name, kind, summary, sizes), __name__)


def _any(name: str, kind: str, summary: str) -> OverAxes:
    def function(
        a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Array:
        return _many(kind, a, s, axes, norm, name)

    sizes = _ALL.replace("{default}", "all by default, or the last len(s)")
    return promotion.named(function, name, _document(name, kind, summary, sizes), __name__)


_half = "the half of the spectrum that determines the other"
fft = _one("fft", "FFT", "The discrete Fourier transform along one axis.")
ifft = _one("ifft", "IFFT", "The inverse of `fft`.")
rfft = _one("rfft", "RFFT", f"The Fourier transform of real numbers along one axis: {_half}.")
irfft = _one("irfft", "IRFFT", "The inverse of `rfft`; the result has 2 (m - 1) points by default.")
fft2 = _two("fft2", "FFT", "The Fourier transform over two axes.")
ifft2 = _two("ifft2", "IFFT", "The inverse of `fft2`.")
rfft2 = _two("rfft2", "RFFT", f"The Fourier transform of real numbers over two axes: {_half}.")
irfft2 = _two("irfft2", "IRFFT", "The inverse of `rfft2`.")
fftn = _any("fftn", "FFT", "The Fourier transform over several axes.")
ifftn = _any("ifftn", "IFFT", "The inverse of `fftn`.")
rfftn = _any("rfftn", "RFFT", f"The Fourier transform of real numbers over several axes: {_half}.")
irfftn = _any("irfftn", "IRFFT", "The inverse of `rfftn`.")


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real Fourier transform of a signal with Hermitian symmetry, given by its first half.

    Args:
        a: array.
        n: length of the result; 2 (m - 1) by default.
        axis: the axis.
        norm: the place of the factor 1/n.

    Returns:
        Real floats, n along the axis.

    >>> fnp.fft.hfft(np.array([1.0, 2.0, 3.0])).tolist()
    [8.0, -2.0, 0.0, -2.0]
    """
    return _single("IRFFT", _conj(shapes.arr(a, "fnp.fft.hfft")), n, axis, _OPPOSITE[_norm(norm, "hfft")], "hfft")


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`.

    Args:
        a: array of real numbers.
        n: length along the axis, which is cut or padded with zeros to it.
        axis: the axis.
        norm: the place of the factor 1/n.

    Returns:
        Complex numbers, n // 2 + 1 along the axis.

    >>> fnp.fft.ihfft(np.array([8.0, -2.0, 0.0, -2.0])).real.tolist()
    [1.0, 2.0, 3.0]
    """
    return _conj(_single("RFFT", a, n, axis, _OPPOSITE[_norm(norm, "ihfft")], "ihfft"))


@eager_jit
def _conj(a: Any) -> Any:
    return elementwise.conj(a) if dtypes.is_complex(aval_of(a).dtype) else a
