"""`jax.experimental.pallas.ops`: JAX's ready kernels by name, as XLA programs that run on every device.

Sizes of blocks and the like are taken and have no effect. Gradients are those of the programs.
"""
