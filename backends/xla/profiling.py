"""XLA's profiler: the operations that ran, for how long, and the user's line of each."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from functorch_like.backends.xla import client, jaxlib_api  # jaxlib is imported there first

from jaxlib import _profile_data, _profiler  # pyright: ignore[reportAttributeAccessIssue]  # isort: skip

from functorch_like.backends.xla.jaxlib_api import JaxRuntimeError
from functorch_like.errors import ArgumentError

#: Named stretches of time in a trace; free without a profiler.
TraceMe = _profiler.TraceMe

# Of recorded traces, under JAX's names.
ProfileData, ProfileEvent, ProfilePlane = (
    _profile_data.ProfileData,
    _profile_data.ProfileEvent,
    _profile_data.ProfilePlane,
)
ProfileOptions = _profiler.ProfileOptions

_active = threading.Lock()  # XLA has one profiler for the process


class Operation(NamedTuple):
    """Time and count of one operation of a compiled program under the profiler.

    Attributes:
        name: XLA's; a fusion of several operations of the user's counts as one.
        program: the module it belongs to.
        calls: number of runs.
        seconds: in all. Operations may overlap in time.
        line: "file:line" of the user's, or "".
    """

    name: str
    program: str
    calls: int
    seconds: float
    line: str


class Session:
    """A stretch of profiling; one at a time in a process."""

    def __init__(self) -> None:
        if not _active.acquire(blocking=False):
            raise ArgumentError("the profiler is running already", fix="end the other trace before a new one begins")
        try:
            client.default_device()  # starts the client: the profiler records nothing of one that starts later
            options = _profiler.ProfileOptions()
            options.python_tracer_level = 0
            options.host_tracer_level = 2
            self._session = _profiler.ProfilerSession(options)
        except BaseException:
            _active.release()
            raise

    def stop(self) -> bytes:
        """End it, when what was started is computed; return the record, a serialised XSpace."""
        try:
            for x in client.live_arrays():
                with suppress(jaxlib_api.JaxRuntimeError):  # where it failed, its reader will see
                    if not x.is_deleted():
                        x.block_until_ready()
            return self._session.stop()
        finally:
            _active.release()

    def export(self, recorded: bytes, directory: str) -> None:
        """Write files that TensorBoard and Perfetto open."""
        self._session.export(recorded, directory)


_server: list[Any] = []  # the one that runs


def serve(port: int) -> Any:
    """Start a server from which other programs capture traces.

    Raises:
        ArgumentError: if one runs.
    """
    if _server:
        raise ArgumentError("a server of the profiler is running already", fix="stop it before a new one starts")
    client.default_device()
    _server.append(_profiler.start_server(port))
    return _server[0]


def stop_serving() -> None:
    """Stop the server.

    Raises:
        ArgumentError: if none runs.
    """
    if not _server:
        raise ArgumentError("no server of the profiler is running", fix="start one first")
    _server.clear()


def operations(recorded: bytes) -> list[Operation]:
    """Time by operation, the longest first."""
    totals: dict[tuple[str, str], list[float]] = {}
    for event, about in _events(recorded):
        if "hlo_op" in about:
            total = totals.setdefault((str(about.get("hlo_module", "")), str(about["hlo_op"])), [0, 0.0])
            total[0] += 1
            total[1] += event.duration_ns * 1e-9
    programs = {program for program, _ in totals}
    lines = _lines(program for program in client.live_modules() if program.name in programs)
    rows = [
        Operation(name, program, int(calls), seconds, lines.get((program, name), ""))
        for (program, name), (calls, seconds) in totals.items()
    ]
    return sorted(rows, key=lambda each: -each.seconds)


def _events(recorded: bytes) -> list[tuple[Any, dict[str, Any]]]:
    data = _profile_data.ProfileData.from_serialized_xspace(recorded)
    with warnings.catch_warnings():
        # TRAP: on Python 3.12 and later C++ warns of a type of its own here, and aborts where warnings are errors.
        warnings.simplefilter("ignore")
        return [(event, dict(event.stats)) for plane in data.planes for line in plane.lines for event in line.events]


def _lines(modules: Iterable[Any]) -> dict[tuple[str, str], str]:
    """The user's line of every operation of these modules."""
    lines: dict[tuple[str, str], str] = {}
    for module in modules:
        text = module.to_string()
        frames = _frames(text)
        for name, metadata in re.findall(r"^ *(?:ROOT )?%?([\w.-]+) = .*metadata=\{(.*?)\}", text, re.MULTILINE):
            frame = re.search(r"stack_frame_id=(\d+)", metadata)
            direct = re.search(r'source_file="(.*?)" source_line=(\d+)', metadata)
            line = frames.get(frame[1], "") if frame else f"{direct[1]}:{direct[2]}" if direct else ""
            if line:
                lines[module.name, name] = line
    return lines


def _frames(text: str) -> dict[str, str]:
    """ "file:line" by the number of a stack frame, from the tables at the top of HLO text."""
    files = dict(re.findall(r'^(\d+) "(.*)"$', _table(text, "FileNames"), re.MULTILINE))
    places = {
        number: f"{files.get(file, '?')}:{line}"
        for number, file, line in re.findall(
            r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)", _table(text, "FileLocations"), re.MULTILINE
        )
    }
    frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", _table(text, "StackFrames"), re.MULTILINE)
    return {number: places.get(place, "") for number, place in frames}


def _table(text: str, name: str) -> str:
    start = text.find(f"\n{name}\n")
    return "" if start < 0 else text[start + len(name) + 2 :].partition("\n\n")[0]


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Have traces of this process include those of another one, which runs a server on a port.

    Args:
        pid: the number of the other process.
        port: the port of its server.

    Returns:
        A function that ends this.

    Raises:
        ArgumentError: where no server answers, or the process is registered already.
    """
    try:
        return _profiler.register_subprocess(pid, port)
    except (JaxRuntimeError, RuntimeError, ValueError) as error:
        raise ArgumentError(
            f"process {pid} cannot be profiled on port {port}: {error}", fix="start a server there: start_server(port)"
        ) from error


def instructions_profile(directory: str) -> bytes:
    """Return the times of the instructions of GPU programs in a recorded trace, as a protocol buffer.

    Args:
        directory: the folder of one run, which holds the `.xplane.pb` files.

    Raises:
        ArgumentError: for a folder without a trace.
    """
    try:
        return _profiler.get_profiled_instructions_proto(directory)
    except (JaxRuntimeError, RuntimeError, ValueError) as error:
        raise ArgumentError(f"{directory} holds no trace: {error}", fix="use the folder plugins/profile/...") from error
