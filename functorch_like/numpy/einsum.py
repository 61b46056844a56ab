"""Einstein summation: a path by opt_einsum, and one dot_general for each of its steps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends.precision_names import canonical
from functorch_like.caches import cleared
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.einsum_paths import Path, PathInfo, find_path
from functorch_like.numpy.matrix_products import dot_general
from functorch_like.numpy.ranges import diagonal_band
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.contractions.precision import exchanged
from functorch_like.primitives.reductions.reductions import reduce_or
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.avals import ShapeDtypeStruct
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike


def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[object],
    out: None = None,
    optimize: bool | str | Sequence[object] | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products, described by letters for dimensions.

    Args:
        subscripts: such as "bij,bjk->bik": letters of each operand, and of the result. Letters missing from the
            result are summed over; without "->", those that occur once are kept, in alphabetical order. "..." stands
            for dimensions that broadcast. Or alternating operands and lists of labels, as in NumPy: ints or
            strings.
        operands: arrays; sizes of 1 broadcast.
        out: not supported: arrays are immutable.
        optimize: the method that orders contractions: a strategy of `backends.opt_einsum`; a pair of one and of
            the greatest number of elements of an intermediate; True for the strategy set there; False for left to
            right; an explicit path, as `einsum_path` gives it. None stands for `backends.opt_einsum.enabled`.
        precision: as for `matmul`.
        preferred_element_type: as for `matmul`.

    Returns:
        An array with the dimensions of the result's letters, in the common dtype.

    Raises:
        ArgumentError: for invalid subscripts.
        ShapeError: where a letter stands for different sizes.

    >>> fnp.einsum("ij,kj->ik", fnp.ones((2, 3)), fnp.ones((4, 3))).shape
    (2, 4)
    """
    promotion.no_out(out, "fnp.einsum")
    arrays, *plan = _planned(subscripts, operands, optimize)
    preferred = None if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    return _einsum(arrays, *plan, canonical(precision), preferred)


