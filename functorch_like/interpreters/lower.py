"""Lowering: a jaxpr becomes a StableHLO module, and the module an executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import core, sources
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.errors import FtError
from functorch_like.interpreters import passes
from functorch_like.interpreters.jaxpr import Jaxpr, Literal


class Lowered:
    """A module with what is needed to compile and call it.

    Attributes:
        module: StableHLO.
        kept: for each input of the jaxpr, whether the module has it.
        out_avals: of the results.
    """

    __slots__ = ("jaxpr", "kept", "module", "name", "out_avals")

    def __init__(self, module: Any, jaxpr: Jaxpr, kept: list[bool], name: str) -> None:
        self.module, self.jaxpr, self.kept, self.name = module, jaxpr, kept, name
        self.out_avals = jaxpr.out_avals

    def compile(self, device: Any, options: dict[str, Any] | None = None) -> xla.Executable:
        """Compile for a device (or load from the on-disk cache)."""
        return xla.compile(self.module, device=device, options=options, out_avals=self.out_avals, name=self.name)


def lower(
    jaxpr: Jaxpr,
    *,
    name: str,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    physical: Sequence[np.dtype[Any] | None] | None = None,
    platform: str = "cpu",
) -> Lowered:
    """Lower a jaxpr.

    Args:
        jaxpr: what to lower.
        name: of the module.
        donated: inputs whose memory the results may take.
        keep_unused: keep inputs that nothing reads.
        physical: the dtype an input arrives in where that differs from its aval: Python numbers arrive 64 bits wide.
        platform: "cpu" or "gpu"; rows may lower differently.
    """
    jaxpr = passes.simplify(jaxpr)
    used = passes.used_inputs(jaxpr)
    kept = [keep_unused or u for u in used]
    inputs = [v for v, k in zip(jaxpr.inputs, kept, strict=True) if k]
    arriving = [
        v.aval if p is None else ShapedArray(v.aval.shape, p)
        for v, p, k in zip(jaxpr.inputs, physical or [None] * len(kept), kept, strict=True)
        if k
    ]

    def body(e: xla.Emitter, *values: Any) -> list[Any]:
        converted = [
            value if aval.dtype == v.aval.dtype else e.convert(value, v.aval)
            for value, aval, v in zip(values, arriving, inputs, strict=True)
        ]
        return emit(e, Jaxpr(inputs, jaxpr.equations, jaxpr.outputs, name), converted)

    given = [d for d, k in zip(donated or [False] * len(kept), kept, strict=True) if k]
    module = xla.build(name, arriving, body, donated=[i for i, d in enumerate(given) if d], platform=platform)
    return Lowered(module, jaxpr, kept, name)


def emit(e: xla.Emitter, jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    """Emit the equations of a jaxpr into the current block."""
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, operands, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return e.constant(np.asarray(atom.value, atom.aval.dtype))
        return values[atom]

    for eqn in jaxpr.equations:
        line = sources.user_line(eqn.source) if eqn.source is not None else None
        if line is not None:
            e.location(line.file, line.line, line.function)
        e.ins = [a.aval for a in eqn.inputs]
        e.outs = [v.aval for v in eqn.outputs]
        try:
            out = eqn.prim.lower(e, *[read(a) for a in eqn.inputs], **eqn.params)
        except FtError as error:
            raise core.complete(error.complete(at=str(line or "")), eqn.prim, e.ins, eqn.params, None, "lowering")  # noqa: B904
        if type(out) in (list, tuple):
            values.update(zip(eqn.outputs, out, strict=True))
        else:
            values[eqn.outputs[0]] = out
    return [read(a) for a in jaxpr.outputs]


def as_text(module: Any) -> str:
    """StableHLO text."""
    return xla.module_text(module)
