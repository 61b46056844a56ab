"""oneDNN (once MKL-DNN), a library of CPU kernels in XLA, and the precision of products on CPUs."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.cpu import has_bfloat16
from functorch_like.backends.flag_blocks import Block, Group, Module, adopt
from functorch_like.backends.libraries import Library
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import Kind, one_of, parse_boolean
from functorch_like.backends.xla import option_sets, probe


class Bfloat16(Setting[str]):
    """A precision that has an effect on CPUs where the processor has units for it."""

    def effect(self, platform: str) -> str:
        if platform == "cpu" and not has_bfloat16():
            return "this processor has no units for bfloat16, so products stay float32"
        return super().effect(platform)


class Matmul(Group, name="mkldnn.matmul"):
    """Products of matrices on CPUs: `backends.mkldnn.matmul`."""

    __slots__ = ()

    fp32_precision = Bfloat16(
        "none",
        one_of("none", "ieee", "tf32", "bf16"),
        "Precision of products of float32 matrices on CPUs.\n\n"
        "'ieee': float32. 'bf16': operands rounded to 7 bits of mantissa, where the processor has units for that; "
        "elsewhere, and for 'tf32', which no processor has units for, float32. 'none': as `backends.fp32_precision`.",
        changes="StableHLO: operands of dot_general are rounded",
        elsewhere={"gpu": "it is about CPUs; backends.cuda.matmul.fp32_precision acts on GPUs"},
    )


matmul = Matmul()


def _check(value: Any) -> bool | None:
    if value is None or type(value) is bool:
        return value
    if not isinstance(value, str):
        raise TypeError
    return None if value.strip().lower() == "auto" else parse_boolean(value)


def _options(enabled: bool | None, platform: str) -> dict[str, Any]:
    return {} if enabled is None else option_sets.ONEDNN if enabled else {"xla_cpu_use_onednn": False}


class _Settings(Module, name="mkldnn"):
    enabled = Library(
        None,
        Kind("True, False, or None ('auto')", _check),
        "Whether XLA hands products that stand alone to oneDNN; None: it does not.\n\n"
        "It is bad for small products inside of loops. jaxlib 0.10 calls it wrongly for products of many matrices at "
        "once: programs that have these are compiled without it.",
        changes="compile options xla_cpu_use_onednn, xla_cpu_experimental_onednn_fusion_type",
        options=_options,
        needs=option_sets.ONEDNN,
        library="oneDNN",
    )


enabled: bool | None


def is_available() -> bool:
    """Return True if this jaxlib's XLA came with oneDNN.

    >>> from functorch_like import backends
    >>> isinstance(backends.mkldnn.is_available(), bool)
    True
    """
    return probe.accepts(option_sets.ONEDNN)


def fusions() -> tuple[str, ...]:
    """Return the names of XLA's kinds of fusions that oneDNN gets where it is used.

    >>> from functorch_like import backends
    >>> backends.mkldnn.fusions()
    ('INDIVIDUAL_DOT',)
    """
    kinds = option_sets.ONEDNN["xla_cpu_experimental_onednn_fusion_type"]
    return tuple(kind.removeprefix("LIBRARY_FUSION_TYPE_") for kind in kinds.split(","))


flags: Block
adopt(__name__, _Settings)
