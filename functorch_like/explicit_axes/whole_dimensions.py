"""Rules of primitives that work along some dimensions, which must be whole or vanish."""

from __future__ import annotations

from collections.abc import Callable

from functorch_like.explicit_axes.case import Axes, Case


def _reduced(dims: str) -> Callable[[Case], Axes]:
    """Return the rule of reductions: of the other dimensions, each keeps its axes."""

    def rule(case: Case) -> Axes:
        gone = case.params[dims]
        operands = case.axes[: len(case.outs)]
        kept = [tuple(names for d, names in enumerate(axes) if d not in gone) for axes in operands]
        return tuple(case.merged(each, "a dimension") for each in zip(*kept, strict=True))

    return rule


def _along(dim: str) -> Callable[[Case], Axes]:
    """Return the rule of primitives that run along one dimension."""

    def rule(case: Case) -> Axes:
        d = case.params[dim]
        for k, aval in enumerate(case.avals):
            if aval.ndim:
                case.whole(k, [d], f"{case.name} runs along it")
        ndim = case.outs[0].ndim
        return tuple(
            () if i == d else case.merged((axes[i] for axes in case.axes), f"dimension {i}") for i in range(ndim)
        )

    return rule


def _along_last(case: Case) -> Axes:
    """Keep the axes of all dimensions but the last one, along which the primitive runs."""
    last = case.avals[0].ndim - 1
    case.whole(0, [last], f"{case.name} runs along it")
    return (*case.axes[0][:last], ())


def _fft(case: Case) -> Axes:
    ndim, count = case.avals[0].ndim, len(case.params["fft_lengths"])
    case.whole(0, range(ndim - count, ndim), "fft runs along it")
    return (*case.axes[0][: ndim - count], *((),) * count)


def _of_matrices(case: Case) -> list[Axes]:
    """Keep the axes of the dimensions before matrices, or vectors, which must be whole."""
    # The leading dimensions are those that all operands and results share.
    ndim = min(aval.ndim for aval in (*case.avals, *case.outs) if aval.ndim)
    shapes = [aval.shape[:ndim] for aval in (*case.avals, *case.outs) if aval.ndim]
    batch = max(case.avals[0].ndim - 2, 0)
    while any(shape[:batch] != shapes[0][:batch] for shape in shapes):
        batch -= 1
    for k, aval in enumerate(case.avals):
        case.whole(k, range(batch, aval.ndim), f"{case.name} works on whole matrices")
    leading = tuple(
        case.merged((axes[d] for axes in case.axes if len(axes) > d), f"dimension {d}") for d in range(batch)
    )
    return [(*leading, *((),) * (out.ndim - batch)) for out in case.outs]


def _windows(case: Case) -> Axes:
    """Keep the axes of dimensions along which windows have one element; the others must be whole."""
    window = case.params["window_dimensions"]
    for k, aval in enumerate(case.avals):
        if aval.ndim == len(window):
            case.whole(k, (d for d, n in enumerate(window) if n != 1), "windows overlap parts")
    full = [axes for axes in case.axes if len(axes) == len(window)]
    return tuple(
        case.merged((axes[d] for axes in full), f"dimension {d}") if n == 1 else () for d, n in enumerate(window)
    )


_MATRICES = (
    "cholesky", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation",
    "ormqr", "pinv", "qr", "schur", "solve", "svd", "triangular_solve", "tridiagonal", "tridiagonal_solve",
)  # fmt: skip
_REDUCTIONS = "sum prod max min max_number fmax fmin and or xor"

RULES = {
    **dict.fromkeys((f"reduce_{name}" for name in _REDUCTIONS.split()), _reduced("axes")),
    **dict.fromkeys(("argmax", "argmin", "routed_sum"), _reduced("axes")),
    "reduce": _reduced("dimensions"),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "recurrence"), _along("axis")),
    "sort": _along("dimension"),
    **dict.fromkeys(("top_k", "order_statistics", "true_places"), _along_last),
    "fft": _fft,
    **dict.fromkeys(_MATRICES, _of_matrices),
    **dict.fromkeys((f"reduce_window_{name}" for name in ("sum", "max", "min")), _windows),
    **dict.fromkeys(("reduce_window", "select_and_gather_add", "select_and_scatter_add"), _windows),
}
