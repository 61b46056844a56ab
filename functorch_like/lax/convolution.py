"""Convolutions, padding by name, and dimension numbers from letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.backends.precision_names import canonical
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.contract import dtype_of
from functorch_like.lax.operands import error, ints, value
from functorch_like.primitives.contractions import convolution
from functorch_like.primitives.contractions.convolution import ConvDimensionNumbers, dilated

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, ConvLayout, DTypeLike, Padding, PrecisionLike


# --------------------------------------------------------------------------------------------------------- convolutions
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvLayout
) -> ConvDimensionNumbers:
    """Dimension numbers of a convolution, from letters.

    Args:
        lhs_shape: shape of the operand.
        rhs_shape: shape of the kernel.
        dimension_numbers: None for ("NCHW", "OIHW", "NCHW"), or the same for another rank; or three strings for
            operand, kernel and result: N batch, C features, O and I output and input features of the kernel, and a
            letter for each spatial dimension; or a `ConvDimensionNumbers`.

    Returns:
        A `ConvDimensionNumbers`: positions of the dimensions.

    Raises:
        ArgumentError: where the letters do not match each other, or the rank.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    ndim = len(lhs_shape)
    if len(rhs_shape) != ndim or ndim < 2:
        raise error(
            ShapeError,
            f"an operand of shape {tuple(lhs_shape)} cannot be convolved with a kernel of shape {tuple(rhs_shape)}",
            "give both as many dimensions: two (batch or output features, features), and the spatial ones",
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise error(
            ArgumentError,
            f"dimension_numbers={dimension_numbers!r:.60} are not those of operand, kernel and result",
            "give three strings, such as ('NHWC', 'HWIO', 'NHWC')",
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers) or not all(isinstance(n, str) for n in dimension_numbers):
        return ConvDimensionNumbers(*(ints(spec, "dimension_numbers") for spec in dimension_numbers))
    lhs, rhs, out = map(str, dimension_numbers)
    spatial = [c for c in rhs if c not in "OI"]
    fits = all(len(set(spec)) == len(spec) == ndim for spec in (lhs, rhs, out))
    if not fits or set(lhs) != {"N", "C", *spatial} or set(out) != set(lhs) or not {"O", "I"} <= set(rhs):
        raise error(
            ArgumentError,
            f"dimension_numbers={tuple(dimension_numbers)} do not name the dimensions of operands of rank {ndim}",
            "use N and C in operand and result, O and I in the kernel, and one letter for each spatial dimension",
        )
    return ConvDimensionNumbers(
        tuple(lhs.index(c) for c in ["N", "C", *spatial]),
        tuple(rhs.index(c) for c in ["O", "I", *spatial]),
        tuple(out.index(c) for c in ["N", "C", *spatial]),
    )


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Return the padding that a name stands for, one pair (low, high) for each dimension.

    Args:
        in_shape: sizes of the operand's spatial dimensions.
        window_shape: sizes of the window, dilation included.
        window_strides: step from one window to the next in each dimension.
        padding: "VALID" is none; "SAME" gives ceil(size / stride) windows, the odd element padded at the end;
            "SAME_LOWER" pads it at the beginning.

    Returns:
        A list of pairs (before, after), one for each dimension.

    Raises:
        ArgumentError: for another name.

    >>> lax.padtype_to_pads((5,), (4,), (1,), "SAME")
    [(1, 2)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise error(
            ArgumentError, f"padding={padding!r} is unknown", "use 'SAME', 'SAME_LOWER', 'VALID' or pairs (low, high)"
        )
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise error(
            ShapeError,
            f"padding={padding!r} got {len(in_shape)} sizes, {len(window_shape)} of the window and "
            f"{len(window_strides)} strides",
            "give one of each for each spatial dimension",
        )
    total = [
        max((-(-n // s) - 1) * s + w - n, 0) for n, w, s in zip(in_shape, window_shape, window_strides, strict=True)
    ]
    return [(t // 2, t - t // 2) if kind == "SAME" else (t - t // 2, t // 2) for t in total]


def pads_of(
    padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Return pairs (low, high), from pairs or a name."""
    if isinstance(padding, str):
        return tuple(padtype_to_pads(sizes, windows, strides, padding))
    pads = tuple(ints(pair, "padding") for pair in padding)
    if any(len(pair) != 2 for pair in pads):
        raise error(
            ArgumentError,
            f"padding={padding!r} is not a sequence of pairs",
            "give (low, high) for each spatial dimension",
        )
    return pads


def conv_geometry(
    left: Sequence[int], right: Sequence[int], window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the parameters of the primitive for strides, padding, dilations and dimension numbers of any form.

    Raises:
        ArgumentError: for numbers that do not fit `left` and `right`, the shapes of operand and kernel.
    """
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    strides = ints(window_strides, "window_strides")
    n = len(left) - 2
    stretch = (1,) * n if lhs_dilation is None else ints(lhs_dilation, "lhs_dilation")
    holes = (1,) * n if rhs_dilation is None else ints(rhs_dilation, "rhs_dilation")
    if not len(strides) == len(stretch) == len(holes) == n:
        raise error(
            ArgumentError,
            f"got strides {strides} and dilations {stretch}, {holes} for {n} spatial dimensions",
            f"give {n} of each",
        )
    if any(k < 1 for k in (*strides, *stretch, *holes)):
        raise error(
            ArgumentError,
            f"strides {strides} and dilations {stretch}, {holes} are not all positive",
            "use 1 for no stride and no dilation",
        )
    if isinstance(padding, str) and padding.upper() != "VALID" and any(d != 1 for d in stretch):
        raise error(
            ArgumentError, f"padding={padding!r} has no meaning with lhs_dilation={stretch}", "give pairs (low, high)"
        )
    sizes = [dilated(left[d], s) for d, s in zip(numbers.lhs_spec[2:], stretch, strict=True)]
    windows = [dilated(right[d], h) for d, h in zip(numbers.rhs_spec[2:], holes, strict=True)]
    return {
        "window_strides": strides, "padding": pads_of(padding, sizes, windows, strides), "lhs_dilation": stretch,
        "rhs_dilation": holes, "dimension_numbers": tuple(numbers),
    }  # fmt: skip


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLayout = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolution; in signal processing a correlation, because the kernel is not reversed.

    Args:
        lhs: operand: batch, features and n spatial dimensions.
        rhs: kernel of the same dtype: output features, input features and n spatial dimensions.
        window_strides: n steps.
        padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high).
        lhs_dilation: n distances between neighbouring elements of the operand; 1 by default.
        rhs_dilation: likewise of the kernel.
        dimension_numbers: as for `conv_dimension_numbers`.
        feature_group_count: number of groups of features, each convolved by itself.
        batch_group_count: number of groups of the batch; each is convolved with its share of the output features.
        precision: as for `dot_general`.
        preferred_element_type: as for `dot_general`.

    Returns:
        An array in the result's layout, in the operands' dtype or the preferred one.

    Raises:
        ShapeError: where shapes do not fit together.
        ArgumentError: for unknown letters or padding.

    >>> image, kernel = fnp.ones((1, 8, 8, 3)), fnp.ones((3, 3, 3, 4))
    >>> lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 4, 4, 4)
    """
    lhs, rhs = value(lhs), value(rhs)
    geometry = conv_geometry(
        aval_of(lhs).shape, aval_of(rhs).shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    return convolution.conv_general_dilated(
        lhs, rhs, **geometry, feature_group_count=feature_group_count, batch_group_count=batch_group_count,
        precision=canonical(precision), preferred_element_type=dtype_of(preferred_element_type),
    )  # fmt: skip


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A convolution in the layout (batch, features, *spatial), with kernels (output, input, *spatial).

    Args:
        lhs: array of shape (batch, features, *spatial).
        rhs: kernel of shape (output, input, *spatial).
        window_strides: step of the kernel in each spatial dimension.
        padding: "SAME", "VALID", or a pair (low, high) for each spatial dimension.
        precision: of the products: None, a name such as "highest", or a pair of these.
        preferred_element_type: dtype in which products are summed and returned; None for the operands'.

    Returns:
        An array of shape (batch, output, *spatial).

    >>> lax.conv(fnp.ones((1, 3, 8, 8)), fnp.ones((4, 3, 3, 3)), (1, 1), "VALID").shape
    (1, 4, 6, 6)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """A convolution in the layout of `conv`, with dilations.

    Args:
        lhs: array of shape (batch, features, *spatial).
        rhs: kernel of shape (output, input, *spatial).
        window_strides: step of the kernel in each spatial dimension.
        padding: "SAME", "VALID", or a pair (low, high) for each spatial dimension.
        lhs_dilation: distance between elements of the operand in each spatial dimension; None for 1.
        rhs_dilation: distance between elements of the kernel in each spatial dimension; None for 1.
        precision: of the products: None, a name such as "highest", or a pair of these.
        preferred_element_type: dtype in which products are summed and returned; None for the operands'.

    Returns:
        An array of shape (batch, output, *spatial).

    >>> lax.conv_with_general_padding(fnp.ones((1, 1, 4)), fnp.ones((1, 1, 2)), (1,), [(1, 1)], (2,), None).shape
    (1, 1, 8)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, None, 1, 1, precision, preferred_element_type
    )
