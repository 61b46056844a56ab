"""Trials of convolutions: on a CPU, each convolution of a program is timed with XLA's kernels and with YNNPACK's.

Depending on channels, window and processor, YNNPACK takes 0.6 to 2 times as long as XLA. The options of XLA choose
between the two for a whole program. So the times of its convolutions are added up, each as often as it runs, and the
faster way is kept on disk beside the compiled programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from functorch_like import core
from functorch_like.avals import ShapedArray
from functorch_like.backends import flags, xla
from functorch_like.backends.xla import cache, compile_options, option_sets
from functorch_like.compiler import tier_costs
from functorch_like.compiler.lower import Lowered, lower
from functorch_like.compiler.timing import least_seconds
from functorch_like.ir.jaxpr import Equation, Jaxpr, inner_jaxprs
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.base.lowering import is_for_the_last_tier
from functorch_like.primitives.contractions.precision import Product

#: Seconds of a program's run time that are worth the trial of one convolution: several times what the trial takes.
_WORTH = 0.2
#: Convolutions of fewer multiplications do not matter.
_LEAST = 1 << 18
#: Elements of operands and result above which a convolution is not tried, since the trial needs as much memory again.
_MOST = 1 << 26
#: Ratio of times below which YNNPACK is chosen: a smaller gain may be chance.
_GAIN = 0.97


class Trial:
    """The choice between XLA's and YNNPACK's convolutions for one program.

    Args:
        lowered: the program.
        device: the device. XLA itself times convolutions on GPUs: there is nothing to choose.
        options: the user's compile options.
        fingerprint: of the program; None if it has none.

    Attributes:
        fitting: compile options: the faster ones, if this or an earlier process has measured them.
        is_over: True if they have been measured, or if there is nothing to choose.
        worth: seconds of run time after which the trial should be made.
        report: the times measured by this process, as text.
    """

    def __init__(
        self, lowered: Lowered, device: Any, options: dict[str, Any] | None, fingerprint: bytes | None
    ) -> None:
        self.fitting, self.is_over, self.worth, self.report = lowered.fitting(device), True, 0.0, ""
        self._convolutions = _convolutions(lowered.jaxpr) if device.platform == "cpu" else {}
        if not self._convolutions:
            return
        self._ways = {"XLA": self.fitting, "YNNPACK": option_sets.with_convolutions(self.fitting)}
        all_options = [lowered.options(device, options, fitting=fitting) for fitting in self._ways.values()]
        if all_options[0] == all_options[1]:  # the user has chosen one way
            return
        everything = compile_options.options(device, options, self.fitting)
        self._note = None if fingerprint is None else cache.key(fingerprint, everything, device, "convolutions")
        known = cache.recall(self._note)
        if known in self._ways:
            self.fitting = self._ways[known]
        else:
            self.is_over, self.worth = False, _WORTH * len(self._convolutions)
        self._device = device

    def run(self) -> None:
        """Time the convolutions, and set `fitting`."""
        seconds = dict.fromkeys(self._ways, 0.0)
        with flags({"cache.enabled": False}):  # nobody will load a program of one convolution
            for convolution, times in self._convolutions.values():
                for way, took in _seconds(convolution, self._device, self._ways).items():
                    seconds[way] += times * took
        chosen = "YNNPACK" if seconds["YNNPACK"] < _GAIN * seconds["XLA"] else "XLA"
        self.fitting, self.is_over = self._ways[chosen], True
        cache.remember(self._note, chosen)
        self.report = "convolutions by " + ", ".join(f"{way} {took * 1e3:.3g} ms" for way, took in seconds.items())


def _convolutions(jaxpr: Jaxpr) -> dict[Any, tuple[Equation, float]]:
    """Return the different convolutions that YNNPACK may compute, and how often each of them runs."""
    found: dict[Any, tuple[Equation, float]] = {}
    for e, times in _equations(jaxpr, 1.0):
        if _is_for_both(e):
            key = tuple(a.aval for a in e.inputs), repr(sorted(e.params.items()))
            found[key] = e, found[key][1] + times if key in found else times
    return found


def _equations(jaxpr: Jaxpr, times: float) -> Iterator[tuple[Equation, float]]:
    for e in jaxpr.equations:
        yield e, times
        if e.prim.partial_eval is not None:
            for inner in inner_jaxprs(e.params):
                yield from _equations(inner, times * tier_costs.steps(e))


def _is_for_both(e: Equation) -> bool:
    """Return True for a convolution that YNNPACK has a kernel for: of images in float32, without groups and holes."""
    if not isinstance(e.prim, Product) or "lhs_dilation" not in e.params:
        return False
    (left, right), out, params = [a.aval for a in e.inputs], e.outputs[0].aval, e.params
    if not all(a.ndim == 4 and a.dtype == np.float32 for a in (left, right, out)):
        return False
    plain = max(params["feature_group_count"], params["batch_group_count"], *params["lhs_dilation"]) == 1
    fits = sum(a.size for a in (left, right, out)) <= _MOST
    if not (plain and fits and e.prim.multiplications([left, right], out, params) >= _LEAST):
        return False
    return not is_for_the_last_tier(e.prim.lower, [left, right], [out], params)  # which a trial would not compile


def _seconds(e: Equation, device: Any, ways: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the least time of one convolution for each way, on zeros: times do not depend on values."""
    avals: list[ShapedArray] = [a.aval.strong() for a in e.inputs]
    jaxpr, _ = stage(lambda *operands: [e.prim(*operands, **e.params)], avals, name="convolution", parent=core.EVALUATE)
    operands = [xla.device_put(np.zeros(a.shape, a.dtype), device) for a in avals]
    alone = lower(jaxpr, name="convolution")
    # What is not computed by a library is compiled quickly; it is the same for both ways.
    quick = {way: alone.quick_fitting(fitting, device) for way, fitting in ways.items()}
    programs = {way: alone.compile(device, fitting=fitting) for way, fitting in quick.items()}
    return least_seconds(programs, operands)
