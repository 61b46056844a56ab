"""Sliding windows of arrays: reductions, patches, and convolutions with a kernel for each window."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.backends.precision_names import canonical
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.lax import elementwise as lax_elementwise
from functorch_like.lax.contract import dtype_of
from functorch_like.lax.convolution import conv_dimension_numbers, pads_of
from functorch_like.lax.folding import Known, known_or_body, operands_of
from functorch_like.lax.operands import error, ints, same_rank, value
from functorch_like.lax.reductions import is_identity
from functorch_like.lax.slicing import slice_in_dim
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.window_geometry import NAMES, dilated, window_count
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.higher_order.user_reductions import reduce_window as higher
from functorch_like.primitives.reductions import reductions
from functorch_like.primitives.windows import reduce_window as windows

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, ConvLayout, DTypeLike, Padding, PrecisionLike, PyTree

_KNOWN: list[Known] = [
    (
        (lax_elementwise.add, elementwise.add, operator.add, np.add),
        windows.reduce_window_sum,
        elementwise.add,
        lambda dtype: np.zeros((), dtype),
    ),
    (
        (lax_elementwise.max, elementwise.max, max, np.maximum),
        windows.reduce_window_max,
        elementwise.max,
        reductions.lowest,
    ),
    (
        (lax_elementwise.min, elementwise.min, min, np.minimum),
        windows.reduce_window_min,
        elementwise.min,
        reductions.highest,
    ),
]


def reduce_window(
    operand: T,
    init_value: PyTree,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> T:
    """Reduce all windows of an array.

    Args:
        operand: array, or pytree of arrays of one shape, which are reduced together.
        init_value: initial scalar of each reduction, which also fills padding and dilation; for a pytree one for each
            array, in the same structure. For a function of the user it must be its identity.
        computation: lax.add, lax.max or lax.min; or `(a, b) -> c` of scalars, or of pytrees of scalars in the
            structure of the operand; associative and commutative.
        window_dimensions: sizes of the window, one for each dimension.
        window_strides: steps from one window to the next; 1 by default.
        padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each dimension, which crops if it is negative.
        base_dilation: distances between neighbouring elements of the operand; 1 by default.
        window_dilation: likewise of the window.

    Returns:
        Arrays in the structure of the operand, with one element for each window.

    Raises:
        ShapeError: where parameters do not fit the rank, or operands differ in shape.
        ArgumentError: where the results of the computation differ from its operands in shape or dtype, or for
            unknown padding.
        UnsupportedError: where the computation closes over arrays.

    >>> lax.reduce_window(fnp.arange(6.0), -fnp.inf, lax.max, (2,), (2,), "VALID").tolist()
    [1.0, 3.0, 5.0]
    >>> lax.reduce_window(fnp.arange(1, 5), 1, lambda a, b: a * b, (2,), (1,), "SAME").tolist()
    [2, 6, 12, 4]
    """
    leaves, starts, structure = operands_of(operand, init_value)
    avals = [aval_of(x) for x in leaves]
    params = _params(avals[0], window_dimensions, window_strides, padding, base_dilation, window_dilation)
    if any(edge < 0 for pair in params["padding"] for edge in pair):  # primitives do not crop
        leaves, params = _padded(leaves, starts, params)
    found = known_or_body(_KNOWN, computation, structure, avals, "reduce_window")
    if isinstance(found, Jaxpr):
        return structure.unflatten(higher.reduce_window(*leaves, *starts, jaxpr=found, **params))
    _, primitive, combine, identity = found
    (x,), (start,) = leaves, starts
    if is_identity(start, identity(avals[0].dtype)):
        return structure.unflatten([primitive(x, **params)])
    (x,), params = _padded([x], [start], params)
    out = primitive(x, **params)
    return structure.unflatten(
        [combine(out, structural.broadcast_in_dim(start, shape=aval_of(out).shape, broadcast_dimensions=()))]
    )


def _padded(leaves: Any, starts: Any, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return arrays dilated and padded with the initial values, or cropped, and parameters without these two."""
    config = tuple((lo, hi, b - 1) for (lo, hi), b in zip(params["padding"], params["base_dilation"], strict=True))
    rest = {"padding": ((0, 0),) * len(config), "base_dilation": (1,) * len(config)}
    padded = [structural.pad(x, start, padding_config=config) for x, start in zip(leaves, starts, strict=True)]
    return padded, params | rest


