"""Programs as bytes that other versions read: StableHLO's portable artifacts, written, read and put into modules.

https://openxla.org/stablehlo/compatibility: artifacts are read for five years after they were written, and, as they are
written here, by versions up to four weeks older.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _stablehlo
from jaxlib.mlir.dialects import stablehlo

from functorch_like.backends.xla import mlir
from functorch_like.backends.xla.emit import Emitter
from functorch_like.errors import ArgumentError, UnsupportedError


@cache
def _in_stablehlo_alone() -> Any:
    """The pass that writes CHLO's operations, which are not portable, in those of StableHLO."""
    _stablehlo.register_stablehlo_passes()
    return passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))", mlir.context)


def written(module: ir.Module) -> tuple[bytes, str]:
    """A module as portable bytes, and the version of StableHLO that they are in.

    Raises:
        UnsupportedError: for operations that are not portable.
    """
    older = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    with mlir.lock, mlir.context:
        version = stablehlo.get_version_from_compatibility_requirement(older)
        copied = ir.Module.parse(mlir.bytecode(module))
        try:
            _in_stablehlo_alone().run(copied.operation)
            return stablehlo.serialize_portable_artifact(copied, version), version
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            raise UnsupportedError(
                f"the program has operations that are not portable: {error}", fix="leave them out of what is exported"
            ) from error


def read(artifact: bytes) -> ir.Module:
    """The module that bytes hold.

    Raises:
        ArgumentError: where this version of StableHLO cannot read them.
    """
    with mlir.lock, mlir.context:
        try:
            return stablehlo.deserialize_portable_artifact(mlir.context, artifact)
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            newest = stablehlo.get_current_version()
            raise ArgumentError(
                f"StableHLO {newest} cannot read the program: {error}", fix="update jaxlib, or export it again"
            ) from error


def embed(e: Emitter, artifact: bytes, name: str) -> str:
    """Put a program's functions into the module that is being made; the symbol of its main one."""
    if b"lapack_" in artifact and e.platform == "cpu":
        from functorch_like.backends.xla import lapack

        lapack.ensure()
    return e.adopt(artifact, read(artifact), name)
