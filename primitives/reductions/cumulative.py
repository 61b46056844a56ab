"""Running sums, products and extremes along one axis, from its start or (`reverse`) from its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.kernel_limits import LOOPS
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.base import kernels
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.elementwise_makers import words_for
from functorch_like.primitives.base.lowering import Alternative, Lowering
from functorch_like.primitives.base.window_geometry import emit_pad, emit_reduce_window, emit_tap, window_params
from functorch_like.primitives.indexing.gather_and_scatter_add import along
from functorch_like.primitives.reductions.makers import highest, lowest, roomy
from functorch_like.primitives.reductions.recurrence import recurrence, shifted
from functorch_like.primitives.reductions.running_loop import LONG, rows, running_loop

#: Elements of a block, and how many elements are folded without blocks.
BLOCK, FEW = 8, 32
#: The most elements of an array that a loop folds, which runs on one thread. In larger ones, it folds totals of blocks.
MANY = 2**20


def _as_loop(kind: Any, aval: ShapedArray, axis: int) -> bool:
    """Return True if a loop over the elements compiles and runs sooner, in sum, than folds of blocks.

    A step is the elements behind the axis. Functions of few numbers are slow: XLA computes them one by one.
    """
    most = LOOPS.elements if callable(kind) and rows(aval, axis) < LONG else MANY
    return aval.shape[axis] > FEW and aval.size <= most


class Fold(NamedTuple):
    """A running fold to emit along one axis; `kind` is a StableHLO operation, or `(emitter, a, b, aval) -> value`."""

    e: Any
    kind: Any
    identity: Any
    axis: int
    reverse: bool

    def both(self, e: Any, a: Any, b: Any, aval: ShapedArray) -> Any:
        """Two elements folded."""
        return self.kind(e, a, b, aval) if callable(self.kind) else e.op(f"stablehlo.{self.kind}", [a, b], [aval])

    def plain(self, x: Any, aval: ShapedArray) -> Any:
        """Each result folds a window that reaches to the end."""
        e, scalar, n = self.e, ShapedArray((), aval.dtype), aval.shape[self.axis]
        of = lambda this, other: tuple(this if d == self.axis else other for d in range(aval.ndim))
        params = window_params(of(n, 1), of(1, 1), of((0, n - 1) if self.reverse else (n - 1, 0), (0, 0)))
        region = ([scalar, scalar], lambda inner, a, b: [self.both(inner, a, b, scalar)])
        return emit_reduce_window(e, x, e.constant(self.identity), params, region, aval, aval)

    def loop(self, x: Any, aval: ShapedArray) -> Any:
        """Fold one element after the other in one kernel, which compiles in a tenth of the time that blocks take."""
        if not kernels.allowed(self.e):
            return self.blocked(x, aval)
        both = lambda e, a, b, part: [self.both(e, *a, *b, part)]
        return running_loop(self.e, [x], aval, self.axis, self.reverse, both, [self.identity], not callable(self.kind))

    def pad(self, x: Any, aval: ShapedArray, before: int, after: int) -> tuple[Any, ShapedArray]:
        """Identities put before and after along the axis, or cut away where negative."""
        of = lambda v: [v if d == self.axis else 0 for d in range(aval.ndim)]
        return emit_pad(self.e, x, aval, self.identity, of(before), of(after))

    def sized(self, aval: ShapedArray, n: int) -> ShapedArray:
        """The aval with n elements along the axis."""
        return aval.update(shape=tuple(n if d == self.axis else m for d, m in enumerate(aval.shape)))

    def blocked(self, x: Any, aval: ShapedArray) -> Any:
        """Fold each block, elementwise over blocks; fold the blocks' totals; combine. Two to eight times faster."""
        e, axis, n = self.e, self.axis, aval.shape[self.axis]
        if n <= FEW:
            return self.plain(x, aval)
        if _as_loop(self.kind, aval, axis) and kernels.allowed(e):
            return self.loop(x, aval)
        fill = -n % BLOCK
        x, whole = self.pad(x, aval, *((fill, 0) if self.reverse else (0, fill)))
        count = whole.shape[axis] // BLOCK
        part = self.sized(aval, count)
        both = lambda a, b: self.both(e, a, b, part)
        runs: list[Any] = []
        for k in reversed(range(BLOCK)) if self.reverse else range(BLOCK):
            end = (count - 1) * BLOCK + k + 1
            tap = [slice(k, end, BLOCK) if d == axis else slice(0, m, 1) for d, m in enumerate(aval.shape)]
            element = emit_tap(e, x, tap, part)
            runs.append(both(runs[-1], element) if runs else element)
        totals = self.blocked(runs[-1], part)
        earlier, _ = self.pad(totals, part, *((-1, 1) if self.reverse else (1, -1)))
        thin = part.update(shape=(*part.shape[: axis + 1], 1, *part.shape[axis + 1 :]))
        parts = [e.op("stablehlo.reshape", [both(earlier, run)], [thin]) for run in runs]
        woven = part.update(shape=(*part.shape[: axis + 1], BLOCK, *part.shape[axis + 1 :]))
        parts = parts[::-1] if self.reverse else parts
        y = e.op("stablehlo.concatenate", parts, [woven], attrs={"dimension": e.i64(axis + 1)})
        y = e.op("stablehlo.reshape", [y], [whole])
        return self.pad(y, whole, *((-fill, 0) if self.reverse else (0, -fill)))[0]


