"""Complex numbers taken apart and put together.

A cotangent w stands for the linear form t -> Re(w t), so transposes conjugate nothing: that of `real` makes ct + 0i,
that of `imag` makes 0 - i ct.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import SampleInput, UndefinedPrimal, aval_of
from functorch_like.errors import DtypeError
from functorch_like.primitives.base.elementwise_makers import elementwise_primitive, neg, same, samples_of, unary
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.formulas.complex import by_parts

real = unary(
    "real", np.real, "real", lambda g, x, y: real(g), takes="c", gives=dtypes.real_part,
    transpose=lambda ct: complex(ct, zeros(aval_of(ct))),
    linear="jointly", fusible=True,
)  # fmt: skip
imag = unary(
    "imag", np.imag, "imag", lambda g, x, y: imag(g), takes="c", gives=dtypes.real_part,
    transpose=lambda ct: complex(zeros(aval_of(ct)), neg(ct)),
    linear="jointly", fusible=True,
)  # fmt: skip


conj = unary(
    "conj", np.conj, by_parts(lambda re, im: (re, -im), ""), lambda g, x, y: conj(g), takes="c",
    transpose=lambda ct: conj(ct),
    linear="jointly", fusible=True,
)  # fmt: skip


def _complex_ref(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    out = np.empty(re.shape, dtypes.complex_of(re.dtype))
    out.real, out.imag = re, im
    return out


def _complex_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return complex(*primals), complex(
        *[zeros(aval_of(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    )


def _complex_transpose(ct: Any, args: Any) -> list[Any]:
    return [
        real(ct) if isinstance(args[0], UndefinedPrimal) else None,
        neg(imag(ct)) if isinstance(args[1], UndefinedPrimal) else None,
    ]


def _complex_shape(re: Any, im: Any) -> Any:
    out = same("complex", "f", dtypes.complex_of)(re, im)
    if re.dtype.name not in _PARTS:
        raise DtypeError(
            f"complex takes float32 or float64, got {re!r}", fix="convert the operands with astype('float32')"
        )
    return out


#: Dtypes of the parts of complex numbers; there are none of half precision.
_PARTS = ("float32", "float64")


def _complex_samples() -> list[SampleInput]:
    return [s for s in samples_of(2, "f", (-2.0, 2.0), ({},), True) if s.operands[0].dtype.name in _PARTS]


complex = elementwise_primitive(
    "complex", _complex_ref, "complex", count=2, takes="f", jvp=_complex_jvp, transpose=_complex_transpose,
    gives=dtypes.complex_of, shape=_complex_shape, samples=_complex_samples,
    linear="jointly", fusible=True,
)  # fmt: skip
