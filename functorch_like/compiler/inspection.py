"""Inspection of running programs: `debug` sets a function of the arguments and results of each run."""

from __future__ import annotations

from functorch_like.backends import xla

#: Function `(program, arguments, results) -> None` that is called after each run of a program, or None. With a
#: function, every call goes through Python.
INSPECTED = xla.config("inspected", None, in_trace_key=False)
