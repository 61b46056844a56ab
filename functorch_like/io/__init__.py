"""Pytrees in safetensors files: saving, restoring, and checkpoints of a training loop.

It needs the safetensors library: `pip install "functorch_like[io]"`. Nothing in a file is executed.

>>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile, os
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> ft.io.save(path, {"w": fnp.ones((2, 3), "bfloat16"), "step": 7})  # doctest: +SKIP
>>> ft.io.load(path)["step"]  # doctest: +SKIP
7
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.io.loading import describe as describe
    from functorch_like.io.loading import load as load
    from functorch_like.io.manager import CheckpointManager as CheckpointManager
    from functorch_like.io.saving import save as save
    from functorch_like.io.saving import save_async as save_async
