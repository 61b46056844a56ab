"""`checkify`, `check` and `check_error`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.arrays.devices import device_put
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.call_signature import FlatCall, Static
from functorch_like.calling.format_strings import check_format
from functorch_like.calling.host_callbacks import split_values
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import wraps
from functorch_like.checkify import custom, flow, shards  # noqa: F401  (their rules)
from functorch_like.checkify.error import Error
from functorch_like.checkify.run import run
from functorch_like.checkify.state import NONE, all_checks, user_checks
from functorch_like.core import EVALUATE, Tracer, aval_of, state
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.primitives import elementwise
from functorch_like.primitives.effects.check import Message
from functorch_like.primitives.effects.check import check as check_primitive

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import P, R
    from functorch_like.typing import ArrayLike


@transformation
def checkify(f: Callable[P, R], errors: frozenset[str] = user_checks) -> Callable[P, tuple[Error, R]]:
    """Make a function return its error beside its result: `(error, result)`.

    Args:
        f: function of pytrees of arrays. It is traced, so that a condition on a value needs `lax.cond`.
        errors: kinds of errors, or several joined by `|`: `user_checks` (calls of `check`), `nan_checks`, `div_checks`
            (division by zero) and `index_checks` (indices out of bounds, which are otherwise clamped or dropped).
            `float_checks` are nan and div, `automatic_checks` all except the user's, `all_checks` all.

    Returns:
        The function. The error is the first failure in program order; the result is that without checks.
        `error.throw()` raises the error, `error.get()` returns its text or None.

    Raises:
        ArgumentError: for unknown kinds of errors; if f is not callable.

    >>> import functorch_like as ft
    >>> from functorch_like import checkify
    >>> f = ft.jit(checkify.checkify(lambda x, i: x[i] / i, checkify.index_checks | checkify.div_checks))
    >>> f(fnp.ones(3), 5)[0].get()  # doctest: +ELLIPSIS
    'out-of-bounds index 5 for axis 0 of size 3 of f32[3] (...)'
    >>> f(fnp.ones(3), 0)[0].get()  # doctest: +ELLIPSIS
    'division by zero (...)'
    >>> err, out = f(fnp.ones(3), 2)
    >>> err.get(), float(out)
    (None, 0.5)
    """
    traced_function.check_callable(f, "checkify")
    checks = frozenset(errors)
    if not checks <= all_checks:
        raise ArgumentError(
            f"errors={errors!r} of checkify has unknown members",
            fix="join checkify.user_checks, nan_checks, div_checks, index_checks, float_checks, all_checks by |",
        )

    @wraps(f)
    def checkified(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        call = FlatCall(Static((), ()), args, kwargs)
        body = traced_function.staged(f, call, "checkify")
        outs, state = run(body.jaxpr, [*body.consts, *traced_function.operands(call)], checks)
        return state.error(), body.out_tree.unflatten(outs)

    return checkified


@api_boundary.public
def check(pred: ArrayLike, msg: str, *fmt_args: ArrayLike, debug: bool = False, **fmt_kwargs: ArrayLike) -> None:
    """Check a condition in a function that `checkify` wraps.

    Outside of transformations a false condition raises at once. A check under `jit` needs `checkify` around it, since
    compiled code cannot raise.

    Args:
        pred: bool scalar, which must be True.
        msg: text of the error; a format string, as for `str.format`.
        fmt_args: arrays and numbers for the positional fields of msg.
        debug: True if a program that is compiled without `checkify` drops the check.
        fmt_kwargs: arrays and numbers for the named fields of msg.

    Raises:
        CheckError: if `pred` is False outside of transformations.
        ShapeError: if `pred` is not a scalar.
        DtypeError: if `pred` is not a bool.
        UnsupportedError: at the compilation of a program with a check that `checkify` has not removed.

    >>> from functorch_like import checkify
    >>> checkify.check(fnp.asarray(2) > 1, "too small: {}", 2)
    """
    check_format("check", msg, fmt_args, fmt_kwargs)
    if isinstance(pred, (bool, np.bool_)):
        pred = np.asarray(pred)
    aval = aval_of(pred)
    if aval.shape:
        raise ShapeError(f"check takes a scalar, got {aval!r}", fix="reduce it with all(...) or any(...)")
    if aval.dtype != np.dtype(bool):
        raise DtypeError(f"check takes a bool, got {aval!r}", fix="compare: check(x > 0, ...)")
    operands, rebuild = split_values(fmt_args, fmt_kwargs, numbers=False)

    def fill(*values: Any) -> str:
        args, kwargs = rebuild([*map(device_put, values)])  # as the caller gave them: scalars of NumPy print otherwise
        return msg.format(*args, **kwargs)

    check_primitive(pred, *operands, message=Message(fill), debug=bool(debug))


@api_boundary.public
def check_error(error: Error) -> None:
    """Check that an error value has no failure; under `checkify`, pass a failure on to its error.

    Args:
        error: error value that a checkified function returned.

    Raises:
        CheckError: for a failure, outside of transformations.
        ArgumentError: for another object.

    >>> from functorch_like import checkify
    >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise ArgumentError(f"check_error takes an Error, got {error!r:.60}", fix="pass what checkify's function gave")
    if state.trace is EVALUATE and not any(isinstance(x, Tracer) for x in error._flat):
        error.throw()
    elif error._flat:
        fill = lambda *flat: str(Error(flat, error._places).get())
        check_primitive(elementwise.eq(error._flat[0], NONE), *error._flat, message=Message(fill), debug=False)
