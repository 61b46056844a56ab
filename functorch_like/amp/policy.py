"""The policy of `autocast`: which primitives are computed in the narrow dtype, and which in float32.

The lists follow torch.autocast: products are narrow; operations that overflow, cancel or accumulate are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends.precision_names import Fp32
from functorch_like.core import TABLE, Primitive
from functorch_like.errors import ArgumentError, DtypeError, nearest
from functorch_like.primitives import elementwise
from functorch_like.primitives.contractions.convolution import conv_general_dilated
from functorch_like.primitives.contractions.dot_general import dot_general
from functorch_like.primitives.contractions.ragged_dot import ragged_contract, ragged_dot
from functorch_like.primitives.reductions.cumlogsumexp import cumlogsumexp
from functorch_like.primitives.reductions.cumulative import cumprod, cumsum
from functorch_like.primitives.reductions.reductions import reduce_prod
from functorch_like.primitives.structural import reduce_sum

#: Primitives that are computed in the narrow dtype.
PRODUCTS: frozenset[Primitive] = frozenset((dot_general, conv_general_dilated, ragged_dot, ragged_contract))
#: Primitives that are computed in float32 if operands are narrower.
SENSITIVE: frozenset[Primitive] = frozenset((
    elementwise.acos, elementwise.asin, elementwise.cosh, elementwise.erf_inv, elementwise.exp, elementwise.exp2,
    elementwise.expm1, elementwise.log, elementwise.log1p, elementwise.logistic, elementwise.pow, elementwise.rsqrt,
    elementwise.sinh, elementwise.tan, cumlogsumexp, cumprod, cumsum, reduce_prod, reduce_sum,
))  # fmt: skip
NARROW = (dtypes.bfloat16, dtypes.float16)


class Policy(NamedTuple):
    """Treatment of each primitive by `autocast`.

    Attributes:
        dtype: the narrow dtype.
        low: primitives whose float32 operands are converted to it.
        high: primitives whose narrower operands are converted to float32.
    """

    dtype: dtypes.DType
    low: frozenset[Primitive]
    high: frozenset[Primitive]

    def dtype_for(self, prim: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> dtypes.DType | None:
        """Return the dtype in which to compute a primitive, or None to leave its operands as they are."""
        floats = [a.dtype for a in avals if dtypes.is_float(a.dtype)]
        if prim in self.low and floats and all(d == dtypes.float32 for d in floats) and not _is_exact(params):
            return self.dtype
        if prim in self.high and any(d in NARROW for d in floats):
            return dtypes.float32
        return None


def _is_exact(params: dict[str, Any]) -> bool:
    """Return True for a product whose call named a precision; global settings do not count."""
    precision = params.get("precision")
    return precision not in (None, "default", ("default", "default")) and type(precision) is not Fp32


def make_policy(dtype: Any, allow: Iterable[str | Primitive], deny: Iterable[str | Primitive]) -> Policy:
    """Return the policy for a narrow dtype, with the user's exceptions.

    Raises:
        DtypeError: for a dtype other than bfloat16 and float16.
        ArgumentError: for unknown and higher-order primitives, and for primitives in both lists.
    """
    narrow = dtypes.as_dtype(dtype)
    if narrow not in NARROW:
        raise DtypeError(
            f"autocast computes products in bfloat16 or float16, got dtype={narrow.name!r}",
            fix='pass dtype="bfloat16", which needs no loss scaling, or "float16"',
        )
    low, high = _primitives("allow", allow), _primitives("deny", deny)
    both = sorted(p.name for p in low & high)
    if both:
        raise ArgumentError(f"autocast both allows and denies {', '.join(both)}", fix="name each in one list")
    return Policy(narrow, (PRODUCTS | low) - high, (SENSITIVE | high) - low)


#: Policy that casts nothing.
NOTHING = Policy(dtypes.float32, frozenset(), frozenset())


def _primitives(which: str, names: Iterable[str | Primitive]) -> frozenset[Primitive]:
    if isinstance(names, (str, Primitive)):
        names = (names,)
    if not isinstance(names, Iterable):
        raise ArgumentError(f"{which}={names!r} of autocast", fix=f'pass a list of names: {which}=["tanh"]')
    return frozenset(_primitive(which, name) for name in names)


def _primitive(which: str, name: str | Primitive) -> Primitive:
    prim = name if isinstance(name, Primitive) else TABLE.get(name)
    if prim is None:
        raise ArgumentError(
            f"{which}= of autocast names {name!r}, which is not a primitive{nearest(str(name), TABLE)}",
            fix="`python -m functorch_like.primitives` lists them; make_jaxpr(f)(...) shows those of a function",
        )
    if prim.evaluate is not None or prim.partial_eval is not None:
        raise ArgumentError(
            f"{which}= of autocast names {prim.name}, which holds a function; the policy applies inside of it",
            fix="name the primitives of the function",
        )
    return prim
