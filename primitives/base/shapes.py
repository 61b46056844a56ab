"""Primitives that rearrange without computing (and the sum that is the transpose of a broadcast).

All of them are linear in their one operand, so `linear` fills most of the rules. At the end stand the helpers
that batch and jvp rules are made of: `move`, `widen`, `full_like`, `zeros`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.caches import cleared
from functorch_like.core import BatchAxis, Primitive, SampleInput, aval_of
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives.base.accumulating import accumulated
from functorch_like.primitives.base.integer_folds_cpu import by_columns
from functorch_like.primitives.base.lowering import Lowering
from functorch_like.primitives.base.reduce_sum_cpu import OWN_LOOP, STAGES, own_sum

F32 = np.dtype(np.float32)


def linear(
    name: str,
    *,
    shape: Callable[..., ShapedArray],
    ref: Callable[..., Any],
    lower: Callable[..., Any],
    transpose: Callable[..., Any],
    batch: Callable[..., Any],
    samples: Callable[[], list[SampleInput]],
    **facts: Any,
) -> Primitive:
    """A primitive that is linear in its one operand: its tangent is the primitive of the operand's tangent.

    Here `transpose` is `(ct, aval of the operand, **params) -> cotangent` and `batch` is
    `(axis, x, dim, **params) -> (out, dim)`; `facts` are others of `core.Primitive`.
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        return primitive(*primals, **params), primitive(*tangents, **params)

    primitive = Primitive(
        name,
        shape=shape,
        ref=ref,
        lower=lower,
        jvp=jvp,
        transpose=lambda ct, args, **params: [transpose(ct, args[0].aval, **params)],
        batch=lambda axis, args, dims, **params: batch(axis, args[0], dims[0], **params),
        samples=samples,
        linear="jointly",
        **facts,
    )
    return primitive


def check_axes(axes: Any, ndim: int) -> None:
    """Raise unless the axes are different and within 0 ... ndim-1."""
    if len(set(axes)) != len(axes) or not all(0 <= a < ndim for a in axes):
        raise ShapeError(
            f"axes {tuple(axes)} must be different and within 0..{ndim - 1}", fix="name each axis once, counting from 0"
        )


def check_sizes(shape: Any) -> None:
    """Raise for negative sizes."""
    if any(n < 0 for n in shape):
        raise ShapeError(f"sizes of {tuple(shape)} must not be negative", fix="give sizes of at least 0")


def insert(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    """The tuple with one more item."""
    return (*items[:at], item, *items[at:])


# --------------------------------------------------------------------------------------------------------- reduce_sum
def _sum_shape(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
    check_axes(axes, x.ndim)
    if x.dtype.kind == "b":
        raise DtypeError(f"reduce_sum adds numbers, got {x!r}", fix="convert to an integer first: x.astype('int32')")
    return x.update(shape=tuple(n for i, n in enumerate(x.shape) if i not in axes))


def _sum_ref(x: np.ndarray, *, axes: tuple[int, ...]) -> Any:
    wide = F32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iu" else x.dtype
    return np.sum(x, axis=axes, dtype=wide).astype(x.dtype)


def _sum_transpose(ct: Any, x: ShapedArray, *, axes: tuple[int, ...]) -> Any:
    return broadcast_in_dim(ct, shape=x.shape, broadcast_dimensions=tuple(i for i in range(x.ndim) if i not in axes))


def reduced_axes(axes: tuple[int, ...], dim: int) -> tuple[tuple[int, ...], int]:
    """The axes of a reduction with a batch axis put in at `dim`, and where that axis is in the result."""
    return tuple(a + (a >= dim) for a in axes), dim - sum(a < dim for a in axes)


def _sum_batch(axis: BatchAxis, x: Any, dim: int, *, axes: tuple[int, ...]) -> tuple[Any, int]:
    axes, out = reduced_axes(axes, dim)
    return reduce_sum(x, axes=axes), out


reduce_sum = linear(
    "reduce_sum",
    shape=_sum_shape,
    ref=_sum_ref,
    lower=Lowering(
        "reduce_sum",
        accumulated(lambda e, x, *, axes: e.reduce("add", x, 0, axes, e.outs[0])),
        STAGES,
        OWN_LOOP,
        by_columns("add", lambda dtype: 0),
    ),
    transpose=_sum_transpose,
    batch=_sum_batch,
    kind="reduction",
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"axes": axes})
        for shape, axes, dtype in [
            ((), (), "float32"), ((3,), (0,), "float32"), ((2, 3, 4), (0, 2), "float32"), ((2, 3, 4), (1,), "int32"),
            ((2, 0), (1,), "float32"), ((0, 2), (1,), "float32"), ((2, 3), (), "float32"),
            ((2, 3), (0, 1), "complex64"),
            ((4, 5), (1,), "bfloat16"),
        ]
    ],
)  # fmt: skip


