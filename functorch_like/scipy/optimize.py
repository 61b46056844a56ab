"""Minima of smooth functions: `minimize`, by quasi-Newton methods, as one compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from functorch_like import flatten_util, lax, tree
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.transforms.grad import value_and_grad

if TYPE_CHECKING:
    from functorch_like.typing import ArrayLike, PyTree


__all__ = ("OptimizeResults", "minimize")


class OptimizeResults(NamedTuple):
    """Result of `minimize`.

    Attributes:
        x: the last point, like x0.
        success: whether the gradient became small enough.
        status: 0 for success, 1 for too many steps, 2 where no step made the function smaller, 3 for NaN.
        fun: the function at x.
        jac: its gradient there, like x0.
        hess_inv: an estimate of the inverse of the Hessian, for the flattened elements of x0; None with "L-BFGS".
        nfev: number of evaluations of the function.
        njev: number of evaluations of the gradient.
        nit: number of steps.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


# ---------------------------------------------------------------------------------------------------------- directions
class _Whole:
    """BFGS: an estimate of the inverse of the Hessian. J. Nocedal, S. J. Wright, "Numerical Optimization", (6.17)."""

    def __init__(self, memory: int) -> None:
        del memory

    def start(self, x: Any) -> Any:
        return fnp.eye(aval_of(x).size, dtype=aval_of(x).dtype)

    def times(self, inverse: Any, g: Any) -> Any:
        return _product(inverse, g)

    def learned(self, inverse: Any, s: Any, y: Any, first: Any) -> Any:
        curvature = _product(y, s)
        # After the first step, scale the estimate to the curvature along it (6.20).
        inverse = inverse * fnp.where(first, curvature / _product(y, y), 1)
        part = _product(inverse, y)
        scale = (1 + _product(y, part) / curvature) / curvature
        both = part[:, None] * s[None, :]
        new = inverse + scale * s[:, None] * s[None, :] - (both + both.T) / curvature
        return fnp.where(curvature > 0, new, inverse)

    def matrix(self, inverse: Any) -> Any:
        return inverse


class _Limited:
    """L-BFGS: the last steps, and the change of the gradient in each. As above, algorithm 7.4."""

    def __init__(self, memory: int) -> None:
        self.memory = memory

    def start(self, x: Any) -> Any:
        past = fnp.zeros((self.memory, aval_of(x).size), aval_of(x).dtype)
        return past, past, fnp.zeros(self.memory, aval_of(x).dtype)

    def times(self, history: Any, g: Any) -> Any:
        def down(q: Any, one: Any) -> Any:
            s, y, rho = one
            by = rho * _product(s, q)
            return q - by * y, by

        def up(q: Any, one: Any) -> Any:
            (s, y, rho), by = one
            return q + (by - rho * _product(y, q)) * s, None

        q, weights = lax.scan(down, g, history)
        s, y, rho = (x[0] for x in history)
        q = q * fnp.where(rho > 0, _product(s, y) / fnp.where(rho > 0, _product(y, y), 1), 1)
        return lax.scan(up, q, (history, weights), reverse=True)[0]

    def learned(self, history: Any, s: Any, y: Any, first: Any) -> Any:
        del first
        curvature = _product(s, y)
        good = curvature > 0
        rho = 1 / fnp.where(good, curvature, 1)
        # The newest step is first.
        return tuple(
            fnp.where(good, fnp.concatenate([x[None], old[:-1]]), old)
            for x, old in zip((s, y, rho), history, strict=True)
        )  # fmt: skip

    def matrix(self, history: Any) -> None:
        del history


def _product(a: Any, b: Any) -> Any:
    return fnp.matmul(a, b, precision="highest")


_METHODS = {"bfgs": _Whole, "l-bfgs": _Limited, "l-bfgs-experimental-do-not-rely-on-this": _Limited}


