"""YNNPACK, the library of CPU kernels (successor of XNNPACK) to which XLA hands the operations its options select."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.libraries import Library
from functorch_like.backends.validators import Kind
from functorch_like.backends.xla import option_sets, probe

_KINDS = ("reduce", "dot", "individual_dot", "individual_convolution", "eltwise")


def _check(value: Any) -> tuple[str, ...] | None:
    if value is None or value == "auto":
        return None
    kinds = [v.strip() for v in value.split(",") if v.strip()] if isinstance(value, str) else list(value)
    if kinds == ["none"]:
        kinds = []
    if not set(kinds) <= set(_KINDS):
        raise ValueError
    return tuple(k for k in _KINDS if k in kinds)


def _options(kinds: tuple[str, ...] | None, platform: str) -> dict[str, Any]:
    return {} if kinds is None else option_sets.ynn(*(k.upper() for k in kinds))


class _Settings(Module, name="ynn"):
    fusions = Library(
        None,
        Kind(f"'auto', 'none', or some of {', '.join(map(repr, _KINDS))}", _check, names=("auto", "none", *_KINDS)),
        "Operations that XLA hands to YNNPACK; 'auto' (None): by a rule on what the program contains.\n\n"
        "'dot', 'reduce': products and reductions that elementwise operations surround. 'individual_dot', "
        "'individual_convolution': those that stand alone. 'eltwise': chains of elementwise operations. For a program "
        "as a whole the choice is worth a factor of two or three either way; jit(mode='max-autotune') measures.",
        changes="compile option xla_cpu_experimental_ynn_fusion_type",
        options=_options,
        needs=option_sets.PLAIN,
        library="YNNPACK",
    )


fusions: tuple[str, ...] | None


def is_available() -> bool:
    """Return True if this jaxlib's XLA came with YNNPACK.

    >>> from functorch_like import backends
    >>> isinstance(backends.ynn.is_available(), bool)
    True
    """
    return probe.accepts(option_sets.PLAIN)


flags: Block
adopt(__name__, _Settings)
