"""Check a compiled CPU program for products and sums that a library computes wrongly, or not at all.

XLA:CPU moves a matrix product together with what surrounds it into one YNNPACK fusion. A broadcast inside of such a
fusion is not an array: YNNPACK keeps one element with stride 0. Its kernels for products pack the right operand as if
each element along its free and batch dimensions were in memory. So a right operand that is a broadcast along one of
these is read past its end: the result is wrong, or made of memory never written. jaxlib 0.10.2, 0.11.2 and 0.12.0.1 are
alike in this. For a broadcast along a batch dimension, it was seen if the contracted dimension is the last of both
operands. The left operand and bias terms may be broadcasts; so may a right operand along contracted dimensions.

YNNPACK also makes products of sums: the sum of x * y over a dimension becomes a product of x and y. Where both are
broadcasts along a dimension that stays, y is again read past its end, in some of these sums. No reduction with such an
operand is left to it.

Sums that are padded inside of a fusion are computed in blocks of about 128 KiB. Of some sums with two paddings only the
first block is summed, or memory that was never written. An example is the sum of pad(y + 1) + pad(3 * y), of 40,000
elements each. No fusion with a padding is left to YNNPACK.

A maximum or minimum of two arrays inside of such a fusion skips NaN. `primitives.elementwise.extremes_cpu` writes those
of users so that they are not left to it; others come with exported programs, and from XLA.

jaxlib 0.10 calls oneDNN in a way that it starts threads inside of its threads where it computes many matrix products at
once by its older kernels, which processors without AVX-512 get. With two threads or more the heap is corrupted, and the
process dies or hangs: `matmul` of 8 x 512 x 64 and 8 x 64 x 512 hung in each of three runs. A program on disk may later
run in a process with more threads, so these products are never left to oneDNN, on one thread either.

XLA leaves products of bfloat16 to a library before it is known whether the library takes them. Those that none takes
compile, and fail when they run.

XLA's simplifier turns many operations into broadcasts: `where` with a scalar condition, `full(...) * s`, `pad` of a
constant. So the check reads the program after these simplifications, not the one passed to XLA.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from functorch_like.backends.xla import option_sets
from functorch_like.backends.xla.jaxlib_api import ONEDNN_NESTS_THREADS

_KIND = '"__ynn_fusion"'
_ONEDNN = '"__onednn_fusion"'
_FUSED = re.compile(r" fusion\([^\n]*calls=%?([\w.\-]+)")
_CALLED = r'calls=%?([\w.\-]+)[^\n]*"kind":'
_INSTRUCTION = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = (\w+)\[([\d,]*)\]\S* ([\w\-]+)\(([^)]*)\)(.*)")
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)")
_EXTREME = re.compile(r" = b?f\w*\[\S* (?:maximum|minimum)\(")
_PRODUCTS = ("dot", "convolution")
_NARROW = ("bf16", "f16")


class _Value(NamedTuple):
    """A value inside of a fusion: its rank, and the dimensions along which it is a broadcast."""

    rank: int
    broadcast: frozenset[int] = frozenset()


class Flaw(NamedTuple):
    """A product or reduction that must not run as it was compiled.

    Args:
        why: the remedy and the HLO instruction, for `explain`.
        options: compile options under which XLA computes it by itself.
    """

    why: str
    options: dict[str, Any]


def flaw_of(inner: Any) -> Flaw | None:
    """Return a product or reduction that a program computes wrongly or not at all, or None.

    Args:
        inner: jaxlib's loaded executable of a CPU program.
    """
    for module in inner.hlo_modules():
        flaw = flaw_in(module.to_string(_print_options(module)))
        if flaw:
            return flaw
    return None


def flaw_in(text: str) -> Flaw | None:
    """Return the flaw of a module, given as optimised HLO text, or None."""
    if _KIND not in text and not any(f" {product}(" in text for product in _PRODUCTS):
        return None
    fused, of_onednn = _given(text, _KIND), _given(text, _ONEDNN) if ONEDNN_NESTS_THREADS else set()
    loops = set(_FUSED.findall(text))
    narrow = any(f" {dtype}[" in text for dtype in _NARROW)
    for name, lines in _computations(text):
        if name in fused:
            if product := _misread(lines):
                why = f"compiled without YNNPACK's fusions, which would misread an operand of {product}"
                return Flaw(why, option_sets.NO_FUSIONS)
            if extreme := _extreme(lines):
                why = f"compiled without YNNPACK's fusions, which would skip NaN in {extreme}"
                return Flaw(why, option_sets.NO_FUSIONS)
        elif name in of_onednn:
            if product := _of_many(lines):
                return Flaw(f"compiled without oneDNN, whose threads collide in {product}", option_sets.NO_ONEDNN)
        elif narrow and name not in loops and (product := _not_taken(lines)):
            return Flaw(f"compiled without libraries, none of which takes {product}", option_sets.NONE)
    return None


def _given(text: str, library: str) -> set[str]:
    """Return the names of the computations that a library gets."""
    return set(re.findall(_CALLED + library, text)) if library in text else set()


def _print_options(module: Any) -> Any:
    import importlib

    options = importlib.import_module(type(module).__module__).HloPrintOptions.short_parsable()
    options.print_metadata = options.print_operand_shape = False
    return options


def _computations(text: str) -> Iterator[tuple[str, list[str]]]:
    """The computations of a module: name and lines of each."""
    name, lines = "", []
    for line in text.splitlines():
        if line.endswith("{") and not line.startswith(" "):
            name, lines = _NAME.match(line.removeprefix("ENTRY "))[1], []  # type: ignore[index]
        elif line.startswith("}"):
            yield name, lines
        else:
            lines.append(line)


def _instructions(lines: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The instructions among some lines: each line with name, dtype, shape, operation, operands and attributes."""
    for line in lines:
        parsed = _INSTRUCTION.match(line)
        if parsed is not None:
            yield line, parsed.groups()


