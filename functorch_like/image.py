"""Resizing of images and other arrays: each dimension is multiplied by a matrix of a kernel's weights."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import axis_of, shape_of
from functorch_like.numpy.shapes import arr
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PrecisionLike, Shape


class ResizeMethod(enum.Enum):
    """Interpolation between pixels: the nearest pixel, or a mean with the weights of a kernel."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method of a name, such as "cubic" or "bicubic".

        Raises:
            ArgumentError: for an unknown name.

        >>> ft.image.ResizeMethod.from_string("bilinear").name
        'LINEAR'
        """
        if s not in _NAMES:
            raise promotion.error(
                ArgumentError, f"the method {s!r} is unknown", f"use one of {', '.join(sorted(_NAMES))}"
            )
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch", "tricubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# ------------------------------------------------------------------------------------------------------------- kernels
def _triangle(x: Any) -> Any:
    return fnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    """R. G. Keys, "Cubic convolution interpolation for digital image processing", 1981; a is the slope at 1."""

    def kernel(x: Any) -> Any:
        near = (((a + 2) * x - (a + 3)) * x) * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return fnp.where(x < 1, near, fnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius: int) -> Callable[[Any], Any]:
    """C. E. Duchon, "Lanczos filtering in one and two dimensions", 1979."""
    return lambda x: fnp.where(x < radius, fnp.sinc(x) * fnp.sinc(x / radius), 0)


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),  # without antialiasing it has a = -3/4, see _clamped_cubic
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
}


def _weights(method: ResizeMethod, size: int, out: int, scale: Any, translation: Any, antialias: bool) -> Any:
    """Return (size, out): the weight of each pixel in each new pixel. Pixel i has its centre at i + 1/2."""
    dtype = aval_of(scale).dtype
    if method is ResizeMethod.AREA:
        return _overlaps(size, out, scale, translation)
    centres = (fnp.arange(out, dtype=dtype) + 0.5 - translation) / scale - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        weights = _clamped_cubic(size, centres)
    else:
        wide = fnp.maximum(1, 1 / scale) if antialias else 1
        weights = _KERNELS[method](abs(centres[None] - fnp.arange(size, dtype=dtype)[:, None]) / wide)
        total = weights.sum(0)
        nonzero = abs(total) > 1000 * float(fnp.finfo(dtype).eps)
        weights = fnp.where(nonzero[None], weights / fnp.where(nonzero, total, 1)[None], 0)
    # New pixels outside of the image are 0.
    return fnp.where(((centres >= -0.5) & (centres <= size - 0.5))[None], weights, 0)


def _clamped_cubic(size: int, centres: Any) -> Any:
    """Return (size, out): weights of a cubic kernel with a = -3/4; pixels beyond an edge count as that of the edge."""
    dtype = aval_of(centres).dtype
    pixels, kernel = fnp.arange(size, dtype=dtype)[:, None], _cubic(-0.75)
    taps = [fnp.floor(centres)[None] + d for d in (-1, 0, 1, 2)]
    return sum(fnp.where(pixels == fnp.clip(tap, 0, size - 1), kernel(abs(centres - tap)), 0) for tap in taps)


def _overlaps(size: int, out: int, scale: Any, translation: Any) -> Any:
    """Return (size, out): the part of each new pixel that each pixel covers, of what the image covers of it."""
    dtype = aval_of(scale).dtype
    edges = (fnp.arange(out + 1, dtype=dtype) - translation) / scale
    first = fnp.arange(size, dtype=dtype)[:, None]
    overlaps = fnp.maximum(fnp.minimum(first + 1, edges[None, 1:]) - fnp.maximum(first, edges[None, :-1]), 0)
    total = overlaps.sum(0)
    return overlaps / fnp.where(total > 0, total, 1)[None]


# ----------------------------------------------------------------------------------------------------------- functions
def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def scale_and_translate(
    image: ArrayLike,
    shape: Shape,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Move the point x of an image to scale * x + translation, in pixels; fill with zeros outside of the image.

    Args:
        image: array; integers become the default float.
        shape: shape of the result, which differs from that of the image in spatial_dims only.
        spatial_dims: the k dimensions that are scaled.
        scale: (k,) floats; may be traced, and has derivatives.
        translation: (k,) floats; likewise.
        method: a `ResizeMethod` or its name, but not "nearest": "linear", "cubic", "lanczos3", "area", ...
        antialias: widen the kernel where the image becomes smaller, so that all pixels count.
        precision: precision of the products, as in `lax.dot_general`.

    Returns:
        An image of that shape, in floating point.

    Raises:
        ArgumentError: for "nearest" or an unknown method.
        ShapeError: for a shape, scale or translation that does not fit the image and spatial_dims.

    >>> x = fnp.asarray([0.0, 1.0, 2.0])
    >>> one, by = fnp.ones(1), fnp.ones(1)
    >>> ft.image.scale_and_translate(x, (3,), (0,), one, by, "linear").tolist()
    [0.0, 0.0, 1.0]
    """
    what = "image.scale_and_translate"
    image = arr(image, what)
    aval, how, sizes = aval_of(image), _method(method), shape_of(shape, what)
    if how is ResizeMethod.NEAREST:
        raise promotion.error(ArgumentError, f"{what} has no method 'nearest'", "use image.resize, or 'linear'")
    dims = tuple(axis_of(d, aval.ndim, what) for d in spatial_dims)
    kept = [d for d in range(aval.ndim) if d not in dims]
    if len(sizes) != aval.ndim or any(sizes[d] != aval.shape[d] for d in kept):
        raise promotion.error(ShapeError, f"{what} of {aval!r} to the shape {sizes}", "change spatial_dims only")
    scale, translation = arr(scale, what), arr(translation, what)
    if aval_of(scale).shape != (len(dims),) or aval_of(translation).shape != (len(dims),):
        raise promotion.error(
            ShapeError, f"{what} along {dims}, scale {aval_of(scale)!r}, translation {aval_of(translation)!r}",
            "give one number for each of spatial_dims",
        )  # fmt: skip
    return _scaled(
        image, scale, translation, sizes=sizes, dims=dims, how=how, antialias=bool(antialias), precision=precision
    )


