"""Types for annotations: operands that are accepted as arrays, dtypes, axes, indices and devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np

from functorch_like.core import Array

if TYPE_CHECKING:
    from concurrent.futures import Future

    from functorch_like.arrays.array_type import Device, Sharding
    from functorch_like.lax.contract import DotAlgorithm
    from functorch_like.lax.convolution import ConvDimensionNumbers
    from functorch_like.transforms.jit_stages import Lowered, Traced

__all__ = (
    "ArrayLike",
    "Arrays",
    "Axis",
    "AxisName",
    "Binary",
    "Block",
    "ConvLayout",
    "DTypeLike",
    "DeviceLike",
    "Index",
    "Jitted",
    "NestedArrayLike",
    "Padding",
    "PrecisionLike",
    "PyTree",
    "Shape",
    "SupportsArray",
    "SupportsDType",
    "Unary",
)


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype, such as `fnp.float32`."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        ...


@runtime_checkable
class SupportsArray(Protocol):
    """An object that converts to a NumPy array: a table, an image, an array of another library."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """The elements."""
        ...


if TYPE_CHECKING:
    ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
    NestedArrayLike: TypeAlias = ArrayLike | SupportsArray | Sequence["NestedArrayLike"]
    Arrays: TypeAlias = Array | np.ndarray[Any, Any] | Sequence[NestedArrayLike]
    ConvLayout: TypeAlias = (
        ConvDimensionNumbers | tuple[str, str, str] | tuple[Sequence[int], Sequence[int], Sequence[int]] | None
    )
    Padding: TypeAlias = str | Sequence[tuple[int, int]]
    AxisName: TypeAlias = Hashable | Sequence[Hashable]
    DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType
    Axis: TypeAlias = int | Sequence[int] | None
    Shape: TypeAlias = int | Sequence[int]
    _IndexItem: TypeAlias = (
        int | slice | EllipsisType | Array | np.ndarray[Any, Any] | np.generic | list[Any] | range | None
    )
    Index: TypeAlias = _IndexItem | tuple[_IndexItem, ...]
    DeviceLike: TypeAlias = Device | Sharding | str | None
    PrecisionLike: TypeAlias = str | DotAlgorithm | tuple[str, str] | None  # enumerations of names are str, too
    PyTree: TypeAlias = Any
else:
    #: Arrays, traced or not, NumPy's arrays and scalars, Python's numbers. For lists use fnp.asarray.
    ArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex
    #: Values that `fnp.asarray` converts: array-likes, and lists of them within lists.
    NestedArrayLike = Array | np.ndarray | np.generic | bool | int | float | complex | SupportsArray | Sequence
    #: Arrays to join: a sequence of arrays, or one array, whose slices along the first axis are joined.
    Arrays = Array | np.ndarray | Sequence
    #: The letters of the dimensions of operand, kernel and result of a convolution: ("NCHW", "OIHW", "NCHW").
    ConvLayout = tuple | None
    #: "SAME", "VALID", or pairs of the padding before and after each dimension.
    Padding = str | Sequence
    #: The name of a mapped axis, as `vmap(axis_name=...)` gives it, or several.
    AxisName = Hashable | Sequence
    #: Names, scalar types, dtypes, and objects with a dtype.
    DTypeLike = str | type | np.dtype | SupportsDType
    #: One axis, several, or None, for all of them.
    Axis = int | Sequence | None
    #: The size of each dimension; an int is one dimension.
    Shape = int | Sequence
    #: An index expression, `x[...]`.
    Index = int | slice | EllipsisType | Array | np.ndarray | np.generic | list | range | tuple | None
    #: A device, a sharding, the name of a device ("cpu:0") or None, for the default device.
    DeviceLike = Any
    #: The precision of products: "highest", `lax.Precision.HIGHEST`, ..., one for each operand, or None.
    PrecisionLike = Any
    #: Nested containers with arrays as leaves; type checkers cannot describe them.
    PyTree = Any


_P = ParamSpec("_P")
_Rest = ParamSpec("_Rest")
_R_co = TypeVar("_R_co", covariant=True)
_Self = TypeVar("_Self")
_F = TypeVar("_F", bound=Callable[..., Any])


class Block(Protocol):
    """A context manager that is a decorator, too, for calls of a function."""

    def __enter__(self) -> object:
        """Begin."""
        ...

    def __exit__(self, kind: Any, value: Any, traceback: Any, /) -> bool | None:
        """End."""
        ...

    def __call__(self, fun: _F, /) -> _F:
        """Return a function whose calls are in the block."""
        ...


class Unary(Protocol):
    """A function of one array, element by element."""

    __name__: str

    def __call__(self, x: ArrayLike, /) -> Array:
        """Compute each element, as the function's own docstring describes."""
        ...


