"""`jit(f).warmup`: programs compiled ahead of their calls, several at a time, in threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import configuration
from functorch_like.calling.call_signature import FlatCall, check_hashable
from functorch_like.core import Tracer
from functorch_like.errors import ArgumentError

if TYPE_CHECKING:
    from functorch_like.transforms.jit_stages import Traced
    from functorch_like.transforms.jit_state import JitState

_lock = threading.Lock()


def compile_ahead(jitted: JitState, specs: Sequence[Any], wait: bool) -> list[Future[None]]:
    """Trace for each tuple of arguments here, and compile in threads; a call waits for its program.

    Raises:
        ArgumentError: for specs that are not tuples, functions that close over traced values, and "max-autotune".
    """
    name = jitted.spec.name
    if jitted.spec.mode == "max-autotune":
        raise ArgumentError(
            f'{name} is compiled with mode="max-autotune", which measures programs on arguments',
            fix="call it once with arrays",
        )
    for spec in specs:
        if not isinstance(spec, tuple):
            raise ArgumentError(
                f"warmup of {name} takes a tuple of arguments for each signature, got a {type(spec).__name__}",
                fix="f.warmup((x, y), (x2, y2)); for a function of one argument f.warmup((x,))",
            )
        check_hashable(jitted.static, spec, {}, name)
    calls = [FlatCall(jitted.static, spec, {}, abstract=True) for spec in specs]
    traces = [jitted.whole(call) for call in calls]
    if any(call.traced() for call in calls) or any(isinstance(c, Tracer) for t in traces for c in t.consts):
        raise ArgumentError(
            f"{name} is warmed up inside of a transformation, where it has no program of its own",
            fix="call warmup outside of it",
        )
    futures = [_compiled(jitted, traced, call) for traced, call in zip(traces, calls, strict=True)]
    if wait:
        for future in futures:
            future.result()
    return futures


def _compiled(jitted: JitState, traced: Traced, call: FlatCall) -> Future[None]:
    """The future of one program, which is compiled once."""
    key = jitted.program_key(traced, call)
    with _lock:
        pending = traced.pending.get(key)
        if pending is not None:
            return pending
        if key in traced.programs:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        settings = configuration.snapshot()  # each thread has its own

        def compile_program() -> None:
            try:
                with configuration.adopted(settings):
                    jitted.compile(traced, call, key)
            finally:
                traced.pending.pop(key, None)

        future = traced.pending[key] = _pool().submit(compile_program)
        return future


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), "functorch_like.warmup")
