"""Explicit axes of meshes: the split of results, given that of operands.

Types of values on a mesh with axes of type `AxisType.Explicit` say how each dimension is split: `f32[8@data,4]`. The
shape rules of primitives know nothing of this. Here are the rules for it: each takes a `Case` and returns the axes that
split each dimension of the results. Where operands contradict each other, or where a split dimension would have to be
brought together, they raise ShardingTypeError, so that devices exchange data only where a program says so.

The semantics are those of JAX's "sharding in types"
(https://docs.jax.dev/en/latest/notebooks/explicit-sharding.html).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.errors import ShardingTypeError
from functorch_like.explicit_axes import indexing, movement, products, whole_dimensions
from functorch_like.explicit_axes.case import Axes, Case, elementwise, same_as_operands

#: Function of a `Case`: the axes of each result as a list, or those of all results.
Rule = Callable[[Case], list[Axes] | Axes]


def _of_artifact(case: Case) -> list[Axes]:
    """Split results as those of the exported function, if they were on such a mesh."""
    known = [None if o.explicit is None or o.explicit.mesh != case.mesh else o.explicit.axes for o in case.outs]
    return [((),) * o.ndim if axes is None else axes for o, axes in zip(case.outs, known, strict=True)]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("copy", "materialize", "stop_gradient", "name", "memory_placement"), elementwise),
    **dict.fromkeys(("xla_metadata", "layout_constraint", "threefry2x32", "philox4x32"), elementwise),
    "call_exported": _of_artifact,
    **dict.fromkeys(("optimization_barrier", "shard_alike"), same_as_operands),
    **movement.RULES,
    **products.RULES,
    **indexing.RULES,
    **whole_dimensions.RULES,
}
#: Primitives of the first order whose shape rules give types.
_TYPED = frozenset(("sharding_constraint", "retyped", "psum", "pmax", "pmin", "pvary", "control_dep"))


def results_of(prim: Any, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    """Apply the shape rule of a primitive to operands of which some are split over Explicit axes.

    Raises:
        ShardingTypeError: where the split of a result is in doubt, and for primitives without a rule.
    """
    name = prim.name if prim.builtin else ""  # a user's primitive may have the name of one under JAX's names
    if name in _TYPED or prim.partial_eval is not None or prim.evaluate is not None:
        return prim.shape(*avals, **params)  # of primitives of higher order, the types are those of a jaxpr
    out = prim.shape(*(aval.split(None) for aval in avals), **params)
    outs = list(out) if prim.multiple_results else [out]
    case = Case(prim.name, list(avals), outs, params)
    rule = RULES.get(name)
    if rule is None and prim.builtin and (prim.kind == "elementwise" or prim.where.startswith("elementwise/")):
        rule = elementwise
    if rule is None:
        raise ShardingTypeError(
            f"{prim.name} has no rule for operands that Explicit axes split",
            fix="reshard them to P() before, or call it by auto_axes(f, out_sharding=P(...))",
        )
    found = rule(case)
    each = found if isinstance(found, list) else [found] * len(outs)
    typed = [
        aval.split(ExplicitAxes.of(case.mesh, case.checked(axes, aval))) for aval, axes in zip(outs, each, strict=True)
    ]
    return tuple(typed) if prim.multiple_results else typed[0]
