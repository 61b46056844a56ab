"""`jax.distributed`: the state that JAX's module holds besides its functions."""

from __future__ import annotations

from functorch_like import distributed as _distributed
from functorch_like.backends.xla.processes import membership


class _State:
    """The position of the process among all, as in `jax._src.distributed.global_state`."""

    coordinator_address = preemption_sync_manager = None

    @property
    def process_id(self) -> int:
        """The number of this process, from 0."""
        joined = membership()
        return 0 if joined is None else joined.index

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        joined = membership()
        return 1 if joined is None else joined.count

    @property
    def client(self) -> object | None:
        """An object once the processes have joined, else None."""
        return _distributed if _distributed.is_initialized() else None


global_state = _State()
