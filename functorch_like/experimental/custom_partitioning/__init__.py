"""`custom_partitioning`: functions whose program on the parts of arrays the user writes."""

from functorch_like.experimental.custom_partitioning.api import custom_partitioning as custom_partitioning
from functorch_like.experimental.custom_partitioning.sharding_rule import BATCHING as BATCHING
from functorch_like.experimental.custom_partitioning.sharding_rule import ArrayMapping as ArrayMapping
from functorch_like.experimental.custom_partitioning.sharding_rule import CompoundFactor as CompoundFactor
from functorch_like.experimental.custom_partitioning.sharding_rule import SdyShardingRule as SdyShardingRule

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]
