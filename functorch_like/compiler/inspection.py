"""Inspection of programs as they run: `debug` sets a function that sees the arguments and results of each run."""

from __future__ import annotations

from functorch_like.backends import xla

#: Inspector of each run of a program: `(program, arguments, results) -> None`; None without one. With one, every call
#: goes through Python.
INSPECTED = xla.config("inspected", None, in_trace_key=False)
