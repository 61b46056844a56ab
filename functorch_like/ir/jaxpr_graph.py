"""Graph of a jaxpr, as SVG and for Graphviz: equations in layers, with arrows for the values between them."""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like.ir.jaxpr import MOST_LISTED, Definition, Jaxpr, Var, definitions, letters
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display

#: Largest number of equations in a picture; of more, the first are shown.
MOST = 150

_ROW, _GAP, _HEIGHT, _LETTER = 58, 16, 26, 7.3
_HUES = {
    "input": "grey", "output": "grey", "elementwise": "blue", "movement": "green", "reduction": "orange",
    "product": "red", "loop": "purple", "call": "purple",
}  # fmt: skip


class Node(NamedTuple):
    """One box of the picture.

    Attributes:
        label: text in the box.
        kind: kind of the primitive, or "input", "output" or "call".
        about: text of the equation.
        before: numbers of the nodes whose values are its operands, each with the aval.
    """

    label: str
    kind: str
    about: str
    before: list[tuple[int, str]]


class JaxprGraph(Display):
    """A jaxpr as a graph.

    Attributes:
        nodes: inputs, equations and outputs.
        layers: numbers of the nodes, by the length of the longest path from an input.
    """

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._part = definitions(_opened(jaxpr), MOST)[-1]
        self.nodes = _nodes(self._part)
        self.layers = _layers(self.nodes)

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the primitives, layer by layer."""
        lines = [paint(self._summary(), "head")]
        for number, layer in enumerate(self.layers):
            named = ", ".join(self.nodes[k].label for k in layer if self.nodes[k].kind != "output")
            if named:
                lines += terminal.wrapped(named, f"  {number:<2} ")
        return "\n".join(lines)

    def markup(self) -> elements.Markup:
        """Return the picture."""
        return elements.join([elements.element("div", self._summary(), cls="head"), self.svg])

    def _summary(self) -> str:
        count = len(self._part.jaxpr.equations)
        depth = sum(any(self.nodes[k].kind not in ("input", "output") for k in layer) for layer in self.layers)
        shown = f", of which the first {MOST} are shown," if count > MOST else ""
        return f"graph of {self._part.title}: {count} equation{'' if count == 1 else 's'}{shown} in {depth} layers"

    @property
    def svg(self) -> elements.Markup:
        """The picture as SVG; lines and text have the colour of the page."""
        widths = [max(len(node.label) * _LETTER + 16, 34) for node in self.nodes]
        places, width = _places(self.nodes, self.layers, widths)
        height = len(self.layers) * _ROW
        edges = [
            _edge(places[source], places[k], aval) for k, node in enumerate(self.nodes) for source, aval in node.before
        ]
        boxes = [_box(node, places[k], widths[k]) for k, node in enumerate(self.nodes)]
        return elements.element(
            "svg", elements.element("title", self._summary()), *edges, *boxes, xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:.0f} {height}", width=f"{width:.0f}", height=height, role="img", color="currentColor",
            font_family="ui-monospace,Menlo,Consolas,monospace", font_size="12",
        )  # fmt: skip

    @property
    def dot(self) -> str:
        """The graph as text for Graphviz: `dot -Tsvg`."""
        lines = [f"  n{k} [label={_quoted(node.label)}]" for k, node in enumerate(self.nodes)]
        lines += [
            f"  n{source} -> n{k} [label={_quoted(aval)}]"
            for k, node in enumerate(self.nodes)
            for source, aval in node.before
        ]
        body = "\n".join(lines)
        return f"digraph {_quoted(self._part.title)} {{\n  node [shape=box]\n{body}\n}}\n"


def _opened(jaxpr: Jaxpr) -> Jaxpr:
    """Return the called jaxpr if a jaxpr consists of one call; otherwise the jaxpr itself."""
    while len(jaxpr.equations) == 1:
        inner = [value for value in jaxpr.equations[0].params.values() if isinstance(value, Jaxpr)]
        if jaxpr.equations[0].prim.kind != "call" or len(inner) != 1:
            break
        jaxpr = inner[0]
    return jaxpr


def _nodes(part: Definition) -> list[Node]:
    maker: dict[Var, int] = {}
    nodes: list[Node] = []
    inputs = part.jaxpr.inputs
    for k, variable in enumerate(inputs[:MOST_LISTED]):  # with the names that `definitions` gives them
        maker[variable] = len(nodes)
        nodes.append(Node(f"{letters(k)}: {variable.aval!r}", "input", "input", []))
    if len(inputs) > MOST_LISTED:
        maker.update(dict.fromkeys(inputs[MOST_LISTED:], len(nodes)))
        nodes.append(Node(f"{len(inputs) - MOST_LISTED} more inputs", "input", "inputs", []))
    for row in part.rows:
        known = [a for a in row.equation.inputs if type(a) is Var and a in maker]
        before = list(dict.fromkeys((maker[a], repr(a.aval)) for a in known))
        inner = next((p.partition("=")[2] for p in row.params if p.startswith("jaxpr=")), "")
        label = f"{row.primitive} {inner}".strip()
        kind = row.equation.prim.kind or ("call" if inner else "")
        for variable in row.equation.outputs:
            maker[variable] = len(nodes)
        nodes.append(Node(terminal.trimmed(label, 32), kind, f"{row}  {row.place}".rstrip(), before))
    results: list[Any] = [a for a in part.jaxpr.outputs if type(a) is Var and a in maker]
    shown = results[:MOST_LISTED]
    nodes += [Node("result", "output", repr(a.aval), [(maker[a], repr(a.aval))]) for a in shown]
    return nodes


def _layers(nodes: list[Node]) -> list[list[int]]:
    """Return nodes by depth; a layer is ordered by the positions of operands, so that few arrows cross."""
    depth: list[int] = []
    for node in nodes:
        depth.append(max((depth[k] + 1 for k, _ in node.before), default=0))
    for k in reversed(range(len(nodes))):  # constants are placed right above their first use
        after = [depth[u] for u, node in enumerate(nodes) if any(source == k for source, _ in node.before)]
        if not nodes[k].before and nodes[k].kind != "input" and after:
            depth[k] = min(after) - 1
    layers: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
    for k, d in enumerate(depth):
        layers[d].append(k)
    position: dict[int, float] = {}
    for layer in layers:
        mean = {k: _mean([position[source] for source, _ in nodes[k].before], 0.5) for k in layer}
        layer.sort(key=lambda k: mean[k])
        position.update((k, (place + 0.5) / len(layer)) for place, k in enumerate(layer))
    return layers


def _mean(numbers: list[float], other: float) -> float:
    return sum(numbers) / len(numbers) if numbers else other


def _places(
    nodes: list[Node], layers: list[list[int]], widths: list[float]
) -> tuple[dict[int, tuple[float, float]], float]:
    """Return the centres of the boxes, and the width of the picture."""
    rows = [sum(widths[k] + _GAP for k in layer) for layer in layers]
    width = max(rows, default=0) + _GAP
    places: dict[int, tuple[float, float]] = {}
    for number, layer in enumerate(layers):
        # Each box is placed below the mean position of its operands, as far as its neighbours leave room.
        left, room = _GAP, width - _GAP - rows[number]
        for k in layer:
            preferred = _mean([places[source][0] for source, _ in nodes[k].before], width / 2) - widths[k] / 2
            at = min(max(left, preferred), left + max(room, 0))
            room -= at - left
            places[k] = (at + widths[k] / 2, number * _ROW + _HEIGHT / 2 + 4)
            left = at + widths[k] + _GAP
    return places, width


def _edge(start: tuple[float, float], end: tuple[float, float], aval: str) -> elements.Markup:
    (x, y), (u, v) = (start[0], start[1] + _HEIGHT / 2), (end[0], end[1] - _HEIGHT / 2)
    bend = (v - y) / 2
    path = f"M{x:.1f} {y:.1f}C{x:.1f} {y + bend:.1f} {u:.1f} {v - bend:.1f} {u:.1f} {v:.1f}"
    return elements.element(
        "path", elements.element("title", aval), d=path, fill="none", stroke="currentColor", stroke_opacity="0.35"
    )


def _box(node: Node, centre: tuple[float, float], width: float) -> elements.Markup:
    hue = elements.HUES[_HUES.get(node.kind, "grey")]
    x, y = centre[0] - width / 2, centre[1] - _HEIGHT / 2
    return elements.element(
        "g",
        elements.element("title", node.about),
        elements.element(
            "rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=_HEIGHT, rx=5, stroke=hue,
            fill=hue, fill_opacity="0.12",
        ),
        elements.element(
            "text", node.label, x=f"{centre[0]:.1f}", y=f"{centre[1] + 4:.1f}", text_anchor="middle",
            fill="currentColor",
        ),
    )  # fmt: skip


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
