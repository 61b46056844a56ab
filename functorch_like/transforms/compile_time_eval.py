"""`ensure_compile_time_eval`: computing at once, in the middle of a function that is being traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from functorch_like.core import EVALUATE, Primitive, Trace, Tracer, running, state
from functorch_like.errors import ConcretizationError


class _Now(Trace):
    """Applies primitives at once, and refuses values that are not known yet."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for a in args:
            if isinstance(a, Tracer):
                raise ConcretizationError(
                    f"{prim.name} was given a {a.aval!r} of {a._trace!r}, which has no value while the function is "
                    "traced, inside of ensure_compile_time_eval",
                    fix="compute in the block only with what does not depend on the arguments of the function",
                )
        state.trace = EVALUATE
        try:
            return EVALUATE.process(prim, args, params)
        finally:
            state.trace = self


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block whose operations are computed at once, though the function around it is being traced.

    Under `jit` operations are recorded, even those on constants. In the block they run, so that their results have
    values: for a Python `if`, a shape, or a table that is computed once instead of in each call.

    Raises:
        ConcretizationError: inside the block, for operations on traced values.

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
    with running(_Now("ensure_compile_time_eval", EVALUATE)):
        yield
