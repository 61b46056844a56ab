"""Reverse mode: linearize, then transpose.

`linearize` runs forward mode with tangents that are variables of a tape: each `jvp` rule computes its primal part at
once, and its linear operations on tangents are recorded. The backward pass applies `transpose` rules to the recorded
equations in reverse order. (A. Radul et al., "You only linearize once: tangents transpose to gradients",
arXiv:2204.10923.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import explicit_resolved
from functorch_like.caches import cleared
from functorch_like.core import Primitive, Trace, UndefinedPrimal, as_argument, aval_of, new_trace, signature_of, state
from functorch_like.dtypes import accumulator, is_constant
from functorch_like.errors import FtError
from functorch_like.interpreters.forward import Dual, JVPTrace, split_duals
from functorch_like.ir.jaxpr import Equation, Jaxpr, Literal, Var, effects
from functorch_like.ir.trace_to_jaxpr import VarTracer
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.collectives.shared_values import Boundary, boundary
from functorch_like.primitives.elementwise.arithmetic import add
from functorch_like.primitives.structural import convert_element_type
from functorch_like.primitives.structural.sharding_constraint import split_as


class TapeTracer(VarTracer):
    """Tracer of a tangent that is a variable of a tape."""

    __slots__ = ()


class TapeTrace(Trace):
    """Trace that records equations with its own tracers as operands; the parent computes all others at once.

    Operands of a recorded equation are variables of the tape and known values.
    """

    __slots__ = ("equations",)

    def __init__(self, parent: Trace) -> None:
        super().__init__("", parent)  # no name: errors name the JVPTrace that runs under it
        self.broadcasts = parent.broadcasts
        self.equations: list[Equation] = []

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for a in args:
            if type(a) is TapeTracer and a._trace is self:
                break
        else:
            parent = state.trace = self.parent
            try:
                return parent.process(prim, args, params)
            finally:
                state.trace = self
        if prim.partial_eval is not None:
            return prim.partial_eval(self, args, params)
        return self.record(prim, args, params)

    def record(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Append an equation; its results are tracers."""
        inputs: list[Any] = []
        avals: list[ShapedArray] = []
        for a in args:
            if type(a) is TapeTracer and a._trace is self:
                var = a._var
                inputs.append(var)
                avals.append(var.aval)
            else:
                inputs.append(a)
                avals.append(aval_of(a))
        signature = signature_of(prim, avals, params)
        source = state.source
        if source is None:
            source = xla.here()
        if prim.multiple_results:
            outputs = [Var(aval) for aval in signature.out]
            self.equations.append(Equation(prim, inputs, params, outputs, source, signature))
            return [TapeTracer(self, v) for v in outputs]
        var = Var(signature.out)
        self.equations.append(Equation(prim, inputs, params, (var,), source, signature))
        return TapeTracer(self, var)

    def input(self, aval: ShapedArray) -> TapeTracer:
        return TapeTracer(self, Var(aval))

    def var(self, value: Any) -> Var | None:
        """Return the variable of a recorded value; None for other values (a tangent that is zero)."""
        return value._var if type(value) is TapeTracer and value._trace is self else None


