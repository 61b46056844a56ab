"""`jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask`: masks that are evaluated when needed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.errors import ArgumentError, ShapeError


class Mask:
    """The sources that each target attends to; an index of two slices gives booleans."""

    #: A function of the positions of targets [T, 1] and sources [1, S] that gives the mask, if there is one.
    mask_function: Callable[[Any, Any], Any] | None = None
    #: The positions of the targets.
    q_sequence: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of targets and sources."""
        raise NotImplementedError

    def __getitem__(self, idx: Any) -> np.ndarray:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotImplementedError("a mask has no truth value; combine masks with & and |")

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


class _Pair(Mask):
    """Two masks, combined by an operator."""

    combine: Callable[[Any, Any], Any]

    def __init__(self, left: Mask, right: Mask) -> None:
        if left.shape != right.shape:
            raise ShapeError(f"masks of {left.shape} and {right.shape} are combined", fix="make them equal")
        self.left, self.right = left, right
        first, second = left.mask_function, right.mask_function
        if first is not None and second is not None and np.array_equal(left.q_sequence, right.q_sequence):  # type: ignore[arg-type]
            self.mask_function = lambda rows, columns: self.combine(first(rows, columns), second(rows, columns))
            self.q_sequence = left.q_sequence

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of both."""
        return self.left.shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        return self.combine(self.left[idx], self.right[idx])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.left, self.right) == (other.left, other.right)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.left, self.right))


class LogicalOr(_Pair):
    """The sources of either mask."""

    combine = staticmethod(operator.or_)


class LogicalAnd(_Pair):
    """The sources of both masks."""

    combine = staticmethod(operator.and_)


class MultiHeadMask(Mask):
    """A mask for each head."""

    def __init__(self, masks: Sequence[Mask]) -> None:
        if not masks or not all(isinstance(m, Mask) and not isinstance(m, MultiHeadMask) for m in masks):
            raise ArgumentError(f"the masks of a MultiHeadMask are {masks!r}", fix="give a mask for each head")
        if len(shapes := {m.shape for m in masks}) > 1:
            raise ShapeError(f"the masks of a MultiHeadMask have the shapes {sorted(shapes)}", fix="make them equal")
        self.masks = tuple(masks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of heads, targets and sources."""
        return len(self.masks), *self.masks[0].shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        head, *rest = idx
        chosen = self.masks[head]
        return chosen[tuple(rest)] if isinstance(chosen, Mask) else np.stack([m[tuple(rest)] for m in chosen])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MultiHeadMask) and self.masks == other.masks

    def __hash__(self) -> int:
        return hash((MultiHeadMask, self.masks))


class _ComputableMask(Mask):
    """A mask that a function of positions gives; programs derive classes from it."""

    def __init__(self, shape: tuple[int, int], mask_function: Callable[[Any, Any], Any], shard_count: int = 1) -> None:
        if shape[0] % shard_count**2:
            raise ShapeError(f"{shape[0]} targets cannot be split in {shard_count}^2", fix="use another shard_count")
        self._shape, self.mask_function = tuple(shape), mask_function
        self.q_sequence = np.arange(shape[0], dtype=np.int32)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of targets and sources."""
        return self._shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        rows, columns = idx
        assert self.mask_function is not None and self.q_sequence is not None
        q_ids, kv_ids = self.q_sequence[rows][:, None], np.arange(self._shape[1], dtype=np.int32)[columns][None]
        return np.array(np.broadcast_to(self.mask_function(q_ids, kv_ids), (q_ids.shape[0], kv_ids.shape[1])), bool)


class _Positional(_ComputableMask):
    """A mask of the module, which equals one of the same class with the same arguments."""

    def __init__(
        self, shape: tuple[int, int], function: Callable[[Any, Any], Any], arguments: Any, shard_count: int = 1
    ) -> None:
        super().__init__(shape, function, shard_count)
        self._arguments = arguments

    def _key(self) -> tuple[Any, ...]:
        assert self.q_sequence is not None
        return type(self), self._shape, self._arguments, self.q_sequence.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Positional) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _all_positions(rows: Any, columns: Any) -> Any:
    return (rows >= 0) & (columns >= 0)


class FullMask(_Positional):
    """All sources."""

    def __init__(self, _shape: tuple[int, int]) -> None:
        super().__init__(_shape, _all_positions, None)


class CausalMask(_Positional):
    """The sources up to the position of the target plus an offset."""

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        super().__init__(shape, lambda rows, columns: rows + offset >= columns, offset, shard_count)
        self.offset = offset


class LocalMask(_Positional):
    """The sources within a window around the position of the target plus an offset; None is no limit on a side."""

    def __init__(
        self, shape: tuple[int, int], window_size: tuple[int | None, int | None], offset: int, shard_count: int = 1
    ) -> None:
        left, right = window_size

        def allowed(rows: Any, columns: Any) -> Any:
            result = _all_positions(rows, columns)
            result = result if left is None else result & (rows + offset - left <= columns)
            return result if right is None else result & (rows + offset + right >= columns)

        super().__init__(shape, allowed, (left, right, offset), shard_count)
        self.window_size, self.offset = (left, right), offset


class ChunkedCausalMask(_Positional):
    """The earlier sources of the chunk that the target is in."""

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        if chunk_size <= 0:
            raise ArgumentError(f"chunk_size is {chunk_size}", fix="use a positive size")
        allowed = lambda rows, columns: (rows // chunk_size == columns // chunk_size) & (rows >= columns)
        super().__init__(shape, allowed, chunk_size, shard_count)
        self.chunk_size = chunk_size


class NumpyMask(Mask):
    """Booleans [T, S]."""

    def __init__(self, array: np.ndarray) -> None:
        if array.ndim != 2 or array.dtype != np.bool_:
            raise ArgumentError(
                f"NumpyMask takes a matrix of booleans, got {array.dtype}{list(array.shape)}",
                fix="use array.astype(bool)",
            )
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of targets and sources."""
        return self.array.shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        return self.array[idx]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """Return booleans [T, S]: the sources up to the position of the target plus an offset."""
    return CausalMask(shape, offset)[:, :]


def make_local_attention_mask(
    shape: tuple[int, int], window_size: tuple[int | None, int | None], *, offset: int = 0
) -> np.ndarray:
    """Return booleans [T, S]: the sources within a window around the target."""
    return LocalMask(shape, window_size, offset)[:, :]


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """Return booleans [T, S]: the earlier sources of the target's chunk."""
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """Return random booleans [T, S], False with the probability `sparsity`: those that NumPy's seed gives."""
    return np.random.RandomState(seed).binomial(n=1, p=1.0 - sparsity, size=shape).astype(np.bool_)
