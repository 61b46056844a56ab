"""while_loop: a loop whose number of steps is not known in advance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from functorch_like import dtypes
from functorch_like.calling import traced_function
from functorch_like.calling.traced_function import TracedFunction, check_callable, wraps
from functorch_like.calling.type_variables import Carry
from functorch_like.errors import DtypeError, ShapeError, TreeError
from functorch_like.ir.trace_to_jaxpr import CapturedRefs
from functorch_like.lax.carries import LoopBody, described, fixed_point, merged, unchanged
from functorch_like.lax.operands import error, held_refs
from functorch_like.primitives.higher_order.control_flow import while_loop as while_primitives
from functorch_like.primitives.higher_order.jaxpr_jvp_and_batch import rearranged
from functorch_like.transforms.disable_jit import jit_is_disabled

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike, PyTree


@overload
def while_loop(
    cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: Carry
) -> Carry: ...
@overload
def while_loop(
    cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: PyTree
) -> Carry: ...
def while_loop(cond_fun: Callable[[Carry], ArrayLike], body_fun: Callable[[Carry], Carry], init_val: Any) -> Carry:
    """Apply a function repeatedly, while a condition holds.

    It computes what this loop does, as one compiled program::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    It has forward mode, and no reverse mode: the number of steps is not known when the loop is compiled, so no memory
    can be allocated for the residuals of all steps. Under `vmap` the loop runs until the last element has stopped;
    elements that have stopped before keep their values.

    Args:
        cond_fun: function of the value; returns a boolean scalar.
        body_fun: function of the value; its result has the structure, shapes and dtypes of its operand.
        init_val: the first value, a pytree of arrays and numbers. A Python number takes the dtype that body_fun
            returns for it.

    Returns:
        The first value for which the condition does not hold.

    Raises:
        ShapeError: where cond_fun does not return a scalar, or shapes of the value change.
        DtypeError: where cond_fun does not return a boolean, or dtypes of the value change.
        TreeError: where the structure of the value changes.

    >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3).item()
    192
    """
    check_callable(cond_fun, "lax.while_loop", "lax.while_loop(lambda val: val < 9, lambda val: val + 1, init_val)")
    check_callable(body_fun, "lax.while_loop", "lax.while_loop(lambda val: val < 9, lambda val: val + 1, init_val)")
    return run_while(cond_fun, body_fun, init_val, "while_loop")


def run_while(
    cond_fun: Any,
    body_fun: Any,
    init_val: Any,
    what: str,
    through: Any = None,
    *,
    expected_steps: int | None = None,
    handed: bool = False,
) -> Any:
    """Run a while loop.

    Args:
        cond_fun: the condition.
        body_fun: the body.
        init_val: the carry at the start.
        what: name for errors.
        through: makes the body from the user's function.
        expected_steps: number of steps of most runs, for loops that take few; None if unknown.
        handed: whether the carry has the values of Refs.
    """
    if jit_is_disabled():
        step = body_fun if through is None else through(body_fun)
        while cond_fun(init_val):
            init_val = step(init_val)
        return init_val
    if not handed and (refs := held_refs()):
        return _with_refs(refs, cond_fun, body_fun if through is None else through(body_fun), init_val, what)
    call = traced_function.arguments((init_val,))
    try:
        body = fixed_point(body_fun, call, traced_function.operands(call), what, through, pair=False)
        cond = traced_function.staged(cond_fun, call, f"{what} condition")
    except CapturedRefs as e:
        captured = e
    else:
        hints = {} if expected_steps is None else {"expected_steps": expected_steps}
        return _apply(body, cond, cond_fun, hints)
    from functorch_like.ref.captured import captured_here  # few functions have Refs

    return _with_refs(
        captured_here(captured), cond_fun, body_fun if through is None else through(body_fun), init_val, what
    )


def _apply(body: LoopBody, cond: TracedFunction, cond_fun: Any, hints: dict[str, int]) -> Any:
    """Bind the primitive."""
    _check_condition(cond, cond_fun)
    n, m, carried = len(cond.consts), len(body.consts), len(body.starts)
    steps, same = body.jaxpr.memo(("while", m), lambda: unchanged(body.jaxpr, m, carried))
    order = [n + k for k in sorted(range(carried), key=lambda k: not same[k])]
    condition = cond.jaxpr.memo(("while", n, *same), lambda: rearranged(cond.jaxpr, [*range(n), *order]))
    still = [s for s, u in zip(body.starts, same, strict=True) if u]
    moving = [s for s, u in zip(body.starts, same, strict=True) if not u]
    outs = while_primitives.while_(
        *(*cond.consts, *still, *body.consts, *still, *moving),
        cond_jaxpr=condition,
        body_jaxpr=steps,
        cond_nconsts=n + len(still),
        body_nconsts=m + len(still),
        **hints,
    )
    return body.carry_tree.unflatten(merged(body.starts, same, outs))


def _with_refs(refs: Any, cond_fun: Any, step: Any, init_val: Any, what: str) -> Any:
    """Run the loop with the values of Refs in its carry; the new values are written afterwards."""
    from functorch_like.ref.captured import Handed

    handed = Handed(refs)
    condition, steps = handed.function(cond_fun, writes=False), handed.function(step)
    values, result = run_while(
        wraps(cond_fun)(lambda held: condition(*held)[1]),
        wraps(step)(lambda held: steps(*held)),
        (handed.values(), init_val),
        what,
        handed=True,
    )
    handed.put(values)
    return result


def _check_condition(cond: TracedFunction, fun: Any) -> None:
    avals = cond.jaxpr.out_avals
    single = cond.out_tree.num_nodes == 1 and len(avals) == 1
    if single and not avals[0].shape and avals[0].dtype == dtypes.bool_:
        return
    shown = repr(avals[0]) if single else repr(cond.out_tree.unflatten(avals))
    kind = TreeError if not single else ShapeError if avals[0].shape else DtypeError
    fix = "compare with a number; reduce an array with .any() or .all()"
    raise error(
        kind, f"the condition of lax.while_loop, {described(fun)}, returns {shown:.100}, which is not a bool[]", fix
    )
