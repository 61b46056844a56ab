"""Symbolic dimensions of exported programs: `b`, `2*t + 1`, and their constraints."""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functorch_like.errors import ArgumentError, ShapeError

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.GtE: operator.ge, ast.LtE: operator.le, ast.Gt: operator.gt, ast.Lt: operator.lt,
}  # fmt: skip
_CALLED: dict[str, Callable[..., int]] = {"mod": operator.mod, "floordiv": operator.floordiv, "max": max, "min": min}

#: Syntax of expressions that do not round: such an expression is linear if its values at 0, 1, ... 5 lie on a line.
_POLYNOMIAL = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Constant, ast.Name, ast.Load)

#: Sizes at which a program is tried, by range: an operation may be lowered differently for small arrays and large ones.
_RANGES = (range(9, 60), range(130, 400), range(1030, 2100))
#: The same, where constraints leave too few of these.
_OTHER_RANGES = (range(2, 9), range(64, 4097, 64), range(512, 16385, 512), range(2100, 20000))


class Scope:
    """Names of dimensions that belong together, and constraints on them.

    Args:
        constraints: comparisons such as "b >= 2", "mod(b, 8) == 0" or "t <= 2*b".
    """

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        self.constraints = tuple(constraints)
        self.parsed = [_parsed(c, ast.Compare) for c in self.constraints]

    def check(self, values: Mapping[str, int], name: str) -> None:
        """Raise ShapeError where dimensions do not fulfil the constraints."""
        for text, parsed in zip(self.constraints, self.parsed, strict=True):
            if not _value(parsed, values, text):
                shown = ", ".join(f"{k} = {v}" for k, v in values.items())
                raise ShapeError(
                    f"{name} was exported for {text}, and is called with {shown}",
                    fix="pass such sizes, or export it anew",
                )

    def allows(self, values: Mapping[str, int]) -> bool:
        """Return True where dimensions fulfil the constraints."""
        return all(_value(p, values, t) for p, t in zip(self.parsed, self.constraints, strict=True))

    def samples(self, names: Sequence[str], count: int) -> Iterator[list[dict[str, int]]]:
        """Yield `count` different values of the dimensions for each range of sizes that has so many."""
        result = False
        for ranges in (_RANGES, _OTHER_RANGES):
            for sizes in ranges:
                values = self._samples(names, sizes, count)
                if len(values) == count:
                    result = True
                    yield values
            if result:
                return

    def _samples(self, names: Sequence[str], sizes: range, count: int) -> list[dict[str, int]]:
        rng = np.random.default_rng(0)
        choices = [rng.permutation(np.asarray(sizes)).tolist() for _ in names]
        samples: list[dict[str, int]] = []
        for values in itertools.islice(itertools.product(*choices), 20000) if len(names) < 3 else _drawn(rng, choices):
            made = dict(zip(names, values, strict=True))
            if len(set(values)) < len(values) or any(made[k] == f[k] for f in samples for k in names):
                continue
            if self.allows(made):
                samples.append(made)
                if len(samples) == count:
                    break
        return samples


