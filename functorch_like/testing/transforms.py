"""Check that a function gives the same under `vmap` and `jit`, and keeps dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import functorch_like as ft
from functorch_like import dtypes as kinds
from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.testing.compare import arguments, as_numpy, assert_allclose

if TYPE_CHECKING:
    from functorch_like.typing import DTypeLike, PyTree


def check_vmap(
    f: Callable[..., object],
    args: Sequence[PyTree],
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise unless `vmap(f, in_axes, out_axes)(*args)` is the stack of `f` called in a loop.

    Where the mapped axis has no elements, only shapes and dtypes are compared.

    Args:
        f: takes and returns pytrees of arrays, for one element.
        args: batched arguments.
        in_axes: as for `vmap`.
        out_axes: as for `vmap`.
        rtol: relative tolerance, by default that of `assert_allclose` for each dtype.
        atol: absolute tolerance, likewise.

    Raises:
        AssertionError: names the result by its path, the element and both values.
        ArgumentError: where `args` is neither a tuple nor a list.

    >>> import functorch_like.numpy as fnp
    >>> check_vmap(fnp.dot, (np.ones((3, 4)), np.ones(4)), in_axes=(0, None))
    >>> check_vmap(lambda x: x - fnp.mean(x), (np.ones((4, 3)),), in_axes=1, out_axes=-1)
    """
    operands = arguments(args, "check_vmap")
    leaves, treedef = tree.flatten(operands)
    leaves = [as_numpy(x) for x in leaves]
    axes = tree.broadcast_prefix(tuple(in_axes) if isinstance(in_axes, list) else in_axes, operands, "in_axes")
    sizes = {x.shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None}
    if len(sizes) != 1:
        raise ArgumentError(
            f"check_vmap needs one size of the mapped axes, got {sorted(sizes)}", fix="map over at least one argument"
        )
    (size,) = sizes
    got = ft.vmap(f, in_axes=in_axes, out_axes=out_axes)(*treedef.unflatten([ft.device_put(x) for x in leaves]))
    what = f"vmap(in_axes={in_axes!r}, out_axes={out_axes!r}) of {size} elements, against a loop"
    if not size:
        _check_empty(f, treedef, leaves, axes, out_axes, got, what)
        return

    def element(k: int) -> Any:
        cut = [x if a is None else np.take(x, k, a) for x, a in zip(leaves, axes, strict=True)]
        return f(*treedef.unflatten([ft.device_put(np.asarray(x)) for x in cut]))

    results = [element(k) for k in range(size)]
    out_tree = tree.structure(results[0])
    placed = tree.broadcast_prefix(out_axes, results[0], "out_axes")
    columns = zip(*(map(_as_result, tree.leaves(r)) for r in results), strict=True)
    want = [column[0] if a is None else np.stack(column, a) for column, a in zip(columns, placed, strict=True)]
    assert_allclose(got, out_tree.unflatten(want), rtol=rtol, atol=atol, what=what)


def _check_empty(f: Any, treedef: Any, leaves: list[Any], axes: list[Any], out_axes: Any, got: Any, what: str) -> None:
    one = [
        ShapeDtypeStruct(x.shape if a is None else np.delete(x.shape, a).tolist(), x.dtype)
        for x, a in zip(leaves, axes, strict=True)
    ]
    element = ft.eval_shape(f, *treedef.unflatten(one))
    placed = tree.broadcast_prefix(out_axes, element, "out_axes")
    want = []
    for e, a in zip(tree.leaves(element), placed, strict=True):
        shape = list(e.shape)
        if a is not None:
            shape.insert(a % (len(shape) + 1), 0)
        want.append(np.zeros(shape, e.dtype))
    assert_allclose(got, tree.structure(element).unflatten(want), what=what)


