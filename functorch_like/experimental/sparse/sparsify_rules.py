"""Rules of primitives for sparse operands.

A rule takes `run` (a function's results with sparse arguments), the operands (sparse arrays, arrays, broadcast arrays)
and the parameters, and gives arrays and sparse arrays. It runs under the trace below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, Trace, Tracer, aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.experimental.sparse.bcoo import BCOO
from functorch_like.experimental.sparse.convolutions import bcoo_conv_general_dilated
from functorch_like.experimental.sparse.elementwise import (
    add_dense,
    at_elements,
    bcoo_add,
    bcoo_multiply_sparse,
    map_stored,
)  # fmt: skip
from functorch_like.experimental.sparse.format import JAXSparse
from functorch_like.experimental.sparse.format_products import sparse_dot_general
from functorch_like.experimental.sparse.gathering import bcoo_gather
from functorch_like.experimental.sparse.rearranging import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
)  # fmt: skip
from functorch_like.experimental.sparse.reductions import bcoo_reduce_sum
from functorch_like.experimental.sparse.slicing import bcoo_dynamic_slice, bcoo_slice
from functorch_like.ir.jaxpr import evaluate
from functorch_like.numpy import promotion
from functorch_like.primitives import elementwise as primitives
from functorch_like.primitives import structural
from functorch_like.primitives.base.shapes import broadcast_in_dim, reduce_sum
from functorch_like.primitives.contractions.convolution import conv_general_dilated
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.scan import scan
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call
from functorch_like.primitives.indexing.gather_and_scatter_add import gather
from functorch_like.primitives.updates.dynamic_slice import dynamic_slice


class SparseTracer(Tracer):
    """A sparse array inside of a sparsified function; it has the shape and dtype of the dense one."""

    __slots__ = ("mat",)
    mat: Any

    def __init__(self, trace: Trace, mat: JAXSparse) -> None:
        self._trace, self.mat = trace, mat

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.mat.shape, self.mat.dtype)


class BroadcastTracer(Tracer):
    """A dense array that is yet to be broadcast: products with sparse arrays read it at few elements."""

    __slots__ = ("params", "value")
    value: Any
    params: dict[str, Any]

    def __init__(self, trace: Trace, value: Any, params: dict[str, Any]) -> None:
        self._trace, self.value, self.params = trace, value, params

    @property
    def aval(self) -> ShapedArray:
        aval = aval_of(self.value)
        return ShapedArray(self.params["shape"], aval.dtype, aval.weak_type)

    def concrete(self) -> Any:
        value = self.value.concrete() if isinstance(self.value, Tracer) else self.value
        return None if value is None else np.broadcast_to(self._aligned(np.asarray(value)), self.params["shape"])

    def full(self) -> Any:
        """Return the array in full."""
        return broadcast_in_dim(self.value, **self.params)

    def aligned(self) -> Any:
        """Return the array with as many dimensions as the result, of size 1 where it is yet to be broadcast."""
        return self._aligned(self.value if promotion.is_array(self.value) else fnp.asarray(self.value))

    def _aligned(self, value: Any) -> Any:
        shape, dims = self.params["shape"], self.params["broadcast_dimensions"]
        sizes = dict(zip(dims, np.shape(value) if isinstance(value, np.ndarray) else aval_of(value).shape, strict=True))
        return value.reshape([sizes.get(k, 1) for k in range(len(shape))])


Run = Callable[..., Any]
Rule = Callable[[Run, list[Any], dict[str, Any]], Any]
RULES: dict[Primitive, Rule] = {}


def coo(x: Any) -> Any:
    """Return a sparse array as a BCOO, and anything else as it is."""
    return x.to_bcoo() if isinstance(x, JAXSparse) else x


def dense(x: Any) -> Any:
    """Return a broadcast array in full, and any other as it is."""
    return x.full() if isinstance(x, BroadcastTracer) else x


def _rule(prim: Primitive) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES[prim] = rule
        return rule

    return register


# ---------------------------------------------------------------------------------------------------- products and sums
@_rule(dot_general)
def _dot_general(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    chosen = {k: params.get(k) for k in ("dimension_numbers", "precision", "preferred_element_type")}
    return sparse_dot_general(*map(dense, operands), **chosen)


@_rule(primitives.mul)
def _mul(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    a, b = map(coo, operands)
    if isinstance(a, BCOO) and isinstance(b, BCOO):
        return bcoo_multiply_sparse(a, b)
    mat, other = (a, b) if isinstance(a, BCOO) else (b, a)
    return _scaled(mat, other, fnp.multiply)


@_rule(primitives.div)
def _div(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    a, b = map(coo, operands)
    return NotImplemented if isinstance(b, BCOO) else _scaled(a, b, fnp.divide)


def _scaled(mat: BCOO, other: Any, fun: Any) -> BCOO:
    other = other.aligned() if isinstance(other, BroadcastTracer) else other
    value = at_elements(mat, other, fun.__name__)
    data = fun(mat.data, value)
    shape = (*mat.shape[: mat.n_batch], mat.nse, *mat._tail[mat.n_sparse :])
    return mat._with(data if aval_of(data).shape == shape else fnp.broadcast_to(data, shape))


def _sum_of(sign: int) -> Rule:
    def rule(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
        a, b = (coo(dense(x)) for x in operands)
        if isinstance(a, BCOO) and isinstance(b, BCOO):
            return bcoo_add(a, b if sign > 0 else map_stored(fnp.negative, b, linear=True))
        for x in operands:  # a number in each element of a sparse array is a mistake more often than not
            if isinstance(x, BroadcastTracer):
                raise promotion.error(
                    UnsupportedError, "the sum of a sparse and a broadcast array is dense",
                    "call .todense() first where that is wanted",
                )  # fmt: skip
        if isinstance(a, BCOO):
            return add_dense(a, b if sign > 0 else fnp.negative(b))
        return add_dense(b if sign > 0 else map_stored(fnp.negative, b, linear=True), a)

    return rule


RULES.update({primitives.add: _sum_of(1), primitives.sub: _sum_of(-1)})


@_rule(reduce_sum)
def _reduce_sum(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    out = bcoo_reduce_sum(coo(operands[0]), axes=params["axes"])
    return out.todense() if not out.ndim else out


# -------------------------------------------------------------------------------------------------- moving of elements
def _of_first(fun: Callable[..., Any]) -> Rule:
    return lambda run, operands, params: fun(coo(operands[0]), params)


RULES.update({
    structural.broadcast_in_dim: _of_first(lambda m, p: bcoo_broadcast_in_dim(
        m, shape=p["shape"], broadcast_dimensions=p["broadcast_dimensions"])),
    structural.rev: _of_first(lambda m, p: bcoo_rev(m, p["dimensions"])),
    structural.slice: _of_first(lambda m, p: bcoo_slice(
        m, start_indices=p["start_indices"], limit_indices=p["limit_indices"], strides=p.get("strides"))),
    structural.transpose: _of_first(lambda m, p: bcoo_transpose(m, permutation=p["permutation"])),
    structural.copy: _of_first(lambda m, p: m),
    structural.stop_gradient: _of_first(lambda m, p: m._with(lax.stop_gradient(m.data))),
    structural.convert_element_type: _of_first(
        lambda m, p: map_stored(lambda d: d.astype(p["new_dtype"]), m, linear=True)),
})  # fmt: skip


@_rule(structural.reshape)
def _reshape(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    """Axes of size 1 come and go for all kinds of axes; the rest is for sparse ones."""
    mat, shape = coo(operands[0]), tuple(params["shape"])
    kept = [n for n in mat.shape if n != 1]
    if kept == [n for n in shape if n != 1] and (mat.n_batch or mat.n_dense):
        mat = bcoo_squeeze(mat, dimensions=[a for a, n in enumerate(mat.shape) if n == 1])
        places = [k for k, n in enumerate(shape) if n != 1]
        return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=places)
    return bcoo_reshape(mat, new_sizes=shape)


@_rule(structural.concatenate)
def _concatenate(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    mats = list(map(coo, operands))
    if not all(isinstance(m, BCOO) for m in mats):
        raise promotion.error(
            UnsupportedError, "sparse and dense arrays are joined", "make all of them sparse, or all dense"
        )
    return bcoo_concatenate(mats, dimension=params["dimension"])


@_rule(dynamic_slice)
def _dynamic_slice(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    starts = [dense(x) for x in operands[1:]]
    if len(starts) == 1 and aval_of(starts[0]).ndim:
        starts = [starts[0][k] for k in range(aval_of(starts[0]).shape[0])]
    return bcoo_dynamic_slice(coo(operands[0]), starts, params["slice_sizes"])


@_rule(gather)
def _gather(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    mat, starts = operands[0], dense(operands[1])
    if isinstance(starts, JAXSparse):
        return NotImplemented
    return bcoo_gather(
        coo(mat), starts, params["dimension_numbers"], params["slice_sizes"], mode=params["mode"],
        fill_value=params.get("fill_value"),
    )  # fmt: skip


@_rule(conv_general_dilated)
def _convolution(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    return bcoo_conv_general_dilated(*(coo(dense(x)) for x in operands), **params)


# ------------------------------------------------------------------------------------------------------------ functions
def _inlined(key: str) -> Rule:
    def rule(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
        return run(partial(evaluate, params[key]), [dense(x) for x in operands])

    return rule


RULES.update({
    call: _inlined("jaxpr"), checkpoint: _inlined("jaxpr"),
    custom_jvp_call: _inlined("fun"), custom_vjp_call: _inlined("fun"), custom_vmap_call: _inlined("fun"),
})  # fmt: skip


def unpromised(values: Sequence[Any]) -> list[Any]:
    """Return sparse arrays as BCOO without promises, which branches and steps of loops need not keep."""
    return [BCOO._of(m.data, m.indices, m._tail) if isinstance(m, BCOO) else m for m in map(coo, values)]


@_rule(cond)
def _cond(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    index, *args = map(dense, operands)
    branches = [lambda *xs, b=b: unpromised(run(partial(evaluate, b), list(xs))) for b in params["branches"]]
    return lax.switch(index, branches, *args)


@_rule(scan)
def _scan(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    n, m = params["num_consts"], params["num_carry"]
    operands = list(map(dense, operands))
    consts, carry, xs = operands[:n], operands[n : n + m], operands[n + m :]
    mats = [x for x in xs if isinstance(x, JAXSparse) and not x.n_batch]
    if mats:
        raise promotion.error(
            UnsupportedError, f"scan over {mats[0]!r}", "give it a batch dimension: .update_layout(n_batch=1)"
        )

    def step(carry: list[Any], xs: list[Any]) -> Any:
        outs = unpromised(run(partial(evaluate, params["jaxpr"]), [*consts, *carry, *xs]))
        return outs[:m], outs[m:]

    options = {k: params[k] for k in ("length", "reverse", "unroll") if k in params}
    last, ys = lax.scan(step, unpromised(carry), xs, **options)
    return [*last, *ys]


@_rule(while_)
def _while(run: Run, operands: list[Any], params: dict[str, Any]) -> Any:
    n, m = params["cond_nconsts"], params["body_nconsts"]
    operands = list(map(dense, operands))
    cond_consts, body_consts, carry = operands[:n], operands[n : n + m], operands[n + m :]
    cond = lambda c: run(partial(evaluate, params["cond_jaxpr"]), [*cond_consts, *c])[0]
    body = lambda c: unpromised(run(partial(evaluate, params["body_jaxpr"]), [*body_consts, *c]))
    return lax.while_loop(cond, body, unpromised(carry))


# ------------------------------------------------------------------------------------------- functions of each element
def is_elementwise(prim: Primitive) -> bool:
    """Return True for primitives that compute each element of the result by itself."""
    return prim.where.split("/")[0] == "elementwise" or prim in (primitives.add, primitives.neg)


#: Sums of values that are stored twice may be taken afterwards.
_LINEAR = frozenset((primitives.conj, primitives.imag, primitives.neg, primitives.real))


def elementwise(prim: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a primitive to stored values, where it maps zero to zero: its meaning in NumPy decides.

    Raises:
        UnsupportedError: for any other primitive.
    """
    mats = [coo(x) for x in operands if isinstance(x, JAXSparse)]
    numbers = [None if isinstance(x, JAXSparse) else _number(x) for x in operands]
    known = all(isinstance(x, JAXSparse) or n is not None for x, n in zip(operands, numbers, strict=True))
    if not is_elementwise(prim) or len(mats) != 1 or not known:
        raise UnsupportedError(
            f"{prim.name} has no rule for {', '.join(map(repr, mats))} and what else it is given",
            fix="call .todense() first, or sparse.todense(x) inside of the function",
        )
    (mat,) = mats
    zero = np.zeros((), mat.dtype)
    with np.errstate(all="ignore"):
        at_zero = prim.ref(*(zero if n is None else n for n in numbers), **params)
    if np.any(np.asarray(at_zero)):
        raise UnsupportedError(
            f"{prim.name} of zero is {np.asarray(at_zero).item()}, so that the result for {mat!r} would be dense",
            fix="call .todense() first where that is wanted",
        )

    def fun(data: Any) -> Any:
        shape = aval_of(data).shape
        return prim(*(data if n is None else np.broadcast_to(n, shape) for n in numbers), **params)

    return map_stored(fun, mat, prim in _LINEAR)


def _number(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the one value that all elements of an operand have, or None where that is not known."""
    if isinstance(x, BroadcastTracer):
        x = x.value
    if isinstance(x, Tracer):
        x = x.concrete()
    if x is None or isinstance(x, Tracer) or np.ndim(x):
        return None
    return np.asarray(x, aval_of(x).dtype)
