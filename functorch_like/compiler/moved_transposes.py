"""Pass over jaxprs: values between transposes are computed in the order of dimensions that needs fewer transposes.

A gradient transposes its cotangent back: between the transpose of x and that of the cotangent only elementwise
operations may stand. Computed on x as it lies, they need neither. XLA moves transposes beyond elementwise operations if
all operands are transposed alike, and not beyond reversals, slices or paddings; and none that `outlining` makes a
function of.

Values that such operations connect form a group. A group is computed in another order if that leaves fewer elements to
transpose: of operands that come from elsewhere, and of results that are read elsewhere. Of transposes alike between two
groups XLA computes one: for `x.T + (x * x).T` its loop takes 0.6 of the time of a transpose and a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from functorch_like.backends.cpu import fast_lowering
from functorch_like.ir.jaxpr import Equation, Jaxpr, Var
from functorch_like.ir.passes import dead_code
from functorch_like.primitives.base.shapes import broadcast_in_dim, inverse, transpose
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.structural import concatenate, pad, rev
from functorch_like.primitives.structural import slice as slice_

_ON = fast_lowering(
    "moved_transposes", "elementwise operations between transposes are computed in the order that needs fewer of them"
)
_Order = tuple[int, ...]
#: Movements that permute with a transpose.
_MOVED = frozenset((rev, slice_, pad, concatenate))
_AXES = {"axes"}
#: Most rounds. Of two groups with a transpose between them one round moves the one that gains more.
_ROUNDS = 4


def without_inverses(jaxpr: Jaxpr) -> Jaxpr:
    """Return a jaxpr with fewer elements to transpose; the same one if no group of values allows that."""
    if not any(e.prim is transpose for e in jaxpr.equations) or not _ON():
        return jaxpr
    for _ in range(_ROUNDS):
        orders = _chosen(jaxpr)
        if not orders:
            break
        jaxpr = dead_code(_Rewriting(jaxpr, orders).result())
    return jaxpr


def _joins(e: Equation) -> bool:
    """Return True if an equation can be computed in any order of dimensions."""
    if e.prim.kind != "elementwise" and e.prim not in _MOVED:
        return False
    if len(e.outputs) != 1 or e.outputs[0].aval.ndim < 2:
        return False
    shape = e.outputs[0].aval.shape
    if e.prim in _MOVED:
        return all(type(a) is Var or not a.aval.shape for a in e.inputs)
    return all(a.aval.shape == shape if type(a) is Var else not a.aval.shape for a in e.inputs)


def _is_reduction(e: Equation) -> bool:
    """Return True for a reduction that gives the same result in any order of dimensions, but for rounding."""
    return e.prim.kind == "reduction" and e.params.keys() == _AXES and e.outputs[0].aval.ndim < 2


def _is_free(e: Equation) -> bool:
    """Return True for a broadcast that can be made in any order of dimensions: of a number or a vector."""
    return e.prim is broadcast_in_dim and len(e.params["broadcast_dimensions"]) < 2


def _composed(first: _Order, second: _Order) -> _Order:
    """Return the permutation of two transposes, one after the other."""
    return tuple(first[d] for d in second)


def _is_identity(order: _Order) -> bool:
    return order == tuple(range(len(order)))


class _Groups(dict[Var, Var]):
    """Groups of values as a union-find structure: a member's entry leads to the representative of its group."""

    def find(self, v: Var) -> Var:
        while self[v] is not v:
            self[v] = v = self[self[v]]
        return v

    def join(self, values: Sequence[Var]) -> None:
        first = self.setdefault(values[0], values[0])
        for v in values[1:]:
            self[self.find(self.setdefault(v, v))] = self.find(first)


