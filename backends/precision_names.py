"""Names for the precision of products: those of StableHLO, of JAX and of PyTorch, and the meaning of each.

A primitive's parameter `precision` is one of PRECISIONS, the name of an algorithm, a pair of precisions, None, or an
`Fp32`. The last one holds the settings in force when the primitive was applied.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

#: Formats for operands of float32. On NVIDIA's GPUs XLA takes "default" to allow TF32, "high" to allow it to
#: cuBLAS but not to its own kernels, and "highest" to forbid it.
PRECISIONS = ("default", "high", "highest")
#: Other names in common use.
SYNONYMS = {
    "fastest": "default",
    "bfloat16": "default",
    "tensorfloat32": "high",
    "bfloat16_3x": "high",
    "float32": "highest",
}


class Algorithm(NamedTuple):
    """A dot algorithm of StableHLO: the dtype operands are rounded to, and the number of products summed."""

    operands: str
    products: int = 1

    @property
    def sums(self) -> str:
        """The type that sums are kept in."""
        return "f64" if self.operands == "f64" else "f32"


#: The algorithms that XLA has kernels for. X3 splits each operand into a sum of two rounded values, and computes the
#: three largest of their four products. X6 and X9 split it into three, and compute six or all nine products.
ALGORITHMS: dict[str, Algorithm] = {
    "F16_F16_F32": Algorithm("f16"),
    "BF16_BF16_F32": Algorithm("bf16"),
    "BF16_BF16_F32_X3": Algorithm("bf16", 3),
    "BF16_BF16_F32_X6": Algorithm("bf16", 6),
    "BF16_BF16_F32_X9": Algorithm("bf16", 9),
    "TF32_TF32_F32": Algorithm("tf32"),
    "TF32_TF32_F32_X3": Algorithm("tf32", 3),
    "F32_F32_F32": Algorithm("f32"),
    "F64_F64_F64": Algorithm("f64"),
}

#: PyTorch's names for `fp32_precision`, and more of their kind.
FP32 = {
    "ieee": "highest",
    "tf32": "default",
    "bf16": "BF16_BF16_F32",
    "bf16x3": "BF16_BF16_F32_X3",
    "bf16x6": "BF16_BF16_F32_X6",
    "bf16x9": "BF16_BF16_F32_X9",
}
#: Precision of convolutions in place of an algorithm, which they cannot have: the nearest that is not less exact.
_OF_CONVOLUTIONS: dict[str, str] = dict.fromkeys(("BF16_BF16_F32", "F16_F16_F32", "TF32_TF32_F32"), "default")


@dataclasses.dataclass(frozen=True)
class Fp32:
    """Precision of products of float32 for each platform, as set when an operation was traced."""

    gpu: str
    cpu: str


def canonical(precision: Any) -> Any:
    """Return the canonical name of a precision or algorithm; any other value is returned unchanged."""
    if isinstance(precision, (list, tuple)) and not hasattr(precision, "value"):  # else an enum's member
        return tuple(canonical(p) for p in precision)
    if not isinstance(precision, str):
        return getattr(precision, "value", precision)
    name = str(getattr(precision, "value", precision))  # an enum of strings
    return name.upper() if name.upper() in ALGORITHMS else SYNONYMS.get(name.lower(), name.lower())


def in_convolutions(name: str) -> str:
    """Return the precision that a convolution uses for a precision or algorithm."""
    return name if name in PRECISIONS else _OF_CONVOLUTIONS.get(name, "highest")
