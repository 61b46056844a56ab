"""Elementwise primitives: `elementwise.mul(x, y)`. Each is imported at its first use.

Operands have the same shape, and the dtypes that the primitive takes: primitives neither broadcast nor promote.
"""

from __future__ import annotations

from functorch_like.primitives import families as _families

_NAMES = {name for name, family in _families.HOME.items() if family.startswith("elementwise.")} | {"add"}
__getattr__, __dir__ = _families.attach(globals(), _NAMES)
