"""Looking into programs while they run: printing, callbacks, a prompt, and checks for NaN and infinities."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.debug.finite import infs as infs
from functorch_like.debug.finite import nans as nans
from functorch_like.debug.finite import set_infs as set_infs
from functorch_like.debug.finite import set_nans as set_nans
from functorch_like.debug.retracing import set_stale_programs as set_stale_programs
from functorch_like.debug.retracing import stale_programs as stale_programs

with _lazy_imports.block(__name__):
    from functorch_like.debug.minifying.api import minify as minify
    from functorch_like.debug.printing import callback as callback
    from functorch_like.debug.printing import log as log
    from functorch_like.debug.printing import print as print
    from functorch_like.debug.prompt import breakpoint as breakpoint
    from functorch_like.debug.visualize import inspect_array_sharding as inspect_array_sharding
    from functorch_like.debug.visualize import visualize_array_sharding as visualize_array_sharding
    from functorch_like.debug.visualize import visualize_sharding as visualize_sharding


__all__ = [
    "breakpoint",
    "callback",
    "infs",
    "inspect_array_sharding",
    "log",
    "minify",
    "nans",
    "print",
    "set_infs",
    "set_nans",
    "set_stale_programs",
    "stale_programs",
    "visualize_array_sharding",
    "visualize_sharding",
]
