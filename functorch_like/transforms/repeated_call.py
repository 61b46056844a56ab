"""The last call of a function whose programs C++ cannot run by itself, so that one like it skips the look-ups.

Such programs come to Python at each call: those with collectives on several CPU devices, before jaxlib 0.12.
"""

from __future__ import annotations

from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.calling.call_signature import FlatCall
from functorch_like.core import ArrayImpl, state


class RepeatedCall:
    """A call with arrays alone that are bound to devices, and the program that it ran.

    Args:
        call: the call.
        program: that ran it.
        out_tree: of its results.
    """

    __slots__ = ("_arrays", "_out_tree", "_program", "_surroundings", "_tree")

    def __init__(self, call: FlatCall, program: Any, out_tree: Any) -> None:
        self._program, self._out_tree, self._tree = program, out_tree, call.tree
        self._arrays = [(leaf.aval, leaf._sharding) for leaf in call.leaves]
        self._surroundings = _surroundings()

    def matches(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """Return the leaves of arguments if the same program runs for them; else None."""
        leaves, tree = xla.flatten((args, kwargs))
        if tree != self._tree or _surroundings() != self._surroundings:
            return None
        for leaf, (aval, where) in zip(leaves, self._arrays, strict=True):
            if not (type(leaf) is ArrayImpl and leaf._sharding is where and leaf._committed and leaf.aval == aval):
                return None
        return leaves

    def run(self, leaves: list[Any]) -> Any:
        """Run the program; return the results of the function."""
        return self._out_tree.unflatten(self._program.run(leaves))


def remember(call: FlatCall, program: Any, out_tree: Any) -> RepeatedCall | None:
    """Return what makes calls like this one short; None where its arguments may move."""
    if call.statics != ((), ()) or not call.leaves:
        return None
    if not all(type(leaf) is ArrayImpl and leaf._committed for leaf in call.leaves):
        return None
    return RepeatedCall(call, program, out_tree)


def _surroundings() -> tuple[Any, ...]:
    """Return what a program depends on besides its arguments."""
    return xla.settings(), state.axes, current_mesh.value
