"""Precision of products: `precision=`, or else the settings in force, and its lowering."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import precision, precision_names
from functorch_like.backends.xla.jaxlib_api import BATCHED_DOTS_MISLAID
from functorch_like.core import Primitive, state
from functorch_like.errors import ArgumentError, DtypeError
from functorch_like.primitives.contractions.dot_dimensions import free_dims, free_size

_DTYPES = {"f16": dtypes.float16, "bf16": dtypes.bfloat16, "f32": dtypes.float32, "f64": dtypes.float64}
_Dims = tuple[int, ...]
_BITS = {"f16": (5, 10), "bf16": (8, 7)}  # of exponent and mantissa
Work = Callable[[Sequence[ShapedArray], ShapedArray, dict[str, Any]], float]


class Product(Primitive):
    """A primitive whose precision, where none is given, is that of the settings in force.

    The settings are read when the primitive is applied, not when it is lowered: a `with` block in a traced function
    holds for the operations in it. The parameter stays None where nothing is set, which is full float32.

    Args:
        name: as of any primitive.
        settings: reads the precision in force.
        multiplications: `(avals of the operands, aval of the result, params)`: the work by which compile options are
            chosen. By default none is counted.
        facts: the rules, and the other fields of `Primitive`.
    """

    settings: Callable[[], precision_names.Fp32 | None]
    multiplications: Work

    def __init__(
        self, name: str, *, settings: Any = precision.of_products, multiplications: Work = lambda *_: 0, **facts: Any
    ) -> None:
        super().__init__(name, kind="product", linear="separately", **facts)
        object.__setattr__(self, "settings", settings)  # primitives are frozen
        object.__setattr__(self, "multiplications", multiplications)

    def __call__(self, *args: Any, **params: Any) -> Any:
        if params.get("precision") is None:
            params["precision"] = self.settings()
        return state.trace.process(self, args, params)


# ------------------------------------------------------------------------------------------------------------- checking
def check_precision(precision: Any, dtype: Any, *, algorithms: bool = True) -> None:
    """Raise unless `precision` is a precision, a pair, or an algorithm that takes operands of this dtype."""
    if type(precision) is precision_names.Fp32:
        return
    if isinstance(precision, str) and precision in precision_names.ALGORITHMS:
        if not algorithms:
            raise ArgumentError(
                f"precision={precision!r} names a dot algorithm, and convolutions have none",
                fix="use 'default', 'high' or 'highest'",
            )
        name = precision_names.ALGORITHMS[precision].operands
        allowed = {dtypes.float32, _DTYPES.get(name)} if name != "f64" else {dtypes.float64}
        if dtype not in allowed:
            raise DtypeError(
                f"precision={precision!r} does not take operands of {dtype}",
                fix=f"convert them to {' or '.join(sorted(str(w) for w in allowed if w is not None))}",
            )
        return
    for p in precision if isinstance(precision, tuple) else (precision,):
        if p is not None and p not in precision_names.PRECISIONS:
            raise ArgumentError(
                f"precision={precision!r} is unknown",
                fix=f"use 'default', 'high', 'highest', None, or one of {', '.join(precision_names.ALGORITHMS)}",
            )


def exchanged(precision: Any) -> Any:
    """Return a precision for the two operands in the other order."""
    return precision[::-1] if isinstance(precision, tuple) else precision


# ------------------------------------------------------------------------------------------------------------- lowering
@functools.lru_cache(1024)
def resolved(precision: Any, dtype: Any, platform: str) -> Any:
    """A precision, a pair of them, or an algorithm's name."""
    single = dtype in (dtypes.float32, dtypes.complex64)
    if type(precision) is precision_names.Fp32:
        precision = (precision.cpu if platform == "cpu" else precision.gpu) if single else None
        if dtype == dtypes.complex64 and precision in precision_names.ALGORITHMS:  # which are for real operands
            precision = precision_names.in_convolutions(precision)
    if precision == "BF16_BF16_F32_X9" and platform != "cpu":
        # TRAP: XLA:GPU has no kernel for nine products, and takes a single one in TF32 without a word: an error of 3e-4
        # where float32 has 4e-7 (jaxlib 0.11.2 on an H200). Operands of bfloat16 have one part each.
        precision = "F32_F32_F32" if single else "BF16_BF16_F32"
    # TRAP: XLA takes TF32 on GPUs, and bfloat16 on TPUs, unless the precision is "highest".
    full = "highest" if single else "default"
    return tuple(p or full for p in precision) if isinstance(precision, tuple) else precision or full


