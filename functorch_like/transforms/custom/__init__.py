"""Derivative and batching rules that users write: custom_jvp, custom_vjp, custom_vmap."""