def _drawn(rng: Any, choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    for _ in range(20000):
        yield tuple(int(rng.choice(c)) for c in choices)


class Dimension:
    """A size that is known when an exported program is called.

    Args:
        text: a name, or an expression of names and ints.
        scope: of the names.
    """

    symbolic = True
    __slots__ = ("_terms", "_text", "names", "parsed", "scope")

    def __init__(self, text: str, scope: Scope) -> None:
        self._text, self.scope, self.parsed = text, scope, _parsed(text, ast.expr)
        self.names = tuple(sorted({n.id for n in ast.walk(self.parsed) if isinstance(n, ast.Name)} - _CALLED.keys()))
        self._terms: dict[tuple[str, ...], int] | None = None

    @property
    def text(self) -> str:
        """The expression, without needless parentheses."""
        if not self._text:
            self._text = ast.unparse(self.parsed)
        return self._text

    @property
    def terms(self) -> dict[tuple[str, ...], int]:
        """The expression as a polynomial; see `_polynomial`."""
        if self._terms is None:
            self._terms = _polynomial(self.parsed)
        return self._terms

    def at(self, values: Mapping[str, int]) -> int:
        """The size for values of the names."""
        return _value(self.parsed, values, self.text)

    def _with(self, other: Any, operator_: ast.operator, reflected: bool = False) -> Dimension:
        if isinstance(other, Dimension):
            node, names = other.parsed, tuple(sorted({*self.names, *other.names}))
        else:
            node, names = _constant(operator.index(other)), self.names
        left, right = (node, self.parsed) if reflected else (self.parsed, node)
        made = object.__new__(Dimension)
        made._text, made._terms, made.scope, made.names = "", None, self.scope, names
        made.parsed = ast.BinOp(left, operator_, right)
        return made

    def __add__(self, other: Any) -> Dimension:
        return self._with(other, ast.Add())

    def __mul__(self, other: Any) -> Dimension:
        return self._with(other, ast.Mult())

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Dimension:
        return self._with(other, ast.Sub())

    def __floordiv__(self, other: Any) -> Dimension:
        return self._with(other, ast.FloorDiv())

    def __mod__(self, other: Any) -> Dimension:
        return self._with(other, ast.Mod())

    def __rsub__(self, other: Any) -> Dimension:
        return self._with(other, ast.Sub(), reflected=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dimension) and (self.parsed is other.parsed or self.terms == other.terms)

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return self.text

    def solution(self, size: int, known: Mapping[str, int]) -> tuple[str, int] | None:
        """The name whose value follows from a size, with its value; None where it does not follow.

        Args:
            size: of the dimension.
            known: values of other names.
        """
        unknown = [n for n in self.names if n not in known]
        if len(unknown) != 1 or not all(isinstance(n, _POLYNOMIAL) for n in ast.walk(self.parsed)):
            return None
        zero, one, *more = (self.at({**known, unknown[0]: k}) for k in range(6))
        step = one - zero
        if step == 0 or any(later != zero + k * step for k, later in enumerate(more, 2)) or (size - zero) % step:
            return None
        return unknown[0], (size - zero) // step


def symbolic_shape(
    shape: str | None,
    constraints: Sequence[str] = (),
    *,
    scope: Scope | None = None,
    like: Sequence[int] | None = None,
) -> tuple[int | Dimension, ...]:
    """A shape with dimensions that are known when the exported program is called.

    Args:
        shape: dimensions, separated by commas: names, ints, and expressions of both, such as "b, 2*t + 1, 3". Beside
            `like`, "_" stands for its size at this place, and "..." at the end for all further ones; None for all.
        constraints: comparisons that hold for all calls: "b >= 2", "mod(b, 8) == 0", "t <= 2*b".
        scope: a scope to share with other shapes, from `symbolic_scope(*constraints)`. Within one export, equal names
            are one dimension in any case.
        like: a shape whose sizes "_" and "..." stand for.

    Returns:
        A tuple for `ShapeDtypeStruct`.

    Raises:
        ArgumentError: for text that is no such expression, for constraints beside a scope, which has its own, and for
            placeholders without a shape that has a size for them.

    >>> import functorch_like as ft
    >>> from functorch_like import export
    >>> made = export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct(export.symbolic_shape("b, 3"), "float32"))
    >>> made.call(ft.numpy.ones((5, 3))).shape, made.call(ft.numpy.ones((7, 3))).shape
    ((5, 3), (7, 3))
    >>> export.symbolic_shape("b, ...", like=(2, 3, 4))
    (b, 3, 4)
    """
    if scope is not None and constraints:
        raise ArgumentError(
            f"symbolic_shape got the constraints {tuple(constraints)} beside a scope",
            fix="give constraints to the scope: symbolic_scope(*constraints)",
        )
    within = Scope(constraints) if scope is None else scope
    text = "..." if shape is None else shape
    try:
        parts = ast.parse(f"[{text}]", mode="eval").body
    except SyntaxError:
        parts = None
    if not isinstance(parts, ast.List):
        raise ArgumentError(f"{text!r} is not a list of dimensions", fix='write it as "b, 2*t + 1, 3"')
    match parts.elts:
        case [ast.Tuple(elts=inner)]:  # "(b, 3)"
            elements = inner
        case elements:
            pass
    made = [Dimension(dimension, within) for dimension in _filled([ast.unparse(e) for e in elements], like, text)]
    return tuple(d if d.names else d.at({}) for d in made)


def _filled(dimensions: list[str], like: Sequence[int] | None, text: str) -> list[str]:
    """Return dimensions with sizes in place of "_" and "..."."""
    rest = dimensions[-1:] == ["..."]
    if rest:
        dimensions = dimensions[:-1]
    if not rest and "_" not in dimensions:
        return dimensions
    sizes = () if like is None else tuple(like)
    if like is None or len(dimensions) > len(sizes) or (not rest and len(dimensions) < len(sizes)):
        shown = "no shape is given" if like is None else f"the shape {sizes} does not fit"
        raise ArgumentError(f"{text!r} has places for sizes, and {shown}", fix="give a shape that fits as `like`")
    filled = [str(size) if d == "_" else d for d, size in zip(dimensions, sizes, strict=False)]
    return filled + [str(size) for size in sizes[len(dimensions) :]]


def symbolic_scope(*constraints: str) -> Scope:
    """Make a scope of names of dimensions for several shapes, with constraints on them.

    Args:
        constraints: comparisons that hold for all calls, as for `symbolic_shape`.

    Returns:
        A scope for the argument `scope` of `symbolic_shape`.

    Raises:
        ArgumentError: for text that is no comparison of dimensions.

    >>> from functorch_like import export
    >>> scope = export.symbolic_scope("mod(b, 8) == 0")
    >>> export.symbolic_shape("b, 3", scope=scope), export.symbolic_shape("b", scope=scope)
    ((b, 3), (b,))
    """
    return Scope(constraints)


def is_symbolic_dim(size: object) -> bool:
    """Return True for a size from `symbolic_shape` that is known only at calls, False for an int.

    >>> from functorch_like import export
    >>> [export.is_symbolic_dim(d) for d in export.symbolic_shape("b, 3")]
    [True, False]
    """
    return isinstance(size, Dimension)


def solved(shapes: Sequence[Sequence[Any]], given: Sequence[Sequence[int]], name: str) -> dict[str, int]:
    """Solve for the values of the names, given the shapes of arguments.

    Raises:
        ShapeError: where the shapes have no solution, or do not determine it.
    """
    pairs = [(d, n) for shape, sizes in zip(shapes, given, strict=True) for d, n in zip(shape, sizes, strict=True)]
    values: dict[str, int] = {}
    symbols = [(d, n) for d, n in pairs if isinstance(d, Dimension)]
    for _ in symbols:  # each round may make others solvable
        values.update(found for d, n in symbols if (found := d.solution(n, values)) and found[0] not in values)
    for d, n in sorted(pairs, key=lambda pair: len(getattr(pair[0], "names", ()))):
        size = _size(d, n, values, name)
        if size != n:
            shown = ", ".join(f"{k} = {v}" for k, v in values.items())
            raise ShapeError(f"{name} takes {d!r} ({shown or 'fixed'}) where it is given {n}", fix="pass such shapes")
    return values


def _size(d: Any, given: int, values: Mapping[str, int], name: str) -> int:
    if not isinstance(d, Dimension):
        return d
    missing = sorted(set(d.names) - set(values))
    if missing:
        raise ShapeError(
            f"{name} takes a dimension {d}, and is given {given}, from which {', '.join(missing)} does not follow",
            fix="pass a size of this form; at export let one argument have each name as a dimension by itself",
        )
    return d.at(values)


def _constant(n: int) -> ast.expr:
    return ast.Constant(n) if n >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-n))


