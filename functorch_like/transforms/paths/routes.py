"""Routes: if a wrong guess is one that was made before, the program that was right then runs, mostly in C++.

The words that a program returned for the wrong arguments lead to the program of the path that was taken. That is a
guess again, and checked like the first one; where it is wrong, too, `Paths.mistaken` answers the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.backends import xla
from functorch_like.backends.xla import events
from functorch_like.backends.xla.arrays import content
from functorch_like.calling.call_signature import CHECKED, FlatCall, unwrap_static
from functorch_like.transforms.paths.programs import PathProgram

if TYPE_CHECKING:
    from functorch_like.transforms.paths.calls import Branches, Paths

MISSED = object()
MOST = 4096  # routes of a function
_SWITCH_AFTER = 4  # calls in a row on the same other path until C++ runs its program; doubled after each switch
_LONGEST = 1024


class Route:
    """Program to run after a wrong guess.

    Args:
        paths: the paths of the function.
        branches: the tree.
        form: the program that was right.
    """

    __slots__ = ("branches", "fast", "form", "paths", "version")

    def __init__(self, paths: Paths, branches: Branches, form: PathProgram) -> None:
        self.paths, self.branches, self.form = paths, branches, form
        self.version = branches.tree.version
        if form.fast is None:
            form.fast = _function(paths, form)
        self.fast = form.fast

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the results of a call, or MISSED."""
        tree, form = self.branches.tree, self.form
        if self.version != tree.version:
            return MISSED
        out, words = self.fast(*args, **kwargs)
        if content(words) not in form.known:
            return MISSED
        if events.has_listeners():
            events.emit("guess", self.paths.jitted.spec.name)
        tree.wrong += 1
        assert form.leaf is not None
        form.leaf.mark_latest()
        if hurried(self.branches.memo, form):
            self.paths.fast._clear_cache()
        return out


def hurried(memo: dict[Any, Any], form: PathProgram) -> bool:
    """Count a call whose guess was wrong; return True where C++ should run the other program from now on.

    Where calls go back and forth, switching costs more than the wrong guesses do. So each switch takes longer to come.
    """
    memo["streak"] = memo.get("streak", 0) + 1 if memo.get("best") == form.number else 1
    memo["best"] = form.number
    patience = memo.get("patience", _SWITCH_AFTER)
    if memo["streak"] < patience:
        return False
    memo["streak"], memo["patience"] = 0, min(2 * patience, _LONGEST)
    return True


def _function(paths: Paths, form: PathProgram) -> Any:
    """Return the function in C++ that runs a program; results come with words."""
    jitted = paths.jitted
    static, name = jitted.static, jitted.spec.name

    def miss(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        call = FlatCall(static, *unwrap_static(args, kwargs))
        program = form.compiled(call.leaves, jitted.spec, jitted.donated(call))
        *outs, words = program.run(call.leaves)
        by_hand = any(type(a) in CHECKED for a in call.leaves)
        return (form.out_tree.unflatten(outs), words), None if by_hand else paths.fastpath(form, program), False

    return xla.function(name, jitted.fun, miss, static_argnums=static.nums, static_argnames=static.names)
