"""Arguments with symbolic dimensions at concrete sizes, and shapes of results as expressions of the dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.avals import ShapeDtypeStruct, is_symbolic
from functorch_like.core import argument_aval
from functorch_like.errors import ArgumentError
from functorch_like.exporting.dimensions import Dimension, Scope, symbolic_shape
from functorch_like.exporting.template import Polynomial, polynomial, refusal
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


def size_at(size: int | Dimension, values: Mapping[str, int]) -> int:
    """Return a size for values of the names."""
    return size.at(values) if isinstance(size, Dimension) else size


def concrete(leaf: Any, values: Mapping[str, int]) -> Any:
    """Return a `ShapeDtypeStruct` with symbolic dimensions for values of the names, and any other leaf as it is."""
    if not is_symbolic(leaf):
        return leaf
    shape = tuple(size_at(d, values) for d in leaf.shape)
    return ShapeDtypeStruct(shape, leaf.dtype, leaf.weak_type, leaf.sharding)


def symbols_of(leaves: Sequence[Any]) -> tuple[list[Dimension], list[str], Scope]:
    """Return the symbolic dimensions of arguments, their names, and a scope of all their constraints."""
    symbols = [d for leaf in leaves if is_symbolic(leaf) for d in leaf.shape if isinstance(d, Dimension)]
    names = sorted({n for d in symbols for n in d.names})
    return symbols, names, Scope(tuple(dict.fromkeys(c for d in symbols for c in d.scope.constraints)))


def symbolic_args_specs(
    args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (), scope: Scope | None = None
) -> PyTree:
    """Return `ShapeDtypeStruct`s of arguments with symbolic dimensions, to export a function for.

    Args:
        args: a pytree of arrays, numbers or `ShapeDtypeStruct`s.
        shapes_specs: dimensions as for `symbolic_shape`, with "_" and "..." for the sizes of the argument; None for its
            own shape. One for all arguments, or a pytree that is a prefix of `args`.
        constraints: as for `symbolic_shape`.
        scope: as for `symbolic_shape`.

    Returns:
        A pytree of `ShapeDtypeStruct`s in the structure of `args`.

    Raises:
        ArgumentError: as `symbolic_shape`.
        TreeError: where `shapes_specs` is no prefix of `args`.

    >>> import functorch_like as ft
    >>> from functorch_like import export
    >>> batch = {"x": ft.numpy.ones((8, 3)), "label": ft.numpy.ones(8, "int32")}
    >>> export.symbolic_args_specs(batch, "b, ...")["x"]
    ShapeDtypeStruct(shape=(b, 3), dtype=float32)
    """
    if scope is not None and constraints:
        raise ArgumentError(
            f"symbolic_args_specs got the constraints {tuple(constraints)} beside a scope",
            fix="give constraints to the scope: symbolic_scope(*constraints)",
        )
    within = Scope(constraints) if scope is None else scope
    leaves, structure = tree.flatten(args)
    specs = tree.broadcast_prefix(shapes_specs, args, "shapes_specs")
    avals = [x if isinstance(x, ShapeDtypeStruct) else argument_aval(x) for x in leaves]
    made = [
        ShapeDtypeStruct(symbolic_shape(spec, scope=within, like=aval.shape), aval.dtype)
        for aval, spec in zip(avals, specs, strict=True)
    ]
    return structure.unflatten(made)


def too_few_sizes(scope: Scope, name: str) -> ArgumentError:
    """Make the error for constraints under which a function cannot be tried at several sizes."""
    return ArgumentError(
        f"constraints {scope.constraints} leave too few sizes below 20000 to trace {name} for", fix="use concrete sizes"
    )


def symbolic_results(
    eval_shape: Callable[..., Any], fun: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the results of `eval_shape` for arguments with symbolic dimensions, from those at some of the sizes.

    Raises:
        UnsupportedError: where structures, ranks or dtypes depend on sizes, or a size is no polynomial of them.
        ArgumentError: where constraints leave too few sizes.
    """
    name = name_of(fun)
    leaves, structure = tree.flatten((args, kwargs))
    symbols, names, scope = symbols_of(leaves)
    samples = next(scope.samples(names, 3 + len(names)), None)
    if samples is None:
        raise too_few_sizes(scope, name)
    made = []
    for values in samples:
        inputs, named = structure.unflatten([concrete(leaf, values) for leaf in leaves])
        made.append(tree.flatten(eval_shape(fun, *inputs, **named)))
    if len({out for _, out in made}) > 1:
        raise refusal(name, "its result has another structure")

    def symbolic(*results: ShapeDtypeStruct) -> ShapeDtypeStruct:
        if len({(len(x.shape), x.dtype, x.weak_type) for x in results}) > 1:
            raise refusal(name, f"a result is {', '.join(map(repr, results))}")
        sizes = zip(*(x.shape for x in results), strict=True)
        return results[0].update(shape=tuple(_expression(list(s), samples, symbols, scope, name) for s in sizes))

    return made[0][1].unflatten([symbolic(*results) for results in zip(*(out for out, _ in made), strict=True)])


def _expression(
    sizes: list[int], samples: Sequence[Mapping[str, int]], symbols: Sequence[Dimension], scope: Scope, name: str
) -> int | Dimension:
    """Return a size as an int, a dimension of the arguments, or a new expression."""
    if len(set(sizes)) == 1:
        return sizes[0]
    for symbol in symbols:
        if sizes == [symbol.at(values) for values in samples]:
            return symbol
    formula = polynomial([Fraction(size) for size in sizes], samples)
    if formula is None:
        raise refusal(name, f"a size of its results is {', '.join(map(str, sizes))} for {list(map(dict, samples))}")
    return Dimension(_text(formula), scope)


def _text(formula: Polynomial) -> str:
    divisor = math.lcm(*(c.denominator for c in formula.values()))
    terms = [(int(c * divisor), names) for names, c in formula.items() if c]
    shown = " + ".join(" * ".join([*([str(c)] if c != 1 or not names else []), *names]) for c, names in terms)
    return shown if divisor == 1 else f"({shown}) // {divisor}"
