import subprocess
import sys

import numpy as np

import functorch_like as ft
from functorch_like.testing import count_compiles, count_traces, count_transfers


def test_compiles_and_traces():
    square = ft.jit(lambda x: x * x + 3.25)
    x, y = ft.device_put(np.ones(3)), ft.device_put(np.ones(4))
    with count_compiles() as compiles, count_traces() as traces:
        square(x), square(x), square(y)
    square(ft.device_put(np.ones(5)))  # after the block: not counted
    assert (compiles.count, traces.count) == (2, 2)
    with count_compiles() as compiles, count_traces() as traces:
        square(x)
    assert (compiles.count, traces.count) == (0, 0)


def test_transfers():
    with count_transfers() as moved:
        ft.device_put(np.ones(2))
        assert moved.count == 1
    assert moved.each == {"host_to_device": 1}


def test_the_kit_comes_when_asked_for():
    text = """
import sys, functorch_like as ft
assert not any(m.startswith(("functorch_like.testing", "hypothesis")) for m in sys.modules)
assert "testing" in dir(ft)
ft.testing.assert_allclose(1.0, 1.0)
assert "hypothesis" not in sys.modules
ft.testing.strategies.arrays()
sys.modules["hypothesis"] = sys.modules["hypothesis.strategies"] = None
del sys.modules["functorch_like.testing.strategies"], ft.testing.strategies
try:
    ft.testing.strategies
except ImportError as e:
    assert "pip install 'hypothesis" in str(e), e
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
