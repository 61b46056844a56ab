"""The table of primitives: one row each, families by file. `python -m functorch_like.primitives` prints it.

A family is imported when one of its rows is asked for.

>>> from functorch_like import primitives
>>> primitives.sin, primitives.sin.family
(sin, 'analysis')
"""

from __future__ import annotations

import importlib
from typing import Any

# fmt: off
_FAMILIES = {
    "analysis":
        "acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh exp exp2 expm1 floor log log1p logistic nextafter "
        "one_minus_square round rsqrt sin sinh sqrt tan tanh tanh_slope",
    "arithmetic": "abs div integer_pow max min mul rem share sign square sub",
    "bessel": "bessel_i0e bessel_i1e",
    "bits":
        "and_ bitcast_convert_type clz mulhi not_ or_ population_count reduce_precision shift_left "
        "shift_right_arithmetic shift_right_logical xor",
    "callbacks": "debug_callback io_callback pure_callback",
    "checks": "check",
    "collectives": "axis_index pmax pmin psum",
    "comparison": "clamp eq eq_to ge gt is_finite le le_to lt lt_to ne select_n",
    "complexes": "complex conj imag neg real",
    "contract": "dot_general",
    "convolution": "conv_general_dilated",
    "cumulative": "cummax cummin cumprod cumsum",
    "eigen": "eig eigh schur",
    "exchange": "all_gather all_to_all ppermute reduce_scatter",
    "exported": "call_exported",
    "factorizations": "cholesky lu lu_pivots_to_permutation",
    "foreign": "ffi_call",
    "fourier": "fft",
    "generators": "philox4x32 rng_bit_generator",
    "hurwitz": "zeta zeta_derivative",
    "incomplete_beta": "incomplete_beta_grad regularized_incomplete_beta",
    "incomplete_gamma": "igamma igamma_grad_a igammac random_gamma_grad",
    "indexing": "scatter_add",
    "log_cumulative": "cumlogsumexp",
    "naming": "name",
    "orthogonal": "geqp3 geqrf hessenberg householder_product qr tridiagonal",
    "padding": "pad slice",
    "platforms": "platform_index",
    "powers": "half_integer_pow pow",
    "probing": "probe",
    "ragged": "ragged_dot",
    "random_bits": "threefry2x32",
    "ranking": "top_k",
    "rearranging": "optimization_barrier split tile",
    "reductions": "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_xor",
    "rows": "add",
    "scatter_combining": "scatter_max scatter_min scatter_mul",
    "selection": "select_and_scatter_add",
    "shapes": "broadcast_in_dim reduce_sum reshape transpose",
    "singular": "pinv svd",
    "slicing": "dynamic_slice dynamic_update_slice gather scatter",
    "sorting": "sort",
    "special": "digamma erf erf_inv erfc lgamma polygamma",
    "structure": "concatenate convert_element_type copy iota rev stop_gradient",
    "systems": "solve",
    "triangular": "triangular_solve tridiagonal_solve",
    "windows": "reduce_window_max reduce_window_min reduce_window_sum select_and_gather_add",
}
# fmt: on
_HOME = {row: family for family, names in _FAMILIES.items() for row in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def load() -> None:
    """Import every family, the higher-order ones too, so that the table of rows is complete."""
    import pkgutil

    for found in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
