"""Profiling: traces for Perfetto and TensorBoard, time by operation, memory."""

from __future__ import annotations

import functools
import os
import resource
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Never

from functorch_like import source_info
from functorch_like.arrays.devices import live_arrays as arrays_of_platform
from functorch_like.backends import xla
from functorch_like.backends.xla import counters
from functorch_like.calling import api_boundary
from functorch_like.compiler import tiers
from functorch_like.errors import ArgumentError
from functorch_like.frames import without_frames
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.source_info import name_of


@contextmanager
def trace(directory: str | os.PathLike[str]) -> Generator[None]:
    """Record what runs within the block, and write a trace of it.

    Args:
        directory: receives plugins/profile/.../*.xplane.pb, which TensorBoard opens (`tensorboard --logdir directory`),
            and *.trace.json.gz, which https://ui.perfetto.dev opens.

    Raises:
        ArgumentError: if the profiler runs already: a process has one.

    >>> import functorch_like as ft, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ft.profiler.trace(folder):
    ...         y = ft.numpy.sin(ft.numpy.ones(1000)).block_until_ready()
    ...     any(pathlib.Path(folder).rglob("*.trace.json.gz"))
    True
    """
    from functorch_like.backends.xla import profiling

    session = profiling.Session()
    try:
        yield
    finally:
        session.export(session.stop(), os.fspath(directory))


_recording: list[tuple[Any, str]] = []  # the session that `start_trace` began, and where its trace goes


@api_boundary.public
def start_trace(log_dir: str | os.PathLike[str]) -> None:
    """Start to record a trace, until `stop_trace`; `trace` does the same as a block.

    Args:
        log_dir: as `directory` of `trace`.

    Raises:
        ArgumentError: if the profiler runs already.

    >>> import functorch_like as ft, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ft.profiler.start_trace(folder)
    ...     y = ft.numpy.sin(ft.numpy.ones(1000)).block_until_ready()
    ...     ft.profiler.stop_trace()
    ...     any(pathlib.Path(folder).rglob("*.xplane.pb"))
    True
    """
    from functorch_like.backends.xla import profiling

    _recording.append((profiling.Session(), os.fspath(log_dir)))


@api_boundary.public
def stop_trace() -> None:
    """Stop the recording that `start_trace` began, and write the trace. An example is at `start_trace`.

    Raises:
        ArgumentError: if nothing is being recorded.
    """
    if not _recording:
        raise ArgumentError("no trace is being recorded", fix="call profiler.start_trace(directory) first")
    session, directory = _recording.pop()
    session.export(session.stop(), directory)


#: Methods of PyTorch's profiles, and what has the same here.
_OF_PROFILES = {
    **dict.fromkeys(
        ("key_averages", "table", "events", "total_average"),
        "print(profile) shows a table, and profile.operations are its rows",
    ),
    **dict.fromkeys(
        ("export_chrome_trace", "export_stacks"), "with ft.profiler.trace(folder): writes a trace for Perfetto"
    ),
    "export_memory_timeline": "use ft.profiler.save_device_memory_profile(file)",
    **dict.fromkeys(("step", "start", "stop"), "a profile is that of its `with` block: leave the call out"),
}


class Profile(Display):
    """Operations that ran within a block of `profile`; prints as a table.

    Attributes:
        operations: operations of compiled programs, the longest first: name, program, calls, seconds, line.
        seconds: duration of the whole block.
        quick: names of programs that were in the quick tier of compilation, and will run faster in the next tier.
        by_numpy: number of eager operations that NumPy computed, as it does for the first calls; `operations` has none
            of them.
    """

    def __init__(self) -> None:
        self.operations: list[Any] = []
        self.seconds = 0.0
        self.quick: list[str] = []
        self.by_numpy = 0

    if not TYPE_CHECKING:  # type checkers find missing attributes without it

        @without_frames
        def __getattr__(self, name: str) -> Never:
            remedy = f"; {_OF_PROFILES[name]}" if name in _OF_PROFILES else ""
            raise AttributeError(f"a Profile has no attribute {name!r}{remedy}", name=name)

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return tables of operations and of the user's lines, with bars of their shares."""
        from functorch_like.backends.xla import reporting

        text = reporting.table(self.operations, self.seconds, paint=paint)
        return "\n".join([text, *self._notes()])

    def markup(self) -> elements.Markup:
        """Return the same as HTML."""
        from functorch_like.backends.xla import reporting

        table = reporting.markup(self.operations, self.seconds)
        return elements.join([table, *(elements.element("div", note) for note in self._notes())])

    def _notes(self) -> list[str]:
        notes = [f"in the quick tier: {', '.join(self.quick)}"] if self.quick else []
        return notes + ([f"computed by NumPy, being new: {self.by_numpy} eager operations"] if self.by_numpy else [])