def _params(aval: Any, window: Any, strides: Any, padding: Any, base: Any, holes: Any) -> dict[str, Any]:
    named = lambda v, name: (1,) * aval.ndim if v is None else same_rank(ints(v, name), aval.ndim, name)
    window, strides = named(window, "window_dimensions"), named(strides, "window_strides")
    base, holes = named(base, "base_dilation"), named(holes, "window_dilation")
    sizes = [dilated(n, b) for n, b in zip(aval.shape, base, strict=True)]
    pads = pads_of(padding, sizes, [dilated(w, h) for w, h in zip(window, holes, strict=True)], strides)
    same_rank(pads, aval.ndim, "padding")
    return dict(zip(NAMES, (window, strides, pads, base, holes), strict=True))


# -------------------------------------------------------------------------------------------------------------- patches
def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLayout = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Extract the window of a convolution at each position: elements are copied, not multiplied.

    Args:
        lhs: operand: batch, features and n spatial dimensions.
        filter_shape: n sizes of the window.
        window_strides: n steps.
        padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high).
        lhs_dilation: n distances between neighbouring elements of the operand; 1 by default.
        rhs_dilation: likewise of the window.
        dimension_numbers: as for `conv_dimension_numbers`.
        precision: has no effect, because nothing is rounded.
        preferred_element_type: dtype of the result.

    Returns:
        An array in the layout of a convolution's result, with features * prod(filter_shape) features: for each feature
        of the operand all elements of the window, which vary fastest.

    Raises:
        ShapeError: where shapes do not fit together.
        ArgumentError: for unknown letters or padding.

    >>> lax.conv_general_dilated_patches(fnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID").tolist()
    [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    """
    lhs = value(lhs)
    canonical(precision)
    shape, window = aval_of(lhs).shape, ints(filter_shape, "filter_shape")
    n = len(window)
    numbers = conv_dimension_numbers(shape, (1, 1, *window), dimension_numbers)
    named = lambda v, name: (1,) * n if v is None else same_rank(ints(v, name), n, name)
    strides = named(window_strides, "window_strides")
    stretch, holes = named(lhs_dilation, "lhs_dilation"), named(rhs_dilation, "rhs_dilation")
    sizes = [dilated(shape[d], s) for d, s in zip(numbers.lhs_spec[2:], stretch, strict=True)]
    reach = [dilated(w, h) for w, h in zip(window, holes, strict=True)]
    pads = same_rank(pads_of(padding, sizes, reach, strides), n, "padding")
    counts = [window_count(m, lo, hi, w, s) for m, (lo, hi), w, s in zip(sizes, pads, reach, strides, strict=True)]
    line = structural.transpose(lhs, permutation=tuple(numbers.lhs_spec))
    config = ((0, 0, 0), (0, 0, 0), *((lo, hi, s - 1) for (lo, hi), s in zip(pads, stretch, strict=True)))
    line = structural.pad(line, structural.full((), 0, aval_of(lhs).dtype), padding_config=config)
    batch, features = aval_of(line).shape[:2]
    for i in range(n - 1, -1, -1):  # after each dimension its elements of the window are dimension 2
        line = _elements_of_windows(line, n + 1, window[i], strides[i], holes[i], counts[i])
    out = structural.reshape(line, shape=(batch, features * math.prod(window), *counts))
    out = structural.transpose(out, permutation=tuple(np.argsort(numbers.out_spec).tolist()))
    dtype = dtype_of(preferred_element_type)
    return out if dtype is None else structural.convert_element_type(out, new_dtype=dtype)


#: Elements of a window along one dimension up to which each is a slice of its own.
_MOST_SLICES = 16
#: Steps from which on they always are: groups of elements are cut at every position, of which one in a step is used.
_LONG_STEP = 4


def _elements_of_windows(x: Any, axis: int, window: int, stride: int, hole: int, count: int) -> Any:
    """Return the elements of all windows along one dimension, those of a window as a new dimension 2.

    A long window is divided into groups of elements, so that slices are few: programs of hundreds compile for seconds.
    """
    shape = aval_of(x).shape
    if not count:
        return structural.full((*shape[:2], window, *shape[2:axis], 0, *shape[axis + 1 :]), 0, aval_of(x).dtype)
    if window > _MOST_SLICES and stride < _LONG_STEP:
        group = math.isqrt(window - 1) + 1
        groups = -(-window // group)
        config = [(0, 0, 0)] * aval_of(x).ndim
        config[axis] = (0, (groups * group - window) * hole, 0)
        x = structural.pad(x, structural.full((), 0, aval_of(x).dtype), padding_config=tuple(config))
        every = dilated(count, stride) + (groups - 1) * group * hole
        x = _elements_of_windows(x, axis, group, 1, hole, every)
        x = _elements_of_windows(x, axis + 1, groups, stride, group * hole, count)
        shape = aval_of(x).shape
        x = structural.reshape(x, shape=(*shape[:2], groups * group, *shape[4:]))
        return slice_in_dim(x, 0, window, axis=2) if groups * group > window else x
    parts = [slice_in_dim(x, k * hole, k * hole + dilated(count, stride), stride, axis) for k in range(window)]
    one = (*shape[:2], 1, *shape[2:axis], count, *shape[axis + 1 :])
    return structural.concatenate(*[structural.reshape(part, shape=one) for part in parts], dimension=2)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvLayout = None,
    precision: PrecisionLike = None,
) -> Array:
    """Convolution with a separate kernel at each position.

    Args:
        lhs: operand: batch, features and n spatial dimensions.
        rhs: kernels, in the kernel's layout: output features; input features times elements of the window, as
            `conv_general_dilated_patches` orders them; and the n spatial dimensions of the result.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for `conv_general_dilated`.
        filter_shape: n sizes of the window.
        precision: as for `dot_general`.

    Returns:
        An array in the result's layout, in the operands' dtype.

    Raises:
        ShapeError: where shapes do not fit together.

    >>> x, kernels = fnp.arange(4.0).reshape(1, 1, 4), fnp.ones((1, 2, 3)) * fnp.arange(3.0)
    >>> lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).tolist()
    [[[0.0, 3.0, 10.0]]]
    """
    lhs, rhs = value(lhs), value(rhs)
    numbers = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    n = len(numbers.lhs_spec) - 2
    straight = (tuple(numbers.lhs_spec), tuple(numbers.rhs_spec), tuple(range(n + 2)))
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, straight
    )
    patch_shape, kernel = aval_of(patches).shape[1:], aval_of(rhs).shape
    kernel_shape = tuple(kernel[d] for d in numbers.rhs_spec[1:])
    if kernel_shape != patch_shape:
        raise error(
            ShapeError,
            f"kernels {aval_of(rhs)!r} have {kernel_shape} input features and positions; "
            f"the windows of {aval_of(lhs)!r} have {patch_shape}",
            "give features * prod(filter_shape) input features, and a kernel for each position of the result",
        )
    space = tuple(range(2, n + 2))
    dims = (((1,), (numbers.rhs_spec[1],)), (space, tuple(numbers.rhs_spec[2:])))
    out = dot_general(  # (*space, batch, features)
        patches, rhs, dimension_numbers=dims, precision=canonical(precision), preferred_element_type=None
    )
    order = [n, n + 1, *range(n)]
    return structural.transpose(out, permutation=tuple(order[p] for p in np.argsort(numbers.out_spec)))
