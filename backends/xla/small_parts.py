"""The small operations of a module between library calls, put into functions that XLA:CPU compiles as one kernel each.

XLA compiles what is between two sorts, factorisations or convolutions as several kernels. Where each takes long to
compile, however small, one kernel for all of them is ready sooner. A value's level is the largest number of calls of
libraries, loops and large operations on a path to it; the small operations of one level depend on lower levels and on
each other alone, so they become one function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as _stablehlo

from functorch_like.backends.xla import mlir
from functorch_like.backends.xla.kernel_limits import PARTS

Value = Any
Operation = Any

_create = ir.Operation.create

#: Operations that XLA computes elementwise, or by reading elements one by one. `_Plain.count` admits some others.
_COMPUTING = frozenset(f"stablehlo.{name}" for name in (
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "concatenate", "convert", "cosine",
    "count_leading_zeros", "divide", "dynamic_slice", "dynamic_update_slice", "exponential", "exponential_minus_one",
    "floor", "gather", "imag", "is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply",
    "negate", "not", "or", "pad", "popcnt", "power", "real", "reduce_precision", "remainder", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "sine", "sqrt", "subtract", "tan", "tanh", "xor",
))  # fmt: skip
#: Operations that move elements; XLA often makes no kernel of them.
_MOVING = frozenset(
    f"stablehlo.{name}" for name in ("bitcast_convert", "broadcast_in_dim", "reshape", "reverse", "slice", "transpose")
)
#: Operations that XLA fuses with others where they are large; small operations then become part of the same kernels.
_FUSED = _COMPUTING | {"stablehlo.reduce"}
_CONSTANTS = frozenset(("stablehlo.constant", "stablehlo.iota"))
#: Types of elements in which XLA computes without conversions.
_NATIVE = frozenset(
    ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f32", "f64", "complex<f32>", "complex<f64>")
)
#: Kinds of operations, in the order in which those of a level are written: values that follow from constants alone,
#: small operations, others.
_FIXED, _PLAIN, _APART = range(3)


def with_small_parts(module: ir.Module) -> ir.Module:
    """Return a module in which the small operations between others are functions that become one kernel each.

    Args:
        module: a module for one CPU device, which stays as it is.

    Returns:
        A copy; or the module itself if it has effects, or no parts that are ready sooner as one kernel.
    """
    with mlir.lock, mlir.context, mlir.unknown:
        functions = _functions(module)
        names = [] if any(map(_has_effects, functions.values())) else _divisible(functions)
        if not names:
            return module
        made = mlir.copied(module)
        functions = _functions(made)
        plain = _Plain(functions)
        found = [_Parts(made, functions[name].regions[0].blocks[0], functions, plain).gather() for name in names]
        return made if any(found) else module


def _functions(module: ir.Module) -> dict[str, Any]:
    return {ir.StringAttr(f.attributes["sym_name"]).value: f for f in module.body.operations}


def _divisible(functions: dict[str, Any]) -> list[str]:
    """Return the functions to divide: those outside of kernels, without large operations that XLA fuses with others."""
    plain = _Plain(functions)
    is_large = lambda operation: operation.name in _FUSED and plain.count(operation) == math.inf
    names = _put_in_place(functions, plain)
    return [name for name in names if not any(map(is_large, _regions_of(functions[name].operation)))]


def _put_in_place(functions: dict[str, Any], plain: _Plain) -> list[str]:
    """Functions outside of kernels: main, and those that they call, unless these can be part of a kernel."""
    names = ["main"]
    for name in names:  # it grows. A set would give parts other names in each process, and programs other keys
        for operation in mlir.operations_in(functions[name].operation):
            if operation.name == "func.call" and "mhlo.frontend_attributes" not in operation.attributes:
                callee = _callee(operation)
                if callee not in names and not plain.function(callee):
                    names.append(callee)
    return names


def _has_effects(function: Any) -> bool:
    effects = (o.attributes for o in mlir.operations_in(function.operation) if o.name == "stablehlo.custom_call")
    return any("has_side_effect" in a and ir.BoolAttr(a["has_side_effect"]).value for a in effects)


def _may_be_inside(call: Operation) -> bool:
    """Return True for a call that may be part of a kernel: one that is put in place, or a cipher that readers share.

    Floating-point values are kept apart for their roundings.
    """
    if "mhlo.frontend_attributes" not in call.attributes:
        return True
    integers = all(str(r.type.element_type).startswith(("i", "ui")) for r in call.results)
    return integers and call.attributes["mhlo.frontend_attributes"] == mlir.apart


def _callee(call: Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


class _Plain:
    """The operations that XLA:CPU can compile as part of a kernel, where arrays are small."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self.functions = functions
        self._counts: dict[str, float] = {}

    def function(self, name: str) -> bool:
        """Return True if all operations of a function can be part of one kernel."""
        return self._count_of(name) <= PARTS.operations

    def count(self, operation: Operation) -> float:
        """Return the number of operations that one expands to; infinity if it cannot be part of a kernel."""
        if not all(_is_native(x.type) for x in (*operation.operands, *operation.results)):
            return math.inf
        if any(_size(r.type) > PARTS.elements for r in operation.results):
            return math.inf
        name = operation.name
        if name == "func.call":
            return self._count_of(_callee(operation)) if _may_be_inside(operation) else math.inf
        if name == "stablehlo.while":
            return math.inf if _captures(operation) else 1 + sum(map(self.count, _regions_of(operation)))
        if name == "stablehlo.reduce":
            return math.inf if _size(operation.operands[0].type) > PARTS.reduced or _captures(operation) else 1
        if name == "stablehlo.dot_general":
            return 1 if _is_small_product(operation) else math.inf
        return 1 if name in _COMPUTING or name in _MOVING or name in _CONSTANTS else math.inf

    def _count_of(self, name: str) -> float:
        if name not in self._counts:
            self._counts[name] = sum(map(self.count, _regions_of(self.functions[name].operation)))
        return self._counts[name]


