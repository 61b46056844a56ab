"""One generation in one worker: join the others, agree on a state, and take steps until something changes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like import tree
from functorch_like.arrays.devices import device_put
from functorch_like.backends.xla.mesh import make_mesh
from functorch_like.backends.xla.named_sharding import NamedSharding
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.distributed import lifecycle
from functorch_like.distributed.elastic import transfer
from functorch_like.distributed.elastic.checkpoints import Checkpoints
from functorch_like.distributed.elastic.host_state import HostState
from functorch_like.errors import DistributedError
from functorch_like.sharding.process_local import make_array_from_process_local_data
from functorch_like.transforms.jit import jit

#: Exit statuses of a child, besides 0 for a run that has taken all of its steps.
LEFT, LOST, FAILED = 64, 65, 66
#: Seconds to wait for a state from another worker, and at the end of a generation for the others.
_SHARE_TIMEOUT = 600.0
#: Seconds that news of a lost worker may come after the error that it caused.
_NEWS_TIMEOUT = 1.0


class Run(NamedTuple):
    """The arguments of `elastic_loop`."""

    step: Callable[[Any, Any], Any]
    batches: Callable[[int, int, int], Any]
    steps: int
    report: Callable[[int, Any], Any] | None
    shardings: Callable[[Any, Any], Any] | None
    axis: str
    save_every: int
    checkpoints: Checkpoints | None
    checkpoint_every: int


class Place(NamedTuple):
    """The place of a worker in a generation.

    Attributes:
        rank: its number.
        count: of workers.
        address: of the generation's coordinator.
        heartbeat_timeout: seconds of silence after which a worker counts as frozen.
    """

    rank: int
    count: int
    address: str
    heartbeat_timeout: float


def compute(run: Run, state: HostState, place: Place) -> int:
    """Take part in a generation, in a child of the keeper; return the exit status."""
    try:
        os.environ[lifecycle.LAUNCHER_HAS_COORDINATOR] = "1"
        os.environ["FT_COORDINATOR_ADDRESS"] = place.address
        os.environ["FT_NUM_PROCESSES"], os.environ["FT_PROCESS_ID"] = str(place.count), str(place.rank)
        lifecycle.initialize(
            cluster_detection_method="plain",
            heartbeat_timeout_seconds=place.heartbeat_timeout,
            # Other workers may spend long in `report` of the last step. If they end or freeze, this is noticed earlier.
            shutdown_timeout_seconds=_SHARE_TIMEOUT,
        )
        state.enter("waiting for a state", state.step)
        joined = lifecycle.joined()
        if joined is not None:
            transfer.share(state, joined.member, _SHARE_TIMEOUT)
        finished = take_steps(run, state)
        state.enter("ending", state.step)
        lifecycle.shutdown()
    except DistributedError as error:
        print(f"functorch_like: the generation has ended: {error.reason}", file=sys.stderr)
        return LOST
    except BaseException:
        return _failure()
    return 0 if finished else LEFT


def _failure() -> int:
    """Return LOST if another worker's end may be the cause of an error, FAILED otherwise."""
    joined = lifecycle.joined()
    if joined is not None and joined.member.loss(wait=_NEWS_TIMEOUT):
        return LOST
    traceback.print_exc()
    return FAILED


def take_steps(run: Run, state: HostState) -> bool:
    """Take steps until all are taken, or a newcomer waits; return True in the first case.

    The host's state is the newest one when this returns.
    """
    rank, count = _place()
    mesh = make_mesh((-1,), (run.axis,))
    step = _Step(run, mesh)
    number, values, leaving = state.step, step.place_state(state.read()), False
    while number < run.steps and not leaving:
        state.enter("in batches", number)
        batch = step.place_batch(run.batches(number, rank, count))
        flag = step.place_flag(state.someone_waits)
        state.enter("in a step" if step.is_compiled else "compiling", number)
        values, report, waiting = step(values, batch, flag)
        number += 1
        if number % run.save_every == 0 or number == run.steps:
            leaving = float(waiting) > 0  # the same sum in all workers, at the same step
            state.write(number, step.to_host(values))
            state.enter("saving", number)
            if (
                run.checkpoints is not None
                and rank == 0
                and (number % run.checkpoint_every == 0 or number == run.steps)
            ):
                run.checkpoints.save(state)
        if run.report is not None:
            state.enter("in report", number)
            run.report(number, report)
    return number >= run.steps


def _place() -> tuple[int, int]:
    joined = lifecycle.joined()
    return (0, 1) if joined is None else (joined.member.rank, joined.member.count)


class _Step:
    """The user's step, compiled for the mesh of a generation."""

    def __init__(self, run: Run, mesh: Any) -> None:
        self._mesh, self._shardings, self._axis = mesh, run.shardings, run.axis
        self._whole = NamedSharding(mesh, PartitionSpec())
        self._split = NamedSharding(mesh, PartitionSpec(run.axis))
        self._state_shardings: Any = self._whole
        self._user_step = run.step
        self._compiled: Any = None
        self._gather: Any = None
        self.is_compiled = False

    def place_state(self, state: Any) -> Any:
        """Put a host's state on the devices."""
        if self._shardings is not None:
            self._state_shardings = self._shardings(state, self._mesh)
            self._gather = jit(lambda state: state, out_shardings=self._whole)
        self._compiled = self._compile()
        return device_put(state, self._state_shardings)

    def _compile(self) -> Any:
        user_step = self._user_step

        def step(state: Any, batch: Any, flags: Any) -> Any:
            new, report = user_step(state, batch)
            return new, report, flags.sum()

        step.__name__ = getattr(user_step, "__name__", "step")
        return jit(step, out_shardings=(self._state_shardings, self._whole, self._whole), donate_argnums=0)

    def place_batch(self, batch: Any) -> Any:
        """Make arrays over all devices of the parts that this process has."""
        return tree.map(self._place_part, batch)

    def _place_part(self, part: Any) -> Any:
        return make_array_from_process_local_data(self._split if np.ndim(part) else self._whole, part)

    def place_flag(self, value: bool) -> Any:
        """Return an array with a number for each device: 1 in a worker with notice of a newcomer."""
        flags = np.full(len(self._mesh.local_devices), float(value), np.float32)
        return make_array_from_process_local_data(self._split, flags)

    def __call__(self, state: Any, batch: Any, flags: Any) -> Any:
        results = self._compiled(state, batch, flags)
        results[2].block_until_ready()
        self.is_compiled = True
        return results

    def to_host(self, state: Any) -> list[np.ndarray[Any, Any]]:
        """Return the leaves of a state in host memory, each of them whole."""
        whole = state if self._gather is None else self._gather(state)
        return [np.asarray(leaf) for leaf in tree.leaves(whole)]
