"""JAX's mutable primitives, whose rules are registered one by one, as primitives of the package."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import caches, core, numpy, tree_util
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.compiler.lower import emit
from functorch_like.core import Primitive as CorePrimitive
from functorch_like.core import aval_of, is_value
from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.missing import absent
from functorch_like.jax_alias.modules.callbacks import pure_callback
from functorch_like.jax_alias.modules.lowering_rules import Lowering, RuleLacksNameError, apply_rule, rule_of
from functorch_like.random.typed_keys import is_keys

# The registries: rules by primitive.
primitive_jvps: dict[Any, Callable[..., Any]] = {}
primitive_transposes: dict[Any, Callable[..., Any]] = {}
primitive_batchers: dict[Any, Callable[..., Any]] = {}
axis_primitive_batchers: dict[Any, Callable[..., Any]] = {}
fancy_primitive_batchers: dict[Any, Callable[..., Any]] = {}

_count = itertools.count()


class Zero:
    """A tangent or cotangent that is zero, of which only the aval is known."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def instantiate(self) -> Any:
        """Return it as an array."""
        return numpy.zeros(self.aval.shape, self.aval.dtype)

    @staticmethod
    def from_primal_value(value: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(value.aval if is_keys(value) else aval_of(value))

    def __repr__(self) -> str:
        return f"Zero({self.aval!r})"


class UndefinedPrimal:
    """The operand in which a transpose rule is linear: it has an aval and no value."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval!r})"


# As in JAX they are nodes without children, so that functions of pytrees and `vmap` pass them on unchanged.
for _kind in (Zero, UndefinedPrimal):
    tree_util.register_pytree_node(_kind, lambda x: ((), x.aval), lambda aval, _, kind=_kind: kind(aval))
del _kind


class AxisData:
    """The axis that a batching rule maps over."""

    def __init__(self, name: Any, size: int) -> None:
        self.name, self.size, self.spmd_name, self.explicit_mesh_axis = name, size, None, None


class Params:
    """Parameters of a primitive as one hashable value: hashed by their names, compared by identity or value."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __hash__(self) -> int:
        return hash(tuple(self.values))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Params) or self.values.keys() != other.values.keys():
            return False
        return all(_same(value, other.values[name]) for name, value in self.values.items())

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value!r:.40}" for name, value in self.values.items())


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


class Primitive:
    """A primitive in JAX's style: it is made with a name, and its rules are added later."""

    multiple_results = False
    call_primitive = False
    map_primitive = False
    is_builtin = False
    #: Function of the parameters that tells whether there are effects; here `abstract_eval` does.
    is_effectful = None
    #: Function that applies a primitive to operands with typed keys; `jax.core` sets it, which libraries import.
    bind_keys: Callable[..., Any]

    def __init__(self, name: str) -> None:
        self.name = name
        self._core_primitive: CorePrimitive | None = None
        #: Forms of it for operands that are typed keys, by the generators of all operands.
        self.over_words: dict[tuple[str | None, ...], Any] = {}

    def impl(self, *args: Any, **params: Any) -> Any:
        """Apply the implementation to arrays: `def_impl` sets it, or a class overrides it."""
        raise UnsupportedError(f"the primitive {self.name} has no implementation", fix="give it one by def_impl")

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the avals of results, and effects: `def_abstract_eval` sets the rule, or a class overrides it."""
        raise UnsupportedError(f"the primitive {self.name} has no shape rule", fix="give it one by def_abstract_eval")

    @property
    def has_impl(self) -> bool:
        """True if there is an implementation."""
        return "impl" in vars(self) or type(self).impl is not Primitive.impl

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set the implementation, a function of arrays."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule for the avals of its results."""
        self.abstract_eval = lambda *avals, **params: (rule(*avals, **params), frozenset())  # type: ignore[method-assign]
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set a rule that returns avals and effects. A primitive with effects is applied even if no result is used."""
        self.abstract_eval = rule  # type: ignore[method-assign]
        return rule

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive."""
        if any(map(is_keys, args)):
            return Primitive.bind_keys(self, args, params)
        out = self.core_primitive(*(a if is_value(a) else numpy.asarray(a) for a in args), params=Params(params))
        return list(out) if self.multiple_results else out

    def bind_with_trace(self, trace: Any, args: Sequence[Any], *avals_and_params: Any) -> Any:
        """Apply the primitive under a trace.

        Args:
            trace: the trace; None for the outermost one.
            args: operands.
            avals_and_params: parameters, a dictionary. The avals of operands may precede them; they have no effect.
        """
        with core.set_current_trace(core.EVALUATE if trace is None else trace):
            return self.bind(*args, **avals_and_params[-1])

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that `bind` takes for those of an equation: the same."""
        return params

    @property
    def core_primitive(self) -> CorePrimitive:
        """The package's primitive that stands for this one."""
        if self._core_primitive is None:
            self._core_primitive = _as_core(self)
        return self._core_primitive

    def __repr__(self) -> str:
        return self.name


