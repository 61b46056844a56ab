"""Shared parts of linear algebra: stacks of matrices, products, triangles, lowering by other primitives.

The last one or two dimensions of each operand are a vector or a matrix; those before count them, and are the same for
all operands. The primitives take float32, float64, complex64 and complex128. Where LAPACK reports a failure, the
results are NaN. On CPUs they call LAPACK, on GPUs cuSOLVER and its like. What has no kernel for GPUs is computed by
SciPy's LAPACK on the host, while the GPU waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import cusolver, lapack
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives import structural
from functorch_like.primitives.base.lowering import Alternative, Lowering

FLOATS = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
I32 = dtypes.int32


# --------------------------------------------------------------------------------------------------------------- maker
def linalg_primitive(
    name: str,
    ranks: Sequence[int],
    *,
    shape: Callable[..., Any],
    ref: Callable[..., Any],
    lower: Callable[..., Any],
    jvp: Callable[..., Any],
    samples: Callable[[], list[SampleInput]],
    transpose: Callable[..., Any] | None = None,
    batch: Callable[..., Any] | None = None,
    multiple_results: bool = True,
    takes: Sequence[Any] = FLOATS,
    gpu: Callable[..., Any] | Literal["host"] | None = None,
    alternatives: Sequence[Alternative] = (),
    linear: int | None = None,
) -> Primitive:
    """A primitive whose operands are stacks of matrices (rank 2) or vectors (rank 1).

    Args:
        name: of the primitive.
        ranks: of each operand, without the leading dimensions.
        shape: `(*shapes, dtype, **params) -> [(shape, dtype), ...]` of the results, for one matrix.
        ref: `(*operands, **params) -> results` for one matrix that is not empty.
        lower: `(stack, *operands, **params) -> results` with a `Stack`; nothing is empty.
        jvp, samples, transpose, multiple_results: as `core.Primitive` takes them.
        batch: by default the mapped axis becomes the first one of all operands.
        takes: dtypes.
        gpu: as `lower`, for GPUs, if that is another; "host" where jaxlib has no kernel, to call `ref`.
        alternatives: to `lower` on CPUs.
    """

    def whole(*avals: ShapedArray, **params: Any) -> Any:
        lead = _check(name, ranks, takes, avals)
        cores = [a.shape[a.ndim - r :] for a, r in zip(avals, ranks, strict=True)]
        outs = tuple(ShapedArray(lead + s, d) for s, d in shape(*cores, dtype=avals[0].dtype, **params))
        return outs if multiple_results else outs[0]

    def loop(*xs: Any, **params: Any) -> Any:
        avals = whole(*map(aval_of, xs), **params)
        lead = xs[0].shape[: xs[0].ndim - ranks[0]]
        outs = [_blank(a, len(lead)) for a in (avals if multiple_results else (avals,))]
        if all(x.size for x in xs):
            for at in np.ndindex(lead):
                results = ref(*[x[at] for x in xs], **params)
                for out, one in zip(outs, results if multiple_results else (results,), strict=True):
                    assert one.dtype == out.dtype and one.shape == out[at].shape, (name, one.dtype, one.shape)
                    out[at] = one
        return tuple(outs) if multiple_results else outs[0]

    def lowered(e: Any, *operands: Any, **params: Any) -> Any:
        if not all(a.size for a in e.ins):
            made = loop(*[np.zeros(a.shape, a.dtype) for a in e.ins], **params)
            return [e.constant(x) for x in made] if multiple_results else e.constant(made)
        if gpu == "host" and e.platform != "cpu":
            return e.callback(lambda *xs: loop(*xs, **params), operands, e.outs)
        form = lower if e.platform == "cpu" or not callable(gpu) else gpu
        return form(Stack(e, e.ins[0].ndim - ranks[0]), *operands, **params)

    def mapped(axis: BatchAxis, args: Any, dims: Any, **params: Any) -> Any:
        out = made(*stacked(axis, args, dims), **params)
        return (out, [0] * len(out)) if multiple_results else (out, 0)

    made = Primitive(
        name,
        shape=whole,
        ref=loop,
        lower=Lowering(name, lowered, *alternatives) if alternatives else lowered,
        jvp=jvp,
        transpose=transpose
        or NotDefined(f"{name} is not linear in its operands; a jvp rule must not apply it to a tangent"),
        batch=batch or mapped,
        samples=samples,
        multiple_results=multiple_results,
        linear=linear,
    )
    return made


def _check(name: str, ranks: Sequence[int], takes: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """Check the operands, and return the leading dimensions that they share."""
    for a, rank in zip(avals, ranks, strict=True):
        if a.ndim < rank:
            what = "a matrix, or a stack of them" if rank == 2 else "a vector, or a stack of them"
            raise ShapeError(f"{name} takes {what}, got {a!r}", fix=f"give at least {rank} dimensions")
        if a.dtype not in takes:
            raise DtypeError(
                f"{name} takes {', '.join(d.name for d in takes)}, got {a!r}",
                fix="convert the operand, e.g. with astype('float32')",
            )
        if a.dtype != avals[0].dtype:
            raise DtypeError(f"operands {avals[0]!r} and {a!r} differ in dtype", fix="convert one of them with astype")
    leads = [a.shape[: a.ndim - r] for a, r in zip(avals, ranks, strict=True)]
    for lead, a in zip(leads, avals, strict=True):
        if lead != leads[0]:
            raise ShapeError(
                f"{avals[0]!r} and {a!r} count {leads[0]} and {lead} matrices", fix="broadcast the leading dimensions"
            )
    return leads[0]


def stacked(axis: BatchAxis, args: Any, dims: Any) -> list[Any]:
    """Return operands with the mapped axis as the first one of each."""
    return [
        structural.widen(a, axis.size) if d is None else structural.move(a, d, 0)
        for a, d in zip(args, dims, strict=True)
    ]


def _blank(aval: ShapedArray, lead: int) -> Any:
    """Return the factor of an empty matrix: the identity where it is a square matrix, else empty or zero."""
    out = np.zeros(aval.shape, aval.dtype)
    if aval.ndim == lead + 1 and aval.dtype == I32:
        out[...] = np.arange(aval.shape[-1])  # the order of rows that have not moved
    if aval.ndim == lead + 2 and aval.shape[-1] == aval.shape[-2]:
        out[...] = np.eye(aval.shape[-1], dtype=aval.dtype)
    return out


def routine(x: Any, name: str) -> Any:
    """SciPy's binding of the LAPACK routine that the compiled program calls."""
    from scipy.linalg import lapack as bindings

    return getattr(bindings, lapack.named(name, x.dtype))