def precision_config(e: Any, given: Any, dtype: Any) -> Any:
    """The attribute by which XLA gets the precision of each operand."""
    precision = resolved(given, dtype, e.platform)
    if precision in precision_names.ALGORITHMS:
        precision = "default"
    return e.attr(_pair(*precision) if isinstance(precision, tuple) else _pair(precision, precision))


@functools.cache
def _pair(*names: str) -> str:
    return "[" + ", ".join(f"#stablehlo<precision {p.upper()}>" for p in names) + "]"


def rounded(precision: Any, dtype: Any, platform: str) -> str:
    """Return the type that operands must be rounded to before XLA gets them; "" if they need no rounding.

    XLA:CPU ignores algorithms. XLA:GPU rounds by itself, but not to float16.
    """
    name = resolved(precision, dtype, platform)
    if isinstance(name, tuple) or name not in precision_names.ALGORITHMS:
        return ""
    to, products = precision_names.ALGORITHMS[name]
    rounds = products == 1 and to in (("f16", "bf16") if platform == "cpu" else ("f16",))
    return to if rounds and _DTYPES[to] != dtype else ""


@functools.cache
def _dimension_numbers(lc: _Dims, rc: _Dims, lb: _Dims, rb: _Dims) -> str:
    show = lambda dims: "[" + ", ".join(map(str, dims)) + "]"
    return (
        f"#stablehlo.dot<lhs_batching_dimensions = {show(lb)}, rhs_batching_dimensions = {show(rb)}, "
        f"lhs_contracting_dimensions = {show(lc)}, rhs_contracting_dimensions = {show(rc)}>"
    )


def emit_dot(
    e: Any, lhs: Any, rhs: Any, left: ShapedArray, right: ShapedArray, out: ShapedArray, contract: Any, batch: Any,
    precision: Any,
) -> Any:  # fmt: skip
    """Emit a dot_general of this precision, with a result of aval `out`."""
    (lc, rc), (lb, rb) = contract, batch
    free = free_dims(right.ndim, rc, rb)
    if e.platform == "cpu" and left.dtype == dtypes.bfloat16 != out.dtype and len(free) > 1:
        return _with_one_free_dim(e, lhs, rhs, left, right, out, contract, batch, precision, free)
    key = ("dot", *map(tuple, (lc, rc, lb, rb)), precision, left.dtype)
    if key not in e.memo:
        e.memo[key] = {
            "dot_dimension_numbers": e.attr(_dimension_numbers(*key[1:5])),
            "precision_config": precision_config(e, precision, left.dtype),
        }
    attrs = e.memo[key]
    to = rounded(precision, left.dtype, e.platform)
    if to:
        lhs, rhs = (_round(e, x, aval, to) for x, aval in ((lhs, left), (rhs, right)))
    name = resolved(precision, left.dtype, e.platform)
    made = out
    if name in precision_names.ALGORITHMS:
        algorithm = precision_names.ALGORITHMS[name]
        numbers = e.attr(
            f"#stablehlo.dot_algorithm<lhs_precision_type = {algorithm.operands}, rhs_precision_type = "
            f"{algorithm.operands}, accumulation_type = {algorithm.sums}, lhs_component_count = 1, rhs_component_count "
            f"= 1, num_primitive_operations = {algorithm.products}, allow_imprecise_accumulation = false>"
        )
        attrs = {**attrs, "algorithm": numbers}
        made = out.update(dtype=_DTYPES[algorithm.sums])
    y = e.op("stablehlo.dot_general", [lhs, rhs], [made], attrs=attrs)
    if BATCHED_DOTS_MISLAID and e.platform == "cpu" and _may_be_mislaid(left, right, made, contract, batch):
        y = _kept_from_transposes(e, y, made)
    return y if made is out else e.convert(y, out)


