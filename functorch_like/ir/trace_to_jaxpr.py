"""Staging: run a Python function on tracers and record its primitives as a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import xla_metadata
from functorch_like.core import (
    EVALUATE,
    ArrayImpl,
    Primitive,
    Trace,
    Tracer,
    aval_of,
    leak,
    new_trace,
    signature_of,
    state,
    transform_stack,
)
from functorch_like.errors import UnsupportedError
from functorch_like.ir import trace_constants
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var


class VarTracer(Tracer):
    """Tracer of a variable of the program that its trace records."""

    __slots__ = ("_var",)

    def __init__(self, trace: Trace, var: Var) -> None:
        self._trace, self._var = trace, var

    @property
    def aval(self) -> ShapedArray:
        return self._var.aval

    def creation_site(self) -> Any:
        equations: list[Equation] = getattr(self._trace, "equations", [])
        return next((e.source for e in equations if self._var in e.outputs), None)


class StageTracer(VarTracer):
    """Tracer of a variable of a jaxpr that is being staged."""

    __slots__ = ()

    def guarded(self, what: str) -> Any:
        return self._trace.guard(self, what)  # type: ignore[attr-defined]


class StageTrace(Trace):
    """Trace that records every primitive as an equation; values of other traces become constants or literals.

    Attributes:
        equations: the recorded equations.
        consts, const_vars: values from outside that became inputs, and the variables of these inputs.
        hosts: the variables whose dtype NumPy chose, with descriptions; `dtype_origins.py` updates them.
        looked: numbers of equations and originals that `hosts` takes into account.
        originals: pairs of an added input, or the literal of an array, and its value from outside, before conversion.
        added: inputs behind the function's arguments, which libraries add for their state.
        again: True if the function may be staged again, along other paths; it then has `traced_aux` (see `stage`).
        cells: contents of `ft.Ref`s from outside that were read or written; `ref/reference.py` sets them.
        follows: True if Python control flow on traced values is followed; None if it is not followed inside either.
        undecided: the signal of a condition on unknown values, once it was raised.
    """

    __slots__ = (
        "_atoms", "added", "again", "cells", "const_vars", "consts", "equations", "hosts", "looked", "originals",
        "undecided",
    )  # fmt: skip

    follows: bool | None = False

    def __init__(self, name: str, parent: Trace) -> None:
        super().__init__(name, parent)
        self.staging = True
        self.broadcasts = {}
        self.equations: list[Equation] = []
        self.added: list[StageTracer] = []
        self.consts: list[Any] = []
        self.const_vars: list[Var] = []
        self.hosts: dict[Atom, str] = {}
        self.looked = (0, 0)
        self.again = False
        self.undecided: Undecided | None = None
        self.cells: dict[Any, Any] | None = None
        self.originals: list[tuple[Atom, Any]] = []  # keeps the values alive, so that their ids are not reused
        self._atoms: dict[int, Atom] = {}  # by identity of the value

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if prim.stage_params is not None:
            args, params = prim.stage_params(args, params)
        inputs: list[Any] = []
        avals: list[ShapedArray] = []
        for a in args:
            atom = a._var if type(a) is StageTracer and a._trace is self else self.lift(a, prim.name)
            inputs.append(atom)
            avals.append(atom.aval)
        signature = signature_of(prim, avals, params)
        source = state.source
        if source is None:
            source = xla.here()
        if prim.multiple_results:
            outputs = [Var(aval) for aval in signature.out]
            self.equations.append(Equation(prim, inputs, params, outputs, source, signature))
            return [StageTracer(self, v) for v in outputs]
        var = Var(signature.out)
        self.equations.append(Equation(prim, inputs, params, (var,), source, signature))
        return StageTracer(self, var)

    def guard(self, tracer: StageTracer, what: str) -> Any:
        """Return the concrete value of a tracer for a conversion by Python: None, since it has none.

        Raises:
            Undecided: for a condition, if a trace around this one follows Python control flow.
        """
        if what == "bool" and self.again and tracer.aval.size == 1 and not self.finished:
            following = follower(self)
            if following is not None:
                self.undecided = Undecided(self, following)
                raise self.undecided
        return None

    def forget(self, start: int) -> None:
        """Drop the equations from a position on, since their function is staged again in another way."""
        del self.equations[start:]
        if self.broadcasts:
            self.broadcasts.clear()

    @staticmethod
    def body(fun: Callable[..., Any], avals: Sequence[Any], **of: Any) -> tuple[Jaxpr, list[Any]]:
        """Stage a function with conditions along all its paths; for types of traces that follow Python control flow."""
        raise NotImplementedError

    def input(self, aval: ShapedArray) -> StageTracer:
        """Return a new tracer for an input."""
        return StageTracer(self, Var(aval))

    def lift(self, value: Any, using: str = "the result") -> Atom:
        """Return the atom for a value from outside: a literal if it is small, otherwise a new input."""
        if isinstance(value, StageTracer) and value._trace is self:
            return value._var
        known = self._atoms.get(id(value))
        if known is not None:
            return known
        if isinstance(value, Tracer):
            if value._trace.finished or value._trace.is_nested_in(self):
                raise leak(value, using)
        elif type(value) is not ArrayImpl:
            aval = aval_of(value)
            host = np.asarray(value, aval.dtype)
            if not trace_constants.is_literal(host):
                return self._constant(value, xla.device_put(host))
            if host is value and host.flags.writeable:  # the user may change it before the jaxpr runs again
                host = host.copy()
            if not host.ndim:
                host.flags.writeable = False  # read-only arrays of rank 0 are never narrowed (`dtypes.is_constant`)
            literal = Literal(host, aval)
            if host is value:
                return self._remembered(value, literal)
            if host.ndim:
                self.originals.append((literal, value))
            return literal
        else:
            made_of = trace_constants.value_of(value)
            if made_of is not None:
                return self._remembered(value, Literal(made_of, value.aval))
        return self._constant(value, value)

    def _constant(self, key: Any, value: Any) -> Atom:
        var = Var(aval_of(value))
        self.consts.append(value)
        self.const_vars.append(var)
        return self._remembered(key, var)

    def _remembered(self, value: Any, atom: Atom) -> Atom:
        self.originals.append((atom, value))
        self._atoms[id(value)] = atom
        return atom


class RefusingTrace(StageTrace):
    """Trace of a function whose Python control flow is not followed, even if that of the function around it is."""

    __slots__ = ()

    follows = None


class Undecided(BaseException):
    """Signal of a condition on unknown values. A user's `except Exception` does not catch it.

    A bare `except` does, and a `finally` that returns or raises hides it. So the trace keeps the signal, and what the
    function did after it does not count.

    Attributes:
        trace: trace of the values.
        following: type of the trace around it that follows Python control flow.
    """

    def __init__(self, trace: Trace, following: type[StageTrace]) -> None:
        super().__init__()
        self.trace, self.following = trace, following


class CapturedRefs(UnsupportedError):
    """A staged function reads or writes `ft.Ref`s from outside. (Loops, branches and jit pass them as operands.)

    Attributes:
        trace: trace that staged the function.
        refs: the Refs that were not passed to it.
    """

    def __init__(self, trace: StageTrace, refs: list[Any]) -> None:
        count = "a Ref" if len(refs) == 1 else f"{len(refs)} Refs"
        super().__init__(
            f"{trace.name or 'a staged function'} reads or writes {count} from outside of it: "
            f"{', '.join(map(repr, refs)):.100}",
            fix="pass ref[...] to it as an argument, return the new value, and assign that to ref[...] behind the call",
            chain=transform_stack(trace),
        )
        self.trace, self.refs = trace, refs

    def __reduce__(self) -> tuple[Any, ...]:  # traces are not pickled
        return UnsupportedError, (str(self),)


def staging_trace() -> StageTrace | None:
    """Return the innermost trace around the current one that stages a jaxpr, or None."""
    trace = state.trace
    while trace is not EVALUATE and not isinstance(trace, StageTrace):
        trace = trace.parent
    return trace if isinstance(trace, StageTrace) else None


def follower(trace: Trace) -> type[StageTrace] | None:
    """Return the type of the trace that follows Python control flow in a trace; None if it is not followed."""
    while trace is not EVALUATE:
        if isinstance(trace, StageTrace) and trace.follows is not False:
            return type(trace) if trace.follows else None
        trace = trace.parent
    return state.following


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    *,
    name: str,
    origin: str = "",
    parent: Trace | None = None,
    chain: str | None = None,
    hosts: Mapping[int, str] | None = None,
    trace: StageTrace | None = None,
) -> tuple[Jaxpr, list[Any]]:
    """Record a function of flat arguments and flat results.

    Args:
        fun: function of one tracer for each aval, which returns a sequence of values. If it has another result, such as
            their structure, `fun.traced_aux()` returns that, hashable; only then may its conditions be followed.
        avals: avals of the arguments.
        name: name of the jaxpr.
        origin: description of the origin of the jaxpr, for its text.
        parent: the trace to run under; the current one by default. `core.EVALUATE` if the function closes over
            nothing: then the jaxpr depends on the function alone.
        chain: name of the transformation in errors; `name` by default, none if empty.
        hosts: positions of the arguments that are NumPy arrays, with descriptions.
        trace: trace that records, instead of a new one with `parent` and `chain`.

    Returns:
        The jaxpr, whose first inputs are the values that the function closes over, and these values.

    Raises:
        CapturedRefs: if the function reads or writes an `ft.Ref` from outside that its caller has not passed.
    """
    if trace is None:
        trace = StageTrace(name if chain is None else chain, state.trace if parent is None else parent)
        trace.again = hasattr(fun, "traced_aux")
    inputs: list[StageTracer] = []
    outputs: list[Atom] = []
    try:
        with new_trace(trace):
            inputs = [trace.input(a) for a in avals]
            if hosts:
                trace.hosts = {inputs[i]._var: text for i, text in hosts.items()}
            outputs = [trace.lift(o) for o in fun(*inputs)]
            inputs += trace.added
            if trace.cells is not None and (missing := [ref for ref, cell in trace.cells.items() if not cell.given]):
                raise CapturedRefs(trace, missing)
    except (Undecided, Exception):
        if trace.undecided is None:
            raise
    if trace.undecided is not None:
        following = trace.undecided.following
        return following.body(fun, avals, name=name, origin=origin, chain=trace.name, parent=trace.parent)
    if xla_metadata.value:
        annotate(trace.equations, xla_metadata.value)
    jaxpr = Jaxpr([*trace.const_vars, *(t._var for t in inputs)], trace.equations, outputs, name, origin)
    return jaxpr, trace.consts


class Recorded:
    """The equations that the traces in force record from now on."""

    def __init__(self) -> None:
        self._begun: list[tuple[list[Equation], int]] = []
        trace = state.trace
        while trace is not EVALUATE:
            recorded = getattr(trace, "equations", None)
            if recorded is not None:
                self._begun.append((recorded, len(recorded)))
            trace = trace.parent

    def equations(self) -> Iterator[Equation]:
        """Yield those recorded until now."""
        for equations, start in self._begun:
            yield from equations[start:]


def annotate(equations: Iterable[Equation], attributes: tuple[tuple[str, str], ...]) -> None:
    """Give equations attributes for the compiler, except for those that have some."""
    for e in equations:
        if source_info.attributes(e.source) is None:
            e.source = source_info.Annotated(attributes, e.source)
