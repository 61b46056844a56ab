"""Interface to XLA: the only package that imports jaxlib. It handles arrays and MLIR modules, never jaxprs.

Importing it costs about 40 ms over NumPy. The client starts with the first array, MLIR with the first lowering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla import counters
from functorch_like.backends.xla.arrays import (
    attach,
    block_until_ready,
    check_alive,
    device_of,
    device_put,
    devices_of,
    is_deleted,
    reduce_array,
    release,
    set_tracer_class,
    split_of,
    to_numpy,
    values_are_here,
)
from functorch_like.backends.xla.client import (
    Device,
    default_backend,
    default_device,
    devices,
    find_device,
    local_devices,
    started,
)
from functorch_like.backends.xla.compile_options import on_compile
from functorch_like.backends.xla.configuration import Setting, config, setting_names, settings
from functorch_like.backends.xla.dispatch import PjitFunction, clear_functions, function, on_error
from functorch_like.backends.xla.jaxlib_api import Array, ArrayImpl, JaxRuntimeError
from functorch_like.backends.xla.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    flatten,
    flatten_one_level,
    flatten_with_path,
    is_node,
    leaf_structure,
    register_dataclass_node,
    register_node,
    registry,
    structure,
    structure_of,
    unflatten,
)
from functorch_like.backends.xla.sharding import OneDevice
from functorch_like.backends.xla.traceback import frames, here, innermost

if TYPE_CHECKING:
    from functorch_like.backends.xla.emit import TOKEN, Emitter, build
    from functorch_like.backends.xla.executable import Executable, compile, load
    from functorch_like.backends.xla.installation import about
    from functorch_like.backends.xla.mlir import hlo, hlo_text, module_text, parse_module, verify

#: Declared in backends/xla_settings.py.
fast_math: tuple[str, ...]

__all__ = [
    "TOKEN",
    "Array",
    "ArrayImpl",
    "Device",
    "DictKey",
    "Emitter",
    "Executable",
    "FlattenedIndexKey",
    "GetAttrKey",
    "JaxRuntimeError",
    "OneDevice",
    "PjitFunction",
    "PyTreeDef",
    "SequenceKey",
    "Setting",
    "about",
    "attach",
    "block_until_ready",
    "build",
    "check_alive",
    "clear_functions",
    "compile",
    "config",
    "counters",
    "default_backend",
    "default_device",
    "device_of",
    "device_put",
    "devices",
    "devices_of",
    "find_device",
    "flatten",
    "flatten_one_level",
    "flatten_with_path",
    "frames",
    "function",
    "here",
    "hlo",
    "hlo_text",
    "innermost",
    "is_deleted",
    "is_node",
    "leaf_structure",
    "load",
    "local_devices",
    "module_text",
    "on_compile",
    "on_error",
    "parse_module",
    "reduce_array",
    "register_dataclass_node",
    "register_node",
    "registry",
    "release",
    "set_tracer_class",
    "setting_names",
    "settings",
    "split_of",
    "started",
    "structure",
    "structure_of",
    "to_numpy",
    "unflatten",
    "values_are_here",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import the names for compiling at first use: the emitter imports MLIR."""
    if name in ("Emitter", "TOKEN", "build"):
        from functorch_like.backends.xla import emit as module
    elif name in ("Executable", "compile", "load"):
        from functorch_like.backends.xla import executable as module
    elif name == "about":
        from functorch_like.backends.xla import installation as module
    elif name in ("hlo", "hlo_text", "module_text", "parse_module", "verify"):
        from functorch_like.backends.xla import mlir as module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(module, name)
    return value
