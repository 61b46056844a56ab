"""`jax.lax.rng_uniform`: numbers from the generator of XLA, whose state no program sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, numpy
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.mlir import ir
from functorch_like.errors import DtypeError, ShapeError
from functorch_like.jax_alias.modules import mlir
from functorch_like.jax_alias.modules.user_primitives import Primitive, apply_primitive
from functorch_like.lax.operands import ints
from functorch_like.primitives.structural import check_sizes

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, Shape


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Draw numbers of a uniform distribution by XLA's generator; each call gives others.

    `jax.random` gives the same numbers for the same key. Derivatives and batching rules do not exist, as in JAX.

    Args:
        a: least number, a scalar.
        b: bound that no number reaches, a scalar of the same dtype, which is an integer or real type.
        shape: shape of the result.

    Returns:
        Array of that shape and dtype.

    Raises:
        ShapeError: where a bound is not a scalar.
        DtypeError: for bounds of different dtypes, complex ones or bools.

    Example:
        >>> rng_uniform(3, 4, (2,)).tolist()
        [3, 3]
    """
    low, high = numpy.asarray(a), numpy.asarray(b)
    return rng_uniform_p.bind(low, high, shape=ints(shape, "shape"))


def _aval(low: Any, high: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    check_sizes(shape)
    if low.shape or high.shape:
        raise ShapeError(f"rng_uniform: bounds of shapes {low.shape} and {high.shape}", fix="give two scalars")
    if low.dtype != high.dtype or low.dtype not in (*dtypes.SIGNED, *dtypes.UNSIGNED, *dtypes.FLOATS):
        raise DtypeError(
            f"rng_uniform: bounds of dtypes {low.dtype} and {high.dtype}", fix="give two integers or floats of a dtype"
        )
    return ShapedArray(shape, low.dtype), frozenset(["rng"])


def _lower(ctx: Any, low: Any, high: Any, *, shape: tuple[int, ...]) -> Any:
    results = [mlir.aval_to_ir_type(aval) for aval in ctx.avals_out]
    operands = [low, high, mlir.ir_constant(np.asarray(shape, np.int64))]
    uniform = ir.Attribute.parse("#stablehlo<rng_distribution UNIFORM>")
    return ir.Operation.create("stablehlo.rng", results, operands, {"rng_distribution": uniform}).results


#: The primitive. Its effect keeps two equal equations apart.
rng_uniform_p = Primitive("rng_uniform")
rng_uniform_p.def_effectful_abstract_eval(_aval)
rng_uniform_p.def_impl(lambda *bounds, shape: apply_primitive(rng_uniform_p, *bounds, shape=shape))
mlir.register_lowering(rng_uniform_p, _lower)
