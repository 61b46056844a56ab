"""Stages of a jitted function as objects: `Traced`, `Lowered` and `Compiled`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import status_line
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.backends.xla import mapped_regions
from functorch_like.backends.xla.target_device import compiling_for
from functorch_like.calling.call_signature import FlatCall
from functorch_like.calling.edited_errors import ErrorsEdited
from functorch_like.compiler import lower as lowering
from functorch_like.compiler.placement import settle
from functorch_like.core import Trace
from functorch_like.errors import ArgumentError, refuse_pickling
from functorch_like.ir.trace_to_jaxpr import StageTrace, stage
from functorch_like.markup import terminal
from functorch_like.markup.display import Display
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.transforms.compiled_calls import CompiledCalls

if TYPE_CHECKING:
    from functorch_like.ir.jaxpr import Jaxpr
    from functorch_like.markup import elements


class ArgInfo(NamedTuple):
    """Facts about one argument of a program.

    Attributes:
        shape, dtype, weak_type: its type.
        donated: whether the results may take its memory.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    donated: bool


class Traced(Display):
    """A function traced for one signature.

    Attributes:
        jaxpr: the program; its first inputs are `consts`, the others the flat arguments.
        consts: the values that the function closed over.
        out_tree: the structure of the result.
        out_info: shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`.
        seconds: the time of tracing.
    """

    __reduce_ex__ = refuse_pickling("a traced function")

    def __init__(
        self,
        fun: Callable[..., Any],
        call: FlatCall,
        spec: CallSpec,
        *,
        donated: Sequence[bool] = (),
        origin: str = "traced by jit",
        trace_name: str = "",
        trace: StageTrace | None = None,
        through: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda flat: flat,
    ) -> None:
        started = time.perf_counter()
        xla.counters.traces += 1
        flat, trees = call.flatten_function(fun)
        chain = trace_name or f"jit({spec.name})"
        with status_line.stage("tracing", spec.name):
            self.jaxpr, self.consts = stage(
                through(flat), call.avals, name=spec.name, origin=origin, chain=chain, hosts=call.hosts(), trace=trace
            )
        self.out_tree = trees[0]
        self._describe(call, spec, donated)
        self.seconds = time.perf_counter() - started

    def _describe(self, call: FlatCall, spec: CallSpec, donated: Sequence[bool]) -> None:
        self.in_tree, self.in_avals, self.statics = call.tree, call.avals, call.statics
        self.spec, self.donated = spec, tuple(donated)
        self.programs: dict[Any, Any] = {}  # compiled, by device and kinds of numbers
        self.pending: dict[Any, Any] = {}  # futures of those that `warmup` compiles
        self.place: Any = None  # the default device
        self.seconds = 0.0

    @classmethod
    def of(
        cls, jaxpr: Jaxpr, consts: list[Any], out_tree: Any, call: FlatCall, spec: CallSpec, donated: Sequence[bool]
    ) -> Traced:
        """Make a `Traced` of a jaxpr that was staged in another way."""
        made = object.__new__(cls)
        made.jaxpr, made.consts, made.out_tree = jaxpr, consts, out_tree
        made._describe(call, spec, donated)
        return made

    def placed(self, place: Any) -> Traced:
        """Return a copy that is lowered for a device, or for a mesh, given as a `Partitioning` of the arguments."""
        return self._changed(place=place)

    def under(self, trace: Trace) -> Traced:
        """Return the program as it runs under a trace, such as that of an `autocast` block."""
        jaxpr = trace.of_program(self.jaxpr)
        return self if jaxpr is self.jaxpr else self._changed(jaxpr=jaxpr, programs={}, pending={})

    def _changed(self, **attributes: Any) -> Traced:
        made = object.__new__(Traced)
        made.__dict__.update(self.__dict__, **attributes)
        return made

    @property
    def out_info(self) -> Any:
        return self.out_tree.unflatten([*map(_described, self.jaxpr.out_avals)])

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure of the arguments: `(args, kwargs)`."""
        donated = self.donated or (False,) * len(self.in_avals)
        infos = [ArgInfo(a.shape, a.dtype, a.weak_type, d) for a, d in zip(self.in_avals, donated, strict=True)]
        return self.in_tree.unflatten(infos)

    def lower(self, *, device: Any = None) -> Lowered:
        """Lower to StableHLO, for a device (the default one if None)."""
        return Lowered(self, self.target if device is None else xla.find_device(device))

    @property
    def target(self) -> Any:
        """The device, or the `Partitioning` over a mesh, that the arguments are bound to; else the default device."""
        return xla.default_device() if self.place is None else self.place

    def as_text(self) -> str:
        """The jaxpr as text."""
        return str(self.jaxpr)

    __str__ = as_text

    def __repr__(self) -> str:
        return self.layout()

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the signature and the time of tracing."""
        return self._display().layout(paint)

    def markup(self) -> elements.Markup:
        """Return the same as HTML, with the jaxpr."""
        return self._display().markup()

    def _display(self) -> Display:
        from functorch_like.transforms.stage_display import Stage, StageDisplay  # only where one is looked at

        return StageDisplay("traced", self.jaxpr, [Stage("tracing", self.seconds)])


def _described(aval: ShapedArray) -> ShapeDtypeStruct:
    if aval.explicit is None:
        return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type)
    from functorch_like.backends.xla import explicit_types  # few programs have such types

    return explicit_types.described(aval)


