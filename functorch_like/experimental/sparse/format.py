"""`JAXSparse`, the base of sparse arrays, with the operators of arrays; and the layout that formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from functorch_like import tree
from functorch_like.calling import api_boundary as boundary
from functorch_like.core import Tracer, aval_of
from functorch_like.errors import ArgumentError, DtypeError, FtError, ShapeError
from functorch_like.numpy import promotion

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.experimental.sparse.bcoo import BCOO

#: The functions that methods of the classes call, by name; files that import the classes provide them.
METHODS: dict[str, Callable[..., Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])
Self = TypeVar("Self", bound="JAXSparse")


class SparseEfficiencyError(ValueError):
    """A conversion would store many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A conversion stores many zeros."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """Warning category of programs that filter JAX's cuSPARSE warnings; this package never issues it."""


class Layout(NamedTuple):
    """The roles of a sparse array's dimensions: batch dimensions come first, dense ones last."""

    n_batch: int
    n_sparse: int
    n_dense: int

    def sparse_axes(self) -> range:
        """Return the axes that have indices."""
        return range(self.n_batch, self.n_batch + self.n_sparse)

    def kind(self, axis: int) -> str:
        """Return "batch", "sparse" or "dense"."""
        return "batch" if axis < self.n_batch else "sparse" if axis < self.n_batch + self.n_sparse else "dense"


def method(fun: F) -> F:
    """Provide a function for the methods of sparse arrays, under its name."""
    METHODS[fun.__name__] = boundary.public(fun)
    return fun


class JAXSparse:
    """Base class of sparse arrays: a pytree whose leaves are the stored values and their indices.

    Attributes:
        data: the stored values.
        shape: of the array that it stands for.
    """

    data: Any
    # NumPy's operators defer to these.
    __array_priority__ = 1001
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # equality is elementwise
    _remedy = "call .todense() first, or sparse.sparsify(f) to apply a function to sparse arrays"

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        raise NotImplementedError

    @property
    def layout(self) -> Layout:
        """Numbers of batch, sparse and dense dimensions."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the stored values."""
        return aval_of(self.data).dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return sum(self.layout)

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def n_batch(self) -> int:
        """Number of batch dimensions."""
        return self.layout.n_batch

    @property
    def n_sparse(self) -> int:
        """Number of dimensions that have indices."""
        return self.layout.n_sparse

    @property
    def n_dense(self) -> int:
        """Number of dense dimensions."""
        return self.layout.n_dense

    @property
    def nse(self) -> int:
        """Number of stored elements of each batch, padding included."""
        return aval_of(self.data).shape[self.n_batch]

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Return the array with its axes permuted; reversed by default."""
        raise NotImplementedError

    def to_bcoo(self) -> BCOO:
        """Return the array as a BCOO."""
        raise NotImplementedError

    def _as_operand(self) -> tuple[Any, bool]:
        """Return a BCOO, BCSR or COO to multiply, and True if its matrices are transposed."""
        raise NotImplementedError

    def todense(self) -> Array:
        """Return the dense array; elements that are stored twice add up."""
        return self.to_bcoo().todense()

    def sum(self, axis: int | Sequence[int] | None = None) -> BCOO | Array:
        """Return the sum over axes: a BCOO, or a scalar array for all of them."""
        return self.to_bcoo().sum(axis)

    def block_until_ready(self: Self) -> Self:
        """Wait until the values and indices are computed."""
        for leaf in tree.leaves(self):
            if not isinstance(leaf, Tracer) and hasattr(leaf, "block_until_ready"):
                leaf.block_until_ready()
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise promotion.error(ShapeError, f"len() of {self!r}, which has no dimensions", "use .todense().item()")
        return self.shape[0]

    def __bool__(self) -> NoReturn:
        raise promotion.error(
            ArgumentError, f"the truth of {self!r} is ambiguous", "reduce it first, or use .todense()"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise promotion.error(
            DtypeError, f"{self!r} is sparse, and NumPy has dense arrays only", self._remedy
        )  # fmt: skip

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            of = f"{self.dtype.name}[{', '.join(map(str, self.shape))}], nse={self.nse}"
            parts = [f"{k}={v}" for k, v in (("n_batch", self.n_batch), ("n_dense", self.n_dense)) if v]
        except (AttributeError, IndexError, TypeError, FtError):  # the leaves are not arrays: placeholders in pytrees
            return f"{name}({self.data!r}, ...)"
        return f"{name}({', '.join([of, *parts])})"

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, item: Any) -> Any:
        return self.to_bcoo()[item]


def _operator(name: str, swapped: bool = False) -> Callable[..., Any]:
    """Return a method that applies a function of NumPy's through `sparsify`."""

    def method(self: Any, *others: Any) -> Any:
        return METHODS["apply"](name, *((*others, self) if swapped else (self, *others)))

    method.__name__ = name
    return method


_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs"}
_BINARY = {"matmul": "matmul", "mul": "multiply", "add": "add", "sub": "subtract", "truediv": "divide", "pow": "power"}
_COMPARE = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal"}
for _short, _name in {**_UNARY, **_BINARY, **_COMPARE}.items():
    setattr(JAXSparse, f"__{_short}__", _operator(_name))
for _short, _name in _BINARY.items():
    setattr(JAXSparse, f"__r{_short}__", _operator(_name, swapped=True))
del _short, _name
