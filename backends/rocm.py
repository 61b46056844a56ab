"""AMD's GPUs."""

from __future__ import annotations

from functorch_like.backends import plugins


def is_built() -> bool:
    """Return True if a plugin for AMD's GPUs is installed.

    >>> from functorch_like import backends
    >>> isinstance(backends.rocm.is_built(), bool)
    True
    """
    return plugins.names("rocm")


def is_available() -> bool:
    """Return False: this package does not start plugins for AMD's GPUs; none has been tested.

    >>> from functorch_like import backends
    >>> backends.rocm.is_available()
    False
    """
    return False
