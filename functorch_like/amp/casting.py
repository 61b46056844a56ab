"""`cast_floating`: the floats of a pytree in another dtype."""

from __future__ import annotations

from typing import TypeVar

from functorch_like import dtypes, tree
from functorch_like.calling import api_boundary
from functorch_like.core import aval_of, is_value
from functorch_like.errors import DtypeError
from functorch_like.primitives.elementwise.conversion import convert_element_type
from functorch_like.typing import DTypeLike

T = TypeVar("T")


@api_boundary.public
def cast_floating(tree_of_arrays: T, dtype: DTypeLike) -> T:
    """Convert the floating-point arrays of a pytree; leave integers, bools, complex numbers, keys and others alone.

    With float32 master weights, convert inside of the function that is differentiated: the gradients are float32 again.

    Args:
        tree_of_arrays: any pytree.
        dtype: a floating-point dtype.

    Returns:
        The pytree with the same structure and shapes. Arrays that have the dtype already are returned as they are.

    Raises:
        DtypeError: for a dtype that is not floating-point.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> params = {"w": fnp.ones(2), "steps": 3}
    >>> ft.cast_floating(params, "bfloat16")["w"].dtype.name, ft.cast_floating(params, "bfloat16")["steps"]
    ('bfloat16', 3)
    >>> loss = lambda params: fnp.sum(ft.cast_floating(params, "bfloat16")["w"] ** 2).astype("float32")
    >>> ft.grad(loss)({"w": fnp.ones(2)})["w"].dtype.name
    'float32'
    """
    to = dtypes.as_dtype(dtype)
    if not dtypes.is_float(to):
        raise DtypeError(
            f"cast_floating converts to a floating-point dtype, got {to.name!r}",
            fix='"float32", "bfloat16", "float16", ...; for others map astype over the leaves',
        )

    def cast(leaf: object) -> object:
        if not is_value(leaf) or isinstance(leaf, (bool, int, float, complex)):
            return leaf
        aval = aval_of(leaf)
        if not dtypes.is_float(aval.dtype) or (aval.dtype == to and not aval.weak_type):
            return leaf
        return convert_element_type(leaf, new_dtype=to)

    return tree.map(cast, tree_of_arrays)
