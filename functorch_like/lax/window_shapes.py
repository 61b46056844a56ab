"""Shapes of the results of convolutions and reductions of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from functorch_like.avals import ShapedArray
from functorch_like.dtypes import float32
from functorch_like.errors import ShapeError
from functorch_like.lax.convolution import conv_dimension_numbers, pads_of
from functorch_like.lax.operands import error, ints, same_rank
from functorch_like.lax.transposed import numbers_by_default, transposed_pads
from functorch_like.primitives.base.window_geometry import NAMES, window_count, windowed_shape

if TYPE_CHECKING:
    from functorch_like.typing import ConvLayout, Padding


def conv_general_permutations(dimension_numbers: tuple[str, str, str]) -> tuple[tuple[int, ...], ...]:
    """The permutations from letters to the layouts (N, C, *spatial) and, of the kernel, (O, I, *spatial).

    Args:
        dimension_numbers: three strings, as for `conv_dimension_numbers`.

    Returns:
        Three tuples of ints: permutations of operand, kernel and result.

    >>> lax.conv_general_permutations(("NHC", "HIO", "NHC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    ones = (1,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(ones, ones, dimension_numbers))


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Padding,
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution in the layout (batch, features, *spatial), with kernels (output, input, *spatial).

    Args:
        lhs_shape: shape of the operand.
        rhs_shape: shape of the kernel.
        strides: step of the kernel in each spatial dimension.
        pads: name of a padding, or pairs (low, high).
        batch_group_count: number of groups of the batch.

    Returns:
        A tuple of ints.

    Raises:
        ShapeError: where ranks do not fit, or the batch is not a multiple of its groups.

    >>> lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (2,), [(1, 1)])
    (2, 4, 4)
    """
    left, right = ints(lhs_shape, "lhs_shape"), ints(rhs_shape, "rhs_shape")
    conv_dimension_numbers(left, right, None)
    sizes, windows = left[2:], right[2:]
    steps = same_rank(ints(strides, "strides"), len(sizes), "strides")
    pairs = same_rank(pads_of(pads, sizes, windows, steps), len(sizes), "pads")
    if left[0] % batch_group_count:
        raise error(
            ShapeError,
            f"a batch of {left[0]} does not divide into {batch_group_count} groups",
            "use a batch_group_count that divides it",
        )
    counts = [window_count(n, lo, hi, w, s) for n, (lo, hi), w, s in zip(sizes, pairs, windows, steps, strict=True)]
    return left[0] // batch_group_count, right[0], *counts


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvLayout,
) -> tuple[int, ...]:
    """The shape of a convolution in any layout.

    Args:
        lhs_shape, rhs_shape: shapes of operand and kernel.
        window_strides, padding, dimension_numbers: as for `conv_general_dilated`.

    Returns:
        A tuple of ints.

    >>> lax.conv_general_shape_tuple((2, 8, 3), (3, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (2, 4, 4)
    """
    left, right = ints(lhs_shape, "lhs_shape"), ints(rhs_shape, "rhs_shape")
    numbers = conv_dimension_numbers(left, right, dimension_numbers)
    straight = tuple(left[d] for d in numbers.lhs_spec), tuple(right[d] for d in numbers.rhs_spec)
    return _laid_out(conv_shape_tuple(*straight, window_strides, padding), numbers.out_spec)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    dimension_numbers: ConvLayout,
) -> tuple[int, ...]:
    """The shape of a transposed convolution.

    Args:
        lhs_shape, rhs_shape: shapes of operand and kernel.
        window_strides, padding, dimension_numbers: as for `conv_transpose`.

    Returns:
        A tuple of ints.

    >>> lax.conv_transpose_shape_tuple((2, 8, 3), (3, 3, 4), (2,), "SAME", ("NHC", "HIO", "NHC"))
    (2, 16, 4)
    """
    left, right = ints(lhs_shape, "lhs_shape"), ints(rhs_shape, "rhs_shape")
    numbers = numbers_by_default(left, right, dimension_numbers)
    sizes, windows = [left[d] for d in numbers.lhs_spec[2:]], [right[d] for d in numbers.rhs_spec[2:]]
    steps = same_rank(ints(window_strides, "window_strides"), len(sizes), "window_strides")
    pads = transposed_pads(padding, sizes, windows, steps)
    counts = [
        window_count((n - 1) * s + 1, lo, hi, w, 1)
        for n, s, (lo, hi), w in zip(sizes, steps, pads, windows, strict=True)
    ]
    return _laid_out((left[numbers.lhs_spec[0]], right[numbers.rhs_spec[0]], *counts), numbers.out_spec)


def _laid_out(shape: tuple[int, ...], spec: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for _, n in sorted(zip(spec, shape, strict=True)))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Padding,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window`.

    Args:
        operand_shape: shape of the operand.
        window_dimensions, window_strides, base_dilation, window_dilation: as for `reduce_window`.
        padding: pairs (low, high).

    Returns:
        A tuple of ints.

    Raises:
        ShapeError: where parameters do not fit the rank.

    >>> lax.reduce_window_shape_tuple((8, 4), (2, 2), (1, 2), [(0, 1), (0, 0)])
    (8, 2)
    """
    shape = ints(operand_shape, "operand_shape")
    named = lambda v, name: (1,) * len(shape) if v is None else same_rank(ints(v, name), len(shape), name)
    pairs = same_rank(tuple(ints(pair, "padding") for pair in padding), len(shape), "padding")
    values = (window_dimensions, window_strides, pairs, base_dilation, window_dilation)
    params = {name: v if v is pairs else named(v, name) for name, v in zip(NAMES, values, strict=True)}
    return windowed_shape(ShapedArray(shape, float32), params)