class Lowered(Display):
    """A function lowered to StableHLO for one platform.

    Attributes:
        in_tree, out_tree: the structures of the arguments, as (args, kwargs), and of the result.
        out_info: shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`.
        seconds: the time of lowering.
    """

    __reduce_ex__ = refuse_pickling("a lowered function")

    def __init__(self, traced: Traced, device: Any) -> None:
        started = time.perf_counter()
        partitioning = settle(traced.jaxpr, traced.consts, [*traced.in_avals], device)
        self.traced, self.device = traced, device if partitioning is None else partitioning
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._lowered = lowering.lower(
            traced.jaxpr,
            name=traced.spec.name,
            donated=[False] * len(traced.consts) + list(traced.donated) if any(traced.donated) else None,
            keep_unused=traced.spec.keep_unused,
            platform=device.platform,
            partitioning=partitioning,
        )
        with compiling_for(device):
            self._module = self._lowered.module
        self.seconds = time.perf_counter() - started

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the signature and the time of each stage."""
        return self._display().layout(paint)

    def markup(self) -> elements.Markup:
        """Return the same as HTML, with the jaxpr."""
        return self._display().markup()

    def _display(self) -> Display:
        from functorch_like.transforms.stage_display import Stage, StageDisplay  # only where one is looked at

        stages = [Stage("tracing", self.traced.seconds), Stage("lowering", self.seconds)]
        return StageDisplay("lowered", self.traced.jaxpr, stages, str(self.device))

    @property
    def out_info(self) -> Any:
        return self.traced.out_info

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure of the arguments: `(args, kwargs)`."""
        return self.traced.args_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
            dialect: "stablehlo", the default, or "hlo": as XLA takes it in, before it optimises.
            debug_info: whether the user's lines and named scopes are shown, too; in StableHLO.

        Raises:
            ArgumentError: for another dialect.
        """
        if self._in_hlo(dialect):
            return xla.hlo_text(self._module)
        return lowering.as_text(self._module, debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as an object of jaxlib: an MLIR module, or of dialect "hlo" an XlaComputation.

        Raises:
            ArgumentError: for another dialect.
        """
        return xla.hlo(self._module) if self._in_hlo(dialect) else self._module

    def _in_hlo(self, dialect: str | None) -> bool:
        if dialect not in (None, "stablehlo", "hlo"):
            raise ArgumentError(f"a program has no dialect {dialect!r}", fix='use "stablehlo" or "hlo"')
        return dialect == "hlo"

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile with XLA.

        Args:
            compiler_options: options of XLA by name; they take precedence over those of `jit`.
        """
        mapped_regions.make_room()
        options = {**dict(self.traced.spec.options), **(compiler_options or {})}
        return Compiled(self, self._lowered, options)

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of work: flops, bytes accessed, transcendentals. (Compiles.)"""
        return self.compile().cost_analysis()


class Compiled(Display, ErrorsEdited):
    """A function compiled for one signature: call it with arguments of exactly that signature.

    Attributes:
        in_tree, out_tree: the structures of the arguments, as (args, kwargs), and of the result.
        out_info: shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`.
        seconds: the time of compiling.
    """

    __reduce_ex__ = refuse_pickling("a compiled function")

    def __init__(self, lowered: Lowered, inner: lowering.Lowered, options: dict[str, Any]) -> None:
        started = time.perf_counter()
        self.traced, self._lowering, self._place = lowered.traced, lowered.seconds, str(lowered.device)
        self.in_tree, self.out_tree, self.out_info = lowered.in_tree, lowered.out_tree, lowered.out_info
        self._kept_inputs, self._options = inner.kept_inputs, options
        self.executable = inner.compile(lowered.device, options or None, mode=self.traced.spec.mode)
        ErrorsEdited.__init__(self, CompiledCalls(self.traced, self.executable, self._kept_inputs).function())
        self.seconds = time.perf_counter() - started

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the signature, the time of each stage, XLA's estimate of cost, and memory."""
        return self._display().layout(paint)

    def markup(self) -> elements.Markup:
        """Return the same as HTML, with the jaxpr."""
        return self._display().markup()

    def _display(self) -> Display:
        from functorch_like.transforms.stage_display import Stage, StageDisplay  # only where one is looked at

        times = {"tracing": self.traced.seconds, "lowering": self._lowering, "compiling": self.seconds}
        stages = [Stage(name, seconds) for name, seconds in times.items()]
        return StageDisplay("compiled", self.traced.jaxpr, stages, self._place, self.executable)

    def collectives(self) -> list[Any]:
        """The collectives that the program contains, with their number and bytes, by kind."""
        return self.executable.collectives()

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument that the program takes, in the structure of the arguments: `(args, kwargs)`."""
        places = iter(self.executable.in_shardings)
        each = [next(places) if k else None for k in self._kept_inputs]
        return self.in_tree.unflatten(each[len(self.traced.consts) :])

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, in the structure of the results."""
        return self.out_tree.unflatten(self.executable.out_shardings)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure of the arguments: `(args, kwargs)`."""
        return self.traced.args_info

    def as_text(self) -> str:
        """Optimised HLO text."""
        return self.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of work: flops, bytes accessed, transcendentals."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Bytes of arguments, results, temporaries and aliases, as XLA allocated them."""
        return self.executable.memory_analysis()