def einsum_by(
    multiply: Callable[..., Any],
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Return `einsum` of operands, with a given function (such as a quantized one) for each product of two.

    Args:
        multiply: called as `lax.dot_general`, with `precision` and `preferred_element_type` by name.
        subscripts: as for `einsum`.
        operands: as for `einsum`.
        optimize: as for `einsum`.
        precision: passed to `multiply` as it is.
        preferred_element_type: passed to `multiply` as it is.
    """

    def product(x: Any, y: Any, contracting: Any, batch: Any, precision: Any, preferred: Any) -> Any:
        return multiply(x, y, (contracting, batch), precision=precision, preferred_element_type=preferred)

    arrays, inputs, result, path = _planned(subscripts, operands, optimize)
    return _contract(arrays, inputs, result, path, precision, preferred_element_type, product)


def _planned(subscripts: Any, operands: Sequence[Any], optimize: Any) -> tuple[Any, tuple[str, ...], str, Path]:
    """Return the operands, their letters, those of the result, and the order of contractions."""
    text, arrays = _arguments(subscripts, operands)
    shapes = tuple(aval_of(a).shape for a in arrays)
    inputs, result = _parse(text, shapes)
    return arrays, inputs, result, find_path(inputs, result, shapes, optimize).path


def einsum_path(
    subscripts: str | ArrayLike | ShapeDtypeStruct,
    /,
    *operands: ArrayLike | ShapeDtypeStruct | Sequence[object],
    optimize: bool | str | Sequence[object] | None = None,
) -> tuple[list[object], PathInfo]:
    """The order of contractions that `einsum` would use, and its cost.

    Args:
        subscripts: as for `einsum`.
        operands: as for `einsum`.
        optimize: as for `einsum`.

    Returns:
        The path: for each step, positions in the list of operands, to which the product is appended. And a `PathInfo`:
        the steps, their operations and the largest intermediate.

    >>> path, info = fnp.einsum_path("ij,jk,kl->il", fnp.ones((2, 2)), fnp.ones((2, 5)), fnp.ones((5, 2)))
    >>> path
    [(1, 2), (0, 1)]
    >>> info.flops, info.largest_intermediate, info.steps[0].subscripts
    (56, 4, 'jk,kl->jl')
    """
    text, arrays = _arguments(subscripts, operands)
    shapes = tuple(aval_of(a).shape for a in arrays)
    inputs, result = _parse(text, shapes)
    info = find_path(inputs, result, shapes, optimize)
    return [*info.path], info


def _arguments(subscripts: Any, operands: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), tuple(asarray(o) if not promotion.is_array(o) else o for o in operands)
    args = [subscripts, *operands]
    text = next((o for o in operands if isinstance(o, str)), None)
    if text is not None:
        raise promotion.error(
            ArgumentError,
            f"fnp.einsum got the subscripts {text!r} after an operand",
            f"the subscripts come first: fnp.einsum({text!r}, ...)",
        )
    arrays, lists = args[::2], args[1::2]
    last = None
    if len(args) % 2:
        last = arrays.pop()
    for labels in [*lists, *([] if last is None else [last])]:
        if not (isinstance(labels, (list, tuple)) and all(map(_is_label, labels))) or not lists:
            raise promotion.error(
                ArgumentError,
                f"fnp.einsum without a string of subscripts takes labels after each operand, got {labels!r:.60}",
                _LABELS,
            )
    letters = _letters([k for labels in lists for k in labels], last is None)
    try:
        text = ",".join("".join(map(letters.__getitem__, labels)) for labels in lists)
        if last is not None:
            text += "->" + "".join(map(letters.__getitem__, last))
    except KeyError as e:
        what = f"fnp.einsum: the label {e.args[0]!r} of the result is of no operand"
        raise promotion.error(ArgumentError, what, _LABELS) from None
    return text, tuple(asarray(a) for a in arrays)


_LABELS = (
    'give a string and operands, as in fnp.einsum("ij,jk->ik", x, y); or after each operand a list of ints from 0 to '
    "51, or of strings"
)


def _is_label(k: Any) -> bool:
    return k is Ellipsis or isinstance(k, str) or (isinstance(k, (int, np.integer)) and 0 <= int(k) < 52)


def _letters(labels: Sequence[Any], sort: bool) -> dict[Any, str]:
    """Return a letter for each label; in the order of the labels, if that of the result's dimensions depends on it."""
    found = dict.fromkeys(k for k in labels if k is not Ellipsis)
    try:
        ordered = sorted(found) if sort else [*found]
    except TypeError:
        what = "fnp.einsum: ints and strings among the labels have no order, which the result's dimensions need"
        raise promotion.error(ArgumentError, what, "give the labels of the result, too") from None
    letters = {k: chr(97 + i if i < 26 else 0x4E00 + i) for i, k in enumerate(ordered)}
    return {**letters, Ellipsis: "..."}


@cleared
@functools.lru_cache(maxsize=2048)
def _parse(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """Return the letters of each operand and of the result, with letters in place of "..."."""
    left, arrow, result = text.partition("->")
    parts = left.split(",")

    def wrong(why: str, fix: str) -> Any:
        return promotion.error(ArgumentError, f"fnp.einsum({text!r}): {why}", fix)

    if len(parts) != len(shapes):
        raise wrong(f"{len(parts)} operands are described and {len(shapes)} given", "separate operands by commas")
    odd = set(text.replace("->", "").replace("...", "")) - {","}
    odd = {c for c in odd if not c.isalnum()}
    if odd or "->" in result:
        raise wrong(f"{sorted(odd) or 'a second ->'} has no meaning", "use letters, digits, commas, one -> and ...")
    free = [chr(c) for c in range(0x3B1, 0x3B1 + 100) if chr(c) not in text]
    extra = 0
    for part, shape in zip(parts, shapes, strict=True):
        letters = part.replace("...", "")
        if "..." in part:
            extra = max(extra, len(shape) - len(letters))
        if len(letters) > len(shape) or ("..." not in part and len(letters) != len(shape)):
            raise wrong(
                f"{part!r} names {len(letters)} dimensions of an operand of shape {shape}", "use a letter for each"
            )
    dots = "".join(free[:extra])
    inputs = [
        part.replace("...", dots[extra - (len(shape) - len(part.replace("...", ""))) :]) if "..." in part else part
        for part, shape in zip(parts, shapes, strict=True)
    ]
    if arrow:
        result = result.replace("...", dots)
    else:
        every = "".join(inputs)
        result = dots + "".join(sorted(c for c in set(every) - set(dots) if every.count(c) == 1))
    if len(set(result)) != len(result) or not set(result) <= set("".join(inputs)):
        raise wrong(f"the result {result!r} has letters twice, or letters no operand has", "name each dimension once")
    _sizes(tuple(inputs), shapes, text)
    return tuple(inputs), result


def _sizes(inputs: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], text: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        for c, n in zip(letters, shape, strict=True):
            if sizes.setdefault(c, n) not in (1, n) and n != 1:
                raise promotion.error(
                    ShapeError,
                    f"fnp.einsum({text!r}): {c!r} has sizes {sizes[c]} and {n}",
                    "use another letter, or equal sizes",
                )
            sizes[c] = n if sizes[c] == 1 else sizes[c]
    return sizes


@eager_jit(static=("inputs", "result", "path", "precision", "preferred"))
def _einsum(arrays: Any, inputs: Any, result: str, path: Path, precision: Any, preferred: Any) -> Any:
    return _contract(arrays, inputs, result, path, precision, preferred, dot_general)


def _contract(
    arrays: Any, inputs: Any, result: str, path: Path, precision: Any, preferred: Any, multiply: Callable[..., Any]
) -> Any:
    """Contract along the path; `inputs` are the letters of each operand."""
    arrays = promotion.promote(*arrays)
    sizes = _sizes(tuple(inputs), tuple(aval_of(a).shape for a in arrays), ",".join(inputs))
    terms = [_one(a, letters, sizes) for a, letters in zip(arrays, inputs, strict=True)]
    for step in path:
        if len(step) < 2:
            continue
        chosen = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        while len(chosen) > 1:
            others = {c for _, letters in (*chosen[2:], *terms) for c in letters} | set(result)
            chosen = [_pair(*chosen[0], *chosen[1], others, result, precision, preferred, multiply), *chosen[2:]]
        terms.append(chosen[0])
    ((x, letters),) = terms
    gone = tuple(i for i, c in enumerate(letters) if c not in result)
    x, letters = _reduced(x, gone), [c for c in letters if c in result]
    if preferred is not None and aval_of(x).dtype != preferred:
        x = promotion.convert(x, preferred)
    if "".join(letters) != result:
        x = structural.transpose(x, permutation=tuple(letters.index(c) for c in result))
    missing = aval_of(x).shape != tuple(sizes[c] for c in result)
    return promotion.broadcast(x, tuple(sizes[c] for c in result)) if missing else x


def _reduced(x: Any, axes: tuple[int, ...]) -> Any:
    if not axes:
        return x
    if aval_of(x).dtype == dtypes.bool_:
        return reduce_or(x, axes=axes)
    return structural.reduce_sum(x, axes=axes)


def _one(x: Any, letters: str, sizes: dict[str, int]) -> tuple[Any, list[str]]:
    """Return an operand with each letter once, without dimensions of size 1 that broadcast."""
    left = list(letters)
    shape = aval_of(x).shape
    broadcasting = [i for i, c in enumerate(left) if shape[i] == 1 and sizes[c] != 1]
    if broadcasting:
        x = structural.reshape(x, shape=tuple(n for i, n in enumerate(shape) if i not in broadcasting))
        left = [c for i, c in enumerate(left) if i not in broadcasting]
    for c in dict.fromkeys(left):
        while left.count(c) > 1:  # a diagonal
            i = left.index(c)
            j = left.index(c, i + 1)
            n = len(left)
            x = structural.transpose(x, permutation=(*(d for d in range(n) if d not in (i, j)), i, j))
            on = diagonal_band(aval_of(x).shape, 0, elementwise.eq)
            x = _reduced(elementwise.select_n(on, structural.full_like(x, 0), x), (n - 2,))
            left = [*(k for d, k in enumerate(left) if d not in (i, j)), c]
    return x, left


def _pair(
    x: Any, left: list[str], y: Any, right: list[str], others: set[str], result: str, precision: Any, preferred: Any,
    multiply: Callable[..., Any],
) -> tuple[Any, list[str]]:  # fmt: skip
    """Contract two operands over letters that neither the result nor another operand has.

    The operands are exchanged if the product then has its dimensions in the order of the result.
    """
    alone = lambda own, rest: tuple(i for i, c in enumerate(own) if c not in rest and c not in others)
    for_x, for_y = alone(left, right), alone(right, left)
    x, left = _reduced(x, for_x), [c for i, c in enumerate(left) if i not in for_x]
    y, right = _reduced(y, for_y), [c for i, c in enumerate(right) if i not in for_y]
    both = [c for c in left if c in right]
    batch, summed = [c for c in both if c in others], [c for c in both if c not in others]
    at = lambda own, chosen: tuple(own.index(c) for c in chosen)
    free = lambda own: [c for c in own if c not in both]
    if [*batch, *free(left), *free(right)] != [*result] == [*batch, *free(right), *free(left)]:
        x, left, y, right, precision = y, right, x, left, exchanged(precision)
    out = multiply(
        x, y, (at(left, summed), at(right, summed)), (at(left, batch), at(right, batch)), precision, preferred
    )
    return out, [*batch, *free(left), *free(right)]
