"""The rows as functions: no broadcasting, no promotion, JAX's `lax` names."""

# ruff: noqa: F401, I001
# fmt: off
from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from functorch_like.calling import lazy_imports as _late
from functorch_like.lax.associative import associative_scan
from functorch_like.lax.branches import cond, switch
from functorch_like.lax.applying import scatter_apply
from functorch_like.lax.collectives import axis_index, axis_size, pbroadcast, pmax, pmean, pmin, psum
from functorch_like.lax.contract import DotAlgorithm, DotAlgorithmPreset, Precision, batch_matmul, dot, dot_general
from functorch_like.lax.convolution import (
    conv, conv_dimension_numbers, conv_general_dilated, conv_with_general_padding, padtype_to_pads,
)
from functorch_like.lax.counted import fori_loop
from functorch_like.lax.creation import broadcasted_iota, empty, full, full_like, iota, zeros_like_array
from functorch_like.lax.elementwise import (
    RoundingMethod, abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_not, bitwise_or,
    bitwise_xor, cbrt, ceil, clz, complex, conj, cos, cosh, digamma, div, eq, eq_to, erf, erf_inv, erfc, exp, exp2,
    expm1, floor, ge, gt, imag, integer_pow, is_finite, le, le_to, lgamma, log, log1p, logistic, lt, lt_to, max,
    min, mul, mulhi, ne, neg, nextafter, polygamma, population_count, pow, real, reciprocal, reduce_precision, rem,
    round, rsqrt, shift_left, shift_right_arithmetic, shift_right_logical, sign, sin, sinh, sqrt, square, sub, tan,
    tanh,
)
from functorch_like.lax.exchange import all_gather, all_to_all, ppermute, pshuffle, psum_scatter, pswapaxes
from functorch_like.lax.fourier import FftType, fft
from functorch_like.lax.folding import reduce
from functorch_like.lax.generators import RandomAlgorithm, rng_bit_generator
from functorch_like.lax.indexing import (
    GatherScatterMode, gather, scatter, scatter_add, scatter_max, scatter_min, scatter_mul, scatter_sub,
)
from functorch_like.lax.loops import map, scan
from functorch_like.lax.platforms import platform_dependent
from functorch_like.lax.ragged import ragged_dot
from functorch_like.lax.rearranging import approx_max_k, approx_min_k, optimization_barrier, split, tile, top_k
from functorch_like.lax.reductions import (
    argmax, argmin, cumlogsumexp, cummax, cummin, cumprod, cumsum, reduce_and, reduce_max, reduce_min, reduce_or,
    reduce_prod, reduce_sum, reduce_xor, sort, sort_key_val,
)
from functorch_like.lax.selection import clamp, select, select_n
from functorch_like.lax.shapes import (
    bitcast_convert_type, broadcast, broadcast_in_dim, collapse, concatenate, convert_element_type, expand_dims, pad,
    reshape, rev, squeeze, stop_gradient, transpose,
)
from functorch_like.lax.slicing import (
    dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim, dynamic_update_slice,
    dynamic_update_slice_in_dim, index_in_dim, slice, slice_in_dim,
)
from functorch_like.lax.solves import custom_linear_solve, custom_root
from functorch_like.lax.special import (
    bessel_i0e, bessel_i1e, betainc, igamma, igamma_grad_a, igammac, random_gamma_grad, zeta,
)
from functorch_like.lax.transposed import conv_transpose
from functorch_like.lax.unbounded import while_loop
from functorch_like.lax.windows import (
    conv_general_dilated_local, conv_general_dilated_patches, reduce_window,
)
from functorch_like.primitives.contractions.convolution import ConvDimensionNumbers
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers

if _TYPE_CHECKING:
    from functorch_like.lax import linalg
    from functorch_like.lax.composites import composite
    from functorch_like.lax.sharding_constraints import with_sharding_constraint
    from functorch_like.lax.stacking import (
        broadcast_like, broadcast_shapes, broadcast_to_rank, dtype, index_take, shape_as_value, stack, unstack,
    )
    from functorch_like.lax.window_shapes import (
        conv_general_permutations, conv_general_shape_tuple, conv_shape_tuple, conv_transpose_shape_tuple,
        reduce_window_shape_tuple,
    )

__getattr__, __dir__ = _late.attach(
    __name__,
    {
        "composites": ("composite",),
        "sharding_constraints": ("with_sharding_constraint",),
        "stacking": (
            "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "dtype", "index_take", "shape_as_value", "stack",
            "unstack",
        ),
        "window_shapes": (
            "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
            "reduce_window_shape_tuple",
        ),
    },
    modules=("linalg",),
)
