"""Errors for custom rules that return a wrong structure, shape or dtype."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.calling.traced_function import structure_diff_table
from functorch_like.core import ArrayImpl, Tracer, aval_of, is_value
from functorch_like.errors import DtypeError, FtError, ShapeError, TreeError
from functorch_like.source_info import Line, name_of
from functorch_like.transforms.custom.symbolic_zeros import given_aval, is_zero
from functorch_like.transforms.tangents import error_context


def summary(x: Any) -> str:
    """Describe the result of a rule in few words."""
    if isinstance(x, (tuple, list)):
        return f"a {type(x).__name__} of {len(x)}"
    return repr(aval_of(x)) if isinstance(x, (ArrayImpl, Tracer)) else f"{x!r:.60}"


class Column(NamedTuple):
    """One side of a comparison: its title, a structure, and the avals of its leaves."""

    title: str
    treedef: Any
    avals: Sequence[ShapedArray]


class Report(NamedTuple):
    """Errors about the result of one function of the user's.

    Attributes:
        rule: the function.
        of: the function with rules that it belongs to.
        avals: of the arguments of the call.
    """

    rule: Any
    of: Any
    avals: Sequence[ShapedArray]

    @property
    def name(self) -> str:
        """Name of the function in messages."""
        own, of = name_of(self.rule), name_of(self.of)
        return of if self.rule is self.of else f"{own}, a rule of {of}," if own != "<lambda>" else f"a rule of {of}"

    def error(self, kind: type[FtError], reason: str, fix: str) -> FtError:
        """An error with the line of the function that returned something wrong."""
        code = getattr(inspect.unwrap(self.rule), "__code__", None)
        line = "" if code is None else str(Line(code.co_filename, code.co_firstlineno, code.co_name))
        operation = f"{name_of(self.of)}({', '.join(map(repr, self.avals))})"
        return kind(reason, fix=fix, rule=line, operation=operation, **error_context())

    def pair(self, returned: Any, meaning: str) -> Sequence[Any]:
        """Return the result as the pair that it must be, or raise."""
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            reason = f"{self.name} returned {summary(returned)}, not a pair"
            raise self.error(TreeError, reason, f"return {meaning}")
        return returned

    def check_values(self, leaves: Sequence[Any], treedef: Any) -> None:
        """Refuse results that are not arrays."""
        for k, leaf in enumerate(leaves):
            if not is_value(leaf) and not is_zero(leaf):
                path = tree.leaf_paths(treedef)[k]
                at = f" at {path}" if path else ""
                reason = f"{self.name} returned {leaf!r:.60} of type {type(leaf).__name__}{at}"
                raise self.error(DtypeError, reason, "return arrays, numbers, None, or pytrees of these")

    def check(self, expected: Column, returned: Column, fix: str) -> None:
        """Compare the returned leaves with the expected ones; raise where they differ."""
        alike = expected.treedef == returned.treedef
        if alike and list(expected.avals) == list(returned.avals):
            return
        shapes = alike and [a.shape for a in expected.avals] != [b.shape for b in returned.avals]
        kind = ShapeError if shapes else DtypeError if alike else TreeError
        columns = (expected, returned)
        table = structure_diff_table(
            [c.title for c in columns], [c.treedef for c in columns], [c.avals for c in columns]
        )
        raise self.error(kind, f"{self.name} does not return what it should:\n{table}", fix)

    def derivative(
        self, title: str, treedef: Any, leaves: Sequence[Any], expected: Column, primals: Sequence[ShapedArray]
    ) -> None:
        """Refuse tangents or cotangents that do not fit their primals, of avals `primals`."""
        self.check_values(leaves, treedef)
        alike = treedef == expected.treedef
        pairs = zip(leaves, expected.avals, primals, strict=True) if alike else [(x, None, None) for x in leaves]
        returned = Column(title, treedef, [given_aval(*each) for each in pairs])
        self.check(expected, returned, "give it the structure, shapes and dtypes of what it belongs to; None is zero")
