"""Loops, and programs in the quick tier, that become one kernel on CPUs, instead of a sequence of kernels.

XLA:CPU takes about 0.1 us to start a kernel. A step of a Kalman filter with four states is twenty kernels of a few
nanoseconds each: 500 steps took 1 ms, and take 32 us as one kernel, which also compiles in half of the time. XLA can
compile a whole function as one kernel, and does so for loops that read few bytes in all. The emitter requests it by an
attribute. Such a kernel runs on one thread, so only small arrays gain by it.

From XLA 0.11 on it pays for whole programs, too, while they are in the quick tier. There XLA generates each of their
kernels by way of MLIR, which takes several times longer than its older generator. Older releases have an option for
the older generator, which is one of the options of the quick tier.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator
from typing import Any

from functorch_like.backends.cpu import fast_lowering
from functorch_like.backends.xla.jaxlib_api import VERSION

_ON = fast_lowering("small_loops", "loops whose steps compute few elements run as one kernel, on one thread")
_PROGRAMS_ON = fast_lowering(
    "small_programs", "programs that compute few elements start as one kernel in the quick tier, from jaxlib 0.11 on"
)
_PROGRAMS_GAIN = VERSION >= (0, 11)
#: The most elements for which random words are always a kernel of their own on CPUs: keys, most often, which each
#: reader would compute again. For 1,024 numbers that costs more than it saves.
FEW_WORDS = 256
_off = threading.local()


def allowed(e: Any) -> bool:
    """Return True if loops in an emitter's module may become kernels: on one CPU device, under the options in force."""
    if e.platform != "cpu" or e.partitioning is not None or e.manual is not None or e.portable:
        return False
    return _ON() and not getattr(_off, "value", False)


def programs_on() -> bool:
    """Return True if programs may start as one kernel, under the options in force."""
    return _PROGRAMS_GAIN and _PROGRAMS_ON() and not getattr(_off, "value", False)


@contextlib.contextmanager
def none() -> Generator[None]:
    """Emit no such loops in this thread."""
    before, _off.value = getattr(_off, "value", False), True
    try:
        yield
    finally:
        _off.value = before
