"""conv_transpose: convolutions that enlarge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.core import aval_of
from functorch_like.lax.convolution import conv_dimension_numbers, conv_general_dilated, padtype_to_pads
from functorch_like.lax.operands import ints, value
from functorch_like.primitives import structure as S
from functorch_like.primitives.convolution import dilated

#: Layouts by the number of spatial dimensions, where none is given: features last.
_LAYOUTS = (("NC", "IO", "NC"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), ("NHWDC", "HWDIO", "NHWDC"))


def conv_transpose(
    lhs: Any, rhs: Any, strides: Sequence[int], padding: Any, rhs_dilation: Any = None, dimension_numbers: Any = None,
    transpose_kernel: bool = False, precision: Any = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """A convolution of the operand with `strides - 1` zeros put between its elements ("fractionally strided").

    Args:
        lhs: operand: batch, n spatial dimensions and features, unless `dimension_numbers` has another order.
        rhs: kernel of the same dtype: n spatial dimensions, input features, output features.
        strides: n factors by which the operand becomes larger.
        padding: "SAME" gives sizes `size * stride`, "VALID" `size * stride + max(kernel - stride, 0)`; or n pairs
            (low, high) for the operand with its zeros.
        rhs_dilation: n distances between neighbouring elements of the kernel; 1 by default.
        dimension_numbers: as for `conv_dimension_numbers`; features last by default.
        transpose_kernel: reverse the kernel and swap its features, as the derivative of `conv_general_dilated` by its
            operand has it.
        precision: as for `dot_general`.
        preferred_element_type: as for `dot_general`.

    Raises:
        ShapeError: where shapes do not fit together.
        ArgumentError: for unknown letters or padding, or steps that are not positive.

    >>> lax.conv_transpose(fnp.ones((1, 4, 4, 3)), fnp.ones((3, 3, 3, 5)), (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    lhs, rhs = value(lhs), value(rhs)
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    n = len(left) - 2
    if dimension_numbers is None and 0 <= n < len(_LAYOUTS):
        dimension_numbers = _LAYOUTS[n]
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    steps = ints(strides, "strides")
    holes = (1,) * n if rhs_dilation is None else ints(rhs_dilation, "rhs_dilation")
    if isinstance(padding, str):
        padtype_to_pads((), (), (), padding)  # refuses unknown names
        windows = [dilated(right[d], hole) for d, hole in zip(numbers.rhs_spec[2:], holes, strict=False)]
        padding = [_pads(window, step, padding.upper()) for window, step in zip(windows, steps, strict=False)]
    if transpose_kernel:
        outputs, inputs, *spatial = numbers.rhs_spec
        rhs = S.rev(rhs, dimensions=tuple(spatial))
        numbers = numbers._replace(rhs_spec=(inputs, outputs, *spatial))
    return conv_general_dilated(
        lhs, rhs, (1,) * n, padding, steps, holes, numbers, 1, 1, precision, preferred_element_type
    )


def _pads(window: int, step: int, kind: str) -> tuple[int, int]:
    """What is put around (size - 1) * step + 1 elements, for a window to have as many places as `kind` says."""
    total = window + step - 2
    if kind == "VALID":
        return window - 1, total + max(window - step, 0) - (window - 1)
    half = total // 2 if kind == "SAME_LOWER" else total - total // 2
    low = window - 1 if step > window - 1 else half
    return low, total - low
