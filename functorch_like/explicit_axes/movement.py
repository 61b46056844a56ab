"""Rules of primitives that move data."""

from __future__ import annotations

from functorch_like.explicit_axes.case import Axes, Case, Names, text


def _transpose(case: Case) -> Axes:
    return tuple(case.axes[0][d] for d in case.params["permutation"])


def _broadcast(case: Case) -> Axes:
    x, out = case.avals[0], case.outs[0]
    result: list[Names] = [()] * out.ndim
    for d, to in enumerate(case.params["broadcast_dimensions"]):
        if x.shape[d] == out.shape[to]:
            result[to] = case.axes[0][d]
    return tuple(result)


def _reshape(case: Case) -> Axes:
    """Split the result as the operand, where groups of dimensions that become others allow it.

    A dimension that is taken apart hands its axes to the leading ones of its parts, as far as these divide. Dimensions
    that are joined hand on those of the leading ones that are split; as in JAX, devices may then exchange data.
    """
    result: list[Names] = []
    for group, sizes in _groups(case.avals[0].shape, case.outs[0].shape):
        several = len(group) > 1 and len(sizes) > 1
        if several and sum(case.axes[0][d] != () for d in group) > 1:
            case.doubt(f"dimensions {group}, of which more than one is split, would be joined and taken apart")
        names = _joined(case, group)
        result += _apart(case, names, sizes)
    return tuple(result)


def _groups(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Pair the smallest runs of dimensions that have equal products: positions before, sizes after."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    if 0 in before:
        return [(list(range(len(before))), list(after))]
    while i < len(before) or j < len(after):
        left, right = [i] if i < len(before) else [], [after[j]] if j < len(after) else []
        n, m = before[i] if left else 1, after[j] if right else 1
        if left and n == 1 and m != 1:
            groups.append((left, []))
            i += 1
            continue
        if right and m == 1 and n != 1:
            groups.append(([], right))
            j += 1
            continue
        i, j = i + bool(left), j + bool(right)
        while n != m:
            if n < m:
                n *= before[i]
                left.append(i)
                i += 1
            else:
                m *= after[j]
                right.append(after[j])
                j += 1
        groups.append((left, right))
    return groups


def _joined(case: Case, dims: list[int]) -> Names:
    """Return the axes of dimensions that become one: those of the leading ones that are split."""
    names: Names = ()
    leading = True
    for d in dims:
        here = case.axes[0][d]
        if here and not leading:
            case.doubt(f"dimension {d}, which is split by {text(here)}, would be joined to one before it that is not")
        elif here:
            names = (*names, *here)
        else:
            leading = leading and case.avals[0].shape[d] == 1
    return names


def _apart(case: Case, names: Names, sizes: list[int]) -> list[Names]:
    """Return the axes of dimensions that one is taken apart into: the leading ones are split first."""
    result: list[Names] = []
    left = names
    for size in sizes:
        taken: Names = ()
        while left and size % case.mesh.shape[left[0]] == 0:
            size //= case.mesh.shape[left[0]]
            taken, left = (*taken, left[0]), left[1:]
        result.append(taken)
        if size > 1:  # more than one element of this dimension in each part
            break
    if case.parts(left) > 1:
        case.doubt(f"axes {text(left)} split none of the sizes {sizes} evenly")
    return [*result, *[()] * (len(sizes) - len(result))]


def _resized(case: Case) -> Axes:
    """Keep the axes: `Case.checked` refuses sizes that do not divide."""
    return case.axes[0]


def _concatenate(case: Case) -> Axes:
    return tuple(case.merged((axes[d] for axes in case.axes), f"dimension {d}") for d in range(case.outs[0].ndim))


def _bitcast(case: Case) -> Axes:
    """Keep the axes of the dimensions that both have: words of another width take or give a last one."""
    shared = min(case.avals[0].ndim, case.outs[0].ndim)
    case.whole(0, range(shared, case.avals[0].ndim), "words are made along it")
    return (*case.axes[0][:shared], *((),) * (case.outs[0].ndim - shared))


def _tile(case: Case) -> Axes:
    case.whole(0, (d for d, n in enumerate(case.params["reps"]) if n != 1), "repetitions of it follow each other")
    return tuple(() if n != 1 else case.axes[0][d] for d, n in enumerate(case.params["reps"]))


RULES = {
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "slice": _resized,
    "pad": _resized,
    "dynamic_slice": _resized,
    "split": _resized,
    "concatenate": _concatenate,
    "tile": _tile,
    "rev": _resized,
    "bitcast_convert_type": _bitcast,
}
