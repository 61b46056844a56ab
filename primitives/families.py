"""Table of the file of each first-order primitive; a file is imported at the first use of one of its primitives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

from functorch_like import public_names
from functorch_like.frames import without_frames

# fmt: off
FAMILIES = {
    "elementwise.transcendental":
        "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh exp exp2 expm1 floor log log1p logistic nextafter "
        "one_minus_square round rsqrt sin sinh sqrt tan tanh tanh_slope",
    "elementwise.arithmetic": "abs div integer_pow max min mul rem share sign square sub",
    "elementwise.bessel": "bessel_i0e bessel_i1e",
    "elementwise.bitwise":
        "and_ bitcast_convert_type clz mulhi not_ or_ population_count reduce_precision shift_left "
        "shift_right_arithmetic shift_right_logical xor",
    "effects.callbacks": "debug_callback io_callback pure_callback",
    "effects.check": "check",
    "collectives.reduce_over_axis": "axis_index pmax pmin psum",
    "elementwise.comparison": "clamp eq eq_to ge gt is_finite le le_to lt lt_to ne select_n",
    "elementwise.complex_parts": "complex conj imag neg real",
    "elementwise.conversion": "convert_element_type",
    "contractions.dot_general": "dot_general",
    "contractions.convolution": "conv_general_dilated",
    "reductions.cumulative": "cummax cummin cumprod cumsum",
    "linalg.eigen": "eig eigh schur",
    "collectives.shared_values": "divide_where_same pvary sum_where_same",
    "collectives.exchange": "all_gather all_to_all ppermute reduce_scatter",
    "effects.call_exported": "call_exported",
    "linalg.cholesky_lu": "cholesky lu lu_pivots_to_permutation",
    "effects.ffi_call": "ffi_call",
    "contractions.fft": "fft",
    "random.philox": "philox4x32 rng_bit_generator",
    "elementwise.zeta": "zeta zeta_derivative",
    "elementwise.incomplete_beta": "incomplete_beta_grad regularized_incomplete_beta",
    "elementwise.incomplete_gamma": "igamma igamma_grad_a igammac random_gamma_grad",
    "indexing.gather_and_scatter_add": "scatter_add",
    "reductions.cumlogsumexp": "cumlogsumexp",
    "reductions.recurrence": "recurrence",
    "effects.checkpoint_name": "name",
    "effects.control_dep": "control_dep",
    "effects.memory_placement": "memory_placement",
    "linalg.qr": "geqp3 geqrf hessenberg householder_product qr tridiagonal",
    "structural.pad_and_slice": "pad slice",
    "effects.platform_index": "platform_index",
    "elementwise.powers": "half_integer_pow pow",
    "effects.inspect_sharding": "inspect_sharding",
    "effects.probe": "probe",
    "contractions.ragged_dot": "ragged_dot ragged_contract",
    "random.threefry": "threefry2x32",
    "ordering.top_k": "top_k",
    "structural.annotations": "layout_constraint shard_alike xla_metadata",
    "structural.sharding_constraint": "retyped sharding_constraint",
    "structural.tile_split_barrier": "optimization_barrier split tile",
    "reductions.reductions": "argmax argmin reduce_and reduce_max reduce_max_number reduce_min reduce_or reduce_prod "
    "reduce_xor",
    "reductions.extremes_without_nan": "reduce_fmax reduce_fmin",
    "base.elementwise_makers": "add",
    "updates.scatter": "scatter_max scatter_min scatter_mul",
    "windows.select_and_scatter": "select_and_scatter_add",
    "base.shapes": "broadcast_in_dim reduce_sum reshape routed_sum transpose",
    "linalg.svd": "pinv svd",
    "updates.dynamic_slice": "dynamic_slice dynamic_update_slice gather scatter",
    "updates.true_places": "true_places",
    "ordering.order_statistics": "order_statistics",
    "ordering.sort": "sort",
    "elementwise.erf_and_gamma": "digamma erf erf_inv erfc lgamma polygamma",
    "structural.data_movement": "concatenate copy iota materialize rev stop_gradient",
    "linalg.solve": "solve",
    "linalg.triangular_solve": "triangular_solve tridiagonal_solve",
    "windows.reduce_window": "reduce_window_max reduce_window_min reduce_window_sum select_and_gather_add",
}
# fmt: on
HOME = {primitive: family for family, names in FAMILIES.items() for primitive in names.split()}
_PACKAGE = __name__.rpartition(".")[0]


def load(name: str) -> Any:
    """Import the file of a primitive, and return the primitive."""
    return getattr(importlib.import_module(f"{_PACKAGE}.{HOME[name]}"), name)


def attach(
    namespace: dict[str, Any], names: Iterable[str], extra: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package with these primitives (and these other names) as attributes."""

    @without_frames
    def get(name: str) -> Any:
        if name not in names:
            raise public_names.missing(sys.modules[namespace["__name__"]], name)
        primitive = namespace[name] = load(name)
        return primitive

    return get, lambda: sorted({*names, *extra})
