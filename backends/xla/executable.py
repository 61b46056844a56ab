"""Compiled programs: made by XLA or taken from the disk, run from Python, handed to C++, looked into."""

from __future__ import annotations

import functools
import time
from collections import deque, namedtuple
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from functorch_like import interrupts
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import (
    arrays,
    cache,
    callbacks,
    client,
    compile_options,
    counters,
    events,
    host_kernels,
    memory,
    option_sets,
    processes,
    sharding,
)
from functorch_like.backends.xla.digest import digest
from functorch_like.backends.xla.failures import XlaCompileError, failure
from functorch_like.backends.xla.jaxlib_api import HANDLER_SKIPS_CHECKS, ArrayImpl, JaxRuntimeError, xc
from functorch_like.errors import ArgumentError, DeviceError

# TRAP: C++ reads these by name from a tuple subclass; any other kind of object ends in std::bad_cast.
_FastPath = namedtuple(
    "_FastPath",
    "xla_executable out_pytree_def in_shardings out_shardings out_avals out_committed kept_var_bitvec "
    "in_device_local_layouts const_args",
)


def handler(aval: ShapedArray, where: Any, committed: bool) -> Any:
    """Return the function that makes arrays of the results of a program."""
    if HANDLER_SKIPS_CHECKS:
        return xc.array_result_handler(aval, where, committed, True)
    return xc.array_result_handler(aval, where, committed)


def fast_path(
    inner: Any,
    out_tree: Any,
    in_shardings: Sequence[Any],
    out_shardings: Sequence[Any],
    out_avals: Sequence[ShapedArray],
    committed: bool,
    kept_inputs: Sequence[bool] | None,
    const_args: Sequence[Any],
) -> Any:
    """Return the record that lets C++ run a program by itself."""
    taken = len(in_shardings)
    return _FastPath(
        inner,
        out_tree,
        list(in_shardings),
        list(out_shardings),
        list(out_avals),
        [committed] * len(out_avals),
        [True] * taken if kept_inputs is None else list(kept_inputs),
        [None] * taken,
        list(const_args),
    )


#: XLA's names of the numbers of bytes that a program needs, by short ones.
_MEMORY = {
    "argument": "argument_size_in_bytes",
    "output": "output_size_in_bytes",
    "temp": "temp_size_in_bytes",
    "alias": "alias_size_in_bytes",
    "peak": "peak_memory_in_bytes",
}


class MemoryAnalysis(dict[str, int]):
    """Numbers of bytes that a program needs; they are also attributes under XLA's names, `temp_size_in_bytes`."""

    def __getattr__(self, name: str) -> int:
        for short, long in _MEMORY.items():
            if name == long and short in self:
                return self[short]
        raise AttributeError(f"no {name!r} in the memory analysis, which has {', '.join(map(_MEMORY.get, self))}")


