"""`python -m functorch_like.export model.ft`: describe an exported program, without running it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.errors import FtError

if TYPE_CHECKING:
    from functorch_like.export import Exported


def main(deserialize: Callable[[bytes], Exported], arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status: 1 for a file that cannot be read.

    Args:
        deserialize: that of `export`, which imports this file.
        arguments: of the command line; those of the process if None.
    """
    options = _parser().parse_args(arguments)
    path = Path(options.file)
    try:
        program = deserialize(path.read_bytes())
        text = program.mlir_module(options.platform) if options.stablehlo else "\n".join(summary(program, str(path)))
    except (OSError, FtError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m functorch_like.export",
        description="Show an exported program: signature, sizes, platforms, versions, operations. Nothing is run.",
    )
    parser.add_argument("file", help="what Exported.serialize() gave, in a file")
    parser.add_argument("--inspect", action="store_true", help="print a summary (the default)")
    parser.add_argument("--stablehlo", action="store_true", help="print the program as StableHLO text instead")
    parser.add_argument("--platform", help="the program of --stablehlo: cpu or gpu (default: the first)")
    return parser


def summary(program: Exported, title: str) -> Iterator[str]:
    """The lines that describe a program.

    Args:
        program: a result of `export` or `deserialize`.
        title: the first word, such as the file's name.

    Example:
        >>> import functorch_like as ft
        >>> from functorch_like.exporting.command import summary
        >>> made = ft.export.export(ft.jit(lambda x: x * 2))(ft.ShapeDtypeStruct((3,), "float32"))
        >>> print(*list(summary(made, "model.ft"))[-2:], sep="\\n")  # doctest: +ELLIPSIS
          program for cpu: ... operations, ...
            stablehlo.broadcast_in_dim 1, stablehlo.constant 1, stablehlo.multiply 1
    """
    yield f"{title}: {program.fun_name}"
    written = ", ".join(f"{name} {version}" for name, version in program.written_by.items())
    yield f"  written by: {written or 'a version that left no note'}; StableHLO {program.stablehlo_version}"
    if program.mesh is not None:
        yield f"  devices: {program.nr_devices}, {', '.join(f'{name} {n}' for name, n in program.mesh.shape.items())}"
    yield from _leaves("arguments", program.in_tree, program.in_avals, program.in_shardings())
    yield from _leaves("results", program.out_tree, program.out_avals, program.out_shardings())
    for platform in program.platforms:
        counts = program.operation_counts(platform)
        size = _size(len(program.portable_artifact(platform)))
        yield f"  program for {platform}: {sum(counts.values())} operations, {size}"
        yield f"    {', '.join(f'{name} {n}' for name, n in sorted(counts.items()))}"


def _leaves(
    title: str, tree: xla.PyTreeDef, avals: Sequence[ShapedArray], shardings: Sequence[NamedSharding | None]
) -> Iterator[str]:
    yield f"  {title}: {len(avals)} arrays, {_size(sum(map(_bytes, avals)))}"
    entries, _ = xla.flatten_with_path(tree.unflatten(list(range(len(avals)))))
    names = ["".join(map(str, path)) or "(the whole)" for path, _ in entries]
    width = max(map(len, names), default=0)
    for name, aval, where in zip(names, avals, shardings, strict=True):
        split = "" if where is None else f"  {where.spec!r}"
        yield f"    {name:<{width}}  {aval!r}  {_size(_bytes(aval))}{split}"


def _bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.4g} {unit}" if unit != "bytes" else f"{count} bytes"
        count /= 1024  # pyright: ignore[reportAssignmentType]
    raise AssertionError
