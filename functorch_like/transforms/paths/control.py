"""Branches and loops as primitives: the parts of programs of paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import aval_of
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.higher_order.control_flow.cond import cond
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.control_flow.while_loop import while_
from functorch_like.primitives.reductions.reductions import reduce_and
from functorch_like.transforms.paths.words import Words, constant_words, staged_words

Values = list[Any]
INDEX = np.dtype(np.int32)


def choose(index: Any, branches: Sequence[Callable[[], Values]], name: str) -> Values:
    """Return the results of the branch of an int32 index; all of them give the same strong avals."""
    if len(branches) == 1:
        return branches[0]()
    consts, jaxprs = united([stage(branch, [], name=name, chain="") for branch in branches])
    return list(cond(index, *consts, branches=jaxprs))


def loop(more: Callable[..., Any], body: Callable[..., Values], start: Values, name: str) -> Values:
    """Return the values after the last step: `body` is applied while `more` holds."""
    avals = [aval_of(x) for x in start]
    test, test_consts = stage(lambda *xs: [more(*xs)], avals, name=name, chain="")
    step, consts = stage(body, avals, name=name, chain="")
    return list(
        while_(
            *test_consts, *consts, *start,
            cond_jaxpr=test, body_jaxpr=step, cond_nconsts=len(test_consts), body_nconsts=len(consts),
        )
    )  # fmt: skip


def which(x: Any, cases: Sequence[Words]) -> Any:
    """Return the position of a value among words, as int32; their number where it is none of them."""
    if aval_of(x).dtype == dtypes.bool_ and not aval_of(x).shape:
        truth = structural.convert_element_type(x, new_dtype=INDEX, weak_type=False)
        order = [cases.index((k,)) if (k,) in cases else len(cases) for k in (0, 1)]
        if order == [0, 1]:
            return truth
        return elementwise.select_n(x, *(np.array(k, INDEX) for k in order))
    words, index = staged_words(x), np.array(len(cases), INDEX)
    for k, case in enumerate(cases):
        same = reduce_and(elementwise.eq(words, constant_words(case)), axes=(0,))
        index = elementwise.select_n(same, index, np.array(k, INDEX))
    return index


def strong(x: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """Return a value without its weak type; in a given dtype."""
    aval = aval_of(x)
    dtype = aval.dtype if dtype is None else dtype
    if not aval.weak_type and aval.dtype == dtype:
        return x
    return structural.convert_element_type(x, new_dtype=dtype, weak_type=False)
