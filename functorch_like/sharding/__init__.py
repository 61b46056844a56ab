"""Meshes of devices, and how arrays are split over them: JAX's names of `jax.sharding`.

>>> import functorch_like as ft
>>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
>>> mesh = ft.make_mesh((1,), ("data",))
>>> x = ft.device_put(ft.numpy.arange(4), NamedSharding(mesh, P("data")))
>>> x.sharding.spec
P('data')
"""

from functorch_like.backends.xla.memory_space import MemorySpace as MemorySpace
from functorch_like.backends.xla.mesh import AbstractMesh as AbstractMesh
from functorch_like.backends.xla.mesh import AxisType as AxisType
from functorch_like.backends.xla.mesh import Mesh as Mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec as PartitionSpec
from functorch_like.backends.xla.sharded_arrays import Shard as Shard
from functorch_like.sharding.axis_modes import auto_axes as auto_axes
from functorch_like.sharding.axis_modes import explicit_axes as explicit_axes
from functorch_like.sharding.constraints import reshard as reshard
from functorch_like.sharding.constructors import NamedSharding as NamedSharding
from functorch_like.sharding.constructors import Sharding as Sharding
from functorch_like.sharding.constructors import SingleDeviceSharding as SingleDeviceSharding
from functorch_like.sharding.mesh_context import get_mesh as get_mesh
from functorch_like.sharding.mesh_context import set_mesh as set_mesh
from functorch_like.sharding.mesh_context import use_mesh as use_mesh

P = PartitionSpec
