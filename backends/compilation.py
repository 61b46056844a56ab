"""Settings for tracing and compiling functions.

>>> import functorch_like as ft
>>> absolute = ft.jit(lambda x: x if x > 0 else -x)
>>> with ft.backends.compilation.flags(control_flow="paths"):
...     float(absolute(-2.0))
2.0
"""

from __future__ import annotations

from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import one_of


class _Settings(Module, name="compilation"):
    control_flow = Setting(
        "error",
        one_of("error", "paths"),
        "Whether jit follows Python control flow that depends on values.\n\n"
        "'error': `if x > 0` and `int(n)` are refused. 'paths': each path through the function is traced, and checked "
        "by the values it depends on. `jit(control_flow=...)` sets it for one function.",
        changes="which functions are accepted",
    )
    tiers = Setting(
        "auto",
        one_of("auto", "off", "quick"),
        "The tiers in which programs for one device are compiled, those of eager functions among them.\n\n"
        "'auto': a new program is compiled under quick options. Once it has run long enough, it is compiled again in "
        "the background, and later calls run the optimised form, which is also kept on disk. "
        "On CPUs, programs with convolutions that run longer are compiled once more if another library computes these "
        "faster. On GPUs, programs with large matrix products have tiers: quick options leave the products to cuBLAS. "
        "'off': each program is compiled under its full options at once. 'quick': under quick options alone, for "
        "programs that run once. The last digits of results may differ between tiers.",
        changes="compile options",
    )


control_flow: str
tiers: str
flags: Block
adopt(__name__, _Settings)
