"""`ensure_compile_time_eval`: eager evaluation inside of a function that is being traced."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from functorch_like.core import EVALUATE, Primitive, Trace, Tracer, set_current_trace, state


class _Now(Trace):
    """Trace that applies primitives at once; those of traced values go to the trace around the block."""

    __slots__ = ()

    def __init__(self, name: str, parent: Trace) -> None:
        super().__init__(name, parent)
        self.staging = False

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        trace = self.parent if any(isinstance(a, Tracer) for a in args) else EVALUATE
        state.trace = trace
        try:
            return trace.process(prim, args, params)
        finally:
            state.trace = self


@contextmanager
def ensure_compile_time_eval() -> Generator[None]:
    """Evaluate the operations of a block eagerly, even while the function around it is traced.

    Under `jit` operations are recorded, even those on constants. In the block they run, so that their results have
    values: for a Python `if`, a shape, or a table that is computed once instead of in each call.

    Operations on traced values are still recorded.

    Returns:
        A context manager.

    >>> import functorch_like as ft
    >>> @ft.jit
    ... def f(x):
    ...     with ft.ensure_compile_time_eval():
    ...         table = fnp.cumsum(fnp.arange(4))
    ...         size = int(table[-1])
    ...     return fnp.zeros(size) + x
    >>> f(1.0).shape
    (6,)
    """
    if not state.trace.staging:  # everything is computed at once, traced by grad and vmap or not
        yield
        return
    with set_current_trace(_Now("ensure_compile_time_eval", state.trace)):
        yield
