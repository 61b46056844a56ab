"""The emitter: StableHLO modules built operation by operation, through MLIR's generic constructor (1 us each).

>>> def body(e, x, y):
...     out = e.op("stablehlo.add", [x, y], [aval])
...     return [out]
>>> module = build("sum", [aval, aval], body)  # doctest: +SKIP
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import counters, mlir
from functorch_like.backends.xla.attributes import Attributes
from functorch_like.backends.xla.constants import Constants, element_constant
from functorch_like.backends.xla.effects import TOKEN as TOKEN
from functorch_like.backends.xla.effects import Effects
from functorch_like.backends.xla.functions import Body, Functions, identifier
from functorch_like.backends.xla.partitioned_emit import Manual, Partitioned
from functorch_like.backends.xla.partitioning import Partitioning
from functorch_like.backends.xla.templates import Template, template_of

Value = Any
Region = tuple[Sequence[ShapedArray], Body]

_create = ir.Operation.create
_types = mlir.types
_HALF, _DOUBLE = np.dtype(np.float16), np.dtype(np.float64)
#: What folds booleans where they are bytes.
_OF_BYTES = {"and": "minimum", "or": "maximum"}


class Emitter(Attributes, Constants, Functions, Effects, Partitioned):
    """Writes operations into the current block of one module.

    Attributes:
        platform: the platform of the module, "cpu" or "gpu".
        ins, outs: free for the caller; lowering keeps the avals of the current equation here.
        place: source location of the operations from here on, a result of `location`.
        token: a value of aval `TOKEN` that the next ordered effect must depend on, and replace by one of its results.
            Operations in a region start with the token outside of it, which no region can change: a primitive with
            ordered effects in a region or a function carries the token in and out of it.
        host_calls: the Python functions that the module calls.
        host_kernels: whether it may call kernels of NumPy.
        portable: whether it may run under other versions of XLA, with other options.
        memo: decisions of rules by operands' avals and parameters, for later equations with the same ones.
    """

    __slots__ = (
        "_channels",
        "_constants",
        "_end",
        "_functions",
        "_groups",
        "_ip",
        "_meshes",
        "_module",
        "_symbols",
        "_token",
        "_written",
        "host_calls",
        "host_kernels",
        "in_kernel",
        "ins",
        "manual",
        "memo",
        "outs",
        "partitioning",
        "place",
        "platform",
        "portable",
        "quick",
    )

    def __init__(self, module: ir.Module, platform: str, host_calls: list[Any] | None = None) -> None:
        self.platform = platform
        self.host_calls: list[Any] = [] if host_calls is None else host_calls
        self.host_kernels = False
        self.in_kernel = False
        self.portable = False
        self.quick = False
        self.ins: Any = ()
        self.outs: Any = ()
        self.memo: dict[Any, Any] = {}
        self._module = module
        self._end = ir.InsertionPoint(module.body)
        self._ip: Any = None
        self.place = mlir.unknown
        # Of the current block only: values of outer blocks are not visible in every region.
        self._constants: dict[Any, Value] = {}
        self._functions: dict[Any, str] = {}
        self._symbols: set[str] = set()
        self._token: Value | None = None
        self._meshes: dict[Any, str] = {}
        self._channels = 0
        self._groups = 0
        self._written: list[Any] | None = None  # operations of the current rule, while `written_by` records them
        self.partitioning: Partitioning | None = None
        self.manual: Manual | None = None

    @property
    def token(self) -> Value:
        return self.constant(np.False_) if self._token is None else self._token

    @token.setter
    def token(self, value: Value) -> None:
        self._token = value

    # ----------------------------------------------------------------------------------------------------- operations
    def op(
        self,
        name: str,
        operands: Sequence[Value],
        out_avals: Sequence[ShapedArray],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Region] = (),
    ) -> Any:
        """Write one operation; return its value, or the list of its values if there is not exactly one."""
        if len(out_avals) == 1 and not regions:  # nearly all: kept short, it runs once per operation of a program
            results = [_types[out_avals[0]]]
            value = _create(name, results, operands, attrs, None, 0, self.place, self._ip).result
            if self._written is not None:
                self._written.append((name, results, attrs, None, operands, value))
            return value
        results = [_types[aval] for aval in out_avals]
        self.forbid_template()
        made = _create(name, results, operands, attrs, None, len(regions), self.place, self._ip)
        for region, (arg_avals, body) in zip(made.regions, regions, strict=True):
            self._fill(region, arg_avals, body, "stablehlo.return")
        return made.result if len(results) == 1 else list(made.results)

    def written_by(
        self, rule: Callable[..., Any], operands: Sequence[Value], params: dict[str, Any]
    ) -> tuple[Any, Template | bool | None]:
        """Run a rule; return its result, and the template of its operations, False if there is none.

        The rule would write the same operations for other operands of these avals, except in two cases, which have no
        template: it has written calls or regions (other than those of `reduce`), or it has inspected its operands
        (`known`, `is_constant`).
        """
        outer, self._written = self._written, []
        try:
            out = rule(self, *operands, **params)
            written = self._written
        finally:
            self._written = outer
        return out, False if written is None else template_of(operands, written, out)

    def forbid_template(self) -> None:
        """Make no template of the current rule's operations: they depend on more than avals and parameters."""
        self._written = None

    def write(self, template: Template, operands: list[Value]) -> Any:
        """Write the operations of a template, of other operands."""
        place, point = self.place, self._ip
        name, results, attrs, fold, _ = template.steps[0]
        if template.single:
            return _create(name, results, operands, attrs, None, 0, place, point).result
        values = operands
        for name, results, attrs, fold, taken in template.steps:
            if name is None:
                values.append(self._constant_of(results))
                continue
            inputs = [values[i] for i in taken]
            if fold is None:
                values.append(_create(name, results, inputs, attrs, None, 0, place, point).result)
            else:
                values.append(self._reduce(results, attrs, fold, inputs))
        made = [values[i] for i in template.returned]
        return made if template.several else made[0]

    def loop(
        self, operands: Sequence[Value], avals: Sequence[ShapedArray], more: Body, step: Body, one_kernel: bool = False
    ) -> list[Value]:
        """Emit a loop.

        Args:
            operands: the first values.
            avals: of the values.
            more: the condition: emits `values -> [bool]`.
            step: emits `values -> values`.
            one_kernel: True to compile the loop as one kernel, on CPUs; it may have no effects.

        Returns:
            The last values.
        """
        if not one_kernel:
            made = self.op("stablehlo.while", operands, avals, regions=[(avals, more), (avals, step)])
            return [made] if len(avals) == 1 else list(made)
        return self.kernel("loop", operands, avals, lambda inner, *values: inner.loop(values, avals, more, step), avals)

    def kernel(
        self,
        name: str,
        operands: Sequence[Value],
        avals: Sequence[ShapedArray],
        body: Body,
        outs: Sequence[ShapedArray],
    ) -> list[Value]:
        """Emit operations that XLA:CPU compiles as one kernel, which runs on one thread.

        Args:
            name: name of the function that they become.
            operands: values that `body` reads.
            avals: avals of the operands.
            body: emits `operands -> results`; it may have no effects.
            outs: avals of the results.
        """
        # Constants go into the function: XLA finds the number of steps of a loop from that of the counter, and a loop
        # writes to arrays that are made inside in place, where those of the caller are copied.
        constants = [element_constant(x) for x in operands]
        taken = [k for k, constant in enumerate(constants) if constant is None and avals[k].size]

        def whole(inner: Emitter, *arguments: Value) -> list[Value]:
            rest = dict(zip(taken, arguments, strict=True))
            values = [
                rest[k] if k in rest else inner._empty(avals[k]) if c is None else inner._again(c, avals[k])
                for k, c in enumerate(constants)
            ]
            outer, inner.in_kernel = inner.in_kernel, True
            try:
                return [*body(inner, *values), *(inner.first(rest[k], avals[k]) for k in taken)]
            finally:
                inner.in_kernel = outer

        # XLA ends the process if it simplifies such a kernel until a parameter is unused. So a result uses each
        # parameter, and `_unfolded` keeps XLA from replacing an argument by a constant array.
        passed = [avals[k] for k in taken]
        results = [*outs, *(aval.update(shape=(1,) * aval.ndim) for aval in passed)]
        symbol = self.define(name, passed, whole, "private", results)
        arguments = self._unfolded([operands[k] for k in taken], passed)
        return self.call(symbol, arguments, results, one_kernel=True)[: len(outs)]

    def _again(self, made: Any, aval: ShapedArray) -> Value:
        """Write a constant of another block in this one, as an array of this aval."""
        x = made.clone(ip=self._ip).results[0]
        return x if x.type == _types[aval] else self.broadcast_in_dim(x, aval, ())

    def _unfolded(self, xs: list[Value], avals: list[ShapedArray]) -> list[Value]:
        """Return the same values behind a barrier, so that XLA does not fold them when it compiles."""
        if not xs:
            return xs
        made = self.op("stablehlo.optimization_barrier", xs, avals)
        return [made] if len(xs) == 1 else made

    def first(self, x: Value, aval: ShapedArray) -> Value:
        """Return the first element of a non-empty array, as an array of the same rank."""
        if not aval.ndim:
            return x
        ones = self.i64s((1,) * aval.ndim)
        attrs = {"start_indices": self.i64s((0,) * aval.ndim), "limit_indices": ones, "strides": ones}
        return self.op("stablehlo.slice", [x], [aval.update(shape=(1,) * aval.ndim)], attrs)

    def _fill(self, region: Any, arg_avals: Sequence[ShapedArray], body: Body, terminator: str) -> list[Value]:
        """Write the one block of a region; return the values that it returns."""
        arg_types = [_types[aval] for aval in arg_avals]
        block = region.blocks.append(*arg_types, arg_locs=[self.place] * len(arg_types))
        saved = self._ip, self._constants, self.place, self._token, self.ins, self.outs
        self._ip, self._constants = ir.InsertionPoint(block), {}
        try:
            outs = list(body(self, *block.arguments))
            _create(terminator, [], outs, None, None, 0, self.place, self._ip)
        finally:
            self._ip, self._constants, self.place, self._token, self.ins, self.outs = saved
        return outs

    def count(self) -> int:
        """Return the number of operations in the current block."""
        return len(self._ip.block.operations)

    def annotate_since(self, count: int, attributes: Sequence[tuple[str, str]]) -> None:
        """Give the operations after the first `count` of the block attributes for XLA, also inside of their regions."""
        operations = self._ip.block.operations
        for k in range(count, len(operations)):
            _annotate(operations[k].operation, attributes)

    def annotate(self, x: Value, attributes: Sequence[tuple[str, str]]) -> None:
        """Give the operation that makes a value attributes for XLA; arguments have none."""
        self.forbid_template()
        operation = getattr(x.owner, "operation", None)
        if operation is not None:
            _annotate(operation, attributes, inside=False)

    def type(self, aval: ShapedArray) -> Any:
        """The tensor type of an aval."""
        return _types[aval]

    def location(self, file: str, line: int, function: str = "") -> Any:
        """A line of the user's, as a `place`."""
        return mlir.location(file, line, function)

    # -------------------------------------------------------------------------------------------------------- layouts
    def by_rows(self, x: Value, aval: ShapedArray) -> Value:
        """Return an array unchanged, in row-major layout, and not as part of a fusion with its readers.

        Portable programs get no such request: compilers other than XLA do not know it.
        """
        if self.portable:
            return x
        attrs = {"call_target_name": mlir.string("LayoutConstraint"), **self.row_major([x], [aval])}
        return self.op("stablehlo.custom_call", [x], [aval], attrs)

    def row_major(self, operands: Sequence[Value], out_avals: Sequence[ShapedArray]) -> dict[str, Any]:
        """Return the attributes by which a custom call gets row-major operands, and gives such results.

        TRAP: without them XLA:GPU chooses the layouts, and code that takes them for row-major computes wrong numbers.
        """
        return {
            "operand_layouts": self.layouts([range(x.type.rank)[::-1] for x in operands]),
            "result_layouts": self.layouts([range(aval.ndim)[::-1] for aval in out_avals]),
        }

    # ---------------------------------------------------------------------------------------------------- conveniences
    def compare(self, direction: str, a: Value, b: Value, out_aval: ShapedArray, kind: str) -> Value:
        """Elementwise comparison: direction EQ NE GE GT LE LT; kind FLOAT TOTALORDER SIGNED UNSIGNED."""
        attrs = {
            "comparison_direction": mlir.parsed(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": mlir.parsed(f"#stablehlo<comparison_type {kind}>"),
        }
        return self.op("stablehlo.compare", [a, b], [out_aval], attrs)

    def convert(self, x: Value, out_aval: ShapedArray) -> Value:
        """Convert to the dtype of `out_aval`; `x` itself if it has that."""
        if x.type == _types[out_aval]:
            return x
        if out_aval.dtype == _HALF and self.platform == "cpu":
            wide = out_aval.update(dtype=_DOUBLE, weak_type=False)
            x = self._with_marked_rest(x, wide) if x.type == _types[wide] else x
        return self.op("stablehlo.convert", [x], [out_aval])

    def _with_marked_rest(self, x: Value, aval: ShapedArray) -> Value:
        """Return float64 numbers as ones that float32 holds, which are rounded to float16 as they are.

        TRAP: processors without arithmetic in float16 convert by way of float32, and round twice. The last digit of
        float32 is set here where a later one is: a number that is near the middle between two stays on its side.
        """
        whole, rest = aval.update(dtype=np.dtype(np.int64)), (1 << 30) - 1
        op = lambda name, x, y: self.op(f"stablehlo.{name}", [x, self.full(y, whole)], [whole])
        bits = self.op("stablehlo.bitcast_convert", [x], [whole])
        mark = op("and", op("add", op("and", bits, rest), rest), rest + 1)  # 2 ** 30 if there is a rest
        marked = self.op("stablehlo.or", [op("and", bits, ~rest), op("shift_right_logical", mark, 1)], [whole])
        return self.op("stablehlo.bitcast_convert", [marked], [aval])

    def reshape(self, x: Value, aval: ShapedArray, out_aval: ShapedArray) -> Value:
        """The elements of `x`, whose aval is `aval`, in the shape of `out_aval`."""
        return x if aval.shape == out_aval.shape else self.op("stablehlo.reshape", [x], [out_aval])

    def broadcast_in_dim(self, x: Value, out_aval: ShapedArray, dims: Sequence[int]) -> Value:
        """`x` repeated: its axis i is axis dims[i] of the result."""
        return self.op("stablehlo.broadcast_in_dim", [x], [out_aval], {"broadcast_dimensions": self.i64s(dims)})

    def reduce(self, kind: str, x: Value, init: Any, dims: Sequence[int], out_aval: ShapedArray) -> Value:
        """Fold axes with the operation `stablehlo.<kind>`, from `init` (a value, or a number)."""
        if kind in _OF_BYTES and out_aval.dtype == np.bool_ and self._folds_bytes(x, dims):
            return self._reduce_bytes(_OF_BYTES[kind], x, init, dims, out_aval)
        scalar = ShapedArray((), out_aval.dtype)
        if not isinstance(init, ir.Value):
            init = self.constant(np.asarray(init, out_aval.dtype))
        results, attrs, fold = (
            [_types[out_aval]],
            {"dimensions": self.i64s(dims)},
            (f"stablehlo.{kind}", _types[scalar]),
        )
        value = self._reduce(results, attrs, fold, [x, init])
        if self._written is not None:
            self._written.append(("stablehlo.reduce", results, attrs, fold, [x, init], value))
        return value

    def _folds_bytes(self, x: Value, dims: Sequence[int]) -> bool:
        """Return True where booleans are better folded as bytes: along rows that XLA:CPU folds in several stages.

        Its code for single bits takes 0.4 s to compile there, and twice as long to run.
        """
        shape = x.type.shape
        return self.platform == "cpu" and len(shape) - 1 in dims and math.prod(shape[d] for d in dims) > 32

    def _reduce_bytes(self, kind: str, x: Value, init: Any, dims: Sequence[int], out_aval: ShapedArray) -> Value:
        of = lambda shape: ShapedArray(tuple(shape), np.dtype(np.uint8))
        first = self.convert(init, of(())) if isinstance(init, ir.Value) else np.uint8(init)
        folded = self.reduce(kind, self.convert(x, of(x.type.shape)), first, dims, of(out_aval.shape))
        return self.convert(folded, out_aval)

    def _reduce(self, results: Any, attrs: Any, fold: tuple[str, Any], operands: Sequence[Value]) -> Value:
        """A reduction by one operation, on scalars of one type."""
        (name, scalar), place = fold, self.place
        made = _create("stablehlo.reduce", results, operands, attrs, None, 1, place, self._ip)
        block = made.regions[0].blocks.append(scalar, scalar, arg_locs=[place, place])
        inside = ir.InsertionPoint(block)
        folded = _create(name, [scalar], list(block.arguments), None, None, 0, place, inside).result
        _create("stablehlo.return", [], [folded], None, None, 0, place, inside)
        return made.result


#: Operations whose regions are parts of the program.
_CONTROL = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case"))


def _annotate(operation: Any, attributes: Sequence[tuple[str, str]], inside: bool = True) -> None:
    """Add frontend attributes to an operation, except for names that it has already."""
    name = "mhlo.frontend_attributes"
    own = operation.attributes
    added = {key: mlir.string(text) for key, text in attributes}
    if name in own:
        added.update((named.name, named.attr) for named in ir.DictAttr(own[name]))
    own[name] = ir.DictAttr.get(added, mlir.context)
    for region in operation.regions if inside and operation.name in _CONTROL else ():
        for block in region.blocks:
            for each in block.operations:
                if each.operation.name not in ("stablehlo.return", "func.return"):
                    _annotate(each.operation, attributes)


def build(
    name: str,
    in_avals: Sequence[ShapedArray],
    body: Body,
    *,
    donated: Collection[int] = (),
    aliases: Mapping[int, int] | None = None,
    platform: str = "cpu",
    host_calls: list[Any] | None = None,
    host_kernels: bool = False,
    portable: bool = False,
    quick: bool = False,
    partitioning: Partitioning | None = None,
    out_avals: Sequence[ShapedArray] = (),
) -> ir.Module:
    """A module whose `main` takes `in_avals` and returns what `body(emitter, *arguments)` does.

    Args:
        name: of the module, as profiles and dumps show it.
        in_avals: of main's arguments.
        body: emits the operations.
        donated: positions of arguments whose memory XLA may use for any result that fits.
        aliases: positions of arguments, each with the position of the result that takes its memory.
        platform: the value of `Emitter.platform`.
        host_calls: receives the Python functions that the module calls, for `compile`.
        host_kernels: whether it may call kernels of NumPy: it will run in a process that has this package.
        portable: whether it may run under other versions of XLA, with other options.
        quick: whether it is compiled under quick options, so that forms that compile soon are preferred.
        partitioning: how the program is split over a mesh; None for one device.
        out_avals: of the results; needed with a partitioning that splits them.
    """
    aliases = aliases or {}
    with mlir.lock, mlir.context, mlir.unknown:
        counters.modules += 1
        module = ir.Module.create(mlir.unknown)
        module.operation.attributes["sym_name"] = mlir.string(identifier(name))
        emitter = Emitter(module, platform, host_calls)
        emitter.host_kernels, emitter.portable, emitter.quick = host_kernels, portable, quick
        arguments = results = None
        if partitioning is not None:
            emitter.partitioning = partitioning
            module.operation.attributes["mhlo.num_partitions"] = mlir.integer(partitioning.mesh.size, 32)
            module.operation.attributes["mhlo.num_replicas"] = mlir.integer(1, 32)
            # Defined first: XLA partitions values without a spec by the first mesh.
            emitter.mesh_symbol(partitioning.mesh)
            results = emitter.border(partitioning.outs, out_avals)
        if donated or aliases or partitioning is not None:
            ins = partitioning.ins if partitioning is not None else (None,) * len(in_avals)
            split = emitter.border(ins, in_avals) or [{} for _ in in_avals]
            arguments = [_argument(i, donated, aliases, attrs) for i, attrs in enumerate(split)]
        dictionaries = lambda each: None if each is None else ir.ArrayAttr.get([ir.DictAttr.get(a) for a in each])
        emitter.define("main", in_avals, body, "public", None, dictionaries(arguments), dictionaries(results))
        return module


def _argument(
    position: int, donated: Collection[int], aliases: Mapping[int, int], attrs: dict[str, Any]
) -> dict[str, Any]:
    if position in aliases:
        return {**attrs, "tf.aliasing_output": mlir.integer(aliases[position], 32)}
    return {**attrs, "jax.buffer_donor": mlir.flags[True]} if position in donated else attrs
