"""Attributes of JAX's classes that libraries read, for classes of the package: avals, stages, specs and programs.

`attach` adds them when the alias is installed. Without it, the package's classes have their own attributes only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import avals, tree
from functorch_like import sharding as _sharding
from functorch_like.arrays.devices import device_put
from functorch_like.backends.xla import default_device
from functorch_like.calling.pickling import Transformed
from functorch_like.compiler.lower import lower
from functorch_like.core import Tracer
from functorch_like.errors import UnsupportedError
from functorch_like.interpreters.batching import BatchTracer
from functorch_like.ir.jaxpr import Jaxpr, Literal
from functorch_like.ir.trace_to_jaxpr import StageTrace
from functorch_like.jax_alias.modules import programs
from functorch_like.jax_alias.modules.layout import Format, Layout
from functorch_like.jax_alias.modules.memory import Space
from functorch_like.random.typed_keys import KeyArray, KeyAval
from functorch_like.ref import AbstractRef
from functorch_like.transforms.jit_stages import ArgInfo, Compiled, Lowered, Traced


def attach() -> None:
    """Give classes of the package the attributes of JAX's."""
    _attach_to_avals()
    _attach_to_structs()
    _attach_to_stages()
    _attach_to_specs()
    _attach_to_keys()
    _attach_to_programs()
    _attach_to_functions()


