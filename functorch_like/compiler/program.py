"""Programs: a jaxpr compiled for a device, with its constants and its fast path for C++."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.compiler.inspection import INSPECTED
from functorch_like.compiler.lower import Lowered, lower
from functorch_like.compiler.placement import device_for, physical_dtype, settle
from functorch_like.compiler.tiers import Improvement, begin, begin_eager
from functorch_like.core import ArrayImpl, aval_of
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Jaxpr

#: Two functions that share a program may exchange it at the same time.
_exchanging = threading.Lock()


class Program:
    """A jaxpr compiled for a device, which runs on flat arguments and gives C++ a fast path without Python.

    Args:
        jaxpr: its first inputs are `consts`, the others the arguments.
        consts: arrays.
        args: example arguments, or their `ShapeDtypeStruct`s; they determine the device and the dtypes of numbers.
        name: name of the program.
        donated: mask of the arguments whose memory the results may take.
        keep_unused: True to pass arguments that no equation reads.
        options: the user's compile options of XLA.
        mode: mode of `jit`, by which further options are chosen.
        device: device or `Partitioning`; by default that of the arguments.
        committed: True if results are committed to the device; by default, if an argument is.
        tiered: True if the program may start in the quick tier.
        eager: likewise for a program outside of jit, which `eager_tiers` runs.

    Attributes:
        executable: the compiled form that runs now.
        improvement: what may follow `executable`; None for a program in its last tier.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        consts: Sequence[Any],
        args: Sequence[Any],
        *,
        name: str,
        donated: Sequence[bool] | None = None,
        keep_unused: bool = False,
        options: dict[str, Any] | None = None,
        mode: str = "default",
        device: Any = None,
        committed: bool | None = None,
        tiered: bool = False,
        eager: bool = False,
    ) -> None:
        place = device if device is not None else device_for(args)
        partitioning = settle(jaxpr, consts, args, place)
        self.device = place if partitioning is None else partitioning
        if committed is None:
            committed = any(type(a) is ArrayImpl and a._committed for a in args)
        self.committed = committed
        physical = [None] * len(consts) + [physical_dtype(a) for a in args]

        def lowered(donated: Sequence[bool] | None = None) -> Lowered:
            return lower(
                jaxpr,
                name=name,
                donated=None if donated is None else [False] * len(consts) + list(donated),
                keep_unused=keep_unused,
                physical=physical,
                platform=self.device.platform,
                partitioning=partitioning,
            )

        fitting, settings = None, nullcontext()
        if mode == "max-autotune":
            from functorch_like.compiler import autotune

            first = lowered()
            operands = [
                a if p is None else np.asarray(a, p)
                for a, p, k in zip([*consts, *args], physical, first.kept_inputs, strict=True)
                if k
            ]
            candidate = autotune.choose(lowered, self.device, options, operands, name)
            fitting, settings = candidate.fitting, candidate.settings()
        self.improvement: Improvement | None = None
        with settings:
            self.lowered = lowered(donated)
            if tiered or (eager and fitting is None):
                start = begin if tiered else begin_eager
                self.executable, self.improvement = start(self.lowered, self.device, options, mode)
            else:
                self.executable = self.lowered.compile(self.device, options, mode=mode, fitting=fitting)
        self.consts = list(consts) if partitioning is None else self._placed(consts)
        self.kept_inputs = self.lowered.kept_inputs
        self._passes_all = not self.consts and all(self.kept_inputs)
        self._donated = [] if donated is None else [False] * len(consts) + list(donated)
        self.out_avals: list[ShapedArray] = self.lowered.out_avals
        self._physical = physical

    def _placed(self, consts: Sequence[Any]) -> list[Any]:
        """Return the constants with the shardings that the program takes, so that runs do not move them."""
        from functorch_like.backends.xla import sharded_arrays

        places = iter(self.executable.in_shardings)
        mask = self.lowered.kept_inputs[: len(consts)]
        return [sharded_arrays.bring(c, next(places)) if k else c for c, k in zip(consts, mask, strict=True)]

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Run from Python."""
        flat = [
            a if p is None else np.asarray(a, p)
            for a, p, k in zip([*self.consts, *args], self._physical, self.kept_inputs, strict=True)
            if k
        ]
        inspect = INSPECTED.value
        if inspect is not None and any(self._donated):  # the inspector reads arguments after the run
            donated = [d for d, k in zip(self._donated, self.kept_inputs, strict=True) if k]
            flat = [np.array(a) if d else a for a, d in zip(flat, donated, strict=True)]
        try:
            outs = self.executable.execute(flat, self.out_avals, committed=self.committed)
            if inspect is not None:
                inspect(self, args, outs)
            return outs
        except FtError as e:
            raise self._with_context(e, args)  # noqa: B904  (the same error, completed)

    def run_placed(self, args: Sequence[Any]) -> list[Any]:
        """Run on arrays with the avals and shardings of an earlier run, without checks."""
        if INSPECTED.value is not None:
            return self.run(args)
        if not self._passes_all:
            args = [a for a, k in zip([*self.consts, *args], self.kept_inputs, strict=True) if k]
        sharded: Any = self.executable
        try:
            return sharded.execute_placed(args, self.out_avals)
        except FtError as e:
            raise self._with_context(e, args)  # noqa: B904  (the same error, completed)

    def _with_context(self, error: FtError, args: Sequence[Any]) -> FtError:
        avals = ", ".join(repr(aval_of(a)) for a in args)
        return error.add_context(operation=f"{self.lowered.name}({avals})")

    def exchange(self) -> None:
        """Run the better form, which has been compiled, from now on.

        Raises:
            FtError: if its compilation failed. The program then keeps its form for good.
        """
        with _exchanging:
            improvement = self.improvement
            if improvement is None or improvement.compiled is None:
                return
            self.improvement = None
            self.executable = improvement.compiled.result()
            self.improvement = improvement.then(self.executable)

    @property
    def comes_to_python(self) -> bool:
        """True if each call goes through Python although the program has no callbacks."""
        return self.executable.is_windowed and not self.executable.calls_python

    def leaves_python(self) -> bool:
        """Return True if C++ may run the program without Python, in eager calls, too."""
        return INSPECTED.value is None and not self.executable.calls_python

    def fastpath(self, out_tree: Any, *, handles_failures: bool = False) -> Any:
        """Return the fast path by which C++ runs later calls of the signature; None if they go through Python.

        Args:
            out_tree: structure of the result.
            handles_failures: whether the caller asks `callbacks.original` about each error of C++.
        """
        if INSPECTED.value is not None:
            return None
        return self.executable.fastpath(
            out_tree,
            self.out_avals,
            self.kept_inputs,
            self.consts,
            committed=self.committed,
            handles_failures=handles_failures,
        )