class CallPrimitive(Primitive):
    """A primitive that takes a function; it has no rules here."""

    call_primitive = True
    multiple_results = True


class MissingPrimitive(Primitive):
    """A primitive of JAX that this package lacks: rules can be registered for it, and no program applies it."""

    stands_in = True

    def __init__(self, full: str) -> None:
        super().__init__(full.rpartition(".")[2].removesuffix("_p"))
        self._full = full

    def bind(self, *args: Any, **params: Any) -> Any:
        """Raise: the primitive cannot be applied.

        Raises:
            MissingNameError: always, with the name.
        """
        absent(self._full)


#: Primitives in JAX's style, by the name of the package's primitive that stands for each.
BY_NAME: dict[str, Primitive] = {}


def _as_core(prim: Primitive) -> CorePrimitive:
    name = f"{prim.name}_{next(_count)}"
    BY_NAME[name] = prim
    rules = _Rules(prim)
    return CorePrimitive(
        name,
        shape=rules.shape,
        ref=rules.ref,
        lower=rules.lower,
        jvp=rules.jvp,
        transpose=rules.transpose,
        batch=rules.batch,
        samples=list,
        evaluate=rules.evaluate,
        multiple_results=prim.multiple_results,
    )


class MissingRuleError(UnsupportedError):
    """A primitive has neither a lowering rule for a platform nor an implementation that can be traced."""


class _Rules:
    """Rules of the package's primitive that stands for one of JAX's; each looks its rule up when it is applied."""

    def __init__(self, prim: Primitive) -> None:
        self.prim = prim

    def shape(self, *avals: Any, params: Params) -> Any:
        out, effects = self.prim.abstract_eval(*avals, **params.values)
        primitive = self.prim.core_primitive
        if effects and primitive.effects is None:  # unordered: what a library's effect orders is not known
            object.__setattr__(primitive, "effects", lambda **_: frozenset(["unordered"]))
        return tuple(map(_plain, out)) if self.prim.multiple_results else _plain(out)

    def ref(self, *args: Any, params: Params) -> Any:
        return self.prim.impl(*args, **params.values)

    def evaluate(self, args: Sequence[Any], rest: dict[str, Any]) -> Any:
        if self.prim.has_impl:
            out = self.prim.impl(*args, **rest["params"].values)
        else:
            out = apply_primitive(self.prim, *args, **rest["params"].values)
        return tuple(out) if self.prim.multiple_results else out

    def lower(self, e: Any, *operands: Any, params: Params) -> Any:
        """Apply the rule for the platform, or else trace the implementation as a function of arrays."""
        rule = rule_of(self.prim, e.platform)
        if isinstance(rule, Lowering):
            outs = self._traced(rule, e, operands, params)
        elif rule is None:
            outs = self._traced(self._implementation(e.platform), e, operands, params)
        else:
            avals = list(e.ins)
            try:
                outs = apply_rule(self.prim, rule, e, operands, params.values)
            except RuleLacksNameError:
                if not self.prim.has_impl:
                    raise
                e.ins = avals
                outs = self._without_rule(e, operands, params)
        return outs if self.prim.multiple_results else outs[0]

    def _implementation(self, platform: str) -> Lowering:
        if not self.prim.has_impl:
            raise self._missing_rule(platform)
        return Lowering(self.prim.impl, self.prim.multiple_results)

    def _missing_rule(self, platform: str) -> MissingRuleError:
        return MissingRuleError(
            f"the primitive {self.prim.name} has no lowering rule for {platform}",
            fix="register one with mlir.register_lowering, or give it an implementation by def_impl",
        )

    def _traced(self, lowering: Lowering, e: Any, operands: Sequence[Any], params: Params) -> Any:
        jaxpr, consts = lowering.staged(e.ins, params.values)
        if any(equation.prim is self.prim.core_primitive for equation in jaxpr.equations):
            raise self._missing_rule(e.platform)  # the implementation is `apply_primitive`, which asks for the rule
        return emit(e, jaxpr, [*(e.constant(np.asarray(c)) for c in consts), *operands])

    def _without_rule(self, e: Any, operands: Sequence[Any], params: Params) -> Any:
        """Trace the implementation; one of NumPy's arrays runs on the host."""
        implementation, avals = self._implementation(e.platform), list(e.ins)
        try:
            return self._traced(implementation, e, operands, params)
        except MissingRuleError:
            raise
        except Exception:
            e.ins = avals
            on_host = Lowering(self._on_host(e.ins, params), self.prim.multiple_results)
            return self._traced(on_host, e, operands, params)

    def _on_host(self, avals: Sequence[Any], params: Params) -> Callable[..., Any]:
        """Return the implementation, run on the host."""
        shapes = self.shape(*avals, params=params)
        outs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in (shapes if type(shapes) is tuple else (shapes,))]

        def host(*args: Any) -> Any:
            results = self.prim.impl(*map(numpy.asarray, args), **params.values)
            return [*map(np.asarray, results if self.prim.multiple_results else [results])]

        def fun(*args: Any, **_: Any) -> Any:
            results = pure_callback(host, outs, *args)
            return results if self.prim.multiple_results else results[0]

        return fun

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], params: Params) -> Any:
        rule = rule_in(primitive_jvps, self.prim, "derivative", "ad.primitive_jvps")
        directions = [Zero(aval_of(x)) if t is None else t for x, t in zip(primals, tangents, strict=True)]
        out, moved = rule(tuple(primals), tuple(directions), **params.values)
        if self.prim.multiple_results:
            return tuple(out), tuple(map(_unless_zero, moved))
        return out, _unless_zero(moved)

    def transpose(self, ct: Any, args: Sequence[Any], params: Params) -> Any:
        rule = rule_in(primitive_transposes, self.prim, "transpose", "ad.primitive_transposes")
        operands = [UndefinedPrimal(a.aval) if isinstance(a, core.UndefinedPrimal) else a for a in args]
        if self.prim.multiple_results:
            avals = self.shape(
                *(a.aval if isinstance(a, UndefinedPrimal) else aval_of(a) for a in operands), params=params
            )
            ct = [Zero(aval) if c is None else c for c, aval in zip(ct, avals, strict=True)]
        back = rule(ct, *operands, **params.values)
        return [None if c is None else _unless_zero(c) for c in back]

    def batch(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], params: Params) -> Any:
        return batch(self.prim, axis, args, dims, params)


