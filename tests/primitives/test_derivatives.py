"""The jvp and transpose rules of every primitive, checked by finite differences and adjointness."""

import pytest
from support.primitive_checks import check_adjoint, check_jvp, check_second, check_transpose, linear_sets, reversible
from support.primitive_samples import differentiable

from functorch_like.core import NotDefined

ALL = [pytest.param(c, id=c.label) for c in differentiable()]
SMOOTH = [pytest.param(c, id=c.label) for c in differentiable(smooth=True)]
REVERSE = [p for p in ALL if reversible(p.values[0])]
TWICE = [p for p in SMOOTH if reversible(p.values[0])]
LINEAR = [
    pytest.param(c, id=c.label)
    for c in differentiable()
    if (c.prim.partial_eval is None or c.prim.name == "scan") and not isinstance(c.prim.transpose, NotDefined)
]


@pytest.mark.parametrize("case", SMOOTH)
def test_jvp_is_the_finite_difference(case):
    check_jvp(case)


@pytest.mark.parametrize("case", REVERSE)
def test_vjp_is_the_adjoint_of_jvp(case):
    check_adjoint(case)


@pytest.mark.parametrize("case", TWICE)
def test_second_derivative_is_the_finite_difference_of_the_first(case):
    check_second(case)


@pytest.mark.parametrize("case", LINEAR)
def test_transpose_is_the_adjoint_of_the_meaning(case):
    check_transpose(case)


def test_every_transpose_rule_is_reached():
    """Every primitive with a transpose rule is linear in some operands, so that the test above covers the rule."""
    reached: dict[str, int] = {}
    for param in LINEAR:
        case = param.values[0]
        reached[case.prim.name] = reached.get(case.prim.name, 0) + len(linear_sets(case))
    assert [name for name, count in reached.items() if not count] == []