def _chosen(jaxpr: Jaxpr) -> dict[Var, _Order]:
    """Return, for values of groups to move, the permutation that turns the value to compute into the one before."""
    made = {v: e for e in jaxpr.equations for v in e.outputs}
    free = {v for v, e in made.items() if _is_free(e)}
    groups = _Groups()
    for e in jaxpr.equations:
        if _joins(e):
            groups.join([e.outputs[0], *[a for a in e.inputs if type(a) is Var and a.aval.ndim and a not in free]])
    turns: dict[Var, list[tuple[_Order, int]]] = {}  # by group: permutations of operands, inverse ones of results
    fixed: dict[Var, list[Var]] = {}  # by group: values that are made or read in the order before
    for v in groups:
        e = made.get(v)
        if e is None or not (_joins(e) or e.prim is transpose):
            fixed.setdefault(groups.find(v), []).append(v)
    products = {a for e in jaxpr.equations if e.prim is dot_general for a in (*e.inputs, *e.outputs) if type(a) is Var}
    read: set[Var] = {v for v in jaxpr.outputs if type(v) is Var}
    beside: dict[Var, set[Var]] = {}  # by group: those with a transpose in between
    seen: set[tuple[Var, Var, _Order]] = set()
    for e in jaxpr.equations:
        if e.prim is not transpose:
            if not _joins(e) and not _is_reduction(e):
                read.update(a for a in e.inputs if type(a) is Var)
            continue
        (a,), (v,) = e.inputs, e.outputs
        source = groups.find(a) if a in groups else None
        result = groups.find(v) if v in groups else None
        if source is result or a in products or v in products:  # products take and give operands in any order
            continue
        order = e.params["permutation"]
        if source is not None and result is not None:
            if (source, result, order) in seen:
                continue
            seen.add((source, result, order))
        if source is not None:
            turns.setdefault(source, []).append((inverse(order), v.aval.size))
        if result is not None:
            turns.setdefault(result, []).append((order, v.aval.size))
        if source is not None and result is not None:
            beside.setdefault(source, set()).add(result)
            beside.setdefault(result, set()).add(source)
    for v in read & groups.keys():
        fixed.setdefault(groups.find(v), []).append(v)
    gains = {group: _best(found, fixed.get(group, ())) for group, found in turns.items()}
    best: dict[Var, _Order] = {}
    for group, (order, gain) in sorted(gains.items(), key=lambda item: -item[1][1]):
        if gain > 0 and best.keys().isdisjoint(beside.get(group, ())):
            best[group] = order
    return {v: order for v in groups if (order := best.get(groups.find(v)))}


def _best(turns: Sequence[tuple[_Order, int]], fixed: Iterable[Var]) -> tuple[_Order, int]:
    """Return the order of a group with the fewest elements to transpose, and how many fewer these are."""
    sizes: dict[_Order, int] = {}
    for order, size in turns:
        if not _is_identity(order):
            sizes[order] = sizes.get(order, 0) + size
    order = max(sizes, key=sizes.__getitem__, default=())
    return order, sizes.get(order, 0) - sum(v.aval.size for v in fixed)


