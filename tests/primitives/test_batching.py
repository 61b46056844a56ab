"""The batch rule of every primitive equals a loop, for every combination of mapped axes."""

import numpy as np
import pytest
from support.oracle import reference
from support.primitive_checks import check_batch, check_batch_of_nothing
from support.primitive_samples import all_cases, ref

from functorch_like.core import BatchAxis, NotDefined, aval_of
from functorch_like.errors import FtError

CASES = [
    pytest.param(c, id=c.label) for c in all_cases() if not isinstance(c.prim.batch, NotDefined) and c.sample.operands
]


@pytest.mark.parametrize("case", CASES)
def test_vmap_is_a_loop(case):
    check_batch(case)


@pytest.mark.parametrize("case", CASES)
def test_vmap_over_nothing_gives_nothing(case):
    check_batch_of_nothing(case)


def elementwise(case):
    try:
        case.prim.shape(*[aval_of(x).update(shape=()) for x in case.draw()], **case.sample.params)
    except FtError:  # for example, it takes matrices
        return False
    shapes = {o.shape for o in case.sample.operands}
    return not case.sample.params and len(shapes) == 1 and {o.shape for o in ref(case, case.draw())} == shapes


@pytest.mark.parametrize("case", [p for p in CASES if p.values[0].index == 1 and elementwise(p.values[0])])
def test_operands_mapped_alike_are_not_moved(case):
    """An elementwise primitive whose operands share the mapped axis is applied once and leaves the axis there."""
    dim = min(1, case.sample.operands[0].ndim)
    args = [np.stack(case.variants(k, 3), dim) for k in range(len(case.sample.operands))]
    with reference() as trace:
        _, where = case.prim.batch(BatchAxis(3), args, [dim] * len(args), **case.sample.params)
    assert trace.bound == [case.prim]
    assert set(where if case.prim.multiple_results else [where]) == {dim}
