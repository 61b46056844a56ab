"""Hypothesis strategies of random programs with nested transformations."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

from functorch_like.testing.programs import NESTS, OPS, Program, Step


@st.composite
def programs(
    draw: Any,
    depth: int = 2,
    ranks: tuple[int, int] | None = None,
    rank: int | None = None,
    smooth: bool = False,
    most: int = 4,
) -> Program:
    """Functions of two values of rank 0 or 1, with transformations nested in them.

    A program prints as what it computes. Vectors have `programs.N` elements.

    Args:
        depth: of the nested transformations.
        ranks: of the two arguments; left out, drawn.
        rank: of the result; left out, drawn.
        smooth: only programs that have derivatives everywhere.
        most: steps.

    >>> from hypothesis import given
    >>> @given(programs(depth=1))
    ... def test_jit_changes_nothing(f):
    ...     x, w = (ft.device_put(np.full((3,) * rank, 0.5)) for rank in f.ranks)
    ...     ft.testing.assert_allclose(ft.jit(f)(x, w), f(x, w), rtol=1e-8, atol=1e-8)
    """
    rank_of = st.integers(0, 1)
    given = ranks or (draw(rank_of), draw(rank_of))
    known = list(given)
    steps: list[Step] = []
    nest_at = draw(st.integers(0, 1)) if depth else -1  # at least one transformation at every depth
    for n in range(draw(st.integers(2 if depth else 1, most))):
        if depth and (n == nest_at or draw(st.integers(0, 3)) == 0):
            steps.append(_nest(draw, known, depth, smooth))
            known.append(_rank_of_nest(steps[-1], known))
            continue
        fitting = [op for op in OPS if (op.smooth or not smooth) and all(t is None or t in known for t in op.takes)]
        op = draw(st.sampled_from(fitting))
        # The newest values come first, so that programs are deep rather than wide.
        at = lambda takes: [k for k in reversed(range(len(known))) if takes is None or known[k] == takes]
        operands = tuple(draw(st.sampled_from(at(takes))) for takes in op.takes)
        steps.append(Step(op, operands))
        known.append(max(known[k] for k in operands) if op.gives is None else op.gives)
    return Program(given, steps, draw(rank_of) if rank is None else rank)


def _nest(draw: Any, known: list[int], depth: int, smooth: bool) -> Step:
    kind = draw(st.sampled_from(sorted(NESTS)))
    a, b, c = (draw(st.sampled_from(range(len(known) - 1, -1, -1))) for _ in range(3))
    free = (draw(st.integers(0, 1)), draw(st.integers(0, 1)))
    ranks = (known[a], known[b]) if NESTS[kind][1] else free
    inner = draw(programs(depth - 1, ranks=ranks, smooth=smooth, most=3))
    return Step(kind, (a, b, c), inner, draw(st.integers(0, 11)))


def _rank_of_nest(step: Step, known: list[int]) -> int:
    inner, p = step.inner, step.variant
    assert inner is not None
    x, w = inner.ranks
    match step.what:
        case "vmap":
            return 1
        case "grad":
            return w if p % 2 else x
        case "value_and_grad" | "vjp" | "scan" | "fori_loop":
            return x
        case "jvp" | "linearize" | "jit" | "cond" | "checkpoint":
            return inner.rank
    raise AssertionError(step.what)
