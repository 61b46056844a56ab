"""Rules of `masking`: the application of each primitive to padded operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functorch_like.core import Primitive, aval_of
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base.shapes import broadcast_in_dim, reduce_sum, reshape, transpose
from functorch_like.primitives.contractions.convolution import conv_general_dilated
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.contractions.fft import fft
from functorch_like.primitives.effects.checkpoint_name import name as checkpoint_name
from functorch_like.primitives.linalg import cholesky_lu, eigen, qr, solve, svd, triangular_solve
from functorch_like.primitives.ordering.order_statistics import order_statistics
from functorch_like.primitives.ordering.sort import sort
from functorch_like.primitives.ordering.top_k import top_k
from functorch_like.primitives.random.threefry import threefry2x32
from functorch_like.primitives.reductions import cumulative, reductions
from functorch_like.primitives.reductions.cumlogsumexp import cumlogsumexp
from functorch_like.primitives.reductions.extremes_without_nan import reduce_fmax, reduce_fmin
from functorch_like.primitives.reductions.makers import highest, lowest
from functorch_like.primitives.reductions.recurrence import recurrence
from functorch_like.primitives.structural.tile_split_barrier import optimization_barrier, split, tile
from functorch_like.primitives.updates.dynamic_slice import dynamic_slice, dynamic_update_slice
from functorch_like.primitives.updates.true_places import true_places
from functorch_like.primitives.windows import reduce_window as windows
from functorch_like.transforms.buckets import rules_of_bodies, rules_of_indexing
from functorch_like.transforms.buckets.masking import Rule, Step
from functorch_like.transforms.buckets.sizes import Extent, Size


def _apply(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Apply the primitive: each place of the results depends on the same place of the operands."""
    return step.apply(xs)


def _along(step: Step, axes: Sequence[int], doing: str) -> None:
    """Refuse an operation along padded axes."""
    if step.moving() & set(axes):
        raise step.refuse(f"{step.e.prim.name} {doing} the rows")


# ------------------------------------------------------------------------------------------------------- reductions
_IDENTITIES: dict[Primitive, Any] = {
    reduce_sum: lambda dtype: 0,
    reductions.reduce_prod: lambda dtype: 1,
    reductions.reduce_max: lowest,
    reductions.reduce_max_number: lowest,
    reductions.reduce_min: highest,
    reduce_fmax: lambda dtype: np.nan,
    reduce_fmin: lambda dtype: np.nan,
    reductions.reduce_and: lambda dtype: True if dtype == np.bool_ else np.invert(np.zeros((), dtype)),
    reductions.reduce_or: lambda dtype: 0,
    reductions.reduce_xor: lambda dtype: 0,
    reductions.argmax: lowest,
    reductions.argmin: highest,
    cumulative.cumsum: lambda dtype: 0,
    cumulative.cumprod: lambda dtype: 1,
    cumulative.cummax: lowest,
    cumulative.cummin: highest,
    cumlogsumexp: lambda dtype: -np.inf,
}


def _reduce(step: Step, xs: Sequence[Any]) -> list[Any]:
    axes = step.params["axes"] if "axes" in step.params else (step.params["axis"],)
    fill = _IDENTITIES[step.e.prim](aval_of(xs[0]).dtype)
    return step.apply([step.mask(xs[0], 0, axes, fill)])


def _recurrence(step: Step, xs: Sequence[Any]) -> list[Any]:
    axes = (step.params["axis"],)
    return step.apply([step.mask(xs[0], 0, axes, 1), step.mask(xs[1], 1, axes, 0)])


def _top_k(step: Step, xs: Sequence[Any]) -> list[Any]:
    dtype = aval_of(xs[0]).dtype
    return step.apply([step.mask(xs[0], 0, [len(step.ins[0]) - 1], lowest(dtype))])


