"""The `shard_map` primitive: a jaxpr that is applied to the parts of its operands, on each device of a mesh.

Its meaning is linear algebra on the parts of all devices together. A result whose spec leaves an axis out is the same
along it, so it counts as the mean over that axis; an operand whose spec leaves one out has a copy for each place along
it. Hence a transpose divides cotangents of such results by the size of the axis, and adds up those of such operands
over it. Residuals are stacked along one more dimension, which those axes split along which they may differ: all axes,
unless `check` says that values that are the same on all devices count as one.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import checked_axes
from functorch_like.compiler.lower import emit, token_avals
from functorch_like.core import BatchAxis, Primitive, SampleInput, UndefinedPrimal, aval_of, named_axis, state
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError
from functorch_like.interpreters import reverse
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.base.shapes import full_like, insert, reshape
from functorch_like.primitives.collectives.reduce_over_axis import psum
from functorch_like.primitives.elementwise.arithmetic import mul
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import Derived, batch_jaxpr, derive, jvp_jaxpr
from functorch_like.primitives.higher_order.jaxpr_transpose import transposed
from functorch_like.primitives.higher_order.partial_eval import partial_eval_jaxpr
from functorch_like.primitives.higher_order.shard_map.needless_sums import without_needless
from functorch_like.primitives.higher_order.shard_map.placeholders import resolved
from functorch_like.primitives.higher_order.shard_map.replication import REDUCING, Axes, varying

Specs = tuple[Any, ...]


# -------------------------------------------------------------------------------------------------------------- shapes
@contextmanager
def axes_in_scope(mesh: Any, axes: Sequence[str], check: bool = False) -> Generator[None]:
    """Bring the axes by whose parts a function is written into scope, for its collectives.

    With `check`, derivatives that are taken in the block have placeholders, which `resolved` replaces.
    """
    with checked_axes.held(tuple(axes) if check else ()), ExitStack() as stack:
        for name in axes:
            stack.enter_context(named_axis(name, mesh.shape[name]))
        yield


def parts(spec: Any, mesh: Any, ndim: int) -> tuple[int, ...]:
    """Return the number of parts into which a spec splits each dimension."""
    return tuple(math.prod(mesh.shape[name] for name in names) for names in spec.axes(ndim))


def local(aval: ShapedArray, spec: Any, mesh: Any) -> ShapedArray:
    """The aval of a part."""
    counts = parts(spec, mesh, aval.ndim)
    return aval.update(shape=tuple(n // k for n, k in zip(aval.shape, counts, strict=True)))


def whole(aval: ShapedArray, spec: Any, mesh: Any) -> ShapedArray:
    """The aval of the whole that parts make up."""
    counts = parts(spec, mesh, aval.ndim)
    made = aval.update(shape=tuple(n * k for n, k in zip(aval.shape, counts, strict=True)))
    if not mesh.explicit_axes:
        return made
    from functorch_like.backends.xla.named_sharding import explicit_part  # few programs have such axes

    return made.split(explicit_part(mesh, spec, aval.ndim))


def unmentioned(spec: Any, axes: Sequence[str]) -> list[str]:
    """The axes that a spec leaves out."""
    return [name for name in axes if name not in spec.mentioned()]


def varied(specs: Specs) -> list[Axes]:
    """The axes along which the parts that specs describe may differ."""
    return [frozenset(spec.mentioned()) for spec in specs]


def without_placeholders(jaxpr: Jaxpr, specs: Specs, mesh: Any, axes: Sequence[str], check: bool) -> Jaxpr:
    """The jaxpr of parts that specs describe, as derivatives leave it."""
    return resolved(jaxpr, varied(specs), _sizes(mesh, axes)) if check else jaxpr


def _sizes(mesh: Any, axes: Sequence[str]) -> dict[str, int]:
    return {name: mesh.shape[name] for name in axes}


def _shape(
    *avals: ShapedArray, jaxpr: Jaxpr, mesh: Any, axes: tuple[str, ...], in_specs: Specs, out_specs: Specs, check: bool
) -> tuple[ShapedArray, ...]:
    parts = [local(a, s, mesh).strong() for a, s in zip(avals, in_specs, strict=True)]
    if parts != [a.strong() for a in jaxpr.in_avals]:
        raise ShapeError(
            f"{jaxpr.name} takes parts {jaxpr.in_avals}, got {parts}", fix="pass operands it was traced with"
        )
    return tuple(whole(a, s, mesh) for a, s in zip(jaxpr.out_avals, out_specs, strict=True))


# ------------------------------------------------------------------------------------------------------------ lowering
def _lower(
    e: xla.Emitter, *operands: Any, jaxpr: Jaxpr, mesh: Any, axes: Any, in_specs: Any, out_specs: Any, check: bool
) -> Any:
    if e.partitioning is None:
        raise ArgumentError(
            f"{jaxpr.name} is written for the parts of arrays on {mesh!r}, and the program runs on one device",
            fix="use a Mesh with devices in shard_map, or pass arguments that are on one: ft.device_put(x, sharding)",
        )
    if token_avals(jaxpr) and not e.on_one_device(mesh):
        raise UnsupportedError(
            "ordered effects have no order among devices", fix="use ordered=False inside of shard_map"
        )
    around = frozenset() if e.manual is None else frozenset(e.manual.axes)
    ins = [names | around for names in varied(in_specs)]
    simple = jaxpr.memo(
        ("lowered", tuple(ins)),
        lambda: passes.simplify(without_needless(jaxpr, ins, _sizes(mesh, axes))),
    )
    body = lambda inner, *args: emit(inner, simple, args, inlined=True)
    outs = list(e.outs)
    return e.by_parts(mesh, axes, operands, in_specs, out_specs, jaxpr.in_avals, outs, body)


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run it as a program of its own."""
    if not hasattr(params["mesh"], "devices"):
        raise ArgumentError(
            f"{params['jaxpr'].name} got {params['mesh']!r}, which has no devices to run on",
            fix="use a Mesh: ft.make_mesh(...); or call it inside of jit with arguments that are on one",
        )
    assert call.evaluate is not None
    avals = tuple(aval_of(a) for a in args)
    jaxpr: Jaxpr = params["jaxpr"]

    def make() -> Jaxpr:
        fun = lambda *xs: list(shard_map(*xs, **params))
        return stage(fun, avals, name=jaxpr.name, parent=core.EVALUATE, chain="")[0]

    of = [params[k] for k in ("mesh", "axes", "in_specs", "out_specs", "check")]
    program = jaxpr.memo(("program", avals, *of), make)
    return call.evaluate(args, {"jaxpr": program, "spec": CallSpec(jaxpr.name)})


