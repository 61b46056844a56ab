"""`jax.extend.sharding`: XLA's shardings, as objects of jaxlib and as bytes."""

from __future__ import annotations

from typing import Any

from functorch_like.backends.xla.jaxlib_api import xc


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Return jaxlib's `OpSharding` from its bytes."""
    made = xc.OpSharding()
    made.ParseFromString(sharding)
    return made


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Return jaxlib's `HloSharding` from its bytes."""
    return xc.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """Return the bytes of an `HloSharding`."""
    return sharding.to_proto().SerializeToString()
