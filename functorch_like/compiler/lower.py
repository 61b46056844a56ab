"""Lowering: a jaxpr becomes a StableHLO module, and the module an executable."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import client, compile_options, events, host_kernels, option_sets
from functorch_like.backends.xla.target_device import compiling_for
from functorch_like.caches import Cache
from functorch_like.compiler import one_kernel, tier_costs
from functorch_like.compiler.doubled_values import without_doubling
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.compiler.joined_paddings import with_concatenations
from functorch_like.compiler.moved_transposes import without_inverses
from functorch_like.compiler.option_rules import choose, choose_quick
from functorch_like.compiler.outlining import is_transpose, outline, part_key
from functorch_like.compiler.repeated_operands import narrow_products
from functorch_like.compiler.result_memory import brought_back
from functorch_like.compiler.routed_sums import with_routed_sums
from functorch_like.compiler.transposed_operands import without_transposes
from functorch_like.compiler.unused_donations import warn_of_unused
from functorch_like.errors import CompileError, FtError
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, count_equations
from functorch_like.primitives.base import kernels
from functorch_like.status_line import stage


class Lowered:
    """A jaxpr, lowered when `module` is first read, with the data to compile and call it.

    Attributes:
        kept_inputs: mask of the jaxpr's inputs that the module takes.
        in_avals: avals of these inputs, in the dtypes in which they arrive.
        out_avals: avals of the results.
        partitioning: shardings of the program over a mesh; None for one device.
    """

    def __init__(
        self,
        build: Callable[[Any, bool, bool], Any],
        jaxpr: Jaxpr,
        kept_inputs: list[bool],
        in_avals: list[ShapedArray],
        name: str,
        identify: Callable[[Any], bytes | None],
        host_calls: list[Any],
        partitioning: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self._build, self.jaxpr, self.kept_inputs, self.name = build, jaxpr, kept_inputs, name
        self._host_calls = host_calls  # filled when the module is built
        self.in_avals, self.out_avals = in_avals, jaxpr.out_avals
        self._identify = identify

    @cached_property
    def module(self) -> Any:
        """The StableHLO module."""
        return self._built()

    @cached_property
    def _quick_module(self) -> Any:
        """The module that is compiled under quick options, of forms that compile soon: what is small is one kernel."""
        if self.partitioning is not None:
            return self.module
        if self._starts_as_one_kernel():
            return self._built(whole=True, quick=True)
        module = self._built(quick=True) if tier_costs.has_optimised_forms(self.jaxpr) else self.module
        if not kernels.programs_on():
            return module
        from functorch_like.backends.xla.small_parts import with_small_parts  # late, as all of MLIR

        return with_small_parts(module)

    def _built(self, *, whole: bool = False, quick: bool = False) -> Any:
        started = time.perf_counter()
        with stage("lowering", self.name, self._size):
            module = self._build(self.partitioning, whole, quick)
        if "module" not in vars(self):  # else a program would be reported twice
            events.emit("lower", self.name, time.perf_counter() - started, jaxpr=self.jaxpr, module=module)
        return module

    def _starts_as_one_kernel(self) -> bool:
        return self.partitioning is None and kernels.programs_on() and one_kernel.program_fits(self.jaxpr)

    def quick_fitting(self, fitting: dict[str, Any], device: Any) -> dict[str, Any]:
        """Return the options of the quick tier, from those of the last one."""
        quick = choose_quick(self.jaxpr, fitting, device.platform)
        without_libraries = device.platform == "cpu" and self._starts_as_one_kernel()
        return {**quick, **option_sets.NONE} if without_libraries else quick

    def _form(self, fitting: Mapping[str, Any]) -> Callable[[], Any]:
        """Return what makes the module for these options."""
        return (lambda: self._quick_module) if option_sets.is_quick(fitting) else (lambda: self.module)

    def _size(self) -> str:
        count = count_equations(self.jaxpr)
        return f"{count:,} equation{'s' if count != 1 else ''}"

    def options(
        self, device: Any, options: dict[str, Any] | None = None, *, mode: str = "default", fitting: Any = None
    ) -> dict[str, Any]:
        """Return all options that `compile` would use, by name."""
        fitting = self.fitting(device, mode) if fitting is None else fitting
        return compile_options.chosen(device.platform, options, fitting)

    def fitting(self, device: Any, mode: str = "default") -> dict[str, Any]:
        """Return the options that `option_rules.choose` gives for the program."""
        return choose(self.jaxpr, mode, device.platform)

    @property
    def calls_python(self) -> bool:
        """True if the program has callbacks; the package's NumPy kernels do not count."""
        assert self.module is not None  # building the module finds the callbacks
        return not host_kernels.only_kernels(self._host_calls)

    def identify(self) -> bytes | None:
        """Return the fingerprint of the program under the settings in force; None if it has none."""
        return self._identify(self.partitioning)

    def _about(self, options: dict[str, Any] | None, fitting: Any, fingerprint: bytes | None) -> dict[str, Any]:
        """Return the arguments of `xla.compile` and `xla.load` besides the module and the device."""
        return {
            "options": options,
            "fitting": fitting,
            "in_avals": self.in_avals,
            "out_avals": self.out_avals,
            "name": self.name,
            "fingerprint": fingerprint,
            "host_calls": self._host_calls,
        }

    def load(
        self,
        device: Any,
        options: dict[str, Any] | None,
        fitting: dict[str, Any],
        fingerprint: bytes | None,
        *,
        lowering: bool,
    ) -> xla.Executable | None:
        """Load the program for one device from the on-disk cache; None if it is not found.

        With `lowering=False` the fingerprint is the only key, so that a program may not be found although it exists.
        """
        make = self._form(fitting) if lowering else None
        with compiling_for(device):
            return xla.load(make, device=device, **self._about(options, fitting, fingerprint))

    def compile(
        self,
        device: Any,
        options: dict[str, Any] | None = None,
        *,
        mode: str = "default",
        fitting: Any = None,
        fingerprint: bytes | None = None,
    ) -> xla.Executable:
        """Compile for a device (or load from the on-disk cache, if possible without lowering at all).

        Args:
            device: the device.
            options: the user's options of XLA, by name.
            mode: mode of `jit`, by which further options are chosen.
            fitting: further options, in place of those of the mode.
            fingerprint: result of `identify` from before the module was built.
        """
        if fingerprint is None and "module" not in vars(self):
            # A module that has been built is the key itself, since settings may have changed after it was built.
            fingerprint = self.identify()
        fitting = self.fitting(device, mode) if fitting is None else fitting
        about = self._about(options, fitting, fingerprint)
        if self.partitioning is None:
            make = self._form(fitting)
            quiet = events.is_in_background()
            with compiling_for(device), nullcontext() if quiet else stage("compiling", self.name, self._size):
                try:
                    return xla.compile(make, device=device, **about)
                except CompileError as error:
                    if "UNIMPLEMENTED" not in str(error) or "xla_cpu_small_call" not in as_text(make()):
                        raise
                # The options in force may hand parts of a kernel to a library, which XLA refuses.
                with kernels.none():
                    self.module = self._quick_module = self._build(None, False, False)
                return xla.compile(make, device=device, **about)
        from functorch_like.backends.xla import sharded_executable  # late: few programs have meshes

        with stage("compiling", self.name, self._size):
            made = sharded_executable.compile(lambda: self.module, self.partitioning, **about)
        settled = made.settled()
        if settled is None:
            return made
        # XLA has chosen a sharding of an argument or result that no PartitionSpec describes.
        again = Lowered(
            self._build,
            self.jaxpr,
            self.kept_inputs,
            self.in_avals,
            self.name,
            self._identify,
            self._host_calls,
            settled,
        )
        return again.compile(device, options, mode=mode, fitting=fitting)