# ----------------------------------------------------------------------------------------------------- transformations
# In the rules `place` is the mesh, the axes and the check.
def _picked(items: Sequence[Any], mask: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(item for item, m in zip(items, mask, strict=True) if m)


def _nowhere(count: int, specs: Specs, others: Specs) -> Specs:
    """Specs of operands that are whole on each device."""
    like = (*specs, *others)
    return (type(like[0])(),) * count if count else ()


def _dce(
    used: tuple[bool, ...], *, jaxpr: Jaxpr, in_specs: Specs, out_specs: Specs, **params: Any
) -> tuple[list[bool], Any, dict[str, Any]]:
    live, kept = jaxpr.memo(("dce", used), lambda: passes.without_unused(jaxpr, used))
    specs = {"in_specs": _picked(in_specs, kept), "out_specs": _picked(out_specs, used)}
    return kept, used, {"jaxpr": live, **specs, **params}


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **place: Any,
) -> tuple[list[Any], list[Any]]:
    some = [t is not None for t in tangents]
    with axes_in_scope(**place):
        derived, consts, has = jvp_jaxpr(jaxpr, some)
    specs = (*_nowhere(len(consts), in_specs, out_specs), *in_specs, *_picked(in_specs, some))
    outs = shard_map(
        *consts,
        *primals,
        *_picked(tangents, some),
        jaxpr=without_placeholders(derived, specs, **place),
        in_specs=specs,
        out_specs=(*out_specs, *_picked(out_specs, has)),
        **place,
    )
    rest = iter(outs[len(has) :])
    return list(outs[: len(has)]), [next(rest) if h else None for h in has]


