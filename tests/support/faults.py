"""Wrong versions of the package, made on purpose: each planted fault must be noticed by a suite.

A fault is a piece of one function's source replaced by another piece. The function keeps its identity: only its code
changes, so that every place that imported it by name sees the fault. A fault whose piece of source is no longer there
raises, so faults keep up with the code.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any, NamedTuple


class Fault(NamedTuple):
    """Where, which piece of source, by what it is replaced, and the laws, or files of tests, that should notice."""

    where: str  # module and qualified name, with a colon between
    old: str
    new: str
    suites: tuple[str, ...]


def find(where: str) -> Any:
    """The function at `module:Class.method`."""
    import importlib

    module, _, path = where.partition(":")
    found: Any = importlib.import_module(f"functorch_like.{module}")
    for name in path.split("."):
        found = found.__dict__[name] if isinstance(found, type) else getattr(found, name)
    if isinstance(found, property):
        found = found.fget
    return inspect.unwrap(found)


def plant(fault: Fault) -> Callable[[], None]:
    """Put the fault in; returns what takes it out again."""
    target = find(fault.where)
    source = textwrap.dedent(inspect.getsource(target))
    assert source.count(fault.old) == 1, f"{fault.old!r} is in {fault.where} {source.count(fault.old)} times, not once"
    source = source.replace(fault.old, fault.new)
    while source.startswith("@"):
        source = source.partition("\n")[2]
    scope: dict[str, Any] = {}
    program = compile(f"from __future__ import annotations\n{source}", target.__code__.co_filename, "exec")
    exec(program, target.__globals__, scope)
    made = next(v for v in scope.values() if isinstance(v, types.FunctionType))
    assert made.__code__.co_freevars == target.__code__.co_freevars, "the function closes over something"
    good = target.__code__
    target.__code__ = made.__code__

    def restore() -> None:
        target.__code__ = good

    return restore


FORWARD, BATCH, REVERSE = "interpreters.forward:", "interpreters.batching:", "interpreters.reverse:"
CALL, PASSES = "primitives.higher.call:", "interpreters.passes:"
DERIVED = ("jvp_is_difference", "grad_agrees_with_jvp", "linearize_is_jvp", "vjp_is_adjoint")
MAPPED = ("vmap_is_stack", "vmap_of_jit_is_stack", "jit_of_vmap_is_stack")

FAULTS: dict[str, Fault] = {
    # ---------------------------------------------------------------------------------------------------- forward
    "any dual counts as mine (perturbation confusion)": Fault(
        FORWARD + "JVPTrace.process", "type(a) is Dual and a._trace is self", "type(a) is Dual", DERIVED
    ),
    "a result's dual of another trace is taken apart": Fault(
        FORWARD + "split_duals", "type(o) is Dual and o._trace is trace", "type(o) is Dual", DERIVED
    ),
    "the trace stays the parent's after a rule": Fault(
        FORWARD + "JVPTrace.process", "state.trace = self\n    if", "pass\n    if", DERIVED
    ),
    "the tangent of the second operand is dropped": Fault(
        FORWARD + "JVPTrace.process",
        "out, tangent = prim.jvp(primals, tangents, **params)",
        "out, tangent = prim.jvp(primals, tangents[:1] + [None] * (len(tangents) - 1) if tangents[0] is not None"
        " else tangents, **params)",
        DERIVED,
    ),
    # ----------------------------------------------------------------------------------------------------- batching
    "any batched value counts as mine": Fault(
        BATCH + "BatchTrace.process", "type(a) is BatchTracer and a._trace is self", "type(a) is BatchTracer", MAPPED
    ),
    "hidden axes are taken to be the first": Fault(
        BATCH + "BatchTrace.process", "dims.append(a.dim)", "dims.append(0)", MAPPED
    ),
    "a hidden axis is taken to be the next one": Fault(
        BATCH + "BatchTrace.process", "dims.append(a.dim)", "dims.append((a.dim + 1) % a.value.ndim)", MAPPED
    ),
    "values that are not mapped are taken to be": Fault(
        BATCH + "BatchTrace.process", "dims.append(None)", "dims.append(0 if getattr(a, 'ndim', 0) else None)", MAPPED
    ),
    "results are said to be mapped over the first axis": Fault(
        BATCH + "batch", "o.dim if m else None", "0 if m else None", MAPPED
    ),
    "the hidden axis is cut out one too late": Fault(
        BATCH + "BatchTracer.aval", "shape[self.dim + 1 :]", "shape[self.dim + 2 :]", MAPPED
    ),
    "negative in_axes are taken to be 0": Fault("vmap:_canonical", "int(dim) % ndim", "max(int(dim), 0)", MAPPED),
    "out_axes is ignored": Fault("vmap:_place", "move(out, dim, wanted % ndim)", "move(out, dim, 0)", MAPPED),
    # ------------------------------------------------------------------------------------------------------ reverse
    "cotangents overwrite each other": Fault(
        REVERSE + "backward", "add(pending[var], ct) if var in pending else ct", "ct", DERIVED
    ),
    "the first cotangent stays, others are dropped": Fault(
        REVERSE + "backward",
        "pending[var] = add(pending[var], ct) if var in pending else ct",
        "pending.setdefault(var, ct)",
        DERIVED,
    ),
    "the tape is walked forwards": Fault(
        REVERSE + "backward", "for e in reversed(equations)", "for e in equations", DERIVED
    ),
    "equations that an output needs are dropped": Fault(
        REVERSE + "live",
        "any(v in needed for v in e.outputs)",
        "e.outputs[-1] in needed and len(e.inputs) < 2",
        DERIVED,
    ),
    "tangents of the inputs are mixed up": Fault(
        REVERSE + "Linear.apply",
        "zip(self.inputs, tangents, strict=True)",
        "zip(self.inputs[::-1], tangents, strict=True)",
        ("linearize_is_jvp",),
    ),
    # --------------------------------------------------------------------------------------------------------- call
    "the jvp of a call forgets which tangents there are": Fault(
        CALL + "_jvp", '("jvp", some)', '"jvp"', ("transformations/test_nesting.py",)
    ),
    "the batched form of a call forgets the axes": Fault(
        CALL + "_batch",
        '("vmap", axis, tuple(dims), state.axes)',
        '("vmap", axis)',
        ("transformations/test_nesting.py",),
    ),
    "the batched form of a call is mapped over the first axes": Fault(
        CALL + "_batch",
        "evaluate(jaxpr, xs), axis, flat, dims)",
        "evaluate(jaxpr, xs), axis, flat, [None if d is None else 0 for d in dims])",
        ("vmap_of_jit_is_stack", "jit_is_identity"),
    ),
    "the halves of a call mix up residuals": Fault(
        CALL + "_split",
        "for kind, k in halves.residuals]",
        "for kind, k in halves.residuals][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the halves of a call mix up their results": Fault(
        CALL + "_split",
        "[next(tangents) if u else next(primals) for u in halves.unknown_out]",
        "[next(tangents) if u else next(primals) for u in halves.unknown_out[::-1]][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the transpose of a call forgets which operands are linear": Fault(
        CALL + "_transpose",
        "[next(back) if lin else None for lin in linear]",
        "[next(back) if lin else None for lin in linear[::-1]][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the transpose of a call mixes up which cotangents there are": Fault(
        CALL + "_transpose",
        "back = iter([next(rest) if h else None for h in has])",
        "back = iter([next(rest) if h else None for h in has][::-1])",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    # -------------------------------------------------------------------------------------------------- cache keys
    "the key of a trace forgets shapes and dtypes": Fault(
        "signatures:Call.key", "tuple(self.avals), ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets weakness": Fault(
        "signatures:Call.key",
        "tuple(self.avals)",
        "tuple(a.strong() for a in self.avals)",
        ("transformations/test_caching.py",),
    ),
    "the key of a trace forgets static values": Fault(
        "signatures:Call.key", "self.statics, kinds, ", "", ("transformations/test_jit.py",)
    ),
    "the key of a trace forgets the types of static values": Fault(
        "signatures:Call.key", "kinds, ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets settings": Fault(
        "signatures:Call.key", "xla.settings(), ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets axis names": Fault(
        "signatures:Call.key", ", state.axes)", ")", ("transformations/test_axis_names.py",)
    ),
    "a trace that closes over traced values is kept": Fault(
        "jit:_Jit.traced",
        "if not any(isinstance(c, Tracer) for c in found.consts):",
        "if True:",
        ("transformations/test_jit.py",),
    ),
    # -------------------------------------------------------------------------------------------------------- passes
    "common subexpressions forget parameters": Fault(
        PASSES + "common_subexpressions", ", tuple(e.params.items()))", ")", ("jit_is_identity", "jit_of_vmap_is_stack")
    ),
    "common subexpressions forget the order of operands": Fault(
        PASSES + "common_subexpressions",
        "tuple(map(_atom_key, inputs))",
        "frozenset(map(_atom_key, inputs))",
        ("jit_is_identity",),
    ),
    "common subexpressions forget literals": Fault(
        PASSES + "_atom_key", "atom.value.tobytes()", "0", ("jit_is_identity",)
    ),
    "dead code drops what is read": Fault(
        PASSES + "dead_code",
        "needed.update(a for a in e.inputs if type(a) is Var)",
        "needed.update(a for a in e.inputs[:1] if type(a) is Var)",
        ("jit_is_identity",),
    ),
    "folded constants are wrong": Fault(
        PASSES + "fold_constants",
        "Literal(value.astype(aval.dtype), aval)",
        "Literal(value.astype(aval.dtype) + aval.dtype.type(1), aval)",
        ("suite_notices/test_folding.py", "jit_is_identity"),
    ),
}