def check_jit(
    f: Callable[..., object], args: Sequence[PyTree], *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Raise unless `jit(f)` gives what `f` gives, when it is traced and when it is called again.

    A function that keeps state, draws from a global generator or looks at the clock fails here: its compiled form
    repeats what the function did at the first call.

    Args:
        f: takes and returns pytrees of arrays.
        args: what to call it with.
        rtol: relative tolerance, by default that of `assert_allclose` for each dtype.
        atol: absolute tolerance, likewise.

    Raises:
        AssertionError: names the result by its path, and both values.
        ArgumentError: where `args` is neither a tuple nor a list.

    >>> import functorch_like.numpy as fnp
    >>> check_jit(lambda x: {"norm": fnp.sqrt(fnp.sum(x * x))}, (np.array([3.0, 4.0]),))
    >>> calls = []
    >>> check_jit(lambda x: calls.append(x) or x * len(calls), (np.array(2.0),))
    Traceback (most recent call last):
        ...
    AssertionError: jit, against the function itself: differs:
    ...
    """
    operands = tree.map(lambda x: ft.device_put(as_numpy(x)), arguments(args, "check_jit"))
    compiled = ft.jit(lambda *xs: f(*xs))
    want = tree.map(_as_result, f(*operands))
    assert_allclose(compiled(*operands), want, rtol=rtol, atol=atol, what="jit, against the function itself")
    again = "jit at its second call, against the function itself"
    assert_allclose(compiled(*operands), tree.map(_as_result, f(*operands)), rtol=rtol, atol=atol, what=again)


def check_dtypes(
    f: Callable[..., object],
    args: Sequence[PyTree],
    dtypes: Sequence[DTypeLike] = kinds.FLOATS,
    want: Callable[[np.dtype[Any]], object] | None = None,
) -> None:
    """Raise unless a function computes in the precision it is given, whichever that is.

    The floating-point leaves of the arguments are converted to each dtype in turn (complex ones to complex numbers of
    that precision). The dtypes of the results must be the same in plain Python, under `jit` and by `eval_shape`.

    Args:
        f: takes and returns pytrees of arrays.
        args: what to call it with.
        dtypes: floating-point dtypes to try.
        want: from the dtype tried, the dtype of every floating-point or complex result (of its real part, where it is
            complex). Left out, that dtype itself.

    Raises:
        AssertionError: names the result by its path, the dtype tried and the one that came.
        ArgumentError: where `args` is neither a tuple nor a list.

    >>> import functorch_like.numpy as fnp
    >>> check_dtypes(lambda x: fnp.exp(x) / 2, (np.ones(3),))
    >>> check_dtypes(lambda x: x * fnp.ones(3, dtype="float32"), (np.ones(3),))
    Traceback (most recent call last):
        ...
    AssertionError: the result has precision float32 for arguments of bfloat16, wanted bfloat16
    """
    has_complex = any(kinds.is_complex(as_numpy(x).dtype) for x in tree.leaves(arguments(args, "check_dtypes")))
    for dtype in map(kinds.as_dtype, dtypes):
        if has_complex and kinds.real_part(kinds.complex_of(dtype)) != dtype:
            continue  # there are no complex numbers of that precision
        operands = tree.map(lambda x, d=dtype: ft.device_put(_converted(as_numpy(x), d)), tuple(args))
        expected = dtype if want is None else kinds.as_dtype(want(dtype))
        plain = f(*operands)
        for path, leaf in tree.leaves_with_path(plain):
            got = aval_of(leaf).dtype
            if kinds.is_inexact(got) and kinds.real_part(got) != expected:
                raise AssertionError(
                    f"{_result(path)} has precision {kinds.real_part(got)} for arguments of {dtype}, wanted {expected}"
                )
        for how, other in (("jit", ft.jit(f)(*operands)), ("eval_shape", ft.eval_shape(f, *operands))):
            pairs = zip(tree.leaves_with_path(plain), tree.leaves(other), strict=True)
            for (path, leaf), o in pairs:
                if aval_of(leaf).dtype != o.dtype:
                    raise AssertionError(
                        f"{_result(path)} for arguments of {dtype} is {aval_of(leaf).dtype}, but {o.dtype} by {how}"
                    )


def _as_result(x: Any) -> Any:
    """A leaf as it comes out of a transformation, where a Python number has a default dtype."""
    return np.asarray(x, aval_of(x).dtype) if isinstance(x, (bool, int, float, complex)) else as_numpy(x)


def _result(path: Any) -> str:
    return f"the result at {tree.keystr(path)}" if path else "the result"


def _converted(x: Any, dtype: Any) -> Any:
    if not kinds.is_inexact(x.dtype):
        return x
    return x.astype(kinds.complex_of(dtype) if kinds.is_complex(x.dtype) else dtype)
