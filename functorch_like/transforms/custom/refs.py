"""Functions with a `custom_vjp` rule that are given Refs: rules get these, and return None for their cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends import xla
from functorch_like.core import EVALUATE, Tracer, state
from functorch_like.errors import FtError, TreeError
from functorch_like.ref.captured import among
from functorch_like.ref.cells import error
from functorch_like.ref.reference import Ref


def call_with_refs(
    custom: Any,
    failed: FtError,
    values: Sequence[Any],
    closed: Callable[[Callable[..., Any], Callable[..., Any], Callable[..., Any]], Callable[..., Any]],
    spread: Callable[[Any, Any], list[Any] | None],
) -> Any:
    """Call the function with its Refs closed over.

    Args:
        custom: the function.
        failed: raised if there are no Refs among the arguments.
        values: all arguments by position.
        closed: makes a function with rules of a function, `fwd` and `bwd`.
        spread: an entry for each leaf of a structure, from cotangents.

    Returns:
        The function's result.
    """
    nums = custom.nondiff_argnums
    nondiff = {i: values[i] for i in nums if i < len(values)}
    leaves, structure = xla.flatten(tuple(a for i, a in enumerate(values) if i not in nondiff))
    positions = set(among(leaves))
    if not positions:
        raise failed
    if state.trace is EVALUATE and not any(isinstance(leaf, Tracer) for leaf in leaves):
        return custom.fun(*values)

    def whole(arrays: Sequence[Any]) -> list[Any]:
        rest = iter(arrays)
        diff = iter(structure.unflatten([leaf if i in positions else next(rest) for i, leaf in enumerate(leaves)]))
        return [nondiff[i] if i in nondiff else next(diff) for i in range(len(values))]

    def bwd(residuals: Any, cotangent: Any) -> tuple[Any, ...]:
        back = custom.bwd(*nondiff.values(), residuals, cotangent)
        cotangents = spread(structure, tuple(back) if isinstance(back, list) else back)
        if cotangents is None or any(cotangents[i] is not None for i in positions):
            raise error(
                TreeError,
                f"the backward rule of {custom.name} returned {back!r:.60} for {structure}",
                "return a tuple with one entry for each argument; None for a Ref, whose cotangent it may write",
            )
        return tuple(ct for i, ct in enumerate(cotangents) if i not in positions)

    function = closed(lambda *xs: custom.fun(*whole(xs)), lambda *xs: custom.fwd(*whole(xs)), bwd)
    return function(*[leaf for leaf in leaves if not isinstance(leaf, Ref)])