def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    jaxpr: Jaxpr,
    mesh: Any,
    axes: Any,
    in_specs: Specs,
    out_specs: Specs,
    check: bool,
) -> tuple[list[Any], list[int | None]]:
    split = axis.spmd_name
    inner = axis if split is None else _split_axis(axis, mesh)
    with axes_in_scope(mesh, axes, check):
        derived, consts, where = batch_jaxpr(jaxpr, inner, dims)
    manual = axes if split is None else (*axes, *((split,) if isinstance(split, str) else split))

    def placed(specs: Specs, at: Sequence[int | None]) -> Specs:
        return tuple(s if d is None else _inserted(s, d, split) for s, d in zip(specs, at, strict=True))

    specs = (*_nowhere(len(consts), in_specs, out_specs), *placed(in_specs, dims))
    outs = shard_map(
        *consts,
        *args,
        jaxpr=without_placeholders(derived, specs, mesh, axes, check),
        mesh=mesh,
        axes=manual,
        in_specs=specs,
        out_specs=placed(out_specs, where),
        check=check,
    )
    return list(outs), where


def _inserted(spec: Any, dim: int, entry: Any) -> Any:
    entries = tuple(spec) + (None,) * (dim - len(spec))
    return type(spec)(*insert(entries, dim, entry))