def batch(prim: Primitive, axis: Any, args: Sequence[Any], dims: Sequence[Any], params: Params) -> Any:
    """Apply the batching rule of a primitive, of whichever registry; return results and their axes."""
    args, dims = tuple(args), tuple(dims)  # rules give them to functions that distinguish tuples from lists
    if prim in fancy_primitive_batchers:
        out, at = fancy_primitive_batchers[prim](AxisData(axis.name, axis.size), args, dims, **params.values)
    elif prim in axis_primitive_batchers:  # the older form: the axis in three arguments
        out, at = axis_primitive_batchers[prim](axis.size, axis.name, None, args, dims, **params.values)
    else:
        rule = rule_in(primitive_batchers, prim, "batching rule", "batching.primitive_batchers")
        out, at = rule(args, dims, **params.values)
    return (tuple(out), tuple(at)) if prim.multiple_results else (out, at)


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive by its lowering, compiled alone: an implementation for primitives without another one.

    Args:
        prim: the primitive.
        args: arrays.
        params: its parameters.

    Returns:
        The result; a list for a primitive with several.

    Raises:
        UnsupportedError: if the primitive has no lowering.

    Example:
        >>> from functorch_like.jax_alias.modules.core_primitives import sin_p
        >>> float(apply_primitive(sin_p, 0.0))
        0.0
    """
    if not isinstance(prim, Primitive) or prim.is_builtin:
        return prim.bind(*args, **params)
    held = Params(params)
    staged = core.state.trace.staging  # by the lowering of a primitive whose implementation this is
    out = prim.core_primitive(*args, params=held) if staged else _alone(prim.core_primitive, held)(*args)
    return list(out) if prim.multiple_results else out


@caches.cleared
@functools.lru_cache(1024)
def _alone(core_primitive: CorePrimitive, params: Params) -> Callable[..., Any]:
    import functorch_like as ft  # late: it imports all

    def applied(*args: Any) -> Any:
        return core_primitive(*args, params=params)

    applied.__name__ = core_primitive.name
    return ft.jit(applied)


def rule_in(registry: dict[Any, Any], prim: Primitive, what: str, where: str) -> Any:
    """Return the rule of a primitive in a registry, which `where` names."""
    rule = registry.get(prim)
    if rule is None:
        raise UnsupportedError(f"the primitive {prim.name} has no {what}", fix=f"register one in {where}")
    return rule


def _unless_zero(tangent: Any) -> Any:
    return None if isinstance(tangent, Zero) else tangent


def _plain(aval: Any) -> ShapedArray:
    return aval if isinstance(aval, ShapedArray) else ShapedArray(tuple(aval.shape), aval.dtype)
