"""Costs of a compiled program from the text of its optimised HLO: products, memory traffic, collectives.

Bodies of loops count as often as they run, where XLA finds the count; else once. All branches of a conditional count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_NAME = re.compile(r"^(?:ROOT )?%?([\w.\-]+) = ")
_OPERATION = re.compile(r"([\w\-]+)\(")
_ARRAY = re.compile(r"\b(pred|token|[a-z]+\d+(?:[a-z]\w*)?)\[([\d,<=]*)\]")
_OPERAND = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(
    r"\b(?:calls|body|condition|to_apply|branch_computations|called_computations)=(\{[^}]*\}|%?[\w.\-]+)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
#: Instructions that move no data.
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all"}


class Instruction(NamedTuple):
    """One line of HLO.

    Attributes:
        name: name of the result.
        shapes: bytes per element and dimensions of each array of the result.
        operation: name of the operation, without `-start` and `-done`.
        operands: names.
        line: the whole text.
    """

    name: str
    shapes: tuple[tuple[float, tuple[int, ...]], ...]
    operation: str
    operands: tuple[str, ...]
    line: str

    @property
    def bytes(self) -> int:
        """Size of the result."""
        return int(sum(width * math.prod(dims) for width, dims in self.shapes))


class Collective(NamedTuple):
    """A collective operation of a program, on one device.

    Attributes:
        kind: "all-reduce", "all-gather", "reduce-scatter", "all-to-all" or "collective-permute".
        group: positions of the devices of one group; () where the text does not name them.
        bytes: size of the operands or of the result, whichever is larger.
        count: number of runs.
    """

    kind: str
    group: tuple[int, ...]
    bytes: int
    count: int


class Costs(NamedTuple):
    """Costs of one run on one device.

    Attributes:
        flops: operations of products and convolutions.
        bytes: bytes that kernels read and write, as if nothing stayed in caches.
        collectives: all of them.
    """

    flops: int
    bytes: int
    collectives: list[Collective]


def costs(text: str) -> Costs:
    """Read the costs of a program from its optimised HLO."""
    computations, entry = _computations(text)
    flops, traffic, collectives = 0, 0, []
    for name, times in _multiplicities(computations, entry).items():
        runs, fused = times
        table = {each.name: each for each in computations[name]}
        for each in computations[name]:
            flops += runs * _flops(each, table)
            if fused:
                continue
            collective = _collective(each, table, runs)
            if collective is not None:
                collectives.append(collective)
            elif each.operation not in _FREE and not each.operation.endswith("-done"):
                traffic += runs * (each.bytes + sum(table[o].bytes for o in each.operands if o in table))
    return Costs(flops, traffic, collectives)


# -------------------------------------------------------------------------------------------------------------- reading
def _computations(text: str) -> tuple[dict[str, list[Instruction]], str]:
    computations: dict[str, list[Instruction]] = {}
    current: list[Instruction] | None = None
    entry = ""
    for raw in text.splitlines():
        line = raw.strip()
        head = _HEAD.match(line)
        if head:
            current = computations[head[2]] = []
            entry = head[2] if head[1] else entry
        elif line == "}":
            current = None
        elif current is not None:
            instruction = _instruction(line)
            if instruction is not None:
                current.append(instruction)
    return computations, entry


def _instruction(line: str) -> Instruction | None:
    name = _NAME.match(line)
    if name is None:
        return None
    rest = re.sub(r"/\*.*?\*/", "", line[name.end() :])
    end = _end_of_type(rest)
    operation = _OPERATION.match(rest, end)
    if operation is None:
        return None
    close = _closing(rest, operation.end() - 1)
    return Instruction(
        name[1],
        tuple((_width(kind), _dims(dims)) for kind, dims in _ARRAY.findall(rest[:end])),
        operation[1],
        tuple(_OPERAND.findall(rest[operation.end() : close])),
        line,
    )


def _end_of_type(text: str) -> int:
    """The position after the type of a result, which may be a tuple."""
    if text.startswith("("):
        return _closing(text, 0) + 2
    return text.find(" ") + 1


def _closing(text: str, start: int) -> int:
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def _dims(text: str) -> tuple[int, ...]:
    return tuple(int(n.replace("<=", "")) for n in text.split(",") if n)


def _width(kind: str) -> float:
    """Bytes of one element."""
    if kind in ("pred", "token"):
        return 1.0 if kind == "pred" else 0.0
    bits = re.search(r"\d+", kind)
    return int(bits[0]) / 8 if bits else 0.0


def _multiplicities(computations: dict[str, list[Instruction]], entry: str) -> dict[str, tuple[int, bool]]:
    """Return the number of runs of each computation, and whether it is part of a fusion, which has one kernel."""
    counts: dict[str, tuple[int, bool]] = {}

    def visit(name: str, runs: int, fused: bool) -> None:
        before, was_fused = counts.get(name, (0, True))
        counts[name] = before + runs, fused and was_fused
        for each in computations[name]:
            trips = _TRIPS.search(each.line)
            inner = fused or each.operation in ("fusion", "reduce", "scatter", "sort", "map", "reduce-window")
            times = runs * int(trips[1]) if each.operation == "while" and trips else runs
            for called in _called(each.line):
                if called in computations and each.operation not in _COLLECTIVES:
                    visit(called, times, inner)

    if entry:
        visit(entry, 1, False)
    return counts


def _called(line: str) -> Iterator[str]:
    for names in _CALLED.findall(line):
        for name in names.strip("{}").split(","):
            yield name.strip().removeprefix("%")


# ---------------------------------------------------------------------------------------------------------------- costs
def _flops(each: Instruction, table: dict[str, Instruction]) -> int:
    if not each.shapes or len(each.operands) < 2:
        return 0
    shapes = [table[o].shapes[0][1] if o in table and table[o].shapes else () for o in each.operands[:2]]
    if each.operation == "dot":
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", each.line)
        over = _dims(contracted[1]) if contracted else ()
        return 2 * math.prod(each.shapes[0][1]) * math.prod(shapes[0][d] for d in over if d < len(shapes[0]))
    labels = re.search(r"dim_labels=\w+_(\w+)->", each.line)
    if labels and each.operation in ("convolution", "custom-call"):
        kernel = [n for n, label in zip(shapes[1], labels[1], strict=False) if label != "o"]
        return 2 * math.prod(each.shapes[0][1]) * math.prod(kernel)
    return 0


def _collective(each: Instruction, table: dict[str, Instruction], runs: int) -> Collective | None:
    kind = each.operation.removesuffix("-start")
    if kind not in _COLLECTIVES:
        return None
    of_operands = sum(table[o].bytes for o in each.operands if o in table)
    # A `-start` returns its operand, too.
    of_result = each.bytes - of_operands if each.operation.endswith("-start") and len(each.shapes) > 1 else each.bytes
    return Collective(kind, _group(each.line), max(of_operands, of_result), runs)


def _group(line: str) -> tuple[int, ...]:
    """The first group of devices that exchange values, as positions in the program's list of devices."""
    pairs = re.search(r"source_target_pairs=\{\{(\d+),(\d+)\}", line)
    if pairs:
        return int(pairs[1]), int(pairs[2])
    listed = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    if listed:
        return _dims(listed[1])
    iota = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line)
    if iota:
        shape, order = _dims(iota[1]), _order(iota[2], iota[3])
        return tuple(order.reshape(shape)[0].tolist()) if len(shape) == 2 else tuple(order.tolist())
    mesh = re.search(
        r"replica_groups=@?mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? ?\{([^}]*)\}", line
    )
    if mesh:
        sizes = [(name, int(size)) for name, size in re.findall(r"'([^']+)'=(\d+)", mesh[1])]
        used = re.findall(r"'([^']+)'(?!:)", mesh[4])
        order = _order(mesh[2] or ",".join(str(size) for _, size in sizes), mesh[3])
        keep = tuple(slice(None) if name in used else 0 for name, _ in sizes)
        return tuple(order.reshape([size for _, size in sizes])[keep].ravel().tolist())
    return ()


def _order(shape: str, permutation: str | None) -> np.ndarray[Any, Any]:
    """Devices in the order of a transposed grid."""
    order = np.arange(math.prod(_dims(shape))).reshape(_dims(shape))
    return order.transpose(_dims(permutation) if permutation else range(order.ndim)).ravel()


def axes_of(group: Sequence[int], names: Sequence[str], sizes: Sequence[int]) -> tuple[str, ...]:
    """The axes of a mesh along which the devices of a group lie."""
    if len(group) < 2:
        return ()
    places: Any = np.array(np.unravel_index(np.array(group), sizes))
    return tuple(name for name, row in zip(names, places, strict=True) if (row != row[0]).any())
