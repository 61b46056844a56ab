"""Operations that a user's rule writes with MLIR's own Python bindings, in place of the emitter's methods."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from jaxlib.mlir import ir

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import mlir
from functorch_like.backends.xla.emit import Emitter
from functorch_like.errors import CompileError


def run(
    e: Emitter, rule: Callable[..., Any], operands: Sequence[Any], out_avals: Sequence[ShapedArray], what: str
) -> list[ir.Value]:
    """Run a rule that writes operations at MLIR's current insertion point; return its values.

    Args:
        e: the emitter, in whose current block the operations are written.
        rule: takes the operands; returns a value, an operation, or a sequence of these.
        operands: values of MLIR.
        out_avals: avals of the results.
        what: name of the rule, for messages.

    Returns:
        A value for each of `out_avals`.

    Raises:
        CompileError: if an operation is not valid, or results have other types than the avals. The operations of a rule
            that raises are not in the module.
    """
    e.forbid_template()
    # A block of its own, so that the rule's operations can be verified, and dropped if it raises. They are moved out.
    # TRAP: Python objects of dropped operations may be alive, in a traceback. They keep the holder alive, but not the
    # module; so operations in it use arguments of its block alone, until they are moved.
    holder = ir.Operation.create("stablehlo.case", [], [], None, None, 1, e.place, e._ip)
    block = holder.regions[0].blocks.append(*[x.type for x in operands], arg_locs=[e.place] * len(operands))
    arguments = list(block.arguments)
    try:
        with mlir.context, e.place, ir.InsertionPoint(block):
            values = list(values_in(rule(*arguments)))
        written = list(block.operations)
        for operation in written:
            _verify(operation.operation, what)
        _check(values, out_avals, what)
    except BaseException:
        holder.detach_from_parent()
        raise
    given = dict(zip(arguments, operands, strict=True))
    values = [given.get(value, value) for value in values]
    for argument, x in given.items():
        argument.replace_all_uses_with(x)
    for operation in written:
        operation.operation.move_before(holder)
    holder.erase()
    return values


def values_in(result: Any) -> Iterator[ir.Value]:
    """Yield the values in the result of a rule: values, operations, and sequences of these."""
    if isinstance(result, ir.Value):
        yield result
    elif isinstance(result, (ir.Operation, ir.OpView)):
        yield from result.results
    elif result is not None:
        for part in result:
            yield from values_in(part)


def _verify(operation: ir.Operation, what: str) -> None:
    try:
        operation.verify()
    except ir.MLIRError as error:
        raise CompileError(
            f"{what} wrote an operation that is not valid: {error}",
            fix="correct the operands, attributes and result types of the operation in the rule",
        ) from error


def _check(values: Sequence[ir.Value], out_avals: Sequence[ShapedArray], what: str) -> None:
    types, promised = [str(value.type) for value in values], [str(mlir.types[aval]) for aval in out_avals]
    if types != promised:
        raise CompileError(
            f"{what} returned ({', '.join(types)}), where the avals of the results are ({', '.join(promised)})",
            fix="return values of the shapes and dtypes that the abstract evaluation of the primitive gives",
        )


@contextmanager
def at_current_point(e: Emitter) -> Generator[None]:
    """Let the emitter write at MLIR's current insertion point within the block."""
    saved = e._ip, e._constants, e.place, e.ins, e.outs
    e._ip, e._constants, e.place = ir.InsertionPoint.current, {}, ir.Location.current
    try:
        yield
    finally:
        e._ip, e._constants, e.place, e.ins, e.outs = saved


def learn_symbols(e: Emitter) -> None:
    """Tell the emitter the names of functions that were added to its module by other means."""
    for operation in e._module.body.operations:
        if "sym_name" in operation.attributes:
            e._symbols.add(ir.StringAttr(operation.attributes["sym_name"]).value)


def jaxlib_module(name: str) -> ModuleType:
    """Return a module of `jaxlib.mlir`, such as "ir" or "dialects.func".

    Raises:
        ImportError: if this jaxlib does not have it.
    """
    return importlib.import_module(f"jaxlib.mlir.{name}")
