"""Deliberate faults in the package (mutation testing): a suite must detect each one.

A fault replaces a piece of one function's source by another piece. The function object stays the same and only its
code changes, so modules that imported it by name get the fault too. A fault whose piece of source is no longer there
raises an error, so the table cannot go stale.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from functorch_like.compiler import fingerprint


class Fault(NamedTuple):
    """A function, a piece of its source, the replacement, and the laws or test files that should detect the fault."""

    where: str  # module and qualified name, with a colon between
    old: str
    new: str
    suites: tuple[str, ...]


def find(where: str) -> Any:
    """Return the function at `module:Class.method`."""
    import importlib

    module, _, path = where.partition(":")
    found: Any = importlib.import_module(f"functorch_like.{module}")
    for name in path.split("."):
        found = found.__dict__[name] if isinstance(found, type) else getattr(found, name)
    if isinstance(found, property):
        found = found.fget
    return inspect.unwrap(found)


def plant(fault: Fault) -> Callable[[], None]:
    """Plant the fault; return a function that removes it."""
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
    honest = told_apart(f"{fault.where}: {fault.new}")

    def restore() -> None:
        target.__code__ = good
        honest()

    return restore


def told_apart(name: str) -> Callable[[], None]:
    """Make fingerprints of new programs differ from those of the unchanged code; return a function that undoes this.

    Otherwise the disk cache would store programs with a fault as if they had none, and other processes would load them.
    """
    code = fingerprint._code
    fingerprint._code = lambda: name

    def end() -> None:
        fingerprint._code = code

    return end


FORWARD, BATCH, REVERSE = "interpreters.forward:", "interpreters.batching:", "interpreters.reverse:"
CUSTOM = "primitives.higher_order.custom.base:"
CALL, PASSES = "primitives.higher_order.call:", "ir.passes:"
SIZES = "transformations/test_loop_sizes.py"
LOOPS, WHILES = "transformations/test_scan.py", "transformations/test_while_loop.py"
OPTIONS, JETS = ("transformations/test_vmap_options.py",), ("transformations/test_jet.py",)
DERIVED = ("jvp_is_difference", "grad_agrees_with_jvp", "linearize_is_jvp", "vjp_is_adjoint")
#: The same laws for reverse mode, the likely ones first: the first that fails is enough.
PULLED_BACK = ("grad_agrees_with_jvp", "vjp_is_adjoint", "jvp_is_difference", "linearize_is_jvp")
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
        BATCH + "_parts", "o.dim if m else None", "0 if m else None", MAPPED
    ),
    "the hidden axis is cut out one too late": Fault(
        BATCH + "BatchTracer.aval", "shape[self.dim + 1 :]", "shape[self.dim + 2 :]", MAPPED
    ),
    "negative in_axes are taken to be 0": Fault(
        "transforms.vmap_axes:canonical", "int(axis) % ndim", "max(int(axis), 0)", MAPPED
    ),
    "out_axes is ignored": Fault(
        "transforms.vmap_axes:at_out_axis", "move(out, axis, out_axis % ndim)", "move(out, axis, 0)", MAPPED
    ),
    # ------------------------------------------------------------------------------------------------------ reverse
    "cotangents overwrite each other": Fault(
        REVERSE + "backward_pass", "pending[var] = add(total, ct)", "pending[var] = ct", PULLED_BACK
    ),
    "the first cotangent stays, others are dropped": Fault(
        REVERSE + "backward_pass",
        "pending[var] = add(total, ct)",
        "pending[var] = total",
        PULLED_BACK,
    ),
    "the tape is walked forwards": Fault(
        REVERSE + "backward_pass", "for e in reversed(equations)", "for e in equations", PULLED_BACK
    ),
    "equations that an output needs are dropped": Fault(
        REVERSE + "dead_code_elimination",
        "            if v in needed:",
        "            if v in needed and v is e.outputs[-1] and len(e.inputs) < 2:",
        PULLED_BACK,
    ),
    "tangents of the inputs are mixed up": Fault(
        REVERSE + "LinearMap.apply",
        "zip(self.inputs, tangents, strict=True)",
        "zip(self.inputs[::-1], tangents, strict=True)",
        ("linearize_is_jvp",),
    ),
    # --------------------------------------------------------------------------------------------------------- call
    "the jvp of a call forgets which tangents there are": Fault(
        "primitives.higher_order.jaxpr_jvp_and_batch:jvp_jaxpr",
        "tuple(some), ",
        "",
        ("transformations/test_nesting.py",),
    ),
    "the batched form of a call forgets the axes": Fault(
        "primitives.higher_order.jaxpr_jvp_and_batch:batch_jaxpr",
        "axis, tuple(dims), tuple(positions), state.axes)",
        "axis)",
        ("transformations/test_nesting.py",),
    ),
    "the batched form of a call is mapped over the first axes": Fault(
        "primitives.higher_order.jaxpr_jvp_and_batch:batch_jaxpr",
        "evaluate(jaxpr, xs), axis, flat, dims)",
        "evaluate(jaxpr, xs), axis, flat, [None if d is None else 0 for d in dims])",
        ("vmap_of_jit_is_stack", "jit_is_identity"),
    ),
    "the halves of a call mix up residuals": Fault(
        CALL + "_partial_eval",
        "for kind, k in parts.residuals]",
        "for kind, k in parts.residuals][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the halves of a call mix up their results": Fault(
        CALL + "_partial_eval",
        "[next(tangents) if u else next(primals) for u in parts.unknown_out]",
        "[next(tangents) if u else next(primals) for u in parts.unknown_out[::-1]][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the transpose of a jaxpr forgets which operands are linear": Fault(
        "primitives.higher_order.jaxpr_transpose:transposed",
        "[next(back) if lin else None for lin in linear]",
        "[next(back) if lin else None for lin in linear[::-1]][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    "the transpose of a call mixes up which cotangents there are": Fault(
        CALL + "_transpose",
        "[next(rest) if h else None for h in has]",
        "[next(rest) if h else None for h in has][::-1]",
        ("grad_of_jit_is_grad", "vjp_is_adjoint"),
    ),
    # ------------------------------------------------------------------------------------------------- custom rules
    "a derivative by what a function with rules closes over is zero": Fault(
        CUSTOM + "explicit", "if t is not None", "if False", ("messages/test_custom_rules.py",)
    ),
    "functions with rules do not know the map that they close over": Fault(
        CUSTOM + "Continued.own", "value._trace is of", "False", ("transformations/test_custom_jvp.py",)
    ),
    "results of a mapped function with rules stay where they are": Fault(
        CUSTOM + "Mapped.place", "structural.move(x, dim, to)", "x", ("transformations/test_custom_vjp.py",)
    ),
    "a cotangent that elements share is counted once": Fault(
        "primitives.higher_order.custom.custom_vjp:_mapped_bwd",
        "if alike else ct",
        "if False else ct",
        ("transformations/test_custom_vjp.py",),
    ),
    "a tangent of custom_vjp that is zero counts as unknown": Fault(
        "primitives.higher_order.custom.custom_vjp:_jvp",
        "if tape.var(t) is not None else None",
        "",
        ("transformations/test_custom_jvp.py",),
    ),
    "tangents of custom_vmap are taken for those of other arguments": Fault(
        "primitives.higher_order.custom.custom_vmap:_dealt",
        "flat[closed + len(some) - consts :]",
        "flat[closed + len(some) - consts :][::-1]",
        ("transformations/test_custom_vmap.py",),
    ),
    # --------------------------------------------------------------------------------------------------------- loops
    "scan always starts with the first slice": Fault(
        "primitives.higher_order.control_flow.scan_lowering:Steps._at",
        "self.length - 1 - k if self.reverse else k",
        "k",
        (LOOPS,),
    ),
    "an unrolled loop leaves out the steps that are too few for a round": Fault(
        "primitives.higher_order.control_flow.scan_lowering:Steps.emit",
        "range(looped, self.length)",
        "range(looped, looped)",
        (LOOPS,),
    ),
    "a scan's carries that come to have tangents are forgotten": Fault(
        "primitives.higher_order.control_flow.scan_jvp_and_partial_eval:tangent_form",
        "carries = has[:num_carry]",
        "break",
        (LOOPS, WHILES),
    ),
    "residuals of a scan are mixed up": Fault(
        "primitives.higher_order.control_flow.scan:_apart",
        "for kind, k in parts.residuals]",
        "for kind, k in parts.residuals][::-1]",
        (LOOPS,),
    ),
    "what differs between steps is taken for invariant": Fault(
        "primitives.higher_order.control_flow.loop_invariants:invariants",
        "all(type(a) is Literal or a in results",
        "any(type(a) is Literal or a in results",
        (LOOPS,),
    ),
    "invariants are stacked": Fault(
        "primitives.higher_order.control_flow.scan_jvp_and_partial_eval:_partial_eval_body",
        "same = invariants(known, inputs.consts)",
        "same = set(inputs.consts)",
        (SIZES,),
    ),
    "the transpose of a scan goes through the steps in order": Fault(
        "primitives.higher_order.control_flow.scan:_pull",
        "reverse=not reverse",
        "reverse=reverse",
        ("vjp_is_adjoint", LOOPS),
    ),
    "a dead carry takes those it depends on along": Fault(
        "primitives.higher_order.control_flow.scan:_dce", "grown = [c or r for", "grown = [c for", (SIZES,)
    ),
    "elements of a while loop that have stopped go on": Fault(
        "primitives.higher_order.control_flow.while_loop:_batch", "if not each:", "if True:", (WHILES,)
    ),
    # -------------------------------------------------------------------------------------------------- cache keys
    "the key of a trace forgets shapes and dtypes": Fault(
        "calling.call_signature:FlatCall.key", "tuple(self.avals), ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets weakness": Fault(
        "calling.call_signature:FlatCall.key",
        "tuple(self.avals)",
        "tuple(a.strong() for a in self.avals)",
        ("transformations/test_caching.py",),
    ),
    "the key of a trace forgets static values": Fault(
        "calling.call_signature:FlatCall.key", "self.statics, kinds, ", "", ("transformations/test_jit.py",)
    ),
    "the key of a trace forgets the types of static values": Fault(
        "calling.call_signature:FlatCall.key", "kinds, ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets settings": Fault(
        "calling.call_signature:FlatCall.key", "xla.settings(), ", "", ("transformations/test_caching.py",)
    ),
    "the key of a trace forgets axis names": Fault(
        "calling.call_signature:FlatCall.key", ", state.axes)", ")", ("transformations/test_axis_names.py",)
    ),
    "a trace that closes over traced values is kept": Fault(
        "transforms.jit_state:JitState.traced",
        "if not any(isinstance(c, Tracer) for c in trace.consts) and",
        "if",
        ("transformations/test_jit.py",),
    ),
    # -------------------------------------------------------------------------------------------------------- passes
    "common subexpressions forget parameters": Fault(
        PASSES + "common_subexpressions",
        "(alike, *inputs)",
        "(prim, *inputs)",
        ("jit_is_identity", "jit_of_vmap_is_stack"),
    ),
    "common subexpressions forget the order of operands": Fault(
        PASSES + "common_subexpressions",
        "(alike, *inputs)",
        "(alike, frozenset(inputs))",
        ("jit_is_identity",),
    ),
    "common subexpressions forget literals": Fault(
        PASSES + "_Operands.__missing__", "a.value.tobytes()", "0", ("jit_is_identity",)
    ),
    "dead code drops what is read": Fault(
        PASSES + "dead_code",
        "needed.update(made.inputs)",
        "needed.update(made.inputs[:1])",
        ("jit_is_identity",),
    ),
    "folded constants are wrong": Fault(
        PASSES + "fold_constants",
        "Literal(value.astype(aval.dtype), aval)",
        "Literal(value.astype(aval.dtype) + aval.dtype.type(1), aval)",
        ("suite_notices/test_folding.py", "jit_is_identity"),
    ),
    # ------------------------------------------------------------------------------------------- derivatives, options
    "all blocks of a Jacobian begin at its first column": Fault(
        "transforms.jacobians:_offsets", "ends[:-1]", "[0 for _ in ends[:-1]]", ("transformations/test_jacobians.py",)
    ),
    "unit vectors have their 1 in another place": Fault(
        "transforms.jacobians:_basis", "sub(start, np.int32(first))", "start", ("transformations/test_jacobians.py",)
    ),
    "chunks all begin at 0": Fault(
        "transforms.chunked_vmap:in_chunks", "np.int32(k * chunk_size)", "np.int32(0 * k)", OPTIONS
    ),
    "recorded chunks all begin at 0": Fault(
        "transforms.chunked_vmap:_scanned", "full((rounds,), count,", "full((rounds,), 0,", OPTIONS
    ),
    "another number is folded into a key": Fault(
        "primitives.random.threefry:_draw_batch", "structural.zeros(aval_of(low)), low)", "low, low)", OPTIONS
    ),
    "keys in jitted functions are not asked about": Fault(
        BATCH + "BatchTrace.matters",
        "prim.partial_eval is not None",
        "prim.partial_eval is not None and axis.name is not None",
        OPTIONS,
    ),
    "coefficients are not weighted by their order": Fault(
        "transforms.taylor.power_series:integrated", "(j / k, j,", "(1 / k, j,", JETS
    ),
    "a quotient forgets its last term": Fault(
        "transforms.taylor.power_series:quotient", "range(1, k + 1)", "range(1, k)", JETS
    ),
    "a derivative of a series is not integrated": Fault("transforms.taylor.jet:lifted", "1 / k", "1.0", JETS),
    "what is affine counts as linear": Fault(
        "transforms.linearity:surely_not_zero",
        "bool(np.any(",
        "False and bool(np.any(",
        ("transformations/test_products.py",),
    ),
    "weights that are one array are two": Fault(
        "transforms.functional_call:_replaced",
        "if id(leaf) in owner:",
        "if False:",
        ("transformations/test_functional.py",),
    ),
    "columns of one colour share rows": Fault(
        "transforms.sparse_jacobian:color",
        "if c not in taken",
        "if c not in taken or c",
        ("transformations/test_sparse_jacobians.py",),
    ),
    "a complex number is a tangent of a real": Fault(
        "transforms.tangents:_fits",
        "actual.weak_type and (",
        "actual.weak_type or (",
        ("transformations/test_complex.py",),
    ),
    "numbers lose digits as tangents": Fault(
        "transforms.tangents:check_tangent",
        "_as_operand(tangent, aval)",
        "_as_operand(tangent, actual)",
        ("transformations/test_linear.py",),
    ),
    # ------------------------------------------------------------------------------------------------------ settings
    "a product asks no settings": Fault(
        "primitives.contractions.precision:Product.__call__", "self.settings()", "None", ("backends/test_precision.py",)
    ),
    "products of float32 are as fast as the platform likes": Fault(
        "primitives.contractions.precision:resolved",
        '"highest" if single',
        '"default" if single',
        ("backends/test_precision.py",),
    ),
    "equal settings are other keys": Fault(
        "backends.thread_local_values:_interned",
        "_known.setdefault(key, Values(changed))",
        "Values(changed)",
        ("backends/test_mechanism.py",),
    ),
    "a block holds in every thread": Fault(
        "backends.thread_local_values:_refresh",
        "config.set_local(",
        "config.set_global(",
        ("backends/test_mechanism.py",),
    ),
    "settings stand for no compile options": Fault(
        "backends.settings:compile_options", "setting.options is not None", "False", ("backends/test_fast_math.py",)
    ),
    "einsum forgets its settings": Fault(
        "numpy.einsum_paths:_strategy_and_limit", " and opt_einsum.enabled", "", ("backends/test_opt_einsum.py",)
    ),
}
