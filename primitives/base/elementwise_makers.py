"""Makers of elementwise primitives: they fill in the rules that a family shares, so that most take one line.

`unary` and `binary` take rules for tangents in the short form `(g, x, y) -> tangent` and `(g, x, y, z) -> tangent`.
There g is the operand's tangent and the last is the result. `nondifferentiable` is for results that are constant
almost everywhere. The dtypes a primitive takes are given by letters: f floating point, c complex, i and u integers
signed and unsigned, b bool.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, NotDefined, Primitive, SampleInput, UndefinedPrimal
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.primitives.base.shapes import move, widen

KIND = {
    d: "b" if d == dtypes.bool_ else "f" if dtypes.is_float(d) else "c" if dtypes.is_complex(d)
    else "i" if dtypes.is_signed(d) else "u"
    for d in dtypes.ALL
}  # fmt: skip
_WORDS = {"f": "floating point", "c": "complex", "i": "signed integer", "u": "unsigned integer", "b": "bool"}


def words_for(accepts: Callable[[Any], bool]) -> str:
    """The kinds of dtypes that are taken, in words."""
    one = {"f": dtypes.float32, "c": dtypes.complex64, "i": dtypes.int32, "u": np.dtype("uint32"), "b": dtypes.bool_}
    return ", ".join(_WORDS[k] for k, dtype in one.items() if accepts(dtype))


def same(name: str, takes: str, gives: Callable[[Any], Any] | None = None) -> Callable[..., ShapedArray]:
    """The shape rule of operands with one shape and dtype; `gives` maps it to the dtype of the result."""

    def shape(first: ShapedArray, *rest: ShapedArray, **params: Any) -> ShapedArray:
        weak = first.weak_type
        for other in rest:
            if other.shape != first.shape:
                raise ShapeError(
                    f"operands {first!r} and {other!r} differ in shape", fix="broadcast them to one shape first"
                )
            if other.dtype != first.dtype:
                raise DtypeError(f"operands {first!r} and {other!r} differ in dtype", fix="convert one with astype")
            weak = weak and other.weak_type
        check_kind(name, takes, first)
        dtype = gives(first.dtype) if gives else first.dtype
        return ShapedArray(first.shape, dtype, weak and dtype != dtypes.bool_)

    return shape


def check_kind(name: str, takes: str, aval: ShapedArray) -> None:
    """Raise unless the dtype is of one of the kinds."""
    if KIND[aval.dtype] not in takes:
        raise DtypeError(
            f"{name} takes {', '.join(_WORDS[k] for k in takes)} operands, got {aval!r}",
            fix="convert the operand with astype",
        )


def align(axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Operands of one shape with their batch axes in one place: that of the first that has one."""
    at = next(d for d in dims if d is not None)
    return [
        a if d == at else widen(a, axis.size, at) if d is None else move(a, d, at)
        for a, d in zip(args, dims, strict=True)
    ], at


