"""`jax.distributed`: the state that JAX's module holds besides its functions."""

from __future__ import annotations

from functorch_like import distributed as _distributed


class _State:
    """The position of the process among all, as in `jax._src.distributed.global_state`."""

    process_id, num_processes = 0, 1
    coordinator_address = preemption_sync_manager = None

    @property
    def client(self) -> object | None:
        """An object once the processes have joined, else None."""
        return _distributed if _distributed.is_initialized() else None


global_state = _State()