def lower(
    jaxpr: Jaxpr,
    *,
    name: str,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    physical: Sequence[np.dtype[Any] | None] | None = None,
    platform: str = "cpu",
    partitioning: Any = None,
    portable: bool = False,
) -> Lowered:
    """Lower a jaxpr.

    Args:
        jaxpr: the jaxpr.
        name: name of the module.
        donated: mask of the inputs whose memory the results may take.
        keep_unused: True to keep inputs that no equation reads.
        physical: for each input, the dtype in which it arrives if that is not its aval's; Python numbers arrive with 64
            bits.
        platform: "cpu" or "gpu"; primitives may lower differently.
        partitioning: shardings of all inputs and of the results over a mesh; None for one device.
        portable: True if the program is to run without this package: it then has no NumPy kernels.
    """
    jaxpr = passes.simplify(jaxpr)
    used = passes.used_inputs(jaxpr)
    kept = [keep_unused or u for u in used]
    inputs = [v for v, k in zip(jaxpr.inputs, kept, strict=True) if k]
    arriving = [
        v.aval.strong() if p is None else ShapedArray(v.aval.shape, p)
        for v, p, k in zip(jaxpr.inputs, physical or [None] * len(kept), kept, strict=True)
        if k
    ]

    def body(e: xla.Emitter, *values: Any) -> list[Any]:
        converted = [
            value if aval.dtype == v.aval.dtype else e.convert(value, v.aval)
            for value, aval, v in zip(values, arriving, inputs, strict=True)
        ]
        results = emit(e, Jaxpr(inputs, jaxpr.equations, jaxpr.outputs, name), converted)
        return results if platform == "cpu" else brought_back(e, jaxpr, results, partitioning)

    donated_inputs = [d for d, k in zip(donated or [False] * len(kept), kept, strict=True) if k]
    donated_inputs = tuple(i for i, d in enumerate(donated_inputs) if d)
    if donated_inputs:
        warn_of_unused(name, [inputs[i].aval for i in donated_inputs], jaxpr.out_avals)
    host_calls: list[Any] = []
    # No kernels if calls are asynchronous: at its end, a process must not leave a kernel running.
    with_kernels = platform == "cpu" and partitioning is None and not portable and not client.CPU_ASYNC
    if partitioning is not None:
        partitioning = partitioning._replace(ins=tuple(s for s, k in zip(partitioning.ins, kept, strict=True) if k))

    def as_one_kernel(e: xla.Emitter, *values: Any) -> list[Any]:
        outs = [aval.strong() for aval in jaxpr.out_avals]
        # As vectors: XLA chooses layouts of matrices that functions return, and would write kernels that only copy.
        vectors = [aval.update(shape=(aval.size,)) if aval.ndim > 1 else aval for aval in outs]
        flat = lambda inner, *values: [*map(inner.reshape, body(inner, *values), outs, vectors)]
        return [*map(e.reshape, e.kernel(name, values, arriving, flat, vectors), vectors, outs)]

    def build(partitioning: Any, whole: bool, quick: bool) -> Any:
        host_calls.clear()
        return xla.build(
            name,
            arriving,
            as_one_kernel if whole else body,
            donated=donated_inputs,
            platform=platform,
            host_calls=host_calls,
            host_kernels=with_kernels,
            portable=portable,
            quick=quick,
            partitioning=partitioning,
            out_avals=jaxpr.out_avals,
        )

    def identify(partitioning: Any) -> bytes | None:
        split = () if partitioning is None else partitioning.text()
        return fingerprint(jaxpr, name, kept, arriving, donated_inputs, platform, split, with_kernels)

    return Lowered(build, jaxpr, kept, arriving, name, identify, host_calls, partitioning)


