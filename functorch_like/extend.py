"""Extensions of the package: the user's own primitives and interpreters.

A *primitive* is a record of rules: `Primitive(name, shape=, ref=, lower=, jvp=, transpose=, batch=, samples=)`. Each
rule is a function or `NotDefined("why; what to do instead")`. A call of the primitive applies it, under every
transformation.

An *interpreter* is a `Trace` with one method, `process(prim, args, params)`, and a `Tracer` that stands for its values.
`process` takes its own tracers apart, applies the primitive (or anything else) under its parent, and wraps the results:

>>> class Counted(Tracer):
...     __slots__ = ("value",)
...     def __init__(self, trace, value):
...         self._trace, self.value = trace, value
...     aval = property(lambda self: aval_of(self.value))
>>> class Count(Trace):
...     __slots__ = ("names",)
...     def process(self, prim, args, params):
...         values = [a.value if mine(self, a) else a for a in args]
...         with set_current_trace(self.parent):
...             out = prim(*values, **params)
...         self.names.append(prim.name)
...         return [Counted(self, o) for o in out] if prim.multiple_results else Counted(self, out)
>>> with new_trace(Count("count", current_trace())) as trace:
...     trace.names = []
...     x = Counted(trace, fnp.ones(3))
...     y = fnp.tanh(x * x)
>>> trace.names, y.value.shape
(['mul', 'tanh'], (3,))
"""

from __future__ import annotations

from typing import Any

from functorch_like.avals import ShapedArray as ShapedArray
from functorch_like.core import TABLE, state
from functorch_like.core import BatchAxis as BatchAxis
from functorch_like.core import NotDefined as NotDefined
from functorch_like.core import Primitive as Primitive
from functorch_like.core import SampleInput as SampleInput
from functorch_like.core import Trace as Trace
from functorch_like.core import Tracer as Tracer
from functorch_like.core import UndefinedPrimal as UndefinedPrimal
from functorch_like.core import aval_of as aval_of
from functorch_like.core import bind as bind
from functorch_like.core import new_trace as new_trace
from functorch_like.core import set_current_trace as set_current_trace
from functorch_like.errors import ArgumentError
from functorch_like.ir.jaxpr import Jaxpr as Jaxpr
from functorch_like.ir.jaxpr import evaluate as evaluate_jaxpr
from functorch_like.primitives import load as _load

_load()  # all of the package's primitives, so that a user's primitive cannot take one of their names


def current_trace() -> Trace:
    """Return the current trace, which is the parent of a new one.

    >>> ft.extend.current_trace()
    eval
    """
    return state.trace


def mine(trace: Trace, value: Any) -> bool:
    """Return True if a value is a tracer of this trace; `process` passes other values to the parent as they are.

    Args:
        trace: a trace.
        value: any operand of a primitive.

    >>> ft.extend.mine(ft.extend.current_trace(), 1.0)
    False
    """
    return isinstance(value, Tracer) and value._trace is trace


def primitives() -> dict[str, Primitive]:
    """Return all primitives by name, those of users included.

    >>> ft.extend.primitives()["add"]
    add
    """
    return dict(TABLE)


def forget(primitive: Primitive) -> None:
    """Remove a user's primitive from the table, so that its name can be defined again: by a notebook cell, for example.

    Args:
        primitive: a primitive that the user has made.

    Raises:
        ArgumentError: for a primitive of the package, or another object.

    >>> ft.extend.forget(ft.extend.primitives()["add"])
    Traceback (most recent call last):
    ...
    functorch_like.errors.ArgumentError: add is the package's own
    ...
    """
    if not isinstance(primitive, Primitive) or primitive.builtin:
        raise ArgumentError(f"{primitive!r} is the package's own", fix="forget only primitives that you made")
    if TABLE.get(primitive.name) is primitive:
        del TABLE[primitive.name]


__all__ = [
    "BatchAxis", "Jaxpr", "NotDefined", "Primitive", "SampleInput", "ShapedArray", "Trace", "Tracer",
    "UndefinedPrimal", "aval_of", "bind", "current_trace", "evaluate_jaxpr", "forget", "mine", "new_trace",
    "primitives", "set_current_trace",
]  # fmt: skip