def running(
    name: str, kind: Any, ufunc: Any, identity: Callable[[Any], Any], takes: Callable[[Any], bool],
    jvp: Any, transpose: Any, *dtype_names: str, linear: str | None = None,
) -> Primitive:  # fmt: skip
    """A primitive that folds all prefixes: `kind` folds two elements (see `Fold`), `ufunc` is NumPy's."""

    def shape(x: ShapedArray, *, axis: int, reverse: bool = False) -> ShapedArray:
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"{x!r} has no axis {axis}", fix=f"use an axis below {x.ndim}")
        if not takes(x.dtype):
            raise DtypeError(f"{name} takes {words_for(takes)} operands, not {x!r}", fix="convert it with astype")
        return x

    def ref(x: Any, *, axis: int, reverse: bool = False) -> Any:
        wide = roomy(x)
        turn = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
        return turn(ufunc.accumulate(turn(wide), axis, dtype=wide.dtype)).astype(x.dtype)

    def lowered(form: Callable[..., Any]) -> Callable[..., Any]:
        def lower(e: Any, x: Any, *, axis: int, reverse: bool = False) -> Any:
            (out,) = e.outs
            if not out.size:
                return x
            return form(Fold(e, kind, identity(out.dtype), axis, reverse), x, out)

        return accumulated(lower)

    def batch(_: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, axis: int, reverse: bool = False) -> Any:
        (at,) = dims
        return primitive(args[0], axis=axis + (axis >= at), reverse=reverse), at

    def samples() -> list[SampleInput]:
        main, *others = dtype_names
        shapes = [
            ((5,), 0, False),
            ((2, 3), 1, True),
            ((2, 3, 4), 1, False),
            ((0, 2), 0, False),
            ((2, 0), 1, True),
            ((1,), 0, False),
            ((75, 2), 0, False),
            ((2, 300), 1, True),
        ]
        return [
            *(SampleInput((ShapedArray(s, main),), {"axis": a, "reverse": r}) for s, a, r in shapes),
            *(SampleInput((ShapedArray((4,), d),), {"axis": 0, "reverse": False}) for d in others),
        ]

    limit = LOOPS.elements if callable(kind) else MANY
    most, length = limit // (2 * FEW), 2 * FEW
    rest = f" ({MANY:,} where {LONG} or more stand behind the axis)" if callable(kind) else ""
    loop = Alternative(
        "loop", f"more than {FEW} elements, in arrays of at most {limit:,}{rest}, on one device",
        lambda ins, outs, *, axis, **_: _as_loop(kind, outs[0], axis) and outs[0].size > 0,
        lowered(Fold.loop),
        lambda: [
            *_edges(dtype_names[0], (FEW, False), (FEW + 1, True), (BLOCK * FEW, True), (BLOCK * FEW + 1, True)),
            *_arrays(dtype_names[0], 1, ((most, length), True), ((most + 1, length), False)),
            *_arrays(dtype_names[0], 1, *(((m, FEW + 1), True) for m in (3, 4, 5, 8, 21, 43))),
            *_arrays(dtype_names[0], 0, ((FEW, LONG), False), ((FEW + 1, LONG - 1), True), ((1500, LONG), True)),
        ],
    )  # fmt: skip
    blocks = Alternative(
        "blocks", f"more than {FEW} elements",
        lambda ins, outs, *, axis, **_: outs[0].size > 0 and outs[0].shape[axis] > FEW,
        lowered(Fold.blocked),
        lambda: [
            *_edges(dtype_names[0], (FEW, False)),
            *_arrays(dtype_names[0], 1, ((most, length), False), ((most + 1, length), True)),
        ],
        slow_compile=True,
    )  # fmt: skip
    lower = Lowering(name, lowered(Fold.plain), loop, blocks)
    primitive = Primitive(
        name, shape=shape, ref=ref, lower=lower, jvp=jvp, transpose=transpose, batch=batch, samples=samples,
        linear=linear,
    )  # fmt: skip
    return primitive