def _sort(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of sorts: the padding has the greatest keys, and comes after elements with equal ones."""
    axis, keys = step.params["dimension"], step.params.get("num_keys", 1)
    if axis not in step.moving():
        return step.apply(xs)
    masked = [step.mask(x, i, [axis], _last(aval_of(x).dtype)) if i < keys else x for i, x in enumerate(xs)]
    return step.apply(masked, is_stable=True)


def _order_statistics(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of order statistics: the padding is behind all elements."""
    x, place = xs
    return step.apply([step.mask(x, 0, [len(step.ins[0]) - 1], _last(aval_of(x).dtype)), place])


def _true_places(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of positions of true elements: the padding is false."""
    return step.apply([step.mask(xs[0], 0, [len(step.ins[0]) - 1], False)])


def _last(dtype: Any) -> Any:
    """The value that is sorted behind all others."""
    if dtype.kind == "c":
        return complex(np.nan, np.nan)
    return highest(dtype) if dtype.kind in "iub" else np.nan


def _dot_general(step: Step, xs: Sequence[Any]) -> list[Any]:
    contracted = step.params["dimension_numbers"][0]
    return step.apply([step.mask(x, i, contracted[i], 0) for i, x in enumerate(xs)])


def _convolution(step: Step, xs: Sequence[Any]) -> list[Any]:
    left, right, _ = step.params["dimension_numbers"]
    if (step.moving(0) & set(left[2:])) | (step.moving(1) & set(right[2:])):
        raise step.refuse("a convolution slides over the rows")
    if max(step.params.get("feature_group_count", 1), step.params.get("batch_group_count", 1)) > 1 and (
        left[1] in step.moving(0) or step.moving(1) or step.params.get("batch_group_count", 1) > 1
    ):
        raise step.refuse("a convolution in groups mixes the rows")
    return step.apply([step.mask(xs[0], 0, [left[1]], 0), step.mask(xs[1], 1, [right[1]], 0)])


# ----------------------------------------------------------------------------------------------------------- moving
def _reshape(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of reshapes: rows may be joined with axes behind them, and split again. Valid elements stay the first."""
    for before, after in _groups(step):
        for axes in (before, after):
            if any(isinstance(s, Size) for s in axes[1:]):
                raise step.refuse(
                    "reshape joins the rows with an axis before them", "move the axis of rows to the front first"
                )
    return step.apply(xs)


def _groups(step: Step) -> Iterator[tuple[list[Extent], list[Extent]]]:
    """Axes of the operand and of the result that a reshape turns into each other, without those of size 1."""
    before = [s for s in step.ins[0] if s != 1]
    after = [s for s in step.outs[0] if s != 1]
    rows = step.masking.compared.rows
    while before or after:
        left, right = before[:1], after[:1]
        before, after = before[1:], after[1:]
        while [_product(left, n) for n in rows] != [_product(right, n) for n in rows]:
            if _product(left, rows[0]) <= _product(right, rows[0]) and before:
                left.append(before.pop(0))
            elif after:
                right.append(after.pop(0))
            elif before:
                left.append(before.pop(0))
            else:
                raise step.refuse("reshape joins the rows with other axes")
        yield left, right


def _product(extents: Sequence[Extent], rows: int) -> int:
    product = 1
    for s in extents:
        product *= s.at(rows) if isinstance(s, Size) else s
    return product


def _slice(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of slices: one whose start depends on the number of rows becomes a dynamic slice."""
    p, q = step.params, step.o.params
    starts = [step.size(a, b) for a, b in zip(p["start_indices"], q["start_indices"], strict=True)]
    if not any(isinstance(s, Size) for s in starts):
        return step.apply(xs)
    if p.get("strides") is not None and set(p["strides"]) != {1}:
        raise step.refuse("a slice with steps begins at a place that depends on their number")
    widths = tuple(b - a for a, b in zip(p["start_indices"], p["limit_indices"], strict=True))
    at = [step.masking.valid(s) for s in starts]
    return [dynamic_slice(xs[0], *at, slice_sizes=widths)]


def _rev(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of reversals: reverse the whole axis, then skip the padding, which is now at the front."""
    out = step.apply(xs)[0]
    for axis in step.params["dimensions"]:
        extent = step.ins[0][axis]
        if isinstance(extent, Size):
            shape = aval_of(out).shape
            skipped = elementwise.sub(np.array(shape[axis], np.int32), step.masking.valid(extent))
            twice = structural.concatenate(out, out, dimension=axis)
            at = [skipped if d == axis else np.array(0, np.int32) for d in range(len(shape))]
            out = dynamic_slice(twice, *at, slice_sizes=shape)
    return [out]


def _pad(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of pads: elements behind the valid ones get the value that is padded with."""
    config, other = step.params["padding_config"], step.o.params["padding_config"]
    x, value = xs
    for axis, (mine, its) in enumerate(zip(config, other, strict=True)):
        if tuple(mine) != tuple(its):
            raise step.refuse("pad adds as many elements as depend on their number")
        if axis in step.moving():
            shape = aval_of(x).shape
            inside = step.masking.inside(shape, axis, step.ins[0][axis])
            filler = structural.broadcast_in_dim(value, shape=shape, broadcast_dimensions=())
            x = elementwise.select_n(inside, filler, x)
    return step.apply([x, value])


def _concatenate(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of concatenations: later operands are written over the padding of earlier ones."""
    axis = step.params["dimension"]
    extents = [axes[axis] for axes in step.ins]
    if not any(isinstance(s, Size) for s in extents[:-1]):
        return step.apply(xs)
    out, start = step.apply(xs)[0], np.array(0, np.int32)
    for x, extent in zip(xs, extents, strict=True):
        at = [start if d == axis else np.array(0, np.int32) for d in range(len(step.outs[0]))]
        out = dynamic_update_slice(out, x, *at)
        start = elementwise.add(start, step.masking.valid(extent))
    return [out]


def _split(step: Step, xs: Sequence[Any]) -> list[Any]:
    axis = step.params["axis"]
    if any(isinstance(axes[axis], Size) for axes in step.outs[:-1]):
        raise step.refuse("split cuts the rows at places that depend on their number")
    return step.apply(xs)


def _tile(step: Step, xs: Sequence[Any]) -> list[Any]:
    repeated = [d for d, r in enumerate(step.params["reps"][::-1]) if r != 1]
    _along(step, [len(step.ins[0]) - 1 - d for d in repeated], "repeats")
    if step.params["reps"] != step.o.params["reps"]:
        raise step.refuse("tile repeats as often as there are rows", "use broadcast_to")
    return step.apply(xs)


def _bitcast(step: Step, xs: Sequence[Any]) -> list[Any]:
    if len(step.ins[0]) != len(step.outs[0]):
        _along(step, [len(step.ins[0]) - 1], "takes apart")
    return step.apply(xs)


# ---------------------------------------------------------------------------------------------- a fixed inner part
def _inner(count: int) -> Rule:
    """A rule for primitives that work on the last axes, for each index of the others."""

    def rule(step: Step, xs: Sequence[Any]) -> list[Any]:
        for i, axes in enumerate(step.ins):
            if any(isinstance(s, Size) for s in axes[-count:]):
                raise step.refuse(f"{step.e.prim.name} works on all of operand {i} at once")
        return step.apply(xs)

    return rule


def _solve(step: Step, xs: Sequence[Any]) -> list[Any]:
    """Rule of solves: right-hand sides may be rows, each of which is solved for separately."""
    fixed = -1 if step.params.get("left_side") is False else -2
    if any(isinstance(s, Size) for s in (*step.ins[0][-2:], step.ins[1][fixed])):
        raise step.refuse(f"{step.e.prim.name} works on all of a matrix at once")
    return step.apply(xs)


def _fft(step: Step, xs: Sequence[Any]) -> list[Any]:
    lengths = step.params.get("fft_lengths") or step.params.get("lengths") or ()
    return _inner(max(len(lengths), 1))(step, xs)


def _window(step: Step, xs: Sequence[Any]) -> list[Any]:
    for d in step.moving():
        of = [step.params[k][d] for k in ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
              if step.params.get(k) is not None]  # fmt: skip
        padding = step.params.get("padding")
        if set(of) != {1} or (padding is not None and tuple(padding[d]) != (0, 0)):
            raise step.refuse("a window slides over the rows")
    return step.apply(xs)


def rule(prim: Primitive) -> Rule | None:
    """The rule of a primitive; None where it has none."""
    return RULES.get(prim) or (_apply if prim.kind == "elementwise" else None)


RULES: dict[Primitive, Rule] = {
    **dict.fromkeys((structural.copy, structural.materialize, structural.stop_gradient, optimization_barrier), _apply),
    **dict.fromkeys((broadcast_in_dim, transpose, structural.iota, checkpoint_name, threefry2x32), _apply),
    **dict.fromkeys(_IDENTITIES, _reduce),
    recurrence: _recurrence,
    **dict.fromkeys((cholesky_lu.cholesky, cholesky_lu.lu, eigen.eig, eigen.eigh, eigen.schur), _inner(2)),
    **dict.fromkeys((svd.svd, svd.pinv, qr.qr, qr.geqrf, qr.geqp3, qr.householder_product, qr.hessenberg), _inner(2)),
    **dict.fromkeys((qr.tridiagonal, triangular_solve.tridiagonal_solve), _inner(2)),
    **dict.fromkeys((solve.solve, triangular_solve.triangular_solve), _solve),
    **dict.fromkeys((windows.reduce_window_sum, windows.reduce_window_max, windows.reduce_window_min), _window),
    cholesky_lu.lu_pivots_to_permutation: _inner(1),
    elementwise.bitcast_convert_type: _bitcast,
    top_k: _top_k,
    sort: _sort,
    order_statistics: _order_statistics,
    true_places: _true_places,
    dot_general: _dot_general,
    conv_general_dilated: _convolution,
    reshape: _reshape,
    structural.slice: _slice,
    structural.rev: _rev,
    structural.pad: _pad,
    structural.concatenate: _concatenate,
    split: _split,
    tile: _tile,
    fft: _fft,
    **rules_of_indexing.RULES,
    **rules_of_bodies.RULES,
}