def _parsed(text: str, kind: type) -> Any:
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        node = None
    allowed = (ast.BinOp, ast.Constant, ast.Name, ast.Compare, ast.Call, ast.UnaryOp, ast.USub, ast.Load,
               *_BINARY, *_COMPARED)  # fmt: skip
    nodes = [] if node is None else list(ast.walk(node))
    comparisons = sum(isinstance(n, ast.Compare) for n in nodes)
    if (
        not isinstance(node, kind)
        or comparisons != (kind is ast.Compare)
        or not all(isinstance(n, allowed) and _plain(n) for n in nodes)
    ):
        raise ArgumentError(
            f"{text!r} is not an expression of dimensions",
            fix="use names, ints, +, -, *, //, %, mod, floordiv, max and min; in constraints ==, >=, <=, > or <",
        )
    return node


def _polynomial(node: ast.AST) -> dict[tuple[str, ...], int]:
    """An expression as the coefficient of each product of factors; equal expressions have equal ones.

    Factors are names, and quotients, remainders and functions whose operands are written in this form, too.
    """
    match node:
        case ast.Constant(value=int(value)):
            terms = {(): value}
        case ast.Name(id=name):
            terms = {(name,): 1}
        case ast.UnaryOp(operand=operand):
            terms = {factors: -n for factors, n in _polynomial(operand).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1 if isinstance(op, ast.Add) else -1
            terms = _polynomial(left)
            for factors, n in _polynomial(right).items():
                terms[factors] = terms.get(factors, 0) + sign * n
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            terms = {}
            for (a, m), (b, n) in itertools.product(_polynomial(left).items(), _polynomial(right).items()):
                factors = tuple(sorted(a + b))
                terms[factors] = terms.get(factors, 0) + m * n
        case ast.BinOp(left=left, op=op, right=right):
            terms = {(_factor("mod" if isinstance(op, ast.Mod) else "floordiv", [left, right]),): 1}
        case ast.Call(func=ast.Name(id=name), args=args):
            terms = {(_factor(name, args),): 1}
        case _:
            terms = {(ast.unparse(node),): 1}
    return {factors: n for factors, n in terms.items() if n}


def _factor(name: str, operands: Sequence[ast.AST]) -> str:
    shown = [str(sorted(_polynomial(operand).items())) for operand in operands]
    return f"{name}({', '.join(sorted(shown) if name in ('max', 'min') else shown)})"


def _plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _CALLED or node.keywords:
            return False
        return len(node.args) == 2 or (node.func.id in ("max", "min") and len(node.args) > 2)
    return not isinstance(node, ast.Compare) or len(node.ops) == 1


def _value(node: Any, values: Mapping[str, int], text: str) -> Any:
    evaluate = lambda inner: _value(inner, values, text)
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise ArgumentError(f"{name} in {text!r} is not a dimension of the arguments", fix="use their names")
            return values[name]
        case ast.UnaryOp(operand=operand):
            return -evaluate(operand)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARED[type(op)](evaluate(left), evaluate(right))
        case ast.BinOp(left=left, op=op, right=right):
            function, operands = _BINARY[type(op)], (left, right)
        case _:
            function, operands = _CALLED[node.func.id], node.args
    try:
        return function(*map(evaluate, operands))
    except ZeroDivisionError:
        raise ShapeError(f"{text!r} divides by 0 for {dict(values)}", fix="pass other sizes") from None