def _edges(dtype: str, *sizes: tuple[int, bool]) -> list[tuple[SampleInput, bool]]:
    """Samples of two rows of some lengths, and whether the form is taken; one has infinities and NaN, too."""
    rows = [(ShapedArray((2, n), dtype), r, taken) for n, taken in sizes for r in (False, True)]
    samples = [(SampleInput((aval,), {"axis": 1, "reverse": r}, (-1, 1)), taken) for aval, r, taken in rows]
    longest = max((n for n, taken in sizes if taken), default=0)
    if not longest:
        return samples
    inside = np.zeros((2, longest), dtype)
    inside[:, [3, 20, 37]] = np.inf, -1, np.nan
    return [*samples, (SampleInput((inside,), {"axis": 1, "reverse": False}), True)]


def _arrays(dtype: str, axis: int, *shapes: tuple[tuple[int, ...], bool]) -> list[tuple[SampleInput, bool]]:
    """Samples of some shapes, folded along an axis, and whether the form is taken."""
    return [
        (SampleInput((ShapedArray(shape, dtype),), {"axis": axis, "reverse": r}, (-1, 1)), taken)
        for shape, taken in shapes
        for r in (False, True)
    ]


_number = lambda dtype: dtype != dtypes.bool_
_real = lambda dtype: not dtypes.is_complex(dtype)


# --------------------------------------------------------------------------------------------------------------- sums
def _sum_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    return cumsum(*primals, **params), cumsum(*tangents, **params)


cumsum = running(
    "cumsum", "add", np.add, lambda dtype: np.zeros((), dtype), _number, _sum_jvp,
    lambda ct, args, *, axis, reverse=False: [cumsum(ct, axis=axis, reverse=not reverse)],
    "float32", "int32", "uint8", "complex64", "bfloat16", linear="jointly",
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- products
def _prod_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool = False) -> tuple[Any, Any]:
    """d(p[k-1] x[k]) = x[k] dp[k-1] + p[k-1] dx[k]: no division, so zeros do no harm."""
    (x,), (dx,) = primals, tangents
    out = cumprod(x, axis=axis, reverse=reverse)
    terms = elementwise.mul(shifted(out, 1, 1, axis, reverse), dx)
    return out, recurrence(x, terms, axis=axis, reverse=reverse, logs=False)


cumprod = running(
    "cumprod", "multiply", np.multiply, lambda dtype: np.ones((), dtype), _number, _prod_jvp,
    NotDefined("a running product is not linear in its elements; differentiate it with its jvp rule"),
    "float32", "int32", "complex64", "bfloat16",
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- extremes
def _extreme_jvp(primitive: Callable[[], Primitive], beats: Callable[..., Any]) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool = False) -> tuple[Any, Any]:
        """The tangent of the element that set the record; of equal ones, the first."""
        (x,), (dx,) = primals, tangents
        x = structural.materialize(x)
        out = primitive()(x, axis=axis, reverse=reverse)
        aval = aval_of(x)
        if not aval.size:
            return out, None
        first = aval.shape[axis] - 1 if reverse else 0
        places = structural.iota(dtype=dtypes.int32, shape=aval.shape, dimension=axis)
        record = beats(x, shifted(out, 1, 0, axis, reverse))
        known = structural.full(aval.shape, first, np.dtype(np.int32))
        setting = elementwise.select_n(record, known, places)
        holder = (cummin if reverse else cummax)(setting, axis=axis, reverse=reverse)
        # Backwards the derivatives of all elements under a record are added up one by one: in wider numbers, because a
        # sum of a million rounded so often would keep three digits.
        wide = dtypes.float64 if aval.dtype == dtypes.float32 else dtypes.accumulator(aval.dtype)
        dx = along(structural.convert_element_type(dx, new_dtype=wide), holder, axis, unique=False)
        return out, structural.convert_element_type(dx, new_dtype=aval.dtype)

    return jvp


_no = NotDefined("a running extreme is not linear in its elements; differentiate it with its jvp rule")
cummax = running(
    "cummax",
    "maximum",
    np.maximum,
    lowest,
    _real,
    _extreme_jvp(lambda: cummax, elementwise.gt),
    _no,
    "float32",
    "int32",
    "bfloat16",
)
cummin = running(
    "cummin",
    "minimum",
    np.minimum,
    highest,
    _real,
    _extreme_jvp(lambda: cummin, elementwise.lt),
    _no,
    "float32",
    "int32",
    "bfloat16",
)