def _misread(lines: list[str]) -> str:
    """The first instruction of a fusion that reads elements which are not in memory.

    It is a product whose right operand is a broadcast along a free or batch dimension; a reduction whose operand is a
    broadcast along a dimension that stays; or a padding.
    """
    values: dict[str, _Value] = {}
    for line, (name, _, shape, op, operands, attributes) in _instructions(lines):
        inputs = [values.get(o, _Value(0)) for o in _NAME.findall(operands)]
        rank = len([n for n in shape.split(",") if n])
        if op == "pad" or _reads_broadcast(op, inputs, attributes):
            return line.strip()
        values[name] = _Value(rank, _broadcast_along(op, rank, inputs, attributes))
    return ""


def _extreme(lines: list[str]) -> str:
    """The first maximum or minimum of floats, element by element."""
    return next((line.strip() for line in lines if _EXTREME.search(line)), "")


def _of_many(lines: list[str]) -> str:
    """The first product of several matrices at once."""
    for line, (_, _, _, op, _, attributes) in _instructions(lines):
        if op == "dot" and _ordered(attributes, "lhs_batch_dims"):
            return line.strip()
    return ""


def _not_taken(lines: list[str]) -> str:
    """The first product outside of fusions whose operands are narrower than its result."""
    dtypes: dict[str, str] = {}
    for line, (name, dtype, _, op, operands, _) in _instructions(lines):
        if op == "dot" and dtype not in _NARROW and any(dtypes.get(o) in _NARROW for o in _NAME.findall(operands)):
            return line.strip()
        dtypes[name] = dtype
    return ""


def _reads_broadcast(op: str, inputs: list[_Value], attributes: str) -> bool:
    if op == "convolution":  # its kernel is the right operand of the product that YNNPACK makes of it
        return bool(inputs[1].broadcast)
    if op == "dot":
        return bool(inputs[1].broadcast - _dims(attributes, "rhs_contracting_dims"))
    if op == "reduce":
        return bool(inputs[0].broadcast - _dims(attributes, "dimensions"))
    return False


def _broadcast_along(op: str, rank: int, inputs: list[_Value], attributes: str) -> frozenset[int]:
    """The dimensions along which a result may be a broadcast: too many rather than too few."""
    if op in ("parameter", "constant"):
        return frozenset()
    if op == "iota":
        return frozenset(range(rank)) - _dims(attributes, "iota_dimension")
    if not inputs:
        return frozenset()
    of = inputs[0].broadcast
    if op == "broadcast":
        dimensions = _ordered(attributes, "dimensions")
        return frozenset(d for d in range(rank) if d not in dimensions or dimensions.index(d) in of)
    if op == "transpose":
        return frozenset(i for i, d in enumerate(_ordered(attributes, "dimensions")) if d in of)
    if op == "reduce":
        left = [d for d in range(inputs[0].rank) if d not in _dims(attributes, "dimensions")]
        return frozenset(i for i, d in enumerate(left) if d in of)
    if op == "dot":
        return _of_product(inputs[0], inputs[1], attributes)
    if op not in ("reshape", "bitcast") and all(v.rank == rank for v in inputs):  # elementwise, or a slice
        return frozenset.intersection(*(v.broadcast for v in inputs))
    return frozenset(range(rank)) if any(v.broadcast for v in inputs) else frozenset()


def _of_product(left: _Value, right: _Value, attributes: str) -> frozenset[int]:
    batch = zip(_ordered(attributes, "lhs_batch_dims"), _ordered(attributes, "rhs_batch_dims"), strict=True)
    along = [i in left.broadcast and j in right.broadcast for i, j in batch]
    along += [d in left.broadcast for d in sorted(_free(left.rank, attributes, "lhs"))]
    along += [d in right.broadcast for d in sorted(_free(right.rank, attributes, "rhs"))]
    return frozenset(i for i, b in enumerate(along) if b)


def _free(rank: int, attributes: str, side: str) -> frozenset[int]:
    return (
        frozenset(range(rank)) - _dims(attributes, f"{side}_contracting_dims") - _dims(attributes, f"{side}_batch_dims")
    )


def _ordered(attributes: str, name: str) -> list[int]:
    match = re.search(rf"\b{name}=\{{?([\d,]*)", attributes)
    return [int(d) for d in match[1].split(",") if d] if match else []


def _dims(attributes: str, name: str) -> frozenset[int]:
    return frozenset(_ordered(attributes, name))