def emit(e: xla.Emitter, jaxpr: Jaxpr, operands: Sequence[Any], *, inlined: bool = False) -> list[Any]:
    """Emit the equations of a jaxpr into the current block.

    `inlined` is True if XLA will inline them into another function, so that the readers of their results are unknown.
    """
    if e.partitioning is not None and e.partitioning.mesh.explicit_axes:
        from functorch_like.compiler.explicit_splits import split_as_typed  # few programs have such axes

        jaxpr = split_as_typed(jaxpr)
    if e.platform == "cpu":
        jaxpr = with_concatenations(without_doubling(jaxpr))
        jaxpr = without_inverses(without_transposes(narrow_products(jaxpr)))
        jaxpr = with_routed_sums(jaxpr)
    # XLA's partitioner works on one function at a time, so programs on a mesh are not outlined.
    whole = inlined or e.platform != "cpu" or e.partitioning is not None
    return _emit_steps(e, jaxpr, jaxpr.equations if whole else outline(jaxpr), operands)


def _emit_steps(e: xla.Emitter, jaxpr: Jaxpr, steps: Sequence[Equation | Jaxpr], operands: Sequence[Any]) -> list[Any]:
    """Emit the steps of a jaxpr: equations, and outlined jaxprs, which become functions."""
    values = _Values(zip(jaxpr.inputs, operands, strict=True))
    values.emitter = e
    read = values.__getitem__
    # By recorded traceback, the user's line and its location in the module: many equations have one line.
    lines: dict[Any, Any] = e.memo.setdefault("lines", {})
    templates = _templates(e)
    for eqn in steps:
        if isinstance(eqn, Jaxpr):
            body = lambda inner, *args, part=eqn: _emit_part(inner, part, args)
            out_avals = eqn.out_avals
            symbol = e.function(part_key(eqn), eqn.name, eqn.in_avals, out_avals, body)
            operands = [values[a] for a in eqn.inputs]
            values.update(zip(eqn.outputs, e.call(symbol, operands, out_avals, False), strict=True))
            continue
        entry = lines.get(eqn.source)
        if entry is None:
            entry = lines[eqn.source] = _place(e, eqn.source)
        line, place, attributes = entry
        if place is not None:
            e.place = place
        before = e.count() if attributes else 0
        prim, inputs, outputs, params = eqn.prim, eqn.inputs, eqn.outputs, eqn.params
        arguments = [*map(read, inputs)]
        key = eqn.signature
        if key is None:
            key = core.find_signature(prim, [a.aval for a in inputs], params)
        template = templates.get(key)
        if template:
            out = e.write(template, arguments)
        else:
            if key is None or not key.plain:
                template = False
            e.ins, e.outs = [a.aval for a in inputs], [v.aval for v in outputs]
            try:
                if template is _MET:
                    out, template = e.written_by(prim.lower, arguments, params)
                    if template is not None:
                        templates[key] = template
                else:
                    out = prim.lower(e, *arguments, **params)
                    if template is None:
                        templates[key] = _MET
            except FtError as error:
                error.add_context(at=str(line or ""))
                raise core.add_error_context(error, prim, e.ins, params, None, "lowering")  # noqa: B904
        if attributes:
            e.annotate_since(before, attributes)
        if type(out) is list or type(out) is tuple:
            values.update(zip(outputs, out, strict=True))
        else:
            values[outputs[0]] = out
    return [*map(read, jaxpr.outputs)]