@eager_jit(static=("sizes", "dims", "how", "antialias", "precision"))
def _scaled(
    image: Any,
    scale: Any,
    translation: Any,
    sizes: tuple[int, ...],
    dims: tuple[int, ...],
    how: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    image = promotion.to_inexact(image)
    dtype = aval_of(image).dtype
    wide = fnp.float64 if dtype.itemsize >= 8 and dtype.kind == "f" else fnp.float32
    for i, d in enumerate(dims):
        size = aval_of(image).shape[d]
        s, t = promotion.convert(scale[i], fnp.dtype(wide)), promotion.convert(translation[i], fnp.dtype(wide))
        weights = _weights(how, size, sizes[d], s, t, antialias).astype(dtype)
        image = fnp.moveaxis(fnp.tensordot(image, weights, axes=((d,), (0,)), precision=precision), -1, d)
    return image


def resize(
    image: ArrayLike,
    shape: Shape,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = "highest",
) -> Array:
    """Resize an image.

    Args:
        image: array; integers become the default float, but for "nearest", which keeps them.
        shape: shape of the result. Dimensions whose size stays equal are not interpolated.
        method: a `ResizeMethod` or its name: "nearest", "linear" ("bilinear", "trilinear", "triangle"), "cubic"
            ("bicubic", "tricubic"), "cubic-pytorch" (PyTorch's kernels), "lanczos3", "lanczos5", or "area": means over
            the area that a new pixel covers.
        antialias: widen the kernel where the image becomes smaller, so that all pixels count; not for "nearest".
        precision: precision of the products, as in `lax.dot_general`.

    Returns:
        An image of that shape, in floating point; for "nearest", in the image's dtype.

    Raises:
        ArgumentError: for an unknown method.
        ShapeError: for a shape of another rank, or an image without pixels.

    >>> ft.image.resize(fnp.asarray([0.0, 4.0]), (4,), "linear").tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    what = "image.resize"
    image = arr(image, what)
    aval, how, sizes = aval_of(image), _method(method), shape_of(shape, what)
    if len(sizes) != aval.ndim or any(m and not n for n, m in zip(aval.shape, sizes, strict=True)):
        raise promotion.error(
            ShapeError, f"{what} of {aval!r} to the shape {sizes}", "keep the rank, and give it some pixels"
        )
    dims = tuple(d for d in range(aval.ndim) if sizes[d] != aval.shape[d])
    if how is ResizeMethod.NEAREST:
        return _nearest(image, sizes=sizes, dims=dims)
    scale = tuple(sizes[d] / max(aval.shape[d], 1) for d in dims)
    return _resized(image, scale, sizes=sizes, dims=dims, how=how, antialias=bool(antialias), precision=precision)


@eager_jit(static=("scale", "sizes", "dims", "how", "antialias", "precision"))
def _resized(
    image: Any,
    scale: tuple[float, ...],
    sizes: tuple[int, ...],
    dims: tuple[int, ...],
    how: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    if not math.prod(sizes):
        return fnp.zeros(sizes, aval_of(promotion.to_inexact(image)).dtype)
    by = fnp.asarray(np.asarray(scale, np.float64))
    return _scaled.inline(image, by, fnp.zeros_like(by), sizes, dims, how, antialias, precision)


@eager_jit(static=("sizes", "dims"))
def _nearest(image: Any, sizes: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    for d in dims:
        n, m = aval_of(image).shape[d], sizes[d]
        # Index of the pixel that contains the new centre: floor((2 i + 1) n / (2 m)), in integers.
        places = (2 * fnp.arange(m, dtype=fnp.int64) + 1) * n // (2 * m) if m else fnp.zeros(0, fnp.int64)
        image = fnp.take(image, places, axis=d, mode="clip")
    return image
