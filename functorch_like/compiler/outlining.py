"""Programs in which XLA:CPU would compute the same values many times, cut into parts that it keeps apart.

XLA fuses what is cheap into everything that reads it. Of a chain of n cheap operations of which every value is wanted,
as residuals of a gradient are, it makes n kernels, each of which computes the chain from its start: n**2 operations to
compile and to run (gradient of a jitted chain of 100 sines: 3 s to compile, and 35 times the time to run). Nothing is
fused across the border of a function that is not inlined, so such chains become several functions.

So do transposes that elementwise operations read: XLA has a fast transpose, by blocks, but fuses it into a loop that
reads along columns (x + x.T of 1024 x 1024 took 4.2 ms, and takes 0.6).
"""

from __future__ import annotations

from collections.abc import Sequence

from functorch_like.backends.cpu import fast_lowering
from functorch_like.ir.jaxpr import Atom, Equation, Jaxpr, Var

#: Fewer equations than this are left as they are;
_FEW = 64
#: so are those that would be computed this often on average;
_OFTEN = 8
#: and a part has this many at most. (Of a chain of sines, 12 compiled and ran fastest among 12, 24, 48.)
_PART = 16
#: Places where values are wanted are told apart up to this many, so that the sets of them stay small.
_PLACES = 1024
#: Transposes of fewer elements are fused as before.
_LARGE = 1 << 16

_ON = fast_lowering(
    "parts",
    "chains of cheap operations of which many values are wanted, and large transposes that elementwise operations "
    "read, are compiled in parts",
)


def outline(jaxpr: Jaxpr) -> Sequence[Equation | Jaxpr]:
    """The equations in order; in place of runs that are to be kept apart, jaxprs that do the same.

    A part takes variables under their own names, and gives some under theirs.
    """
    if not _ON():
        return jaxpr.equations
    found, turned = _runs(jaxpr), _transposes(jaxpr)
    return [turned.get(e.outputs[0], e) for e in found] if turned else found


def is_transpose(part: Jaxpr) -> bool:
    """Return True if a part is one. Its result must be laid out row by row, or XLA leaves the work to its readers."""
    return part.equations[-1].prim.name == "transpose"


def _transposes(jaxpr: Jaxpr) -> dict[Atom, Jaxpr]:
    """Those to keep apart, by their results."""
    made = {e.outputs[0]: e for e in jaxpr.equations if _is_slow(e)}
    if not made:
        return {}
    constants = {v for e in jaxpr.equations if _is_constant(e) for v in e.outputs}
    # XLA may as well write a product in the other order.
    produced = {v for e in jaxpr.equations if e.prim.kind == "product" for v in e.outputs}
    kept = {v for v, e in made.items() if e.inputs[0] not in produced}
    read: set[Atom] = set()
    for e in jaxpr.equations:
        arrays = {a for a in e.inputs if type(a) is Var and a not in constants}
        read.update(arrays)
        # Only elementwise loops fuse a transpose; and where only transposes meet, XLA transposes their result instead.
        if e.prim.kind != "elementwise" or (len(arrays) > 1 and arrays <= made.keys()):
            kept -= arrays
    return {v: Jaxpr([e.inputs[0]], [e], [v], "transpose", "kept apart") for v, e in made.items() if v in kept & read}


def _is_slow(e: Equation) -> bool:
    if e.prim.name != "transpose" or type(e.inputs[0]) is not Var or e.outputs[0].aval.size < _LARGE:
        return False
    return e.params["permutation"][-1] != len(e.params["permutation"]) - 1


def _runs(jaxpr: Jaxpr) -> Sequence[Equation | Jaxpr]:
    """`parts`, as far as chains are concerned."""
    if len(jaxpr.equations) < _FEW:
        return jaxpr.equations
    often = _copies(jaxpr)
    cheap = [n for n in often if n]
    if len(cheap) < _FEW or sum(cheap) < _OFTEN * len(cheap):
        return jaxpr.equations
    found: list[Equation | Jaxpr] = []
    run: list[Equation] = []
    hot = False
    made: dict[Atom, Equation] = {}  # constants, which every part makes for itself
    last: dict[Atom, int] = {a: k for k, e in enumerate(jaxpr.equations) for a in e.inputs if type(a) is Var}
    last.update((a, len(jaxpr.equations)) for a in jaxpr.outputs if type(a) is Var)

    def close(end: int) -> None:
        nonlocal hot
        found.extend([_part(run, made, last, end, jaxpr.name)] if hot else run)
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
            found.append(e)
        else:
            close(k - 1)
            found.append(e)
    close(len(jaxpr.equations) - 1)
    return found


def _is_constant(e: Equation) -> bool:
    for a in e.inputs:
        if type(a) is Var:
            return False
    return e.prim.fusible and len(e.outputs) == 1


def _copies(jaxpr: Jaxpr) -> list[int]:
    """Count for each equation the separately computed places that use it: XLA would compute it that often.

    It is 0 for constants and for equations that are no part of fusions.
    """
    wanted: dict[Var, int] = {}  # sets of places, as bits
    places = 0

    def place() -> int:
        nonlocal places
        places += 1
        return 1 << (places % _PLACES)

    for a in dict.fromkeys(a for a in jaxpr.outputs if type(a) is Var):
        wanted[a] = place()
    often: list[int] = []
    for e in reversed(jaxpr.equations):
        cheap = e.prim.fusible and len(e.outputs) == 1
        here = wanted.pop(e.outputs[0], 0) if cheap else place()
        constant = True
        for a in e.inputs:
            if type(a) is Var:
                constant = False
                wanted[a] = wanted.get(a, 0) | here
        often.append(here.bit_count() if cheap and not constant else 0)
    often.reverse()
    return often


def _part(run: Sequence[Equation], made: dict[Atom, Equation], last: dict[Atom, int], end: int, name: str) -> Jaxpr:
    inside = {v for e in run for v in e.outputs}
    read = dict.fromkeys(a for e in run for a in e.inputs if type(a) is Var and a not in inside)
    constants = [made[a] for a in read if a in made]
    outputs = [v for e in run for v in e.outputs if last.get(v, -1) > end]
    return Jaxpr([a for a in read if a not in made], [*constants, *run], list(outputs), f"{name}_part", "kept apart")
