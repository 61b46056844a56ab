"""Outlining: parts of programs become functions, where XLA:CPU's fusion would compute values many times.

XLA fuses cheap operations into each of their readers. In a chain of n cheap operations, every value may be read
outside, as residuals of a gradient are. Then XLA makes n kernels, each of which computes the chain from its start: n**2
operations to compile and to run. Programs that unroll steps of a recurrent net, an integrator or a stencil grow so.
(The gradient of 30 Runge-Kutta steps takes 3 s to compile and 0.13 ms to run, instead of 77 s and 21 ms.) XLA does not
fuse across functions that are not inlined, so such a program is outlined as several functions. Where XLA computes
values once by itself, functions would cost time; `fusion_counts.py` counts them.

Transposes that elementwise operations read are outlined, too. XLA has a fast transpose, by blocks, but would fuse it
into a loop that reads along columns. (Outlined, x + x.T of 1024 x 1024 takes 0.6 ms instead of 4.2.)

In chains of reversals, some are. XLA takes a reversal for an operation that reads its operand at its own index. So it
does not count that it computes the operand twice, and the number of computations doubles with each reversal. (The
gradient of 16 steps with one reversal each takes 16 us instead of 450 ms; others do not compile within minutes.)

So are random words, whose twenty rounds of integer operations XLA takes for cheap, where it would compute them more
than once. (The difference of uniform numbers from their four neighbours takes 0.25 ms instead of 2.6.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.backends.cpu import fast_lowering
from functorch_like.compiler.fusion_counts import evaluations
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Var
from functorch_like.primitives.base.kernels import FEW_WORDS
from functorch_like.primitives.base.shapes import transpose
from functorch_like.primitives.structural import concatenate, rev

#: Number of cheap equations from which on chains are outlined.
_FEW = 24
#: Mean number of times that XLA would compute a cheap equation, from which on chains are outlined. (For simulations of
#: rigid bodies, with up to 4.6, parts took longer; for recurrent nets, with 6, they are faster.)
_OFTEN = 5
#: Largest number of equations of a part. (For a chain of sines, 12 compiled and ran fastest among 12, 24, 48.)
_PART = 16
#: Number of elements from which on transposes are outlined.
_LARGE = 1 << 16
#: Number of reversals in a chain that are not outlined.
_REVERSALS = 3

_ON = fast_lowering(
    "parts",
    "chains of cheap operations of which many values are read, and large transposes that elementwise operations "
    "read, are compiled in parts",
)


def outline(jaxpr: Jaxpr) -> Sequence[Equation | Jaxpr]:
    """Return the equations in order, with a jaxpr in place of each run of equations that is outlined.

    Inputs and outputs of such a part are variables of the whole jaxpr.
    """
    if not _ON():
        return jaxpr.equations
    runs, turned = _runs(jaxpr), _transposes(jaxpr) | _reversals(jaxpr) | _draws(jaxpr)
    return [turned.get(e.outputs[0], e) for e in runs] if turned else runs


def is_transpose(part: Jaxpr) -> bool:
    """Return True if a part is a transpose. Its result needs a row-major layout, or XLA leaves the work to readers."""
    return part.equations[-1].prim is transpose


def part_key(part: Jaxpr) -> Any:
    """Return the key of a part: parts of equal equations on equal lines have one key, and become one function."""
    places: dict[Any, int] = {v: k for k, v in enumerate(part.inputs)}
    key: list[Any] = []
    append = key.append
    for e in part.equations:
        signature = e.signature
        if signature is None or not signature.interned:
            return part
        append(signature)
        append(e.source)
        for a in e.inputs:
            append(places[a] if type(a) is Var else (a.aval, a.value.tobytes()))
        for v in e.outputs:
            places[v] = len(places)
    return (*key, *map(places.__getitem__, part.outputs))


def _transposes(jaxpr: Jaxpr) -> dict[Atom, Jaxpr]:
    """Return the transposes to outline, by their results."""
    made = {e.outputs[0]: e for e in jaxpr.equations if e.prim is transpose and _is_slow(e)}
    if not made:
        return {}
    constants = {v for e in jaxpr.equations if _is_constant(e) for v in e.outputs}
    # XLA can write a product in the transposed order.
    produced = {v for e in jaxpr.equations if e.prim.kind == "product" for v in e.outputs}
    candidates = {v for v, e in made.items() if e.inputs[0] not in produced}
    read: set[Atom] = set()
    for e in jaxpr.equations:
        arrays = {a for a in e.inputs if type(a) is Var and a not in constants}
        read.update(arrays)
        # Only elementwise loops fuse a transpose. If all operands are transposes, XLA transposes the result instead.
        if e.prim.kind != "elementwise" or (len(arrays) > 1 and arrays <= made.keys()):
            candidates -= arrays
    return {
        v: Jaxpr([e.inputs[0]], [e], [v], "transpose", "kept apart") for v, e in made.items() if v in candidates & read
    }


def _reversals(jaxpr: Jaxpr) -> dict[Atom, Jaxpr]:
    """Return the reversals to outline, by their results: those beyond the first `_REVERSALS` of a chain."""
    if sum(e.prim is rev for e in jaxpr.equations) <= _REVERSALS:
        return {}
    since: dict[Atom, int] = {}  # most reversals on a path to a value, from an input or an outlined reversal
    made: dict[Atom, Jaxpr] = {}
    for e in jaxpr.equations:
        count = max([since.get(a, 0) for a in e.inputs if type(a) is Var], default=0) + (e.prim is rev)
        if count > _REVERSALS:
            result = e.outputs[0]
            made[result] = Jaxpr([e.inputs[0]], [e], [result], "reverse", "kept apart")
        elif count:
            since.update(dict.fromkeys(e.outputs, count))
    return made


def _draws(jaxpr: Jaxpr) -> dict[Atom, Jaxpr]:
    """Return the random words to outline, by the first of them: those that XLA would compute more than once."""
    if not any(e.prim.kind == "bits" and e.outputs[0].aval.size > FEW_WORDS for e in jaxpr.equations):
        return {}
    made: dict[Atom, Jaxpr] = {}
    read: dict[Atom, int] = {}  # how often a value is read, in all kernels together
    for e, count in zip(reversed(jaxpr.equations), reversed(evaluations(jaxpr)), strict=True):
        # XLA takes words for cheap, and fuses them with their readers where they are joined, too.
        bits = e.prim.kind == "bits"
        times = read.get(e.outputs[0], 0) if bits or e.prim is concatenate else count
        inputs = [a for a in dict.fromkeys(e.inputs) if type(a) is Var]
        if bits and times > 1 and e.outputs[0].aval.size > FEW_WORDS:
            made[e.outputs[0]] = Jaxpr(inputs, [e], [*e.outputs], "words", "kept apart")
        read.update((a, read.get(a, 0) + times) for a in inputs)
    return made


def _is_slow(e: Equation) -> bool:
    if type(e.inputs[0]) is not Var or e.outputs[0].aval.size < _LARGE:
        return False
    return e.params["permutation"][-1] != len(e.params["permutation"]) - 1


def _runs(jaxpr: Jaxpr) -> Sequence[Equation | Jaxpr]:
    """Return the equations in order, with a jaxpr in place of each run of a chain to outline."""
    if len(jaxpr.equations) < _FEW:
        return jaxpr.equations
    if sum(e.prim.fusible for e in jaxpr.equations) < _FEW:
        return jaxpr.equations
    often = [n if e.prim.fusible else 0 for n, e in zip(evaluations(jaxpr), jaxpr.equations, strict=True)]
    cheap = len(often) - often.count(0)
    if cheap < _FEW or sum(often) < _OFTEN * cheap:
        return jaxpr.equations
    last = _last_readers(jaxpr)
    runs: list[Equation | Jaxpr] = []
    run: list[Equation] = []
    hot = False
    made: dict[Atom, Equation] = {}  # equations of constants, which every part repeats

    def close(end: int) -> None:
        nonlocal hot
        runs.extend([_part(run, made, last, end, jaxpr.name)] if hot else run)
        run.clear()
        hot = False

    for k, e in enumerate(jaxpr.equations):
        if often[k]:
            run.append(e)
            hot |= often[k] > _OFTEN
            if len(run) == _PART:
                close(k)
        elif _is_constant(e):
            made[e.outputs[0]] = e
            runs.append(e)
        else:
            close(k - 1)
            runs.append(e)
    close(len(jaxpr.equations) - 1)
    return runs


def _is_constant(e: Equation) -> bool:
    for a in e.inputs:
        if type(a) is Var:
            return False
    return e.prim.fusible and len(e.outputs) == 1


def _last_readers(jaxpr: Jaxpr) -> dict[Atom, int]:
    """Return for each value the position of the last equation that reads it; for outputs, the number of equations."""
    last: dict[Atom, int] = {}
    for k, e in enumerate(jaxpr.equations):
        for a in e.inputs:
            last[a] = k
    last.update(dict.fromkeys(jaxpr.outputs, len(jaxpr.equations)))
    return last


def _part(run: Sequence[Equation], made: dict[Atom, Equation], last: dict[Atom, int], end: int, name: str) -> Jaxpr:
    inside: set[Var] = set()
    read: dict[Var, None] = {}
    outputs: list[Atom] = []
    for e in run:
        for a in e.inputs:
            if type(a) is Var and a not in inside:
                read[a] = None
        v = e.outputs[0]  # cheap equations have one result
        inside.add(v)
        if last.get(v, -1) > end:
            outputs.append(v)
    constants = [made[a] for a in read if a in made]
    inputs = [a for a in read if a not in made] if constants else [*read]
    return Jaxpr(inputs, [*constants, *run], outputs, f"{name}_part", "kept apart")
