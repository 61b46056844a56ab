"""scipy.spatial.transform against SciPy."""

import numpy as np
import pytest
from scipy.spatial import transform as theirs

import functorch_like as ft
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.scipy.spatial.transform import Rotation, Slerp
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)
QUAT, V = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 3))
OURS, THEIRS = Rotation.from_quat(QUAT), theirs.Rotation.from_quat(QUAT)


def same(ours, theirs, atol=1e-12):
    np.testing.assert_allclose(ours.as_quat(canonical=True), theirs.as_quat(canonical=True), atol=atol)


def test_forms():
    np.testing.assert_allclose(OURS.as_matrix(), THEIRS.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(OURS.as_rotvec(degrees=True), THEIRS.as_rotvec(degrees=True), atol=1e-10)
    np.testing.assert_allclose(OURS.as_mrp(), THEIRS.as_mrp(), atol=1e-12)
    np.testing.assert_allclose(OURS.as_quat(scalar_first=True), np.roll(THEIRS.as_quat(), 1, -1), atol=1e-12)
    np.testing.assert_allclose(OURS.magnitude(), THEIRS.magnitude(), atol=1e-12)
    same(Rotation.from_matrix(THEIRS.as_matrix()), THEIRS)
    same(Rotation.from_rotvec(THEIRS.as_rotvec(degrees=True), degrees=True), THEIRS)
    same(Rotation.from_mrp(THEIRS.as_mrp()), THEIRS)
    same(Rotation.from_quat(np.roll(QUAT, 1, -1), scalar_first=True), THEIRS)
    same(Rotation.from_matrix(THEIRS.as_matrix()[0]), THEIRS[0])
    assert Rotation.from_rotvec(np.zeros(3)).as_quat().tolist() == [0, 0, 0, 1]
    assert Rotation.identity(2).quat.shape == (2, 4) and Rotation.identity().single


# Sequences of each kind: fixed and rotating axes, first and last axis equal or not, cyclic order or not.
SEQUENCES = ("xyz", "xzy", "zxz", "yxy", "XYZ", "ZYX", "ZXZ")


def test_angles():
    angles = RNG.normal(size=(30, 3))
    for seq in SEQUENCES:
        np.testing.assert_allclose(OURS.as_euler(seq), THEIRS.as_euler(seq), atol=1e-9)
        same(Rotation.from_euler(seq, angles), theirs.Rotation.from_euler(seq, angles))
        for end in (0, np.pi) if seq[0] == seq[2] else (-np.pi / 2, np.pi / 2):
            given = np.tile([0.3, end, 0.5], (30, 1))
            again = np.asarray(Rotation.from_euler(seq, given).as_euler(seq))
            assert (again[:, 2] == 0).all()
            same(Rotation.from_euler(seq, again), theirs.Rotation.from_euler(seq, given), 1e-7)
    for seq, given in (
        ("x", 30.0),
        ("zy", np.array([1.0, 2.0])),
        ("Y", np.ones((3, 1))),
    ):
        same(Rotation.from_euler(seq, given, degrees=True), theirs.Rotation.from_euler(seq, given, degrees=True), 1e-6)
    row = Rotation.from_euler("Y", np.ones(3))
    np.testing.assert_array_equal(row.quat, Rotation.from_euler("Y", np.ones((3, 1))).quat)


def test_use():
    np.testing.assert_allclose(OURS.apply(V), THEIRS.apply(V), atol=1e-12)
    np.testing.assert_allclose(OURS[0].apply(V, inverse=True), THEIRS[0].apply(V, inverse=True), atol=1e-12)
    same(OURS[:15] * OURS[15:], THEIRS[:15] * THEIRS[15:])
    same(OURS[0] * OURS.inv(), THEIRS[0] * THEIRS.inv())
    same(OURS.mean(), THEIRS.mean())
    same(OURS.mean(np.arange(30.0)), THEIRS.mean(np.arange(30.0)))
    assert len(OURS) == 30 and OURS[0].single and len(Rotation.concatenate([OURS[0], OURS])) == 31
    with pytest.raises(TypeError, match="no items"):
        OURS[0][0]


def test_rotations_are_pytrees():
    np.testing.assert_allclose(ft.jit(lambda r, v: r.apply(v))(OURS, V), THEIRS.apply(V), atol=1e-12)
    np.testing.assert_allclose(ft.vmap(lambda r, v: r.inv().apply(v))(OURS, V), THEIRS.inv().apply(V), atol=1e-12)
    check_grads(lambda x: Rotation.from_rotvec(x).apply(V[0]), (V[0],), order=2)
    check_grads(lambda q: Rotation.from_quat(q).as_euler("xyz"), (QUAT[0],), order=1)
    np.testing.assert_allclose(ft.jacobian(lambda x: Rotation.from_rotvec(x).as_rotvec())(np.zeros(3)), np.eye(3))


def test_rotations_are_equally_likely():
    x = np.asarray(Rotation.random(ft.random.key(0), 20_000).apply(np.array([1.0, 0.0, 0.0], np.float32)))
    assert abs(x.mean(0)).max() < 0.02 and abs((x**2).mean(0) - 1 / 3).max() < 0.01


def test_slerp():
    times, at = np.arange(30.0) / 7, np.linspace(-0.1, 4.3, 20)
    between = Slerp.init(times, OURS)
    inside = (at >= 0) & (at <= times[-1])
    same(between(at[inside]), theirs.Slerp(times, THEIRS)(at[inside]))
    same(ft.jit(lambda s, t: s(t))(between, 0.5), theirs.Slerp(times, THEIRS)(0.5))
    same(between(times), THEIRS)
    with pytest.raises(ShapeError, match="as many times"):
        Slerp(times[1:], OURS)


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="xyZ"):
        Rotation.from_euler("xyZ", np.zeros(3))
    with pytest.raises(ArgumentError, match="twice"):
        OURS.as_euler("xxy")
    with pytest.raises(ShapeError, match="from_quat"):
        Rotation.from_quat(np.ones(3))
    with pytest.raises(ShapeError, match=r"\(2,\)"):
        Rotation.from_euler("xy", np.zeros(3))