class Executable:
    """A program compiled for one device.

    Attributes:
        device: the device that it runs on.
        name: name of the module.
        in_avals, out_avals: avals of its arguments and results.
        calls_python: whether it has callbacks or kernels of NumPy. A call of it then returns when they are done.
        calls_users: whether it has callbacks.
    """

    __slots__ = (
        "_handlers",
        "_inner",
        "_only_results",
        "_sharding",
        "calls_python",
        "calls_users",
        "device",
        "in_avals",
        "name",
        "out_avals",
    )

    def __init__(
        self,
        inner: Any,
        device: Any,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        name: str,
        host_calls: Sequence[Any] = (),
    ) -> None:
        self._inner, self.device, self.name, self.calls_python = inner, device, name, bool(host_calls)
        self._only_results = host_kernels.only_results(host_calls)
        self.calls_users = not host_kernels.only_kernels(host_calls)
        self.in_avals = list(in_avals)
        self._sharding = sharding.single(device)
        self.out_avals = list(out_avals)
        self._handlers: dict[bool, list[Any]] = {}

    @property
    def is_windowed(self) -> bool:
        """True if a window bounds how many of its runs are in flight; never on one device."""
        return False

    def execute(
        self, args: Sequence[Any], out_avals: Sequence[ShapedArray] | None = None, *, committed: bool = False
    ) -> list[Any]:
        """Run from Python.

        Args:
            args: arrays on the device of the program; NumPy values are copied in.
            out_avals: avals of the results, in place of those given when it was compiled (other weak types).
            committed: whether the results are bound to the device.

        Raises:
            DonatedError: for an array whose memory is gone.
            DeviceError: for an array committed to another device. Others are copied over.
            ArgumentError: for arguments of other shapes or dtypes than the program's.
            Exception: any exception of a callback.
        """
        ready = [a if type(a) is ArrayImpl and a._sharding is self._sharding else self._bring(a) for a in args]
        # TRAP: C++ compares sizes in bytes and nothing else; an i32 array would be read as f32.
        avals = [a.aval for a in ready]
        if avals != self.in_avals and [aval.strong() for aval in avals] != self.in_avals:
            raise self._mismatch(avals)
        try:
            run = self._run_and_wait if self.calls_python else self._inner.execute_sharded
            return run(ready).consume_with_handlers(self._results(out_avals, committed))
        except (JaxRuntimeError, ValueError) as error:
            raised = callbacks.original(error) if self.calls_python else None
            if raised is None:
                for a in ready:
                    arrays.check_alive(a)
                raise failure(f"the program {self.name!r}", self.device, error) from error
        raise raised  # not in the clause above: C++'s error would become its context

    def _run_and_wait(self, ready: Sequence[Any]) -> Any:
        with nullcontext() if self._only_results else callbacks.running():
            results = self._inner.execute_sharded(ready, with_tokens=True)
            results.consume_token().block_until_ready()
            return results

    def _bring(self, x: Any) -> Any:
        """Return an argument on this device. TRAP: C++ does not check the device; it runs all the same, or crashes."""
        if type(x) is not ArrayImpl:
            return arrays.device_put(x, self.device)
        arrays.check_alive(x)
        here = arrays.on_device(x, self.device)
        if here is not None:
            return here
        if x._committed:
            raise DeviceError(
                f"{self.name!r} runs on {self.device}, and its argument {x.aval!r} is bound to {arrays.device_of(x)}",
                fix="device_put the arguments to one device",
            )
        return arrays.device_put(x, self.device)

    def _mismatch(self, in_avals: Sequence[ShapedArray]) -> ArgumentError:
        expected, actual = (", ".join(map(repr, avals)) for avals in (self.in_avals, in_avals))
        return ArgumentError(
            f"the program {self.name!r} takes ({expected}), got ({actual})",
            fix="pass what it was compiled for, or compile another",
        )

    def _results(self, out_avals: Sequence[ShapedArray] | None, committed: bool) -> list[Any]:
        if out_avals is not None and list(out_avals) != self.out_avals:
            return [handler(aval, self._sharding, committed) for aval in out_avals]
        handlers = self._handlers.get(committed)
        if handlers is None:
            handlers = self._handlers[committed] = [handler(a, self._sharding, committed) for a in self.out_avals]
        return handlers

    def fastpath(
        self,
        out_tree: Any,
        out_avals: Sequence[ShapedArray] | None = None,
        kept_inputs: Sequence[bool] | None = None,
        const_args: Sequence[Any] = (),
        committed: bool = False,
        handles_failures: bool = False,
    ) -> Any:
        """Return the record that lets C++ run this program by itself; None if calls have to come to Python.

        They have to, if callbacks have effects, which `barrier` waits for, or run after the call has returned.

        Args:
            out_tree: structure of the result.
            out_avals: avals of the flat results.
            kept_inputs: for each of `const_args` and then of the flat arguments, whether the program takes it.
            const_args: arrays passed before the arguments.
            committed: whether the results are bound to the device.
            handles_failures: whether the caller asks `callbacks.original` about each error of C++. Without it, calls
                of a program with callbacks come to Python.
        """
        at_once = self.device.platform == "cpu" and not client.CPU_ASYNC
        if self.calls_python and not (handles_failures and self._only_results and at_once):
            return None
        avals = self.out_avals if out_avals is None else list(out_avals)
        ins, outs = [self._sharding] * len(self.in_avals), [self._sharding] * len(avals)
        return fast_path(self._inner, out_tree, ins, outs, avals, committed, kept_inputs, const_args)

    def collectives(self) -> list[Any]:
        """The collectives that the program contains: none on one device."""
        return []

    @property
    def in_shardings(self) -> Sequence[Any]:
        return [self._sharding] * len(self.in_avals)

    @property
    def out_shardings(self) -> Sequence[Any]:
        return [self._sharding] * len(self.out_avals)

    # -------------------------------------------------------------------------------------------------- looking inside
    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of work: flops, bytes accessed, transcendentals."""
        analysis = self._inner.cost_analysis()
        return dict(analysis[0] if isinstance(analysis, list) else analysis)

    def memory_analysis(self) -> MemoryAnalysis:
        """Bytes of arguments, results, temporaries and aliases, and the peak."""
        stats = self._inner.get_compiled_memory_stats()
        return MemoryAnalysis(
            {short: int(getattr(stats, long)) for short, long in _MEMORY.items() if hasattr(stats, long)}
        )

    def as_text(self) -> str:
        """Optimised HLO text."""
        return "\n\n".join(module.to_string() for module in self._inner.hlo_modules())

    def serialize(self) -> bytes:
        """The machine code with its metadata. TRAP: loading such bytes runs them; load only trusted ones."""
        return self._inner.serialize()

    def __repr__(self) -> str:
        return f"Executable({self.name}, {self.device})"


def compile(
    module: Any,
    *,
    device: Any = None,
    options: dict[str, Any] | None = None,
    fitting: dict[str, Any] | None = None,
    in_avals: Sequence[ShapedArray] | None = None,
    out_avals: Sequence[ShapedArray],
    name: str = "",
    fingerprint: bytes | None = None,
    host_calls: list[Any] | None = None,
) -> Executable:
    """Compile a module for a device, or load the program compiled from an equal module before.

    Args:
        module: a result of `build`; or a function that makes it.
        device: the default one if None.
        options: XLA's options by name, which override the package's.
        fitting: options chosen by the program's content, which settings override.
        in_avals: avals of the arguments; read from the module if None.
        out_avals: avals of the results.
        name: for messages.
        fingerprint: identifies the program, so that no module has to be made for a program that is on disk; the
            module identifies it if None.
        host_calls: the callbacks of the module: the list that `build` fills; or, where the program is on disk and
            no module is made, loading.

    Raises:
        CompileError: where XLA refuses, quoting it.
    """
    client.check_not_forked()
    host_calls = [] if host_calls is None else host_calls
    device = client.default_device() if device is None else device
    made: Any = functools.cache(module) if callable(module) else lambda: module
    inner = loaded(made, device, options, fitting, name, fingerprint, host_calls)
    if in_avals is None:
        from functorch_like.backends.xla import mlir  # 15 ms; but making a module has imported it already

        in_avals = mlir.argument_avals(made())
    return Executable(inner, device, in_avals, out_avals, name, host_calls)


@interrupts.awaited
def load(
    make: Callable[[], Any] | None,
    *,
    device: Any,
    options: dict[str, Any] | None,
    fitting: dict[str, Any] | None,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    name: str,
    fingerprint: bytes | None,
    host_calls: list[Any],
) -> Executable | None:
    """Load the program compiled for one device from an equal module before; arguments as for `compile`.

    Without a function that makes the module, look by the fingerprint alone.
    """
    client.check_not_forked()
    chosen = compile_options.options(device, options, fitting)
    inner, _, _ = _from_disk(make, device, chosen, name, fingerprint, host_calls)
    return None if inner is None else Executable(inner, device, in_avals, out_avals, name, host_calls)


def loaded(
    make: Callable[[], Any],
    device: Any,
    overrides: dict[str, Any] | None,
    fitting: dict[str, Any] | None,
    name: str,
    fingerprint: bytes | None,
    host_calls: list[Any],
) -> Any:
    """jaxlib's executable of the module that a function makes, for a device or a mesh; arguments as for `compile`."""
    spanned = processes.spanned(device)
    if not spanned:
        return _loaded(make, device, overrides, fitting, name, fingerprint, host_calls)
    from functorch_like.backends.xla import mlir

    module = make()
    program = digest(mlir.anonymous_bytecode(module))
    program.update(repr((sorted((overrides or {}).items()), [d.id for d in device.devices.flat])).encode())
    home = cache.home(cache.key(module, compile_options.options(device, overrides, fitting), device))
    with processes.one_compiles(program.digest(), name, spanned, home, cache.has(home)):
        return _loaded(lambda: module, device, overrides, fitting, name, None, host_calls)