def _regions_of(operation: Operation) -> list[Operation]:
    """The operations directly in an operation's regions, but for what they return."""
    blocks = [block for region in operation.regions for block in region.blocks]
    return [o.operation for block in blocks for o in list(block.operations)[:-1]]


def _captures(operation: Operation) -> bool:
    """Return True if the regions of an operation read values from outside of them."""
    inner = list(mlir.operations_in(operation))
    own = {r for o in inner for r in o.results}
    for o in (operation, *inner):
        own.update(a for region in o.regions for block in region.blocks for a in block.arguments)
    return not own.issuperset(x for o in inner for x in o.operands)


class _Parts:
    """The operations of one block, by kind and level."""

    def __init__(self, module: Any, block: Any, functions: dict[str, Any], plain: _Plain) -> None:
        self.module, self.functions, self.plain = module, functions, plain
        self.copies: set[Value] = set()  # transposes of matrices for calls that take and give them by columns
        for operation in [o.operation for o in block.operations]:
            if _is_lapack(operation):
                self._lay_by_rows(operation)
        *self.operations, self.end = [o.operation for o in block.operations]
        self.maker: dict[Value, int] = {r: i for i, o in enumerate(self.operations) for r in o.results}
        self.readers: dict[Value, list[int]] = {}
        self.counts: list[float] = []
        self.kinds: list[int] = []
        self.levels: list[int] = []
        for i, operation in enumerate([*self.operations, self.end]):
            inner = _values_inside(operation)
            read = [x for x in (*operation.operands, *inner) if x in self.maker]
            for x in read:
                self.readers.setdefault(x, []).append(i)
            makers = [self.maker[x] for x in read]
            self.counts.append(self.plain.count(operation))
            self.kinds.append(self._kind(operation, makers))
            self.levels.append(max((self.levels[m] + (self.kinds[m] == _APART) for m in makers), default=0))

    def _lay_by_rows(self, call: Operation) -> None:
        """Let the small parts transpose matrices that a call of LAPACK takes and gives by columns.

        XLA would write kernels that only copy, before and after the call. A call sees an array's extents and memory,
        and nothing of its layout. So a matrix by columns is its transpose, by rows, under the extents of the matrix.
        """
        before, after = ir.InsertionPoint(call), ir.InsertionPoint.after(call)
        for k in _by_columns(call, "operand_layouts", call.operands):
            transposed = _transposed(call.operands[k], before)
            call.operands[k] = _shaped(transposed, call.operands[k].type, before)
            self.copies.add(transposed)
        for k in _by_columns(call, "result_layouts", call.results):
            x = call.results[k]
            by_rows = _shaped(x, _flipped(x.type), after)
            copied = _transposed(by_rows, after)
            x.replace_all_uses_except(copied, (copied if by_rows == x else by_rows).owner.operation)
            self.copies.add(copied)
        # To work in place, XLA would copy what a function returns. LAPACK's calls copy by themselves, if they must.
        if "output_operand_aliases" in call.attributes:
            del call.attributes["output_operand_aliases"]

    def _kind(self, operation: Operation, makers: Sequence[int]) -> int:
        name, plain = operation.name, self.counts[-1] <= PARTS.operations
        # XLA computes values that follow from constants alone, and some operations need operands whose values it has.
        fixed = len(makers) == len(operation.operands) and all(self.kinds[m] == _FIXED for m in makers)
        if name in _CONSTANTS or (fixed and (name == "stablehlo.broadcast_in_dim" or (plain and name in _FUSED))):
            return _FIXED
        return _PLAIN if plain and len(operation.operands) else _APART

    def gather(self) -> bool:
        """Make a function of each level's small operations, where it pays; return True if it did."""
        count = len(self.operations)
        by_level: dict[int, list[int]] = {}
        for i in range(count):
            if self.kinds[i] == _PLAIN:
                by_level.setdefault(self.levels[i], []).append(i)
        parts = {level: part for level, part in by_level.items() if self._pays(part)}
        gathered = {i for part in parts.values() for i in part}
        if not gathered:
            return False
        # Values of constants first, then by level the small operations, and after them the others of that level.
        for i in sorted(range(count), key=lambda i: (self.kinds[i] != _FIXED, self.levels[i], self.kinds[i])):
            part = parts.get(self.levels[i])
            if part and i == part[0]:
                self._call(part)
            if i not in gathered:
                self.operations[i].move_before(self.end)
        for i in sorted(gathered, reverse=True):
            self.operations[i].erase()
        return True

    def _pays(self, part: Sequence[int]) -> bool:
        """Return True if XLA would make kernels of a part."""
        return sum(self.counts[i] for i in part) <= PARTS.operations and any(map(self._computes, part))

    def _computes(self, i: int) -> bool:
        operation = self.operations[i]
        return operation.name not in _MOVING or operation.results[0] in self.copies

    def _call(self, part: Sequence[int]) -> None:
        """Write a function of a part, and its call at the end of the block, whose results take the part's place."""
        inside = set(part)
        taken: dict[Value, None] = {}
        for i in part:
            for x in self.operations[i].operands:
                maker = self.maker.get(x)
                if maker is None or (maker not in inside and self.kinds[maker] != _FIXED):
                    taken[x] = None
        results = [
            r for i in part for r in self.operations[i].results if not inside.issuperset(self.readers.get(r, ()))
        ]
        arguments = [x for x in taken if _size(x.type)]
        # As vectors: XLA chooses layouts of matrices that functions take and return, and writes kernels that only copy.
        ins = [_flat(x.type) for x in arguments]
        firsts = [ir.RankedTensorType.get([1], kind.element_type) for kind in ins]
        outs = [*(_flat(r.type) for r in results), *firsts]
        symbol = self._symbol()
        attrs = {
            "sym_name": mlir.string(symbol),
            "sym_visibility": mlir.string("private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs)),
        }
        made = _create("func.func", [], [], attrs, None, 1, mlir.unknown, ir.InsertionPoint(self.module.body))
        self.functions[symbol] = made
        block = made.regions[0].blocks.append(*ins, arg_locs=[mlir.unknown] * len(ins))
        point = ir.InsertionPoint(block)
        values: dict[Value, Value] = {x: _empty(x.type, point) for x in taken if not _size(x.type)}
        values |= {x: _shaped(a, x.type, point) for x, a in zip(arguments, block.arguments, strict=True)}
        for i in part:
            self._clone(self.operations[i], values, point)
        # As in `Emitter.kernel`: XLA ends the process at a parameter that nothing uses once the function is simplified.
        returned = [_shaped(values[r], _flat(r.type), point) for r in results]
        returned += [_first(a, first, point) for a, first in zip(block.arguments, firsts, strict=True)]
        _create("func.return", [], returned, None, None, 0, mlir.unknown, point)

        point = ir.InsertionPoint(self.end)
        operands = [_shaped(x, kind, point) for x, kind in zip(arguments, ins, strict=True)]
        if operands:
            barrier = "stablehlo.optimization_barrier"
            operands = list(_create(barrier, ins, operands, None, None, 0, mlir.unknown, point).results)
        attrs = {"callee": ir.FlatSymbolRefAttr.get(symbol), "mhlo.frontend_attributes": mlir.one_kernel}
        call = _create("func.call", outs, operands, attrs, None, 0, mlir.unknown, point)
        for old, new in zip(results, list(call.results)[: len(results)], strict=True):
            old.replace_all_uses_with(_shaped(new, old.type, point))

    def _clone(self, operation: Operation, values: dict[Value, Value], point: Any) -> None:
        for x in operation.operands:
            if x not in values:  # a constant, of which each function has its own
                self._clone(self.operations[self.maker[x]], values, point)
        made = operation.clone(ip=point)
        for k, x in enumerate(operation.operands):
            made.operands[k] = values[x]
        values.update(zip(operation.results, made.results, strict=True))

    def _symbol(self) -> str:
        count = len(self.functions)
        while (symbol := f"part_{count}") in self.functions:
            count += 1
        return symbol


def _values_inside(operation: Operation) -> list[Value]:
    """Operands of the operations in an operation's regions."""
    return [x for inner in mlir.operations_in(operation) for x in inner.operands]


def _is_lapack(operation: Operation) -> bool:
    target = operation.attributes["call_target_name"] if operation.name == "stablehlo.custom_call" else None
    return target is not None and ir.StringAttr(target).value.startswith("lapack_")


def _by_columns(call: Operation, name: str, values: Sequence[Value]) -> list[int]:
    """Positions of the matrices, or stacks of them, that a call takes or gives by columns; by rows from now on."""
    if name not in call.attributes:
        return []
    layouts = list(ir.ArrayAttr(call.attributes[name]))
    found = []
    for k, x in enumerate(values):
        if isinstance(x.type, ir.RankedTensorType) and len(x.type.shape) >= 2 and _size(x.type):
            by_rows = range(len(x.type.shape) - 1, -1, -1)
            if list(ir.DenseIntElementsAttr(layouts[k])) == [by_rows[1], by_rows[0], *by_rows[2:]]:
                found.append(k)
                layouts[k] = mlir.parsed(f"dense<{list(by_rows)}> : tensor<{len(by_rows)}xindex>")
    call.attributes[name] = ir.ArrayAttr.get(layouts)
    return found


def _flipped(kind: Any) -> Any:
    """The type of transposed matrices."""
    *stack, rows, columns = kind.shape
    return ir.RankedTensorType.get([*stack, columns, rows], kind.element_type)


def _transposed(x: Value, point: Any) -> Value:
    """Matrices, or stacks of them, transposed."""
    rank = len(x.type.shape)
    attrs = {"permutation": mlir.i64_array((*range(rank - 2), rank - 1, rank - 2))}
    return _create("stablehlo.transpose", [_flipped(x.type)], [x], attrs, None, 0, mlir.unknown, point).result


def _flat(kind: Any) -> Any:
    """The type of an array's elements as a vector."""
    return ir.RankedTensorType.get([_size(kind)], kind.element_type)


def _shaped(x: Value, kind: Any, point: Any) -> Value:
    """An array of the same elements."""
    return x if x.type == kind else _create("stablehlo.reshape", [kind], [x], None, None, 0, mlir.unknown, point).result


def _size(kind: Any) -> int:
    return math.prod(kind.shape)


def _is_native(kind: Any) -> bool:
    """Return True for an array whose elements XLA computes without conversions."""
    return isinstance(kind, ir.RankedTensorType) and str(kind.element_type) in _NATIVE


def _is_small_product(operation: Operation) -> bool:
    if "algorithm" in operation.attributes:
        return False
    dimensions = _stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    left, right = (x.type.shape for x in operation.operands)
    return PARTS.admit_product(left, right, dimensions.lhs_batching_dimensions, dimensions.lhs_contracting_dimensions)


def _empty(kind: Any, point: Any) -> Value:
    value = mlir.parsed(f"dense<> : {kind}")
    return _create("stablehlo.constant", [kind], [], {"value": value}, None, 0, mlir.unknown, point).result


def _first(x: Value, kind: Any, point: Any) -> Value:
    """The first element of a vector."""
    one = mlir.i64_array((1,))
    attrs = {"start_indices": mlir.i64_array((0,)), "limit_indices": one, "strides": one}
    return _create("stablehlo.slice", [kind], [x], attrs, None, 0, mlir.unknown, point).result
