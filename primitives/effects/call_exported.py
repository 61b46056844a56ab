"""call_exported: a program that was exported, as part of another one."""

from __future__ import annotations

import dataclasses
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, Primitive
from functorch_like.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A program in portable bytes, for each platform that it was lowered for.

    Attributes:
        name: of the function.
        programs: pairs of platform and bytes.
        in_avals, out_avals: of its arguments and results.
    """

    name: str
    programs: tuple[tuple[str, bytes], ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]

    def on(self, platform: str) -> bytes:
        """The program for a platform.

        Raises:
            UnsupportedError: where it was lowered for others alone.
        """
        program = dict(self.programs).get(platform)
        if program is None:
            names = tuple(name for name, _ in self.programs)
            raise UnsupportedError(
                f"{self.name} was exported for {', '.join(names)}, and is run on {platform}",
                fix=f"export it with platforms={(*names, platform)}",
            )
        return program


def _lower(e: Any, *operands: Any, artifact: Artifact) -> list[Any]:
    from functorch_like.backends.xla import portable  # brings MLIR with it

    outs = e.outs
    program = artifact.on(e.platform)
    return e.call(portable.embed(e, program, artifact.name, artifact.in_avals, artifact.out_avals), operands, outs)


_NO_DERIVATIVE = NotDefined(
    "a program that was exported has no derivatives any more; store it with serialize(vjp_order=1), export the "
    "derivative as a function of its own, or give the call a rule with custom_vjp or custom_jvp"
)

call_exported = Primitive(
    "call_exported",
    shape=lambda *xs, artifact: artifact.out_avals,
    ref=NotDefined("the meaning is in StableHLO; tests/transformations/test_export.py runs it"),
    lower=_lower,
    jvp=_NO_DERIVATIVE,
    transpose=_NO_DERIVATIVE,
    batch=NotDefined(
        "a program that was exported takes what it was exported for; map over it with lax.map, or export vmap(f)"
    ),
    samples=list,
    multiple_results=True,
)
