"""ffi_call: a kernel of the user's own, called by name through XLA's typed FFI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import foreign
from functorch_like.core import BatchAxis, NotDefined, Primitive, aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.primitives import structural

#: Ways of `vmap` with a call.
METHODS = (None, "sequential", "sequential_unrolled", "broadcast_all", "expand_dims")


def _lower(e: Any, *operands: Any, target: str, attributes: tuple[tuple[str, str], ...], **_: Any) -> Any:
    foreign.check(target, e.platform)
    config = ", ".join(f'"{name}" = {text}' for name, text in attributes)
    attrs = {
        "call_target_name": e.string(target),
        "api_version": e.i32(4),
        "backend_config": e.attr("{" + config + "}"),
        "has_side_effect": e.flag(False),
        **e.row_major(operands, e.outs),
    }
    out = e.op("stablehlo.custom_call", operands, e.outs, attrs=attrs)
    return [out] if len(e.outs) == 1 else out


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, target: str, results: tuple[ShapedArray, ...],
    attributes: Any, vmap_method: str | None,
) -> Any:  # fmt: skip
    again = {"target": target, "attributes": attributes, "vmap_method": vmap_method}
    if vmap_method is None:
        raise UnsupportedError(
            f"vmap of a call of {target!r} is undefined, because it has no vmap_method",
            fix='pass vmap_method="sequential" (a call per element), or "broadcast_all" or "expand_dims" where the '
            "kernel takes leading dimensions",
        )
    leading = [a if d is None else structural.move(a, d, 0) for a, d in zip(args, dims, strict=True)]
    if vmap_method.startswith("sequential"):
        each = [
            ffi_call(
                *[a if d is None else _element(a, k) for a, d in zip(leading, dims, strict=True)],
                results=results,
                **again,
            )
            for k in range(axis.size)
        ]
        columns = [[structural.widen(x, 1) for x in column] for column in zip(*each, strict=True)]
        stacked = [structural.concatenate(*column, dimension=0) for column in columns]
        return stacked or [structural.zeros(_widened(r, 0)) for r in results], [0] * len(results)
    size = axis.size if vmap_method == "broadcast_all" else 1
    whole = [structural.widen(a, size) if d is None else a for a, d in zip(leading, dims, strict=True)]
    out = ffi_call(*whole, results=tuple(_widened(r, axis.size) for r in results), **again)
    return out, [0] * len(results)


def _widened(aval: ShapedArray, size: int) -> ShapedArray:
    return aval.update(shape=(size, *aval.shape))


def _element(x: Any, k: int) -> Any:
    shape = aval_of(x).shape
    start, end = (k, *(0 for _ in shape[1:])), (k + 1, *shape[1:])
    return structural.reshape(
        structural.slice(x, start_indices=start, limit_indices=end, strides=None), shape=shape[1:]
    )


_NO_DERIVATIVE = NotDefined(
    "the derivative of foreign code is not known; "
    "give it one by wrapping the call in custom_jvp or custom_vjp, or take it for a constant with lax.stop_gradient"
)

#: `results` are the avals of the results; `attributes` pairs of names and MLIR text.
ffi_call = Primitive(
    "ffi_call",
    shape=lambda *xs, results, **params: results,
    ref=NotDefined("the meaning is in compiled code; tests/extend/test_ffi.py has an example"),
    lower=_lower,
    jvp=_NO_DERIVATIVE,
    transpose=_NO_DERIVATIVE,
    batch=_batch,
    samples=list,
    multiple_results=True,
)
