"""The training loop of elastic runs, as users call it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.distributed.elastic.checkpoints import Checkpoints
from functorch_like.distributed.elastic.generation import Run, compute, take_steps
from functorch_like.distributed.elastic.host_state import HostState
from functorch_like.distributed.elastic.keeper import ADDRESS, STATE_FILE, Keeper
from functorch_like.errors import ArgumentError, DistributedError

if TYPE_CHECKING:
    from functorch_like.backends.xla.mesh import Mesh
    from functorch_like.typing import PyTree


_has_run = False  # under a launcher, whose run ends with the loop


@api_boundary.public
def elastic_loop(
    step: Callable[[PyTree, PyTree], PyTree],
    state: PyTree,
    batches: Callable[[int, int, int], PyTree],
    *,
    steps: int,
    report: Callable[[int, PyTree], object] | None = None,
    shardings: Callable[[PyTree, Mesh], PyTree] | None = None,
    axis: str = "data",
    save_every: int = 1,
    checkpoints: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    step_timeout: float = 600.0,
) -> PyTree:
    """Run a training loop over workers that may be killed, freeze, be replaced, or join meanwhile.

    Start the script with `python -m functorch_like.distributed.run --elastic --nproc 4 script.py`. Without a launcher
    the steps are taken in this process alone. With one, `step`, `batches`, `report` and `shardings` are called in a
    child of this process, which cannot use devices before the loop.

    A step is taken by all workers together, or not at all: a worker that is killed costs the steps since the last save.
    The state of a worker stays in memory as long as its launcher runs, even if all workers are killed.

    Args:
        step: `step(state, batch)`, which returns `(state, anything)`; written as for one device, and not jitted.
        state: pytree of NumPy arrays and numbers; the same in every worker. Or a function of no arguments that returns
            one.
        batches: `batches(k, rank, count)` returns this worker's part of the batch of step k, a pytree of NumPy arrays.
            Their first dimension divides by the number of the worker's devices. Arrays without dimensions are the
            same in all workers. `count` workers take part in the step; that number changes.
        steps: how many steps there are in all, with those of a checkpoint.
        report: `report(k, anything)` is called in each worker when k steps have been taken. A step may be reported
            again after a loss.
        shardings: `shardings(state, mesh)` returns shardings of the state, e.g. `fsdp_shardings`; a copy on each device
            if None.
        axis: the name of the mesh's axis.
        save_every: steps between copies of the whole state to the memory of each worker's host.
        checkpoints: folder for files; the newest one there is loaded first. None for none.
        checkpoint_every: steps between files, a multiple of `save_every`.
        step_timeout: seconds in which `batches` or `report` must return, or the process counts as frozen; twice as
            many for a compilation with the step.

    Returns:
        The last state, a pytree of NumPy arrays; equal in all workers.

    Raises:
        ArgumentError: for counts that are not positive, or a state that is not a pytree of arrays.
        DistributedError: where devices were used before, the launcher refuses this worker, or it is the second loop of
            a script under a launcher.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp, numpy as np
        >>> loss = lambda w, batch: fnp.mean((batch @ w) ** 2)
        >>> step = lambda w, batch: (w - 0.1 * ft.grad(loss)(w, batch), loss(w, batch))
        >>> w = ft.distributed.elastic_loop(step, np.ones(2), lambda k, rank, count: np.ones((8, 2)), steps=2)
        >>> w.round(3).tolist()
        [0.36, 0.36]
    """
    for name, value in (("steps", steps + 1), ("save_every", save_every), ("checkpoint_every", checkpoint_every)):
        if value < 1:
            raise ArgumentError(f"elastic_loop got {name}={value - (name == 'steps')}", fix="give a positive number")
    if checkpoint_every % save_every:
        raise ArgumentError(
            f"checkpoint_every={checkpoint_every} is not a multiple of save_every={save_every}",
            fix="checkpoints are written of states in host memory: give a multiple",
        )
    address = os.environ.get(ADDRESS)
    if address is not None and xla.started():
        raise DistributedError(
            "elastic_loop comes too late: this process has used its devices, and its children cannot",
            fix="make the state of NumPy arrays, or with a function that is called later; build arrays in `step`",
        )
    global _has_run
    if address is not None and _has_run:
        raise DistributedError(
            "elastic_loop is called again, and the launcher's run ended with the first loop",
            fix="take all steps in one loop, whose batches may depend on the number of the step; or start another run",
        )
    files = None if checkpoints is None else Checkpoints(checkpoints)
    file = os.environ.get(STATE_FILE)
    host_state = HostState(state() if callable(state) else state, file=None if file is None else int(file))
    if files is not None:
        files.load(host_state)
    run = Run(step, batches, steps, report, shardings, axis, save_every, files, checkpoint_every)
    if address is None:
        take_steps(run, host_state)
    else:
        Keeper(address, host_state, lambda state, place: compute(run, state, place), step_timeout=step_timeout).run()
        _has_run = True
    return host_state.read()
