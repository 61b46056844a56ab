"""Refs that staged functions close over: their values become arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends import xla
from functorch_like.calling.traced_function import wraps
from functorch_like.core import state
from functorch_like.errors import ArgumentError, DtypeError, UnsupportedError
from functorch_like.ir.trace_to_jaxpr import CapturedRefs, StageTrace
from functorch_like.ref.cells import Cell, error
from functorch_like.ref.reference import Ref


def hold(refs: Sequence[Ref], values: Sequence[Any]) -> list[Cell]:
    """Add cells for Refs from outside to the function that is being staged, and return the cells."""
    trace = state.trace
    assert isinstance(trace, StageTrace)
    cells = {ref: Cell(value) for ref, value in zip(refs, values, strict=True)}
    trace.cells = {**(trace.cells or {}), **cells}
    return list(cells.values())


def captured_here(captured: CapturedRefs) -> list[Ref]:
    """Return the Refs that a function staged under the current trace uses; raise for those of inner functions."""
    if captured.trace.parent is not state.trace:
        raise captured
    return captured.refs


def held_here() -> list[Ref]:
    """Return the Refs whose values the function that is being staged holds: those that its loops may use.

    They are handed to its loops and branches at once. Else each of these would be staged a second time after it turns
    out to use a Ref, and loops in loops 2^n times.
    """
    trace = state.trace
    cells = trace.cells if isinstance(trace, StageTrace) else None
    return [ref for ref in cells or () if ref.alive]


def register(refs: Sequence[Ref]) -> None:
    """Add Refs that were made in the function that is being staged to those of `held_here`."""
    trace = state.trace
    if isinstance(trace, StageTrace):
        trace.cells = {**(trace.cells or {}), **{ref: ref.cell(False)[0] for ref in refs}}


class Handed:
    """Refs whose values are operands and results of a loop or a branch.

    Args:
        refs: the Refs.
    """

    def __init__(self, refs: Sequence[Ref]) -> None:
        self.refs = list(refs)
        self._written = [False] * len(self.refs)

    def values(self) -> list[Any]:
        """Return the values before the call."""
        return [ref.read() for ref in self.refs]

    def function(self, fun: Callable[..., Any], writes: bool = True) -> Callable[..., tuple[list[Any], Any]]:
        """Return `(values, *args) -> (new values, result)`.

        Raises:
            UnsupportedError: when it is staged, where `fun` writes a Ref and `writes` is False.
        """

        @wraps(fun)
        def run(values: list[Any], *args: Any) -> tuple[list[Any], Any]:
            cells = hold(self.refs, values)
            result = fun(*args)
            for k, cell in enumerate(cells):
                if cell.written and not writes:
                    raise error(
                        UnsupportedError,
                        f"the condition of a loop writes {self.refs[k]!r}",
                        "write it in the body of the loop; the condition may read it",
                    )
                self._written[k] |= cell.written
            return [cell.value for cell in cells], result

        return run

    def put(self, values: Sequence[Any]) -> None:
        """Write the new values of the Refs that the functions have written."""
        for ref, value, written in zip(self.refs, values, self._written, strict=True):
            if written:
                ref.put(value)


def closing_over_refs(functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    """Return functions that close over the operands which are Refs, and the other operands.

    Args:
        functions: functions of the operands.
        operands: pytrees, some of whose leaves are Refs.
    """
    leaves, structure = xla.flatten(tuple(operands))
    arrays = [leaf for leaf in leaves if not isinstance(leaf, Ref)]

    def closing(fun: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fun)
        def run(*values: Any) -> Any:
            rest = iter(values)
            return fun(*structure.unflatten([leaf if isinstance(leaf, Ref) else next(rest) for leaf in leaves]))

        return run

    return [closing(fun) for fun in functions], arrays


def check_once(refs: Sequence[tuple[str, Ref]], name: str) -> None:
    """Raise if a function gets the same Ref twice.

    Args:
        refs: each with its name in the user's call.
        name: name of the function.

    Raises:
        ArgumentError: with both names.
    """
    seen: dict[Ref, str] = {}
    for where, ref in refs:
        if ref in seen:
            raise error(
                ArgumentError,
                f"{name} got one Ref twice, as {seen[ref]} and as {where}: {ref!r:.60}",
                "pass it once, and do not close over it as well; or make two Refs",
            )
        seen[ref] = where


def checked_result(result: Any, name: str) -> Any:
    """Return the result of a function.

    Raises:
        DtypeError: if it contains a Ref.
    """
    for leaf in xla.flatten(result)[0]:
        if isinstance(leaf, Ref):
            raise error(DtypeError, f"{name} returned {leaf!r}, a Ref", "return its value, ref[...]")
    return result


def among(leaves: Sequence[Any]) -> list[int]:
    """Return the positions of Refs."""
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, Ref)]
