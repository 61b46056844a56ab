"""inspect_sharding: a report of the sharding that the compiler gives a value."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends import xla
from functorch_like.backends.xla.sharding import single
from functorch_like.backends.xla.target_device import target_device
from functorch_like.core import ArrayImpl, BatchAxis, NotDefined, Primitive
from functorch_like.source_info import name_of

_TARGET = "InspectSharding"  # XLA's own, which calls back while it partitions a program


class Inspection:
    """A callback of a sharding and a shape, as a parameter.

    It keeps what XLA calls alive for as long as a program refers to it.
    """

    __slots__ = ("callback", "held")

    def __init__(self, callback: Callable[[Any, tuple[int, ...]], object]) -> None:
        self.callback = callback
        self.held: list[Callable[[Any], None]] = []

    def __repr__(self) -> str:
        return name_of(self.callback)

    def once(self, shape: tuple[int, ...]) -> Callable[[Any], None]:
        """Return the callback of one lowering, whose module may be compiled several times."""
        left = [self.callback]

        def call(sharding: Any) -> None:
            if left:
                left.pop()(sharding, shape)

        return call


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    (x,) = args
    array = x if type(x) is ArrayImpl else xla.device_put(x)
    params["inspection"].callback(array.sharding, array.shape)
    return []


def _lower(e: xla.Emitter, x: Any, *, inspection: Inspection) -> list[Any]:
    e.forbid_template()
    once = inspection.once(e.ins[0].shape)
    if e.partitioning is None:
        once(single(target_device() or xla.default_device()))
        return []
    from functorch_like.backends.xla import named_sharding
    from functorch_like.backends.xla.jaxlib_api import _jax
    from functorch_like.backends.xla.partition_spec import PartitionSpec

    mesh = e.partitioning.mesh
    if e.manual is not None or mesh.size == 1:  # XLA partitions nothing there
        once(named_sharding.named(mesh, PartitionSpec()))
        return []
    ndim = e.ins[0].ndim

    def see(hlo: Any) -> None:
        once(named_sharding.named(mesh, named_sharding.spec_of(mesh, hlo, ndim) or PartitionSpec()))

    inspection.held.append(see)
    attrs = {
        "call_target_name": e.string(_TARGET),
        "backend_config": e.string(_jax.encode_inspect_sharding_callback(see)),
        "has_side_effect": e.attr("true"),
        "api_version": e.i32(1),
        # Programs are kept on disk by their text, which may have no other's address.
        "mhlo.frontend_attributes": e.attr(f'{{inspected = "{uuid.uuid4().hex}"}}'),
    }
    e.op("stablehlo.custom_call", [x], [e.ins[0]], attrs)
    return []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, inspection: Inspection) -> tuple[list[Any], list[Any]]:
    return inspect_sharding(*primals, inspection=inspection), []


def _batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, inspection: Inspection
) -> tuple[list[Any], list[Any]]:
    return inspect_sharding(*args, inspection=inspection), []


inspect_sharding = Primitive(
    "inspect_sharding",
    shape=lambda x, *, inspection: (),
    ref=NotDefined("it reports what the compiler chooses; tests/sharding/test_inspection.py reads it"),
    lower=_lower,
    jvp=_jvp,
    transpose=lambda cts, args, **_: [None],
    batch=_batch,
    samples=list,
    evaluate=_evaluate,
    effects=lambda **_: frozenset(["unordered"]),
    multiple_results=True,
)
