"""Blocks of operands and results: `BlockSpec`, the kinds of block dimensions, and `GridSpec`."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.errors import ArgumentError


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A block dimension of some size, whose index counts blocks. A plain int means the same."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A block dimension whose index counts elements, so that blocks may overlap.

    Attributes:
        block_size: size of the block.
        padding: numbers of undefined elements before and behind the array, which indices count, too.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A block dimension whose index is a slice, `pl.ds(start, size)`, in elements.

    Attributes:
        block_size: the size of all slices.
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A block dimension of size 1, which the kernel's Ref does not have. None means the same."""


#: The only instance that is needed.
squeezed = Squeezed()

BlockDim = Blocked | Element | BoundedSlice | Squeezed


class RevisitMode(enum.Enum):
    """Times at which a block of a buffer may be visited again. It has no effect."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """Number of buffers of a block, as `pipeline_mode`. It has no effect: blocks are slices of arrays."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class _NoBlockSpec:
    """The spec of an array that is one block; see `no_block_spec`."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


#: The spec of an array that is one block, for all steps.
no_block_spec = _NoBlockSpec()


@dataclasses.dataclass(frozen=True)
class BlockSpec:
    """The block of an operand or result that each step of the grid works on.

    Args:
        block_shape: size of the block along each axis: an int, None for an axis of size 1 that the kernel does not
            see, or `pl.Element`, `pl.BoundedSlice`, `pl.Blocked` or `pl.squeezed`. None: the whole array.
        index_map: `(*grid indices, *scalar operands) -> block indices`, one for each axis; one that returns a single
            number may leave out the tuple. None: the first block, for all steps.
        pipeline_mode: taken, and without effect.
        memory_space: name of a memory. It has no effect, except that `pl.ANY` without a shape gives the whole array.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.BlockSpec((8, None), lambda i, j: (i, j)).block_shape
        (8, None)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Any = None
    _: dataclasses.KW_ONLY
    memory_space: Any = None

    def __post_init__(self) -> None:
        if callable(self.block_shape):
            raise ArgumentError(
                "BlockSpec got a function as block_shape", fix="pl.BlockSpec(block_shape, index_map), in this order"
            )
        if self.block_shape is not None:
            shape = (self.block_shape,) if isinstance(self.block_shape, int) else tuple(self.block_shape)
            object.__setattr__(self, "block_shape", shape)

    def replace(self, **changes: object) -> BlockSpec:
        """Return a spec with some fields changed.

        Args:
            changes: new values by name.
        """
        values: dict[str, Any] = dict(changes)
        return dataclasses.replace(self, **values)


class GridSpec:
    """The grid of a kernel, and the blocks of its operands and results.

    Args:
        grid: number of steps along each axis, or an int for one axis; the last axis changes fastest. A size may be
            a traced scalar.
        in_specs: a `BlockSpec` or `no_block_spec` for each operand, in the structure of the operands.
        out_specs: the same for the results, in the structure of `out_shape`.
        scratch_shapes: descriptions of scratch arrays, which live for all steps: a sequence, or a dict by the
            names of the kernel's parameters.

    Example:
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.GridSpec(grid=4).grid
        (4,)
    """

    num_scalar_prefetch: int = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        names = tuple(n[0] if isinstance(n, tuple) else None for n in sizes)
        self.grid: tuple[Any, ...] = tuple(n[1] if isinstance(n, tuple) else n for n in sizes)
        self.grid_names = names if any(name is not None for name in names) else None
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) else scratch_shapes

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class PrefetchScalarGridSpec(GridSpec):
    """A `GridSpec` with scalar operands that index maps get, too.

    Args:
        num_scalar_prefetch: number of operands, the first ones, that index maps and the kernel get as whole Refs.
        grid: as for `GridSpec`.
        in_specs: specs of the other operands.
        out_specs: as for `GridSpec`.
        scratch_shapes: as for `GridSpec`.

    Example:
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(3,)).num_scalar_prefetch
        1
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch
