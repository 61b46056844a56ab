import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla


@pytest.fixture
def run(tmp_path):
    """Run Python code in a new process, outside the source tree; return its stripped output, or stderr if it fails."""

    def run(text, *, paths=(), fails=False, **environment):
        search = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])
        settings = {**os.environ, "PYTHONPATH": search, "FT_CACHE": "0", **environment}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)],
            capture_output=True,
            text=True,
            env=settings,
            cwd=tmp_path,
            timeout=120,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout.strip()

    return run


@pytest.fixture
def f8():
    return ShapedArray((8,), np.float32)


@pytest.fixture
def x():
    return xla.device_put(np.arange(8, dtype=np.float32))


@pytest.fixture
def program(f8):
    """Compile a function of the emitter and f32[8] values."""

    def program(body, count=1, avals=None, **settings):
        module = xla.build("test", [f8] * count, body, **settings)
        return xla.compile(module, out_avals=avals or [f8], name="test")

    return program


@pytest.fixture
def double(program, f8):
    return program(lambda e, a: [e.op("stablehlo.add", [a, a], [f8])])


@pytest.fixture
def aligned():
    """Make a float32 array that starts `offset` elements after a 64-byte boundary; C++ aliases aligned arrays only."""

    def aligned(count, offset=0):
        memory = np.zeros(count + 64, np.float32)
        start = (-memory.ctypes.data % 64) // 4 + offset
        return memory[start : start + count]

    return aligned
