"""Running folds as one kernel on CPUs: nested loops over elements, which compile in a tenth of the time of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray

#: Elements after which a new partial fold begins, and such folds after which the next one does. Rounding errors then
#: grow with the number of levels, and not with that of the elements.
SPAN = 32
#: Elements that a step folds where rows are short: by operations of few instructions, which it folds by halves, and by
#: others. The length from which on a row is long.
CHEAP, UNROLLED, LONG = 8, 4, 8
#: Rows that a step goes on with, where nothing is behind the axis: none waits for the addition of another. The last
#: rows may be folded twice, so that there must be some times as many.
LANES, TIMES = (8, 4), 5


def rows(aval: ShapedArray, axis: int) -> int:
    """The number of elements that each step folds at once: those behind the axis."""
    return math.prod(aval.shape[axis + 1 :])


def _prefixes(elements: list[Any], both: Callable[[Any, Any], Any]) -> list[Any]:
    """Fold all prefixes by halves: few operations wait for one another."""
    if len(elements) == 1:
        return elements
    half = len(elements) // 2
    first, last = _prefixes(elements[:half], both), _prefixes(elements[half:], both)
    return [*first, *(both(first[-1], x) for x in last)]


def _folded(
    elements: list[Any], before: Any, partial: Any, both: Callable[[Any, Any], Any], by_halves: bool
) -> tuple[list[Any], Any]:
    """Fold elements after others.

    Args:
        elements: the elements.
        before: the fold before the others.
        partial: the fold of the others.
        both: folds two.
        by_halves: whether to fold the elements apart from the others, by halves.

    Returns:
        The result at each element, and the fold of the others and these.
    """
    if by_halves:
        prefixes = _prefixes(elements, both)
        before, partial = both(before, partial), both(partial, prefixes[-1])
    else:
        _, *prefixes = accumulate(elements, both, initial=partial)
        partial = prefixes[-1]
    return [both(before, x) for x in prefixes], partial


def running_loop(
    e: Any, xs: Sequence[Any], aval: ShapedArray, axis: int, reverse: bool, both: Callable[..., list[Any]],
    identities: Sequence[Any], cheap: bool = False,
) -> Any:  # fmt: skip
    """Emit a running fold along one axis as nested loops in one kernel.

    Args:
        e: the emitter; `kernels.allowed(e)`.
        xs: the operands, one for each component of what is folded.
        aval: of each operand.
        axis: axis of the fold.
        reverse: True to fold from the end.
        both: folds two elements: emits `(emitter, components, components, aval) -> components`.
        identities: one for each component.
        cheap: whether `both` takes few instructions, so that a step may repeat it.

    Returns:
        The last component of all prefixes.
    """
    n, inner, count = aval.shape[axis], rows(aval, axis), len(xs)
    outer = aval.size // (n * inner)
    fitting = (m for m in LANES if inner == 1 and (outer % m == 0 or outer >= TIMES * m))
    lanes = next(fitting, 1)
    flat, part = aval.update(shape=(outer, n, inner)), aval.update(shape=(lanes, 1, inner))
    index, flag = ShapedArray((), np.int32), ShapedArray((), np.bool_)
    sizes = e.i64s(part.shape)
    levels = [1]
    while levels[-1] * SPAN < n and aval.dtype.kind not in "iu":  # integers have no rounding errors
        levels.append(levels[-1] * SPAN)
    unrolled = CHEAP if cheap else UNROLLED
    number = lambda e, i: e.constant(np.int32(i))
    add = lambda e, a, b: e.op("stablehlo.add", [a, b], [index])
    before_end = lambda e, k, end: [e.compare("LT", k, end, flag, "SIGNED")]
    less = lambda e, first, k, end, *_: before_end(e, k, end)
    none = lambda e: [e.full(identity, part) for identity in identities]
    avals = [index, index, index, *[part] * (2 * count), *[flat] * (count + 1)]

    def pieces(values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], Any]:
        """Values of a loop behind its bounds: the fold before it, that of its elements, operands and result."""
        before, partial, xs = (list(values[i * count : (i + 1) * count]) for i in range(3))
        return before, partial, xs, values[-1]

    def fold(
        e: Any, level: int, first: Any, begin: Any, end: Any, before: Any, xs: Any, out: Any
    ) -> tuple[Any, list[Any]]:
        """Fold the elements of [begin, end) into `out`, after `before`; return it, and the fold of them alone.

        The folds are those of the place `first` before the axis, and the next ones.
        """

        def spans(e: Any, first: Any, k: Any, end: Any, *values: Any) -> list[Any]:
            before, partial, xs, out = pieces(values)
            after = add(e, k, number(e, levels[level]))
            until = e.op("stablehlo.minimum", [after, end], [index])
            out, folded = fold(e, level - 1, first, k, until, both(e, before, partial, part), xs, out)
            return [first, after, end, *before, *both(e, partial, folded, part), *xs, out]

        def elements(many: int) -> Callable[..., list[Any]]:
            def step(e: Any, first: Any, k: Any, end: Any, *values: Any) -> list[Any]:
                before, partial, xs, out = pieces(values)
                places, found = [], []
                for i in range(many):
                    place = add(e, k, number(e, i)) if i else k
                    if reverse:
                        place = e.op("stablehlo.subtract", [number(e, n - 1), place], [index])
                    places.append([first, place, number(e, 0)])
                    at = {"slice_sizes": sizes}
                    found.append([e.op("stablehlo.dynamic_slice", [x, *places[-1]], [part], at) for x in xs])
                two = lambda a, b: both(e, a, b, part)
                results, partial = _folded(found, before, partial, two, cheap and many > 1)
                for at, result in zip(places, results, strict=True):
                    out = e.op("stablehlo.dynamic_update_slice", [out, result[-1], *at], [flat])
                return [first, add(e, k, number(e, many)), end, *before, *partial, *xs, out]

            return step

        def several(e: Any, first: Any, k: Any, end: Any, *_: Any) -> list[Any]:
            return before_end(e, add(e, k, number(e, unrolled - 1)), end)

        values = [first, begin, end, *before, *none(e), *xs, out]
        if level:
            values = e.loop(values, avals, less, spans)
        else:
            if inner < LONG and lanes == 1:
                values = e.loop(values, avals, several, elements(unrolled))
            values = e.loop(values, avals, less, elements(1))
        _, folded, _, out = pieces(values[3:])
        return out, folded

    def folds(e: Any, k: Any, end: Any, *values: Any) -> list[Any]:
        """Fold at as many places as a step does. The last ones may be folded again, with the same results."""
        *xs, out = values
        first = e.op("stablehlo.minimum", [k, number(e, outer - lanes)], [index]) if outer % lanes else k
        out = fold(e, len(levels) - 1, first, number(e, 0), number(e, n), none(e), xs, out)[0]
        return [add(e, k, number(e, lanes)), end, *xs, out]

    xs = [e.op("stablehlo.reshape", [x], [flat]) for x in xs]
    first = [number(e, 0), number(e, outer), *xs, xs[-1]]  # the operand is copied, which takes less than filling
    below = lambda e, k, end, *_: before_end(e, k, end)
    y = e.loop(first, [index, index, *[flat] * (count + 1)], below, folds, one_kernel=True)[-1]
    return e.op("stablehlo.reshape", [y], [aval])
