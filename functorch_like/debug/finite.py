"""`debug.nans` and `debug.infs`: every result is checked, and the first primitive with NaN or infinity is named.

Programs run as they are. Where one gives NaN, it runs once more, primitive by primitive and with the checks of
`checkify`, which name the primitive and the user's line.

Environment variables, read at import:
    FT_DEBUG_NANS  "1": as `debug.set_nans(True)`.
    FT_DEBUG_INFS  "1": as `debug.set_infs(True)`.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import core, dtypes, source_info
from functorch_like.backends.external_settings import External
from functorch_like.backends.validators import boolean
from functorch_like.calling import api_boundary
from functorch_like.compiler.inspection import INSPECTED
from functorch_like.core import aval_of
from functorch_like.errors import NonFiniteError
from functorch_like.ir.jaxpr import Jaxpr, inner_jaxprs

if TYPE_CHECKING:
    from functorch_like.compiler.program import Program
    from functorch_like.typing import Block


class _Watch(NamedTuple):
    """Inspector of programs' results for NaN, infinities, or both."""

    nans: bool = False
    infs: bool = False

    def __call__(self, program: Program, args: Sequence[Any], outs: Sequence[Any]) -> None:
        result = self.found(outs)
        if result:
            token = INSPECTED.swap_local(None)
            try:
                raise _error_of(program, args, *result[0])
            finally:
                INSPECTED.restore(token)

    def found(self, values: Sequence[Any]) -> list[tuple[int, str]]:
        """Positions of values that are not finite, and the kind of each."""
        result: list[tuple[int, str]] = []
        for k, x in enumerate(values):
            if dtypes.is_inexact(aval_of(x).dtype):
                host = np.asarray(x)
                if self.nans and np.isnan(host).any():
                    result.append((k, "nan"))
                elif self.infs and np.isinf(host).any():
                    result.append((k, "inf"))
        return result


def _error_of(program: Program, args: Sequence[Any], position: int, kind: str) -> NonFiniteError:
    """The error for a program whose result at a position is not finite."""
    from functorch_like.checkify import run  # 20 ms of modules, needed only here

    jaxpr, name = program.lowered.jaxpr, program.lowered.name
    word = {"nan": "nan", "inf": "infinity"}[kind]
    line = str(source_info.user_line(core.state.source) or "")
    # A kernel was traced at the line of the first call; a function under jit has the line of each primitive.
    own_lines = bool(jaxpr.origin)
    reason = f"{word} in result {position} of {name}"
    if _calls_out(jaxpr):
        reason += "; it has calls of io_callback, so it is not run again to see where it comes from"
    else:
        with core.set_current_trace(core.EVALUATE):
            _, state = run(jaxpr, [*program.consts, *args], frozenset({kind, "silent"}))
        failures = state.error().failures()
        if failures:
            reason, place = failures[0]
            line = place if own_lines and place else line
        else:
            reason += "; none of its primitives gives it when they are run one by one"
    if own_lines:
        reason += f", in {jaxpr.name}" + (f", {jaxpr.origin}" if " of " in jaxpr.origin else "")
    before = _Watch(nans=kind == "nan", infs=kind == "inf").found(args)
    if before:
        reason += f" (argument {before[0][0]} of {name} has {word} already)"
    return NonFiniteError(
        reason,
        at=line,
        fix="look at its operands with debug.print or debug.breakpoint; in derivatives, where(x > 0, log(x), 0) needs "
        "a harmless operand, too: log(where(x > 0, x, 1))",
    )


def _calls_out(jaxpr: Jaxpr) -> bool:
    """Return True if running it again has effects outside."""
    from functorch_like.primitives.effects.callbacks import io_callback  # not needed at import

    return any(e.prim is io_callback or any(map(_calls_out, inner_jaxprs(e.params))) for e in jaxpr.equations)


# -------------------------------------------------------------------------------------------------------------- setting
_everywhere = _Watch()


def _set(**changes: bool) -> None:
    global _everywhere
    _everywhere = _everywhere._replace(**changes)
    INSPECTED.set_global(_everywhere if _everywhere != _Watch() else None)


@contextmanager
def _within(**changes: bool) -> Generator[None]:
    changed = (INSPECTED.value or _Watch())._replace(**changes)
    with INSPECTED.held(changed if changed != _Watch() else None):
        yield


def _block(name: str, enable: bool) -> Block:
    if enable and core.state.trace.staging:
        warnings.warn(
            f"a traced function runs later, outside of the block of ft.debug.{name}(): enter it around the call",
            stacklevel=3,
        )
    return _within(**{name: bool(enable)})


@api_boundary.public
def nans(enable: bool = True) -> Block:
    """Raise, in a block or decorated function, for every result that has NaN; the error names the primitive.

    Results of compiled functions are checked, forwards and backwards, and each operation outside of them. NaN that a
    program makes and does not return is not found. All calls go through Python and results are read on the host, so
    this is slow; arrays that are donated are copied. Nothing is compiled again.

    Args:
        enable: False ends an outer block's effect.

    Returns:
        A context manager, and a decorator.

    Raises:
        NonFiniteError: (a FloatingPointError) inside the block.

    >>> import functorch_like as ft
    >>> with ft.debug.nans():
    ...     ft.jit(lambda x: fnp.log(x) * 2)(-1.0)
    Traceback (most recent call last):
    ...
    functorch_like.errors.NonFiniteError: <lambda>(f32[]): nan generated by log, in <lambda>
      at: ...
    """
    return _block("nans", enable)


@api_boundary.public
def infs(enable: bool = True) -> Block:
    """Raise, in a block or decorated function, for every result that has infinities; like `nans`.

    Args:
        enable: False ends an outer block's effect.

    Returns:
        A context manager, and a decorator.

    Raises:
        NonFiniteError: inside the block.

    >>> import functorch_like as ft
    >>> with ft.debug.infs():
    ...     fnp.exp(fnp.asarray([1.0, 100.0]))
    Traceback (most recent call last):
    ...
    functorch_like.errors.NonFiniteError: exp(f32[2]): infinity generated by exp, at index (1,) of f32[2]
      at: ...
    """
    return _block("infs", enable)


@api_boundary.public
def set_nans(enable: bool) -> None:
    """Check all results for NaN, in all threads, from now on; see `nans`.

    Args:
        enable: True starts the checks, False ends them.

    >>> import functorch_like as ft
    >>> ft.debug.set_nans(True)
    >>> ft.debug.set_nans(False)
    """
    _set(nans=bool(enable))


@api_boundary.public
def set_infs(enable: bool) -> None:
    """Check all results for infinities, in all threads, from now on; see `infs`.

    Args:
        enable: True starts the checks, False ends them.

    >>> import functorch_like as ft
    >>> ft.debug.set_infs(False)
    """
    _set(infs=bool(enable))


_at_start = {
    name: External(
        f"debug.{name}",
        False,
        f"Whether every result is looked at for {name}.",
        changes="whether results are looked at",
        read=lambda name=name: bool(INSPECTED.value) and getattr(INSPECTED.value, name),
        by=f"ft.debug.set_{name}, or a block of ft.debug.{name}",
        env=f"FT_DEBUG_{name.upper()}",
        kind=boolean,
    ).initial
    for name in ("nans", "infs")
}
_set(**_at_start)