class _Rewriting:
    """The rewriting of a jaxpr by the orders chosen.

    Attributes:
        moved: by value, the one that is computed in its place.
        same: by value of the jaxpr before, the value that it is now.
        kept: values that exist in the order before.
        free: broadcasts that can be made in any order.
    """

    def __init__(self, jaxpr: Jaxpr, orders: dict[Var, _Order]) -> None:
        self.jaxpr, self.orders = jaxpr, orders
        self.moved: dict[Any, Any] = {}
        self.same: dict[Any, Any] = {}
        self.equations: list[Equation] = []
        self.kept: set[Var] = set()
        self.free: dict[Any, Equation] = {}

    def result(self) -> Jaxpr:
        self.kept.update(self.jaxpr.inputs)
        for e in self.jaxpr.equations:
            if _joins(e) and e.outputs[0] in self.orders:
                self._write_moved(e)
            elif e.prim is transpose and (e.inputs[0] in self.orders or e.outputs[0] in self.orders):
                self._write_turned(e)
            elif _is_reduction(e) and e.inputs[0] in self.orders:
                order = self.orders[e.inputs[0]]
                axes = {"axes": tuple(sorted(order[d] for d in e.params["axes"]))}
                self.equations.append(Equation(e.prim, [self._now(e.inputs[0], e.source)], axes, e.outputs, e.source))
            else:
                self.equations.append(e.of([self._before(a, e.source) for a in e.inputs]))
                self.kept.update(e.outputs)
                if _is_free(e):
                    self.free[e.outputs[0]] = e
        outputs = [self._before(a, None) for a in self.jaxpr.outputs]
        return Jaxpr(self.jaxpr.inputs, self.equations, outputs, self.jaxpr.name, self.jaxpr.origin)

    def _turned(self, v: Any, order: _Order, source: Any, out: Var | None = None) -> Any:
        """Return the transpose of a value, which is the value itself for the identity."""
        if _is_identity(order):
            return v
        if out is None:
            out = Var(v.aval.update(shape=tuple(v.aval.shape[d] for d in order)))
        self.equations.append(Equation(transpose, [v], {"permutation": order}, [out], source))
        return out

    def _before(self, a: Any, source: Any) -> Any:
        """Return a value in the order before."""
        a = self.same.get(a, a)
        if type(a) is Var and a in self.orders and a not in self.kept:
            self._turned(self.moved[a], self.orders[a], source, a)
            self.kept.add(a)
        return a

    def _now(self, v: Var, source: Any) -> Any:
        """Return the value that is computed in the place of a value of a group."""
        known = self.moved.get(v)
        if known is None:
            known = self.moved[v] = self._turned(self._before(v, source), inverse(self.orders[v]), source)
        return known

    def _write_turned(self, e: Equation) -> None:
        """Write a transpose of a value, or to a value, of a group."""
        (a,), (v,) = e.inputs, e.outputs
        order = e.params["permutation"]
        if a in self.orders:
            a, order = self._now(a, e.source), _composed(self.orders[a], order)
        else:
            a = self._before(a, e.source)
        if v in self.orders:
            self.moved[v] = self._turned(a, _composed(order, inverse(self.orders[v])), e.source)
        elif _is_identity(order):
            self.same[v] = a
        else:
            self._turned(a, order, e.source, v)
            self.kept.add(v)

    def _spread(self, v: Var, order: _Order) -> Var:
        """Return a broadcast in another order of dimensions."""
        made = self.moved.get((v, order))
        if made is None:
            e = self.free[v]
            shape = tuple(v.aval.shape[d] for d in inverse(order))
            made = self.moved[v, order] = Var(v.aval.update(shape=shape))
            dims = tuple(order[d] for d in e.params["broadcast_dimensions"])
            params = {"shape": shape, "broadcast_dimensions": dims}
            operands = [self._before(e.inputs[0], e.source)]
            self.equations.append(Equation(broadcast_in_dim, operands, params, [made], e.source))
        return made

    def _operand(self, a: Any, order: _Order, source: Any) -> Any:
        """Return an operand of an equation that is computed in another order."""
        if a in self.free and a.aval.ndim == len(order):
            return self._spread(a, order)
        return self._now(a, source) if a in self.orders else self._before(a, source)

    def _write_moved(self, e: Equation) -> None:
        (v,) = e.outputs
        order = self.orders[v]
        back = inverse(order)
        operands = [self._operand(a, order, e.source) for a in e.inputs]
        made = self.moved[v] = Var(v.aval.update(shape=tuple(v.aval.shape[d] for d in back)))
        self.equations.append(Equation(e.prim, operands, _params(e, order, back), [made], e.source))


def _params(e: Equation, order: _Order, back: _Order) -> dict[str, Any]:
    """Return the parameters of an equation for operands in another order of dimensions."""
    if e.prim is rev:
        return {"dimensions": tuple(sorted(order[d] for d in e.params["dimensions"]))}
    if e.prim is concatenate:
        return {"dimension": order[e.params["dimension"]]}
    if e.prim in (slice_, pad):
        return {name: value and tuple(value[d] for d in back) for name, value in e.params.items()}
    return e.params