class _Values(dict[Any, Any]):
    """Values of a block by atom. A literal becomes a constant of the block when it is first read."""

    emitter: xla.Emitter

    def __missing__(self, literal: Literal) -> Any:
        made = self[literal] = self.emitter.constant(np.asarray(literal.value, literal.aval.dtype))
        return made


#: Lowerings of equations: by platform, kernels and settings, a dictionary by signature of a `Template`, or False if
#: there is none. The second lowering of a signature makes it, so that single equations cost nothing; the first stores
#: `_MET`.
_TEMPLATES: Cache[Any, dict[Any, Any]] = Cache()
_MET = ()
_MOST_TEMPLATES = 16384


def _templates(e: xla.Emitter) -> dict[Any, Any]:
    """Return the templates for a module. Lowerings may depend on a mesh, so modules with one have their own."""
    templates = e.memo.get(("templates", e.manual))
    if templates is None:
        key = e.platform, e.host_kernels, e.quick, xla.settings()
        templates = {} if e.partitioning is not None or e.manual is not None else _TEMPLATES.get(key)
        if templates is None or len(templates) > _MOST_TEMPLATES:
            templates = {}
            _TEMPLATES.keep(key, templates, 16)
        e.memo["templates", e.manual] = templates
    return templates


def _place(e: xla.Emitter, source: Any) -> tuple[source_info.Line | None, Any, Any]:
    """Return the user's line of a recorded traceback, its location in a module, and attributes for the compiler."""
    line = None if source is None else source_info.user_line(source)
    attributes = source_info.attributes(source)
    if line is None:
        return None, None, attributes
    scope = source_info.scope(source)
    place = e.location(line.file, line.line, f"{scope}/{line.function}" if scope else line.function)
    return line, place, attributes


def _emit_part(e: xla.Emitter, part: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    outs = _emit_steps(e, part, part.equations, operands)
    return [e.by_rows(outs[0], part.out_avals[0])] if is_transpose(part) else outs


def token_avals(*jaxprs: Jaxpr) -> list[ShapedArray]:
    """Return the avals that a region carries besides values: a token, if a jaxpr has ordered effects."""
    return [xla.TOKEN] if any("ordered" in jaxpr.effects for jaxpr in jaxprs) else []


def emit_loop(
    e: xla.Emitter,
    operands: Sequence[Any],
    avals: Sequence[ShapedArray],
    more: Callable[..., Sequence[Any]],
    step: Callable[..., Sequence[Any]],
    jaxprs: Sequence[Jaxpr],
) -> list[Any]:
    """Emit a loop whose condition and step are made of these jaxprs, as one kernel if it is small; see `e.loop`."""
    small = kernels.allowed(e) and one_kernel.loop_fits(*jaxprs)
    return e.loop(operands, avals, more, step, one_kernel=small)


def emit_carrying(
    e: xla.Emitter, jaxpr: Jaxpr, operands: Sequence[Any], carries: Sequence[Any], *, inlined: bool = False
) -> list[Any]:
    """Apply `emit` in a new region or function; with a token in `carries`, it is the last operand and result."""
    if not carries:
        return emit(e, jaxpr, operands, inlined=inlined)
    *operands, e.token = operands
    return [*emit(e, jaxpr, operands, inlined=inlined), e.token]


def as_text(module: Any, debug_info: bool = False) -> str:
    """Return the StableHLO text, with source locations if `debug_info`."""
    return xla.module_text(module, debug_info)
