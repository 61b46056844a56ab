"""The imports of each side: the only file in which the two differ. The cases are written once, by JAX's names."""

import json
import platform
import statistics
import time
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

CALLS = 25

# The same imports as text, for cases that start processes of their own.
IMPORTS = {
    "ours": "import functorch_like as ft, functorch_like.numpy as fnp",
    "jax": "import jax as ft, jax.numpy as fnp",
}


def load(side: str) -> SimpleNamespace:
    """Return `ft`, `fnp`, `lax`, `nn` and `random` of one side, its name and its versions."""
    if side == "ours":
        import functorch_like as ft
        import functorch_like.numpy as fnp
        from functorch_like import lax, nn, random
    else:
        import jax as ft
        import jax.numpy as fnp
        from jax import lax, nn, random
    name = "functorch_like" if side == "ours" else "jax"
    about = {name: version(name), "jaxlib": version("jaxlib"), "python": platform.python_version()}
    return SimpleNamespace(side=side, ft=ft, fnp=fnp, lax=lax, nn=nn, random=random, about=about)


def measure(side: SimpleNamespace, cases: dict[str, tuple[Any, tuple[Any, ...]]], *, tiers: bool = False) -> None:
    """Print a JSON object of the seconds that functions take, jitted: for the first result, and for a call after it.

    With `tiers`, programs of this package start in the quick tier, and calls are measured in the last one.
    """
    api = side.ft
    if side.side == "ours" and not tiers:
        api.backends.compilation.tiers = "off"  # measure the last tier alone
    api.block_until_ready(api.jit(lambda x: x @ x)(side.fnp.ones((4, 4))))  # the costs of a process's first program
    found = {}
    for name, (function, arguments) in cases.items():
        compiled = api.jit(function)
        started = time.perf_counter()
        api.block_until_ready(compiled(*arguments))
        first = time.perf_counter() - started
        if side.side == "ours" and tiers:
            compiled.optimised()
        calls = []
        for _ in range(CALLS):
            started = time.perf_counter()
            api.block_until_ready(compiled(*arguments))
            calls.append(time.perf_counter() - started)
        found[name] = {"first": first, "call": statistics.median(calls)}
    print(json.dumps(found))
