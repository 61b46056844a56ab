"""Choosing what to compute when the program runs: cond, switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.calling import traced_function
from functorch_like.calling.call_signature import FlatCall
from functorch_like.calling.traced_function import TracedFunction, structure_diff_table
from functorch_like.calling.type_variables import R
from functorch_like.core import EVALUATE, ArrayImpl, Tracer, aval_of, state
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError, TreeError
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import CapturedRefs, stage
from functorch_like.lax.operands import error, held_refs
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.control_flow import cond as cond_primitives
from functorch_like.primitives.higher_order.control_flow.cond_branches import as_array, branches_memo, united
from functorch_like.source_info import name_of
from functorch_like.transforms.disable_jit import jit_is_disabled

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike, PyTree


def _operands(operands: tuple[Any, ...], operand: Any, name: str) -> tuple[Any, ...]:
    """Return operands that were passed by position or, a single one, by name."""
    if operand is tree.LEFT_OUT:
        return operands
    if operands:
        raise error(ArgumentError, f"lax.{name} got operands by position and operand=", "pass all of them by position")
    return (operand,)


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: PyTree,
    operand: PyTree = tree.LEFT_OUT,
) -> R:
    """Return `true_fun(*operands)` if the predicate holds, else `false_fun(*operands)`.

    Both functions are traced; only one of them runs. Under `vmap` with a predicate that differs between elements both
    run, and the result is selected for each element. If the function that is not selected has an infinite or undefined
    derivative at an element, the derivative there is NaN. Give it a harmless operand: `log(where(x > 0, x, 1))`.

    Args:
        pred: a boolean scalar, or a number, which counts as true where it is not zero.
        true_fun: function of the operands; it may close over arrays.
        false_fun: function of the operands; it returns a pytree of the structure, shapes and dtypes that `true_fun`
            returns. A Python number takes the dtype that the other function returns.
        operands: pytrees of arrays.
        operand: a single operand, passed by name instead.

    With an operand for each function the call is `cond(pred, true_operand, true_fun, false_operand, false_fun)`.

    Returns:
        The result of the function that runs.

    Raises:
        ShapeError: where pred is not a scalar, or the functions return different shapes.
        DtypeError: where pred is not a number, or the functions return different dtypes.
        TreeError: where the functions return different structures.

    >>> import functorch_like as ft
    >>> half = ft.jit(lambda n: lax.cond(n % 2 == 0, lambda k: k // 2, lambda k: 3 * k + 1, n))
    >>> half(6).item(), half(7).item()
    (3, 22)
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        own, other = false_fun, operands[1]  # JAX's older form: an operand for each function, ahead of it
        return cond(pred, lambda x, y: own(x), lambda x, y: other(y), true_fun, operands[0])
    operands = _operands(operands, operand, "cond")
    check_functions((true_fun, false_fun), "cond")
    aval = _scalar(pred, "cond", "predicate", "compare and reduce with .all() or .any(), or use lax.select")
    if dtypes.is_complex(aval.dtype):
        raise error(DtypeError, f"lax.cond chooses by a boolean, got {aval!r}", "compare it with a number")
    known = _known(pred)
    if known is not None:
        which: Any = int(bool(known))
        if jit_is_disabled():
            return (false_fun, true_fun)[which](*operands)
    else:
        which = pred if aval.dtype == dtypes.bool_ else elementwise.ne(pred, structural.full((), 0, aval.dtype))
        which = structural.convert_element_type(which, new_dtype=dtypes.int32, weak_type=False)
    return choose(which, (false_fun, true_fun), operands, "cond", (1, 0))


def switch(
    index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: PyTree, operand: PyTree = tree.LEFT_OUT
) -> R:
    """Return `branches[index](*operands)`; an index out of range is clamped.

    All branches are traced; one of them runs. Under `vmap` with an index that differs between elements all run, and
    the result is selected for each element.

    Args:
        index: an integer scalar.
        branches: functions of the operands; all return pytrees of one structure, with the same shapes and dtypes.
        operands: pytrees of arrays.
        operand: a single operand, passed by name instead.

    Returns:
        The result of the branch that runs.

    Raises:
        ShapeError: where index is not a scalar, or the functions return different shapes.
        DtypeError: where index is not an integer, or the functions return different dtypes.
        TreeError: where the functions return different structures.

    >>> [lax.switch(k, [lambda x: x, lambda x: x * x, lambda x: x + 1], 3.0).item() for k in (0, 1, 7)]
    [3.0, 9.0, 4.0]
    """
    operands = _operands(operands, operand, "switch")
    if not isinstance(branches, Sequence) or not branches:
        raise error(ArgumentError, f"lax.switch got branches={branches!r:.60}", "give a list of functions")
    branches = tuple(branches)
    check_functions(branches, "switch")
    aval = _scalar(index, "switch", "index", "use an index for each element with vmap, or lax.select_n")
    if not dtypes.is_integer(aval.dtype):
        raise error(DtypeError, f"lax.switch chooses by an integer, got {aval!r}", "convert it, or use lax.cond")
    last = len(branches) - 1
    known = _known(index) if last else 0
    if known is not None:
        which: Any = min(max(int(known), 0), last)
        if jit_is_disabled():
            return branches[which](*operands)
    else:
        bound = lambda k: structural.full((), k, aval.dtype)
        most = min(last, int(dtypes.iinfo(aval.dtype).max))
        which = elementwise.clamp(bound(0), index, bound(most))
        which = structural.convert_element_type(which, new_dtype=dtypes.int32, weak_type=False)
    return choose(which, branches, operands, "switch", range(len(branches)))


# ------------------------------------------------------------------------------------------------------------ choosing
def choose(
    which: Any,
    functions: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
    what: str,
    order: Sequence[int],
    handed: bool = False,
) -> Any:
    """Stage all functions, and apply the primitive. If the index is known while staging, apply that function alone.

    Args:
        which: an index as a Python int, where it is known, or an i32[].
        functions: in the order of the index.
        operands: pytrees.
        what: the name of the user's function.
        order: the indices of the functions as the user passed them, for notices and errors.
        handed: whether the operands include the values of Refs.
    """
    if not handed and (refs := held_refs()):
        return _handing(refs, which, functions, operands, what, order)
    try:
        call = traced_function.arguments(operands)
        bodies = {k: traced_function.staged(functions[k], call, what) for k in order}
    except (CapturedRefs, DtypeError) as e:
        failed = e
    else:
        return _apply(which, functions, call, bodies, what, order)
    return _with_refs(failed, which, functions, operands, what, order)


def _apply(
    which: Any, functions: Any, call: FlatCall, by_index: dict[int, TracedFunction], what: str, order: Sequence[int]
) -> Any:
    bodies = [by_index[k] for k in range(len(functions))]
    leaves = traced_function.operands(call)
    promoted = _promoted(bodies, [(k, name_of(functions[k])) for k in order], what)
    alone = len(bodies) == 1 or (state.trace.staging and not state.trace.all_branches)
    if isinstance(which, int) and alone:
        outs = evaluate(promoted[which], [*bodies[which].consts, *leaves])
        outs = [as_array(out, aval) for out, aval in zip(outs, promoted[which].out_avals, strict=True)]
    else:
        consts, branches = _united(bodies, promoted)
        index = np.asarray(which, np.int32) if isinstance(which, int) else which
        outs = cond_primitives.cond(index, *consts, *leaves, branches=branches)
    return bodies[0].out_tree.unflatten(outs)


def _with_refs(failed: FtError, which: Any, functions: Any, operands: Any, what: str, order: Sequence[int]) -> Any:
    """Apply `choose` with Refs among the operands or closed over; their new values are written afterwards.

    Raises:
        FtError: `failed`, where Refs are not its cause.
    """
    from functorch_like.ref.captured import among, captured_here, closing_over_refs  # few functions have Refs

    if isinstance(failed, CapturedRefs):
        return _handing(captured_here(failed), which, functions, operands, what, order)
    if not among(tree.leaves(tuple(operands))):
        raise failed
    functions, arrays = closing_over_refs(functions, operands)
    return choose(which, functions, arrays, what, order, True)


def _handing(refs: Any, which: Any, functions: Any, operands: Any, what: str, order: Sequence[int]) -> Any:
    """Apply `choose` with the values of Refs among the operands; their new values are written afterwards."""
    from functorch_like.ref.captured import Handed

    handed = Handed(refs)
    functions = [handed.function(f) for f in functions]
    values, result = choose(which, functions, (handed.values(), *operands), what, order, True)
    handed.put(values)
    return result


def _united(found: Sequence[TracedFunction], promoted: Sequence[Jaxpr]) -> Any:
    parts = [(jaxpr, body.consts) for jaxpr, body in zip(promoted, found, strict=True)]
    return branches_memo(promoted, "united", lambda: united(parts))


def _promoted(bodies: Sequence[TracedFunction], names: Sequence[tuple[int, str]], what: str) -> list[Jaxpr]:
    """Return branches with equal result avals: numbers take the dtype of the other branches.

    Raises:
        FtError: where structures, shapes or dtypes differ.
    """
    columns = [body.jaxpr.out_avals for body in bodies]
    if all(body.out_tree == bodies[0].out_tree for body in bodies):
        if all(column == columns[0] for column in columns):
            return [body.jaxpr for body in bodies]
        joined = [_join(leaf) for leaf in zip(*columns, strict=True)]
        out_avals = tuple(aval for aval in joined if aval is not None)
        if len(out_avals) == len(joined):
            return [_giving(body.jaxpr, out_avals) for body in bodies]
    raise _disagree(bodies, names, what)


def _join(leaf: Sequence[ShapedArray]) -> ShapedArray | None:
    """Return the common aval of a result of all branches; None if there is none.

    If all dtypes are equal, the result is weakly typed where that of the first branch is, as in JAX. The first branch
    of `cond` is `false_fun`.
    """
    dtype, weak = dtypes.promote(*leaf)
    weak = leaf[0].weak_type if all(a.dtype == dtype for a in leaf) else weak
    fits = all(a.shape == leaf[0].shape and (a.weak_type or a.dtype == dtype) for a in leaf)
    return ShapedArray(leaf[0].shape, dtype, weak) if fits else None


def _giving(jaxpr: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """Return a jaxpr with its results converted to avals."""

    def fun(*xs: Any) -> list[Any]:
        outs = evaluate(jaxpr, xs)
        return [
            o if aval_of(o) is w else structural.convert_element_type(o, new_dtype=w.dtype, weak_type=w.weak_type)
            for o, w in zip(outs, avals, strict=True)
        ]

    make = lambda: stage(fun, jaxpr.in_avals, name=jaxpr.name, origin=jaxpr.origin, parent=EVALUATE, chain="")[0]
    return jaxpr.memo(("giving", avals), make)


# -------------------------------------------------------------------------------------------------------------- checks
def check_functions(functions: Sequence[Any], what: str) -> None:
    """Raise ArgumentError for a branch that is not a function."""
    for f in functions:
        if not callable(f):
            raise error(
                ArgumentError,
                f"lax.{what} takes functions, got {f!r:.60} of type {type(f).__name__}",
                "pass the function itself, and its arguments after it; or choose between values with lax.select",
            )


def _scalar(x: Any, what: str, role: str, fix: str) -> ShapedArray:
    try:
        aval = aval_of(x)
    except FtError:
        raise error(
            DtypeError, f"the {role} of lax.{what} is {x!r:.60}, which is not a number", "pass a scalar"
        ) from None
    if aval.shape:
        raise error(ShapeError, f"the {role} of lax.{what} must be a scalar, got {aval!r}", fix)
    return aval


def _known(x: Any) -> Any:
    """Return the number if it is known without waiting for a computation; else None."""
    if isinstance(x, (Tracer, ArrayImpl)):
        if not (state.trace.staging or jit_is_disabled()):
            return None
        return x.concrete() if isinstance(x, Tracer) else x
    return x


def _disagree(found: Sequence[TracedFunction], names: Sequence[tuple[int, str]], what: str) -> FtError:
    trees = [found[k].out_tree for k, _ in names]
    columns = [found[k].jaxpr.out_avals for k, _ in names]
    of = {"cond": ["true_fun", "false_fun"], "switch": [f"branches[{k}]" for k, _ in names]}
    titles = of.get(what, [f"function {k}" for k, _ in names])
    who = ", ".join(f"{title} {name}" for title, (_, name) in zip(titles, names, strict=True))
    table = structure_diff_table(titles, trees, columns)
    if any(t != trees[0] for t in trees):
        kind, fix = TreeError, "return the same structure from each; None is a structure of its own"
    elif any([a.shape for a in c] != [a.shape for a in columns[0]] for c in columns):
        kind, fix = ShapeError, "make the shapes equal, e.g. with broadcast_to or reshape"
    else:
        kind, fix = DtypeError, "convert the results with astype"
    return error(kind, f"the functions of lax.{what} ({who}) give different results:\n{table}", fix)
