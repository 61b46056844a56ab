"""One application of a primitive to operands that Explicit axes split, and the rules of elementwise primitives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.configuration import explicit_resolved
from functorch_like.errors import ShardingTypeError

#: Names of the axes that split one dimension.
Names = tuple[str, ...]
Axes = tuple[Names, ...]


class Case:
    """One application.

    Attributes:
        name: name of the primitive.
        avals: avals of the operands, with their types.
        outs: avals of the results, without.
        params: the parameters of the primitive.
        mesh: the mesh.
        axes: for each operand, the axes that split its dimensions.
    """

    def __init__(self, name: str, avals: list[ShapedArray], outs: list[ShapedArray], params: dict[str, Any]) -> None:
        self.name, self.avals, self.outs, self.params = name, avals, outs, params
        self.axes: list[Axes] = [((),) * a.ndim if a.explicit is None else a.explicit.axes for a in avals]
        meshes = dict.fromkeys(a.explicit.mesh for a in avals if a.explicit is not None)
        self.mesh, *others = meshes
        if others:
            raise ShardingTypeError(
                f"operands are on different meshes: {self.mesh!r} and {others[0]!r}",
                fix="reshard one of them",
            )

    def parts(self, names: Names) -> int:
        """Return the number of parts into which axes split a dimension."""
        return math.prod(self.mesh.shape[name] for name in names)

    def doubt(self, reason: str, fix: str = "") -> None:
        """Raise ShardingTypeError, except where the caller splits the result itself."""
        if not explicit_resolved.value:
            raise ShardingTypeError(
                reason,
                fix=fix or "reshard an operand before, or choose the result's: auto_axes(f, out_sharding=P(...))",
            )

    def merged(self, each: Iterable[Names], what: str) -> Names:
        """Return the axes of a dimension that several operands share; those that are not split fit the others."""
        distinct = list(dict.fromkeys(names for names in each if names))
        if len(distinct) > 1:
            self.doubt(f"{what} is split by {text(distinct[0])} and by {text(distinct[1])}")
        return distinct[0] if distinct else ()

    def whole(self, operand: int, dims: Iterable[int], why: str) -> None:
        """Raise ShardingTypeError if an operand is split along one of these dimensions, which must be whole."""
        for d in dims:
            if self.axes[operand][d]:
                by = text(self.axes[operand][d])
                self.doubt(f"dimension {d} of {self.avals[operand]!r} is split by {by}, and {why}")

    def checked(self, axes: Sequence[Names], aval: ShapedArray) -> Axes:
        """Return the axes of a result.

        Raises:
            ShardingTypeError: for an axis that would split two dimensions, or one that does not divide.
        """
        seen: set[str] = set()
        result: list[Names] = []
        for d, names in enumerate(axes):
            twice = [name for name in names if name in seen]
            if twice:
                self.doubt(f"{twice[0]!r} would split dimension {d} of the result {aval!r}, and another one, too")
                names = tuple(name for name in names if name not in seen)
            if aval.shape[d] % self.parts(names):
                self.doubt(f"dimension {d} of the result {aval!r} does not divide by {text(names)}")
                names = ()
            seen.update(names)
            result.append(names)
        return tuple(result)


def text(names: Names) -> str:
    """Return the names of axes for a message."""
    return repr(names[0]) if len(names) == 1 else repr(names)


def elementwise(case: Case) -> Axes:
    """Apply the rule of elementwise primitives: operands of the result's shape agree, others are scalars."""
    shape = case.outs[0].shape
    full = [axes for axes, aval in zip(case.axes, case.avals, strict=True) if aval.shape == shape]
    return tuple(case.merged((axes[d] for axes in full), f"dimension {d}") for d in range(len(shape)))


def same_as_operands(case: Case) -> list[Axes]:
    """Apply the rule of primitives whose results are their operands."""
    return case.axes
