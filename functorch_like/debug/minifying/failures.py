"""Kinds of failure of a program."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.core import EVALUATE, set_current_trace
from functorch_like.debug.minifying.programs import Program
from functorch_like.debug.minifying.script import script
from functorch_like.errors import ArgumentError
from functorch_like.ir.reference import reference
from functorch_like.primitives.higher_order.call import CallSpec, apply

Fails = Callable[[Program], bool]
#: Seconds after which a child process counts as hanging.
_PATIENCE = 300.0


class Tolerance(NamedTuple):
    """Differences up to which a result is no failure; None takes the bounds of its dtype."""

    rtol: float | None
    atol: float | None

    def close(self, actual: Any, expected: Any) -> bool:
        """Return True for arrays that are equal within the bounds."""
        actual, expected = np.asarray(actual), np.asarray(expected)
        if actual.dtype.kind in "biu" or not actual.size:
            return actual.shape == expected.shape and bool((actual == expected).all())
        eps = float(dtypes.finfo(actual.dtype).eps) if actual.dtype.kind != "V" else 2.0**-7
        rtol = 1e4 * eps if self.rtol is None else self.rtol
        atol = 1e2 * eps if self.atol is None else self.atol
        kind = complex if actual.dtype.kind == "c" else float
        return bool(np.allclose(actual.astype(kind), expected.astype(kind), rtol, atol, equal_nan=True))


def compiled(program: Program) -> list[np.ndarray[Any, Any]]:
    """Return the results of the compiled program."""
    with set_current_trace(EVALUATE):
        return [np.asarray(o) for o in apply(program.jaxpr, [], program.args, CallSpec(program.jaxpr.name))]


def _nan(program: Program, tolerance: Tolerance) -> bool:
    """Return True for NaN from finite arguments."""
    finite = all(np.isfinite(a.astype(complex)).all() for a in program.args if dtypes.is_inexact(a.dtype))
    return finite and any(np.isnan(o.astype(complex)).any() for o in compiled(program) if dtypes.is_inexact(o.dtype))


def _mismatch(program: Program, tolerance: Tolerance) -> bool:
    actual = compiled(program)
    with np.errstate(all="ignore"):
        expected = reference(*program)
    return not all(tolerance.close(f, w) for f, w in zip(actual, expected, strict=True))


def _nondeterminism(program: Program, tolerance: Tolerance) -> bool:
    first = [o.tobytes() for o in compiled(program)]
    return any([o.tobytes() for o in compiled(program)] != first for _ in range(3))


def _abort(program: Program, tolerance: Tolerance) -> bool:
    """Return True where a process that runs the program dies by a signal, or does not end."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script(program, "abort"))
        command = [sys.executable, "-P", path]
        environment = {**os.environ, "FT_CACHE": "0"}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode < 0


class _SameError:
    """Failing with the type of error that the first failure has."""

    def __init__(self) -> None:
        self.kind: type[BaseException] | None = None

    def __call__(self, program: Program, tolerance: Tolerance) -> bool:
        try:
            compiled(program)
        except Exception as e:
            self.kind = self.kind or type(e)
            return type(e) is self.kind
        return False


KINDS: dict[str, Callable[[], Callable[[Program, Tolerance], bool]]] = {
    "error": _SameError, "abort": lambda: _abort, "nan": lambda: _nan, "mismatch": lambda: _mismatch,
    "nondeterminism": lambda: _nondeterminism,
}  # fmt: skip


def failure(fails: str | Callable[..., Any], tolerance: Tolerance) -> Fails:
    """Return the test of a kind of failure, or that of the user: a function of a program's function and arguments.

    Raises:
        ArgumentError: for an unknown kind.
    """
    if callable(fails):
        test: Callable[..., Any] = fails
        return lambda program: bool(test(lambda *args: compiled(Program(program.jaxpr, list(args))), *program.args))
    if fails not in KINDS:
        raise ArgumentError(
            f"fails={fails!r} of minify is unknown", fix=f"use {', '.join(map(repr, KINDS))}, or a function (g, *args)"
        )
    check = KINDS[fails]()
    return lambda program: check(program, tolerance)
