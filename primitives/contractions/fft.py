"""fft: discrete Fourier transforms over the last one to three dimensions.

FFT and IFFT take and give complex numbers. RFFT takes real ones and gives the half of the result that determines it;
IRFFT is its inverse. The inverse ones divide by the number of elements, the others by nothing.

The transposes follow from the pairing Re sum(ct * t), which conjugates nothing: the matrices of FFT and IFFT are
symmetric; those of RFFT and IRFFT are each other's up to a conjugate and a factor for each column of the half spectrum.
The first column, and the last if the length is even, stand for themselves and the others for themselves and a mirror
image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, SampleInput, aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import linear, move

TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
MOST = 3  # dimensions of one transform


def _shape(x: ShapedArray, *, fft_type: str, fft_lengths: tuple[int, ...]) -> ShapedArray:
    if fft_type not in TYPES:
        raise ArgumentError(f"fft_type={fft_type!r}", fix=f"use one of {', '.join(TYPES)}")
    if not 1 <= len(fft_lengths) <= min(MOST, x.ndim):
        raise ShapeError(
            f"fft_lengths={fft_lengths} of {x!r}", fix=f"give one length for each of the last 1 to {MOST} dimensions"
        )
    allowed = (dtypes.float32, dtypes.float64) if fft_type == "RFFT" else dtypes.COMPLEX
    if x.dtype not in allowed:
        raise DtypeError(
            f"{fft_type} takes {' or '.join(d.name for d in allowed)}, got {x!r}", fix="convert the operand with astype"
        )
    last = fft_lengths[-1] // 2 + 1
    expected = (*fft_lengths[:-1], last) if fft_type == "IRFFT" else fft_lengths
    if any(n < 1 for n in fft_lengths) or x.shape[-len(expected) :] != expected:
        raise ShapeError(
            f"{fft_type} of lengths {fft_lengths} takes last dimensions {expected}, got {x!r}",
            fix="cut or pad the operand, or change fft_lengths; no length is 0",
        )
    if fft_type == "RFFT":
        return ShapedArray((*x.shape[:-1], last), dtypes.complex_of(x.dtype), x.weak_type)
    if fft_type == "IRFFT":
        return ShapedArray((*x.shape[:-1], fft_lengths[-1]), dtypes.real_part(x.dtype), x.weak_type)
    return x


def _ref(x: np.ndarray, *, fft_type: str, fft_lengths: tuple[int, ...]) -> Any:
    function = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}[fft_type]
    return function(x, fft_lengths, axes=tuple(range(-len(fft_lengths), 0)))


def _lower(e: Any, x: Any, *, fft_type: str, fft_lengths: tuple[int, ...]) -> Any:
    (out,) = e.outs
    if not out.size:
        return e.full(0, out)
    attrs = {"fft_type": e.attr(f"#stablehlo<fft_type {fft_type}>"), "fft_length": e.i64s(fft_lengths)}
    return e.op("stablehlo.fft", [x], [out], attrs)


def _columns(aval: ShapedArray, n: int, mirrored: float) -> Any:
    """A factor for each column of a half spectrum: 1 for those that stand for themselves alone."""
    factors = np.full(n // 2 + 1, mirrored)
    factors[0] = 1
    if n % 2 == 0:
        factors[-1] = 1
    return structural.broadcast_in_dim(
        factors.astype(aval.dtype), shape=aval.shape, broadcast_dimensions=(aval.ndim - 1,)
    )


def _transpose(ct: Any, x: ShapedArray, *, fft_type: str, fft_lengths: tuple[int, ...]) -> Any:
    if fft_type in ("FFT", "IFFT"):
        return fft(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    count, n = math.prod(fft_lengths), fft_lengths[-1]
    if fft_type == "RFFT":
        half = elementwise.mul(elementwise.conj(ct), _columns(aval_of(ct), n, 0.5))
        out = fft(half, fft_type="IRFFT", fft_lengths=fft_lengths)
        return elementwise.mul(out, structural.full_like(out, count))
    half = elementwise.conj(fft(ct, fft_type="RFFT", fft_lengths=fft_lengths))
    return elementwise.mul(half, elementwise.mul(_columns(x, n, 2.0), structural.full(x.shape, 1 / count, x.dtype)))


def _batch(_: BatchAxis, x: Any, dim: int, *, fft_type: str, fft_lengths: tuple[int, ...]) -> tuple[Any, int]:
    inner = aval_of(x).ndim - len(fft_lengths)
    if dim >= inner:  # among the transformed dimensions, or just before them once it is there
        x, dim = move(x, dim, inner - 1), inner - 1
    return fft(x, fft_type=fft_type, fft_lengths=fft_lengths), dim


def _samples() -> list[SampleInput]:
    def one(fft_type: str, lengths: tuple[int, ...], before: Sequence[int] = (), double: bool = False) -> SampleInput:
        last = lengths[-1] // 2 + 1 if fft_type == "IRFFT" else lengths[-1]
        real = dtypes.float64 if double else dtypes.float32
        dtype = real if fft_type == "RFFT" else dtypes.complex_of(real)
        operand = ShapedArray((*before, *lengths[:-1], last), dtype)
        return SampleInput((operand,), {"fft_type": fft_type, "fft_lengths": lengths})

    return [
        *(one(t, (4,)) for t in TYPES),
        *(one(t, (5,), (2,), True) for t in TYPES),
        *(one(t, (2, 3), (2,)) for t in TYPES),
        *(one(t, (3, 4)) for t in ("RFFT", "IRFFT")),
        *(one(t, (2, 3, 2)) for t in TYPES),
        *(one(t, (1,), (0,)) for t in TYPES),
    ]


fft = linear("fft", shape=_shape, ref=_ref, lower=_lower, transpose=_transpose, batch=_batch, samples=_samples)
