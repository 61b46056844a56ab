"""cuDNN's kernels for attention, through custom calls that XLA:GPU makes graphs of cuDNN of.

The names of the calls and the fields of their configurations are XLA's (`xla/service/gpu/backend_configs.proto`).

TRAP: XLA reads layouts by position. Operands are [B, T, N, H] row by row. Results are [B, N, T, H] in the layout of the
former, so that the transpose which follows costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray

_TYPES = {"bfloat16": "BF16", "float16": "F16"}
#: Features of a head. On cards from Hopper on, 256.
MOST_FEATURES = 128
_OUT = (3, 1, 2, 0)  # from the dimension that varies fastest
# Contracted and batch dimensions: of logits and results; of the gradients' four products.
_FORWARD = {
    "bmm1": ((3, 3), ((0, 2), (0, 2))),
    "bmm2": ((3, 1), ((0, 1), (0, 2))),
}
_BACKWARD = {
    "bmm1_grad_gemm1": ((2, 1), ((0, 1), (0, 2))),
    "bmm1_grad_gemm2": ((3, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm1": ((2, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm2": ((3, 3), ((0, 2), (0, 2))),
}


def unfit(query: ShapedArray, key: ShapedArray, value: ShapedArray) -> str:
    """Return the reason why cuDNN has no kernel for query, key and value; "" if it has one."""
    if query.dtype.name not in _TYPES:
        return f"it takes bfloat16 and float16, not {query.dtype}"
    features = query.shape[3]
    if features % 8 or features > MOST_FEATURES or value.shape[3] != features:
        return f"it takes heads of 8, 16, ... {MOST_FEATURES} features, as many for values, not {features}"
    return "" if query.size and key.size else "an array is empty"


def fits(query: ShapedArray, key: ShapedArray, value: ShapedArray) -> bool:
    """Return True if cuDNN has a kernel for query [B, T, N, H], key and value [B, S, K, H]."""
    return not unfit(query, key, value)


def forward(e: Any, operands: Sequence[Any], *, scale: float, causal: bool) -> list[Any]:
    """Emit a call of the kernel; return the result [B, T, N, H], and the logarithms of the sums [B, N, T]."""
    query, key, _ = e.ins
    out, stats = e.outs
    made = _turned(out)
    config = _config(query, key, scale, causal, _FORWARD)
    result, sums = _call(e, "__cudnn$fmhaSoftmax", operands, [(made, _OUT), (stats, (2, 1, 0))], config)
    return [_back(e, result, out), sums]


def backward(e: Any, operands: Sequence[Any], *, scale: float, causal: bool) -> list[Any]:
    """Emit a call of the derivative's kernel; return the gradients by query, key and value."""
    query, key, value, out, stats, ct = operands
    config = _config(e.ins[0], e.ins[1], scale, causal, _BACKWARD)
    results = [(_turned(aval), _OUT) for aval in e.outs]
    made = _call(e, "__cudnn$fmhaSoftmaxBackward", [query, key, value, stats, ct, out], results, config)
    return [_back(e, x, aval) for x, aval in zip(made, e.outs, strict=True)]


def _turned(aval: ShapedArray) -> ShapedArray:
    b, t, n, h = aval.shape
    return aval.update(shape=(b, n, t, h))


def _back(e: Any, x: Any, aval: ShapedArray) -> Any:
    return e.op("stablehlo.transpose", [x], [aval], {"permutation": e.i64s((0, 2, 1, 3))})


def _call(
    e: Any, target: str, operands: Sequence[Any], results: Sequence[tuple[ShapedArray, Sequence[int]]], config: str
) -> list[Any]:
    workspace = ShapedArray((0,), np.uint8)
    avals = [*(aval for aval, _ in results), workspace]
    fields = {
        "call_target_name": e.string(target),
        "api_version": e.i32(2),
        "backend_config": e.string(config),
        "has_side_effect": e.flag(False),
        **e.row_major(operands, avals),
        "result_layouts": e.layouts([*(order for _, order in results), (0,)]),
    }
    return list(e.op("stablehlo.custom_call", list(operands), avals, fields))[:-1]


def _config(query: ShapedArray, key: ShapedArray, scale: float, causal: bool, products: Any) -> str:
    b, t, n, _ = query.shape
    text = lambda numbers: [str(number) for number in numbers]
    fields = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": scale,
        "intermediate_tensor_shape": {
            "element_type": _TYPES[query.dtype.name],
            "dimensions": text((b, n, t, key.shape[1])),
            "tuple_shapes": [],
            "layout": {"minor_to_major": text((3, 2, 1, 0))},
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": "CAUSAL" if causal else "NO_MASK",
        "dropout_rate": 0.0,
        "seed": 0,
        "sliding_window_length": 0,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
    }
    for name, (contract, batch) in products.items():
        fields[f"{name}_dot_dimension_numbers"] = {
            "lhs_contracting_dimensions": text(contract[:1]),
            "rhs_contracting_dimensions": text(contract[1:]),
            "lhs_batch_dimensions": text(batch[0]),
            "rhs_batch_dimensions": text(batch[1]),
        }
    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": fields})
