"""Programs as bytes that other versions read: StableHLO's portable artifacts, written, read and put into modules.

https://openxla.org/stablehlo/compatibility: artifacts are read for five years after they were written, and, as they are
written here, by versions up to four weeks older.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _stablehlo
from jaxlib.mlir.dialects import stablehlo

from functorch_like.avals import ShapedArray
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
        CompileError: for a module that is not valid StableHLO.
        UnsupportedError: for operations that are not portable.
    """
    older = stablehlo.StablehloCompatibilityRequirement.WEEK_4
    with mlir.lock, mlir.context:
        version = stablehlo.get_version_from_compatibility_requirement(older)
        copied = mlir.copied(module)
        try:
            _in_stablehlo_alone().run(copied.operation)
            # Shardings are of another dialect, of which StableHLO promises nothing.
            split = "mhlo.num_partitions" in copied.operation.attributes
            return stablehlo.serialize_portable_artifact(copied, version, split), version
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            raise UnsupportedError(
                f"the program has operations that are not portable: {error}", fix="leave them out of what is exported"
            ) from error


#: Functions that programs may call: routines of linear algebra, and marks for XLA. Any other, such as a callback by its
#: address, would let a file run anything.
_CALLED = re.compile(
    r"lapack_\w+|cusolver_\w+|cusparse_gtsv2_ffi|cuhybrid_\w+|cpu_csr_sparse_dense_ffi|LayoutConstraint"
    r"|annotate_device_placement"
)


def read(artifact: bytes) -> ir.Module:
    """The module that bytes hold.

    Raises:
        ArgumentError: where this version of StableHLO cannot read them, or the program calls a function that exported
            programs may not call.
    """
    module = _parsed(artifact)
    with mlir.lock:
        called = {target for target in _targets(module.operation) if not _CALLED.fullmatch(target)}
    if called:
        raise ArgumentError(
            f"the program calls {', '.join(sorted(called))}, which no exported program may call", fix="export it again"
        )
    return module


def _targets(operation: Any) -> Iterator[str]:
    for inner in mlir.operations_in(operation):
        if inner.name == "stablehlo.custom_call":
            yield ir.StringAttr(inner.attributes["call_target_name"]).value


_FRAME = frozenset(("func.func", "func.return", "sdy.mesh", "sdy.return", "stablehlo.return"))


def operation_counts(artifact: bytes) -> dict[str, int]:
    """The count of each operation of a program, by its name.

    Raises:
        ArgumentError: as for `read`.
    """
    module = read(artifact)
    with mlir.lock:
        names = Counter(inner.name for inner in mlir.operations_in(module.operation))
    return {name: n for name, n in names.most_common() if name not in _FRAME}


def _check_signature(
    module: ir.Module, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], name: str
) -> None:
    """Compare the types of a program's `main` with those that its file states."""
    with mlir.lock:
        functions: list[Any] = [f for f in module.body.operations if f.operation.name == "func.func"]
        main = [f.type for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == "main"]
        signatures = [(list(t.inputs), list(t.results)) for t in main]
        stated = [mlir.types[a] for a in in_avals], [mlir.types[a] for a in out_avals]
        if signatures != [stated]:
            text = "; ".join(f"{', '.join(map(str, ins))} -> {', '.join(map(str, outs))}" for ins, outs in signatures)
            raise ArgumentError(
                f"the program of {name} is not of the shapes and dtypes that its file states: {text or 'no main'}",
                fix="export it again",
            )


def _parsed(artifact: bytes) -> ir.Module:
    with mlir.lock, mlir.context:
        try:
            return stablehlo.deserialize_portable_artifact(mlir.context, artifact)
        except (ir.MLIRError, ValueError, RuntimeError) as error:
            newest = stablehlo.get_current_version()
            raise ArgumentError(
                f"StableHLO {newest} cannot read the program: {error}", fix="update jaxlib, or export it again"
            ) from error


def embed(
    e: Emitter, artifact: bytes, name: str, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> str:
    """Put a program's functions into the module that is being made; return the symbol of its main function."""
    module = read(artifact)
    _check_signature(module, in_avals, out_avals, name)
    if b"lapack_" in artifact and e.platform == "cpu":
        from functorch_like.backends.xla import lapack

        lapack.ensure()
    return e.adopt(artifact, module, name)
