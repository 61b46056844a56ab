"""Carries of loops: a body must return a carry of the type that it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes, source_info
from functorch_like.avals import ShapedArray
from functorch_like.calling import traced_function
from functorch_like.calling.call_signature import FlatCall
from functorch_like.calling.traced_function import TracedFunction, structure_diff_table
from functorch_like.core import ArrayImpl, Tracer
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError, ShardingTypeError, TreeError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.lax.operands import error
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import rearranged
from functorch_like.primitives.structural.sharding_constraint import split_as
from functorch_like.source_info import name_of


class LoopBody(NamedTuple):
    """A staged body that returns a carry of the type it takes.

    Attributes:
        jaxpr: from `(*consts, *carry, *others)` to `(*carry, *ys)`.
        consts: the values it closes over.
        starts: the first carry, in the dtypes of the jaxpr.
        carry_tree: the structure of the carry.
        y_tree: the structure of the other results.
    """

    jaxpr: Jaxpr
    consts: list[Any]
    starts: list[Any]
    carry_tree: Any
    y_tree: Any


def fixed_point(
    f: Callable[..., Any], call: FlatCall, starts: Sequence[Any], what: str, through: Any = None, pair: bool = True
) -> LoopBody:
    """Stage a body for a carry that keeps its type: numbers take the dtype that the body returns for them.

    Args:
        f: the user's function.
        call: its arguments; the carry comes first. Its avals are replaced where numbers take another dtype.
        starts: leaves of the first carry.
        what: the name of the loop.
        through: makes the body of the user's function.
        pair: whether the body gives `(carry, ys)`, or the carry alone.

    Raises:
        FtError: where the carry changes its type.
    """
    n = len(starts)
    carry_tree = call.tree.children()[0].children()[0]
    while True:
        body = traced_function.staged(f, call, what, through=through)
        out_tree, y_tree = _result(body, f, what) if pair else (body.out_tree, None)
        taken, outs = call.avals[:n], body.jaxpr.out_avals[: out_tree.num_leaves]
        if out_tree != carry_tree:
            raise _changed(f, what, (carry_tree, out_tree), (taken, outs))
        joined = [_join(a, o) for a, o in zip(taken, outs, strict=True)]
        carry_avals = [w for w in joined if w is not None]
        # A weakly typed carry may come back strongly typed, as in JAX: the body is not traced again for it.
        pairs = list(zip(carry_avals, outs, strict=False))
        same = carry_avals == taken and all(a.dtype == o.dtype for a, o in pairs)
        # At the fixed point a number may still be of a higher kind than the body's result: 0.0 for an integer.
        if len(carry_avals) < n or (carry_avals == taken and not same):
            raise _changed(f, what, (carry_tree, out_tree), (taken, outs))
        if same:
            return LoopBody(body.jaxpr, body.consts, list(map(_as, starts, taken)), carry_tree, y_tree)
        call.avals[:n] = carry_avals


def _join(taken: ShapedArray, returned: ShapedArray) -> ShapedArray | None:
    """Return the type of a carry that the body can both take and return; None if there is none."""
    if taken.shape != returned.shape:
        return None
    if taken.explicit != returned.explicit:
        if taken.explicit is not None:
            return None
        taken = taken.split(returned.explicit)
    if taken.dtype == returned.dtype:
        return taken
    if not taken.weak_type:
        return None
    return taken.update(dtype=dtypes.promote(taken, returned)[0], weak_type=False)


def _as(x: Any, aval: ShapedArray) -> Any:
    if type(x) is ArrayImpl or isinstance(x, Tracer):
        if aval.explicit != x.aval.explicit:
            return _as(split_as(x, aval.explicit), aval)
        same = x.aval.dtype == aval.dtype and x.aval.weak_type == aval.weak_type
        return x if same else structural.convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)
    host = x if x.dtype == aval.dtype else np.asarray(x, aval.dtype)
    host = host[()] if aval.weak_type and not host.shape else host  # a NumPy scalar is weak
    return host if aval.explicit is None else split_as(host, aval.explicit)


def _result(body: TracedFunction, f: Any, what: str) -> tuple[Any, Any]:
    """Return the structures of the carry and of the other results."""
    parts = body.out_tree.children()
    if len(parts) == 2 and body.out_tree.node_data()[0] in (tuple, list):
        return tuple(parts)
    result = body.out_tree.unflatten(body.jaxpr.out_avals)
    raise error(
        ArgumentError,
        f"the body of lax.{what}, {described(f)}, returned {result!r:.100}, which is not a pair",
        "return (carry, y); y may be None",
    )


def _changed(f: Any, what: str, trees: Sequence[Any], avals: Sequence[Sequence[ShapedArray]]) -> FtError:
    if what == "fori_loop":  # the counter is not part of the user's carry
        trees, avals = (
            [t.children()[-1] for t in trees],
            [a[len(a) - t.children()[-1].num_leaves :] for t, a in zip(trees, avals, strict=True)],
        )
    table = structure_diff_table(["taken", "returned"], trees, avals, "carry")
    if trees[0] != trees[1]:
        kind, fix = TreeError, "return the structure that is taken; None is a structure of its own"
    elif [a.shape for a in avals[0]] != [a.shape for a in avals[1]]:
        kind, fix = ShapeError, "return the shapes that are taken: start with the full shape, e.g. by broadcast_to"
    elif any(a.explicit != b.explicit for a, b in zip(*avals, strict=True)):
        kind, fix = ShardingTypeError, "reshard the carry that is returned as the one that is taken"
    else:
        kind, fix = DtypeError, "start with the dtype that is returned, or convert what is returned with astype"
    return error(
        kind, f"the body of lax.{what}, {described(f)}, returns another type of carry than it takes:\n{table}", fix
    )


def described(f: Any) -> str:
    """Return the name and line of a function, for errors."""
    code = getattr(f, "__code__", None)
    if code is None:
        return name_of(f)
    return f"{name_of(f)} at {source_info.Line(code.co_filename, code.co_firstlineno, '').short}"


def unchanged(jaxpr: Jaxpr, num_consts: int, num_carry: int) -> tuple[Jaxpr, list[bool]]:
    """Return which carries a body returns unchanged, and the body with these moved to the end of its consts."""
    n, m = num_consts, num_consts + num_carry
    same = [v is o for v, o in zip(jaxpr.inputs[n:m], jaxpr.outputs, strict=False)]
    if not any(same):
        return jaxpr, same
    inputs = [*range(n), *(n + k for k, s in enumerate(same) if s), *(n + k for k, s in enumerate(same) if not s)]
    outputs = [k for k, s in enumerate(same) if not s] + list(range(num_carry, len(jaxpr.outputs)))
    return rearranged(jaxpr, [*inputs, *range(m, len(jaxpr.inputs))], outputs), same


def merged(starts: Sequence[Any], same: Sequence[bool], ends: Sequence[Any]) -> list[Any]:
    """Return the last carry, from unchanged first values and results of the primitive."""
    rest = iter(ends)
    arrays = (ArrayImpl, Tracer)
    return [
        (s if isinstance(s, arrays) else structural.copy(s)) if u else next(rest)
        for s, u in zip(starts, same, strict=True)
    ]
