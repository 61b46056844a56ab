"""Precision of products of float32: TF32, bfloat16 and others.

By default products and convolutions of float32 are full float32 on every platform. JAX and PyTorch have other
defaults: JAX lets GPUs use TF32, and TPUs bfloat16, unless `jax_default_matmul_precision` is "highest". PyTorch lets
convolutions on GPUs use TF32, but not products.

The argument of one call (`precision=`) wins; then `default_matmul_precision`; then the setting for the platform and
operation, such as `cuda.matmul.fp32_precision`; then `fp32_precision`. All are about float32 operands, and complex64
where that has a meaning. They are read when an operation is traced. So a block inside of a jitted function holds for
the operations in it, and for those of their derivatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.backends import cuda, cudnn, mkldnn
from functorch_like.backends.cpu import has_bfloat16
from functorch_like.backends.flag_blocks import Flags, Module
from functorch_like.backends.precision_names import (
    ALGORITHMS,
    FP32,
    PRECISIONS,
    SYNONYMS,
    Fp32,
    canonical,
    in_convolutions,
)
from functorch_like.backends.settings import NOTHING_SET, Setting, in_force
from functorch_like.backends.validators import Kind, one_of
from functorch_like.errors import ArgumentError

if TYPE_CHECKING:
    from functorch_like.typing import PrecisionLike


_NAMES = (*PRECISIONS, *SYNONYMS, *(name for name in ALGORITHMS if name != "F64_F64_F64"))


def _check(value: Any) -> str | None:
    name = canonical(value)
    if name is not None and (name not in _NAMES or isinstance(name, tuple)):
        raise ValueError
    return name


class Precision(Module):
    """Settings that are attributes of `backends` itself."""

    fp32_precision = mkldnn.Bfloat16(
        "ieee",
        one_of(*FP32),
        "Precision of float32 products and convolutions, where no setting of a platform says otherwise.\n\n"
        "'ieee': float32. 'tf32', 'bf16', 'bf16x3', ...: see `cuda.matmul.fp32_precision`. Convolutions have no "
        "bfloat16 forms, and use the next more exact one. On CPUs 'bf16' alone changes anything.",
        changes="StableHLO: precision_config and algorithm",
    )
    default_matmul_precision = Setting[Any](
        None,
        Kind(
            "None, " + ", ".join(map(repr, _NAMES)),
            _check,
            lambda text: None if text.lower() == "none" else _check(text),
            _NAMES,
        ),
        "Precision of float32 products and convolutions on every platform, by JAX's names.\n\n"
        "'default': whatever is fastest (TF32 on GPUs). 'high': TF32 at least. 'highest': float32. Or a dot "
        "algorithm, such as 'BF16_BF16_F32_X3'. None: the other settings decide.",
        changes="StableHLO: precision_config and algorithm",
    )


def of_products() -> Fp32 | None:
    """Return the precision of products under the settings in force; None is full float32."""
    values = in_force()
    return None if values is NOTHING_SET else values.derive(_products)


def of_convolutions() -> Fp32 | None:
    """Return the precision of convolutions under the settings in force; None is full float32."""
    values = in_force()
    return None if values is NOTHING_SET else values.derive(_convolutions)


def _products() -> Fp32 | None:
    named = Precision.default_matmul_precision.value
    if named is not None:
        return Fp32(named, named)
    gpu, cpu = _in_force(cuda.Matmul.fp32_precision), _in_force(mkldnn.Matmul.fp32_precision)
    # No processor has units for TF32, and sums of bfloat16 products would be slower than float32 and less exact.
    return _unless_full(Fp32(FP32[gpu], FP32["bf16"] if cpu == "bf16" and has_bfloat16() else FP32["ieee"]))


def _convolutions() -> Fp32 | None:
    named = Precision.default_matmul_precision.value
    gpu = FP32[_in_force(cudnn.Conv.fp32_precision)] if named is None else named
    return _unless_full(Fp32(in_convolutions(gpu), "highest" if named is None else in_convolutions(named)))


def _in_force(setting: Setting[str]) -> str:
    return Precision.fp32_precision.value if setting.value == "none" else setting.value


def _unless_full(precision: Fp32) -> Fp32 | None:
    return None if precision == Fp32("highest", "highest") else precision


# ------------------------------------------------------------------------------------------------------------ functions
def default_matmul_precision(precision: PrecisionLike) -> Flags:
    """Return a block, or decorator, that sets the precision of float32 products and convolutions in this thread.

    To set it everywhere, assign `backends.default_matmul_precision`.

    Args:
        precision: "default", "high" or "highest"; "bfloat16", "tensorfloat32" or "float32", which are the same three;
            the name of a dot algorithm, such as "BF16_BF16_F32_X3"; or None for the other settings.

    Returns:
        A context manager, and a decorator.

    Raises:
        ArgumentError: for another name.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> with ft.default_matmul_precision("tensorfloat32"):
    ...     y = fnp.ones((2, 3)) @ fnp.ones((3, 2))
    """
    return Flags(Precision.default_matmul_precision.changes_of(precision))


#: PyTorch's three names, as `cuda.matmul.fp32_precision` and `mkldnn.matmul.fp32_precision`.
_LEVELS = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of products of float32 matrices, in every thread.

    Args:
        precision: "highest": float32. "high": TF32 on GPUs. "medium": the same, and bfloat16 on CPUs with units for it.

    Raises:
        ArgumentError: for another name.

    >>> import functorch_like as ft
    >>> ft.set_float32_matmul_precision("high"); ft.backends.cuda.matmul.allow_tf32
    True
    >>> ft.set_float32_matmul_precision("highest"); ft.get_float32_matmul_precision()
    'highest'
    """
    if precision not in _LEVELS:
        raise ArgumentError(
            f"{precision!r} is not a precision of float32 products", fix="use 'highest', 'high' or 'medium'"
        )
    cuda.matmul.fp32_precision, mkldnn.matmul.fp32_precision = _LEVELS[precision]


def get_float32_matmul_precision() -> str:
    """Return the argument of `set_float32_matmul_precision` that gives the present settings.

    Returns:
        The name of a precision.

    Raises:
        ArgumentError: where settings were changed one by one, so that none of the three names fits.

    >>> import functorch_like as ft
    >>> ft.get_float32_matmul_precision()
    'highest'
    """
    now = _in_force(cuda.Matmul.fp32_precision), _in_force(mkldnn.Matmul.fp32_precision)
    for name, both in _LEVELS.items():
        if now == both:
            return name
    raise ArgumentError(
        f"no name stands for {now[0]!r} on GPUs and {now[1]!r} on CPUs",
        fix="read backends.cuda.matmul.fp32_precision and backends.mkldnn.matmul.fp32_precision",
    )
