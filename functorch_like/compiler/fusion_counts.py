"""The number of times that XLA:CPU would compute each value of a jaxpr, by the rules of its instruction fusion.

XLA puts an operation into the kernel of each operation that reads its result, and computes it there at each index at
which it is read. So a value may be computed in many kernels, many times in each. What XLA computes only once, or not in
the kernels of its readers, follows from these rules, which are those of `CpuInstructionFusion`, `InstructionFusion` and
`FusionNodeIndexingEvaluation` in XLA's sources:

- Nothing is fused into products, sorts, scatters and calls, nor are these into others.
- Expensive operations (divisions, exponentials, sums) are not computed twice, nor for each element of a broadcast.
- A value that several arrays are read for is computed once, unless it can be part of all kernels, along all paths, that
  depend on it: computing it again would read more memory.
- Joined and padded arrays are part of a kernel only if one operation reads them, at one index.
- A value at more than 15 indices of one kernel has a kernel of its own.
"""

from __future__ import annotations

from functorch_like.core import Signature
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Var
from functorch_like.primitives.base.lowering import Lowering, is_fusible
from functorch_like.primitives.base.shapes import broadcast_in_dim, reshape, transpose
from functorch_like.primitives.elementwise import div
from functorch_like.primitives.structural import concatenate, iota, pad

#: Kinds of primitives that XLA fuses, with each other.
_FUSED = frozenset(("elementwise", "movement", "reduction"))
#: Primitives whose code XLA's emitter cannot share between two readers.
_UNSHARED = frozenset((concatenate, pad))
#: Most indices at which one kernel computes a value.
_INDICES = 15
#: Number of kernels and indices that are distinguished, so that sets of them stay small.
_PLACES = 4096


class _Use:
    """Facts about a value, from the equations that read it. Sets are bits of an integer.

    Attributes:
        kernels: the kernels that compute it.
        places: the kernels and indices at which it is computed.
        reused: True if a kernel reads each of its elements several times.
        readers: positions of the equations that read it.
        users: their number. Those of a reshape's result count as those of its operand.
        later: positions of all equations that depend on it.
        apart: those of them on a path to which XLA does not fuse everything.
    """

    # Defaults of the class, since calls of an `__init__` would take a fifth of the time.
    kernels = places = readers = users = later = apart = 0
    reused = False


def evaluations(jaxpr: Jaxpr) -> list[int]:
    """Return for each equation how often XLA:CPU computes its result, in all kernels together.

    The number is 0 for constants, and for equations of several results.
    """
    equations = jaxpr.equations
    makers = {v: e for e in equations for v in e.outputs}
    rules: dict[Signature | None, tuple[bool, bool]] = {}  # of `_rules`, by the signature
    uses: dict[Atom, _Use] = {}
    places = 0  # numbered so far
    position = 1
    for a in jaxpr.outputs:
        if type(a) is Var and a not in uses:
            places += 1
            use = uses[a] = _Use()
            use.kernels = use.places = 1 << places % _PLACES
            use.readers = use.later = use.apart = position
            use.users = 1
    counts: list[int] = []
    for e in reversed(equations):
        position <<= 1
        prim, outputs = e.prim, e.outputs
        use = uses.pop(outputs[0], _UNUSED) if len(outputs) == 1 else _joined([uses.pop(v, _UNUSED) for v in outputs])
        here, computed, reused, later = use.kernels, use.places, use.reused, use.later
        rule = rules.get(e.signature)
        if rule is None:
            rule = _rules(e)
            if e.signature is not None:
                rules[e.signature] = rule
        fused, expensive = rule
        kept, apart, shape = True, later, None
        if fused:
            several = use.users > 1
            kept = several and expensive
            if not kept:
                if use.readers & use.apart and _reads_more(e, makers):
                    kept = several
                else:
                    apart = use.apart
            if not kept:
                shared = computed != here or here & (here - 1)
                kept = (expensive and reused) or (shared and _is_kept(e, use, several))
            shape = outputs[0].aval.shape
        if kept:
            places += 1
            here = computed = 1 << places % _PLACES
            reused = False
        count = computed.bit_count()
        read = use.users if prim is reshape else 1
        spread = prim is broadcast_in_dim
        moved = prim is transpose
        after = later | position
        constant = True
        for a in e.inputs:
            if type(a) is not Var:
                continue
            constant = False
            inside = computed
            if not moved and a.aval.shape != shape:
                places += count
                inside = ((1 << count) - 1) << places % _PLACES
            beside = after if not fused or (spread and _is_expensive(_source(a, makers))) else apart
            known = uses.get(a)
            if known is None:
                known = uses[a] = _Use()
                known.kernels, known.places, known.readers, known.users = here, inside, position, read
                known.later, known.apart = after, beside
            elif known.readers & position:  # an operand that stands there twice
                continue
            else:
                known.kernels |= here
                known.places |= inside
                known.readers |= position
                known.users += read
                known.later |= after
                known.apart |= beside
            if reused or (spread and outputs[0].aval.size > a.aval.size):
                known.reused = True
        counts.append(0 if constant or len(outputs) != 1 else count)
    counts.reverse()
    return counts


#: What is known of a value that nothing reads.
_UNUSED = _Use()


def _joined(uses: list[_Use]) -> _Use:
    """Return what is known of an equation's results together."""
    joined = _Use()
    for use in uses:
        joined.later |= use.later
    return joined


def _rules(e: Equation) -> tuple[bool, bool]:
    """Return whether XLA fuses an equation with its operands and readers, and whether it is expensive."""
    if e.prim.kind not in _FUSED or len(e.outputs) != 1 or not _is_fusible(e):
        return False, False
    return True, _is_expensive(e)


def _source(a: Var, makers: dict[Var, Equation]) -> Equation | None:
    """Return the equation that makes a value, besides reshapes."""
    made = makers.get(a)
    while made is not None and made.prim is reshape:
        made = makers.get(made.inputs[0])
    return made


def _is_fusible(e: Equation) -> bool:
    lower = e.prim.lower
    return type(lower) is not Lowering or is_fusible(
        lower, [a.aval for a in e.inputs], [v.aval for v in e.outputs], e.params
    )


def _is_expensive(e: Equation | None) -> bool:
    """Return True if XLA does not compute the result of an equation twice."""
    if e is None or e.prim.kind == "movement":
        return False
    return e.outputs[0].aval.dtype.kind in "fc" if e.prim is div else not e.prim.fusible


def _reads_more(e: Equation, makers: dict[Var, Equation]) -> bool:
    """Return True if computing a result again reads more memory than reading it."""
    out = e.outputs[0].aval
    arrays = [a for a in e.inputs if type(a) is Var]
    made = [makers.get(a) for a in arrays if a.aval.ndim >= out.ndim]
    if sum(m is None or m.prim not in (broadcast_in_dim, iota) for m in made) <= 1:
        return False
    return sum(a.aval.size for a in {*arrays}) > out.size


def _is_kept(e: Equation, use: _Use, several: bool) -> bool:
    """Return True if the result of an equation that several kernels or indices read has a kernel of its own."""
    kernels, places = use.kernels.bit_count(), use.places.bit_count()
    if (e.prim in _UNSHARED or e.prim.kind == "reduction") and (several or places > kernels):
        return True
    return places > _INDICES * kernels