@interrupts.awaited
def _loaded(
    make: Callable[[], Any],
    device: Any,
    overrides: dict[str, Any] | None,
    fitting: dict[str, Any] | None,
    name: str,
    fingerprint: bytes | None,
    host_calls: list[Any],
) -> Any:
    while True:
        chosen = compile_options.options(device, overrides, fitting)
        program, key, note = _from_disk(make, device, chosen, name, fingerprint, host_calls)
        if program is not None:
            return program
        from functorch_like.backends.xla import library_check, mlir  # what is found on disk needs neither

        module = make()
        started = time.perf_counter()
        try:
            made = _kept(_built, module, device, chosen, host_calls=host_calls)
            why, remedies = "", dict(overrides or {})
            for _ in _REMEDIES:  # a program without fusions may have products that no library takes
                flaw = library_check.flaw_of(made) if device.platform == "cpu" else None
                if flaw is None:
                    break
                why = flaw.why
                remedies.update(flaw.options)
                chosen = compile_options.options(device, remedies, fitting)
                made = _kept(_built, module, device, chosen, host_calls=host_calls)
        except (JaxRuntimeError, ValueError) as error:
            if compile_options.refuse(str(error)):
                continue
            compile_options.check_known(str(error))
            mlir.verify(module)  # raises a better error, if the module itself is wrong
            text = f"XLA cannot compile {name!r} for {device}: {error}"
            raise XlaCompileError(text, fix=_remedy(overrides)) from error
        _count("compiles")
        events.emit("compile", name, time.perf_counter() - started, device=device, options=overrides or {}, how=why)
        if key is not None and (device.platform == "cpu" or not host_calls):
            cache.store(key, made)
            cache.remember(note, key)
        return made


