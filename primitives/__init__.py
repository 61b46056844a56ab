"""The table of primitives: one row each, families by file. `python -m functorch_like.primitives` prints it."""

# ruff: noqa: F401, I001
# fmt: off
from __future__ import annotations

from functorch_like.primitives.analysis import (
    acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, ceil, cos, cosh, exp, exp2, expm1, floor, log, log1p,
    logistic, nextafter, one_minus_square, round, rsqrt, sin, sinh, sqrt, tan, tanh, tanh_slope,
)
from functorch_like.primitives.arithmetic import (
    abs, div, integer_pow, max, min, mul, rem, share, sign, square, sub,
)
from functorch_like.primitives.bessel import bessel_i0e, bessel_i1e
from functorch_like.primitives.bits import (
    and_, bitcast_convert_type, clz, mulhi, not_, or_, population_count, reduce_precision, shift_left,
    shift_right_arithmetic, shift_right_logical, xor,
)
from functorch_like.primitives.callbacks import debug_callback, io_callback, pure_callback
from functorch_like.primitives.checks import check
from functorch_like.primitives.collectives import axis_index, pmax, pmin, psum
from functorch_like.primitives.comparison import (
    clamp, eq, eq_to, ge, gt, is_finite, le, le_to, lt, lt_to, ne, select_n,
)
from functorch_like.primitives.complexes import complex, conj, imag, neg, real
from functorch_like.primitives.contract import dot_general
from functorch_like.primitives.convolution import conv_general_dilated
from functorch_like.primitives.cumulative import cummax, cummin, cumprod, cumsum
from functorch_like.primitives.fourier import fft
from functorch_like.primitives.exchange import all_gather, all_to_all, ppermute, reduce_scatter
from functorch_like.primitives.hurwitz import zeta
from functorch_like.primitives.incomplete_beta import incomplete_beta_grad, regularized_incomplete_beta
from functorch_like.primitives.incomplete_gamma import igamma, igamma_grad_a, igammac, random_gamma_grad
from functorch_like.primitives.foreign import ffi_call
from functorch_like.primitives.generators import philox4x32, rng_bit_generator
from functorch_like.primitives.eigen import eig, eigh, schur
from functorch_like.primitives.factorizations import cholesky, lu, lu_pivots_to_permutation
from functorch_like.primitives.indexing import scatter_add
from functorch_like.primitives.log_cumulative import cumlogsumexp
from functorch_like.primitives.naming import name
from functorch_like.primitives.orthogonal import geqp3, geqrf, hessenberg, householder_product, qr, tridiagonal
from functorch_like.primitives.padding import pad, slice
from functorch_like.primitives.platforms import platform_index
from functorch_like.primitives.probing import probe
from functorch_like.primitives.powers import half_integer_pow, pow
from functorch_like.primitives.random_bits import threefry2x32
from functorch_like.primitives.ragged import ragged_dot
from functorch_like.primitives.ranking import top_k
from functorch_like.primitives.rearranging import optimization_barrier, split, tile
from functorch_like.primitives.reductions import (
    argmax, argmin, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod, reduce_xor,
)
from functorch_like.primitives.rows import add
from functorch_like.primitives.scatter import scatter_max, scatter_min, scatter_mul
from functorch_like.primitives.selection import select_and_scatter_add
from functorch_like.primitives.shapes import broadcast_in_dim, reduce_sum, reshape, transpose
from functorch_like.primitives.singular import pinv, svd
from functorch_like.primitives.slicing import dynamic_slice, dynamic_update_slice, gather, scatter
from functorch_like.primitives.sorting import sort
from functorch_like.primitives.special import digamma, erf, erf_inv, erfc, lgamma, polygamma
from functorch_like.primitives.structure import (
    concatenate, convert_element_type, copy, iota, rev, stop_gradient,
)
from functorch_like.primitives.systems import solve
from functorch_like.primitives.triangular import triangular_solve, tridiagonal_solve
from functorch_like.primitives.windows import (
    reduce_window_max, reduce_window_min, reduce_window_sum, select_and_gather_add,
)
