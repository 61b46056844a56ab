"""Linear algebra on NVIDIA's GPUs: cuSOLVER and cuSPARSE, through the custom calls of jaxlib's CUDA plugin.

Nonsymmetric eigenvalues and pivoted QR are computed on the host, by MAGMA if it is there and else by LAPACK: jaxlib
calls these kernels hybrid. Names, operands and attributes are those of jaxlib 0.10 to 0.12.

Tests read the emitted module, and compare results where there is a GPU (pytest's marker `gpu`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.matrix_calls import matrix_call

_TARGETS = {
    **{
        name: f"cusolver_{name}_ffi"
        for name in ("potrf", "getrf", "geqrf", "orgqr", "syevd", "sytrd", "gesvd", "gesvdj")
    },
    "gtsv": "cusparse_gtsv2_ffi",
}
_HYBRID = {"geev": ("cuhybrid_eig_real", "cuhybrid_eig_comp"), "geqp3": ("cuhybrid_geqp3",) * 2}


def has(routine: str) -> bool:
    """Return True if there is a kernel."""
    return routine in _TARGETS or routine in _HYBRID


def call(
    e: Any,
    routine: str,
    operands: Sequence[Any],
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    *,
    lead: int,
    attrs: Mapping[str, bool | int | str] | None = None,
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Any]:
    """Emit a call of a routine for each matrix of a stack.

    Args:
        routine: by LAPACK's name for real numbers.
        attrs: booleans, bytes, or strings.
        e, operands, in_avals, out_avals, lead, aliases: as for `matrix_call`.
    """
    if routine in _HYBRID:
        ensure_hybrid()
        target, attrs = _HYBRID[routine][in_avals[0].dtype.kind == "c"], {"magma": "auto", **(attrs or {})}
    else:
        target = _TARGETS[routine]
    texts = {key: _text(value) for key, value in (attrs or {}).items()}
    return matrix_call(e, target, operands, in_avals, out_avals, lead=lead, attrs=texts, aliases=aliases)


def permutation(e: Any, pivots: Any, aval: ShapedArray, out: ShapedArray) -> Any:
    """Emit a call of the kernel that makes an order of rows of the pivots that `getrf` returns, counted from 0."""
    lead = aval.ndim - 1
    (order,) = matrix_call(e, "cu_lu_pivots_to_permutation", [pivots], [aval], [out], lead=lead, attrs={})
    return order


def _text(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value} : ui8"


def ensure_hybrid() -> None:
    """Hand SciPy's LAPACK to the kernels that run on the host, where the plugin is there."""
    from jaxlib import plugin_support

    module = plugin_support.import_from_plugin("cuda", "_hybrid")
    if module is not None:
        module.initialize()
