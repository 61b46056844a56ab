"""Compiled loops over the slices of arrays: scan, map."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.calling import traced_function
from functorch_like.calling.call_signature import FlatCall
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.calling.type_variables import Carry, R, X, Y
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, FtError, ShapeError, ShardingTypeError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import CapturedRefs
from functorch_like.lax.carries import fixed_point, merged, unchanged
from functorch_like.lax.operands import error, held_refs
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.control_flow import scan as scan_primitives
from functorch_like.transforms.disable_jit import jit_is_disabled
from functorch_like.transforms.vmap import vmap

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


class Watched:
    """Base of wrappers around the slices of a scan that count its steps: see `ft.progress`."""

    def attach(self, f: Callable[..., Any], length: int | None, reverse: bool) -> tuple[Callable[..., Any], Any]:
        """Return the function and the slices to scan in their place."""
        raise NotImplementedError


@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Y]: ...
@overload  # the carry may be an array where init is a number; slices may have another type than the array
def scan(
    f: Callable[[Carry, Any], tuple[Carry, Y]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Y]: ...
def scan(
    f: Callable[[Carry, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Y]:
    """Apply a function to one slice after the other, with a carry, and stack the other results.

    It computes what this loop does, as one compiled program whose size does not depend on the number of steps::

        ys = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Reverse mode stores the residuals of all steps, stacked; values that are the same for all steps are stored once.

    Args:
        f: `(carry, x) -> (carry, y)`; the carry it returns has the structure, shapes and dtypes of the one it takes.
            It may close over arrays. It is traced once for each signature.
        init: the first carry, a pytree of arrays and numbers. A Python number takes the dtype that f returns for it.
        xs: pytree of arrays with the same size along the first axis, or None; or `ft.progress` of these.
        length: the number of steps; required if xs has no leaves.
        reverse: start with the last slice. Results stay in the order of the slices.
        unroll: number of steps in one round of the compiled loop; True for all of them.

    Returns:
        The last carry, and the pytree of the y of all steps, stacked along a new first axis.

    Raises:
        ShapeError: where the first sizes of xs differ from each other or from length, or shapes of the carry change.
        DtypeError: where dtypes of the carry change.
        TreeError: where the structure of the carry changes.
        ArgumentError: where f does not return a pair, or length or unroll are not counts.

    >>> import functorch_like as ft
    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0, fnp.asarray([1, 2, 3, 4]))
    >>> total.item(), sums.tolist()
    (10, [1, 3, 6, 10])
    """
    check_callable(f, "lax.scan", "lax.scan(lambda carry, x: (carry, y), init, xs)")
    if isinstance(xs, Watched):
        f, xs = xs.attach(f, length, bool(reverse))
    return loop(f, init, xs, length, reverse, unroll, "scan")


def _check_rows(xs: Sequence[ShapedArray], what: str) -> None:
    """Refuse arrays whose leading dimension Explicit axes split.

    Raises:
        ShardingTypeError: for such an array.
    """
    for aval in xs:
        if aval.explicit is not None and aval.explicit.axes[0]:
            raise ShardingTypeError(
                f"lax.{what} takes the rows of {aval!r} one after the other, and its devices have different ones",
                fix="reshard it, so that the leading dimension is whole; or use vmap",
            )


def loop(
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    length: Any,
    reverse: Any,
    unroll: Any,
    what: str,
    through: Callable[[Any], Callable[..., Any]] | None = None,
    handed: bool = False,
) -> Any:
    """Run a scan; `through` makes its body from the user's function; `handed` if the carry has the values of Refs."""
    call = traced_function.arguments((init, xs))
    carried = len(tree.leaves(init))
    steps = _length(call, carried, xs, length, what)
    rounds = _unroll(unroll, steps, what)
    if jit_is_disabled():
        return _python_scan(f if through is None else through(f), init, xs, steps, reverse)
    if not handed and (refs := held_refs()):
        return _handing(refs, f, init, xs, length, reverse, unroll, what, through)
    leaves = traced_function.operands(call)
    _check_rows(call.avals[carried:], what)
    call.avals[carried:] = [a.without_dimension(0) for a in call.avals[carried:]]
    try:
        body = fixed_point(f, call, leaves[:carried], what, through)
    except CapturedRefs as e:
        captured = e
    else:
        outs = apply(body.jaxpr, body.consts, body.starts, leaves[carried:], steps, bool(reverse), rounds)
        return body.carry_tree.unflatten(outs[:carried]), body.y_tree.unflatten(outs[carried:])
    from functorch_like.ref.captured import captured_here  # few functions have Refs

    return _handing(captured_here(captured), f, init, xs, length, reverse, unroll, what, through)


def _handing(
    refs: Any, f: Any, init: Any, xs: Any, length: Any, reverse: Any, unroll: Any, what: str, through: Any
) -> Any:
    """Run a scan with the values of Refs in its carry; their new values are written afterwards."""
    from functorch_like.ref.captured import Handed

    handed = Handed(refs)
    step = handed.function(f if through is None else through(f))

    @wraps(f)
    def threaded(carry: Any, x: Any) -> Any:
        values, result = step(*carry, x)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return result  # the loop raises for it
        return (values, result[0]), result[1]

    (values, carry), ys = loop(threaded, (handed.values(), init), xs, length, reverse, unroll, what, None, True)
    handed.put(values)
    return carry, ys