def _split_axis(axis: BatchAxis, mesh: Any) -> BatchAxis:
    names = (axis.spmd_name,) if isinstance(axis.spmd_name, str) else axis.spmd_name
    count = math.prod(mesh.shape[name] for name in names)
    if axis.name is not None:
        raise UnsupportedError(
            f"vmap with axis_name={axis.name!r} and spmd_axis_name={axis.spmd_name!r} maps a shard_map: a collective "
            "would see one part of the axis",
            fix="leave one of them out",
        )
    if axis.size % count:
        raise ShapeError(
            f"vmap maps over an axis of size {axis.size}, which does not divide by {count}, the size of "
            f"spmd_axis_name={axis.spmd_name!r}",
            fix="choose a multiple, or leave spmd_axis_name out",
        )
    return axis._replace(size=axis.size // count)


# --------------------------------------------------------------------------------------------------------- linearizing
def _partial_eval(tape: reverse.TapeTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Compute the known half now, record the linear half on the tape."""
    jaxpr, in_specs, out_specs = params["jaxpr"], params["in_specs"], params["out_specs"]
    place = {key: params[key] for key in ("mesh", "axes", "check")}
    axes = params["axes"]
    unknown = tuple(tape.var(a) is not None for a in args)
    with axes_in_scope(**place):
        parts = partial_eval_jaxpr(jaxpr, unknown)
        first = len(parts.unknown_out) - sum(parts.unknown_out)
        known, linear, consts, residuals = jaxpr.memo(
            ("stacked partial_eval", unknown), lambda: _stacked(parts, first, len(args) - sum(unknown))
        )
    flags = [not u for u in unknown]
    spec = type((*in_specs, *out_specs)[0])
    known_specs = (spec(),) * len(consts) + _picked(in_specs, flags)
    known = without_placeholders(known, known_specs, **place)
    operands = [*consts, *_picked(args, flags)]
    extra = _differing(known, known_specs)[first:] if params["check"] else (axes,) * (len(known.outputs) - first)
    results = (
        *_picked(out_specs, [not u for u in parts.unknown_out]),
        *(spec(tuple(name for name in axes if name in names)) for names in extra),
    )
    state.trace = tape.parent
    try:
        outs = shard_map(*operands, jaxpr=known, in_specs=known_specs, out_specs=results, **place)
    finally:
        state.trace = tape
    values, specs = [], []
    for kind, k in residuals:
        values.append(operands[k] if kind == "in" else outs[k])
        specs.append(known_specs[k] if kind == "in" else results[k])
    linear_specs = (*specs, *_picked(in_specs, unknown))
    tangents = iter(
        tape.record(
            shard_map,
            [*values, *_picked(args, unknown)],
            {
                "jaxpr": without_placeholders(linear, linear_specs, **place),
                "in_specs": linear_specs,
                "out_specs": _picked(out_specs, parts.unknown_out),
                **place,
            },
        )
    )
    primals = iter(outs)
    return [next(tangents) if u else next(primals) for u in parts.unknown_out]


def _differing(jaxpr: Jaxpr, specs: Specs) -> list[Axes]:
    """The axes along which each result may differ."""
    ins = varied(specs)
    return jaxpr.memo(("differing", tuple(ins)), lambda: varying(jaxpr, ins, unifying=REDUCING))


def _stacked(halves: Any, first: int, count: int) -> tuple[Jaxpr, Jaxpr, list[Any], list[tuple[str, int]]]:
    """The halves with one more dimension, of size 1, on the residuals that go from one to the other."""
    consts = list(halves.consts)

    def known(*xs: Any) -> list[Any]:
        outs = evaluate(halves.known, xs)
        return [*outs[:first], *(reshape(o, shape=(1, *aval_of(o).shape)) for o in outs[first:])]

    wide, more = derive(halves.known, "stacked", "known half", known, halves.known.in_avals)
    shift = len(more)
    where = [(kind, k + shift if kind == "in" else k) for kind, k in halves.residuals]
    n = len(where)

    def linear(*xs: Any) -> list[Any]:
        values = [
            reshape(x, shape=aval_of(x).shape[1:]) if kind == "out" and k >= first else x
            for x, (kind, k) in zip(xs, where, strict=False)
        ]
        return evaluate(halves.linear, [*values, *xs[n:]])

    avals = [
        a.update(shape=(1, *a.shape)) if i < n and where[i][0] == "out" and where[i][1] >= first else a
        for i, a in enumerate(halves.linear.in_avals)
    ]
    narrow, _ = derive(halves.linear, "stacked", "linear half", linear, avals)  # it closes over nothing
    return wide, narrow, [*more, *consts], where


def _transpose(
    cts: Sequence[Any],
    args: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **place: Any,
) -> list[Any]:
    linear = tuple(type(a) is UndefinedPrimal for a in args)
    some = tuple(c is not None for c in cts)
    with axes_in_scope(**place):
        backward = jaxpr.memo(
            ("shard_map transpose", linear, some, in_specs, out_specs),
            lambda: _backward(jaxpr, linear, some, place["mesh"], place["axes"], in_specs, out_specs),
        )
    derived, consts, has = backward
    known = [not lin for lin in linear]
    specs = (*_nowhere(len(consts), in_specs, out_specs), *_picked(in_specs, known), *_picked(out_specs, some))
    outs = shard_map(
        *consts,
        *_picked(args, known),
        *_picked(cts, some),
        jaxpr=without_placeholders(derived, specs, **place),
        in_specs=specs,
        out_specs=_picked(in_specs, has),
        **place,
    )
    rest = iter(outs)
    return [next(rest) if h else None for h in has]


def _backward(jaxpr: Jaxpr, linear: Any, some: Any, mesh: Any, axes: Any, in_specs: Specs, out_specs: Specs) -> Derived:
    inner, consts, has = transposed(jaxpr, linear, some)
    known = [a for a, lin in zip(jaxpr.in_avals, linear, strict=True) if not lin]
    avals = [a.strong() for a, s in zip(jaxpr.out_avals, some, strict=True) if s]
    given_specs, found_specs = _picked(out_specs, some), _picked(in_specs, has)

    def fun(*xs: Any) -> list[Any]:
        n = len(known)
        cts = [_mean(ct, unmentioned(s, axes), mesh) for ct, s in zip(xs[n:], given_specs, strict=True)]
        outs = evaluate(inner, [*consts, *xs[:n], *cts])
        return [_total(o, unmentioned(s, axes)) for o, s in zip(outs, found_specs, strict=True)]

    made, more = derive(jaxpr, "transpose", "transpose", fun, [*known, *avals])
    return Derived(made, more, has)


def _mean(ct: Any, axes: Sequence[str], mesh: Any) -> Any:
    count = math.prod(mesh.shape[name] for name in axes)
    return ct if count == 1 else mul(ct, full_like(ct, 1 / count))


def _total(ct: Any, axes: Sequence[str]) -> Any:
    for name in axes:
        ct = psum(ct, axis_name=name)
    return ct


def _samples() -> list[SampleInput]:
    return []  # it needs several devices: tests/sharding


shard_map = Primitive(
    "shard_map",
    shape=_shape,
    ref=core.NotDefined("a shard_map has no meaning without its mesh; tests/sharding run it on one"),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    samples=_samples,
    partial_eval=_partial_eval,
    evaluate=_evaluate,
    dce=_dce,
    effects=lambda *, jaxpr, **_: jaxpr.effects,
    multiple_results=True,
)
