"""`MemorySpace`: the memory of a device, or the host's memory, whatever the devices are."""

from __future__ import annotations

import enum


class MemorySpace(enum.Enum):
    """Memory that `ft.device_put` moves an array to, on the devices that have it.

    `Device` is the devices' own memory, `Host` the host's ("pinned_host"), and `Any` leaves an array where it is.

    >>> import functorch_like as ft
    >>> x = ft.device_put(ft.numpy.ones(2), ft.sharding.MemorySpace.Host)
    >>> x.sharding.memory_kind
    'pinned_host'
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    @property
    def kind(self) -> str | None:
        """The name of the kind of memory; None for `Any`."""
        return {"Device": "device", "Host": "pinned_host"}.get(self.name)
