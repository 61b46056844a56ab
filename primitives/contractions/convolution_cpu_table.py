"""The list of faster forms of convolutions, with their limits and samples on both sides of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import SampleInput
from functorch_like.primitives.base.lowering import Alternative
from functorch_like.primitives.base.window_geometry import FEW
from functorch_like.primitives.contractions import (
    convolution_cpu,
    convolution_cpu_few_outputs,
    convolution_cpu_products,
    convolution_cpu_steps,
    convolution_cpu_taps,
)
from functorch_like.primitives.contractions.convolution_cpu import (
    FEW_GROUPS,
    FEW_OUTPUTS,
    MANY_MULTIPLICATIONS,
    MANY_PATCHES,
)
from functorch_like.primitives.contractions.convolution_cpu_few_outputs import MANY_MULTIPLICATIONS as WORTHWHILE
from functorch_like.primitives.contractions.convolution_cpu_few_outputs import (
    MOST_NUMBERS,
    MOST_ROWS,
    MOST_TERMS,
    ROWS_PER_FEATURE,
)
from functorch_like.primitives.contractions.convolution_cpu_steps import MANY_MULTIPLICATIONS as STEPS_WORTHWHILE
from functorch_like.primitives.contractions.convolution_lowering import Conv


def _conv(ins: Any, outs: Any, params: dict[str, Any], e: Any = None, lhs: Any = None, rhs: Any = None) -> Conv:
    groups = {"feature_group_count": 1, "batch_group_count": 1}
    return Conv(ins[0], ins[1], outs[0], groups | params, e, lhs, rhs)


def _form(
    name: str, limits: str, fits: Callable[[Conv], bool], lower: Callable[[Conv], Any],
    edges: Callable[[], list[tuple[SampleInput, bool]]], *, slow_compile: bool = False, optimised_only: bool = False,
) -> Alternative:  # fmt: skip
    def takes(ins: Any, outs: Any, **params: Any) -> bool:
        kept = outs[0].dtype in (dtypes.float32, dtypes.float64) and ins[0].dtype == outs[0].dtype
        return kept and all(a.size for a in (*ins, *outs)) and fits(_conv(ins, outs, params))

    emit = lambda e, lhs, rhs, **params: lower(_conv(e.ins, e.outs, params, e, lhs, rhs))
    return Alternative(name, limits, takes, emit, edges, slow_compile=slow_compile, optimised_only=optimised_only)


def conv_sample(left: Any, right: Any, numbers: Any = None, dtype: str = "float32", **params: Any) -> SampleInput:
    """A sample of conv_general_dilated: by default each parameter has no effect."""
    n = len(left) - 2
    straight = tuple(range(n + 2))
    base = {
        "window_strides": (1,) * n, "padding": ((0, 0),) * n, "lhs_dilation": (1,) * n, "rhs_dilation": (1,) * n,
        "dimension_numbers": numbers or (straight,) * 3, "feature_group_count": 1, "batch_group_count": 1,
        "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    return SampleInput((ShapedArray(left, dtype), ShapedArray(right, dtype)), base | params)


def _edges(*made: tuple[bool, Any, Any, dict[str, Any]]) -> Callable[[], list[tuple[SampleInput, bool]]]:
    return lambda: [(conv_sample(left, right, **params), taken) for taken, left, right, params in made]


_WIDE, _DOUBLE, _AROUND = FEW + 1, {"dtype": "float64"}, ((1, 2), (0, 3))
_LAST, _TURNED = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)), ((1, 0, 2), (0, 1, 2), (1, 0, 2))
_HOLES = _DOUBLE | {"lhs_dilation": (2, 2)}
_ENDS, _BATCHES = ((5, 9),), {"batch_group_count": 3}
_GROUPS_LAST = ((0, 3, 1, 2), (0, 3, 1, 2), (0, 3, 1, 2))
_SLOPE = {"numbers": ((3, 0, 1, 2), (3, 0, 1, 2), (2, 3, 0, 1))}  # of a kernel, where features come last
_IMAGES, _LINES = ((1, 0, 2, 3), (1, 0, 2, 3), (1, 0, 2, 3)), ((1, 0, 2), (1, 0, 2), (1, 0, 2))  # and where they do not
_FEW_ROWS = (
    f"float32, no strides, holes and negative padding, kernels of 2 to {MOST_TERMS} elements, of which at most "
    f"{MOST_ROWS} or {ROWS_PER_FEATURE} times the input features for all outputs, from {WORTHWHILE} multiplications to "
    f"{MOST_NUMBERS} numbers in rows"
)
FORMS = (
    _form(
        "matrix product",
        "kernels of one element, without strides, padding and groups, in layouts that a product makes",
        convolution_cpu_products.is_pointwise, convolution_cpu_products.pointwise,
        _edges(
            (True, (2, 3, 4), (5, 3, 1), {}), (True, (2, 3, 4), (5, 3, 1), {"dtype": "float64"}),
            (True, (2, 4, 5, 3), (1, 1, 3, 6), {"numbers": _LAST}), (True, (3, 4, 5, 2), (3, 1, 1, 6), _SLOPE),
            (True, (3, 2, 4), (5, 3, 1), {"numbers": _TURNED}),  # the kernel first
            (False, (4, 2, 5, 3), (1, 1, 2, 6), {"numbers": ((3, 1, 0, 2), (3, 2, 0, 1), (0, 3, 1, 2))}),
            (False, (2, 3, 4), (5, 3, 1), {"window_strides": (2,)}),
            (False, (2, 3, 4), (5, 3, 1), {"padding": ((1, 0),)}), (False, (2, 3, 4), (5, 3, 2), {}),
            (False, (2, 3, 4), (5, 3, 1), {"dtype": "bfloat16"}),
        ),
    ),
    _form(
        "matrix product of all", "windows over all of the input, without padding and groups",
        convolution_cpu_products.is_whole, convolution_cpu_products.whole,
        _edges(
            (True, (2, 3, 4), (5, 3, 4), {}), (True, (2, 3, 4, 2), (5, 3, 4, 2), _DOUBLE | {"window_strides": (3, 3)}),
            (True, (2, 3, 4, 5), (3, 4, 5, 6), {"numbers": _LAST}), (True, (3, 4, 5, 2), (3, 4, 5, 6), _SLOPE),
            (True, (3, 2, 4), (5, 3, 4), {"numbers": _TURNED}),
            (False, (2, 3, 5), (5, 3, 4), {}), (False, (2, 3, 3), (5, 3, 4), {"padding": ((1, 0),)}),
            (False, (2, 3, 5), (5, 3, 3), {"rhs_dilation": (2,)}),
            (False, (2, 3, 2), (5, 3, 3), {"lhs_dilation": (2,)}),
        ),
    ),
    _form(
        "matrix product with the kernel reversed",
        "inputs of one element in space, padded to meet each element of the kernel once, without groups",
        convolution_cpu_products.is_spread, convolution_cpu_products.spread,
        _edges(
            (True, (2, 3, 1), (5, 3, 4), {"padding": ((3, 3),)}),
            (True, (2, 1, 1, 3), (4, 2, 3, 5), {"numbers": _LAST, "padding": ((3, 3), (1, 1)), "lhs_dilation": (2, 3)}),
            (True, (2, 3, 1, 1), (5, 3, 4, 1), _DOUBLE | {"padding": ((3, 3), (0, 0))}),
            (True, (3, 2, 1), (5, 3, 4), {"numbers": _TURNED, "padding": ((3, 3),)}),
            (False, (2, 3, 1), (5, 3, 4), {"padding": ((3, 2),)}),
            (False, (2, 3, 2), (5, 3, 4), {"padding": ((3, 3),)}),
            (False, (2, 3, 1), (5, 3, 4), {"padding": ((3, 3),), "window_strides": (2,)}),
        ),
    ),
    _form(
        "shifted sums of one feature",
        f"one input feature, at most {FEW_OUTPUTS} outputs, kernels of 2 to {FEW} elements, at least {MANY_PATCHES} "
        "elements in all patches",
        convolution_cpu.is_filter, convolution_cpu.depthwise,
        _edges(
            (True, (1, 1, MANY_PATCHES // FEW + FEW - 1), (FEW_OUTPUTS, 1, FEW), {}),
            (True, (2, 1, 60, 60), (1, 1, 2, 3), _DOUBLE | {"window_strides": (2, 1), "lhs_dilation": (1, 2)}),
            (True, (2, 60, 60, 1), (2, 3, 1, 3), {"numbers": _LAST, "rhs_dilation": (2, 1), "padding": _AROUND}),
            (True, (1, 2, MANY_PATCHES), (2, 1, 2), {"numbers": _TURNED}),
            (False, (1, 1, MANY_PATCHES // FEW + FEW - 2), (2, 1, FEW), {}),
            (False, (1, 1, MANY_PATCHES), (2, 1, _WIDE), {}), (False, (1, 2, MANY_PATCHES), (2, 2, 2), {}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "patches",
        "the same with more outputs, in float32",
        convolution_cpu.has_one_feature, convolution_cpu.by_patches,
        _edges(
            (True, (1, 1, MANY_PATCHES // FEW + FEW - 1), (FEW_OUTPUTS + 1, 1, FEW), {}),
            (False, (1, 1, MANY_PATCHES // FEW + FEW - 2), (FEW_OUTPUTS + 1, 1, FEW), {}),
            (False, (1, 1, MANY_PATCHES), (FEW_OUTPUTS + 1, 1, _WIDE), {}),
            (True, (2, 1, 60, 60), (9, 1, 2, 3), {"window_strides": (2, 1), "lhs_dilation": (1, 2)}),
            (True, (2, 60, 60, 1), (3, 3, 1, 9), {"numbers": _LAST, "rhs_dilation": (2, 1)}),
            (False, (2, 2, 5), (3, 2, 2), {}), (False, (1, 2, MANY_PATCHES), (9, 1, 2), {"numbers": _TURNED}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "shifted sums of rows",
        f"{_FEW_ROWS}, at most {convolution_cpu_few_outputs.FEW_OUTPUTS} outputs, in the usual layouts",
        convolution_cpu_few_outputs.has_few_outputs, convolution_cpu_few_outputs.by_rows,
        _edges(
            (True, (2, 4, 24, 24), (3, 4, 3, 3), {"padding": ((1, 1), (1, 1))}),
            (True, (2, 24, 24, 4), (3, 2, 4, 3), {"numbers": _LAST, "padding": _AROUND, "rhs_dilation": (2, 1)}),
            (True, (1, 8, WORTHWHILE // 64), (8, 8, 1 << 3), {}), (True, (1, 2, WORTHWHILE // 8), (2, 2, 2), {}),
            (False, (1, 2, WORTHWHILE // 8 - 1), (2, 2, 2), {}), (False, (1, 2, WORTHWHILE // 8), (9, 2, 2), {}),
            (False, (2, 16, 100), (1, 16, MOST_TERMS + 1), {}), (False, (1, 2, 1000), (8, 2, 9), {}),
            (False, (2, 4, 24, 24), (3, 4, 3, 3), {"window_strides": (1, 2)}),
            (False, (2, 4, 24, 24), (3, 4, 3, 3), {"lhs_dilation": (2, 1)}),
            (False, (2, 4, 24, 24), (3, 4, 3, 3), {"padding": ((1, -1), (0, 0))}),
            (False, (4, 2, 4000), (2, 4, 2), {"numbers": _TURNED}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "a product of shifted rows",
        f"{_FEW_ROWS} for the gradient of such a kernel: as many results in space as the kernel has elements",
        convolution_cpu_few_outputs.is_gradient_of_few, convolution_cpu_few_outputs.by_shifted_rows,
        _edges(
            (True, (2, 16, 9, 9), (2, 3, 9, 9), {"numbers": _IMAGES, "padding": ((1, 1), (1, 1))}),
            (True, (2, 9, 10, 16), (2, 7, 9, 3), _SLOPE | {"padding": ((0, 1), (2, 0))}),
            (True, (3, 16, 60), (3, 2, 50), {"numbers": _LINES, "padding": ((3, 0),)}),
            (False, (3, 16, 60), (3, 2, 50), {"numbers": _LINES, "padding": ((3, 0),), "dtype": "float64"}),
            (False, (3, 16, 60), (3, 2, 50), {"numbers": _LINES, "padding": ((-3, 0),)}),
            (False, (3, 16, 60), (3, 2, 3), {"numbers": _LINES, "padding": ((3, 0),)}),
            (False, (2, 16, 9, 9), (2, 3, 8, 4), {"numbers": _IMAGES, "rhs_dilation": (1, 2)}),
            (False, (2, 16, 9, 9), (2, 9, 8, 8), {"numbers": _IMAGES}),
        ),
        slow_compile=True,
    ),
    _form(
        "shifted sums", f"one feature in a group, kernels of at most {FEW} elements",
        convolution_cpu.is_depthwise, convolution_cpu.depthwise,
        _edges(
            (True, (2, 3, _WIDE), (3, 1, FEW), {"feature_group_count": 3}),
            (False, (2, 3, _WIDE), (3, 1, _WIDE), {"feature_group_count": 3}),
            (False, (2, 3, 5), (6, 1, 2), {"feature_group_count": 3}),
        ),
        slow_compile=True,
    ),
    _form(
        "shifted sums in steps",
        f"one feature in a group, or one and at most {FEW_OUTPUTS} outputs, kernels of more than {FEW} elements, from "
        f"{STEPS_WORTHWHILE} multiplications",
        convolution_cpu_steps.has_long_kernel, convolution_cpu_steps.by_steps,
        _edges(
            (True, (1, 1, 300), (1, 1, 65), {"padding": ((64, 64),)}),
            (True, (2, 1, 40, 41), (3, 1, 7, 6), {"padding": _AROUND, "window_strides": (2, 1)}),
            (True, (2, 30, 31, 3), (6, 7, 1, 3), {"numbers": _LAST, "feature_group_count": 3, "rhs_dilation": (1, 2)}),
            (True, (2, 1, 90), (2, 1, 97), _DOUBLE | {"lhs_dilation": (3,), "rhs_dilation": (2,), "padding": _ENDS}),
            (True, (2, 4, 60), (4, 1, _WIDE), {"feature_group_count": 4, "padding": ((-2, 7),)}),
            (False, (1, 1, 300), (1, 1, 65), {"padding": ((0, -230),)}), (False, (1, 1, 300), (1, 1, FEW), {}),
            (False, (2, 2, 300), (1, 2, 65), {}), (False, (2, 3, 300), (6, 1, 65), {"feature_group_count": 3}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "a loop over results", f"one feature in a group of the batch, more than {FEW} results in space",
        convolution_cpu_steps.is_gradient_of_long_kernel, convolution_cpu_steps.by_results,
        _edges(
            (True, (3, 2, 30), (3, 2, 70), _BATCHES | {"padding": ((40, 50),)}),
            (True, (3, 12, 13, 2), (3, 6, 5, 2), _BATCHES | {"numbers": _GROUPS_LAST}),
            (True, (3, 2, 100), (3, 2, 9), _DOUBLE | _BATCHES | {"window_strides": (2,), "rhs_dilation": (2,)}),
            (False, (3, 2, FEW), (3, 2, 1), _BATCHES), (False, (6, 2, 90), (3, 2, 2), _BATCHES),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "a sum for each result", f"one feature in a group of the batch, at most {FEW} results in space",
        convolution_cpu.is_depthwise_gradient, convolution_cpu.depthwise_gradient,
        _edges(
            (True, (3, 2, FEW), (3, 2, 1), {"batch_group_count": 3}),
            (False, (3, 2, _WIDE), (3, 2, 1), {"batch_group_count": 3}),
            (False, (6, 2, 4), (3, 2, 2), {"batch_group_count": 3}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "a convolution for each group", f"2 to {FEW_GROUPS} groups",
        lambda conv: 1 < conv.groups <= FEW_GROUPS, convolution_cpu.split,
        _edges(
            (True, (1, 2 * FEW_GROUPS, 3), (FEW_GROUPS, 2, 2), {"feature_group_count": FEW_GROUPS}),
            (True, (2 * FEW_GROUPS, 2, 3), (FEW_GROUPS, 2, 2), {"batch_group_count": FEW_GROUPS}),
            (False, (1, 2 * FEW_GROUPS + 2, 9), (FEW_GROUPS + 1, 2, 2), {"feature_group_count": FEW_GROUPS + 1}),
        ),
        slow_compile=True, optimised_only=True,
    ),
    _form(
        "a batched product for each result",
        f"more groups, at most {FEW} results in space and no more than the kernel has elements",
        convolution_cpu.has_few_results, convolution_cpu.per_result,
        _edges(
            (True, (1, 2 * FEW_GROUPS + 2, 3), (FEW_GROUPS + 1, 2, 2), {"feature_group_count": FEW_GROUPS + 1}),
            (False, (1, 2 * FEW_GROUPS + 2, 4), (FEW_GROUPS + 1, 2, 2), {"feature_group_count": FEW_GROUPS + 1}),
        ),
    ),
    _form(
        "a matrix product for each element of the kernel",
        f"float64, at most {FEW} elements, from {MANY_MULTIPLICATIONS} multiplications",
        convolution_cpu_taps.has_few_taps, convolution_cpu_taps.by_taps,
        _edges(
            (True, (2, 8, 16, 16), (8, 8, 2, 4), _DOUBLE | {"padding": _AROUND}),
            (True, (4, 32, 40, 8), (3, 3, 8, 8), _DOUBLE | {"numbers": _LAST, "window_strides": (2, 1)}),
            (True, (8, 64, 95), (3, 8, 32), _DOUBLE | {"numbers": _TURNED, "rhs_dilation": (2,)}),
            (True, (2, 8, 9, 9), (8, 8, 3, 3), _HOLES | {"padding": _AROUND}),
            (True, (2, 16, 16, 8), (3, 3, 8, 8), _HOLES | {"numbers": _LAST, "padding": ((2, 1), (2, 1))}),
            (True, (8, 64, 33), (3, 8, 32), _DOUBLE | {"numbers": _TURNED, "rhs_dilation": (2,), "lhs_dilation": (3,)}),
            (True, (4, 8, 20, 9), (8, 8, 2, 3), _HOLES | {"lhs_dilation": (3, 1), "window_strides": (1, 2)}),
            (True, (2, 8, 30, 9), (8, 8, 1, 3), _HOLES | {"padding": ((-1, 2), (0, 4))}),
            (True, (2, 8, 16, 16), (8, 8, 3, 3), _HOLES | {"window_strides": (3, 1)}),
            (False, (2, 8, 16, 16), (8, 8, 2, 4), {}), (False, (2, 8, 90), (8, 8, _WIDE), _DOUBLE),
            (False, (2, 8, 16, 16), (8, 8, 1, 2), _DOUBLE | {"window_strides": (3, 2)}),
            (False, (2, 8, 3, 3), (8, 8, 3, 3), _HOLES),
            (False, (2, 8, 9, 9), (8, 8, 3, 3), _HOLES | {"dtype": "float32"}),
        ),
        slow_compile=True,
    ),
    _form(
        "a matrix product for each result",
        f"float64, at most {FEW} results in space and no more than the kernel has elements, from "
        f"{MANY_MULTIPLICATIONS} multiplications",
        convolution_cpu.has_few_places, convolution_cpu.by_places,
        _edges(
            (True, (2, 8, 16, 16), (8, 8, 14, 14), _DOUBLE), (False, (2, 8, 16, 16), (8, 8, 14, 14), {}),
            (True, (4, 18, 18, 16), (17, 18, 16, 16), _DOUBLE | {"numbers": _LAST}),
            (False, (2, 8, 6, 6), (8, 8, 5, 7), _DOUBLE | {"padding": _AROUND}),
        ),
        slow_compile=True,
    ),
)  # fmt: skip
