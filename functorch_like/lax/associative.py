"""associative_scan: all prefixes of a sequence under an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import tree
from functorch_like.calling import traced_function
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import T
from functorch_like.core import aval_of, state
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.lax.carries import described
from functorch_like.lax.operands import axis_of, error
from functorch_like.primitives import structural
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.transforms.disable_jit import jit_is_disabled


def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """Combine every prefix of a sequence by an associative operation.

    Result k is `fn(... fn(fn(e[0], e[1]), e[2]) ..., e[k])`, but it is computed in about `2 * log2(n)` rounds of
    operations on whole arrays, with about `2 * n` combinations in all. (Ladner and Fischer, "Parallel Prefix
    Computation", 1980.)

    Args:
        fn: `(a, b) -> c` of pytrees like elems; associative. It is applied to many pairs at once, so it must act on
            each position along `axis` by itself, as elementwise operations do.
        elems: pytree of arrays with the same size along `axis`.
        reverse: combine suffixes instead: result k combines the elements from k to the last.
        axis: the axis along which the sequence runs.

    Returns:
        A pytree like elems.

    Raises:
        ShapeError: where leaves differ in size along the axis, or have no such axis.
        ArgumentError: where the results of fn differ from its operands in structure, shape or dtype.

    >>> lax.associative_scan(fnp.multiply, fnp.asarray([1, 2, 3, 4, 5])).tolist()
    [1, 2, 6, 24, 120]
    """
    check_callable(fn, "lax.associative_scan", "lax.associative_scan(fn, elems)")
    call = traced_function.arguments((elems,))
    size, axes = _sizes(call, axis)
    if size is None:  # no leaves
        return elems
    whole = lambda fn: lambda elems: _prefixes(fn, elems, bool(reverse), axes, size)
    if jit_is_disabled():
        return whole(fn)(elems)
    what = "associative_scan" + (f" along {axis}" if axis else "") + (" reversed" if reverse else "")
    body = traced_function.staged(fn, call, what, through=whole)
    spec = CallSpec("associative_scan", inline=state.trace.staging)
    return body.out_tree.unflatten(apply(body.jaxpr, body.consts, traced_function.operands(call), spec))


def _sizes(call: Any, axis: int) -> tuple[int | None, list[int]]:
    axes = [axis_of(axis, a.ndim, "axis") for a in call.avals]
    sizes = {a.shape[k] for a, k in zip(call.avals, axes, strict=True)}
    if len(sizes) > 1:
        paths = [f"elems{path[6:]}" for path in tree.leaf_paths(call.tree)]
        shown = ", ".join(f"{p}: {a!r}" for p, a in zip(paths, call.avals, strict=True))
        raise error(
            ShapeError,
            f"lax.associative_scan got elems with different sizes along axis {axis}: {shown}",
            "make the sizes along that axis equal",
        )
    return next(iter(sizes), None), axes


def _prefixes(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool, axes: Sequence[int], size: int) -> Any:
    leaves, structure = tree.flatten(elems)

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        outs, out_structure = tree.flatten(fn(structure.unflatten(a), structure.unflatten(b)))
        in_avals = [aval_of(x).strong() for x in a]
        if out_structure != structure or [aval_of(o).strong() for o in outs] != in_avals:
            table = traced_function.structure_diff_table(
                ["taken", "returned"], [structure, out_structure], [in_avals, [aval_of(o) for o in outs]], "elems"
            )
            raise error(
                ArgumentError,
                f"the operation of lax.associative_scan, {described(fn)}, does not return what it takes:\n{table}",
                "return the structure, shapes and dtypes that are taken",
            )
        return outs

    def part(xs: Sequence[Any], start: int, end: int, step: int = 1) -> list[Any]:
        return [_part(x, k, start, end, step) for x, k in zip(xs, axes, strict=True)]

    def prefixes(xs: Sequence[Any], n: int) -> list[Any]:
        if n < 2:
            return list(xs)
        # Prefixes of pairs are every second prefix; one more combination each gives those between.
        pairs = combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2))
        odd = prefixes(pairs, n // 2)
        if n > 2:
            rest = combine(part(odd, 0, (n - 1) // 2), part(xs, 2, n, 2))
            even = [_joined([a, b], k) for a, b, k in zip(part(xs, 0, 1), rest, axes, strict=True)]
        else:
            even = part(xs, 0, 1)
        return [_interleaved(a, b, k) for a, b, k in zip(even, odd, axes, strict=True)]

    flip = lambda xs: (
        [structural.rev(x, dimensions=(k,)) for x, k in zip(xs, axes, strict=True)] if reverse else list(xs)
    )
    return structure.unflatten(flip(prefixes(flip(leaves), size)))


def _part(x: Any, axis: int, start: int, end: int, step: int) -> Any:
    shape = aval_of(x).shape
    starts = tuple(start if d == axis else 0 for d in range(len(shape)))
    ends = tuple(end if d == axis else n for d, n in enumerate(shape))
    steps = None if step == 1 else tuple(step if d == axis else 1 for d in range(len(shape)))
    return structural.slice(x, start_indices=starts, limit_indices=ends, strides=steps)


def _joined(xs: Sequence[Any], axis: int) -> Any:
    return structural.concatenate(*xs, dimension=axis)


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Return `even[0], odd[0], even[1], ...`; `even` may have one element more."""
    shape = aval_of(odd).shape
    n = shape[axis]
    more = aval_of(even).shape[axis] - n
    first = _part(even, axis, 0, n, 1) if more else even
    one = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = _joined([structural.reshape(x, shape=one) for x in (first, odd)], axis + 1)
    flat = structural.reshape(both, shape=(*shape[:axis], 2 * n, *shape[axis + 1 :]))
    return _joined([flat, _part(even, axis, n, n + 1, 1)], axis) if more else flat
