"""Lowering of convolutions: StableHLO's own form, and the parts that other forms are built from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.primitives.base.window_geometry import dilated, emit_pad, emit_tap, window_count
from functorch_like.primitives.contractions.dot_dimensions import free_dims
from functorch_like.primitives.contractions.precision import emit_dot, precision_config


def plain(e: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    """StableHLO's own convolution."""
    (left, right), (out,) = e.ins, e.outs
    if not out.size or not left.size or not right.size:
        return e.full(0, out)
    return convolution(e, lhs, rhs, e.ins, out, params)


def convolution(
    e: Any, lhs: Any, rhs: Any, ins: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any]
) -> Any:
    """The operation, for given operands of avals `ins`, and parameters."""

    def spec(dims: Sequence[int], first: str, second: str) -> str:
        names = [""] * len(dims)
        for d, name in zip(dims, (first, second, *map(str, range(len(dims) - 2))), strict=True):
            names[d] = name
        return f"[{', '.join(names)}]"

    ls, rs, os = params["dimension_numbers"]
    n = len(ls) - 2
    lhs, left, params = _cut(e, lhs, ins[0], params)
    if not left.size:  # all that is left are padding and holes
        return e.full(0, out)
    mistaken = _mistaken(left, ins[1], params)
    if mistaken and e.platform != "cpu":  # cuDNN takes no window that is reversed in some dimensions
        return _with_more_padding(e, lhs, rhs, [left, ins[1]], out, params, mistaken)
    if mistaken:
        dimensions = {"dimensions": e.i64s([rs[2 + k] for k in mistaken])}
        rhs = e.op("stablehlo.reverse", [rhs], [ins[1]], attrs=dimensions)
    attrs = {
        "window_strides": e.i64s(params["window_strides"]),
        "padding": e.dense_i64(np.reshape(np.array(params["padding"], np.int64), (n, 2))),
        "lhs_dilation": e.i64s(params["lhs_dilation"]),
        "rhs_dilation": e.i64s(params["rhs_dilation"]),
        "window_reversal": e.bools([k in mistaken for k in range(n)]),
        "dimension_numbers": e.attr(
            f"#stablehlo.conv<{spec(ls, 'b', 'f')}x{spec(rs, 'o', 'i')}->{spec(os, 'b', 'f')}>"
        ),
        "feature_group_count": e.i64(params.get("feature_group_count", 1)),
        "batch_group_count": e.i64(params.get("batch_group_count", 1)),
        "precision_config": precision_config(e, params.get("precision"), e.ins[0].dtype),
    }
    return e.op("stablehlo.convolution", [lhs, rhs], [out], attrs=attrs)


