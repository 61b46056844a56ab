"""Lowering: a jaxpr becomes a StableHLO module, and the module an executable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import client, compile_options, events, host_kernels
from functorch_like.caches import Cache
from functorch_like.compiler.fingerprint import fingerprint
from functorch_like.compiler.option_rules import choose
from functorch_like.compiler.outlining import is_transpose, outline, part_key
from functorch_like.compiler.repeated_operands import narrow_products
from functorch_like.errors import FtError
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, count_equations
from functorch_like.status_line import stage


class Lowered:
    """A jaxpr that is lowered when its module is read, with what is needed to compile and call it.

    Attributes:
        kept_inputs: for each input of the jaxpr, whether the module takes it.
        in_avals: avals of the inputs that the module takes, in the dtypes in which they arrive.
        out_avals: avals of the results.
        partitioning: how the program is split over a mesh; None for one device.
    """

    def __init__(
        self,
        build: Callable[[Any], Any],
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
        started = time.perf_counter()
        with stage("lowering", self.name, self._size):
            module = self._build(self.partitioning)
        events.emit("lower", self.name, time.perf_counter() - started, jaxpr=self.jaxpr, module=module)
        return module

    def _size(self) -> str:
        count = count_equations(self.jaxpr)
        return f"{count:,} equation{'s' if count != 1 else ''}"

    def options(
        self, device: Any, options: dict[str, Any] | None = None, *, mode: str = "default", fitting: Any = None
    ) -> dict[str, Any]:
        """All options that `compile` would compile under, by name."""
        fitting = self.fitting(device, mode) if fitting is None else fitting
        return compile_options.chosen(device.platform, options, fitting)

    def fitting(self, device: Any, mode: str = "default") -> dict[str, Any]:
        """Return the options that the rule on the program's content chooses."""
        return choose(self.jaxpr, mode, device.platform)

    @property
    def calls_python(self) -> bool:
        """True if the program has callbacks; kernels of NumPy are none."""
        assert self.module is not None  # building it finds them
        return not host_kernels.only_kernels(self._host_calls)

    def identify(self) -> bytes | None:
        """The fingerprint of the program under the settings in force; None where it cannot be had."""
        return self._identify(self.partitioning)

    def _about(self, options: dict[str, Any] | None, fitting: Any, fingerprint: bytes | None) -> dict[str, Any]:
        """The arguments of `xla.compile` and `xla.load` besides the module and the device."""
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
        """Load from the on-disk cache what `compile` would return, for one device; None if it is not there.

        Without lowering it may be there and not be found.
        """
        make = (lambda: self.module) if lowering else None
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
            device: where it will run.
            options: XLA's, by name.
            mode: of `jit`: which options are chosen besides.
            fitting: these are, instead.
            fingerprint: what `identify` returned before there was a module.
        """
        if fingerprint is None and "module" not in vars(self):
            # Once there is a module, it is the key; settings may have changed since it was made.
            fingerprint = self.identify()
        about = self._about(options, self.fitting(device, mode) if fitting is None else fitting, fingerprint)
        if self.partitioning is None:
            with nullcontext() if events.is_in_background() else stage("compiling", self.name, self._size):
                return xla.compile(lambda: self.module, device=device, **about)
        from functorch_like.backends.xla import sharded_executable  # few programs have meshes

        with stage("compiling", self.name, self._size):
            made = sharded_executable.compile(lambda: self.module, self.partitioning, **about)
        settled = made.settled()
        if settled is None:
            return made
        # XLA has split some argument or result in a way that no spec describes.
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
        jaxpr: what to lower.
        name: of the module.
        donated: inputs whose memory the results may take.
        keep_unused: keep inputs that nothing reads.
        physical: the dtype an input arrives in where that differs from its aval: Python numbers arrive 64 bits wide.
        platform: "cpu" or "gpu"; primitives may lower differently.
        partitioning: how inputs, all of them, and results are split over a mesh; None for one device.
        portable: whether the program may run where this package is not.
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
        return emit(e, Jaxpr(inputs, jaxpr.equations, jaxpr.outputs, name), converted)

    donated_inputs = [d for d, k in zip(donated or [False] * len(kept), kept, strict=True) if k]
    donated_inputs = tuple(i for i, d in enumerate(donated_inputs) if d)
    host_calls: list[Any] = []
    # Not where calls return before they are done: a process that ends must not leave a kernel running.
    with_kernels = platform == "cpu" and partitioning is None and not portable and not client.CPU_ASYNC
    if partitioning is not None:
        partitioning = partitioning._replace(ins=tuple(s for s, k in zip(partitioning.ins, kept, strict=True) if k))

    def build(partitioning: Any) -> Any:
        host_calls.clear()
        return xla.build(
            name,
            arriving,
            body,
            donated=donated_inputs,
            platform=platform,
            host_calls=host_calls,
            host_kernels=with_kernels,
            partitioning=partitioning,
            out_avals=jaxpr.out_avals,
        )

    def identify(partitioning: Any) -> bytes | None:
        split = () if partitioning is None else partitioning.text()
        return fingerprint(jaxpr, name, kept, arriving, donated_inputs, platform, split, with_kernels)

    return Lowered(build, jaxpr, kept, arriving, name, identify, host_calls, partitioning)


def emit(e: xla.Emitter, jaxpr: Jaxpr, operands: Sequence[Any], *, inlined: bool = False) -> list[Any]:
    """Emit the equations of a jaxpr into the current block.

    `inlined`: XLA will put them into another function, so that the readers of their results are not known here.
    """
    if e.platform == "cpu":
        jaxpr = narrow_products(jaxpr)
    # XLA's partitioner looks at one function at a time, so that of programs on a mesh nothing is set apart.
    whole = inlined or e.platform != "cpu" or e.partitioning is not None
    return _emit_steps(e, jaxpr, jaxpr.equations if whole else outline(jaxpr), operands)


def _emit_steps(e: xla.Emitter, jaxpr: Jaxpr, steps: Sequence[Equation | Jaxpr], operands: Sequence[Any]) -> list[Any]:
    """Emit what a jaxpr does: equations, and jaxprs that become functions of their own."""
    values = _Values(zip(jaxpr.inputs, operands, strict=True))
    values.emitter = e
    read = values.__getitem__
    # The user's lines, and their places in the module: many equations are of one line.
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
        line, place = entry
        if place is not None:
            e.place = place
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
        if type(out) is list or type(out) is tuple:
            values.update(zip(outputs, out, strict=True))
        else:
            values[outputs[0]] = out
    return [*map(read, jaxpr.outputs)]


class _Values(dict[Any, Any]):
    """Values of a block by atom. Literals become constants of it when they are read."""

    emitter: xla.Emitter

    def __missing__(self, literal: Literal) -> Any:
        made = self[literal] = self.emitter.constant(np.asarray(literal.value, literal.aval.dtype))
        return made


#: What equations are lowered to: by platform, kinds of calls and settings, and in these by signature; a `Template`, or
#: False where there is none. It is made at the second time, so that what comes once costs nothing: the first leaves
#: `_MET`.
_TEMPLATES: Cache[Any, dict[Any, Any]] = Cache()
_MET = ()
_MOST_TEMPLATES = 16384


def _templates(e: xla.Emitter) -> dict[Any, Any]:
    """Return the templates that hold for a module. Rules may depend on meshes: with one, each module has its own."""
    templates = e.memo.get(("templates", e.manual))
    if templates is None:
        key = e.platform, e.host_kernels, xla.settings()
        templates = {} if e.partitioning is not None or e.manual is not None else _TEMPLATES.get(key)
        if templates is None or len(templates) > _MOST_TEMPLATES:
            templates = {}
            _TEMPLATES.keep(key, templates, 16)
        e.memo["templates", e.manual] = templates
    return templates


def _place(e: xla.Emitter, source: Any) -> tuple[source_info.Line | None, Any]:
    """Return the user's line of a recorded traceback, and that line as a place in a module."""
    line = None if source is None else source_info.user_line(source)
    if line is None:
        return None, None
    scope = source_info.scope(source)
    return line, e.location(line.file, line.line, f"{scope}/{line.function}" if scope else line.function)


def _emit_part(e: xla.Emitter, part: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    outs = _emit_steps(e, part, part.equations, operands)
    return [e.by_rows(outs[0], part.out_avals[0])] if is_transpose(part) else outs


def token_avals(*jaxprs: Jaxpr) -> list[ShapedArray]:
    """Return the avals that a region or function carries besides values: a token, if a body has ordered effects."""
    return [xla.TOKEN] if any("ordered" in jaxpr.effects for jaxpr in jaxprs) else []


def emit_carrying(
    e: xla.Emitter, jaxpr: Jaxpr, operands: Sequence[Any], carries: Sequence[Any], *, inlined: bool = False
) -> list[Any]:
    """`emit` into a new region or function: where `token_avals` has one, the token comes last and goes last."""
    if not carries:
        return emit(e, jaxpr, operands, inlined=inlined)
    *operands, e.token = operands
    return [*emit(e, jaxpr, operands, inlined=inlined), e.token]


def as_text(module: Any, debug_info: bool = False) -> str:
    """StableHLO text, with or without where its operations come from."""
    return xla.module_text(module, debug_info)
