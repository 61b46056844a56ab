"""Kernels on the cores of a TPU: `kernel` and `core_map`. One core does the work of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.errors import UnsupportedError
from functorch_like.experimental.pallas.call import pallas_call
from functorch_like.experimental.pallas.environment import Step, tracing
from functorch_like.experimental.pallas.scoped import run_scoped
from functorch_like.experimental.pallas.specs import GridSpec
from functorch_like.lax.counted import fori_loop
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@dataclasses.dataclass(frozen=True)
class TensorCoreMesh:
    """Cores that a kernel runs on, along one named axis.

    Attributes:
        axis_names: the name, in a tuple.
        num_cores: number of cores.
    """

    axis_names: tuple[str, ...]
    num_cores: int

    @property
    def shape(self) -> dict[str, int]:
        """Number of cores by the name of the axis."""
        return {self.axis_names[0]: self.num_cores}


def create_tensorcore_mesh(
    axis_name: str, devices: Sequence[object] | None = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """Make a mesh of cores.

    Args:
        axis_name: name of its axis, for `lax.axis_index`.
        devices: taken, and without effect.
        num_cores: number of cores; 1 by default.

    Example:
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.create_tensorcore_mesh("core", num_cores=2).shape
        {'core': 2}
    """
    return TensorCoreMesh((axis_name,), 1 if num_cores is None else int(num_cores))


def _checked(mesh: Any, name: str) -> TensorCoreMesh:
    if not isinstance(mesh, TensorCoreMesh):
        raise UnsupportedError(
            f"{name} got mesh={mesh!r:.60}", fix="give one pltpu.create_tensorcore_mesh(axis_name); or use pallas_call"
        )
    return mesh


def kernel(
    body: Callable[..., None] | None = None,
    out_type: PyTree = (),
    *,
    mesh: TensorCoreMesh,
    scratch_types: PyTree = (),
    compiler_params: object = None,
    interpret: object = False,
    cost_estimate: object = None,
    debug: bool = False,
    name: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """Make a function of arrays from a kernel that runs on each core of a mesh, in order.

    Args:
        body: `(*operands, *results, *scratch) -> None`, of Refs to whole arrays; `lax.axis_index` gives the core. Left
            out, the result is a decorator.
        out_type: a pytree of `ft.ShapeDtypeStruct`s.
        mesh: `pltpu.create_tensorcore_mesh(axis_name)`.
        scratch_types: descriptions of scratch arrays.
        compiler_params: taken, and without effect.
        interpret: as for `pallas_call`.
        cost_estimate: taken, and without effect.
        debug: as for `pallas_call`.
        name: name of the program.
        metadata: taken, and without effect.

    Returns:
        A function of arrays, which returns arrays in the structure of `out_type`.

    Raises:
        UnsupportedError: for other meshes.
        ArgumentError: at the call, as `pallas_call`.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        >>> @pl.kernel(out_type=ft.ShapeDtypeStruct((4,), "int32"), mesh=mesh)
        ... def double(x_ref, o_ref):
        ...     part = pl.ds(ft.lax.axis_index("core") * 2, 2)
        ...     o_ref[part] = x_ref[part] * 2
        >>> double(fnp.arange(4)).tolist()
        [0, 2, 4, 6]
    """
    cores = _checked(mesh, "pl.kernel")
    if body is None:
        return lambda fun: kernel(
            fun,
            out_type,
            mesh=mesh,
            scratch_types=scratch_types,
            interpret=interpret,
            debug=debug,
            name=name,
        )
    return pallas_call(
        body,
        out_type,
        grid_spec=GridSpec(((cores.axis_names[0], cores.num_cores),), scratch_shapes=scratch_types),
        interpret=interpret,
        debug=debug,
        name=name,
    )


def core_map(
    mesh: TensorCoreMesh,
    *,
    compiler_params: object = None,
    interpret: bool = False,
    debug: bool = False,
    cost_estimate: object = None,
    name: str | None = None,
    metadata: Mapping[str, str] | None = None,
    scratch_shapes: PyTree = (),
) -> Callable[[Callable[..., None]], None]:
    """Run a function on each core of a mesh, in order; it reads and writes Refs that it closes over.

    Args:
        mesh: `pltpu.create_tensorcore_mesh(axis_name)`.
        compiler_params: taken, and without effect.
        interpret: taken, and without effect.
        debug: taken, and without effect.
        cost_estimate: taken, and without effect.
        name: name for errors; the function's by default.
        metadata: taken, and without effect.
        scratch_shapes: descriptions of Refs that the function gets: a sequence, or a dict by names of parameters.

    Returns:
        A decorator that runs a function.

    Raises:
        UnsupportedError: for other meshes.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> ref = ft.new_ref(fnp.zeros(2))
        >>> @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2))
        ... def _():
        ...     ref[ft.lax.axis_index("core")] = 5.0
        >>> ref
        Ref([5., 5.], dtype=float32)
    """
    cores = _checked(mesh, "pl.core_map")

    def run(fun: Callable[..., None]) -> None:
        check_callable(fun, "core_map")
        title = name or name_of(fun)
        some = scratch_shapes if isinstance(scratch_shapes, dict) else {}

        @wraps(fun)
        def on_core(i: Any, _: None) -> None:
            with tracing(Step(title, (cores.num_cores,), (i,), cores.axis_names)):
                run_scoped(fun, *(() if some else scratch_shapes), **some)

        fori_loop(np.zeros((), np.int32), np.asarray(cores.num_cores, np.int32), on_core, None)

    return run
