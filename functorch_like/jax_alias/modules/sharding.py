"""`jax.sharding`: meshes, specs and shardings with JAX's options."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import functorch_like as _ft
from functorch_like import sharding as _sharding
from functorch_like.avals import ShapedArray as _ShapedArray
from functorch_like.backends.xla import explicit_types as _explicit_types
from functorch_like.backends.xla import named_sharding as _named_sharding
from functorch_like.backends.xla.configuration import explicit_resolved as _explicit_resolved
from functorch_like.backends.xla.mesh import mesh_set as _mesh_set
from functorch_like.core import ArrayImpl as _ArrayImpl
from functorch_like.core import Trace as _Trace
from functorch_like.core import Tracer as _Tracer
from functorch_like.errors import ArgumentError
from functorch_like.ir.jaxpr import Literal as _Literal
from functorch_like.jax_alias.modules.arrays import LiteralArray as _LiteralArray
from functorch_like.jax_alias.modules.layout import Format as _Format
from functorch_like.jax_alias.modules.layout import format_of as _format_of
from functorch_like.numpy.at_updates import IndexRef as _IndexRef
from functorch_like.transforms.custom.symbolic_zeros import tangent_aval as _tangent_aval

AxisType = _sharding.AxisType


class _Class(type):
    """Class of a stand-in for a class of the package, whose constructor takes options that have no effect."""

    _real: Any

    def __call__(cls, *args: Any, **options: Any) -> Any:
        for name in ("memory_kind", "unreduced", "reduced", "abstract_device"):
            options.pop(name, None)
        if options.get("axis_types") is not None:
            options["axis_types"] = _without_manual(options["axis_types"])
        return cls._real(*args, **options)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._real, name)


def _without_manual(axis_types: Any) -> Any:
    """Return types of axes with Auto for Manual: here `shard_map` alone makes axes manual."""
    auto = lambda t: AxisType.Auto if t is AxisType.Manual else t
    return auto(axis_types) if isinstance(axis_types, AxisType) else tuple(map(auto, axis_types))


class Mesh(metaclass=_Class):
    """`ft.sharding.Mesh`."""

    _real = _sharding.Mesh


class AbstractMesh(metaclass=_Class):
    """`ft.sharding.AbstractMesh`."""

    _real = _sharding.AbstractMesh


class PartitionSpec(metaclass=_Class):
    """`ft.sharding.PartitionSpec`."""

    _real = _sharding.PartitionSpec


@dataclass(frozen=True)
class AbstractDevice:
    """A kind of device; programs are lowered for real devices, so that of an `AbstractMesh` has no effect.

    Attributes:
        device_kind: name of the model.
        num_cores: cores of one device, or None.
        platform: name of the platform.
    """

    device_kind: str
    num_cores: int | None
    platform: str


class _Axes(NamedTuple):
    varying: frozenset[str]
    unreduced: frozenset[str]
    reduced: frozenset[str]


class ManualAxisType(_Axes):
    """Mesh axes along which a part inside of `shard_map` differs; avals of this package hold none.

    Attributes:
        varying: axes along which the parts differ.
        unreduced: axes over which a sum has still to be taken.
        reduced: axes along which the part is the same, and its cotangent a sum to be taken.
    """

    __slots__ = ()

    def __new__(cls, *, varying: Any = frozenset(), unreduced: Any = frozenset(), reduced: Any = frozenset()) -> Any:
        """Make one of three sets that share no axis.

        Raises:
            ArgumentError: for an axis in two of them.
        """
        sets = {"varying": frozenset(varying), "unreduced": frozenset(unreduced), "reduced": frozenset(reduced)}
        for (one, first), (other, second) in combinations(sets.items(), 2):
            if first & second:
                raise ArgumentError(
                    f"{one} and {other} both have the axes {sorted(first & second)}",
                    fix="name an axis in one of them",
                )
        return super().__new__(cls, **sets)


P = PartitionSpec
make_single_device_sharding = _sharding.SingleDeviceSharding
_NO_MESH = _sharding.AbstractMesh((), ())


def get_abstract_mesh() -> Any:
    """Return the mesh that `set_mesh` has set, without its devices; an empty one where there is none."""
    mesh = get_mesh()
    return mesh if mesh is _NO_MESH else mesh.abstract_mesh


def get_mesh() -> Any:
    """Return the mesh that `set_mesh` has set, as in JAX no other; an empty one where there is none."""
    mesh = _mesh_set()
    return _NO_MESH if mesh is None else mesh


def set_mesh(mesh: Any) -> Any:
    """Call `ft.set_mesh`; a mesh without devices counts as None."""
    return _ft.set_mesh(mesh if isinstance(mesh, _sharding.Mesh) else None)


use_mesh = set_mesh


@contextmanager
def use_abstract_mesh(mesh: Any) -> Generator[Any]:
    """Run the block with the types of axes of an abstract mesh, if it has the axes of the mesh in force."""
    current = _sharding.get_mesh()
    if current is None or current.shape_tuple != mesh.shape_tuple:
        yield mesh
        return
    with _sharding.use_mesh(current.update(axis_types=mesh.axis_types)):
        yield mesh


def make_mesh(axis_shapes: Sequence[int], axis_names: Any, axis_types: Any = None, *, devices: Any = None) -> Any:
    """Call `ft.make_mesh`; as in JAX, axes are Explicit if `axis_types` is None."""
    types = AxisType.Explicit if axis_types is None else _without_manual(axis_types)
    return _ft.make_mesh(axis_shapes, axis_names, types, devices=devices)


def reshard(x: Any, out_shardings: Any) -> Any:
    """Call `ft.sharding.reshard`; a mesh without devices stands for the mesh in force."""
    return _sharding.reshard(x, concrete(out_shardings))


def split_result(fun: Callable[[], Any], where: Any) -> Any:
    """Return the result of a function with the sharding that `out_sharding` names; without a mesh, unchanged.

    Doubts how Explicit axes split the result inside of the function are resolved in any way.
    """
    with _explicit_resolved.held(True):
        result = fun()
    return reshard(result, where) if hasattr(where, "mesh") or _sharding.get_mesh() is not None else result


def concrete(shardings: Any) -> Any:
    """Replace abstract meshes in shardings by the mesh in force, or by the first device if there is none."""
    return _ft.tree.map(_concrete, shardings, is_leaf=lambda s: isinstance(s, _sharding.PartitionSpec))


class _Unspecified:
    """Type of the default value of shardings of `jit`."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


