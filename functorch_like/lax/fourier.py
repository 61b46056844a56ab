"""Fourier transforms."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives import structural
from functorch_like.primitives.contractions import fft as fft_primitive
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class FftType(enum.IntEnum):
    """Kind of transform that `fft` computes."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Discrete Fourier transform over the last one to three dimensions.

    Args:
        x: array; numbers of other kinds become complex, for RFFT real floats.
        fft_type: an `FftType`, or its name.
        fft_lengths: sizes of the transformed dimensions; for IRFFT, those of the result.

    Returns:
        A complex array; for IRFFT a real one. IFFT and IRFFT divide by the number of elements.

    Raises:
        ShapeError: where the operand's sizes differ from these lengths.
        DtypeError: for RFFT of complex numbers.

    >>> lax.fft(np.array([1.0, 2.0, 3.0], np.float32), "RFFT", (3,)).shape
    (2,)
    """
    name = fft_type.upper() if isinstance(fft_type, str) else None
    if name is None and isinstance(fft_type, int) and fft_type in list(FftType):
        name = FftType(fft_type).name
    if name not in fft_primitive.TYPES:
        raise error(ArgumentError, f"lax.fft got fft_type={fft_type!r}", f"use one of {', '.join(fft_primitive.TYPES)}")
    return _fft(value(x), fft_type=name, fft_lengths=ints(fft_lengths, "fft_lengths"))


@eager_jit(static=("fft_type", "fft_lengths"))
def _fft(x: Any, fft_type: str, fft_lengths: tuple[int, ...]) -> Any:
    dtype = aval_of(x).dtype
    taken = dtypes.complex_of(dtype)
    if fft_type == "RFFT":
        taken = dtype if dtypes.is_complex(dtype) else dtypes.real_part(taken)  # the primitive refuses complex numbers
    if taken != dtype:
        x = structural.convert_element_type(x, new_dtype=taken, weak_type=False)
    return fft_primitive.fft(x, fft_type=fft_type, fft_lengths=fft_lengths)