def apply(
    jaxpr: Jaxpr, consts: list[Any], starts: list[Any], xs: list[Any], length: int, reverse: bool, unroll: int
) -> list[Any]:
    """Bind the primitive. A carry that the body returns unchanged becomes a const."""
    n, m = len(consts), len(starts)
    made, same = jaxpr.memo(("scan", n, m), lambda: unchanged(jaxpr, n, m))
    still = [s for s, u in zip(starts, same, strict=True) if u]
    moving = [s for s, u in zip(starts, same, strict=True) if not u]
    outs = scan_primitives.scan(
        *(*consts, *still, *moving, *xs),
        jaxpr=made,
        num_consts=n + len(still),
        num_carry=len(moving),
        length=length,
        reverse=reverse,
        unroll=unroll,
    )
    return [*merged(starts, same, outs[: len(moving)]), *outs[len(moving) :]]


def _length(call: FlatCall, carried: int, xs: Any, length: Any, what: str) -> int:
    avals = call.avals[carried:]
    if length is not None:
        try:
            length = operator.index(length)
        except (TypeError, FtError):
            raise error(
                ArgumentError,
                f"length={length!r:.60} of lax.{what} is not an int",
                "the number of steps must be static",
            ) from None
        if length < 0:
            raise error(ArgumentError, f"length={length} of lax.{what} is negative", "give a count of steps")
    if not avals:
        if length is None:
            raise error(ArgumentError, f"lax.{what} got no length=, and no arrays in xs={xs!r:.60}", "give length=")
        return length
    sizes = {a.shape[0] if a.shape else None for a in avals}
    result = next(iter(sizes)) if length is None else length
    if sizes != {result} or None in sizes:
        paths = [f"xs{path}" for path in tree.leaf_paths(tree.structure(xs))]
        shown = ", ".join(f"{p}: {a!r}" for p, a in zip(paths, avals, strict=True))
        if None in sizes:
            scalar = next(p for p, a in zip(paths, avals, strict=True) if not a.shape)
            raise error(
                ShapeError,
                f"{scalar} has no first axis to take slices along ({shown})",
                "stack the elements to one array: fnp.asarray(xs)"
                if isinstance(xs, (list, tuple))
                else "close over it instead",
            )
        many = f"length={length}, and xs with another size" if length is not None else "xs with different sizes"
        raise error(ShapeError, f"lax.{what} got {many} along the first axis: {shown}", "make the first sizes equal")
    assert result is not None
    return result


def _unroll(unroll: Any, length: int, what: str) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    if not isinstance(unroll, (int, np.integer)) or unroll < 1:
        raise error(
            ArgumentError, f"lax.{what} got unroll={unroll!r:.60}", "give a count of at least 1, or True for all"
        )
    return max(min(int(unroll), length), 1)


def _python_scan(f: Any, init: Any, xs: Any, length: int, reverse: bool) -> Any:
    """Run the loop in Python, for `disable_jit`."""
    carry, ys = init, []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, tree.map(lambda x, i=i: x[i], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    if not ys:
        slices = tree.map(lambda x: np.zeros(x.shape[1:], x.dtype), xs)
        jaxpr_y = f(init, slices)[1]
        return carry, tree.map(
            lambda y: structural.zeros(ShapedArray((0, *aval_of(y).shape), aval_of(y).dtype)), jaxpr_y
        )
    stack = lambda *rows: structural.concatenate(*(structural.widen(r, 1) for r in rows), dimension=0)
    return carry, tree.map(stack, *ys)


# ---------------------------------------------------------------------------------------------------------------- map
@overload
def map(f: Callable[[X], R], xs: X, *, batch_size: int | None = None) -> R: ...
@overload  # slices may have another type than the array
def map(f: Callable[[Any], R], xs: PyTree, *, batch_size: int | None = None) -> R: ...
def map(f: Callable[[Any], R], xs: Any, *, batch_size: int | None = None) -> R:
    """Apply a function to one slice after the other, and stack the results.

    Unlike `vmap` it needs the memory of one step at a time; with `batch_size`, of that many steps.

    Args:
        f: function of one slice.
        xs: pytree of arrays with the same size along the first axis.
        batch_size: number of slices computed at once, with `vmap`.

    Returns:
        The pytree of results, stacked along a new first axis.

    Raises:
        ShapeError: where leaves of xs differ in their first size.
        ArgumentError: where batch_size is not a count.

    >>> lax.map(lambda x: x * x, fnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    check_callable(f, "lax.map", "lax.map(f, xs)")
    if batch_size is None:
        return loop(f, None, xs, None, False, 1, "map", _each)[1]
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise error(ArgumentError, f"lax.map got batch_size={batch_size!r:.60}", "give a count of at least 1")
    size = _length(traced_function.arguments((None, xs)), 0, xs, None, "map")
    rounds, rest = divmod(size, int(batch_size))
    parts = []
    if rounds or not size:
        grouped = lambda x: x[: size - rest].reshape((rounds, batch_size, *x.shape[1:]))
        outs = loop(f, None, tree.map(grouped, xs), None, False, 1, "map by vmap", lambda f: _each(vmap(f)))[1]
        parts.append(tree.map(lambda y: y.reshape((rounds * batch_size, *y.shape[2:])), outs))
    if rest:
        parts.append(vmap(f)(tree.map(lambda x: x[size - rest :], xs)))
    return parts[0] if len(parts) == 1 else tree.map(lambda a, b: structural.concatenate(a, b, dimension=0), *parts)


def _each(f: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _, x: (None, f(x))
