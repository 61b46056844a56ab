"""Products of floats with quantised arrays; and `quantized(f)`, an interpreter for functions of these arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from functorch_like import core, dtypes, lax, tree
from functorch_like import numpy as fnp
from functorch_like.avals import ShapedArray
from functorch_like.calling import api_boundary
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import Primitive, Trace, Tracer, aval_of, new_trace, state
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.nn.quantization.integers import products_fit, rounded, scale_of, volume
from functorch_like.nn.quantization.quantized import OPERATORS, Quantized
from functorch_like.primitives import structural
from functorch_like.primitives.contractions import dot_general as contraction
from functorch_like.primitives.higher_order.call import call
from functorch_like.primitives.higher_order.checkpoint.checkpoint import checkpoint
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_vjp_call
from functorch_like.transforms.custom.custom_jvp import custom_jvp

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import P, R


#: Parameters under which primitives that only call a jaxpr hold it.
_CALLS: dict[Primitive, str] = {
    call: "jaxpr",
    checkpoint: "jaxpr",
    custom_jvp_call: "fun",
    custom_vjp_call: "fun",
}
Numbers = Any
Pair = tuple[tuple[int, ...], tuple[int, ...]]


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Numbers, precision: Any, dtype: Any) -> Any:
    """Return a product with a quantised operand.

    With dynamic activations, the other operand is rounded to int8 with a scale for each of its rows, and products of
    integers are summed in int32. Otherwise, or if int32 is too narrow for the sum, integers are converted to floats.
    The product is multiplied by the scales. If scales differ along a contracted axis, operands are dequantised first.
    Derivatives are always those of the product of floats.
    """
    left = isinstance(lhs, Quantized)
    q, x = (lhs, rhs) if left else (rhs, lhs)
    contract, batch = (_own_first(pair, left) for pair in dimension_numbers)
    mine, other = contract
    plain = not isinstance(x, Quantized) and dtypes.is_float(aval_of(x).dtype)
    if not plain or any(aval_of(q.scale).shape[a] != 1 for a in mine):
        a, b = (a.dequantize() if isinstance(a, Quantized) else a for a in (lhs, rhs))
        return lax.dot_general(a, b, dimension_numbers, precision, dtype)
    out_dtype = dtype or fnp.result_type(aval_of(x).dtype, q.dtype)
    rows = [n for a, n in enumerate(aval_of(x).shape) if a not in (*other, *batch[1])]
    if math.prod(rows) == 1:
        return _single_row(q, x, contract, batch, left, precision, out_dtype)
    dynamic = q.activations is not None and products_fit(volume(q.shape, mine))
    # In the order of storage: XLA's products with transposed int8 operands are many times slower.
    integers, scale, order = q.stored()
    places = lambda axes: tuple(order.index(a) for a in axes)
    own = places(mine), places(batch[0])
    shape = [aval_of(integers).shape[a] if a in own[1] else n for a, n in enumerate(aval_of(scale).shape)]
    product = _Product((own[0], other), (own[1], batch[1]), left, precision, out_dtype)
    out = (product.rounded if dynamic else product.floats)(x, integers, fnp.broadcast_to(scale, shape))
    free = [a for a in order if a not in (*mine, *batch[0])]
    if free == sorted(free):
        return out
    start = len(batch[0]) + (0 if left else len(rows))
    moved = [start + free.index(a) for a in sorted(free)]
    return out.transpose([*range(start), *moved, *range(start + len(free), aval_of(out).ndim)])


def _own_first(pair: Sequence[Sequence[int]], left: bool) -> Pair:
    """Return a pair of axes as tuples, those of the quantised operand first."""
    a, b = map(tuple, pair)
    return (a, b) if left else (b, a)


def _single_row(q: Quantized, x: Any, contract: Pair, batch: Pair, left: bool, precision: Any, dtype: Any) -> Any:
    """Return the product of a single row, beside a row of zeros.

    XLA has no fast product of int8 with a vector on CPUs: 4096 x 4096 takes 70 ms, with two rows 0.7 ms.
    """
    two = fnp.concatenate([x[None], fnp.zeros_like(x)[None]])
    shifted = ((pair[0], tuple(a + 1 for a in pair[1])) for pair in (contract, batch))
    numbers = tuple(_own_first(pair, left) for pair in shifted)
    out = dot_general(*((q, two) if left else (two, q)), numbers, precision, dtype)
    place = len(batch[0]) + (q.ndim - len(batch[0]) - len(contract[0]) if left else 0)
    return lax.index_in_dim(out, 0, place, keepdims=False)


class _Product(NamedTuple):
    """A product of floats and integers with a scale for each channel; pairs of axes are those of the integers first."""

    contract: Pair
    batch: Pair
    left: bool
    precision: Any
    dtype: Any

    def dot(self, integers: Any, x: Any, precision: Any = None, dtype: Any = None) -> Any:
        """Return the product of the arrays in their order."""
        pairs = (_own_first(self.contract, self.left), _own_first(self.batch, self.left))
        a, b = (integers, x) if self.left else (x, integers)
        return lax.dot_general(a, b, pairs, precision, dtype)

    def floats(self, x: Any, integers: Any, scale: Any) -> Any:
        """Return the product of floats."""
        steps = fnp.ones([n if a in self.batch[1] else 1 for a, n in enumerate(aval_of(x).shape)], np.float32)
        total = self.dot(integers.astype(dtypes.float32), x.astype(dtypes.float32), self.precision)
        return (total * self.dot(scale, steps)).astype(self.dtype)

    def rounded(self, x: Any, integers: Any, scale: Any) -> Any:
        """Return the product of integers; its derivatives are those of `floats`."""

        @custom_jvp
        def product(x: Any, integers: Any, scale: Any) -> Any:
            step = scale_of(x, 8, self.contract[1])
            total = self.dot(integers, rounded(x, step, 8), dtype=np.dtype(np.int32))
            # Scales have size 1 along summed axes, so that their product has the axes of the result.
            return (total.astype(dtypes.float32) * self.dot(scale, step, "highest")).astype(self.dtype)

        product.defjvps(
            lambda t, out, x, i, s: self.floats(t, i, s), None, lambda t, out, x, i, s: self.floats(x, i, t)
        )
        return product(x, integers, scale)


class QuantizedTracer(Tracer):
    """A quantised array inside of `quantized(f)`; it has the shape and dtype of the floats."""

    __slots__ = ("array",)
    array: Quantized

    def __init__(self, trace: Trace, array: Quantized) -> None:
        self._trace, self.array = trace, array

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.array.shape, self.array.dtype)


class QuantizedTrace(Trace):
    """Trace that applies products to integers, and all other primitives to floats."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if prim.stage_params is not None:
            args, params = prim.stage_params(args, params)
        mine = [type(a) is QuantizedTracer and a._trace is self for a in args]
        if not any(mine):
            state.trace = self.parent
            try:
                return self.parent.process(prim, args, params)
            finally:
                state.trace = self
        called = params.get(_CALLS.get(prim, ""))
        if isinstance(called, Jaxpr):
            return evaluate(called, args)
        operands = [a.array if m else a for a, m in zip(args, mine, strict=True)]
        state.trace = self.parent
        try:
            if prim is structural.transpose:
                return QuantizedTracer(self, operands[0].transpose(params["permutation"]))
            if prim is structural.reshape and tuple(params["shape"]) == operands[0].shape:
                return QuantizedTracer(self, operands[0])  # matmul reshapes operands of every shape
            if prim is contraction.dot_general:
                lhs, rhs = operands
                chosen = (params.get(key) for key in ("dimension_numbers", "precision", "preferred_element_type"))
                return dot_general(lhs, rhs, *chosen)
            return prim(*map(self.out, operands), **params)
        except FtError as e:
            raise core.add_error_context(e, prim, args, params, self, "quantized")  # noqa: B904  (the same error)
        finally:
            state.trace = self

    def lift(self, value: Any) -> Any:
        """Return a quantised array as a tracer, and anything else as it is."""
        return QuantizedTracer(self, value) if isinstance(value, Quantized) else value

    def out(self, value: Any) -> Any:
        """Return floats for a quantised array, and anything else as it is."""
        value = value.array if type(value) is QuantizedTracer and value._trace is self else value
        return value.dequantize() if isinstance(value, Quantized) else value


