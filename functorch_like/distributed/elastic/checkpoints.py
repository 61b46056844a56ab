"""States in files: one file for a step, written whole or not at all.

A file is a line of JSON (step, size, hash, structure, shapes and dtypes), followed by the bytes of all leaves.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from pathlib import Path

from functorch_like.distributed.elastic.host_state import HostState
from functorch_like.errors import ArgumentError

_NAME = re.compile(r"step_(\d+)\.ftstate")


class Checkpoints:
    """The checkpoints of one run, in a folder.

    Args:
        folder: made if it does not exist.
        keep: how many of the newest files stay.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2) -> None:
        self._folder, self._keep = Path(folder), keep
        self._folder.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        """Return the files, oldest first."""
        numbered = [(int(match[1]), path) for path in self._folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        return [path for _, path in sorted(numbered)]

    def save(self, state: HostState) -> Path:
        """Write the newest state, and delete all but the newest `keep` files."""
        path = self._folder / f"step_{state.step:012d}.ftstate"
        payload = state.payload()
        header = {"step": state.step, "size": len(payload), "sha256": state.digest(), "layout": state.description()}
        partial = path.with_suffix(f".{os.getpid()}.part")
        with partial.open("wb") as file:
            file.write(json.dumps(header).encode() + b"\n")
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        for old in self.files()[: -self._keep]:
            old.unlink(missing_ok=True)
        return path

    def load(self, state: HostState) -> bool:
        """Load the newest undamaged file of a later step than the state's; return True if there is one.

        Raises:
            ArgumentError: where that file has another structure, other shapes or dtypes.
        """
        return any(_load(path, state) for path in reversed(self.files()))


def _load(path: Path, state: HostState) -> bool:
    with path.open("rb") as file:
        try:
            header = json.loads(file.readline())
        except ValueError:
            return False
        if header["step"] <= state.step:
            return False
        if header["layout"] != state.description():
            raise ArgumentError(
                f"the checkpoint {path} is of another state: {header['layout']:.200}; this one is "
                f"{state.description():.200}",
                fix="choose another folder, or make the state as it was",
            )
        payload = file.read()
    if len(payload) != header["size"] or hashlib.sha256(payload).hexdigest() != header["sha256"]:
        warnings.warn(f"the checkpoint {path} is damaged; an older one is taken", stacklevel=3)
        return False
    state.write_payload(header["step"], payload)
    return True
