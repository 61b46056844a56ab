"""Compiled programs that run on the devices of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import arrays, callbacks, client, events, named_sharding, sharded_arrays, window
from functorch_like.backends.xla.collective_report import Collective, collectives
from functorch_like.backends.xla.executable import Executable, fast_path, handler, loaded
from functorch_like.backends.xla.explicit_types import typed
from functorch_like.backends.xla.failures import failure
from functorch_like.backends.xla.jaxlib_api import ArrayImpl, JaxRuntimeError, xc
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.backends.xla.partitioning import Partitioning
from functorch_like.errors import bytes_text


class ShardedExecutable(Executable):
    """A program compiled for a mesh.

    Attributes:
        mesh: the mesh that it runs on.
        in_shardings: shardings of the arguments; None where XLA chose one that no spec can express.
        out_shardings: likewise for the results.
    """

    __slots__ = ("_ins", "_outs", "_windowed", "mesh")

    def __init__(
        self,
        inner: Any,
        partitioning: Partitioning,
        in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray],
        name: str,
        calls_python: bool = False,
    ) -> None:
        self._inner, self.device, self.name, self.calls_python = inner, partitioning.mesh, name, calls_python
        self.mesh = partitioning.mesh
        self.in_avals, self.out_avals = [aval.split(None) for aval in in_avals], list(out_avals)
        outs = partitioning.outs or (None,) * len(self.out_avals)
        self._ins = self._chosen(partitioning.ins, inner.get_parameter_shardings, self.in_avals)
        self._outs = self._chosen(outs, inner.get_output_shardings, self.out_avals)
        self._windowed = window.is_needed(inner, self.mesh)
        self._only_results, self.calls_users = False, calls_python
        self._handlers = {}

    @property
    def is_windowed(self) -> bool:
        """True if a window bounds how many of its runs are in flight."""
        return self._windowed

    @property
    def in_shardings(self) -> list[Any]:
        return self._ins

    @property
    def out_shardings(self) -> list[Any]:
        return self._outs

    def _chosen(self, requested: Sequence[Any], read: Any, avals: Sequence[ShapedArray]) -> list[Any]:
        """Return the shardings that were requested; where one is None, that which XLA chose."""
        if None not in requested:
            return list(requested)
        protos = read() or [None] * len(avals)
        results: list[Any] = []
        for where, proto, aval in zip(requested, protos, avals, strict=True):
            if where is None:
                hlo = xc.HloSharding.replicate() if proto is None else xc.HloSharding.from_proto(proto)
                where = self._readable(hlo, aval)
            results.append(where)
        return results

    def _readable(self, hlo: Any, aval: ShapedArray) -> Any:
        spec = named_sharding.spec_of(self.mesh, hlo, aval.ndim)
        if spec is None:
            return None
        where = named_sharding.named(self.mesh, spec)
        return where if named_sharding.divides(where, aval.shape) else None

    def settled(self) -> Partitioning | None:
        """The partitioning to compile with instead, where XLA chose one that no spec can express; else None."""
        if None not in self.in_shardings and None not in self.out_shardings:
            return None
        whole = named_sharding.named(self.mesh, PartitionSpec())
        ins = tuple(whole if s is None else s for s in self.in_shardings)
        return Partitioning(self.mesh, ins, tuple(whole if s is None else s for s in self.out_shardings))

    def collectives(self) -> list[Collective]:
        """The collectives that the program contains, by kind."""
        return collectives(self._inner)

    def report(self, requested: Partitioning) -> str:
        """Describe the partitioning of the program, its origin, and the exchanges of its devices."""
        outs = requested.outs or (None,) * len(self.out_shardings)
        texts = [f"over {self.mesh!r}"]
        for what, chosen, required in (
            ("argument", self.in_shardings, requested.ins),
            ("result", self.out_shardings, outs),
        ):
            for i, (where, known) in enumerate(zip(chosen, required, strict=True)):
                by = "chosen by XLA" if known is None else "given"
                texts.append(f"{what} {i} {where.spec!r} ({by})")
        counts = [f"{c.count} {c.kind} ({bytes_text(c.bytes)})" for c in self.collectives()]
        return "; ".join([*texts, f"collectives: {', '.join(counts) or 'none'}"])

    def execute(
        self, args: Sequence[Any], out_avals: Sequence[ShapedArray] | None = None, *, committed: bool = True
    ) -> list[Any]:
        """Run from Python; arguments as for a program on one device."""
        ready = [
            a if type(a) is ArrayImpl and a._sharding == where else sharded_arrays.bring(a, where)
            for a, where in zip(args, self._ins, strict=True)
        ]
        avals = [a.aval.split(None) for a in ready]  # arrays are where they should be, whatever their types say
        if avals != self.in_avals and [aval.strong() for aval in avals] != self.in_avals:
            raise self._mismatch(avals)
        return self.execute_placed(ready, out_avals)

    def execute_placed(self, args: Sequence[Any], out_avals: Sequence[ShapedArray] | None = None) -> list[Any]:
        """Run on arrays that are where the program takes them, and of its shapes: neither is checked."""
        try:
            if self.calls_python:
                results = self._run_and_wait(args)
            elif self._windowed:
                results = window.dispatch(self._inner, args)
            else:
                results = self._inner.execute_sharded(args)
            return results.consume_with_handlers(self._results(out_avals, True))
        except (JaxRuntimeError, ValueError) as error:
            raised = callbacks.original(error) if self.calls_python else None
            if raised is None:
                for a in args:
                    arrays.check_alive(a)
                raise failure(f"the program {self.name!r}", self.mesh, error) from error
        raise raised

    def _results(self, out_avals: Sequence[ShapedArray] | None, committed: bool) -> list[Any]:
        avals = self.out_avals if out_avals is None else list(out_avals)
        handlers = self._handlers.get(True)
        if handlers is None or avals != self.out_avals:
            handlers = [handler(aval, where, True) for aval, where in self._typed(avals)]
            if avals == self.out_avals:
                self._handlers[True] = handlers
        return handlers

    def _typed(self, avals: Sequence[ShapedArray]) -> list[tuple[ShapedArray, Any]]:
        """Return the type and the sharding of each result."""
        return [(typed(aval, where), where) for aval, where in zip(avals, self.out_shardings, strict=True)]

    def fastpath(
        self,
        out_tree: Any,
        out_avals: Sequence[ShapedArray] | None = None,
        kept: Sequence[bool] | None = None,
        const_args: Sequence[Any] = (),
        committed: bool = True,
        handles_failures: bool = False,
    ) -> Any:
        """Return the record that lets C++ run this program by itself; None if calls have to come to Python."""
        if self.calls_python or self._windowed:
            return None
        avals = [aval for aval, _ in self._typed(self.out_avals if out_avals is None else out_avals)]
        return fast_path(self._inner, out_tree, self.in_shardings, self.out_shardings, avals, True, kept, const_args)

    def __repr__(self) -> str:
        return f"Executable({self.name}, {self.mesh})"


def compile(
    make: Callable[[], Any],
    partitioning: Partitioning,
    *,
    options: dict[str, Any] | None = None,
    fitting: dict[str, Any] | None = None,
    in_avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
    name: str = "",
    fingerprint: bytes | None = None,
    host_calls: list[Any] | None = None,
) -> ShardedExecutable:
    """Compile a module for a mesh, or load the program compiled before; see `executable.compile`.

    Args:
        make: returns the module.
        partitioning: the partitioning of the module.
        options: XLA's options by name, which override the package's.
        fitting: options chosen by the program's content, which settings override.
        in_avals: avals of the arguments.
        out_avals: avals of the results.
        name: for messages.
        fingerprint: identifies the program.
        host_calls: the functions of the module's callbacks.
    """
    client.check_not_forked()
    host_calls = [] if host_calls is None else host_calls
    inner = loaded(functools.cache(make), partitioning.mesh, options, fitting, name, fingerprint, host_calls)
    made = ShardedExecutable(inner, partitioning, in_avals, out_avals, name, bool(host_calls))
    if events.has_listeners() and made.settled() is None:
        events.emit("partition", name, why=made.report(partitioning), collectives=made.collectives())
    return made
