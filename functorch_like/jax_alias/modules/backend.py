"""`jax.extend.backend`: platforms and their devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import functorch_like as ft
from functorch_like import caches
from functorch_like.backends.xla import JaxRuntimeError, client, compile_options
from functorch_like.backends.xla import PjitFunction as PjitFunction
from functorch_like.backends.xla.client import started

XlaRuntimeError = JaxRuntimeError  # its earlier name


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


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA that a platform's plugin states; None for platforms of jaxlib itself."""
    device: Any = ft.devices(platform)[0]
    return getattr(device.client, "xla_version", None)


def get_default_device() -> Any:
    """Return the device on which computations run that no argument places."""
    return client.default_device()


def get_compile_options(
    num_replicas: int, num_partitions: int, device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None, fdo_profile: bytes | None = None,
    detailed_logging: bool = True, backend: Any = None,
) -> Any:  # fmt: skip
    """Return compile options of jaxlib, for a client of jaxlib (`jax.devices()[0].client`).

    Args:
        num_replicas, num_partitions: the number of devices is their product.
        device_assignment: numbers of the devices, one row for each replica; by default the client's first devices.
        env_options_overrides: options of XLA by name.
        fdo_profile: profile for XLA's optimisations.
        detailed_logging: False to leave out details of the program from XLA's logs.
        backend: has no effect.

    Returns:
        The `CompileOptions`.
    """
    return compile_options.plain(
        num_replicas, num_partitions, device_assignment, env_options_overrides or {}, fdo_profile, detailed_logging
    )


def clear_in_memory_compilation_cache() -> None:
    """Drop the compiled programs of this process, and its traces; those on disk stay."""
    ft.clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Let `jax.clear_caches` and `clear_backends` call a cache's `cache_clear()`, too.

    Args:
        cache: function with `functools.lru_cache`, or an object with `cache_clear`.
        for_what: purpose of the cache, for its reader.
    """
    caches.cleared(cache)


default_backend, device_count, devices = ft.default_backend, ft.device_count, ft.devices
local_devices, process_count, process_index = ft.local_devices, ft.process_count, ft.process_index
