"""`jax.extend.backend`: platforms and their devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import functorch_like as ft
from functorch_like.backends.xla.client import started


class _Started(Mapping[str, Any]):
    """Platforms by name, as `jax._src.xla_bridge` keeps them: none before a device was used."""

    def _now(self) -> dict[str, Any]:
        return backends() if started() else {}

    def __getitem__(self, platform: str) -> Any:
        return self._now()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


_backends = _Started()


class Backend:
    """A platform and its devices."""

    def __init__(self, platform: str | None = None) -> None:
        self.platform = platform or ft.default_backend()
        self.platform_version = self.platform

    def devices(self) -> list[Any]:
        """Return all devices."""
        return ft.devices(self.platform)

    def local_devices(self) -> list[Any]:
        """Return the devices of this process."""
        return ft.local_devices(self.platform)

    def device_count(self) -> int:
        """Return the number of devices."""
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """Return the index of this process."""
        return ft.process_index()

    def live_arrays(self) -> list[Any]:
        """Return the arrays that are alive."""
        return list(ft.live_arrays())


def get_backend(platform: str | None = None) -> Backend:
    """Return a platform; the default one if none is named."""
    return Backend(platform)


def backends() -> dict[str, Backend]:
    """Return all platforms by name."""
    return {ft.default_backend(): Backend()}


def clear_backends() -> None:
    """Clear the caches of compiled programs."""
    ft.clear_caches()


def wait_for_tokens() -> None:
    """Wait for callbacks to finish."""
    ft.effects_barrier()


default_backend, device_count, devices = ft.default_backend, ft.device_count, ft.devices
local_devices, process_count, process_index = ft.local_devices, ft.process_count, ft.process_index
