"""`serialize` and `deserialize_and_load`: compiled functions as bytes, which other processes run without compiling.

The bytes are machine code: they fit one version of jaxlib and one kind of processor. `ft.export` stores the program
instead, which every version compiles.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import cache, xla
from functorch_like.calling import api_boundary
from functorch_like.calling.edited_errors import ErrorsEdited
from functorch_like.errors import ArgumentError, DeviceError, UnsupportedError, refuse_pickling
from functorch_like.sharding import AxisType, Mesh, NamedSharding
from functorch_like.transforms.compiled_calls import UNKNOWN, CompiledCalls
from functorch_like.transforms.jit_stages import Compiled

#: First bytes of object files: on Linux, and on macOS.
_OBJECT_FILES = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
_FORMAT = "functorch_like compiled function 3"
#: Types of static arguments whose values are stored; those of others are not compared later.
_STORED = (bool, int, float, complex, str, bytes, type(None))


class _Spec(NamedTuple):
    name: str


class _Results(NamedTuple):
    out_avals: list[ShapedArray]


class _Signature(NamedTuple):
    """Facts of a traced function that `CompiledCalls` reads."""

    spec: _Spec
    in_tree: Any
    in_avals: list[ShapedArray]
    out_tree: Any
    statics: tuple[Any, ...]
    donated: tuple[bool, ...]
    consts: list[Any]
    jaxpr: _Results


class Loaded(ErrorsEdited):
    """A compiled function that was loaded: call it with arguments of exactly its signature.

    Attributes:
        in_tree, out_tree: the structures of the arguments, as (args, kwargs), and of the result.
        in_avals: avals of the arguments, in the structure of the arguments.
        out_info: shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`.
        executable: the program.
    """

    __reduce_ex__ = refuse_pickling("a compiled function")

    def __init__(self, signature: _Signature, executable: Any, kept_inputs: Sequence[bool]) -> None:
        self.in_tree, self.out_tree, self.executable = signature.in_tree, signature.out_tree, executable
        self.in_avals = self.in_tree.unflatten(signature.in_avals)
        self.out_info = self.out_tree.unflatten(
            [ShapeDtypeStruct(a.shape, a.dtype, a.weak_type) for a in signature.jaxpr.out_avals]
        )
        ErrorsEdited.__init__(self, CompiledCalls(signature, executable, kept_inputs).function())  # type: ignore[arg-type]

    def as_text(self) -> str:
        """Optimised HLO text."""
        return self.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of work: flops, bytes accessed, transcendentals."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporaries and aliases, as XLA allocated them."""
        return self.executable.memory_analysis()


@api_boundary.public
def serialize(compiled: Compiled) -> tuple[bytes, object, object]:
    """Return a compiled function as bytes, with the structures of its arguments and its result.

    Args:
        compiled: a result of `ft.jit(f).lower(...).compile()`.

    Returns:
        Three values for `deserialize_and_load`. The structures can be pickled if their nodes can.

    Raises:
        ArgumentError: for anything else.
        UnsupportedError: for a function with callbacks, or with values of refs or of other meshes.

    >>> import functorch_like as ft
    >>> from functorch_like.experimental.serialize_executable import deserialize_and_load, serialize
    >>> stored = serialize(ft.jit(lambda x: x + 1).lower(2.0).compile())
    >>> float(deserialize_and_load(*stored)(3.0))
    4.0
    """
    if not isinstance(compiled, Compiled):
        raise ArgumentError(
            f"serialize takes a compiled function, got {compiled!r:.60} of type {type(compiled).__name__}",
            fix="serialize(ft.jit(f).lower(*args).compile())",
        )
    traced, executable = compiled.traced, compiled.executable
    if executable.calls_users:
        raise UnsupportedError(
            f"{traced.spec.name} calls Python, which bytes cannot keep", fix="leave out callbacks and debug.print"
        )
    content = {
        "format": _FORMAT,
        "name": traced.spec.name,
        "program": _machine_code(compiled),
        "in_avals": traced.in_avals,
        "out_avals": traced.jaxpr.out_avals,
        "program_avals": (executable.in_avals, executable.out_avals),
        "kept": list(compiled._kept_inputs),
        "donated": traced.donated,
        "statics": tuple(tuple((which, _stored(value)) for which, value in group) for group in traced.statics),
        "consts": [np.asarray(c) for c in traced.consts],
        "mesh": _mesh(executable),
        "device": getattr(executable.device, "id", None),
        "platform": executable.device.platform,
    }
    return pickle.dumps(content), compiled.in_tree, compiled.out_tree


def _stored(static: Any) -> tuple[Any, ...]:
    """Return a static value in a tuple, which is empty for a value of a type that is not stored."""
    plain = all(map(_stored, static)) if type(static) is tuple else type(static) in _STORED
    return (static,) if plain else ()


def _machine_code(compiled: Compiled) -> bytes:
    """Return the program with its machine code.

    TRAP: a program that XLA:CPU loaded from bytes, as the disk cache does, gives bytes without it. So compile it anew.
    """
    executable = compiled.executable
    body = executable.serialize()
    if executable.device.platform != "cpu" or any(magic in body for magic in _OBJECT_FILES):
        return body
    device = None if isinstance(executable.device, Mesh) else executable.device
    with cache.flags(enabled=False):
        return compiled.traced.lower(device=device).compile(compiled._options).executable.serialize()


def _mesh(executable: Any) -> Any:
    """Return the mesh of a program, and the specs of its arguments and results; None for one device."""
    if not isinstance(executable.device, Mesh):
        return None
    mesh = executable.device
    split = [[(s.spec, s.memory_kind) for s in each] for each in (executable.in_shardings, executable.out_shardings)]
    return mesh.device_ids.tolist(), mesh.axis_names, mesh.explicit_axes, split


class _Reader(pickle.Unpickler):
    """Reader of what `serialize` writes: classes of NumPy, ml_dtypes and this package alone."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in ("functorch_like", "numpy", "ml_dtypes"):
            raise pickle.UnpicklingError(f"{module}.{name} is not in the bytes of a compiled function")
        return super().find_class(module, name)


@api_boundary.public
def deserialize_and_load(
    serialized: bytes,
    in_tree: object,
    out_tree: object,
    backend: str | None = None,
    execution_devices: Sequence[object] | None = None,
) -> Loaded:
    """Load a compiled function. The bytes are machine code: load only those from a place that you trust.

    Args:
        serialized: the bytes that `serialize` returned.
        in_tree: the structure of the arguments, likewise.
        out_tree: the structure of the result, likewise.
        backend: "cpu" or "gpu"; the platform that it was compiled for if None.
        execution_devices: devices in place of those that it was compiled for.

    Returns:
        A function of the signature that was compiled for.

    Raises:
        ArgumentError: for other bytes.
        CompileError: for bytes that another version of jaxlib or another processor made.
        DeviceError: where there are fewer devices, or other ones.

    >>> from functorch_like.experimental.serialize_executable import deserialize_and_load
    >>> deserialize_and_load(b"", None, None)
    Traceback (most recent call last):
        ...
    functorch_like.errors.ArgumentError: these bytes are not those of a compiled function...
    """
    content = _read(serialized)
    platform = content["platform"] if backend is None else backend
    place, split = _place(content, platform, execution_devices)
    (in_avals, out_avals), name = content["program_avals"], content["name"]
    from functorch_like.backends.xla import restoring  # few programs load others

    executable = restoring.restored(content["program"], place, in_avals, out_avals, name, split)
    consts = [xla.device_put(c) for c in content["consts"]]
    if split is not None:
        from functorch_like.backends.xla import sharded_arrays

        kept = content["kept"][: len(consts)]
        places = iter(split[0])
        consts = [sharded_arrays.bring(c, next(places)) if k else c for c, k in zip(consts, kept, strict=True)]
    signature = _Signature(
        _Spec(name),
        in_tree,
        content["in_avals"],
        out_tree,
        tuple(tuple((which, *(value or (UNKNOWN,))) for which, value in group) for group in content["statics"]),
        content["donated"],
        consts,
        _Results(content["out_avals"]),
    )
    return Loaded(signature, executable, content["kept"])


def _read(serialized: bytes) -> dict[str, Any]:
    try:
        content = _Reader(io.BytesIO(serialized)).load()
        if content["format"] == _FORMAT:
            return content
    except Exception as error:
        raise _unreadable() from error
    raise _unreadable()


def _unreadable() -> ArgumentError:
    return ArgumentError(
        "these bytes are not those of a compiled function of this version", fix="pass what serialize(...) returned"
    )


def _place(content: dict[str, Any], platform: str, chosen: Sequence[object] | None) -> Any:
    """Return the device or mesh of a program, and on a mesh the shardings of its arguments and results."""
    there = {device.id: device for device in xla.devices(platform)}
    if content["mesh"] is None:
        devices = [there.get(content["device"])] if chosen is None else list(chosen)
        _check(devices, 1, content["name"])
        return devices[0], None
    ids, axes, explicit, split = content["mesh"]
    flat = np.ravel(ids).tolist()
    devices = [there.get(k) for k in flat] if chosen is None else list(chosen)
    _check(devices, len(flat), content["name"])
    grid = np.empty(len(flat), object)
    grid[:] = devices
    types = tuple(AxisType.Explicit if name in explicit else AxisType.Auto for name in axes)
    mesh = Mesh(grid.reshape(np.shape(ids)), axes, types)
    shardings = [[NamedSharding(mesh, spec, memory_kind=kind) for spec, kind in each] for each in split]
    return mesh, shardings


def _check(devices: list[Any], count: int, name: str) -> None:
    if len(devices) != count or None in devices:
        raise DeviceError(
            f"{name} was compiled for {count} device{'s' * (count != 1)}, which are not all here",
            fix=f"pass execution_devices= with {count} of ft.devices()",
        )