# A sum for which compiler/routed_sums.py has chosen the kernel on CPUs.
routed_sum = linear(
    "routed_sum",
    shape=lambda x, *, axes, own_loop: _sum_shape(x, axes=axes),
    ref=lambda x, *, axes, own_loop: _sum_ref(x, axes=axes),
    lower=accumulated(
        lambda e, x, *, axes, own_loop: (
            own_sum(e, x, axes=axes) if own_loop else e.reduce("add", x, 0, axes, e.outs[0])
        )
    ),
    transpose=lambda ct, x, *, axes, own_loop: _sum_transpose(ct, x, axes=axes),
    batch=lambda axis, x, dim, *, axes, own_loop: _sum_batch(axis, x, dim, axes=axes),
    kind="reduction",
    samples=lambda: [
        SampleInput((ShapedArray((2, 3, 4), dtype),), {"axes": axes, "own_loop": own})
        for dtype, axes, own in [
            ("float32", (1,), True), ("float32", (0,), False), ("bfloat16", (1,), True), ("float64", (0, 2), True),
        ]
    ],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------- broadcast_in_dim
def _broadcast_shape(x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> ShapedArray:
    check_sizes(shape)
    if len(broadcast_dimensions) != x.ndim:
        raise ShapeError(
            f"broadcast_dimensions {broadcast_dimensions} must name one dimension of the result for each of {x!r}",
            fix="give as many as the operand has dimensions",
        )
    check_axes(broadcast_dimensions, len(shape))
    if list(broadcast_dimensions) != sorted(broadcast_dimensions):
        raise ShapeError(
            f"broadcast_dimensions {broadcast_dimensions} must increase", fix="transpose the operand first"
        )
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        if n != 1 and n != shape[d]:
            raise ShapeError(
                f"a dimension of size {n} of {x!r} cannot become dimension {d} of {shape}",
                fix=f"sizes must be equal, or 1 in the operand; here it would have to be {shape[d]}",
            )
    return x.update(shape=shape)


def _broadcast_ref(x: np.ndarray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Any:
    inner = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        inner[d] = n
    return np.broadcast_to(x.reshape(inner), shape).copy()


def _broadcast_transpose(
    ct: Any, x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    kept = {d for n, d in zip(x.shape, broadcast_dimensions, strict=True) if n == shape[d]}
    axes = tuple(d for d in range(len(shape)) if d not in kept)
    if axes:
        ct = reduce_sum(ct, axes=axes)
    return ct if len(kept) == x.ndim else reshape(ct, shape=x.shape)


def _broadcast_batch(
    axis: BatchAxis, x: Any, dim: int, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> tuple[Any, int]:
    # The new axis goes right behind the dimension before it, so nothing has to be transposed.
    out = broadcast_dimensions[dim - 1] + 1 if dim else 0
    dims = tuple(d + (d >= out) for d in broadcast_dimensions)
    return broadcast_in_dim(x, shape=insert(shape, out, axis.size), broadcast_dimensions=insert(dims, dim, out)), out


broadcast_in_dim = linear(
    "broadcast_in_dim",
    shape=_broadcast_shape,
    ref=_broadcast_ref,
    lower=lambda e, x, *, shape, broadcast_dimensions: e.broadcast_in_dim(x, e.outs[0], broadcast_dimensions),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    kind="movement", fusible=True,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"shape": out, "broadcast_dimensions": dims})
        for shape, out, dims, dtype in [
            ((), (), (), "float32"), ((), (2, 3), (), "float32"), ((3,), (2, 3), (1,), "float32"),
            ((2, 3), (2, 3, 4), (0, 1), "float32"), ((2, 1, 3), (2, 4, 3), (0, 1, 2), "float32"),
            ((1, 3), (1, 2, 3), (0, 2), "complex64"), ((0, 2), (3, 0, 2), (1, 2), "float32"),
            ((1,), (0, 2), (0,), "float32"),
            ((3,), (3, 2), (0,), "bool"), ((3,), (3, 2), (0,), "int8"),
        ]
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ reshape
def _reshape_shape(x: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    check_sizes(shape)
    if math.prod(shape) != x.size:
        raise ShapeError(
            f"{x!r} has {x.size} elements and {tuple(shape)} has {math.prod(shape)}",
            fix="the sizes must have equal products",
        )
    return x.update(shape=shape)


def _reshape_batch(axis: BatchAxis, x: Any, dim: int, *, shape: tuple[int, ...]) -> tuple[Any, int]:
    before = math.prod(aval_of(x).shape[:dim])
    product, out = 1, 0
    while product != before and out < len(shape):
        product, out = product * shape[out], out + 1
    if dim and (product != before or not product):  # the axis falls inside a dimension of the result
        x, out = move(x, dim, 0), 0
    return reshape(x, shape=insert(shape, out, axis.size)), out


reshape = linear(
    "reshape",
    shape=_reshape_shape,
    ref=lambda x, *, shape: x.reshape(shape),
    lower=lambda e, x, *, shape: e.op("stablehlo.reshape", [x], e.outs),
    transpose=lambda ct, x, *, shape: reshape(ct, shape=x.shape),
    batch=_reshape_batch,
    kind="movement", fusible=True, exact=True,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"shape": out})
        for shape, out, dtype in [
            ((), (1, 1), "float32"), ((6,), (2, 3), "float32"), ((2, 3, 4), (6, 4), "float32"),
            ((2, 6), (3, 4), "int32"),
            ((0, 3), (3, 0, 2), "float32"), ((1,), (), "bool"), ((4, 3), (2, 2, 3), "complex64"),
        ]
    ],
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- transpose
def _transpose_shape(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise ShapeError(
            f"{tuple(permutation)} is not a permutation of the dimensions of {x!r}",
            fix=f"name each of 0..{x.ndim - 1} once",
        )
    return x.update(shape=tuple(x.shape[p] for p in permutation))


def inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes one."""
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_batch(axis: BatchAxis, x: Any, dim: int, *, permutation: tuple[int, ...]) -> tuple[Any, int]:
    return transpose(x, permutation=(dim, *[p + (p >= dim) for p in permutation])), 0


transpose = linear(
    "transpose",
    shape=_transpose_shape,
    ref=lambda x, *, permutation: np.transpose(x, permutation),
    lower=lambda e, x, *, permutation: e.op(
        "stablehlo.transpose", [x], e.outs, attrs={"permutation": e.i64s(permutation)}
    ),
    transpose=lambda ct, x, *, permutation: transpose(ct, permutation=inverse(permutation)),
    batch=_transpose_batch,
    kind="movement", exact=True,
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"permutation": perm})
        for shape, perm, dtype in [
            ((), (), "float32"), ((3,), (0,), "float32"), ((2, 3), (1, 0), "float32"),
            ((2, 3, 4), (2, 0, 1), "float32"),
            ((2, 3, 4), (1, 2, 0), "int32"), ((0, 3), (1, 0), "float32"), ((2, 3), (1, 0), "bool"),
            ((2, 3), (1, 0), "complex64"),
        ]
    ],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ helpers
def move(x: Any, src: int, dst: int) -> Any:
    """Move one axis to another place, the others staying in order."""
    if src == dst:
        return x
    order = [d for d in range(aval_of(x).ndim) if d != src]
    order.insert(dst, src)
    return transpose(x, permutation=tuple(order))


def widen(x: Any, size: int, dim: int = 0) -> Any:
    """Repeat along a new axis, the leading one by default."""
    shape = aval_of(x).shape
    kept = tuple(d + (d >= dim) for d in range(len(shape)))
    return broadcast_in_dim(x, shape=insert(shape, dim, size), broadcast_dimensions=kept)


@cleared
@functools.lru_cache(maxsize=1024)
def _scalar(number: Any, dtype: np.dtype[Any], kind: type, signs: Any) -> np.ndarray:
    # `signs` separates 0.0 from -0.0, which are equal.
    made = np.array(number, dtype)
    made.flags.writeable = False
    return made


def full(shape: tuple[int, ...], number: Any, dtype: np.dtype[Any]) -> Any:
    """An array of one number; of rank 0 it is NumPy's own and costs nothing."""
    signs = repr(number) if type(number) is complex else math.copysign(1.0, number)
    scalar = _scalar(number, dtype, type(number), signs)
    return broadcast_in_dim(scalar, shape=shape, broadcast_dimensions=()) if shape else scalar


def full_like(x: Any, number: Any) -> Any:
    """One number in the shape, dtype and weakness of another value."""
    aval = aval_of(x)
    if not aval.weak_type:
        return full(aval.shape, number, aval.dtype)
    scalar = full((), number, aval.dtype)[()]  # a NumPy scalar is weak, an array of rank 0 is not
    return broadcast_in_dim(scalar, shape=aval.shape, broadcast_dimensions=()) if aval.shape else scalar


def zeros(aval: ShapedArray) -> Any:
    """Zeros of this shape and dtype."""
    return full(aval.shape, 0, aval.dtype)
