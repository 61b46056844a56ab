"""`jax.interpreters.pxla`: options by which jaxlib compiles programs for several devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.jax_alias.modules.backend import get_compile_options
from functorch_like.jax_alias.modules.sharding import get_mesh as get_concrete_mesh
from functorch_like.jax_alias.modules.sharding import unspecified as UNSPECIFIED
from functorch_like.sharding import AbstractMesh, get_mesh

__all__ = ["UNSPECIFIED", "ThreadResources", "create_compile_options", "get_concrete_mesh", "thread_resources"]


class ThreadResources:
    """The mesh of `with mesh:`, as libraries that precede `set_mesh` read it: `thread_resources.env.physical_mesh`."""

    @property
    def env(self) -> ThreadResources:
        """This object."""
        return self

    @property
    def physical_mesh(self) -> Any:
        """The mesh; an empty one outside of such blocks."""
        mesh = get_mesh()
        return mesh if mesh is not None and mesh.is_entered else AbstractMesh((), ())


thread_resources = ThreadResources()


def create_compile_options(
    computation: Any, tuple_args: bool, allow_prop_to_inputs: Any, allow_prop_to_outputs: Any, backend: Any,
    np_dev: Any, compiler_options: dict[str, Any] | None,
) -> Any:  # fmt: skip
    """Return compile options of jaxlib for a program that is split over devices.

    Args:
        computation: has no effect.
        tuple_args: True if the program takes its arguments as one tuple.
        allow_prop_to_inputs, allow_prop_to_outputs: for each argument and result, True if XLA may choose its sharding.
        backend: has no effect.
        np_dev: array of the devices.
        compiler_options: options of XLA by name.

    Returns:
        The `CompileOptions`.
    """
    devices = np.asarray(np_dev)
    ids = np.array([device.id for device in devices.flat], np.int32).reshape(1, -1)
    made = get_compile_options(1, devices.size, ids, compiler_options)
    made.parameter_is_tupled_arguments = tuple_args
    build = made.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = devices.size > 1
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return made