def square(name: str, shape: tuple[int, ...]) -> int:
    """The size of a square matrix."""
    if shape[0] != shape[1]:
        raise ShapeError(f"{name} takes square matrices, got {shape[0]} by {shape[1]}", fix="give a square matrix")
    return shape[0]


def transposed_aval(aval: ShapedArray) -> ShapedArray:
    """The aval of the transposes of matrices."""
    *lead, m, n = aval.shape
    return aval.update(shape=(*lead, n, m))


def no_jvp(name: str, instead: str) -> NotDefined:
    """Return the reason why a primitive has no jvp rule."""
    return NotDefined(
        f"{name} is a step on the way to another factorization, and has no derivative of its own; {instead}"
    )


# ------------------------------------------------------------------------------------------------------------ lowering
class Stack:
    """The emitter, for operands that are stacks of matrices; the first `lead` dimensions are those of the stack."""

    def __init__(self, e: Any, lead: int) -> None:
        self.e, self.lead = e, lead
        self.ins, self.outs = list(e.ins), list(e.outs)
        self.counts = self.ins[0].shape[:lead]

    def aval(self, shape: Sequence[int], dtype: Any = None) -> ShapedArray:
        """Aval of a stack of such matrices or vectors, by default in the first operand's dtype."""
        return ShapedArray((*self.counts, *shape), dtype or self.ins[0].dtype)

    def call(self, routine: str, operands: Sequence[Any], ins: Any, outs: Any, **more: Any) -> list[Any]:
        """Call LAPACK, or the same function of cuSOLVER on GPUs."""
        library = lapack if self.e.platform == "cpu" else cusolver
        return library.call(self.e, routine, operands, ins, outs, lead=self.lead, **more)

    def or_nan(self, info: Any, values: Sequence[Any], avals: Sequence[ShapedArray], fails: str = "NE") -> list[Any]:
        """Return the values, with NaN where LAPACK failed: where its status `info` compares with 0 by `fails`."""
        flags = self.aval((), dtypes.bool_)
        bad = self.e.compare(fails, info, self.e.full(0, self.aval((), I32)), flags, "SIGNED")
        return [self._poison(bad, x, a) for x, a in zip(values, avals, strict=True)]

    def _poison(self, bad: Any, x: Any, aval: ShapedArray) -> Any:
        wide = self.e.broadcast_in_dim(bad, aval.update(dtype=dtypes.bool_), range(self.lead))
        return self.e.op("stablehlo.select", [wide, self.e.full(nan(aval.dtype), aval), x], [aval])

    def inline(self, fun: Callable[..., Any], *operands: Any, ins: Sequence[ShapedArray] | None = None) -> Any:
        """Lower a function of values, primitive by primitive; it returns one value or several.

        Without `ins`, the operands have the avals of the primitive's own.
        """
        trace = _Inline(self.e)
        with core.set_current_trace(trace):
            out = fun(*[_Emitted(trace, x, a) for x, a in zip(operands, ins or self.ins, strict=True)])
        many = isinstance(out, (tuple, list))
        values = [trace.value(x) for x in (out if many else [out])]
        return values if many else values[0]


def nan(dtype: Any) -> Any:
    """NaN in a dtype."""
    return np.array(complex(np.nan, np.nan) if np.dtype(dtype).kind == "c" else np.nan, dtype)


class _Emitted(core.Tracer):
    """A value of the program that is being written."""

    __slots__ = ("value",)

    def __init__(self, trace: _Inline, value: Any, aval: ShapedArray) -> None:
        super().__init__(trace, aval)
        self.value = value


class _Inline(core.Trace):
    """Trace that writes the primitives that are bound into the program being lowered."""

    __slots__ = ("_e",)

    def __init__(self, e: Any) -> None:
        super().__init__("lower", core.EVALUATE)
        self._e = e

    def value(self, x: Any) -> Any:
        return x.value if isinstance(x, _Emitted) else self._e.constant(np.asarray(x, aval_of(x).dtype))

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        e = self._e
        ins = [aval_of(a).strong() for a in args]
        outs = core.abstract_eval(prim, ins, params)
        saved = e.ins, e.outs
        e.ins, e.outs = ins, list(outs) if prim.multiple_results else [outs]
        try:
            made = prim.lower(e, *map(self.value, args), **params)
        finally:
            e.ins, e.outs = saved
        if prim.multiple_results:
            return [_Emitted(self, x, a) for x, a in zip(made, outs, strict=True)]
        return _Emitted(self, made[0] if isinstance(made, (list, tuple)) else made, outs)