#: The default value of shardings of `jit`.
unspecified = _Unspecified()


def without_formats(shardings: Any) -> Any:
    """Replace formats, as `jit` takes them, by their shardings, and what is not specified by None."""

    def plain(leaf: Any) -> Any:
        if leaf is unspecified:
            return None
        return _concrete(leaf) if isinstance(leaf, _Format) else leaf

    return _ft.tree.map(plain, shardings)


def _concrete(sharding: Any) -> Any:
    if isinstance(sharding, _Format):  # layouts have no effect
        return None if sharding.sharding is None else _concrete(sharding.sharding)
    mesh = getattr(sharding, "mesh", None)
    if isinstance(mesh, _sharding.Mesh) or not isinstance(mesh, _sharding.AbstractMesh):
        return sharding
    current = _sharding.get_mesh()
    if current is None:
        return make_single_device_sharding(_ft.devices()[0])
    if current.axis_names == mesh.axis_names:
        current = current.update(axis_types=mesh.axis_types)
    return _sharding.NamedSharding(current, sharding.spec)


def _of_type(aval: _ShapedArray) -> Any:
    """Return the sharding of a type, on the mesh in force, or on one without axes."""
    mesh = get_abstract_mesh() if aval.explicit is None else aval.explicit.mesh
    return _named_sharding.named(mesh, _explicit_types.spec_of(aval.explicit, aval.ndim))


def _addressable_devices(sharding: Any) -> tuple[Any, ...]:
    local = set(_ft.local_devices())
    mesh = getattr(sharding, "mesh", None)
    devices = sorted(sharding.device_set, key=lambda d: d.id) if mesh is None else mesh.devices.flat
    return tuple(device for device in devices if device in local)


def with_out_sharding(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function, or a method, take `out_sharding`."""

    @functools.wraps(fun)
    def called(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is None:
            return fun(*args, **kwargs)
        return split_result(lambda: fun(*args, **kwargs), out_sharding)

    return called


def attach() -> None:
    """Give classes of the package the attributes of JAX's that libraries read."""
    for name in ("get", "set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"):
        setattr(_IndexRef, name, with_out_sharding(getattr(_IndexRef, name)))
    arrays: Any
    for arrays in (_ArrayImpl, _Tracer):
        for name in ("flatten", "ravel", "repeat", "reshape"):
            setattr(arrays, name, with_out_sharding(getattr(arrays, name)))
    mesh: Any = _sharding.AbstractMesh
    mesh._any_axis_explicit = property(lambda self: bool(self.explicit_axes))
    mesh._any_axis_manual = False
    mesh._are_all_axes_auto = property(lambda self: not self.explicit_axes)
    mesh.abstract_device = None
    # Read by orbax, which restores each part. The public names are stand-ins for these classes.
    kind: Any
    for kind in (_named_sharding.NamedSharding, _named_sharding.SingleDeviceSharding):
        kind._addressable_device_assignment = property(_addressable_devices)
    trace: Any = _Trace
    trace.main = property(lambda self: self)  # in JAX, an object that the traces of one transformation shared
    literal: Any = _Literal
    literal.val = property(lambda self: self.value.item() if self.aval.weak_type else self.value.view(_LiteralArray))
    array: Any = _ArrayImpl
    array.format = property(_format_of)
    aval: Any = _ShapedArray
    aval.sharding = property(_of_type)
    aval.vma = frozenset()
    aval.manual_axis_type = ManualAxisType()
    aval.to_tangent_aval = aval.at_least_vspace = _tangent_aval
