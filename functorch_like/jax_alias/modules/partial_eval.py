"""`jax.interpreters.partial_eval`: tracing to programs, and registries of rules that this package does not use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from functorch_like.core import Tracer
from functorch_like.ir import passes
from functorch_like.ir.jaxpr import Equation, Var
from functorch_like.ir.jaxpr import Jaxpr as Recorded
from functorch_like.ir.trace_to_jaxpr import StageTracer, stage
from functorch_like.jax_alias.modules.programs import Jaxpr, view
from functorch_like.random.typed_keys import KeyArray, KeyAval, is_keys

DynamicJaxprTracer = StageTracer
JaxprTracer = Tracer

# Rules are registered here and never looked up: what they would do follows from the other rules.
custom_partial_eval_rules: dict[Any, Any] = {}
dce_rules: dict[Any, Any] = {}
partial_eval_jaxpr_custom_rules: dict[Any, Any] = {}


Val = Any


class PartialVal(tuple[Any, Any]):
    """A pair: None and a known value, or the aval of an unknown value and None."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return the pair of a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """Return the pair of an unknown value with an aval."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return True for a known value."""
        return self[0] is None


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Record a flat function, and compute those of its results that depend on known values alone.

    Args:
        fun: a function that `linear_util` wraps.
        pvals: its arguments.
        instantiate: whether results are left to the program even if they are known; one bool, or one for each result.

    Returns:
        The program of the unknown arguments, all results as PartialVals, and what the program closes over.
    """
    avals = [aval for aval, _ in pvals if aval is not None]

    def flat(*unknown: Any) -> list[Any]:
        rest = iter(unknown)
        args = [const if aval is None else _value(aval, next(rest)) for aval, const in pvals]
        return [x._words if is_keys(x) else x for x in fun.call_wrapped(*args)]

    program, consts = stage(flat, [_plain(aval) for aval in avals], name=getattr(fun, "__name__", "fun"))
    env: dict[Any, Any] = dict(zip(program.inputs, consts, strict=False))
    read = lambda atom: env[atom] if type(atom) is Var else atom.value
    kept = [instantiate] * len(program.outputs) if isinstance(instantiate, bool) else list(instantiate)
    for equation in program.equations if any(not k for k in kept) else ():
        part = _known_part(equation, [type(a) is not Var or a in env for a in equation.inputs])
        if part is not None:
            out = part.prim(*map(read, part.inputs), **part.params)
            env.update(zip(part.outputs, out if part.prim.multiple_results else [out], strict=True))
    outs = [
        PartialVal.unknown(aval) if keep or (type(a) is Var and a not in env) else PartialVal.known(read(a))
        for a, aval, keep in zip(program.outputs, program.out_avals, kept, strict=True)
    ]
    closed = view(program, consts)
    return closed.jaxpr, outs, closed.consts


def _known_part(e: Equation, known: Sequence[bool]) -> Equation | None:
    """Return the part of an equation that needs its known operands alone; None if it has no such part."""
    if all(known):
        return e
    if e.prim.dce is None:
        return None
    count, used = len(e.outputs), []
    for k in range(count):
        needed = e.prim.dce(tuple(i == k for i in range(count)), **e.params)[0]
        used.append(all(k or not n for k, n in zip(known, needed, strict=True)))
    return passes.pruned(e, tuple(used)) if any(used) else None


def _plain(aval: Any) -> Any:
    return aval.words if isinstance(aval, KeyAval) else aval


def _value(aval: Any, words: Any) -> Any:
    return KeyArray(words, aval.impl) if isinstance(aval, KeyAval) else words


def trace_to_jaxpr_dynamic(fun: Any, in_avals: Sequence[Any], **options: Any) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Record a flat function; return the program, the avals of its results, and what it closes over."""

    def flat(*args: Any) -> list[Any]:
        out = fun.call_wrapped(*map(_value, in_avals, args))
        return [x._words if is_keys(x) else x for x in out]

    program, consts = stage(flat, [_plain(aval) for aval in in_avals], name=getattr(fun, "__name__", "fun"))
    closed = view(program, consts)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return the part of a program that computes the used results, and which arguments it has; it has all constants.

    Args:
        jaxpr: the program.
        used_outputs: one bool, or one for each result.
        instantiate: whether arguments are kept even if they are not needed; one bool, or one for each argument.
    """
    used = _each(used_outputs, jaxpr.outvars)
    program = jaxpr._text
    if isinstance(program, Recorded) and not jaxpr.constvars and not any(_each(instantiate, jaxpr.invars)):
        live, needed = passes.without_unused(program, tuple(used))
        return view(live).jaxpr, [bool(n) for n in needed]
    part, _, needed = dce_jaxpr_consts(jaxpr, used, instantiate)
    return part.replace(constvars=jaxpr.constvars), needed


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Return the part of a program that computes the used results, and which constants and arguments it has.

    Equations with effects are kept.

    Args:
        jaxpr: the program.
        used_outputs: one bool, or one for each result.
        instantiate: True to keep all constants and arguments; or one bool for each argument.
    """
    outs = [v for v, used in zip(jaxpr.outvars, _each(used_outputs, jaxpr.outvars), strict=True) if used]
    live, eqns = set(filter(_is_var, outs)), []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in live for v in eqn.outvars):
            live.update(filter(_is_var, eqn.invars))
            eqns.append(eqn)
    consts = [instantiate is True or v in live for v in jaxpr.constvars]
    args = [keep or v in live for v, keep in zip(jaxpr.invars, _each(instantiate, jaxpr.invars), strict=True)]
    names = None if jaxpr.debug_info is None else jaxpr.debug_info.with_unknown_names()
    part = jaxpr.replace(
        constvars=list(compress(jaxpr.constvars, consts)),
        invars=list(compress(jaxpr.invars, args)),
        outvars=outs,
        eqns=eqns[::-1],
        debug_info=names,
    )
    return part, consts, args


def _each(flags: bool | Sequence[bool], variables: Sequence[Any]) -> list[bool]:
    return [flags] * len(variables) if isinstance(flags, bool) else [bool(flag) for flag in flags]


def _is_var(atom: Any) -> bool:
    return isinstance(atom, Var)