# -------------------------------------------------------------------------------------------------------------- avals
def _short(aval: Any, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
    """Return the dtype and shape as text: `float32[2,3]`, or `f32[2,3]` with `short_dtypes`."""
    shown = repr(aval)
    if not short_dtypes:
        shown = f"{aval.dtype.name}{shown[shown.index('[') :]}"
    return shown


def _text(aval: Any) -> str:
    return f"~{_short(aval)}" if aval.weak_type else _short(aval)


def _attach_to_avals() -> None:
    aval: Any = avals.ShapedArray
    aval.str_short, aval.__str__ = _short, _text
    aval.update_weak_type = lambda self, weak_type: self.update(weak_type=weak_type)
    aval.to_ct_aval = lambda self: self.to_tangent_aval()
    aval.memory_space = Space.Device
    aval.is_high = aval.has_qdd = False
    aval.lo_ty = lambda self: [self]
    aval.lower_val = lambda self, value: [value]
    aval.raise_val = lambda self, value: value
    aval.normalize = lambda self: self
    ref: Any = AbstractRef
    ref.is_high = ref.has_qdd = False
    ref.lo_ty, ref.lower_val, ref.raise_val, ref.normalize = aval.lo_ty, aval.lower_val, aval.raise_val, aval.normalize
    ref.to_tangent_aval = aval.normalize


def _attach_to_structs() -> None:
    struct: Any = avals.ShapeDtypeStruct
    plain = struct.__init__

    @functools.wraps(plain)
    def made(self: Any, *args: Any, manual_axis_type: Any = None, vma: Any = None, is_ref: bool = False, **kw: Any):
        where = kw.get("sharding")
        if isinstance(where, Format):  # layouts have no effect
            kw["sharding"] = where.sharding
        plain(self, *args, **kw)

    struct.__init__ = made
    struct.format = property(lambda self: Format(None, self.sharding))
    struct.manual_axis_type = None
    struct.is_ref = False
    struct.__len__ = _length


def _length(x: Any) -> int:
    if not x.shape:
        raise TypeError("len() of unsized object")
    return x.shape[0]


# ------------------------------------------------------------------------------------------------------------- stages
def _donated(traced: Traced) -> tuple[int, ...]:
    """Return the positions of the flat arguments that are donated."""
    return tuple(k for k, donated in enumerate(traced.donated) if donated)


def _format(sharding: Any, aval: avals.ShapedArray) -> Format | None:
    return None if sharding is None else Format(Layout(tuple(range(aval.ndim)), ()), sharding)


def _input_formats(compiled: Compiled) -> Any:
    leaves = tree.leaves(compiled.input_shardings, is_leaf=lambda s: s is None)
    return compiled.in_tree.unflatten(list(map(_format, leaves, compiled.traced.in_avals)))


def _output_formats(compiled: Compiled) -> Any:
    shardings = compiled.executable.out_shardings
    return compiled.out_tree.unflatten(list(map(_format, shardings, compiled.traced.jaxpr.out_avals)))


class LoweredElsewhere(Lowered):
    """A program for a platform that this process has no device of: it can be read, not compiled."""

    def __init__(self, traced: Traced, platform: str) -> None:
        self.traced, self.device, self.seconds = traced, platform, 0.0
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        spec = traced.spec
        self._lowered = lower(traced.jaxpr, name=spec.name, keep_unused=spec.keep_unused, platform=platform)
        self._module = self._lowered.module

    def compile(self, compiler_options: Any = None) -> Any:
        """Refuse.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            f"{self.traced.spec.name} was lowered for {self.device}, which this process has no device of",
            fix="lower without lowering_platforms to compile",
        )


def _lower(
    traced: Traced, *, lowering_platforms: Any = None, device: Any = None, _private_parameters: Any = None
) -> Lowered:
    """Lower for one platform: that of a device of this process, or another one of which the program is read only."""
    if lowering_platforms is None or device is not None:
        return _plainly(traced, device=device)
    names = ["gpu" if name == "cuda" else name for name in lowering_platforms]
    if len(names) != 1 or names[0] not in ("cpu", "gpu"):
        raise UnsupportedError(
            f"lowering_platforms={tuple(lowering_platforms)}: programs are lowered for cpu or for cuda",
            fix="give one of them; jax.export.export takes several platforms",
        )
    if names[0] == default_device().platform:
        return _plainly(traced)
    return LoweredElsewhere(traced, names[0])


_plainly = Traced.lower


def _described(traced: Any, *args: Any) -> None:
    """Note the constants of a program on it: of JAX's view they are no arguments."""
    _describe(traced, *args)
    traced.jaxpr.memo("constants", lambda: traced.consts)


_describe = Traced._describe


def _attach_to_stages() -> None:
    traced: Any = Traced
    traced.lower, traced._describe = _lower, _described
    traced.fun_name = property(lambda self: self.spec.name)
    traced.out_avals = property(lambda self: self.out_tree.unflatten(self.jaxpr.out_avals))
    traced.donate_argnums = property(_donated)
    stage: Any
    for stage in (Lowered, Compiled):
        stage.donate_argnums = property(lambda self: _donated(self.traced))
        stage.in_avals = property(lambda self: self.in_tree.unflatten(self.traced.in_avals))
    compiled: Any = Compiled
    compiled.input_formats, compiled.output_formats = property(_input_formats), property(_output_formats)
    compiled.runtime_executable = lambda self: self.executable
    info: Any = ArgInfo
    info._aval = property(lambda self: avals.ShapedArray(self.shape, self.dtype, self.weak_type))


# -------------------------------------------------------------------------------------------------------------- specs
def _attach_to_specs() -> None:
    spec: Any = _sharding.PartitionSpec

    def update(self: Any, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> Any:
        return self if partitions is None else spec(*partitions)

    spec.partitions = property(tuple)
    spec.unreduced = spec.reduced = frozenset()
    spec.update = update
    spec.__add__ = lambda self, other: spec(*self, *other)
    spec.__radd__ = lambda self, other: spec(*other, *self)


# --------------------------------------------------------------------------------------------------------------- keys
def _attach_to_keys() -> None:
    keys: Any = KeyArray
    of_words: Callable[..., Any] = lambda self, words: KeyArray(words, self._impl)
    keys.is_deleted = lambda self: not isinstance(self._words, Tracer) and self._words.is_deleted()
    shards: Callable[[Any, Sequence[Any]], list[Any]] = lambda self, parts: [
        s._replace(index=s.index[: self.ndim], data=None if s.data is None else of_words(self, s.data)) for s in parts
    ]
    keys.aval = property(lambda self: self.dtype.aval_of_shape(self.shape))
    keys.addressable_data = lambda self, index: of_words(self, self._words.addressable_data(index))
    keys.addressable_shards = property(lambda self: shards(self, self._words.addressable_shards))
    keys.global_shards = property(lambda self: shards(self, self._words.global_shards))
    keys.copy_to_host_async = lambda self: self._words.copy_to_host_async()
    keys.to_device = lambda self, device, *, stream=None: of_words(self, self._words.to_device(device))


# ----------------------------------------------------------------------------------------------------------- programs
def _traced_view(program: Jaxpr) -> Any:
    """Return JAX's view of the program of a `Traced`, with its constants."""
    return program.memo("jax trace view", lambda: programs.view(program, program.memo("constants", list)))


def _to_device(x: Tracer, device: Any, *, stream: Any = None) -> Any:
    """Return a traced value placed on a device."""
    return device_put(x, device)


def _new_arg(trace: StageTrace, aval: avals.ShapedArray, source_info: Any = None) -> Any:
    """Return a traced value for an input of the program behind the arguments of its function."""
    keys = isinstance(aval, KeyAval)
    trace.added.append(trace.input(aval.words if keys else aval))
    return KeyArray(trace.added[-1], aval.impl) if keys else trace.added[-1]


def _attach_to_programs() -> None:
    trace: Any = StageTrace
    trace.new_arg = _new_arg
    tracer: Any = Tracer
    tracer.to_device = _to_device
    batch_tracer: Any = BatchTracer
    batch_tracer.batch_dim = property(lambda self: self.dim)
    batch_tracer.val = property(lambda self: self.value)
    jaxpr: Any = Jaxpr
    names = ("jaxpr", "eqns", "invars", "outvars", "consts", "constvars", "debug_info", "is_high", "map_jaxpr")
    for name in (*names, "pretty_print"):
        setattr(jaxpr, name, property(lambda self, name=name: getattr(_traced_view(self), name)))
    literal: Any = Literal
    literal.hash = property(lambda self: None if self.aval.shape else hash((self.value.item(), self.aval)))


# ---------------------------------------------------------------------------------------------------------- functions
class JittedFunction(Transformed):
    """A jitted function, under the name and with the text of jaxlib's class, by which libraries recognise one."""

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._made_by[1][0]!r}>"


JittedFunction.__name__ = JittedFunction.__qualname__ = "PjitFunction"


def _attach_to_functions() -> None:
    """Give jitted functions a class of their own."""
    function: Any = Transformed
    plain = function.__init__

    def made(self: Any, fun: Any, maker: Any, args: Any, kwargs: Any) -> None:
        plain(self, fun, maker, args, kwargs)
        if maker.__name__ == "jit" and args:
            self.__class__ = JittedFunction

    function.__init__ = made
