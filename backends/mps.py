"""Apple's GPUs."""

from __future__ import annotations

from functorch_like.backends import plugins


def is_built() -> bool:
    """Return True if a plugin for Apple's GPUs is installed.

    >>> from functorch_like import backends
    >>> isinstance(backends.mps.is_built(), bool)
    True
    """
    return plugins.names("metal", "mps")


def is_available() -> bool:
    """Return False: this package does not start plugins for Apple's GPUs; none has been tested.

    >>> from functorch_like import backends
    >>> backends.mps.is_available()
    False
    """
    return False
