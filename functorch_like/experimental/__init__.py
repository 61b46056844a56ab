"""Modules that may still change, such as `ode`, differential equations, `sparse`, arrays, and `pallas`, kernels."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.experimental import buffer_callback as buffer_callback
    from functorch_like.experimental import compute_on as compute_on
    from functorch_like.experimental import control_deps as control_deps
    from functorch_like.experimental import custom_partitioning as custom_partitioning
    from functorch_like.experimental import ode as ode
    from functorch_like.experimental import pallas as pallas
    from functorch_like.experimental import random as random
    from functorch_like.experimental import rnn as rnn
    from functorch_like.experimental import scheduling_groups as scheduling_groups
    from functorch_like.experimental import serialize_executable as serialize_executable
    from functorch_like.experimental import shard_alike as shard_alike
    from functorch_like.experimental import sparse as sparse
    from functorch_like.experimental import topologies as topologies
    from functorch_like.experimental import xla_metadata as xla_metadata
