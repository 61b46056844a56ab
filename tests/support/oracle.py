"""An interpreter that evaluates primitives in NumPy, by their `ref`, to run derivative and batch rules.

Each result is compared with the primitive's shape rule, so the primitives inside a rule are checked too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.core import Primitive, Tracer, aval_of


class Reference(core.Trace):
    """Evaluation by `ref`; `bound` lists the primitives that were applied."""

    __slots__ = ("bound",)

    def __init__(self) -> None:
        super().__init__("reference", core.EVALUATE)
        self.bound: list[Primitive] = []

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        self.bound.append(prim)
        for a in args:
            assert not isinstance(a, Tracer), f"{prim} was given {a!r}, a tracer of another transformation"
        expected = core.abstract_eval(prim, [aval_of(a) for a in args], params)
        # Rules use only the shapes and dtypes of integer operands that they pass on, so plain copies are enough.
        out = prim.ref(*[np.asarray(a, aval_of(a).dtype) for a in args], **params)
        agree(prim, out, expected)
        return [np.asarray(o) for o in out] if prim.multiple_results else np.asarray(out)


def agree(prim: Primitive, out: Any, expected: Any) -> None:
    """Raise unless results have the shapes and dtypes of the shape rule."""
    outs = out if prim.multiple_results else (out,)
    avals = expected if prim.multiple_results else (expected,)
    assert len(outs) == len(avals), f"{prim} has {len(outs)} results, its shape rule says {len(avals)}"
    for o, aval in zip(outs, avals, strict=True):
        assert isinstance(o, (np.ndarray, np.generic)), f"ref of {prim} gives a {type(o).__name__}"
        assert o.shape == aval.shape, f"{prim} gives shape {o.shape}, its shape rule says {aval.shape}"
        assert o.dtype == aval.dtype, f"{prim} gives {o.dtype}, its shape rule says {aval.dtype}"


@contextmanager
def reference() -> Generator[Reference]:
    """Evaluate primitives by NumPy inside the block."""
    with core.set_current_trace(Reference()) as trace:
        yield trace
