"""`jax.extend.mlir`: conversions of programs between their forms, as jaxlib has them."""

from __future__ import annotations

from functorch_like.backends.xla.jaxlib_api import _jax

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes", "serialize_portable_artifact",
]  # fmt: skip

deserialize_portable_artifact = _jax.mlir.deserialize_portable_artifact
hlo_to_stablehlo = _jax.mlir.hlo_to_stablehlo
refine_polymorphic_shapes = _jax.mlir.refine_polymorphic_shapes
serialize_portable_artifact = _jax.mlir.serialize_portable_artifact
