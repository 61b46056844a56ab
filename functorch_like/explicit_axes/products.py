"""Rules of products and convolutions."""

from __future__ import annotations

from functorch_like.explicit_axes.case import Axes, Case, Names, text


def _dot_general(case: Case) -> Axes:
    (lc, rc), (lb, rb) = case.params["dimension_numbers"]
    left, right = case.axes
    for i, j in zip(lc, rc, strict=True):
        if left[i] and right[j]:
            if left[i] == right[j]:
                case.doubt(
                    f"both operands are split by {text(left[i])} along a contracted dimension, as the result may be"
                )
            case.merged((left[i], right[j]), "a contracted dimension")
    batch = [case.merged((left[i], right[j]), "a batch dimension") for i, j in zip(lb, rb, strict=True)]
    rest_left = [names for d, names in enumerate(left) if d not in lc and d not in lb]
    rest_right = [names for d, names in enumerate(right) if d not in rc and d not in rb]
    return (*batch, *rest_left, *rest_right)


def _conv(case: Case) -> Axes:
    lhs, _, out = case.params["dimension_numbers"]
    case.whole(0, [lhs[1]], "features of the input are summed")
    case.whole(1, range(case.avals[1].ndim), "the kernel is needed whole")
    result: list[Names] = [()] * case.outs[0].ndim
    for d in (0, *range(2, len(lhs))):
        result[out[d]] = case.axes[0][lhs[d]]
    return tuple(result)


def _ragged_dot(case: Case) -> Axes:
    """Keep the axes of rows and columns; what is summed over, and the groups, must be whole."""
    lhs, rhs = case.avals[:2]
    case.whole(0, [lhs.ndim - 1], "it is summed over")
    case.whole(1, range(rhs.ndim - 1), "groups of it are multiplied, and summed over")
    case.whole(2, range(case.avals[2].ndim), "sizes of all groups are needed")
    return (*case.axes[0][:-1], case.axes[1][-1])


def _attention(case: Case) -> list[Axes]:
    """Keep the axes of batches and heads; positions and features must be whole."""
    for k, aval in enumerate(case.avals[:3]):
        case.whole(k, (1, *range(3, aval.ndim)), "each position attends to all others")
    query, key, value = case.axes[:3]
    batch = case.merged((query[0], key[0], value[0]), "the batch")
    heads = query[2]
    if any(case.avals[k].shape[2] == case.avals[0].shape[2] for k in (1, 2)):
        heads = case.merged((query[2], key[2], value[2]), "heads")
    else:
        case.whole(1, [2], "its heads are shared")
        case.whole(2, [2], "its heads are shared")
    if case.name == "fused_attention":
        return [(batch, (), heads, ()), (batch, heads, ())]
    return [(batch, (), query[2], ()), (batch, (), key[2], ()), (batch, (), value[2], ())]


RULES = {
    "dot_general": _dot_general,
    "conv_general_dilated": _conv,
    "ragged_dot": _ragged_dot,
    **dict.fromkeys(("fused_attention", "fused_attention_grad"), _attention),
}
