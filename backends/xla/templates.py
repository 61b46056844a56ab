"""Templates: operations that a lowering rule has written for one equation, to be written again without the rule.

Programs apply a primitive to the same shapes over and over. A rule depends on avals and parameters, so that it writes
the same operations for other operands. The rule takes longer to choose them than C++ to make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Template(NamedTuple):
    """Operations of one result each, without their operands.

    Attributes:
        steps: for each operation its name, result types, attributes, region (of a reduction: its operation and type),
            and the positions of its operands among the equation's operands and the values of earlier steps. A step
            without a name is the constant of that key.
        single: whether it is one operation, of all operands in their order.
        returned: positions of the results.
        several: whether the rule returns a list.
    """

    steps: list[tuple[str | None, Any, Any, Any, Sequence[int]]]
    single: bool
    returned: list[int]
    several: bool


def template_of(operands: Sequence[Any], written: Sequence[Any], out: Any) -> Template | bool | None:
    """The template of the operations that a rule has written, and of its results.

    Args:
        operands: operands of the equation.
        written: name, types, attributes, region, operands and value of each operation.
        out: the results of the rule.

    Returns:
        The template; False if the rule used values other than these operands; None if two operands are one value, so
        that their roles cannot be distinguished, and a later equation has to decide.
    """
    count = len(operands)
    places = {id(x): i for i, x in enumerate(operands)}
    made: dict[int, int] = {}
    for i, step in enumerate(written):
        made.setdefault(id(step[-1]), count + i)  # a rule may get the same constant again
    if len(places) < count or not places.keys().isdisjoint(made):
        return None
    places.update(made)
    several = isinstance(out, (list, tuple))
    try:
        steps = [
            (name, types, attrs, fold, [places[id(x)] for x in taken]) for name, types, attrs, fold, taken, _ in written
        ]
        returned = [places[id(x)] for x in (out if several else (out,))]
    except KeyError:
        return False
    if not written:
        return False
    name, _, _, fold, taken = steps[0]
    plain = len(steps) == 1 and name is not None and fold is None and taken == list(range(count))
    return Template(steps, plain and returned == [count] and not several, returned, several)
