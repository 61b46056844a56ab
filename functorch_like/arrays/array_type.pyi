"""`functorch_like.Array` as type checkers and editors see it: one class for arrays and traced values.

At run time the class is jaxlib's, and `array_methods.py` gives it these attributes; tests/types compares the two.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends.xla.mesh import AbstractMesh, Mesh
from functorch_like.backends.xla.partition_spec import PartitionSpec
from functorch_like.backends.xla.sharded_arrays import Shard
from functorch_like.numpy.at_updates import IndexUpdate
from functorch_like.numpy.flat_elements import FlatElements
from functorch_like.typing import ArrayLike, Axis, DeviceLike, DTypeLike, Index, PrecisionLike

class Device:
    """A device of a platform, as jaxlib has it."""

    id: int
    platform: str
    device_kind: str
    process_index: int
    local_hardware_id: int | None
    def memory_stats(self) -> dict[str, int] | None: ...

class Sharding:
    """How an array is laid out over devices."""

    @property
    def device_set(self) -> set[Device]: ...
    @property
    def num_devices(self) -> int: ...
    @property
    def addressable_devices(self) -> set[Device]: ...
    @property
    def has_addressable_devices(self) -> bool: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...
    @property
    def memory_kind(self) -> str | None: ...
    @property
    def platform(self) -> str: ...
    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool: ...
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]: ...
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]: ...
    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]: ...
    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None: ...
    def with_memory_kind(self, kind: str) -> Sharding: ...
    def __getattr__(self, name: str) -> Any: ...

class NamedSharding(Sharding):
    """Each dimension is split along axes of a mesh."""

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None: ...
    @property
    def mesh(self) -> Mesh | AbstractMesh: ...
    @property
    def spec(self) -> PartitionSpec: ...
    @property
    def replicated_axes(self) -> frozenset[str]: ...
    def with_memory_kind(self, kind: str) -> NamedSharding: ...
    def update(
        self,
        spec: PartitionSpec | Sequence[Any] | None = None,
        *,
        mesh: Mesh | AbstractMesh | None = None,
        memory_kind: str | None = None,
    ) -> NamedSharding: ...

class SingleDeviceSharding(Sharding):
    """The whole array is on one device."""

    def __init__(self, device: Device, *, memory_kind: str | None = None) -> None: ...
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding: ...

class Array:
    """An array, or a traced value in its place: immutable elements of one dtype, on a device."""

    __hash__: None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]
    __array_priority__: int
    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    @property
    def size(self) -> int:
        """The number of elements."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""

    @property
    def weak_type(self) -> bool:
        """True where the dtype gives way to that of the other operand."""

    @property
    def aval(self) -> ShapedArray:
        """Shape, dtype and weak type in one object."""

    @property
    def T(self) -> Array:
        """The dimensions in reverse order."""

    @property
    def mT(self) -> Array:
        """The last two dimensions exchanged."""

    @property
    def real(self) -> Array:
        """The real part."""

    @property
    def imag(self) -> Array:
        """The imaginary part."""

    @property
    def at(self) -> IndexUpdate:
        """Updates by index: `x.at[idx].set(value)` and its relatives."""

    @property
    def flat(self) -> FlatElements:
        """The elements in row-major order: an iterator that can be indexed."""

    @property
    def device(self) -> Device:
        """The device the array is on."""

    @property
    def sharding(self) -> Sharding:
        """How the array is laid out over devices."""

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on devices of this process."""

    @property
    def global_shards(self) -> list[Shard]:
        """The parts on all devices."""

    @property
    def committed(self) -> bool:
        """True if the array was put where it is by the user, or computed from one that was."""

    @property
    def is_fully_addressable(self) -> bool:
        """True where every part is on a device of this process."""

    @property
    def is_fully_replicated(self) -> bool:
        """True where every device holds the whole array."""

    def __add__(self, other: ArrayLike) -> Array: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __pow__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __or__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __eq__(self, other: object) -> Array: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __ne__(self, other: object) -> Array: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __gt__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __contains__(self, value: ArrayLike) -> bool: ...
    def __getitem__(self, index: Index) -> Array: ...
    def __copy__(self) -> Array: ...
    def __deepcopy__(self, memo: object = None) -> Array: ...
    def __format__(self, spec: str) -> str: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: object = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum over axes."""
    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product over axes."""
    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The mean over axes."""
    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The standard deviation over axes."""
    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array:
        """The variance over axes."""
    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The greatest element over axes."""
    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The least element over axes."""
    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """The greatest less the least element over axes."""
    def all(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """True where all elements are true."""
    def any(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """True where an element is true."""
    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the greatest element."""
    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the least element."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Sums of the elements up to each."""
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Products of the elements up to each."""
    def argpartition(self, kth: int, axis: int | None = -1) -> Array:
        """Positions that partition the array."""
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Positions that sort the array."""
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """A sorted copy."""
    def astype(self, dtype: DTypeLike | None, copy: bool = False, device: DeviceLike = None) -> Array:
        """Another dtype; from complex to real takes the real part."""
    def byteswap(self, inplace: bool = False) -> Array:
        """The bytes of each element in reverse order."""
    def choose(self, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
        """The choices that these integers stand for."""
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """Elements no less than `min` and no greater than `max`."""
    def compress(
        self,
        condition: ArrayLike | Sequence[bool],
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """Slices where a condition is true."""
    def conj(self) -> Array:
        """The complex conjugate."""
    def conjugate(self) -> Array:
        """The complex conjugate."""
    def copy(self, memo: object = None) -> Array:
        """A copy, in memory of its own."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The elements whose indices along two axes differ by `offset`."""
    def dot(
        self, b: ArrayLike, *, precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None
    ) -> Array:
        """The product of vectors and matrices."""
    def flatten(self, order: str = "C") -> Array:
        """The elements in one dimension."""
    def ravel(self, order: str = "C") -> Array:
        """The elements in one dimension."""
    def nonzero(
        self, *, size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
    ) -> tuple[Array, ...]:
        """The indices of the elements that are not zero."""
    def repeat(
        self, repeats: ArrayLike | Sequence[int], axis: int | None = None, *, total_repeat_length: int | None = None
    ) -> Array:
        """Each element several times."""
    def reshape(self, *shape: int | Sequence[int], order: str = "C", copy: bool | None = None) -> Array:
        """The same elements in another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """The elements rounded to decimals."""
    def searchsorted(
        self,
        v: ArrayLike | Sequence[float],
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str | None = None,
    ) -> Array:
        """Where elements would be inserted to keep the order."""
    def squeeze(self, axis: Axis = None) -> Array:
        """The array without dimensions of size 1."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Two axes exchanged."""
    def take(
        self,
        indices: ArrayLike | Sequence[int],
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """Elements at indices along an axis."""
    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The sum of a diagonal."""
    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """The dimensions in another order, by default reversed."""
    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """The bytes read as another dtype."""
    def item(self, *args: int) -> Any:
        """One element as a Python number: the only one, or the one at an index."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""
    def block_until_ready(self) -> Array:
        """The array, once it is computed."""
    def is_ready(self) -> bool:
        """True where the array is computed."""
    def delete(self) -> None:
        """Free the memory of the array."""
    def is_deleted(self) -> bool:
        """True where the memory was donated or freed."""
    def devices(self) -> set[Device]:
        """The devices the array is on."""
    def to_device(self, device: DeviceLike, /, *, stream: object = None) -> Array:
        """The array on another device."""
    def copy_to_host_async(self) -> None:
        """Start the copy to the host for which a later read waits."""
    def addressable_data(self, index: int) -> Array:
        """The part on one of the devices of this process."""