def is_quantized(x: Any) -> bool:
    """Return True for a quantised array."""
    return isinstance(x, Quantized)


@transformation
def quantized(f: Callable[P, R]) -> Callable[P, R]:
    """Make a function of floats take quantised parameters.

    Products with quantised arrays are those of `nn.quantize`'s policy. All other operations use the floats. jit, vmap
    and grad (with respect to the other arguments) compose with it; loops take floats, converted before they begin.

    Args:
        f: function of pytrees of arrays, such as `(params, x) -> y`.

    Returns:
        The function. With dynamic activations, each product costs a rounding of the other operand.

    Raises:
        ArgumentError: for anything but a function.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> params = ft.nn.quantize({"w": fnp.eye(4), "b": fnp.ones(4)})
        >>> model = lambda params, x: fnp.einsum("ij,j->i", params["w"], x) + params["b"]
        >>> ft.nn.quantized(model)(params, fnp.asarray([0.0, 1.0, 2.0, 4.0])).round(1).tolist()
        [1.0, 2.0, 3.0, 5.0]
    """
    check_callable(f, "quantized", "nn.quantized(model)(params, x)")

    @wraps(f)
    def applied(*args: Any, **kwargs: Any) -> Any:
        trace = QuantizedTrace("quantized", state.trace)
        with new_trace(trace):
            lifted = tree.map(trace.lift, (args, kwargs), is_leaf=is_quantized)
            out: Any = f(*lifted[0], **lifted[1])  # pyright: ignore[reportCallIssue]
        return tree.map(trace.out, out)

    return applied


@functools.cache
def _matmul() -> Callable[..., Any]:
    return api_boundary.public(quantized(fnp.matmul))


OPERATORS["matmul"] = lambda a, b: _matmul()(a, b)
