"""Stubs for the imports that jaxlib's C++ makes by itself.

TRAP: C++ imports "jax.core" (for ShapedArray), "jax._src.named_sharding" and "jax._src.literals" once, and keeps the
results for the life of the process. It imports "jax._src.sharding_impls" for every array it wraps by itself. With jax
installed these would really import jax. `stubbed` puts stub modules in their place for the length of one call. `prime`
makes C++ do the imports that it keeps, once, right after the first client exists.

The package "jax" itself needs a stub too: C++ imports with an empty from-list, which imports the parent first.

Where modules under jax's names stay in `sys.modules` (`functorch_like.jax_alias`), C++ uses those: see `hand_over`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import sharding
from functorch_like.backends.xla.jaxlib_api import _jax, xc


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name, "Stands in for a module of jax during one call into jaxlib.")
    module.__dict__.update(contents)
    return module


_spec_check: Callable[[Any, Any], None] = lambda mesh, spec: None


def on_spec(check: Callable[[Any, Any], None]) -> None:
    """Set the function that is called with the mesh and spec of each new NamedSharding, and raises to refuse them."""
    global _spec_check
    _spec_check = check


def _check_spec(mesh: Any, spec: Any) -> None:
    """Check a spec for C++, which calls this whenever a NamedSharding is made."""
    if type(mesh) is not _OneDeviceMesh:
        _spec_check(mesh, spec)


_STUBS = {
    "jax": _module("jax"),
    "jax.core": _module("jax.core", ShapedArray=ShapedArray),
    "jax._src.named_sharding": _module("jax._src.named_sharding", check_pspec=_check_spec),
    "jax._src.literals": _module("jax._src.literals", TypedNdArray=type("TypedNdArray", (), {})),
    "jax._src.sharding_impls": _module(
        "jax._src.sharding_impls", make_single_device_sharding=lambda device, memory_kind=None: sharding.single(device)
    ),
}


class _Stubbed:
    """`with stubbed:` around one short call into C++. Costs about 0.8 us.

    The call must not release the interpreter for long: while it runs, another thread's `import jax` would find the
    stub. So block on an array before, not inside.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.modules = _STUBS

    def __enter__(self) -> None:
        self._lock.acquire()
        sys.modules.update(self.modules)

    def __exit__(self, *exception: object) -> None:
        for name in self.modules:
            sys.modules.pop(name, None)
        self._lock.release()

    def renew(self) -> None:
        """Make a new lock, in the child of a fork: a thread that the child lacks may have held the parent's lock."""
        self._lock = threading.RLock()


stubbed = _Stubbed()


def hand_over() -> dict[str, dict[str, Any]]:
    """Leave C++'s imports to modules that stay in `sys.modules`: return the names of each, and its contents."""
    stubbed.modules = {}
    return {name: {k: v for k, v in vars(m).items() if not k.startswith("__")} for name, m in _STUBS.items()}


@contextmanager
def _in_place_of_others() -> Generator[None]:
    """Put the stubs in place of modules that have the same names, for the length of the block."""
    others = {name: sys.modules[name] for name in _STUBS if name in sys.modules}
    with stubbed:
        sys.modules.update(_STUBS)
        try:
            yield
        finally:
            for name in _STUBS:
                sys.modules.pop(name, None)
            sys.modules.update(others)


class _OneDeviceMesh:
    """The part of a mesh that NamedSharding's constructor reads."""

    size = 1

    def __init__(self, device: Any) -> None:
        self._internal_device_list = sharding.device_list(device)


def prime(device: Any) -> None:
    """Let C++ look up the stubs, which it keeps for ever."""
    one = sharding.single(device)
    host = np.zeros(1, np.float32)
    with _in_place_of_others():
        array = xc.batched_device_put(ShapedArray((1,), host.dtype), one, [host], [device], False)
        array.unsafe_buffer_pointer()
        assert array._arrays  # C++ wraps the buffer again here, which looks up jax.core
        _jax.NamedSharding(_OneDeviceMesh(device), ())
        if hasattr(_jax, "shard_args"):  # from 0.11 on; looks up jax._src.literals
            _jax.shard_args([one], [None], [xc.ArrayCopySemantics.REUSE_INPUT], [host], lambda *a: [a[3][0]])
