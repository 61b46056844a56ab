"""The user's derivative rules, under the names of `jax.custom_derivatives`."""

from __future__ import annotations

from functorch_like.transforms.closure_convert import closure_convert as closure_convert
from functorch_like.transforms.custom.custom_gradient import custom_gradient as custom_gradient
from functorch_like.transforms.custom.custom_jvp import custom_jvp as custom_jvp
from functorch_like.transforms.custom.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from functorch_like.transforms.custom.custom_vjp import custom_vjp as custom_vjp
from functorch_like.transforms.custom.custom_vjp import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from functorch_like.transforms.custom.linear_call import linear_call as linear_call
from functorch_like.transforms.custom.symbolic_zeros import SymbolicZero as SymbolicZero
from functorch_like.transforms.custom.symbolic_zeros import zero_from_primal as zero_from_primal

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip
