"""reduce: reductions by a function of the user."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from functorch_like import core, dtypes, source_info, tree
from functorch_like.avals import ShapedArray
from functorch_like.caches import Cache
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, UnsupportedError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.lax import elementwise as lax_elementwise
from functorch_like.lax.operands import axes_of, error, value
from functorch_like.lax.reductions import initial, is_identity
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.user_reductions import reduce as higher
from functorch_like.primitives.reductions import reductions

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.typing import Axis, PyTree

#: Functions that users pass; the primitive that reduces, the one that combines, and the identity by dtype.
Known: TypeAlias = tuple[tuple[Callable[..., Any], ...], Any, Any, Callable[[Any], Any]]

_KNOWN: list[Known] = [
    (
        (lax_elementwise.add, elementwise.add, operator.add, np.add),
        structural.reduce_sum,
        elementwise.add,
        lambda dtype: np.zeros((), dtype),
    ),
    (
        (lax_elementwise.mul, elementwise.mul, operator.mul, np.multiply),
        reductions.reduce_prod,
        elementwise.mul,
        lambda dtype: np.ones((), dtype),
    ),
    (
        (lax_elementwise.max, elementwise.max, max, np.maximum),
        reductions.reduce_max,
        elementwise.max,
        reductions.lowest,
    ),
    (
        (lax_elementwise.min, elementwise.min, min, np.minimum),
        reductions.reduce_min,
        elementwise.min,
        reductions.highest,
    ),
    (
        (lax_elementwise.bitwise_and, elementwise.and_, operator.and_),
        reductions.reduce_and,
        elementwise.and_,
        lambda dtype: np.invert(np.zeros((), dtype)),
    ),
    (
        (lax_elementwise.bitwise_or, elementwise.or_, operator.or_),
        reductions.reduce_or,
        elementwise.or_,
        lambda dtype: np.zeros((), dtype),
    ),
    (
        (lax_elementwise.bitwise_xor, elementwise.xor, operator.xor),
        reductions.reduce_xor,
        elementwise.xor,
        lambda dtype: np.zeros((), dtype),
    ),
]

_BODIES: weakref.WeakKeyDictionary[Any, Cache[Any, Jaxpr]] = weakref.WeakKeyDictionary()


def reduce(operands: T, init_values: PyTree, computation: Callable[[Any, Any], Any], dimensions: Axis) -> T:
    """Reduce dimensions by a function of two scalars.

    Args:
        operands: array, or pytree of arrays of one shape, which are reduced together.
        init_values: a scalar for each operand, in the same structure; the identity of the computation.
        computation: `(a, b) -> c` of scalars, or of pytrees of scalars in the structure of the operands; associative
            and commutative. lax.add, lax.mul, lax.max, lax.min and the bitwise ones have primitives of their own, which
            are faster.
        dimensions: dimensions to reduce.

    Returns:
        Arrays in the structure of the operands, without those dimensions.

    Raises:
        ShapeError: where the operands differ in shape, or lack a dimension.
        ArgumentError: where the results of the computation differ from its operands in shape or dtype.
        UnsupportedError: where the computation closes over arrays.

    >>> lax.reduce(fnp.asarray([[3, 1], [4, 1]]), 0, lambda a, b: 2 * a * 0 + (a | b), (1,)).tolist()
    [3, 5]
    """
    leaves, starts, structure = operands_of(operands, init_values)
    avals = [aval_of(x) for x in leaves]
    axes = axes_of(dimensions, avals[0].ndim)
    found = known_or_body(_KNOWN, computation, structure, avals, "reduce")
    if isinstance(found, Jaxpr):
        return structure.unflatten(higher.reduce(*leaves, *starts, jaxpr=found, dimensions=axes))
    _, primitive, combine, identity = found
    out, start = primitive(leaves[0], axes=axes), starts[0]
    if not is_identity(start, identity(avals[0].dtype)):
        out = combine(out, structural.broadcast_in_dim(start, shape=aval_of(out).shape, broadcast_dimensions=()))
    return structure.unflatten([out])


def known_or_body(
    table: Sequence[Known], computation: Callable[..., Any], structure: Any, avals: Sequence[ShapedArray], name: str
) -> Known | Jaxpr:
    """Return the entry of a table whose function a user's is, or computes the same as; else its body."""
    plain = getattr(computation, "__wrapped__", computation)  # the function that users import is wrapped
    known = next((k for k in table if any(plain is c for c in k[0])), None) if len(avals) == 1 else None
    if known is not None and dtypes.is_complex(avals[0].dtype) and known[2] in (elementwise.max, elementwise.min):
        known = None  # the primitives compare real numbers
    if known is not None:
        return known
    body = body_of(computation, structure, avals, name)
    if len(avals) > 1 or len(body.equations) != 1:
        return body
    (made,) = body.equations
    if list(made.outputs) != body.outputs or set(made.inputs) != set(body.inputs):
        return body
    return next((k for k in table if made.prim is k[2]), body)


def operands_of(operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    """Return arrays, an initial value for each in its dtype, and their structure."""
    leaves, structure = tree.flatten(operands)
    starts, start_structure = tree.flatten(init_values)
    if len(leaves) != len(starts) or structure != start_structure or not leaves:
        raise error(
            ArgumentError,
            f"got {len(starts)} initial values {start_structure} for {len(leaves)} operands {structure}",
            "give an initial value for each operand, in the same structure",
        )
    leaves = [value(x) for x in leaves]
    return leaves, [initial(s, aval_of(x).dtype) for s, x in zip(starts, leaves, strict=True)], structure


def body_of(computation: Callable[..., Any], structure: Any, avals: Sequence[ShapedArray], name: str) -> Jaxpr:
    """Return the computation on scalars of these operands as a jaxpr, recorded once for each function."""
    scalars = [ShapedArray((), a.dtype) for a in avals]
    key = (structure, *scalars)
    try:
        cache = _BODIES.setdefault(computation, Cache())
    except TypeError:  # no weak references to it
        cache = Cache()
    result = cache.get(key)
    if result is None:

        def flat(*values: Any) -> list[Any]:
            a, b = (structure.unflatten(half) for half in (values[: len(scalars)], values[len(scalars) :]))
            outs, out_structure = tree.flatten(computation(a, b))
            if out_structure != structure:
                raise error(
                    ArgumentError,
                    f"the computation of lax.{name} takes {structure}, and returns {out_structure}",
                    "return the structure that it takes",
                )
            return [value(o) for o in outs]

        title = source_info.name_of(computation)
        result, consts = stage(flat, [*scalars, *scalars], name=title, parent=core.EVALUATE, chain=name)
        if consts:
            raise error(
                UnsupportedError,
                f"the computation of lax.{name} closes over {aval_of(consts[0])!r}",
                "pass what it needs as another operand, broadcast to the shape of the first",
            )
        cache[key] = result
    return result
