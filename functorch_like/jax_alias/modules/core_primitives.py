"""`jax.extend.core.primitives`: `add_p` and the like, each the primitive of that name."""

from __future__ import annotations

from typing import Any

from functorch_like.core import TABLE
from functorch_like.jax_alias.modules.programs import primitive_of
from functorch_like.primitives import load

#: JAX's names of primitives that have another name here.
_RENAMED = {"add_jaxvals": "add", "closed_call": "call", "jit": "call", "remat": "checkpoint"}


def __getattr__(name: str) -> Any:
    if not name.endswith("_p") or name.startswith("_"):
        raise AttributeError(name)
    load()
    primitive = TABLE.get(_RENAMED.get(name[:-2], name[:-2]))
    if primitive is not None:
        return primitive_of(primitive)
    from functorch_like.jax_alias.modules.composed_primitives import PRIMITIVES  # late: few programs read them

    if name[:-2] not in PRIMITIVES:
        raise AttributeError(name)
    return PRIMITIVES[name[:-2]]