class Binary(Protocol):
    """A function of two arrays, element by element."""

    __name__: str

    def __call__(self, x1: ArrayLike, x2: ArrayLike, /) -> Array:
        """Compute each element, as the function's own docstring describes."""
        ...


class Jitted(Protocol[_P, _R_co]):
    """A function that `jit` returns; arguments and results are those of the user's function."""

    __name__: str

    @property
    def __wrapped__(self) -> Callable[_P, _R_co]:
        """The user's function."""
        ...

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Run the compiled program for these arguments; compile it at the first call with their shapes and dtypes."""
        ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Jitted[_P, _R_co]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[_Self, _Rest], _R_co], instance: _Self, owner: Any = None
    ) -> Callable[_Rest, _R_co]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a method."""
        ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays or `ShapeDtypeStruct`s) without compiling.

        Where Python control flow is followed, `trace`, `lower`, `eval_shape` and `warmup` trace all paths: each
        condition both as True and as False.

        Raises:
            ConcretizationError: if the function needs a concrete value, or its paths cannot be one program.
        """
        ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for these arguments (arrays or `ShapeDtypeStruct`s)."""
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result's pytree with `ShapeDtypeStruct`s as leaves, without compiling."""
        ...

    def warmup(self, *specs: tuple[object, ...], wait: bool = True) -> list[Future[None]]:
        """Compile ahead of calls: trace each signature in this thread, and compile the programs in other threads.

        Calls with these signatures then compile nothing; an earlier call waits for its program.

        Args:
            specs: a tuple of positional arguments for each signature. `ShapeDtypeStruct`s stand for arrays. Pass NumPy
                arrays, numbers and static values themselves.
            wait: True to return when all programs are compiled.

        Returns:
            A future for each signature. Its `result()` waits, and raises the error of a failed compilation.

        Raises:
            ArgumentError: for specs that are not tuples, inside of transformations, and for mode="max-autotune".

        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> norm = ft.jit(lambda x: fnp.sqrt(fnp.sum(x * x)))
        >>> futures = norm.warmup(*[(ft.ShapeDtypeStruct((n,), "float32"),) for n in (2, 3)])
        >>> float(norm(fnp.asarray([3.0, 4.0])))  # compiled already
        5.0
        """
        ...

    def paths(self) -> Any:
        """Return the paths that the function has taken, if it follows Python control flow; prints as a tree."""
        ...

    def learn(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the path of these arguments, and the other paths of its conditions, without compiling."""
        ...

    def optimised(self) -> None:
        """Compile the programs that are in the quick tier for their last tier, and wait for them.

        For programs on CPUs, under `backends.compilation.tiers = "auto"`. Call it before measuring time, or to make all
        calls give the same bits. If XLA refuses a form, a warning is issued and the one before stays.

        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> f = ft.jit(lambda x: fnp.sin(x) * fnp.cos(x) + x)
        >>> y = f(fnp.ones(3))
        >>> f.optimised()
        """
        ...

    def clear_cache(self) -> None:
        """Drop all traces and programs of this function."""
        ...
