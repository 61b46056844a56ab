"""Evaluation of jaxprs in NumPy, by the `ref` rules of their primitives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal

#: Evaluates one equation on NumPy arrays and returns the list of its results.
Evaluate = Callable[[Equation, Sequence[Any]], Sequence[Any]]


def by_ref(equation: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the results of one equation by its `ref` rule."""
    out = equation.prim.ref(*operands, **equation.params)
    return out if equation.prim.multiple_results else (out,)


_evaluate: ContextVar[Evaluate] = ContextVar("evaluate", default=by_ref)


@contextmanager
def evaluating(evaluate: Evaluate) -> Generator[None]:
    """Replace the evaluation of equations within the block, also in bodies of loops, branches and calls.

    Args:
        evaluate: `(equation, operands) -> results`; it may call `by_ref` for the values.
    """
    token = _evaluate.set(evaluate)
    try:
        yield
    finally:
        _evaluate.reset(token)


def reference(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr in NumPy."""
    evaluate = _evaluate.get()
    values: dict[Any, Any] = dict(zip(jaxpr.inputs, args, strict=True))
    read: Callable[[Any], Any] = lambda a: a.value if type(a) is Literal else values[a]
    for e in jaxpr.equations:
        values.update(zip(e.outputs, evaluate(e, [read(a) for a in e.inputs]), strict=True))
    return [np.asarray(read(a)) for a in jaxpr.outputs]