# ------------------------------------------------------------------------------------------------------------- minimum
def minimize(
    fun: Callable[..., ArrayLike],
    x0: ArrayLike,
    args: tuple[PyTree, ...] = (),
    *,
    method: str = "BFGS",
    tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> OptimizeResults:
    """A local minimum of a smooth function.

    Each step follows a quasi-Newton direction, until the function has decreased enough and is no longer steep. Its
    length is found by doubling and halving: A. S. Lewis, M. L. Overton, "Nonsmooth optimization via quasi-Newton
    methods", 2013. The number of steps depends on values, so the loop can be batched and differentiated in forward
    mode, but not in reverse mode; use `lax.custom_root` there.

    Args:
        fun: function `(x, *args)` that returns a real scalar.
        x0: the start: an array, or a pytree of them, of floats.
        args: more arguments of `fun`.
        method: "BFGS"; or "L-BFGS", which keeps only the last steps, for many elements. JAX's longer name of the
            latter is taken, too.
        tol: the same as the option `gtol`.
        options: `maxiter`: the greatest number of steps, 200 for each element of x0 by default; `gtol`: the greatest
            element of the gradient at which to stop, 1e-5 by default; `line_search_maxiter`: number of points that a
            step tries, 30 by default; `maxcor`: number of steps that "L-BFGS" keeps, 10 by default.

    Returns:
        `OptimizeResults`.

    Raises:
        ArgumentError: for an unknown method or option.
        DtypeError: for an x0 that is not of floats.
        ShapeError: for a function that does not return a scalar.

    >>> found = ft.scipy.optimize.minimize(lambda x: fnp.sum((x - 2) ** 2), fnp.zeros(3))
    >>> bool(found.success), found.x.round(3).tolist()
    (True, [2.0, 2.0, 2.0])
    """
    what = "scipy.optimize.minimize"
    if str(method).lower() not in _METHODS:
        raise promotion.error(
            ArgumentError,
            f"{what} has no method {method!r}",
            "use 'BFGS' or 'L-BFGS'; SciPy has others: scipy.optimize.minimize(f, x0, jac=ft.grad(f), method=...)",
        )
    x, unravel = flatten_util.ravel_pytree(x0)
    if aval_of(x).dtype.kind != "f":
        raise promotion.error(DtypeError, f"x0 of {what} is of {aval_of(x).dtype.name}", "give real floats")
    settings = {"maxiter": 200 * aval_of(x).size, "gtol": 1e-5, "line_search_maxiter": 30, "maxcor": 10}
    unknown = set(options or {}) - set(settings)
    if unknown:
        raise promotion.error(
            ArgumentError, f"{what} has no options {sorted(unknown)}", f"it has {', '.join(settings)}"
        )
    settings |= dict(options or {}) | ({} if tol is None else {"gtol": tol})

    def value(x: Any) -> Any:
        out = fun(unravel(x), *args)
        if aval_of(out).shape:
            raise promotion.error(
                ShapeError, f"the function that {what} minimizes gives {aval_of(out)!r}", "give a scalar"
            )
        return promotion.convert(out, aval_of(x).dtype)

    result = _minimized(value_and_grad(value), x, _METHODS[str(method).lower()](int(settings["maxcor"])), settings)
    return result._replace(x=unravel(result.x), jac=unravel(result.jac))


class _State(NamedTuple):
    step: Any
    x: Any
    f: Any
    g: Any
    kept: Any
    evaluations: Any
    stuck: Any


def _minimized(value: Callable[[Any], Any], x: Any, way: Any, options: Mapping[str, Any]) -> OptimizeResults:
    small = lambda g: fnp.max(fnp.abs(g), initial=0) <= options["gtol"]

    def step(state: _State) -> _State:
        first = state.step == 0
        p = -way.times(state.kept, state.g)
        falling = _product(state.g, p) < 0  # always, up to rounding
        p = fnp.where(falling, p, -state.g)
        length = fnp.linalg.norm(state.g)
        start = fnp.where(first, fnp.minimum(1, 1 / fnp.where(length > 0, length, 1)), 1).astype(state.f.dtype)
        t, f, g, tried, fell = _searched(value, state.x, state.f, state.g, p, start, options["line_search_maxiter"])
        kept = way.learned(state.kept, t * p, g - state.g, first)
        keep = lambda new, old: tree.map(lambda a, b: fnp.where(fell, a, b), new, old)
        x, f, g, kept = keep((state.x + t * p, f, g, kept), (state.x, state.f, state.g, state.kept))
        return _State(state.step + 1, x, f, g, kept, state.evaluations + tried, ~fell)

    def more(state: _State) -> Any:
        return ~small(state.g) & ~state.stuck & (state.step < options["maxiter"]) & fnp.isfinite(state.f)

    f, g = value(x)
    one = fnp.ones((), fnp.int32)
    end = lax.while_loop(more, step, _State(0 * one, x, f, g, way.start(x), one, fnp.asarray(False)))
    done = small(end.g) & fnp.isfinite(end.f)
    lost = ~fnp.isfinite(end.f) | ~fnp.isfinite(end.g).all()
    status = fnp.where(done, 0, fnp.where(lost, 3, fnp.where(end.stuck, 2, 1)))
    inverse = way.matrix(end.kept)
    return OptimizeResults(
        end.x, done, status, end.f, end.g, inverse, end.evaluations, end.evaluations, end.step - end.stuck
    )


def _searched(value: Callable[[Any], Any], x: Any, f: Any, g: Any, p: Any, start: Any, most: int) -> tuple[Any, ...]:
    """Search along p for a step that satisfies the weak Wolfe conditions. Return it, and whether the function fell."""
    slope = _product(g, p)

    def step(state: Any) -> Any:
        k, low, high, t, *_ = state
        new, gradient = value(x + t * p)
        enough = new <= f + 1e-4 * t * slope  # NaN is not
        flat = _product(gradient, p) >= 0.9 * slope
        low, high = fnp.where(enough, t, low), fnp.where(enough, high, t)
        ahead = fnp.where(fnp.isfinite(high), (low + high) / 2, 2 * t)
        done = enough & flat
        return k + 1, low, high, fnp.where(done, t, ahead), new, gradient, t, enough, done

    none = fnp.asarray(False)
    zero, end = fnp.zeros_like(f), fnp.full_like(f, fnp.inf)
    init = (fnp.zeros((), fnp.int32), zero, end, start, f, g, zero, none, none)
    state = lax.while_loop(lambda s: ~s[-1] & (s[0] < most), step, init)
    tried, new, gradient, t, enough = state[0], *state[4:8]
    return t, new, gradient, tried, enough & (new < f)
