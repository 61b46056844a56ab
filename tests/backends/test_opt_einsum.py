"""The order of einsum's contractions: settings, paths and costs."""

import numpy as np
import opt_einsum
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends

# The first two are from https://optimized-einsum.readthedocs.io: the integral transformation of the front page, and the
# example of "Optimizing contractions". The others are a chain of matrices with alternating sizes, and broadcasting.
EXAMPLES = {
    "pi,qj,ijkl,rk,sl->pqrs": [(6, 6), (6, 6), (6, 6, 6, 6), (6, 6), (6, 6)],
    "bdik,acaj,ikab,ajac,ikbd->": [(4, 3, 5, 2), (3, 2, 3, 4), (5, 2, 3, 4), (3, 4, 3, 2), (5, 2, 4, 3)],
    "ab,bc,cd,de,ef->af": [(20, 2), (2, 30), (30, 3), (3, 40), (40, 1)],
    "ij,jk,kl->li": [(4, 1), (5, 6), (1, 7)],
    "abc,cd,de->ae": [(2, 3, 4), (4, 5), (5, 6)],
}


def arrays(text):
    draw = np.random.default_rng(0).standard_normal
    return [draw(shape).astype(np.float32) for shape in EXAMPLES[text]]


def path(text, **options):
    return fnp.einsum_path(text, *arrays(text), **options)


@pytest.mark.parametrize("strategy", ["auto", "optimal", "dp", "greedy", "branch-2", "random-greedy", False, True])
@pytest.mark.parametrize("text", EXAMPLES)
def test_every_strategy_gives_the_same_sums(text, strategy):
    given = arrays(text)
    exact = np.einsum(text, *(x.astype(np.float64) for x in given), optimize=True)
    for out in (fnp.einsum(text, *given, optimize=strategy),):
        np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("text", EXAMPLES)
def test_paths_and_costs_are_those_of_opt_einsum(text):
    for strategy in ("optimal", "greedy", "dp", "branch-2"):
        theirs, info = opt_einsum.contract_path(text, *EXAMPLES[text], shapes=True, optimize=strategy)
        ours, cost = path(text, optimize=strategy)
        assert ours == [tuple(step) for step in theirs]
        assert cost.naive_flops == info.naive_cost
        if "acaj" not in text and all(len(step) == 2 for step in ours):  # the package takes diagonals first
            assert cost.flops == info.opt_cost
            assert cost.largest_intermediate == info.largest_intermediate


def test_settings_choose_the_path():
    text = "ab,bc,cd,de,ef->af"
    best, left = path(text), path(text, optimize=False)
    assert best[1].flops < left[1].flops / 3 and left[1].how == "left to right"
    with backends.opt_einsum.flags(enabled=False):
        assert path(text) == left
        assert path(text, optimize=True) == best and path(text, optimize="optimal")[0] == best[0]
    with backends.flags({"opt_einsum.strategy": "greedy"}):
        assert path(text)[1].how == "greedy"
    assert path(text)[1].how == "auto"


def test_the_setting_changes_the_program_and_the_change_back_compiles_nothing():
    text = "ab,bc,cd,de,ef->af"
    given = arrays(text)
    f = ft.jit(lambda *arrays: fnp.einsum(text, *arrays))
    order = lambda: [eqn.outputs[0].aval.shape for eqn in ft.make_jaxpr(f.__wrapped__)(*given).equations]
    best = order()
    f(*given)
    with ft.testing.count_compiles() as anew, backends.opt_einsum.flags(enabled=False):
        assert order() != best
        f(*given), f(*given)
    with ft.testing.count_compiles() as back:
        f(*given)
    assert (anew.count, back.count) == (1, 0)


