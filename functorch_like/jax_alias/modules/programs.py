"""JAX's view of recorded programs: `ClosedJaxpr`, `Jaxpr`, `JaxprEqn`, `Var` and `Literal`.

The primitives and parameters in them are this package's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive as CorePrimitive
from functorch_like.ir import jaxpr as recorded
from functorch_like.ir.jaxpr import Equation, Literal, Var
from functorch_like.jax_alias.modules import calls
from functorch_like.jax_alias.modules.calls import bind_custom_jvp, jvp_subfuns
from functorch_like.jax_alias.modules.debug_info import DebugInfo
from functorch_like.jax_alias.modules.source_info import SourceInfo, place_of
from functorch_like.jax_alias.modules.user_primitives import BY_NAME, Primitive
from functorch_like.numpy import promotion
from functorch_like.primitives.base.shapes import broadcast_in_dim
from functorch_like.primitives.contractions.convolution import ConvDimensionNumbers, conv_general_dilated
from functorch_like.primitives.effects.callbacks import debug_callback
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.random.typed_keys import KeyArray, is_keys
from functorch_like.sharding import AbstractMesh

no_effects: frozenset[Any] = frozenset()


class CorePrimitiveView(Primitive):
    """A primitive of the package as one of JAX."""

    is_builtin = True

    def __init__(self, core_primitive: CorePrimitive) -> None:
        super().__init__(core_primitive.name)
        self._core_primitive, self.multiple_results = core_primitive, core_primitive.multiple_results

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive. Scalars are broadcast where JAX's programs hold them beside arrays."""
        if "subfuns" in params:
            return bind_custom_jvp(params["subfuns"], args)
        if takes_scalars(self.core_primitive) and len({np.ndim(x) for x in args}) > 1:
            args = tuple(promotion.broadcast_arrays(*map(core.as_argument, args)))
        out = self.core_primitive(*args, **_recorded_params(self.core_primitive, params))
        return list(out) if self.multiple_results else out

    def impl(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive to arrays."""
        return self.bind(*args, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the avals of results, and effects."""
        params = _recorded_params(self.core_primitive, params)
        out = core.abstract_eval(self.core_primitive, avals, params)
        of = self.core_primitive.effects
        return (list(out) if self.multiple_results else out), no_effects if of is None else of(**params)

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that `bind` takes for those of an equation."""
        if self.core_primitive is not custom_jvp_call or "call_jaxpr" not in params:
            return params
        return {"subfuns": jvp_subfuns(**_recorded_params(self.core_primitive, params)), "symbolic_zeros": False}


def takes_scalars(primitive: CorePrimitive) -> bool:
    """Return True for an operation of several operands that JAX's programs apply to arrays and scalars together."""
    return primitive.kind == "elementwise" and primitive.name not in ("select_n", "clamp")


_VIEWS: dict[CorePrimitive, Primitive] = {}


def primitive_of(core_primitive: CorePrimitive) -> Primitive:
    """Return JAX's primitive that stands for one of the package."""
    known = BY_NAME.get(core_primitive.name) or _VIEWS.get(core_primitive)
    return known if known is not None else _VIEWS.setdefault(core_primitive, CorePrimitiveView(core_primitive))


class EqnContext:
    """Options in force where an equation was recorded; a program here has none."""

    compute_type = None
    xla_metadata = None
    threefry_partitionable = True

    @property
    def cur_abstract_mesh(self) -> Any:
        """The mesh that was in force, of which a program here keeps none: an empty one."""
        return AbstractMesh((), ())

    @property
    def manager(self) -> AbstractContextManager[None]:
        """A block in which the equation is applied again."""
        return nullcontext()


class JaxprEqn:
    """One applied primitive."""

    __slots__ = ("ctx", "effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        invars: Sequence[Any],
        outvars: Sequence[Any],
        primitive: Any,
        params: dict[str, Any],
        effects: Any = no_effects,
        source_info: Any = None,
        ctx: Any = None,
    ) -> None:
        source_info = SourceInfo(None) if source_info is None else source_info
        ctx = EqnContext() if ctx is None else ctx
        self.invars, self.outvars, self.primitive, self.params = list(invars), list(outvars), primitive, params
        self.effects, self.source_info, self.ctx = effects, source_info, ctx

    def replace(self, **changes: Any) -> JaxprEqn:
        """Return the same with some attributes changed."""
        return JaxprEqn(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def __repr__(self) -> str:
        return f"{self.primitive}[{len(self.invars)} -> {len(self.outvars)}]"


def new_jaxpr_eqn(
    invars: Sequence[Any], outvars: Sequence[Any], primitive: Any, params: Any, effects: Any = no_effects, *rest: Any
) -> JaxprEqn:
    """Return an equation."""
    return JaxprEqn(invars, outvars, primitive, params, effects, *rest)


class Effect:
    """Base of effects: those of programs, and those that a library defines."""


class DebugEffect(Effect):
    """Effect of `jax.debug.print` and `jax.debug.callback`."""

    __str__ = lambda self: "Debug"


class OrderedDebugEffect(Effect):
    """Effect of these with `ordered=True`."""

    __str__ = lambda self: "OrderedDebug"


_DEBUG: dict[str, Effect] = {"unordered": DebugEffect(), "ordered": OrderedDebugEffect()}


def _effects_of(equation: Equation) -> frozenset[Any]:
    """Return the effects of an equation; those of callbacks for results, and of checks, are texts."""
    of = recorded.effects(equation)
    if equation.prim is debug_callback:
        return frozenset(map(_DEBUG.__getitem__, of))
    inner = list(recorded.inner_jaxprs(equation.params)) if of else []
    return no_effects.union(*(_effects_of(e) for jaxpr in inner for e in jaxpr.equations)) if inner else of


def _viewed(equation: Equation, constvars: dict[Literal, Var], scalars: dict[Any, Any]) -> JaxprEqn:
    shown = shown_params(equation.prim, equation.params)
    effects = _effects_of(equation)
    operands = [scalars.get(atom, atom) if type(atom) is Var else atom for atom in equation.inputs]
    invars = [_without_arrays(atom, constvars) for atom in operands]
    place = place_of(equation.source)
    return JaxprEqn(invars, equation.outputs, primitive_of(equation.prim), shown, effects, place)


def shown_params(prim: CorePrimitive, params: dict[str, Any]) -> dict[str, Any]:
    """Return JAX's view of the parameters of a primitive of the package."""
    if prim.name in BY_NAME:
        params = params["params"].values
    shown = {name: _view(value) for name, value in calls.shown_params(prim, params).items()}
    if prim is conv_general_dilated:
        shown["dimension_numbers"] = ConvDimensionNumbers(*params["dimension_numbers"])
    return shown


def _recorded_params(prim: CorePrimitive, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that the package's primitive takes for those of a view."""
    return {name: _recorded(value) for name, value in calls.recorded_params(prim, params).items()}


def _scalars(program: recorded.Jaxpr) -> dict[Any, Any]:
    """Return the scalar for each array that is made of one for elementwise operations alone, beside other arrays.

    JAX's programs have the scalar as the operand of such an operation, and no equation that makes the array.
    """
    spreads = [e for e in program.equations if e.prim is broadcast_in_dim and not e.inputs[0].aval.shape]
    made: dict[Any, Any] = {e.outputs[0]: e.inputs[0] for e in spreads}
    for e in program.equations if made else ():
        if not takes_scalars(e.prim):
            for a in e.inputs:
                made.pop(a, None)
        elif all(a in made for a in e.inputs):
            del made[e.inputs[0]]
    for a in program.outputs if made else ():
        made.pop(a, None)
    return made


def _without_arrays(atom: Any, constvars: dict[Literal, Var]) -> Any:
    """Return the variable in place of a literal of rank above 0, which JAX does not have; added to `constvars`."""
    if not isinstance(atom, Literal) or not atom.aval.shape:
        return atom
    return constvars.setdefault(atom, Var(atom.aval))


class Jaxpr:
    """A program: variables, equations and results."""

    #: Whether values of types of the user's own are in it; those of recorded programs are arrays.
    is_high = False

    #: For each result the generator of typed keys, None for arrays; empty if no results are known to be keys.
    key_impls: tuple[str | None, ...] = ()

    def __init__(
        self,
        constvars: Sequence[Any],
        invars: Sequence[Any],
        outvars: Sequence[Any],
        eqns: Sequence[JaxprEqn],
        effects: Any = no_effects,
        debug_info: Any = None,
        is_high: bool = False,
        text: Any = None,
    ) -> None:
        self.constvars, self.invars, self.outvars = list(constvars), list(invars), list(outvars)
        self.eqns, self.effects, self.debug_info, self._text = list(eqns), effects, debug_info, text

    def replace(self, **changes: Any) -> Jaxpr:
        """Return the same with some attributes changed."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        made = Jaxpr(**{name: getattr(self, name) for name in names} | changes)
        if "outvars" not in changes:
            made.key_impls = self.key_impls
        return made

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The avals of the arguments."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The avals of the results."""
        return [v.aval for v in self.outvars]

    def pretty_print(self, **options: Any) -> str:
        """Return the program as text; options of JAX have no effect."""
        return str(self)

    def __str__(self) -> str:
        return str(self._text) if self._text is not None else f"Jaxpr({self.eqns})"

    __repr__ = __str__


class ClosedJaxpr:
    """A program with the values that it closes over."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        self.jaxpr, self.consts = jaxpr, list(consts)

    literals = property(lambda self: self.consts)
    eqns = property(lambda self: self.jaxpr.eqns)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    effects = property(lambda self: self.jaxpr.effects)
    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    #: Whether values of types of the user's own are in the program; those of recorded programs are arrays.
    is_high = False

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Return the same with a function applied to the program."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        """Return the program as text; options of JAX have no effect."""
        return str(self)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
        """Return the same with some attributes changed."""
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


def view(program: recorded.Jaxpr, consts: Sequence[Any] = (), debug_info: DebugInfo | None = None) -> ClosedJaxpr:
    """Return JAX's view of a recorded program, whose first inputs are `consts`; by default its names are unknown."""
    count = len(consts)
    constvars: dict[Literal, Var] = {}
    scalars = _scalars(program)
    shown = [e for e in program.equations if e.prim is not broadcast_in_dim or e.outputs[0] not in scalars]
    eqns = [_viewed(e, constvars, scalars) for e in shown]
    outvars = [_without_arrays(atom, constvars) for atom in program.outputs]
    known = [*program.inputs[:count], *constvars.values()]
    effects = no_effects.union(*(e.effects for e in eqns))
    names = DebugInfo("jit", program.name) if debug_info is None else debug_info
    inner = Jaxpr(known, program.inputs[count:], outvars, eqns, effects, names, text=program)
    return ClosedJaxpr(inner, [*consts, *(literal.value for literal in constvars)])


def view_of(program: recorded.Jaxpr) -> ClosedJaxpr:
    """Return JAX's view of a recorded program without constants; it is made once."""
    return program.memo("jax view", lambda: view(program))


def _view(value: Any) -> Any:
    if isinstance(value, recorded.Jaxpr):
        return view_of(value)
    if type(value) is tuple and any(isinstance(v, recorded.Jaxpr) for v in value):
        return tuple(map(_view, value))
    return value


def _recorded(value: Any) -> Any:
    """Return the recorded program of a view that has not been changed."""
    if isinstance(value, ClosedJaxpr) and isinstance(value.jaxpr._text, recorded.Jaxpr):
        return value.jaxpr._text
    if type(value) is tuple and any(isinstance(v, ClosedJaxpr) for v in value):
        return tuple(map(_recorded, value))
    return value


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Apply the equations of a program to arguments. Typed keys are arrays of words in it."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, (x._words if is_keys(x) else x for x in args), strict=True))
    read: Callable[[Any], Any] = lambda atom: atom.operand if isinstance(atom, Literal) else values[atom]
    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        values.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    impls = jaxpr.key_impls or (None,) * len(jaxpr.outvars)
    results = zip(map(read, jaxpr.outvars), impls, strict=True)
    return [x if impl is None else KeyArray(x, impl) for x, impl in results]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Return a program as a function of flat arguments."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Return the programs among an equation's parameters."""
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Return the programs inside a program's equations."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


class DropVar(Var):
    """Class of results that are never read; programs here name all of them."""

    __slots__ = ()


def gensym(suffix: str = "") -> Callable[[Any], Var]:
    """Return a function that makes a new variable from an aval."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the aval of an element along an axis."""
    return aval if axis is None else aval.without_dimension(axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, *rest: Any) -> ShapedArray:
    """Return the aval of elements stacked along an axis."""
    return aval if axis is None else aval.with_dimension(axis, size)


def trace_state_clean() -> bool:
    """Return True outside of all transformations."""
    return core.state.trace is core.EVALUATE
