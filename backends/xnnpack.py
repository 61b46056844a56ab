"""XNNPACK, a library of CPU kernels; YNNPACK (`backends.ynn`) takes its place."""

from __future__ import annotations

from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.libraries import Library
from functorch_like.backends.validators import boolean
from functorch_like.backends.xla import probe

_ON = {"xla_cpu_use_xnnpack": True}


class _Settings(Module, name="xnnpack"):
    enabled = Library(
        False,
        boolean,
        "Whether XLA may hand products to XNNPACK. Nothing was seen to become faster.",
        changes="compile option xla_cpu_use_xnnpack",
        options=lambda on, platform: _ON if on else {},
        needs=_ON,
        library="XNNPACK",
    )


enabled: bool


def is_available() -> bool:
    """Return True if this jaxlib's XLA came with XNNPACK.

    >>> from functorch_like import backends
    >>> isinstance(backends.xnnpack.is_available(), bool)
    True
    """
    return probe.accepts(_ON)


flags: Block
adopt(__name__, _Settings)