def quiet(ref: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function that does not warn where a result is infinite or no number, and keeps rank-0 arrays arrays."""

    @functools.wraps(ref)
    def wrapped(*args: Any, **params: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(ref(*args, **params))

    return wrapped


_EXTRA = {
    "f": ("float64", "bfloat16", "float16"),
    "c": ("complex64", "complex128"),
    "i": ("int32", "int8"),
    "u": ("uint8",),
    "b": ("bool",),
}


def samples_of(
    count: int, takes: str, domain: tuple[float, float], params: Sequence[dict[str, Any]], smooth: bool
) -> list[SampleInput]:
    """Operands of several shapes in the primitive's main dtype, and of one shape in its other dtypes."""
    main = {"f": "float32", "i": "int32", "u": "uint32", "b": "bool", "c": "complex64"}[takes[0]]
    kinds = [(shape, main) for shape in ((), (2, 3, 4), (0, 2))]
    kinds += [((5,), dtype) for kind in takes for dtype in _EXTRA[kind] if dtype != main]
    return [
        SampleInput(
            (ShapedArray(shape, dtype),) * count,
            dict(p),
            (max(domain[0], 0), domain[1]) if dtype[0] == "u" else domain,
            smooth,
        )
        for p in params
        for shape, dtype in kinds
    ]


def elementwise_primitive(
    name: str,
    ref: Callable[..., Any],
    lower: str | Callable[..., Any],
    *,
    count: int,
    takes: str,
    jvp: Callable[..., Any],
    transpose: Callable[..., Any] | None = None,
    gives: Callable[[Any], Any] | None = None,
    shape: Callable[..., Any] | None = None,
    domain: tuple[float, float] = (-2.0, 2.0),
    params: Sequence[dict[str, Any]] = ({},),
    samples: Callable[[], list[SampleInput]] | None = None,
    smooth: bool = True,
    linear: str | int | None = None,
    fusible: bool = False,
    exact: bool = False,
) -> Primitive:
    """An elementwise primitive of `count` operands; `jvp` and `transpose` as `core.Primitive` takes them.

    Args:
        lower: the StableHLO (or CHLO, marked by a dot) operation, or a function of the emitter.
        takes: letters of the dtypes it takes, its main one first.
        domain, params, smooth: of the samples (`SampleInput`).
        linear, fusible, exact: as for `core.Primitive`.
    """
    op = lower if not isinstance(lower, str) or "." in lower else f"stablehlo.{lower}"

    def batch(axis: BatchAxis, args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        moved, at = align(axis, args, dims)
        return primitive(*moved, **params), at

    primitive = Primitive(
        name,
        shape=shape or same(name, takes, gives),
        ref=quiet(ref),
        lower=(lambda e, *xs: e.op(op, xs, e.outs)) if isinstance(op, str) else op,
        jvp=jvp,
        transpose=transpose or NotDefined(f"{name} is not linear; a jvp rule must not apply it to a tangent"),
        batch=batch,
        samples=samples or (lambda: samples_of(count, takes, domain, params, smooth)),
        kind="elementwise",
        linear=linear,
        fusible=fusible,
        exact=exact,
    )
    return primitive


def unary(
    name: str, ref: Any, lower: Any, tangent: Callable[..., Any], *, takes: str = "fc", **facts: Any
) -> Primitive:
    """A primitive of one operand; `tangent` is `(g, x, y, **params)`, and a `transpose` is `(ct, **params)`."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        y = primitive(*primals, **params)
        return y, tangent(tangents[0], primals[0], y, **params)

    pull = facts.pop("transpose", None)
    if pull is not None:
        facts["transpose"] = lambda ct, args, **params: [pull(ct, **params)]
    primitive = elementwise_primitive(name, ref, lower, count=1, takes=takes, jvp=jvp, **facts)
    return primitive


def binary(name: str, ref: Any, lower: Any, left: Any, right: Any, *, takes: str = "fciu", **facts: Any) -> Primitive:
    """A primitive of two operands; `left` and `right` are rules of tangents `(g, x, y, z)`, None where it is zero."""

    def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        z = primitive(*primals)
        first, second = tangents
        t = left(first, *primals, z) if first is not None and left else None
        if second is None or not right:
            return z, t
        u = right(second, *primals, z)
        return z, u if t is None else add(t, u)

    primitive = elementwise_primitive(name, ref, lower, count=2, takes=takes, jvp=jvp, **facts)
    return primitive


def nondifferentiable(name: str, ref: Any, lower: Any, *, count: int = 1, takes: str, **facts: Any) -> Primitive:
    """A primitive whose result is constant almost everywhere: its tangent is zero."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, None]:
        return primitive(*primals, **params), None

    why = NotDefined(f"the derivative of {name} is zero, so no tangent goes through it; none is needed")
    primitive = elementwise_primitive(name, ref, lower, count=count, takes=takes, jvp=jvp, transpose=why, **facts)
    return primitive


def _add_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    first, second = tangents
    return add(*primals), second if first is None else first if second is None else add(first, second)


# Made without `binary`, because the jvp rule of `binary` adds tangents by `add`.
add = elementwise_primitive(
    "add", np.add, "add", count=2, takes="fciu", jvp=_add_jvp,
    transpose=lambda ct, args: [ct if isinstance(a, UndefinedPrimal) else None for a in args],
    linear="jointly", fusible=True, exact=True,
)  # fmt: skip
neg = unary(
    "neg",
    np.negative,
    "negate",
    lambda g, x, y: neg(g),
    takes="fciu",
    transpose=lambda ct: neg(ct),
    linear="jointly",
    fusible=True,
    exact=True,
)
