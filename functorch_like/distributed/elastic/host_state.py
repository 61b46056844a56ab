"""The newest state of a training run in host memory, shared by a process and its children.

There are two slots. A new state is written into the older one, and becomes the newest when a single number is written.
So the memory holds a complete state whenever a process is killed.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError

_ALIGNMENT = 64
_NEWEST, _PHASE, _SINCE, _JOIN, _AT = range(5)
_HEADER = 4096

#: Phases of a child, for the watch of its keeper.
PHASES = ("starting", "waiting for a state", "compiling", "in batches", "in a step", "saving", "in report", "ending")


class Progress(NamedTuple):
    """The present work of a child.

    Attributes:
        phase: one of PHASES.
        step: the number of the step.
        seconds: how long it has been doing that.
    """

    phase: str
    step: int
    seconds: float


class HostState:
    """A pytree of arrays in shared memory, after some number of steps.

    Args:
        state: pytree of arrays and numbers; settles structure, shapes and dtypes.
        step: the number of steps that led to it.
        file: descriptor of a file in memory; anonymous memory of this process and its children if None. A state of the
            same structure in the file, left by a worker that was killed, is taken over.

    Raises:
        ArgumentError: for leaves that are not arrays.
    """

    def __init__(self, state: Any, step: int = 0, file: int | None = None) -> None:
        leaves, self.treedef = tree.flatten(state)
        arrays = [_host(leaf, path) for leaf, path in zip(leaves, tree.leaf_paths(self.treedef), strict=True)]
        self.layout = [(a.dtype.name, a.shape) for a in arrays]
        self._offsets: list[int] = []
        self.size = 0
        for array in arrays:
            self._offsets.append(self.size)
            self.size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        self._map(file)
        if not self._is_here():
            self._numbers[_NEWEST] = 2 * step
            self._fill(0, arrays)
            self._mark[:] = self._identity()
        self.enter("starting", self.step)

    def _map(self, file: int | None) -> None:
        size = _HEADER + 2 * max(self.size, _ALIGNMENT)
        if file is not None:
            os.ftruncate(file, size)
        memory = mmap.mmap(-1 if file is None else file, size)
        self._numbers = np.frombuffer(memory, np.int64, 8)
        self._mark = np.frombuffer(memory, np.uint8, hashlib.sha256().digest_size, offset=_HEADER // 2)
        self._slots = np.frombuffer(memory, np.uint8, offset=_HEADER).reshape(2, -1)

    def _is_here(self) -> bool:
        """Return True if the memory holds a state of this structure."""
        return bool((self._mark == self._identity()).all())

    def _identity(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(hashlib.sha256(self.description().encode()).digest(), np.uint8)

    # -------------------------------------------------------------------------------------------------------- the state
    @property
    def step(self) -> int:
        """Number of steps that led to the newest state."""
        return int(self._numbers[_NEWEST]) // 2

    @property
    def _slot(self) -> int:
        return int(self._numbers[_NEWEST]) % 2

    def write(self, step: int, leaves: Sequence[np.ndarray[Any, Any]]) -> None:
        """Store a newer state.

        Raises:
            ArgumentError: where its shapes or dtypes are not those of the state before.
        """
        layout = [(a.dtype.name, a.shape) for a in leaves]
        if layout != self.layout:
            paths = tree.leaf_paths(self.treedef)
            changed = [p for p, old, new in zip(paths, self.layout, layout, strict=False) if old != new]
            raise ArgumentError(
                f"step {step} returns a state of other shapes or dtypes: {self.layout!r:.200} became {layout!r:.200}",
                fix=f"return the same shapes and dtypes{' at ' + changed[0] if changed and changed[0] else ''}",
            )
        slot = 1 - self._slot
        self._fill(slot, leaves)
        self._numbers[_NEWEST] = 2 * step + slot

    def _fill(self, slot: int, leaves: Sequence[np.ndarray[Any, Any]]) -> None:
        for view, leaf in zip(self._views(slot), leaves, strict=True):
            view[...] = leaf

    def _views(self, slot: int) -> list[np.ndarray[Any, Any]]:
        return [
            self._slots[slot, offset : offset + math.prod(shape) * dtypes.exact_dtype(name).itemsize]
            .view(dtypes.exact_dtype(name))
            .reshape(shape)
            for offset, (name, shape) in zip(self._offsets, self.layout, strict=True)
        ]

    def read(self) -> Any:
        """Return a copy of the newest state, as a pytree of NumPy arrays."""
        return self.treedef.unflatten([view.copy() for view in self._views(self._slot)])

    def views(self) -> list[np.ndarray[Any, Any]]:
        """Return the leaves of the newest state without a copy; the write after next overwrites them."""
        return self._views(self._slot)

    # --------------------------------------------------------------------------------------------------------- as bytes
    def payload(self) -> bytes:
        """Return the newest state as bytes."""
        return self._slots[self._slot, : self.size].tobytes()

    def write_payload(self, step: int, payload: bytes) -> None:
        """Store a newer state, from the bytes that `payload` of another process returned."""
        slot = 1 - self._slot
        self._slots[slot, : self.size] = np.frombuffer(payload, np.uint8)
        self._numbers[_NEWEST] = 2 * step + slot

    def digest(self) -> str:
        """Return a hash of the newest state's bytes."""
        return hashlib.sha256(self._slots[self._slot, : self.size].data).hexdigest()

    def description(self) -> str:
        """Return structure, shapes and dtypes as text; equal for states that fit each other."""
        return json.dumps([str(self.treedef), [[name, list(shape)] for name, shape in self.layout]])

    # ------------------------------------------------------------------------------------------------------- progress
    def enter(self, phase: str, step: int) -> None:
        """Record the phase that this process enters."""
        self._numbers[_PHASE], self._numbers[_AT] = PHASES.index(phase), step
        self._numbers[_SINCE] = time.monotonic_ns()

    def progress(self) -> Progress:
        """Return the present phase of the child, and its duration."""
        seconds = (time.monotonic_ns() - int(self._numbers[_SINCE])) * 1e-9
        return Progress(PHASES[int(self._numbers[_PHASE])], int(self._numbers[_AT]), seconds)

    @property
    def someone_waits(self) -> bool:
        """True if a newcomer waits for the next generation."""
        return bool(self._numbers[_JOIN])

    @someone_waits.setter
    def someone_waits(self, value: bool) -> None:
        self._numbers[_JOIN] = value


def steps_in_memory(file: int) -> int:
    """Return the number of steps that led to the state in a file in memory; 0 if there is none."""
    numbers = np.frombuffer(os.pread(file, 8 * (_NEWEST + 1), 0), np.int64)
    return int(numbers[_NEWEST]) // 2 if numbers.size else 0


def _host(leaf: Any, path: str) -> np.ndarray[Any, Any]:
    try:
        aval = aval_of(leaf)
        return np.asarray(leaf, aval.dtype)
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(
            f"the state{path} is {leaf!r:.60} of type {type(leaf).__name__}", fix="use arrays and numbers"
        ) from error
