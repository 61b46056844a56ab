"""Record of the last call of a function that C++ cannot dispatch alone: a call like it skips the look-ups.

Before jaxlib 0.12, programs with collectives on several CPU devices are called through Python.
"""

from __future__ import annotations

from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.calling.call_signature import FlatCall
from functorch_like.core import ArrayImpl, state

_ARRAYS = {ArrayImpl}


class RepeatedCall:
    """A call whose arguments are all arrays that are bound to devices, and the program that it ran.

    Args:
        call: the call.
        program: the program that ran it.
        out_tree: the structure of its results.
    """

    __slots__ = ("_avals", "_out_tree", "_program", "_shardings", "_surroundings", "_tree")

    def __init__(self, call: FlatCall, program: Any, out_tree: Any) -> None:
        self._program, self._out_tree, self._tree = program, out_tree, call.tree
        self._avals = [leaf.aval for leaf in call.leaves]
        self._shardings = [leaf._sharding for leaf in call.leaves]
        self._surroundings = _surroundings()

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, None, bool] | None:
        """Return the answer to a call that the same program runs for; None for another call."""
        leaves, tree = xla.flatten((args, kwargs))
        if tree != self._tree or _surroundings() != self._surroundings or set(map(type, leaves)) != _ARRAYS:
            return None
        if [leaf.aval for leaf in leaves] != self._avals:
            return None
        for leaf, where in zip(leaves, self._shardings, strict=True):
            if not (leaf._sharding is where or leaf._sharding == where) or not leaf._committed:
                return None
        return self._out_tree.unflatten(self._program.run_placed(leaves)), None, False


def remember(call: FlatCall, program: Any, out_tree: Any) -> RepeatedCall | None:
    """Return a record that shortens later calls like this one; None where its arguments may move."""
    if call.statics != ((), ()) or not call.leaves:
        return None
    if not all(type(leaf) is ArrayImpl and leaf._committed for leaf in call.leaves):
        return None
    return RepeatedCall(call, program, out_tree)


def _surroundings() -> tuple[Any, ...]:
    """Return the key of the facts, besides its arguments, that a program depends on."""
    return xla.settings(), state.axes, current_mesh.value
