"""Rules of reads and updates at positions."""

from __future__ import annotations

from functorch_like.explicit_axes.case import Axes, Case, Names, text

_FIX = "reshard the array before; or read by x.at[...].get(out_sharding=P(...)) under JAX's names"


def _gather(case: Case) -> Axes:
    n, sizes = case.params["dimension_numbers"], case.params["slice_sizes"]
    operand, indices = case.avals[:2]
    axes, places = case.axes[:2]
    for d in range(operand.ndim):
        if axes[d] and sizes[d] != operand.shape[d] and d not in n.operand_batching_dims:
            case.doubt(f"positions along dimension {d}, which is split by {text(axes[d])}, may be on any device", _FIX)
    inside = iter([axes[d] if sizes[d] == operand.shape[d] else () for d in n.offset_operand_dims(operand.ndim)])
    batch: list[Names] = list(places[:-1]) if indices.ndim else []
    for d, b in zip(n.operand_batching_dims, n.start_indices_batching_dims, strict=True):
        batch[b] = case.merged((axes[d], places[b]), "a batch dimension")
    outside = iter(batch)
    return tuple(next(inside) if d in n.offset_dims else next(outside) for d in range(case.outs[0].ndim))


def _scatter(case: Case) -> Axes:
    n, operand = case.params["dimension_numbers"], case.avals[0]
    sizes = n.sizes(operand, case.avals[2])
    for d in range(operand.ndim):
        if case.axes[0][d] and sizes[d] != operand.shape[d] and d not in n.operand_batching_dims:
            case.doubt(
                f"positions along dimension {d}, which is split by {text(case.axes[0][d])}, may be on any device",
                "reshard the array before, or update it by auto_axes(f, out_sharding=P(...))",
            )
    return case.axes[0]


def _dynamic_update_slice(case: Case) -> Axes:
    """Split the result as the operand; the update is brought to it."""
    return case.axes[0]


RULES = {
    "gather": _gather,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter_apply"), _scatter),
    "dynamic_update_slice": _dynamic_update_slice,
}
