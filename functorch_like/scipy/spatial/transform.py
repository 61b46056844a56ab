"""Rotations of space, kept as unit quaternions: `Rotation`, one or a sequence of them, and `Slerp` between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like import random as draws
from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.scipy.spatial import quaternions
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike


__all__ = ("Rotation", "Slerp")


def _checked(x: Any, tail: tuple[int, ...], what: str) -> Any:
    """Return a checked array of one item, or of a sequence of items."""
    x = promotion.to_inexact(x if promotion.is_array(x) else fnp.asarray(x))
    shape = aval_of(x).shape
    if shape[len(shape) - len(tail) :] != tail or not 0 <= len(shape) - len(tail) <= 1:
        raise promotion.error(ShapeError, f"Rotation.{what} of {aval_of(x)!r}", f"give {tail}, or (n, {str(tail)[1:]}")
    return x


class Rotation:
    """One rotation, or a sequence of them: a pytree, whose leaf is `quat`. Made by `from_...`, and read by `as_...`.

    >>> turn = ft.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
    >>> bool(fnp.allclose(turn.apply(fnp.asarray([1.0, 0.0, 0.0])), fnp.asarray([0.0, 1.0, 0.0]), atol=1e-6))
    True

    Attributes:
        quat: (4,) or (n, 4): x, y, z, w, of norm 1.
    """

    __slots__ = ("quat",)

    quat: Any

    def __init__(self, quat: Any) -> None:
        """Hold quaternions, as `from_quat`."""
        self.quat = quaternions.normalized(_checked(quat, (4,), "from_quat"))

    @classmethod
    def _of(cls, quat: Any) -> Rotation:
        made = object.__new__(cls)
        made.quat = quat
        return made

    # ------------------------------------------------------------------------------------------------------------ made
    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False) -> Rotation:
        """Make rotations from quaternions x, y, z, w, of any norm but 0; with `scalar_first` w, x, y, z."""
        quat = _checked(quat, (4,), "from_quat")
        return cls(fnp.roll(quat, -1, -1) if scalar_first else quat)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Make rotations from orthogonal matrices of determinant 1, (3, 3) or (n, 3, 3)."""
        return cls._of(quaternions.from_matrix(_checked(matrix, (3, 3), "from_matrix")))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from axes times angles, (3,) or (n, 3)."""
        rotvec = _checked(rotvec, (3,), "from_rotvec")
        return cls._of(quaternions.from_rotvec(fnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Make rotations from modified Rodrigues parameters, (3,) or (n, 3): axes times tan(angle / 4)."""
        return cls._of(quaternions.from_mrp(_checked(mrp, (3,), "from_mrp")))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from angles about axes in turn.

        Args:
            seq: one to three of "x", "y", "z", for fixed (extrinsic) axes; or of "X", "Y", "Z", for axes that
                turn as well (intrinsic).
            angles: a number, for one axis; (k,), for k axes; (n, k) for a sequence; or for one axis (n,).
            degrees: whether the angles are degrees, rather than radians.

        Raises:
            ArgumentError: for another seq.
            ShapeError: where the angles do not fit.
        """
        axes, turning = _axes(seq, (1, 2, 3))
        turns = promotion.to_inexact(angles if promotion.is_array(angles) else fnp.asarray(angles))
        turns = fnp.deg2rad(turns) if degrees else turns
        shape = aval_of(turns).shape
        if len(axes) == 1 and shape[1:] != (1,):
            turns = turns[..., None]
        if aval_of(turns).ndim not in (1, 2) or aval_of(turns).shape[-1] != len(axes):
            raise promotion.error(
                ShapeError, f"Rotation.from_euler({seq!r}) of angles of the shape {shape}",
                f"give ({len(axes)},), or (n, {len(axes)})",
            )  # fmt: skip
        return cls._of(quaternions.from_euler(turns, axes=axes, turning=turning))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike | None = None) -> Rotation:
        """The identity rotation, or a sequence of them."""
        one = fnp.asarray([0.0, 0.0, 0.0, 1.0], dtype)
        return cls._of(one if num is None else fnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: ArrayLike, num: int | None = None, dtype: DTypeLike | None = None) -> Rotation:
        """Uniformly distributed random rotations: normal quaternions, normalized."""
        return cls(draws.normal(random_key, (4,) if num is None else (num, 4), dtype))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Join rotations to one sequence."""
        return cls._of(fnp.concatenate([fnp.atleast_2d(r.quat) for r in rotations]))

    # ------------------------------------------------------------------------------------------------------------ read
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions x, y, z, w; with `scalar_first` w, x, y, z; if canonical, the one of the two with w >= 0."""
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return fnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices, (3, 3) or (n, 3, 3)."""
        return quaternions.as_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Axes times angles, of at most half a turn."""
        rotvec = quaternions.as_rotvec(self.quat)
        return fnp.rad2deg(rotvec) if degrees else rotvec

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of norm 1 at most."""
        return quaternions.as_mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes in turn: the second from 0 to pi where the first and last axis are equal, from -pi/2
        to pi/2 otherwise. Where it is at these bounds the others are not determined, and the last is 0.

        E. Bernardes, S. Viollet, "Quaternion to Euler angles conversion", PLOS ONE 17, 2022.

        Args:
            seq: as for `from_euler`, of three axes, neighbours of which differ.
            degrees: whether in degrees, rather than radians.

        Raises:
            ArgumentError: for another seq.
        """
        axes, turning = _axes(seq, (3,))
        if axes[0] == axes[1] or axes[1] == axes[2]:
            raise promotion.error(ArgumentError, f"Rotation.as_euler({seq!r})", "name no axis twice in a row")
        angles = quaternions.as_euler(self.quat, axes=axes, turning=turning)
        return fnp.rad2deg(angles) if degrees else angles

    def magnitude(self) -> Array:
        """Angles, from 0 to pi."""
        return fnp.linalg.norm(self.as_rotvec(), axis=-1)

    @property
    def single(self) -> bool:
        """True for one rotation, False for a sequence."""
        return aval_of(self.quat).ndim == 1

    # ------------------------------------------------------------------------------------------------------------ used
    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotated vectors, (3,) or (n, 3); or rotated back, if inverse. One rotation or vector broadcasts."""
        vectors = _checked(vectors, (3,), "apply")
        matrix = self.as_matrix()
        return fnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, vectors, precision="highest")

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return self._of(quaternions.conjugate(self.quat))

    def __mul__(self, other: Rotation) -> Rotation:
        """Return the rotation by `other`, then by this one."""
        return self._of(quaternions.product(self.quat, other.quat)) if isinstance(other, Rotation) else NotImplemented

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation with the least mean square distance to all, in terms of quaternions.

        F. L. Markley et al., "Averaging quaternions", Journal of Guidance, Control, and Dynamics 30, 2007.
        """
        quat = fnp.atleast_2d(self.quat)
        by = fnp.ones(aval_of(quat).shape[0], quat.dtype) if weights is None else fnp.asarray(weights)
        return self._of(fnp.linalg.eigh(fnp.einsum("n,ni,nj->ij", by, quat, quat, precision="highest"))[1][:, -1])

    def __getitem__(self, indexer: Any) -> Rotation:
        """Return some rotations of a sequence."""
        if self.single:
            raise TypeError("one rotation has no items; Rotation.concatenate makes a sequence")
        return self._of(self.quat[indexer])

    def __iter__(self) -> Iterator[Rotation]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if self.single:
            raise TypeError("one rotation has no length; Rotation.concatenate makes a sequence")
        return aval_of(self.quat).shape[0]

    def __repr__(self) -> str:
        return f"Rotation.from_quat({self.quat!r})"


tree.register_pytree_node(Rotation, lambda r: ((r.quat,), None), lambda _, children: Rotation._of(children[0]))


def _axes(seq: str, lengths: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """Return the numbers of axes, and whether they turn."""
    if not isinstance(seq, str) or len(seq) not in lengths or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise promotion.error(
            ArgumentError, f"{seq!r} is not a sequence of {' or '.join(map(str, lengths))} axes",
            "use letters of 'xyz' for fixed axes, or of 'XYZ' for axes that turn",
        )  # fmt: skip
    return tuple("xyz".index(c) for c in seq.lower()), seq.isupper()


class Slerp:
    """Interpolation between rotations, at constant speed from each to the next; a pytree.

    K. Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985.

    Args:
        times: (n,), ascending; n > 1.
        rotations: a sequence of n.

    Raises:
        ShapeError: where they do not fit.

    >>> R = ft.scipy.spatial.transform.Rotation
    >>> between = ft.scipy.spatial.transform.Slerp(fnp.asarray([0.0, 1.0]), R.from_euler("z", fnp.asarray([0.0, 1.0])))
    >>> round(between(0.25).magnitude().item(), 4)
    0.25
    """

    def __init__(self, times: Any, rotations: Rotation) -> None:
        self.times = promotion.to_inexact(fnp.asarray(times))
        self.rotations = rotations
        n = aval_of(self.times).shape
        if rotations.single or n != (len(rotations),) or n[0] < 2:
            raise promotion.error(
                ShapeError, f"Slerp of {aval_of(self.times)!r} and quaternions {aval_of(rotations.quat)!r}",
                "give as many times as rotations, at least two",
            )  # fmt: skip

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Make an interpolator; the same as calling the class."""
        return cls(times, rotations)

    def __call__(self, times: Any) -> Rotation:
        """Return the rotations at a time, or at times (k,), extrapolated beyond the first and last."""
        return Rotation._of(_slerp(self.times, self.rotations.quat, promotion.to_inexact(fnp.asarray(times))))


tree.register_pytree_node(
    Slerp, lambda s: ((s.times, s.rotations), None), lambda _, children: _rebuilt(*children)
)  # fmt: skip


def _rebuilt(times: Any, rotations: Any) -> Slerp:
    made = object.__new__(Slerp)
    made.times, made.rotations = times, rotations
    return made


@eager_jit
def _slerp(times: Any, quat: Any, at: Any) -> Any:
    n = aval_of(times).shape[0]
    left = fnp.clip(fnp.searchsorted(times, at, side="right") - 1, 0, n - 2)
    start, end = quat[left], quat[left + 1]
    part = (at - times[left]) / (times[left + 1] - times[left])
    turn = quaternions.as_rotvec.inline(quaternions.product.inline(quaternions.conjugate.inline(start), end))
    return quaternions.product.inline(start, quaternions.from_rotvec.inline(turn * part[..., None]))
