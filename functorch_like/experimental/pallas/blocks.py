"""The blocks of one array: the geometry of its `BlockSpec`, reading a block and writing it back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError
from functorch_like.experimental.pallas.environment import as_int32
from functorch_like.experimental.pallas.memory import unwritten
from functorch_like.experimental.pallas.specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    Squeezed,
    no_block_spec,
)
from functorch_like.ir.jaxpr import Atom, Jaxpr, Var, evaluate
from functorch_like.ir.trace_to_jaxpr import CapturedRefs, stage
from functorch_like.primitives import elementwise, structural
from functorch_like.primitives.updates import dynamic_slice
from functorch_like.ref.captured import captured_here, hold
from functorch_like.ref.reference import Ref
from functorch_like.ref.slices import Slice
from functorch_like.source_info import name_of


@dataclasses.dataclass
class Blocks:
    """The blocks of an array.

    Attributes:
        shape: shape of the array.
        sizes: size of a block along each axis, of 1 for squeezed axes.
        block: shape of the Ref that the kernel gets.
        units: elements that one index counts along each axis.
        padding: elements to add before and behind the array along each axis, so that no block reaches over its ends.
        starts: program that computes the start of the block along each axis; None if the block is the whole array.
        consts: values that the program closes over.
        axes: axes of the grid that the starts depend on.
    """

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    block: tuple[int, ...]
    units: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    starts: Jaxpr | None
    consts: list[Any]
    axes: frozenset[int]

    @property
    def is_whole(self) -> bool:
        """True if the array is one block."""
        return self.starts is None

    @property
    def level(self) -> int:
        """Number of the grid's axes, from the first on, whose indices determine the block."""
        return max(self.axes, default=-1) + 1

    def along(self, axis: int, size: int) -> int | None:
        """Return the axis of the array whose block number is the index along an axis of the grid.

        Args:
            axis: the axis of the grid.
            size: its size, which must be the number of blocks.

        Returns:
            The axis; None where blocks follow from the index in another way.
        """
        if self.starts is None:
            return None
        index = self.starts.inputs[len(self.consts) + axis]
        places = [d for d, out in enumerate(self.starts.outputs) if out is index]
        if len(places) != 1:
            return None
        (d,) = places
        others = [out for k, out in enumerate(self.starts.outputs) if k != d]
        padded = self.shape[d] + sum(self.padding[d])
        if self.units[d] != self.sizes[d] or padded != size * self.sizes[d]:
            return None
        return None if axis in _axes_of(self.starts, len(self.consts), axis + 1, others) else d

    def pad(self, x: Any) -> Any:
        """Return the array with its padding, of undefined elements."""
        if not any(map(any, self.padding)):
            return x
        config = tuple((low, high, 0) for low, high in self.padding)
        return structural.pad(x, unwritten(aval_of(x).dtype), padding_config=config)

    def unpad(self, x: Any) -> Any:
        """Return the array without its padding."""
        if not any(map(any, self.padding)):
            return x
        low = tuple(p[0] for p in self.padding)
        high = tuple(p + n for p, n in zip(low, self.shape, strict=True))
        return structural.slice(x, start_indices=low, limit_indices=high, strides=(1,) * len(low))

    def position(self, ids: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """Return the start of the block in the padded array; indices beyond `level` may be anything."""
        assert self.starts is not None
        indices = evaluate(self.starts, [*self.consts, *ids, *scalars])
        return [
            i if unit == 1 else elementwise.mul(i, np.asarray(unit, np.int32))
            for i, unit in zip(indices, self.units, strict=True)
        ]

    def read(self, x: Any, position: Sequence[Any] | None) -> Any:
        """Return a block of the padded array, with all axes."""
        if position is None:
            return x
        return dynamic_slice.dynamic_slice(x, *position, slice_sizes=self.sizes)

    def write(self, x: Any, position: Sequence[Any] | None, block: Any) -> Any:
        """Return the padded array with a block replaced."""
        return block if position is None else dynamic_slice.dynamic_update_slice(x, block, *position)

    def squeeze(self, block: Any) -> Any:
        """Return a block in the shape that the kernel sees."""
        return block if self.block == self.sizes else structural.reshape(block, shape=self.block)

    def unsqueeze(self, block: Any) -> Any:
        """Return a block with all axes."""
        return block if self.block == self.sizes else structural.reshape(block, shape=self.sizes)


def blocks_of(spec: Any, aval: ShapedArray, grid: int, scalars: tuple[Any, ...], what: str, kernel: str) -> Blocks:
    """Return the blocks of an array.

    Args:
        spec: its BlockSpec, or `no_block_spec`.
        aval: shape and dtype of the array.
        grid: number of the grid's axes.
        scalars: types of the scalar operands that index maps get, each a pytree.
        what: name of the array in errors: "operand 0".
        kernel: name of the kernel.

    Raises:
        ShapeError: where the block has another number of axes, or the index map gives another number of indices.
        DtypeError: for indices that are not integers.
        ArgumentError: for objects that are no BlockSpecs, and block dimensions of another kind.
    """
    shape = aval.shape
    if spec is not no_block_spec and not isinstance(spec, BlockSpec):
        raise ArgumentError(
            f"the spec of {what} of kernel {kernel} is {spec!r:.60}", fix="give a pl.BlockSpec, or pl.no_block_spec"
        )
    if spec is no_block_spec or spec.block_shape is None:
        sizes = shape
        return Blocks(shape, sizes, sizes, (1,) * len(sizes), ((0, 0),) * len(sizes), None, [], frozenset())
    dims = spec.block_shape
    if len(dims) != len(shape):
        raise ShapeError(
            f"the block {dims} of {what} of kernel {kernel} has {len(dims)} dimensions, the array {aval!r} has "
            f"{len(shape)}",
            fix="give one for each axis; None for axes of size 1 that the kernel does not see",
        )
    kinds = [_dimension(dim, n, what, kernel) for dim, n in zip(dims, shape, strict=True)]
    block = tuple(kind.size for kind, dim in zip(kinds, dims, strict=True) if not _is_squeezed(dim))
    starts, consts, axes = _index_map(spec, kinds, grid, scalars, what, kernel)
    if all(kind.size == n for kind, n in zip(kinds, shape, strict=True)) and all(k.unit == k.size for k in kinds):
        starts, axes = None, frozenset()  # any index but 0 would be out of bounds, and moved to it
    sizes, units = tuple(kind.size for kind in kinds), tuple(kind.unit for kind in kinds)
    return Blocks(shape, sizes, block, units, tuple(kind.padding for kind in kinds), starts, consts, axes)


@dataclasses.dataclass(frozen=True)
class _Dimension:
    """Size of a block along an axis, elements that an index counts, padding, and whether indices are slices."""

    size: int
    unit: int
    padding: tuple[int, int]
    slices: bool = False


def _is_squeezed(dim: Any) -> bool:
    return dim is None or isinstance(dim, Squeezed)


def _dimension(dim: Any, n: int, what: str, kernel: str) -> _Dimension:
    if _is_squeezed(dim):
        return _Dimension(1, 1, (0, 0))
    size = dim.block_size if isinstance(dim, (Blocked, Element, BoundedSlice)) else dim
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ArgumentError(
            f"{dim!r:.60} is a dimension of the block of {what} of kernel {kernel}",
            fix="give a size of at least 1, None, pl.Element(size), pl.BoundedSlice(size) or pl.Blocked(size)",
        )
    size = int(size)
    if isinstance(dim, Element):
        low, high = dim.padding
        return _Dimension(size, 1, (low, high + -(n + low + high) % size))
    if isinstance(dim, BoundedSlice):
        return _Dimension(size, 1, (0, max(size - n, 0)), True)
    return _Dimension(size, size, (0, -n % size if n else size))


def _index_map(
    spec: BlockSpec, kinds: Sequence[_Dimension], grid: int, scalars: tuple[Any, ...], what: str, kernel: str
) -> tuple[Jaxpr, list[Any], frozenset[int]]:
    """Return the index map as a program, the values it closes over, and the axes of the grid that it depends on."""
    index_map: Callable[..., Any] | None = spec.index_map
    scalar_avals, structure = tree.flatten(scalars)

    def indices(*args: Any) -> list[Any]:
        if index_map is None:
            return [np.zeros((), np.int32)] * len(kinds)
        given = index_map(*args[:grid], *structure.unflatten([Ref(x, lent=True) for x in args[grid:]]))
        values = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(values) != len(kinds):
            raise ShapeError(
                f"the index map {name_of(index_map)} of {what} of kernel {kernel} returned {len(values)} indices for "
                f"a block of {len(kinds)} dimensions, {spec.block_shape}",
                fix="return one index for each dimension of the block, squeezed ones included",
            )
        return [as_int32(_checked(v, k, what, kernel)) for v, k in zip(values, kinds, strict=True)]

    avals = [ShapedArray((), np.dtype(np.int32))] * grid + scalar_avals
    try:
        jaxpr, consts = stage(indices, avals, name="index_map")
    except CapturedRefs as e:  # it closes over Refs of a kernel, of which it gets the values
        refs = captured_here(e)
        values = [ref.read() for ref in refs]

        def closed(*args: Any) -> list[Any]:
            hold(refs, values)
            return indices(*args)

        jaxpr, consts = stage(closed, avals, name="index_map")
    return jaxpr, consts, _axes_of(jaxpr, len(consts), grid, jaxpr.outputs)


def _checked(index: Any, kind: _Dimension, what: str, kernel: str) -> Any:
    if kind.slices != isinstance(index, Slice):
        raise ArgumentError(
            f"the index map of {what} of kernel {kernel} returned {index!r:.60} for "
            f"{'a BoundedSlice' if kind.slices else 'a block dimension with one index'}",
            fix="return pl.ds(start, size) for pl.BoundedSlice(size), and integers for others",
        )
    if isinstance(index, Slice):
        if index.size != kind.size or index.stride != 1:
            raise ArgumentError(
                f"the index map of {what} of kernel {kernel} returned a slice of {index.size} elements with stride "
                f"{index.stride} for pl.BoundedSlice({kind.size})",
                fix="return slices of that size, and mask elements that are not needed",
            )
        index = index.start
    try:
        aval = aval_of(index)
    except FtError:
        aval = None
    if aval is None or aval.shape or not dtypes.is_integer(aval.dtype):
        raise DtypeError(
            f"the index map of {what} of kernel {kernel} returned {aval if aval is not None else index!r}",
            fix="return integer scalars",
        )
    return index


def _axes_of(jaxpr: Jaxpr, num_consts: int, grid: int, outputs: Sequence[Atom]) -> frozenset[int]:
    """Return the axes of the grid that some results of an index map depend on."""
    depends: dict[Any, frozenset[int]] = {
        v: frozenset({k}) for k, v in enumerate(jaxpr.inputs[num_consts : num_consts + grid])
    }
    none: frozenset[int] = frozenset()
    for equation in jaxpr.equations:
        axes = none.union(*(depends.get(a, none) for a in equation.inputs if type(a) is Var))
        for out in equation.outputs:
            depends[out] = axes
    return none.union(*(depends.get(a, none) for a in outputs if type(a) is Var))
