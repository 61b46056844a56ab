"""The table of primitives, families by file. `python -m functorch_like.primitives` prints it.

A family is imported at the first use of one of its primitives.

>>> from functorch_like import primitives
>>> primitives.sin, primitives.sin.family
(sin, 'transcendental')
"""

from __future__ import annotations

import importlib as _importlib

from functorch_like.primitives import families as _families

__getattr__, __dir__ = _families.attach(globals(), _families.HOME, extra=["load"])


def load() -> None:
    """Import every family, the higher-order ones too, so that the table of primitives is complete."""
    import pkgutil

    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not module.name.endswith("__main__"):
            _importlib.import_module(module.name)
