"""PJRT plugins, by which XLA works with devices of other makers, found by their entry points."""

from __future__ import annotations


def installed() -> dict[str, str]:
    """Return the installed plugins, by name: the package of each and its version.

    Of these the one for CUDA is used (`backends.cuda`). Others are listed, and not started: they are untested with
    this package.

    >>> from functorch_like import backends
    >>> isinstance(backends.plugins.installed(), dict)
    True
    """
    from importlib import metadata  # 10 ms

    plugins: dict[str, str] = {}
    for entry in metadata.entry_points(group="jax_plugins"):
        package = entry.dist
        plugins[entry.name] = f"{package.name} {package.version}" if package is not None else entry.value
    return plugins


def names(*parts: str) -> bool:
    """Return True if a plugin whose name contains one of these is installed."""
    return any(part in name.lower() for name in installed() for part in parts)
