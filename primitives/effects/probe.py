"""probe: the identity, which reports what each transformation does to a value, at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, SampleInput, Tracer, aval_of


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> Any:
    (x,) = args
    params["report"](f"{params['name']}: is {x if aval_of(x).size <= 16 else ''} {aval_of(x)!r}".replace("  ", " "))
    return x


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str, report: Any) -> tuple[Any, Any]:
    tangent = tangents[0]
    known = "" if isinstance(tangent, Tracer) else f" {tangent}" if aval_of(tangent).size <= 16 else ""
    report(f"{name}: has a tangent{known} {aval_of(tangent)!r}")
    return probe(primals[0], name=name, report=report), probe(tangent, name=f"tangent of {name}", report=report)


def _transpose(ct: Any, args: Sequence[Any], *, name: str, report: Any) -> list[Any]:
    of = name.removeprefix("tangent of ")
    report(f"{of}: gets a cotangent {aval_of(ct)!r}")
    return [probe(ct, name=f"cotangent of {of}", report=report)]


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], *, name: str, report: Any
) -> tuple[Any, int | None]:
    called = f" {axis.name!r}" if axis.name is not None else ""
    report(f"{name}: is mapped over an axis{called} of {axis.size} at {dims[0]} of {aval_of(args[0])!r}")
    return probe(args[0], name=name, report=report), dims[0]


def _lower(e: Any, x: Any, *, name: str, report: Any) -> Any:
    report(f"{name}: is lowered for {e.platform} as {e.ins[0]!r}")
    return x


probe = Primitive(
    "probe",
    shape=lambda x, *, name, report: x,
    ref=lambda x, *, name, report: x,
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    evaluate=_evaluate,
    samples=lambda: [
        SampleInput((ShapedArray(s, "float32"),), {"name": "x", "report": print}) for s in [(), (2, 3), (0,)]
    ],
)
