"""The classifier of digits computes the same in another engine for StableHLO."""

import os
import subprocess

import numpy as np
import pytest

from functorch_like.examples import shipping
from functorch_like.examples.models import MODELS
from functorch_like.examples.training import start


def test_iree_computes_the_same(tmp_path):
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    images = np.random.default_rng(0).uniform(0, 1, (shipping.BATCH, 8, 8, 1)).astype("float32")
    for model in MODELS.values():
        program = shipping.classifier(model, start(model, 0).params)
        compiled = shipping.compiled_by_iree(program)
        (result,) = shipping.run_by_iree(compiled, program.fun_name, images)
        expected = np.asarray(program.call(images))
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    run_digits = os.environ.get("RUN_DIGITS")  # docs/shipping/run_digits.c, compiled
    if run_digits:
        for name, data in (("vmfb", compiled), ("images", images.tobytes()), ("expected", expected.tobytes())):
            (tmp_path / name).write_bytes(data)
        told = subprocess.run([run_digits, "vmfb", "images", "expected"], cwd=tmp_path, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        assert [int(n) for n in told.stdout.split()[:8]] == expected.argmax(-1).tolist()


def test_without_iree(monkeypatch, tmp_path, capsys):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(shipping, "import_module", missing)
    with pytest.raises(shipping.MissingIree, match=r"pip install iree-base-compiler"):
        shipping.run_by_iree(b"", "digits")
