"""`jax.numpy`: functions that also move typed keys, and functions that take JAX's options."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.backends.xla import named_sharding
from functorch_like.calling.pickling import transformation
from functorch_like.dtypes import is_python_type
from functorch_like.errors import ArgumentError, FtError
from functorch_like.jax_alias import options
from functorch_like.jax_alias.modules import dtypes
from functorch_like.jax_alias.modules.arrays import Array
from functorch_like.jax_alias.modules.keys_in_functions import filling_keys, moving_keys
from functorch_like.jax_alias.modules.sharding import concrete, split_result
from functorch_like.numpy import promotion
from functorch_like.numpy.axes import ints_of
from functorch_like.numpy.einsum import einsum_by
from functorch_like.numpy.vectorizing import by_elements
from functorch_like.random.typed_keys import is_keys

ndarray = Array
#: NumPy's category of warnings, for filters: conversions of complex numbers to real ones do not warn.
ComplexWarning = np.exceptions.ComplexWarning
finfo, issubdtype, result_type = dtypes.finfo, dtypes.issubdtype, dtypes.result_type

#: Functions that move elements and look at none, so that they move typed keys as well.
_MOVING = (
    "array", "asarray", "atleast_1d", "broadcast_to", "concatenate", "copy", "expand_dims", "flip", "moveaxis",
    "permute_dims", "ravel", "repeat", "reshape", "roll", "rollaxis", "select", "split", "squeeze", "stack",
    "swapaxes", "take", "tile", "transpose", "vstack", "where",
)  # fmt: skip
#: Functions that fill an array with one value, which may be a key.
_FILLING = ("empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like")

for _name in _MOVING:
    globals()[_name] = moving_keys(getattr(fnp, _name), "jax.numpy")
for _name in _FILLING:
    globals()[_name] = filling_keys(getattr(fnp, _name), "jax.numpy")

#: Functions that make arrays, on the devices that `out_sharding` names.
_MAKING = (
    "arange", "array", "asarray", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
    "zeros", "zeros_like",
)  # fmt: skip


def placed(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that takes `device` accept JAX's `out_sharding` in its place."""

    @functools.wraps(fun)
    def made(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is not None:
            if kwargs.get("device") is not None:
                raise ArgumentError(f"{fun.__name__} got device= and out_sharding=", fix="give one of them")
            kwargs["device"] = named_sharding.from_user(concrete(out_sharding), "out_sharding")
        return fun(*args, **kwargs)

    made.__module__ = "jax.numpy"
    return made


for _name in _MAKING:
    globals()[_name] = placed(globals().get(_name, getattr(fnp, _name)))
del _name


_reshape = globals()["reshape"]


@functools.wraps(_reshape)
def reshape(a: Any, shape: Any, order: str = "C", **kwargs: Any) -> Any:
    """Return an array in another shape. As in JAX, NumPy's arrays stay NumPy's, so that they can be read under jit."""
    if isinstance(a, (np.ndarray, np.generic)) and not any(kwargs.values()):
        with contextlib.suppress(TypeError, ValueError, FtError):  # the package's function raises a better error
            return a.reshape(ints_of(shape), order=order)  # type: ignore[call-overload]
    return _reshape(a, shape, order, **kwargs)


def einsum(*operands: Any, _dot_general: Any = None, out_sharding: Any = None, **kwargs: Any) -> Any:
    """Return `fnp.einsum`, computed with `_dot_general`, by which flax passes quantized products."""
    own = lax.dot_general, options.adapted("jax.lax", "dot_general", lax.dot_general)
    if out_sharding is not None:
        return split_result(lambda: einsum(*operands, _dot_general=_dot_general, **kwargs), out_sharding)
    if _dot_general is None or _dot_general in own:
        return fnp.einsum(*operands, **kwargs)
    return einsum_by(_dot_general, *operands, **kwargs)


def _einsum(operands: Any, contractions: Any, precision: Any, preferred_element_type: Any, _dot_general: Any) -> Any:
    """Return the result of a path of opt_einsum: for each step the positions of operands, the sums, and a formula."""
    arrays = list(operands)
    for positions, _, formula in contractions:
        taken = [arrays.pop(k) for k in positions]
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        arrays.append(einsum(formula, *taken, _dot_general=_dot_general, **options))
    return arrays[0]


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array or of typed keys. As in JAX, None counts as a scalar."""
    return a.shape if is_keys(a) else () if a is None else fnp.shape(a)


def ndim(a: Any) -> int:
    """Return the number of dimensions of an array or of typed keys. As in JAX, None counts as a scalar."""
    return a.ndim if is_keys(a) else 0 if a is None else fnp.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements of an array or of typed keys."""
    return a.size if is_keys(a) and axis is None else fnp.size(a, axis)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """Return an array in another dtype; typed keys have only their own."""
    return x.astype(dtype) if is_keys(x) else fnp.astype(x, dtype, device=device)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Return whether two arrays are equal; they may be typed keys."""
    if is_keys(a1) or is_keys(a2):
        same = is_keys(a1) and is_keys(a2) and a1.shape == a2.shape and a1.dtype == a2.dtype
        return (a1 == a2).all() if same else fnp.asarray(False)
    return fnp.array_equal(a1, a2, equal_nan)


def _own_integer(a: Any) -> Any:
    dtype = fnp.result_type(a)
    return dtype if dtypes.issubdtype(dtype, np.integer) else None


def _keeping_integers(name: str) -> Callable[..., Any]:
    """Return a running sum or product that keeps integers' dtype, where NumPy's widens it."""
    fun = getattr(fnp, name)

    @functools.wraps(fun)
    def running(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        return fun(a, axis, _own_integer(a) if dtype is None else dtype, out)

    running.__module__ = "jax.numpy"
    return running


cumsum, cumprod = _keeping_integers("cumsum"), _keeping_integers("cumprod")
nancumsum, nancumprod = _keeping_integers("nancumsum"), _keeping_integers("nancumprod")


def cumulative_prod(x: Any, /, *, dtype: Any = None, **options: Any) -> Any:
    """Return running products; integers keep their dtype."""
    return fnp.cumulative_prod(x, dtype=_own_integer(x) if dtype is None else dtype, **options)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any]:
    """Return the count of each bin, as a float of the edges' dtype, and the edges."""
    counts, edges = fnp.histogram(a, bins, range, weights, density)
    return counts.astype(edges.dtype), edges


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Return an array without NaNs and infinities; typed keys have none."""
    return x if is_keys(x) else fnp.nan_to_num(x, copy, nan, posinf, neginf)


@transformation
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Return `fnp.vectorize` of a function, whose arguments may be typed keys."""
    return by_elements(pyfunc, excluded, signature, lambda x: x if is_keys(x) else fnp.asarray(x))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Return `fnp.tri`, of float32 unless a dtype is given."""
    return fnp.tri(N, M, k, "float32" if dtype is None else dtype)


def isscalar(element: Any) -> bool:
    """Return True for numbers and for arrays of rank 0, NumPy's as well."""
    return np.isscalar(element) or (isinstance(element, (ft.Array, np.ndarray)) and element.ndim == 0)


def promote_types(a: Any, b: Any) -> Any:
    """Return the dtype of two dtypes together; Python's `int`, `float` and `complex` adapt to the other one."""
    python = [is_python_type(x) for x in (a, b)]
    if not any(python):
        return fnp.promote_types(a, b)
    return fnp.result_type(*(x(0) if own else fnp.dtype(x) for x, own in zip((a, b), python, strict=True)))


def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """Return `fnp.bincount`; with a length, negative numbers count as 0."""
    return fnp.bincount(x if length is None else fnp.clip(x, 0, None), weights, minlength, length=length)


def in_floats(fun: Callable[..., Any], operands: int, module: str = "jax.numpy") -> Callable[..., Any]:
    """Make a function compute in floats where its first operands are integers."""

    @functools.wraps(fun)
    def computed(*args: Any, **kwargs: Any) -> Any:
        arrays = map(promotion.to_inexact, promotion.promote(*map(fnp.asarray, args[:operands])))
        return fun(*arrays, *args[operands:], **kwargs)

    computed.__module__ = module
    return computed


convolve, correlate, polymul = (in_floats(getattr(fnp, name), 2) for name in ("convolve", "correlate", "polymul"))
polyder = in_floats(fnp.polyder, 1)


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Save an array; numbers and NumPy's arrays keep their 64 bits."""
    (fnp.save if isinstance(arr, ft.Array) else np.save)(file, arr)


object_ = np.object_
printoptions, set_printoptions, get_printoptions = np.printoptions, np.set_printoptions, np.get_printoptions
