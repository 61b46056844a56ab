"""`jax.distributed`: what its module holds besides functions."""

from __future__ import annotations

from functorch_like import distributed as _distributed


class _State:
    """The process's place among all, as `jax._src.distributed.global_state` has it."""

    process_id, num_processes = 0, 1
    coordinator_address = preemption_sync_manager = None

    @property
    def client(self) -> object | None:
        """Something once the processes have joined, else None."""
        return _distributed if _distributed.is_initialized() else None


global_state = _State()
