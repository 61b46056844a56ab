"""conv_transpose: transposed convolutions, in which a stride makes the result larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.lax.convolution import conv_dimension_numbers, conv_general_dilated, padtype_to_pads
from functorch_like.lax.operands import error, ints, same_rank, value
from functorch_like.primitives import structural
from functorch_like.primitives.contractions.convolution import ConvDimensionNumbers, dilated

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, ConvLayout, DTypeLike, Padding, PrecisionLike

_LETTERS = {
    2: ("NC", "IO", "NC"),
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLayout = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution: a sum of copies of the kernel, one for each element of the operand, `strides` apart.

    With `transpose_kernel` it is the transpose of the convolution with the same kernel, strides and named padding.

    Args:
        lhs: operand: batch, features and n spatial dimensions.
        rhs: kernel of the same dtype.
        strides: n distances between the copies of the kernel.
        padding: "SAME" gives size * stride elements, "VALID" all elements that the kernel reaches; or n pairs
            (low, high) of zeros around the operand.
        rhs_dilation: n distances between neighbouring elements of the kernel; 1 by default.
        dimension_numbers: as for `conv_dimension_numbers`; None for ("NHWC", "HWIO", "NHWC"), or the same
            for another rank.
        transpose_kernel: reverse the kernel's spatial dimensions, and swap its input and output features.
        precision: as for `dot_general`.
        preferred_element_type: as for `dot_general`.
        use_consistent_padding: whether pairs are the padding of the forward convolution, which removes elements here,
            as in PyTorch.

    Returns:
        An array in the result's layout, in the operands' dtype or the preferred one.

    Raises:
        ShapeError: where shapes do not fit together.
        ArgumentError: for unknown letters or padding.

    Source: V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning", arXiv:1603.07285.

    >>> x, kernel = fnp.asarray([1.0, 2.0]).reshape(1, 2, 1), fnp.ones((2, 1, 1))
    >>> lax.conv_transpose(x, kernel, (2,), "SAME").ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    lhs, rhs = value(lhs), value(rhs)
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    numbers = numbers_by_default(left, right, dimension_numbers)
    n = len(left) - 2
    steps = ints(strides, "strides")
    if len(steps) != n or any(s < 1 for s in steps):
        raise error(
            ArgumentError,
            f"lax.conv_transpose got strides {steps} for {n} spatial dimensions",
            f"give {n} positive strides",
        )
    holes = (1,) * n if rhs_dilation is None else same_rank(ints(rhs_dilation, "rhs_dilation"), n, "rhs_dilation")
    windows = [dilated(right[d], h) for d, h in zip(numbers.rhs_spec[2:], holes, strict=True)]
    pads = transposed_pads(
        padding, [left[d] for d in numbers.lhs_spec[2:]], windows, steps, bool(use_consistent_padding)
    )
    if transpose_kernel:
        rhs = structural.rev(rhs, dimensions=tuple(sorted(numbers.rhs_spec[2:])))
        o, i, *spatial = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(i, o, *spatial))
    return conv_general_dilated(
        lhs, rhs, (1,) * n, pads, steps, holes, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def numbers_by_default(left: Sequence[int], right: Sequence[int], dimension_numbers: Any) -> ConvDimensionNumbers:
    """Return dimension numbers, by default with features last."""
    if dimension_numbers is None:
        if len(left) not in _LETTERS:
            raise error(
                ArgumentError,
                f"there is no default layout for rank {len(left)}",
                "give dimension_numbers as a ConvDimensionNumbers",
            )
        dimension_numbers = _LETTERS[len(left)]
    return conv_dimension_numbers(left, right, dimension_numbers)


def transposed_pads(
    padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], consistent: bool = False
) -> list[tuple[int, int]]:
    """Return the zeros around the operand, pairs (low, high), from a name or pairs."""
    if not isinstance(padding, str):
        pairs = [ints(pair, "padding") for pair in padding]
        if len(pairs) != len(sizes) or any(len(pair) != 2 for pair in pairs):
            raise error(
                ArgumentError,
                f"padding={padding!r} is not a sequence of {len(sizes)} pairs",
                "give (low, high) for each dimension",
            )
        if consistent:
            return [(w - 1 - lo, w - 1 - hi) for (lo, hi), w in zip(pairs, windows, strict=True)]
        return [(lo, hi) for lo, hi in pairs]
    same = padding.upper() != "VALID"
    out_sizes = [n * s + (0 if same else max(w - s, 0)) for n, w, s in zip(sizes, windows, strides, strict=True)]
    # The forward convolution maps `out_sizes` elements to `sizes`, and has this padding.
    forward = padtype_to_pads(out_sizes, windows, strides, padding)
    low = [w - 1 - lo for (lo, _), w in zip(forward, windows, strict=True)]
    reach = [m + w - 1 - ((n - 1) * s + 1) for m, w, n, s in zip(out_sizes, windows, sizes, strides, strict=True)]
    return [(lo, total - lo) for lo, total in zip(low, reach, strict=True)]
