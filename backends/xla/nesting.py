"""Errors for trees that C++ cannot flatten: they contain themselves, are nested too deep, or have keys without order.

TRAP: C++ counts a level of recursion at each node, and does not subtract them where an exception passes through it.
After some hundred errors, or one about a tree that contains itself, the thread can make no more calls. `refused`
subtracts these levels.
"""

from __future__ import annotations

import ctypes
import operator
import sys
import threading
from collections.abc import Callable
from typing import Any

from functorch_like.backends.xla.failures import out_of_memory
from functorch_like.errors import TreeDepthError, TreeError

# Prototypes of the package: those of `ctypes.pythonapi` are shared by the whole process.
_enter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(("Py_EnterRecursiveCall", ctypes.pythonapi))
_leave = ctypes.PYFUNCTYPE(None)(("Py_LeaveRecursiveCall", ctypes.pythonapi))
#: Levels that C code beneath the running Python functions may use.
_SLACK = 100
_ROOM = range(_SLACK)  # levels that `refused` takes off first, so that it can call functions
#: More levels than any supported Python allows.
_MOST_LEVELS = 50_000
#: Nodes that are looked at for a message.
_MOST_NODES = 1_000_000
#: `call(*those, f, ...)` calls f. Each nested call takes a level of recursion and frees it again. So a few levels are
#: left where C++ has used up all others. (Use only this form: a plain call takes no level.)
call: Any = operator.call
those: tuple[Any, ...] = (call, call, call)


def with_room(function: Callable[..., Any]) -> Any:
    """Wrap a function so that some levels of recursion are free again when C++ raises in it. (It costs 80 ns.)

    Where C++ has used up all levels, the code that handles its exception could call nothing, not even `refused`.
    """
    for _ in range(4):  # a static method takes a level for each call that it passes on
        function = staticmethod(function)
    return function


def refused(
    error: BaseException, one_level: Callable[..., Any], tree: Any, is_leaf: Any = None, names: tuple[str, ...] = ()
) -> BaseException:
    """The error to raise in place of one that C++ raised: itself, where it is not about nesting or keys.

    Args:
        error: as C++ raised it.
        one_level: gives pairs of key and child for a node, and None for a leaf.
        tree: the tree that was flattened.
        is_leaf: as for `flatten`.
        names: users' names of the items of the tree, such as "args" and "kwargs".
    """
    for _ in _ROOM:
        _leave()
    if isinstance(error, MemoryError) or out_of_memory(error):  # threads that start without memory may hang
        for _ in _ROOM:
            _enter(b"")
        return error
    _give_back()
    if any(isinstance(e, RecursionError) for e in (error, error.__cause__, error.__context__)):
        try:
            return _nested(one_level, tree, is_leaf, names) or error
        except Exception:  # of the user's functions, which may count on their order
            return error
    return unsorted(error) or error


def unsorted(error: BaseException) -> TreeError | None:
    """The error for keys of a dict that C++ cannot sort; None for another one."""
    if type(error) is ValueError and "sorting pytree dictionary keys" in str(error):
        return TreeError(
            "a dict has keys that cannot be sorted, so that its leaves have no order",
            fix="use keys of one type, such as str; or an OrderedDict, whose keys have an order",
        )
    return None


def _nested(one_level: Callable[..., Any], tree: Any, is_leaf: Any, names: tuple[str, ...]) -> TreeDepthError | None:
    """Walk down a tree, without recursion, to where it contains itself or ends."""

    def children(node: Any) -> Any:
        if is_leaf is not None and is_leaf(node):
            return iter(())
        result = one_level(node)
        return iter(() if result is None else result[0])

    # For each node from the root down: its id, the key that led to it, and the children that are left.
    above: list[tuple[int, Any, Any]] = [(id(tree), None, children(tree))]
    open_at = {id(tree): 0}
    deepest = seen = 0
    while above and seen < _MOST_NODES:
        seen += 1
        deepest = max(deepest, len(above))
        item = next(above[-1][2], None)
        if item is None:
            del open_at[above.pop()[0]]
            continue
        key, child = item
        if id(child) in open_at:
            path = [*(k for _, k, _ in above[1:]), key]
            first = _text(path[: open_at[id(child)]], names) or "the root"
            return TreeDepthError(
                f"the tree contains itself: {_text(path, names)} is what is at {first}",
                fix="leave the reference out of the tree, or make it a static field of a registered dataclass",
            )
        open_at[id(child)] = len(above)
        above.append((id(child), key, children(child)))
    if deepest < 100:
        return None
    return TreeDepthError(
        f"the tree is nested {deepest - 1} levels deep, which is more than recursion allows",
        fix="keep a flat list in place of nested containers, or stack the arrays",
    )


def _text(path: list[Any], names: tuple[str, ...]) -> str:
    head = "" if not names or not path else names[path[0].idx]
    keys = [str(key) for key in (path[1:] if head else path)]
    return head + "".join(keys if len(keys) < 12 else [*keys[:6], "...", *keys[-6:]])


# ---------------------------------------------------------------------------------------------------------- recursion
def _give_back() -> None:
    """Take off the levels of recursion that C++ has left counted in this thread, if any; count the room again."""
    left = _levels()
    frames, frame = 0, sys._getframe()
    while frame is not None and sys.version_info < (3, 12):  # older versions count Python's functions, too
        frames, frame = frames + 1, frame.f_back
    lost = _levels_of_a_thread() - frames - left
    for _ in range(max(lost, 0)):
        _leave()
    for _ in _ROOM:
        _enter(b"")


def _levels() -> int:
    """Return the number of levels of recursion that are left."""
    count = 0
    try:
        while count < _MOST_LEVELS:
            _enter(b"")
            count += 1
    except (RecursionError, ctypes.ArgumentError):  # the second where the argument's conversion finds no room
        pass
    for _ in range(count):
        _leave()
    return count


_fresh: dict[int, int] = {}  # by the limit that Python has


def _levels_of_a_thread() -> int:
    """Return the number of levels of a new thread."""
    limit = sys.getrecursionlimit()
    if limit not in _fresh:
        thread = threading.Thread(target=lambda: _fresh.__setitem__(limit, _levels()))
        thread.start()
        thread.join()
    return _fresh[limit]