def _cut(e: Any, lhs: Any, left: ShapedArray, params: dict[str, Any]) -> tuple[Any, ShapedArray, dict[str, Any]]:
    """Slice the left operand instead of padding it negatively; return it and the remaining parameters.

    XLA:CPU's kernel of Eigen ignores the sign of padding, and reads memory outside of the operand. With d - 1 holes
    between elements, a cut that ends in a hole leaves positive padding of less than d.
    """
    spaces = zip(params["dimension_numbers"][0][2:], params["padding"], params["lhs_dilation"], strict=True)
    kept, padding = [slice(0, n, 1) for n in left.shape], []
    for d, (low, high), hole in spaces:
        first, last = (max(0, -(edge // hole)) for edge in (low, high))
        kept[d] = slice(first, max(left.shape[d] - last, first), 1)
        padding.append((low + first * hole, high + last * hole))
    if all(s.stop - s.start == n for s, n in zip(kept, left.shape, strict=True)):
        return lhs, left, params
    rest = left.update(shape=tuple(s.stop - s.start for s in kept))
    if not rest.size:
        return lhs, rest, params
    return emit_tap(e, lhs, kept, rest), rest, params | {"padding": tuple(padding)}


def _mistaken(left: ShapedArray, right: ShapedArray, params: dict[str, Any]) -> list[int]:
    """Return the spatial dimensions that XLA mistakes for groups; it then aborts on their sizes.

    XLA represents groups as windows of k elements over k, at stride k - 1 and with a dilation of k. Where it exchanges
    the operands, it recognises groups by stride and dilation only, and a dimension without groups may have the same
    ones. A reversed window over a reversed kernel means the same, and is never taken for groups.
    """
    ls, rs, _ = params["dimension_numbers"]
    mistaken = []
    for d, (i, j) in enumerate(zip(ls[2:], rs[2:], strict=True)):
        k = right.shape[j]
        bare = tuple(params["padding"][d]) == (0, 0) and params["rhs_dilation"][d] == 1
        if bare and left.shape[i] != k > 1 and params["lhs_dilation"][d] == k == params["window_strides"][d] + 1:
            mistaken.append(d)
    return mistaken


def _with_more_padding(
    e: Any, lhs: Any, rhs: Any, ins: Sequence[ShapedArray], out: ShapedArray, params: dict[str, Any],
    dims: Sequence[int],
) -> Any:  # fmt: skip
    """A convolution padded by one more zero at the end of some dimensions, without the elements that it adds."""
    ls, rs, os = params["dimension_numbers"]
    padding = [(low, high + (d in dims)) for d, (low, high) in enumerate(params["padding"])]
    shape = list(out.shape)
    for d in dims:
        length = dilated(ins[0].shape[ls[2 + d]], params["lhs_dilation"][d])
        kernel, stride = ins[1].shape[rs[2 + d]], params["window_strides"][d]
        shape[os[2 + d]] = window_count(length, *padding[d], kernel, stride)
    whole = out.update(shape=tuple(shape))
    made = convolution(e, lhs, rhs, ins, whole, params | {"padding": tuple(padding)})
    return emit_tap(e, made, [slice(0, n, 1) for n in out.shape], out)


class Conv(NamedTuple):
    """One convolution to lower: its avals and parameters; emitter and operands are None where none is written."""

    left: ShapedArray
    right: ShapedArray
    out: ShapedArray
    params: dict[str, Any]
    e: Any = None
    lhs: Any = None
    rhs: Any = None

    @property
    def specs(self) -> Any:
        return self.params["dimension_numbers"]

    @property
    def kernel(self) -> list[int]:
        return [self.right.shape[d] for d in self.specs[1][2:]]

    @property
    def counts(self) -> list[int]:
        return [self.out.shape[d] for d in self.specs[2][2:]]

    @property
    def groups(self) -> int:
        return max(self.params["feature_group_count"], self.params["batch_group_count"])

    def reshape(self, x: Any, aval: ShapedArray) -> Any:
        return self.e.op("stablehlo.reshape", [x], [aval])

    def transpose(self, x: Any, aval: ShapedArray, perm: Sequence[int]) -> Any:
        out = aval.update(shape=tuple(aval.shape[p] for p in perm))
        return self.e.op("stablehlo.transpose", [x], [out], attrs={"permutation": self.e.i64s(perm)})

    def laid_out(self, x: Any, aval: ShapedArray, dims: Sequence[int]) -> Any:
        """Results in their layout; `dims` says which dimension of it each one of `x` is."""
        return self.transpose(x, aval, np.argsort(dims).tolist())

    def add(self, terms: Sequence[Any], aval: ShapedArray) -> Any:
        return functools.reduce(lambda a, b: self.e.op("stablehlo.add", [a, b], [aval]), terms)

    def dot(self, lhs: Any, rhs: Any, left: ShapedArray, right: ShapedArray, contract: Any, batch: Any) -> Any:
        """A dot_general and its aval."""
        (lc, rc), (lb, rb) = contract, batch
        free = lambda aval, c, b: [aval.shape[d] for d in free_dims(aval.ndim, c, b)]
        shape = (*(left.shape[d] for d in lb), *free(left, lc, lb), *free(right, rc, rb))
        aval, precision = self.out.update(shape=shape), self.params.get("precision")
        return emit_dot(self.e, lhs, rhs, left, right, aval, contract, batch, precision), aval

    def line(self) -> tuple[Any, ShapedArray]:
        """The left operand with its padding and holes filled in."""
        low, high, holes = ([0] * self.left.ndim for _ in range(3))
        spaces = zip(self.specs[0][2:], self.params["padding"], self.params["lhs_dilation"], strict=True)
        for d, (lo, hi), hole in spaces:
            low[d], high[d], holes[d] = lo, hi, hole - 1
        return emit_pad(self.e, self.lhs, self.left, 0, low, high, holes)

    def cut(self, line: Any, aval: ShapedArray, starts: Any, counts: Any, steps: Any) -> tuple[Any, ShapedArray]:
        """Elements of the line's spatial dimensions, all of the others."""
        tap, shape = [slice(0, n, 1) for n in aval.shape], list(aval.shape)
        for d, i, n, step in zip(self.specs[0][2:], starts, counts, steps, strict=True):
            tap[d], shape[d] = slice(i, i + dilated(n, step), step), n
        part = aval.update(shape=tuple(shape))
        return emit_tap(self.e, line, tap, part), part
