"""Check derivatives against finite differences, at every order and in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import functorch_like as ft
from functorch_like import dtypes, tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.testing.compare import arguments, as_numpy, difference

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


#: By dtype: the step of the differences, and what they may differ by, relative and absolute.
STEPS = {"float64": (1e-3, 1e-6), "float32": (3e-2, 2e-3), "float16": (0.1, 0.1), "bfloat16": (0.25, 0.3)}
_MODES = ("fwd", "rev")
Flat = Callable[..., list[Any]]


def check_grads(
    f: Callable[..., object],
    args: Sequence[PyTree],
    order: int = 2,
    modes: Sequence[str] = _MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    seed: int = 0,
) -> None:
    """Raise unless the derivatives of a function agree with finite differences.

    Each floating-point or complex leaf of the arguments is moved along a random direction, alone and then all at once.
    The differences are central, of fourth order, in the leaf's own dtype: float64 is recommended, as lower precision
    needs large steps and tolerances. At the second order the first derivatives are functions to be checked themselves:
    this covers forward over reverse, reverse over forward and the others.

    Args:
        f: takes and returns pytrees of arrays; smooth within two steps of the arguments.
        args: where to check. Leaves of other dtypes, such as integers, stay as they are.
        order: up to which order.
        modes: "fwd" checks `jvp`, "rev" checks `vjp`.
        atol: absolute tolerance, in units of 1 or of the largest element of the derivative, whichever is more; left
            out, by the lowest precision among the arguments.
        rtol: relative tolerance; left out, likewise.
        eps: step of the differences; left out, likewise.
        seed: of the directions.

    Raises:
        AssertionError: names the argument by its path, the order, the modes and the result, and shows both values.
        ArgumentError: where no argument has a derivative, a mode does not exist, or `args` is not a tuple.

    >>> import functorch_like.numpy as fnp
    >>> check_grads(lambda p: fnp.sin(p["x"]) * p["y"], ({"x": np.array([0.3, 2.0]), "y": np.array(1.5)},))
    >>> wrong = lambda x: ft.lax.stop_gradient(x) * x
    >>> check_grads(wrong, (np.array(2.0),), order=1, modes=("rev",))
    Traceback (most recent call last):
        ...
    AssertionError: check_grads: order 1, mode rev, argument args[0]: the derivative paired with a cotangent differs:
    ...
    """
    unknown = [m for m in modes if m not in _MODES]
    if unknown or order < 1 or not modes:
        raise ArgumentError(
            f"check_grads got order={order!r}, modes={tuple(modes)!r}", fix="order from 1, modes 'fwd' and 'rev'"
        )
    pairs, treedef = tree.flatten_with_path(arguments(args, "check_grads"))
    leaves = [as_numpy(x) for _, x in pairs]
    floats = [k for k, x in enumerate(leaves) if dtypes.is_inexact(x.dtype)]
    if not floats:
        raise ArgumentError("no argument of check_grads has a derivative", fix="pass floating-point or complex arrays")
    steps = [STEPS.get(dtypes.real_part(leaves[k].dtype).name, (0.5, 0.5)) for k in floats]
    within = max(t for _, t in steps)

    def flat(*values: Any) -> list[Any]:
        given: list[Any] = [ft.device_put(x) for x in leaves]
        for k, value in zip(floats, values, strict=True):
            given[k] = value
        return [o for o in tree.leaves(f(*treedef.unflatten(given))) if dtypes.is_inexact(aval_of(o).dtype)]

    check = _Check(
        ["args" + tree.keystr(pairs[k][0]) for k in floats],
        [leaves[k] for k in floats],
        max(e for e, _ in steps) if eps is None else eps,
        within if rtol is None else rtol,
        within if atol is None else atol,
        np.random.default_rng(seed),
    )
    check.up_to(order, flat, tuple(modes), ())


class _Check:
    """Arguments, by name and value, and how closely to look."""

    def __init__(
        self, names: list[str], point: list[Any], eps: float, rtol: float, atol: float, rng: np.random.Generator
    ) -> None:
        self.names, self.point, self.eps, self.rtol, self.atol, self.rng = names, point, eps, rtol, atol, rng

    def up_to(self, order: int, f: Flat, modes: tuple[str, ...], done: tuple[str, ...]) -> None:
        """Check the derivative of `f`, then the derivatives of its derivatives."""
        at = [ft.device_put(x) for x in self.point]
        outs = f(*at)
        vs = [self.random(x) for x in self.point]
        cts = [ft.device_put(self.random(as_numpy(o))) for o in outs]
        for mode in modes:
            label = " over ".join((mode, *done))
            for name, some in self.directions(vs):
                numeric = self.differences(f, some)
                where = f"check_grads: order {len(done) + 1}, mode {label}, argument {name}"
                if mode == "fwd":
                    self.forward(f, at, some, numeric, where)
                else:
                    self.reverse(f, at, cts, some, numeric, where)
        if order > 1:
            directions = [ft.device_put(v) for v in vs]
            derived: dict[str, Flat] = {
                "fwd": lambda *xs: ft.jvp(f, xs, tuple(directions))[1],
                "rev": lambda *xs: list(ft.vjp(f, *xs)[1](cts)),
            }
            for mode in modes:
                self.up_to(order - 1, derived[mode], modes, (mode, *done))

    def directions(self, vs: list[Any]) -> list[tuple[str, list[Any]]]:
        alone = [(name, [v if i == k else np.zeros_like(v) for i, v in enumerate(vs)])
                 for k, name in enumerate(self.names)]  # fmt: skip
        return alone if len(vs) == 1 else [*alone, ("all at once", vs)]

    def forward(self, f: Flat, at: list[Any], vs: list[Any], numeric: list[Any], where: str) -> None:
        tangents = ft.jvp(f, tuple(at), tuple(ft.device_put(v) for v in vs))[1]
        for k, (t, want) in enumerate(zip(tangents, numeric, strict=True)):
            of = f", of result {k}" if len(numeric) > 1 else ""
            self.compare(t, want, f"{where}{of}: the derivative")

    def reverse(self, f: Flat, at: list[Any], cts: list[Any], vs: list[Any], numeric: list[Any], where: str) -> None:
        back = ft.vjp(f, *at)[1](cts)
        for b, x, name in zip(back, self.point, self.names, strict=True):
            if (b.shape, b.dtype) != (x.shape, x.dtype):
                raise AssertionError(f"{where}: the cotangent of {name} is {aval_of(b)!r}, not {aval_of(x)!r}")
        got, want = _paired(back, vs), _paired(cts, numeric)
        self.compare(got, want, f"{where}: the derivative paired with a cotangent")

    def compare(self, got: Any, want: Any, what: str) -> None:
        wide = _wide(want)
        scale = max(1.0, float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0.0)))
        complaint = difference(_wide(got), wide, self.rtol, self.atol * scale, check_dtypes=False)
        if complaint:
            legend = f"  (got by automatic, wanted by finite differences with eps={self.eps:g})"
            raise AssertionError(f"{what} {complaint}\n{legend}")

    def differences(self, f: Flat, vs: list[Any]) -> list[Any]:
        """The derivative along a direction; its error is of fourth order in the step."""

        def at(h: float) -> list[Any]:
            moved = [np.asarray(x + np.asarray(h, x.dtype) * v, x.dtype) for x, v in zip(self.point, vs, strict=True)]
            return [_wide(o) for o in f(*map(ft.device_put, moved))]

        h = self.eps
        with np.errstate(all="ignore"):
            return [
                (8 * (a - b) - (c - d)) / (12 * h)
                for a, b, c, d in zip(at(h), at(-h), at(2 * h), at(-2 * h), strict=True)
            ]

    def random(self, like: Any) -> Any:
        """Values of size 1/2 to 1 and either sign: none is too small to be seen."""
        draw = lambda: self.rng.uniform(0.5, 1.0, like.shape) * self.rng.choice([-1.0, 1.0], like.shape)
        return np.asarray(draw() + 1j * draw() if dtypes.is_complex(like.dtype) else draw()).astype(like.dtype)


def _wide(x: Any) -> Any:
    x = as_numpy(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _paired(cotangents: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Re sum(ct * t), nothing conjugated: the pairing by which complex cotangents are defined."""
    return np.asarray(sum(np.sum(_wide(c) * _wide(t)).real for c, t in zip(cotangents, tangents, strict=True)))
