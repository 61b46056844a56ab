"""`assert_deterministic`: an assertion that a function gives the same bits in each run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import tree
from functorch_like.backends import settings, xla
from functorch_like.errors import ArgumentError
from functorch_like.transforms.jit import jit

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


#: The program of a fresh process.
_RUN = "import sys; from functorch_like.testing.determinism import run; run(*sys.argv[1:])"


def assert_deterministic(fun: Callable[..., object], *args: PyTree, runs: int = 3) -> None:
    """Fail unless `fun` gives the same bits in each of several fresh processes, where it is compiled anew.

    It is traced here, twice, under the settings in force: both traces must give the same program. The
    processes then compile and run that program, without the programs kept on disk.

    Args:
        fun: takes and returns pytrees of arrays.
        args: what it is called with.
        runs: how many processes.

    Raises:
        AssertionError: where bits differ; names which output, and by how much.
        ArgumentError: for a function that calls back into Python, which does not exist in another process.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.testing.assert_deterministic(lambda x: fnp.sum(fnp.sin(x)), np.arange(5.0), runs=2)
    """
    lowered = [jit(lambda *args: fun(*args), keep_unused=True).lower(*args) for _ in range(2)]
    text = lowered[0].as_text()
    if lowered[1].as_text() != text:
        raise AssertionError("the function is not the same program each time it is traced: something in it is random")
    if "python_cpu_callback" in text or "python_gpu_callback" in text:
        raise ArgumentError(
            "the function calls back into Python, and other processes do not have its callbacks",
            fix="take pure_callback, io_callback and debug prints out of it",
        )
    device = lowered[0].device
    inputs = [np.asarray(x) for x in [*lowered[0].traced.consts, *tree.leaves(args)]]
    avals = [*lowered[0].traced.jaxpr.in_avals]
    task = {
        "text": text,
        "inputs": [np.asarray(x, aval.dtype) for x, aval in zip(inputs, avals, strict=True)],
        "outputs": [(aval.shape, aval.dtype) for aval in lowered[0].traced.jaxpr.out_avals],
        "options": dict(settings.compile_options(device.platform)),
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "task").write_bytes(pickle.dumps(task))
        results = [_elsewhere(folder, device.platform, n) for n in range(runs)]
    names = tree.leaf_paths(lowered[0].out_tree)
    for n, result in enumerate(results[1:], 1):
        for name, first, other in zip(names, results[0], result, strict=True):
            if first.tobytes() != other.tobytes():
                raise AssertionError(
                    f"output {name or 'x'} has other bits in run {n} than in run 0: {_gap(first, other)}"
                )


def _elsewhere(folder: str, platform: str, number: int) -> list[np.ndarray[Any, Any]]:
    out = Path(folder) / f"result{number}"
    # This process may hold most of a GPU's memory: the other one takes only what it needs.
    environment = {**os.environ, "FT_CACHE": "0", "FT_PLATFORM": platform, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(Path(folder) / "task"), str(out)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"the function fails in a fresh process:\n{done.stderr[-2000:]}")
    return pickle.loads(out.read_bytes())


def _gap(first: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> str:
    apart = np.asarray(first != other)
    text = f"{int(apart.sum())} of {apart.size} elements differ"
    if first.dtype.kind not in "biu" and apart.any():
        gap = np.abs(np.asarray(first, np.complex128) - np.asarray(other, np.complex128))
        text += f", by {np.nanmax(gap):.3g} at most"
    return text


def run(task: str, out: str) -> None:
    """Compile the program in a file, run it, and write the results: the work of a fresh process."""
    from functorch_like.avals import ShapedArray

    job = pickle.loads(Path(task).read_bytes())
    avals = [ShapedArray(shape, dtype) for shape, dtype in job["outputs"]]
    program = xla.compile(xla.parse_module(job["text"]), out_avals=avals, options=job["options"], name="task")
    results = program.execute([xla.device_put(x) for x in job["inputs"]])
    Path(out).write_bytes(pickle.dumps([np.asarray(x) for x in results]))