class LinearMap:
    """A linear map from tangents of inputs to tangents of outputs, as a tape.

    Args:
        inputs: one variable for each input.
        equations: linear equations over them and known values.
        outputs: a variable for each output; None for a tangent that is zero.
        boundary: how cotangents of values that are the same on all devices count, where a `shard_map` checks that.
    """

    __slots__ = ("boundary", "equations", "inputs", "outputs")

    def __init__(
        self, inputs: list[Var], equations: list[Equation], outputs: list[Var | None], boundary: Boundary | None = None
    ) -> None:
        self.inputs, self.outputs, self.boundary = inputs, outputs, boundary
        self.equations = dead_code_elimination(equations, outputs)

    def keep(self) -> None:
        """Copy the NumPy arrays that equations read: the user may change them while the map is kept."""
        copies: dict[int, tuple[Any, Any]] = {}  # with the originals, so that their ids are not reused
        for e in self.equations:
            if any(type(a) is np.ndarray for a in e.inputs):
                for a in e.inputs:
                    if type(a) is np.ndarray and id(a) not in copies:
                        copies[id(a)] = a, a.copy()
                        copies[id(a)][1].setflags(write=not is_constant(a))
                e.inputs = [copies[id(a)][1] if type(a) is np.ndarray else a for a in e.inputs]

    def places(self) -> list[list[tuple[int, int]]]:
        """Return, for each array, the positions at which equations read it: pairs of equation and operand."""
        places: dict[int, list[tuple[int, int]]] = {}
        for i, e in enumerate(self.equations):
            for k, a in enumerate(e.inputs):
                if isinstance(a, (core.ArrayImpl, core.Tracer)) or (type(a) is np.ndarray and a.ndim):
                    places.setdefault(id(a), []).append((i, k))
        return list(places.values())

    def values(self, places: Sequence[Sequence[tuple[int, int]]]) -> list[Any]:
        """Return the value that equations read at each group of positions that `places` returns."""
        return [self.equations[i].inputs[k] for (i, k), *_ in places]

    def holding(self, places: Sequence[Sequence[tuple[int, int]]], values: Iterable[Any]) -> LinearMap:
        """Return the map with other values at these positions."""
        inputs = [list(e.inputs) for e in self.equations]
        for where, value in zip(places, values, strict=True):
            for i, k in where:
                inputs[i][k] = value
        equations = [e.of(new) for e, new in zip(self.equations, inputs, strict=True)]
        return LinearMap(self.inputs, equations, self.outputs, self.boundary)

    def apply(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of outputs for those of inputs; None is zero."""
        known = {v: t for v, t in zip(self.inputs, tangents, strict=True) if t is not None}
        missing = [v for v in self.inputs if v not in known]
        known.update((v, zeros(v.aval)) for v in missing)
        carried = state.source
        try:
            for e in self.equations:
                state.source = e.source
                out = e.prim(*[known[a] if type(a) is Var else a for a in e.inputs], **e.params)
                known.update(zip(e.outputs, out if e.prim.multiple_results else (out,), strict=True))
        finally:
            state.source = carried
        return [None if v is None else known[v] for v in self.outputs]

    def transpose(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangents of inputs for those of outputs; None is zero."""
        if self.boundary is None:
            return backward_pass(self.equations, self.inputs, self.outputs, cotangents)
        cotangents = self.boundary.given(cotangents)
        return self.boundary.found(backward_pass(self.equations, self.inputs, self.outputs, cotangents))

    def of_first(self, count: int) -> LinearMap:
        """Return the map to the first outputs alone."""
        at = self.boundary
        at = at if at is None else at._replace(results=at.results[:count])
        return LinearMap(self.inputs, self.equations, self.outputs[:count], at)


def dead_code_elimination(equations: list[Equation], outputs: Sequence[Any]) -> list[Equation]:
    """Return the equations that an output depends on, and those with effects (the printing of a tangent)."""
    needed = {v for v in outputs if type(v) is Var}
    result: list[Equation] = []
    for e in reversed(equations):
        for v in e.outputs:
            if v in needed:
                break
        else:
            if e.prim.effects is None or not effects(e):
                continue
        result.append(e)
        for a in e.inputs:
            if type(a) is Var:
                needed.add(a)
    result.reverse()
    return result


def linearize(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], differentiated: Sequence[bool], name: str = "grad"
) -> tuple[list[Any], LinearMap]:
    """Linearize a function at a point.

    Args:
        fun: function of flat arguments that returns a sequence.
        primals: arguments.
        differentiated: mask of the arguments to differentiate with respect to.
        name: name of the transformation in errors.

    Returns:
        The results, and the derivative as a linear map of tangents of the differentiated arguments.
    """
    tape = TapeTrace(state.trace)
    trace = JVPTrace(name, tape)
    with new_trace(tape), new_trace(trace):
        inputs = [tape.input(aval_of(p).strong()) for p, w in zip(primals, differentiated, strict=True) if w]
        rest = iter(inputs)
        pairs = zip(primals, differentiated, strict=True)
        outs = fun(*[Dual(trace, as_argument(p), next(rest)) if w else p for p, w in pairs])
    results, tangents = split_duals(trace, outs)
    at = boundary([p for p, w in zip(primals, differentiated, strict=True) if w], results)
    return results, LinearMap([t._var for t in inputs], tape.equations, [tape.var(t) for t in tangents], at)


