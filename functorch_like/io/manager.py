"""`CheckpointManager`: the checkpoints of a training loop, of which it keeps the last and the best."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from functorch_like.calling import api_boundary
from functorch_like.distributed.lifecycle import joined
from functorch_like.errors import ArgumentError, CheckpointError
from functorch_like.io import values
from functorch_like.io.files import TEMPORARY, library, sync_folder
from functorch_like.io.loading import load
from functorch_like.io.reading import Checkpoint
from functorch_like.io.saving import INDEX, save_async_with, save_with

T = TypeVar("T")
_STEP = re.compile(r"step-(\d{12,})")


class CheckpointManager:
    """Checkpoints of a training loop in one folder, a sub-folder for each step.

    A checkpoint counts when it is complete and on disk; a process that is killed at any moment leaves those that were
    complete. An incomplete one is removed at the next `save`. One process, or one program of several processes, may
    write to a folder at a time; any may read.

    Args:
        folder: the folder, which is made if it is not there.
        keep_last: how many of the latest checkpoints to keep; None keeps all.
        best_metric: name of the metric by which checkpoints are compared.
        keep_best: how many of the best to keep besides.
        best_is: "min" or "max": which value of the metric is better. NaN is worst.
        asynchronous: write in a thread. `save` then costs the copy to the host, and waits for the write before.

    Raises:
        ArgumentError: for settings that contradict each other.
        UnsupportedError: where the safetensors library is not installed.

    >>> import functorch_like as ft, functorch_like.numpy as fnp, tempfile
    >>> with ft.io.CheckpointManager(tempfile.mkdtemp(), keep_last=2, best_metric="loss") as manager:
    ...     for step in range(4):
    ...         manager.save(step, {"w": step * fnp.ones(2)}, metrics={"loss": abs(step - 1.0)})
    >>> manager.steps(), manager.best_step()
    ([1, 2, 3], 1)
    >>> manager.restore(like={"w": fnp.zeros(2)})
    {'w': Array([3., 3.], dtype=float32)}
    """

    @api_boundary.public
    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        keep_last: int | None = 3,
        best_metric: str | None = None,
        keep_best: int = 1,
        best_is: Literal["min", "max"] = "min",
        asynchronous: bool = True,
    ) -> None:
        library()
        if keep_last is not None and keep_last < 1:
            raise ArgumentError(
                f"keep_last={keep_last!r} keeps no checkpoint", fix="keep one at least, or None for all"
            )
        if best_is not in ("min", "max") or keep_best < 0:
            raise ArgumentError(f"best_is={best_is!r}, keep_best={keep_best!r}", fix='"min" or "max", and a count')
        self._folder = Path(folder)
        self._keep_last, self._asynchronous = keep_last, asynchronous
        self._metric, self._keep_best, self._sign = best_metric, keep_best, 1.0 if best_is == "min" else -1.0
        self._pending: Future[None] | None = None
        self._metrics: dict[int, float] = {}
        self._cleaned = False

    # ---------------------------------------------------------------------------------------------------------- saving
    @api_boundary.public
    def save(self, step: int, tree: object, *, metrics: dict[str, float] | None = None) -> None:
        """Save a tree under the number of a step, and remove checkpoints that are no longer kept.

        Args:
            step: its number; a checkpoint with this number is replaced.
            tree: as for `ft.io.save`. Put everything into it that the loop needs to go on: parameters, optimizer state,
                keys, the position in the data.
            metrics: numbers to keep with it.

        Raises:
            CheckpointError: as `ft.io.save`; also for a write that was begun by the call before, and failed.
            ArgumentError: for a step that is not a count, and where the best metric is missing.
        """
        if type(step) is not int or step < 0:
            raise ArgumentError(f"step={step!r}", fix="a count: 0, 1, 2, ... (int(x) of an array)")
        if not isinstance(metrics, Mapping | None):
            raise ArgumentError(f"metrics={metrics!r} of save has no names", fix='give a dict: {"loss": value}')
        numbers = {name: float(value) for name, value in (metrics or {}).items()}
        if self._metric is not None and self._metric not in numbers:
            raise ArgumentError(
                f"metrics={numbers} lacks {self._metric!r}, by which checkpoints are compared",
                fix=f"pass metrics={{{self._metric!r}: ...}}",
            )
        self.wait()
        self._clean()
        info = {"step": step, "metrics": {name: values.encode(value) for name, value in numbers.items()}}
        if self._asynchronous:
            self._pending = save_async_with(self._path(step), tree, info, after=lambda: self._retain(step))
        else:
            save_with(self._path(step), tree, info)
            self._retain(step)

    @api_boundary.public
    def wait(self) -> None:
        """Wait until the last write is complete.

        Raises:
            CheckpointError: where it failed.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Wait until the last write is complete; the same as leaving a `with` block."""
        self.wait()

    def __enter__(self) -> CheckpointManager:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- restoring
    def steps(self) -> list[int]:
        """The steps of complete checkpoints, in order."""
        names = [_STEP.fullmatch(path.parent.name) for path in self._folder.glob(f"step-*/{INDEX}")]
        return sorted(int(name[1]) for name in names if name)

    def latest_step(self) -> int | None:
        """The last step with a complete checkpoint, or None."""
        return max(self.steps(), default=None)

    def best_step(self) -> int | None:
        """The step with the best metric, of those that are kept, the later one of equals; None without checkpoints.

        Raises:
            ArgumentError: where no metric was named.
        """
        if self._metric is None:
            raise ArgumentError("the manager compares no metric", fix='CheckpointManager(folder, best_metric="loss")')
        return next(iter(self._best_first(self.steps())), None)

    def metrics(self, step: int) -> dict[str, float]:
        """The metrics that were saved with a step.

        Raises:
            CheckpointError: where there is no such checkpoint, or it is damaged.
        """
        with Checkpoint(self._path(step), verify=False) as checkpoint:
            saved = checkpoint.manifest.info.get("metrics", {})
            return {str(name): values.decode(value) for name, value in saved.items()}

    @overload
    def restore(self, step: int | None = None, *, like: None = None, shardings: object = None) -> Any: ...
    @overload
    def restore(self, step: int | None = None, *, like: T, shardings: object = None) -> T: ...
    @api_boundary.public
    def restore(self, step: int | None = None, *, like: object = None, shardings: object = None) -> object:
        """Read a checkpoint.

        Args:
            step: its step; the latest if None.
            like: as for `ft.io.load`.
            shardings: as for `ft.io.load`.

        Raises:
            CheckpointError: where there is none, or it is damaged, or differs from `like`.
        """
        self.wait()
        steps = self.steps()
        if step is None and not steps:
            raise CheckpointError(
                f"{self._folder} has no complete checkpoint",
                fix="ask latest_step() first, and begin anew if it is None",
            )
        chosen = steps[-1] if step is None else step
        if chosen not in steps:
            raise CheckpointError(f"{self._folder} has no checkpoint of step {chosen}", fix=f"it has those of {steps}")
        try:
            return load(self._path(chosen), like, shardings=shardings)
        except CheckpointError as e:
            others = [s for s in steps if s != chosen]
            if others and "like=" not in e.reason:
                e.fix = f"{e.fix}; steps {others} are there as well: restore({others[-1]})"
            raise

    # -------------------------------------------------------------------------------------------------- the folder
    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step:012d}"

    def _is_first(self) -> bool:
        state = joined()
        return state is None or state.member.rank == 0

    def _clean(self) -> None:
        """Remove unfinished folders of a killed process."""
        if self._cleaned or not self._is_first():
            return
        self._cleaned = True
        for path in self._folder.glob("step-*"):
            if not (path / INDEX).exists():
                shutil.rmtree(path, ignore_errors=True)
            else:
                for left in path.glob(f".*{TEMPORARY}"):
                    left.unlink(missing_ok=True)

    def _retain(self, step: int) -> None:
        """Remove the checkpoints that are not kept."""
        if self._keep_last is None or not self._is_first():
            return
        self._metrics.pop(step, None)
        steps = self.steps()
        kept = set(steps[-self._keep_last :])
        if self._metric is not None:
            kept.update(self._best_first(steps)[: self._keep_best])
        for old in set(steps) - kept - {step}:
            (self._path(old) / INDEX).unlink(missing_ok=True)  # from here on it does not count as a checkpoint
            sync_folder(self._path(old))
            shutil.rmtree(self._path(old), ignore_errors=True)

    def _best_first(self, steps: list[int]) -> list[int]:
        return sorted(steps, key=lambda step: (self._value(step), -step))

    def _value(self, step: int) -> float:
        """The metric of a step, smaller where better; infinite for NaN and checkpoints without it."""
        if step not in self._metrics:
            try:
                value = self.metrics(step).get(self._metric or "", math.nan)
            except CheckpointError:
                value = math.nan
            self._metrics[step] = math.inf if math.isnan(value) else self._sign * value
        return self._metrics[step]