def _may_be_mislaid(left: ShapedArray, right: ShapedArray, out: ShapedArray, contract: Any, batch: Any) -> bool:
    """Return True for a batched product that XLA:CPU may emit as plain loops.

    XLA 0.10 folds a transpose into a product late, when it finds that two transposes of it are equal. The product may
    then get a layout that XLA's loops for batches cannot write, and a failed check in dot_op_emitter.cc ends the
    process. The limits are measured: of 800 shapes none beyond them failed.
    """
    (lc, rc), (lb, rb) = contract, batch
    if not lb or out.dtype.kind not in "iuf":
        return False
    rows, columns = free_size(left, lc, lb), free_size(right, rc, rb)
    terms = math.prod(left.shape[d] for d in lc)
    thin = terms <= 3 or max(rows, columns) <= 3
    if out.dtype.kind == "f":
        return thin and max(rows, columns, terms) < 8
    return thin or out.dtype != dtypes.int32


def _kept_from_transposes(e: Any, x: Any, aval: ShapedArray) -> Any:
    """Return `x` limited to all values that it may have, an operation that XLA neither drops nor folds."""
    limits = (-np.inf, np.inf) if aval.dtype.kind == "f" else (np.iinfo(aval.dtype).min, np.iinfo(aval.dtype).max)
    scalar = aval.update(shape=())
    least, most = (e.full(limit, scalar) for limit in limits)
    return e.op("stablehlo.clamp", [least, x, most], [aval])


def _with_one_free_dim(
    e: Any, lhs: Any, rhs: Any, left: ShapedArray, right: ShapedArray, out: ShapedArray, contract: Any, batch: Any,
    precision: Any, free: list[int],
) -> Any:  # fmt: skip
    """A product with the free dimensions of the right operand merged.

    XLA:CPU compiles bfloat16 products with float32 results that it then cannot run: the left operand is contracted over
    a dimension before its free one, and the right operand has several free dimensions.
    """
    (lc, rc), (lb, rb) = contract, batch
    order, many = [*rb, *rc, *free], math.prod(right.shape[d] for d in free)
    if order != sorted(order):
        right = right.update(shape=tuple(right.shape[d] for d in order))
        rhs = e.op("stablehlo.transpose", [rhs], [right], attrs={"permutation": e.i64s(order)})
    kept = len(rb) + len(rc)
    right = right.update(shape=(*right.shape[:kept], many))
    rhs = e.op("stablehlo.reshape", [rhs], [right])
    places = tuple(range(len(rb), kept)), tuple(range(len(rb)))
    merged = out.update(shape=(*out.shape[: out.ndim - len(free)], many))
    y = emit_dot(e, lhs, rhs, left, right, merged, (lc, places[0]), (lb, places[1]), precision)
    return e.op("stablehlo.reshape", [y], [out])


def _round(e: Any, x: Any, aval: ShapedArray, to: str) -> Any:
    if e.platform == "cpu":
        # TRAP: XLA may leave out a conversion to a narrow dtype and back, but not this operation.
        exponent, mantissa = _BITS[to]
        attrs = {"exponent_bits": e.i32(exponent), "mantissa_bits": e.i32(mantissa)}
        x = e.op("stablehlo.reduce_precision", [x], [aval], attrs=attrs)
        if to == "f16":
            return x  # XLA:CPU has no kernels for it
    return e.convert(x, aval.update(dtype=_DTYPES[to]))