_undefined = cleared(lru_cache(4096)(UndefinedPrimal))


def backward_pass(
    equations: Sequence[Equation], inputs: Sequence[Var], outputs: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Apply the transpose rules of linear equations in reverse order.

    Args:
        equations: equations whose `Var` operands are linear; other operands are known values.
        inputs: variables whose cotangents are returned.
        outputs: a variable for each output; others have no cotangents.
        cotangents: cotangent of each output; None for zero.

    Returns:
        The cotangent of each input; None for zero.
    """
    pending: dict[Var, Any] = {}
    results = itertools.chain.from_iterable(e.outputs for e in equations)
    split = any(v.aval.explicit is not None for v in itertools.chain(inputs, results))
    wide: set[Var] = set()  # variables whose cotangents are sums of narrow floats, which accumulate in float32

    def accumulate(var: Var, ct: Any) -> None:
        if split:
            ct = split_as(ct, var.aval.explicit)
        if var not in pending:
            pending[var] = ct
            return
        total, dtype = pending[var], accumulator(var.aval.dtype)
        if dtype != var.aval.dtype:
            wide.add(var)
            total, ct = _converted(total, dtype), _converted(ct, dtype)
        pending[var] = add(total, ct)

    def taken(var: Var) -> Any:
        ct = pending.pop(var, None)
        return _converted(ct, var.aval.dtype) if var in wide and ct is not None else ct

    for out, ct in zip(outputs, cotangents, strict=True):
        if type(out) is Var and ct is not None:
            accumulate(out, ct)
    carried = state.source
    try:
        for e in reversed(equations):
            prim = e.prim
            if prim.multiple_results:
                cts: Any = [taken(v) for v in e.outputs]
                if all(ct is None for ct in cts):
                    continue
            else:
                cts = taken(e.outputs[0])
                if cts is None:
                    continue
            state.source = e.source
            args = [_undefined(a.aval) if type(a) is Var else a for a in e.inputs]
            try:
                if split:
                    with explicit_resolved.held(True):  # `accumulate` splits the results
                        back = prim.transpose(cts, args, **e.params)
                else:
                    back = prim.transpose(cts, args, **e.params)
            except FtError as error:
                raise core.add_error_context(error, prim, args, e.params, None, "transpose")  # noqa: B904
            for a, ct in zip(e.inputs, back, strict=True):
                if type(a) is Var and ct is not None:
                    accumulate(a, ct)
    finally:
        state.source = carried
    results = {v: taken(v) for v in inputs}
    return [results[v] for v in inputs]


def _converted(x: Any, dtype: Any) -> Any:
    return x if aval_of(x).dtype == dtype else convert_element_type(x, new_dtype=dtype)


def backward_jaxpr(jaxpr: Jaxpr, linear: Sequence[bool], known: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Return the cotangents of the linear inputs of a jaxpr, for the values of its other inputs."""
    rest = iter(known)
    values: dict[Var, Any] = {v: next(rest) for v, lin in zip(jaxpr.inputs, linear, strict=True) if not lin}
    unknown = {v for v, lin in zip(jaxpr.inputs, linear, strict=True) if lin}
    tape: list[Equation] = []
    for e in jaxpr.equations:
        operands = [a.value if type(a) is Literal else values.get(a, a) for a in e.inputs]
        if any(type(a) is Var for a in operands):
            tape.append(e.of(operands))
            unknown.update(e.outputs)
        else:
            out = e.prim(*operands, **e.params)
            values.update(zip(e.outputs, out if e.prim.multiple_results else (out,), strict=True))
    inputs = [v for v, lin in zip(jaxpr.inputs, linear, strict=True) if lin]
    outputs = [a if a in unknown else None for a in jaxpr.outputs]
    return backward_pass(tape, inputs, outputs, cotangents)