def test_a_function_as_strategy():
    def from_the_right(inputs, output, sizes, memory_limit=None):
        assert sizes["a"] == 20 and memory_limit == 77
        return [(n - 2, n - 1) for n in range(len(inputs), 1, -1)]

    text = "ab,bc,cd,de,ef->af"
    with backends.opt_einsum.flags(strategy=from_the_right, memory_limit=77):
        found, info = path(text)
        assert found == [(3, 4), (2, 3), (1, 2), (0, 1)] and info.how == "from_the_right"
    assert path(text, optimize=(from_the_right, 77))[0] == found
    np.testing.assert_allclose(
        np.asarray(fnp.einsum(text, *arrays(text), optimize=found)), np.linalg.multi_dot(arrays(text)), rtol=1e-4
    )


def test_memory_limit():
    text = "ab,bc,cd,de,ef->af"
    free = path(text, optimize="greedy")[1]
    with backends.opt_einsum.flags(memory_limit=1):
        assert len(path(text, optimize="greedy")[0]) < len(free.path)
    assert path(text, optimize=("greedy", 1))[0] != list(free.path)
    chain = "ab,bc,cd->ad"
    shapes = [np.ones((50, 2)), np.ones((2, 60)), np.ones((60, 3))]
    limited = fnp.einsum_path(chain, *shapes, optimize=("optimal", 400))[1]
    assert limited.largest_intermediate <= 400


def test_explicit_paths():
    text = "abc,cd,de->ae"
    given = arrays(text)
    exact = np.einsum(text, *given)
    for explicit in (["einsum_path", (0, 1), (0, 1)], [(1, 2), (0, 1)], ((0, 1, 2),)):
        np.testing.assert_allclose(np.asarray(fnp.einsum(text, *given, optimize=explicit)), exact, rtol=1e-5)


def test_wrong_paths_and_strategies():
    einsum = lambda how: lambda: path("abc,cd,de->ae", optimize=how)
    says(refusal(einsum([(0, 3), (0, 1)])).head, "step (0, 3) of the path", "does not fit 3 operands")
    says(refusal(einsum([(0, 1)])).head, "leaves 2 operands")
    says(refusal(einsum(3.5)).remedy, "a function")
    says(refusal(einsum("gredy")).head, "did you mean 'greedy'?")
    says(refusal(lambda: setattr(backends.opt_einsum, "strategy", "best")).remedy, "'optimal'", "a function")
    refusal(lambda: setattr(backends.opt_einsum, "memory_limit", 0))
    says(refusal(lambda: setattr(backends.opt_einsum, "strateg", "dp")).head, "did you mean 'strategy'?")


def test_path_cache(monkeypatch):
    cache = backends.opt_einsum.path_cache
    calls = []

    def strategy(inputs, output, sizes, memory_limit=None):
        calls.append(inputs)
        return [(0, 1), (0, 1)]

    with backends.opt_einsum.flags(strategy=strategy):
        cache.clear()
        for n in (2, 2, 3, 2):
            fnp.einsum_path("ab,bc,cd->ad", *(np.ones((n, n)),) * 3)
        assert len(calls) == 2 and cache.size == 2
        with cache.flags(max_size=1):
            fnp.einsum_path("ab,bc,cd->ad", *(np.ones((3, 3)),) * 3)
            assert cache.size == 1
        cache.clear()
        assert cache.size == 0


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(backends.opt_einsum, "is_available", lambda: False)
    assert path("ab,bc,cd,de,ef->af", optimize="auto")[1].how == "left to right"
    rows = {row[0]: row[4] for row in backends.describe().rows}
    assert "not installed" in rows["opt_einsum.strategy"]
    says(refusal(backends.opt_einsum.get_opt_einsum).remedy, "pip install opt_einsum")


def test_with_the_package():
    assert backends.opt_einsum.is_available() and backends.opt_einsum.get_opt_einsum() is opt_einsum


def test_explain_tells_the_path():
    text = "ab,bc,cd,de,ef->af"
    told = str(ft.explain(lambda: fnp.einsum(text, *arrays(text)))())
    says(told, f"chose a path for einsum {text}", "auto, ", "operations", "largest intermediate")


def test_information_prints_its_steps():
    _, info = path("ab,bc,cd,de,ef->af")
    assert str(info).count("\n") == 1 + len(info.steps) and "path by auto" in str(info)
    assert info.speedup == info.naive_flops / info.flops