@contextmanager
def profile() -> Generator[Profile]:
    """Measure the time of each operation that compiled programs run within the block.

    Returns:
        A `Profile`, filled when the block ends.

    >>> import functorch_like as ft
    >>> with ft.profiler.profile() as found:
    ...     y = ft.jit(lambda x: x @ x)(ft.numpy.ones((200, 200))).block_until_ready()
    >>> found.operations[0].calls >= 1
    True
    """
    from functorch_like.backends.xla import profiling

    result = Profile()
    quick, by_numpy = tiers.names(), counters.computed_by_numpy
    session = profiling.Session()
    started = time.perf_counter()
    try:
        yield result
    finally:
        result.seconds = time.perf_counter() - started
        operations = profiling.operations(session.stop())
        result.operations = [each._replace(line=source_info.in_notebook(each.line)) for each in operations]
        result.by_numpy = counters.computed_by_numpy - by_numpy
        result.quick = sorted((quick | tiers.names()) & {each.program for each in operations})


def annotate(name: str, **about: Any) -> Any:
    """Return a context manager that gives its block a name in traces. Its cost is negligible without a recording.

    Args:
        name: name of the block.
        about: values that are shown with it.

    >>> import functorch_like as ft
    >>> with ft.profiler.annotate("step", number=3):
    ...     x = 1
    """
    from functorch_like.backends.xla import profiling

    return profiling.TraceMe(name, **about)


class TraceAnnotation:
    """Context manager that gives a block a name in traces, as `annotate`; or decorator, for the calls of a function.

    Args:
        name: name of the block.
        about: values that are shown with it.

    >>> import functorch_like as ft
    >>> @ft.profiler.TraceAnnotation("load")
    ... def load():
    ...     return 1
    >>> load()
    1
    """

    def __init__(self, name: str, **about: Any) -> None:
        self._name, self._about, self._open = name, about, list[Any]()

    def __enter__(self) -> TraceAnnotation:
        self._open.append(annotate(self._name, **self._about))
        self._open[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fun)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(self._name, **self._about):
                return fun(*args, **kwargs)

        return annotated


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` for one step of a loop: profilers then show the time of each step.

    Args:
        name: name of all steps.
        about: `step_num`, the number of this step, and other values that are shown with it.

    >>> import functorch_like as ft
    >>> for k in range(2):
    ...     with ft.profiler.StepTraceAnnotation("train", step_num=k):
    ...         pass
    """

    def __init__(self, name: str, **about: Any) -> None:
        super().__init__(name, _r=1, **about)  # XLA's mark of a step


def annotate_function(func: Callable[..., Any], name: str | None = None, **about: Any) -> Callable[..., Any]:
    """Return a function whose calls have a name in traces.

    Args:
        func: any function.
        name: the name; that of the function if None.
        about: values that are shown with it.

    >>> import functorch_like as ft
    >>> ft.profiler.annotate_function(abs)(-1)
    1
    """
    return TraceAnnotation(name or name_of(func), **about)(func)


class MemoryStats(NamedTuple):
    """Memory of one device, in bytes.

    Attributes:
        in_use: bytes of live arrays.
        peak: largest number of bytes at one time. On CPUs that of the process, programs and Python included.
        limit: bytes that the device has; on CPUs, the machine's memory.
        arrays: number of live arrays.
    """

    in_use: int
    peak: int
    limit: int
    arrays: int


@api_boundary.public
def memory_stats(device: Any = None) -> MemoryStats:
    """Return the memory of a device: in use, peak and limit.

    Args:
        device: as `devices()` lists it, or its name, such as "cpu" or "gpu:1"; the default device if None.

    Raises:
        DeviceError: if there is no such device.

    >>> import functorch_like as ft
    >>> x = ft.numpy.ones(1000)
    >>> ft.profiler.memory_stats().in_use >= 4000
    True
    """
    found = xla.find_device(device)
    arrays = live_arrays(found)
    stats = found.memory_stats()
    if stats:  # XLA has statistics for GPUs only
        limit = stats.get("bytes_limit", 0)
        return MemoryStats(stats["bytes_in_use"], stats.get("peak_bytes_in_use", 0), limit, len(arrays))
    in_use = sum(x.nbytes for x in arrays)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return MemoryStats(in_use, peak, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), len(arrays))


@api_boundary.public
def live_arrays(device: Any = None) -> list[Any]:
    """Return all arrays that have memory on a device.

    Args:
        device: as for `memory_stats`.

    >>> import functorch_like as ft
    >>> x = ft.numpy.ones(3)
    >>> any(x is y for y in ft.profiler.live_arrays())
    True
    """
    found = xla.find_device(device)
    return [x for x in arrays_of_platform(found.platform) if found in xla.devices_of(x)]


@api_boundary.public
def save_device_memory_profile(file: str | os.PathLike[str], device: Any = None) -> None:
    """Write the profile that `device_memory_profile` returns to a file.

    Args:
        file: path; https://github.com/google/pprof reads the file.
        device: as for `memory_stats`.

    >>> import functorch_like as ft, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "memory.prof"
    ...     ft.profiler.save_device_memory_profile(file)
    ...     file.stat().st_size > 0
    True
    """
    Path(file).write_bytes(device_memory_profile(device))


@api_boundary.public
def device_memory_profile(device: Any = None) -> bytes:
    """Return the allocated memory by call stack of the allocation, gzipped, for https://github.com/google/pprof.

    Args:
        device: as for `memory_stats`.

    >>> import functorch_like as ft, gzip
    >>> x = ft.numpy.ones(3)
    >>> len(gzip.decompress(ft.profiler.device_memory_profile())) > 0
    True
    """
    import gzip

    return gzip.compress(xla.find_device(device).client.heap_profile())
