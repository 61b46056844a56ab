"""`minify`: the smallest part of a program that fails as the program does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from functorch_like.backends import cache
from functorch_like.calling import traced_function
from functorch_like.calling.call_signature import FlatCall, Static
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import Tracer
from functorch_like.debug.minifying.failures import Tolerance, failure
from functorch_like.debug.minifying.programs import Program, inlined
from functorch_like.debug.minifying.script import script
from functorch_like.debug.minifying.search import Search
from functorch_like.errors import ArgumentError
from functorch_like.source_info import name_of


class Minified:
    """The smallest program found; prints as its text.

    Attributes:
        jaxpr: the program.
        args: its arguments.
        kind: of the failure: a name, or "custom".
        tried: number of programs that were run.
        equations: their number before, in the program as it was traced, and after.
    """

    def __init__(self, program: Program, kind: str, tried: int, before: int) -> None:
        self.jaxpr, self.args = program
        self.kind, self.tried, self.equations = kind, tried, (before, len(program.jaxpr.equations))

    @property
    def script(self) -> str:
        """The program as a script that runs on its own.

        Raises:
            UnsupportedError: for a program with callbacks or foreign functions.
        """
        return script(Program(self.jaxpr, self.args), self.kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the script to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.script)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def minify(
    f: Callable[..., object], fails: str | Callable[..., bool] = "mismatch", *, rtol: float | None = None,
    atol: float | None = None, verbose: bool = False,
) -> Callable[..., Minified]:  # fmt: skip
    """Return a function that finds the smallest part of a program that fails as the program does.

    Equations, results, bodies of loops and branches, sizes and values are left out or made simpler as long as the
    failure stays. The parts run on values of the whole program, which NumPy computes. A program that aborts the process
    is run in processes of its own, a second or two for each try.

    Args:
        f: takes and returns pytrees of arrays; it is traced.
        fails: the failure: "error" (compiling or running raises), "abort" (the process dies or hangs), "nan" (NaN from
            finite arguments), "mismatch" (the compiled program differs from the same in NumPy), "nondeterminism" (runs
            differ); or a function `(g, *args)` that returns True where a compiled part `g` fails, which takes arrays
            and gives a list.
        rtol: relative difference that does not count; 10,000 units of rounding by default.
        atol: absolute difference that does not count; 100 units of rounding by default.
        verbose: True to print each success to stderr.

    Returns:
        A function of the arguments of `f`, whose result has the program (`.jaxpr`, `.args`) and `.script`.

    Raises:
        ArgumentError: for an unknown kind; at the call, where the program does not fail.

    Example:
        >>> small = ft.debug.minify(lambda x: fnp.sin(fnp.log(x - 1.0) * 2.0), "nan")(fnp.asarray(0.5))
        >>> [e.prim.name for e in small.jaxpr.equations]
        ['log']
    """
    check_callable(f, "minify", "minify(f, fails)(*args)")
    tolerance = Tolerance(rtol, atol)
    failure(fails, tolerance)

    @wraps(f)
    def minified(*args: Any, **kwargs: Any) -> Minified:
        program = _traced(f, args, kwargs)
        kind = fails if isinstance(fails, str) else "custom"
        report: Callable[[str], None] = lambda line: print(f"minify: {line}", file=sys.stderr) if verbose else None
        search = Search(program, failure(fails, tolerance), report)
        with cache.flags(enabled=False):
            if not search.bad(program):
                raise ArgumentError(
                    f"{name_of(f)} does not fail: {kind}",
                    fix="check the arguments and the kind of failure (fails=)",
                )
            before = _count(program)
            small = search.run()
        return Minified(small, kind, search.tried, before)

    return minified


def _traced(f: Callable[..., Any], args: Any, kwargs: Any) -> Program:
    call = FlatCall(Static((), ()), args, kwargs)
    body = traced_function.staged(f, call, "minify")
    values = [*body.consts, *traced_function.operands(call)]
    if any(isinstance(v, Tracer) for v in values):
        raise ArgumentError("minify runs programs, and is given traced values", fix="call it outside of jit and grad")
    return Program(body.jaxpr, [np.asarray(v, x.aval.dtype) for v, x in zip(values, body.jaxpr.inputs, strict=True)])


def _count(program: Program) -> int:
    return len(inlined(program.jaxpr).equations)
