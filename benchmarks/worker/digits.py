"""First training step of the digits example in a new process: `PYTHON digits.py SIDE EXAMPLES WHAT`.

Prints seconds: of the "step" alone, from its call to its loss; from the "start" of the user's code, which draws
the parameters and puts the images on the device; or of the whole "process", imports included. JAX runs the same two
files, `models.py` and `training.py` of the folder EXAMPLES, under its own name for each module that they import.
"""

import sys
import time

side, examples, what = sys.argv[1:]
begin = {"process": time.perf_counter()}

if side == "jax":
    import importlib
    import types

    package = types.ModuleType("functorch_like.examples")
    package.__path__ = [examples]
    sys.modules["functorch_like.examples"] = package
    for module in ("", ".numpy", ".lax", ".nn", ".random", ".tree"):
        sys.modules["functorch_like" + module] = importlib.import_module("jax" + module)

import numpy as np  # noqa: E402

import functorch_like as ft  # noqa: E402
from functorch_like.examples.models import MODELS  # noqa: E402
from functorch_like.examples.training import BATCH, compiled_step, start  # noqa: E402

rng = np.random.default_rng(0)
images = rng.random((1437, 8, 8, 1), np.float32)  # as many as the example trains on
labels = rng.integers(0, 10, len(images), np.int32)
rows, rate = np.arange(BATCH, dtype=np.int32), np.asarray(2e-3, np.float32)
model = MODELS["conv"]

begin["start"] = time.perf_counter()
step = compiled_step(model)
state, images, labels = ft.block_until_ready((start(model, 0), ft.device_put(images), ft.device_put(labels)))
begin["step"] = time.perf_counter()
state, loss = step(state, images, labels, rows, rate)
float(loss)
print(time.perf_counter() - begin[what])