def _count(name: str) -> None:
    """Count a program that was compiled or loaded; what the background thread does counts as optimised."""
    name = "optimised" if events.is_in_background() else name
    setattr(counters, name, getattr(counters, name) + 1)


def _from_disk(
    make: Callable[[], Any] | None,
    device: Any,
    chosen: Any,
    name: str,
    fingerprint: bytes | None,
    host_calls: list[Any],
) -> tuple[Any, str | None, str | None]:
    """Return the program on disk or None, the key of it, and the key of the note that leads to that key."""
    started = time.perf_counter()
    # The file under a fingerprint holds the name of the program, which is made from its module. So a program is still
    # found after a change of the package's code, which changes all fingerprints.
    note = cache.key(fingerprint, chosen, device, "the name of a program") if fingerprint else None
    key = cache.recall(note)
    loaded = _kept(cache.load, key, device, chosen, host_calls=host_calls)
    if loaded is None and make is not None and cache.directory() is not None:
        key = cache.key(make(), chosen, device)
        loaded = _kept(cache.load, key, device, chosen, host_calls=host_calls)
        if loaded is not None:
            cache.remember(note, key)
    if loaded is not None:
        _count("cache_hits")
        events.emit("load", name, time.perf_counter() - started, device=device)
    return loaded, key, note


#: The latest programs, so that an interrupt or error in the caller does not lose the result of a compilation.
#: Programs with callbacks are not among them: they would keep the user's functions and their values alive.
_latest: deque[Any] = deque(maxlen=4)
memory.on_clear(_latest.clear)


def _kept(make: Callable[..., Any], *args: Any, host_calls: list[Any]) -> Any:
    """Return `make(*args, host_calls)`, a program or None; a program stays alive until a few others were made."""
    with interrupts.all_held:
        made = make(*args, host_calls)
        if made is not None and host_kernels.only_kernels(host_calls):
            _latest.append(made)
    return made


#: Options under which a program with a flawed product is compiled again (`Flaw.options`), each at most once.
_REMEDIES = (option_sets.NO_ONEDNN, option_sets.NO_FUSIONS, option_sets.NONE)


def _built(module: Any, device: Any, options: Any, host_calls: list[Any]) -> Any:
    from functorch_like.backends.xla import mlir

    where = sharding.device_list(device)
    compile_options.keep_kernels(options, cache.kernels(device))
    if host_calls:  # jaxlib takes them with a module only, which gets a context of its own
        return device.client.compile_and_load(mlir.secluded(module), where, options, list(host_calls))
    # As bytes, not as the module: C++ compiles with the interpreter released, and another thread may by then be
    # writing into the same MLIR context, which does not lock.
    return device.client.compile_and_load(mlir.bytecode(module), where, options)


def _remedy(overrides: dict[str, Any] | None) -> str:
    return f"check the options {overrides}" if overrides else ""
