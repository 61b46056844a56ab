"""Fixtures: the digits, and networks fitted for one epoch."""

import pytest

from functorch_like.examples import data
from functorch_like.examples.models import MODELS
from functorch_like.examples.training import fit


@pytest.fixture(scope="package")
def digits():
    pytest.importorskip("sklearn")
    return data.load()


@pytest.fixture(scope="package", params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(scope="package")
def params(model, digits):
    return fit(model, digits, epochs=1)[0]
