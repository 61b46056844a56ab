"""`jax.experimental.profiler`."""

from __future__ import annotations

from functorch_like.backends.xla.profiling import instructions_profile


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Return the times of the instructions of GPU programs in a recorded trace; b"" for a CPU's."""
    return instructions_profile(tensorboard_dir)
