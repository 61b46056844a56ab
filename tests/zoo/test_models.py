"""Gradients of the models in benchmarks/zoo against differences, in float64 along a random direction."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import tree

ROOT = Path(__file__).parents[2]
MODELS = sorted(p.stem for p in (ROOT / "benchmarks/zoo/models").glob("[!_]*.py"))
pytestmark = pytest.mark.skipif(not MODELS, reason="the tests run without the source tree")


@pytest.fixture(autouse=True)
def models_of_this_side(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("FT_ZOO_SIDE", raising=False)


def test_results_are_of_all_models_and_agree():
    """In benchmarks/results/zoo.json each model has the same loss after three steps here, in JAX and PyTorch."""
    run = importlib.import_module("benchmarks.zoo.run")
    results = json.loads((ROOT / "benchmarks/results/zoo.json").read_text())["runs"]
    assert run.MODELS == MODELS
    for name in MODELS:
        for side in ("ours", "jax", "torch"):
            assert run.least(results, name, side, "real", "step", "seconds"), (name, side)
    assert not run.disagreements(results, MODELS, run.SIDES, "real")


def double(x):
    x = np.asarray(x)
    return ft.device_put(x.astype(np.float64) if x.dtype.kind == "f" else x)


def test_there_are_twenty():
    assert len(MODELS) == 20


@pytest.mark.parametrize("name", MODELS)
def test_gradient(name):
    model = importlib.import_module(f"benchmarks.zoo.models.{name}")
    draw, size = np.random.default_rng(3), model.SIZES["tiny"]
    params = tree.map(double, model.init(draw, **size))
    batch = tree.map(double, model.batch(draw, **size))
    direction = tree.map(lambda p: draw.standard_normal(p.shape), params)

    @ft.jit
    def both(params, direction, step):
        moved = tree.map(lambda p, d: p + step * d, params, direction)
        value, slopes = ft.value_and_grad(model.loss)(moved, *batch)
        return value, sum(tree.leaves(tree.map(lambda g, d: (g * d).sum(), slopes, direction)))

    h = 1e-5
    (above, right), (below, left) = both(params, direction, h), both(params, direction, -h)
    slope = (right + left) / 2  # at the middle, up to h**2
    assert slope.dtype == np.float64 and abs(float(slope)) > 1e-4
    np.testing.assert_allclose(slope, (above - below) / (2 * h), rtol=1e-5, atol=1e-8)
