"""Settings of how functions are traced to be compiled.

>>> import functorch_like as ft
>>> absolute = ft.jit(lambda x: x if x > 0 else -x)
>>> with ft.backends.compilation.flags(control_flow="paths"):
...     float(absolute(-2.0))
2.0
"""

from __future__ import annotations

from functorch_like.backends.flag_blocks import Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import one_of


class _Settings(Module, name="compilation"):
    control_flow = Setting(
        "error",
        one_of("error", "paths"),
        "Whether jit follows Python control flow that depends on values.\n\n"
        "'error': `if x > 0` and `int(n)` are refused. 'paths': each path through the function is traced, and checked "
        "by the values it depends on. `jit(control_flow=...)` says it for one function.",
        changes="which functions are accepted",
    )


control_flow: str
adopt(__name__, _Settings)
