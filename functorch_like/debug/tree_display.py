"""Display of pytrees: nodes that fold, leaves with shapes and bytes. No value of an array is read."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct, dtype_name
from functorch_like.backends.xla import pytree
from functorch_like.core import Tracer
from functorch_like.errors import TreeError, bytes_text
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.random.typed_keys import KeyArray

#: Largest numbers of shown children of a node, and of lines of a tree; and the depth to which nodes are opened.
CHILDREN, LINES, DEEPEST = 40, 400, 24
#: Nodes at a depth below this are open in notebooks.
_OPEN = 2


class Node:
    """One line of the display of a tree.

    Attributes:
        key: its key in its parent, as text; empty at the root.
        about: its type with its size, or the leaf.
        count: number of leaves below it; None for a leaf.
        nbytes: bytes of the arrays below it, each of them counted once.
        children: the children that are shown.
        rest: the number of children that are not shown, and their contents.
    """

    def __init__(self, key: str, value: Any, depth: int, budget: list[int]) -> None:
        budget[0] -= 1
        self.key, self.children, self.rest = key, list[Node](), ""
        inner = _children(value)
        if inner is None:
            self.about, self.count, self.nbytes = leaf_text(value), None, _nbytes(value)
            return
        self.about = f"{type(value).__name__} of {len(inner)}"
        try:
            below = tree.leaves(value)
        except TreeError as error:
            self.count, self.nbytes, self.rest = 0, 0, f"... {error.reason}"
            return
        self.count, self.nbytes = len(below), _total(below)
        shown = 0 if depth >= DEEPEST else CHILDREN
        for name, child in inner[:shown]:
            if budget[0] <= 0:
                break
            self.children.append(Node(name, child, depth + 1, budget))
        hidden = inner[len(self.children) :]
        if hidden:
            leaves = tree.leaves([child for _, child in hidden])
            size = ", ".join(filter(None, (_count(len(leaves)), _bytes(_total(leaves)))))
            self.rest = f"... {len(hidden)} more with {size}"

    @property
    def size(self) -> str:
        """Number of leaves and bytes, as text."""
        if self.count is None:
            return _bytes(self.nbytes)
        return ", ".join(filter(None, (_count(self.count) if self.count else "", _bytes(self.nbytes))))


class TreeDisplay(Display):
    """A pytree: each node with its leaves and bytes, each leaf with its shape and dtype.

    Attributes:
        root: the topmost node.
    """

    def __init__(self, value: Any) -> None:
        self.root = Node("", value, 0, [LINES])

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return a line for each node and leaf, indented by depth, with sizes in a column."""
        lines = list(_lines(self.root, 0, paint))
        widest = min(max(terminal.length(left) for left, _ in lines), 72)
        texts = []
        for left, right in lines:
            blanks = " " * max(widest - terminal.length(left), 0)
            texts.append(f"{left}{blanks}  {paint(right, 'grey')}" if right else left)
        return "\n".join(texts)

    def markup(self) -> elements.Markup:
        """Return the tree with nodes that fold; the upper ones are open."""
        return _markup(self.root, 0)


def _lines(node: Node, depth: int, paint: terminal.Paint) -> Iterator[tuple[str, str]]:
    margin = "  " * depth
    key = terminal.trimmed(node.key, 30)
    room = 70 - len(margin) - len(key)
    about = terminal.trimmed(node.about, max(room, 20))
    named = f"{paint(key, 'blue')}: " if key else ""
    yield f"{margin}{named}{paint(about, 'green') if node.count is None else about}", node.size
    for child in node.children:
        yield from _lines(child, depth + 1, paint)
    if node.rest:
        yield f"{margin}  {paint(node.rest, 'grey')}", ""


def _markup(node: Node, depth: int) -> elements.Markup:
    key = elements.join([elements.element("code", node.key, cls="blue"), ": "]) if node.key else None
    about = elements.element("code", node.about, cls="green" if node.count is None else None)
    size = elements.element("span", node.size, cls="grey", style="margin-left:.8em") if node.size else None
    line = elements.join([key, about, size])
    if node.count is None:
        return elements.element("div", line)
    rest = elements.element("div", elements.span(node.rest, "grey")) if node.rest else None
    if not node.children and rest is None:
        return elements.element("div", line)
    inner = (_markup(child, depth + 1) for child in node.children)
    return elements.details(line, *inner, rest, opened=depth < _OPEN)


# ------------------------------------------------------------------------------------------------------ values
def leaf_text(value: Any) -> str:
    """Return a leaf as text: type and shape of arrays, others shortened."""
    shape, dtype = _type_of(value)
    if shape is not None:
        kind = "" if type(value).__module__.startswith("functorch_like") else f" {type(value).__name__}"
        gone = " deleted" if _is_deleted(value) else " without values" if isinstance(value, ShapeDtypeStruct) else ""
        return f"{dtype}[{','.join(map(str, shape))}]{kind}{gone}"
    try:
        return reprlib.repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def _type_of(value: Any) -> tuple[tuple[int, ...] | None, str]:
    """Shape, and name of the dtype, of a value that has both."""
    try:
        shape, dtype = value.shape, value.dtype
        return tuple(int(n) for n in shape), dtype_name(dtype) if hasattr(dtype, "isbuiltin") else str(dtype)
    except Exception:  # not an array
        return None, ""


def _is_deleted(value: Any) -> bool:
    try:
        return bool(value.is_deleted())
    except Exception:
        return False


def _nbytes(value: Any) -> int:
    """Bytes of an array that has memory of its own; 0 of anything else."""
    if isinstance(value, (ShapeDtypeStruct, Tracer)) or _is_deleted(value):
        return 0
    try:
        return int(value.nbytes)
    except Exception:  # no array, or one without memory
        return 0


def _total(leaves: list[Any]) -> int:
    """Bytes of the arrays among leaves, each array counted once."""
    return sum(_nbytes(leaf) for leaf in {id(leaf): leaf for leaf in leaves}.values())


def _children(value: Any) -> list[tuple[str, Any]] | None:
    """Keys as text, and children, of a node; None of a leaf."""
    if value is None or isinstance(value, KeyArray):
        return None
    try:
        children: Any = pytree.flatten_one_level_with_keys(value)
    except Exception:  # keys that cannot be sorted, or a class of the user's that cannot be taken apart
        return [(repr(key), child) for key, child in value.items()] if isinstance(value, dict) else None
    return None if children is None else [(_key(key), child) for key, child in children[0]]


def _key(key: Any) -> str:
    name = getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))
    return repr(name) if isinstance(name, str) and hasattr(key, "key") else str(name)


def _bytes(count: int) -> str:
    return bytes_text(count) if count else ""


def _count(leaves: int) -> str:
    return "1 leaf" if leaves == 1 else f"{leaves} leaves"
