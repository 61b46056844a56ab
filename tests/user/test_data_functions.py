"""fnp: histograms, interpolation, differences, covariances, insertion and deletion, bits, files; against NumPy."""

import io

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes
from functorch_like.errors import ArgumentError, BoundsError, ConcretizationError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
X, Y, W = RNG.normal(size=50), RNG.normal(size=50), RNG.uniform(size=50)


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ counting
@pytest.mark.parametrize("bins", [7, np.array([-1.0, -0.5, 0.25, 2.0]), "fd"])
def test_histograms(bins):
    for more in ({}, {"weights": W}, {"density": True}, {"range": (-0.5, 1.0)}):
        if "weights" in more and isinstance(bins, str):
            continue
        (count, edges), (want, want_edges) = fnp.histogram(X, bins, **more), np.histogram(X, bins, **more)
        close(count, want)
        close(edges, want_edges)
    assert fnp.histogram(X, bins)[0].dtype == np.int32


def test_histograms_of_little_and_of_nothing():
    for x in (np.zeros(0), np.full(3, 2.0), np.array([np.nan, 1.0])):
        for got, want in zip(fnp.histogram(x, 2, (0, 4)), np.histogram(x, 2, (0, 4)), strict=True):
            close(got, want)
    for x in (np.zeros(0), np.full(3, 2.0)):
        close(fnp.histogram_bin_edges(x, 2), np.histogram_bin_edges(x, 2))
    assert fnp.histogram_bin_edges(np.arange(5, dtype=np.int32), 2).dtype == np.float32
    whole = np.arange(9000) % 9
    for rule in ("auto", "fd", "doane", "sturges", "scott"):  # bins of width 1 at least
        close(fnp.histogram_bin_edges(whole, rule), np.histogram_bin_edges(whole, rule))
    ft.testing.check_jit(lambda x: fnp.histogram(x, 3), (X,))
    ft.testing.check_vmap(lambda x: fnp.histogram(x, 3)[0], (X.reshape(2, 25),))
    with pytest.raises(ConcretizationError, match="bins='fd'"):
        ft.jit(lambda x: fnp.histogram(x, "fd"))(X)
    with pytest.raises(ArgumentError, match="at least 1"):
        fnp.histogram(X, 0)


def test_histograms_of_points():
    ranges = [(-1.0, 1.0), (-2.0, 0.5)]
    for more in ({}, {"weights": W}, {"density": True}, {"range": ranges}):
        got, want = fnp.histogram2d(X, Y, (3, 4), **more), np.histogram2d(X, Y, (3, 4), **more)
        for g, w in zip(got, want, strict=True):
            close(g, w)
    edges = np.linspace(-2, 2, 6)
    close(fnp.histogram2d(X, Y, edges)[0], np.histogram2d(X, Y, edges)[0])
    points = RNG.normal(size=(30, 3))
    close(fnp.histogramdd(points, 3)[0], np.histogramdd(points, 3)[0])
    close(fnp.histogramdd(list(points.T), [2, 3, edges])[0], np.histogramdd(points, [2, 3, edges])[0])
    with pytest.raises(ShapeError, match="3 of each"):
        fnp.histogramdd(points, [1, 2])


def test_bincount():
    x = np.array([1, 5, 1, 0])
    assert fnp.bincount(x).tolist() == np.bincount(x).tolist()
    close(fnp.bincount(x, W[:4], minlength=9), np.bincount(x, W[:4], minlength=9))
    assert fnp.bincount([]).shape == (0,) and fnp.bincount(x.astype(np.int8)).tolist() == np.bincount(x).tolist()
    got = ft.jit(lambda x: fnp.bincount(x, length=3))(np.array([1, -1, 7, 1]))
    assert got.tolist() == [0, 2, 0]
    ft.testing.check_grads(lambda w: fnp.bincount(x, w), (W[:4],))
    with pytest.raises(ConcretizationError, match="length="):
        ft.jit(lambda x: fnp.bincount(x))(x)
    with pytest.raises(ArgumentError, match="negative"):
        fnp.bincount(-x)
    with pytest.raises(DtypeError, match="whole"):
        fnp.bincount(X)


# ------------------------------------------------------------------------------ interpolation, differences, covariances
def test_interp():
    xp, fp = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([3.0, -1.0, 4.0, 1.0])
    x = np.concatenate([X, xp, [np.nan, np.inf, -np.inf, -5]])
    close(fnp.interp(x, xp, fp), np.interp(x, xp, fp))
    close(fnp.interp(x, xp, fp, left=9, right=0.1), np.interp(x, xp, fp, left=9, right=0.1))
    close(fnp.interp(x, xp, fp + 1j), np.interp(x, xp, fp + 1j))
    close(fnp.interp(X, xp[::-1] + 3, fp, period=2.5), np.interp(X, xp[::-1] + 3, fp, period=2.5))
    close(fnp.interp(X, xp[:1], fp[:1], 7), np.interp(X, xp[:1], fp[:1], 7))
    close(fnp.interp(np.array([-2.0, 3.0]), xp, fp, "extrapolate", "extrapolate"), [7.0, -1.0])
    assert fnp.interp(np.zeros((2, 0)), xp, fp).shape == (2, 0)
    ft.testing.check_grads(lambda x, fp: fnp.interp(x, xp, fp), (np.array([-0.5, 0.2, 1.0]), fp))
    ft.testing.check_vmap(lambda x: fnp.interp(x, xp, fp), (X[:3],))
    with pytest.raises(ShapeError, match="one size"):
        fnp.interp(x, xp, fp[:2])


@pytest.mark.parametrize("order", [1, 2])
def test_gradients(order):
    f, at = RNG.normal(size=(4, 5)), np.cumsum(RNG.uniform(0.5, 1, 5))
    for given, axis in (
        ((), None),
        ((0.3,), 1),
        ((0.3, 0.2), None),
        ((at,), -1),
        ((2.0, at), (0, 1)),
        ((at, 2.0), (1, 0)),
    ):
        got, want = (g(f, *given, axis=axis, edge_order=order) for g in (fnp.gradient, np.gradient))
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            close(a, b)
    close(fnp.gradient(np.arange(5), edge_order=order), np.gradient(np.arange(5), edge_order=order))
    ft.testing.check_grads(lambda f, at: fnp.gradient(f, at, axis=1, edge_order=order), (f, at))
    with pytest.raises(ShapeError, match="samples"):
        fnp.gradient(f[:1])
    with pytest.raises(ArgumentError, match="distances"):
        fnp.gradient(f, 1.0, 2.0, 3.0)


def test_covariances():
    m, complex_ = RNG.normal(size=(3, 8)), RNG.normal(size=(3, 8)) + 1j * RNG.normal(size=(3, 8))
    counts, weights = RNG.integers(1, 4, 8), RNG.uniform(size=8)
    for x in (m, m[0], complex_):
        close(fnp.cov(x), np.cov(x))
        close(fnp.corrcoef(x), np.corrcoef(x))
    for more in ({"y": m[0]}, {"bias": True}, {"ddof": 2}, {"fweights": counts}, {"aweights": weights},
                 {"fweights": counts, "aweights": weights, "bias": True}):  # fmt: skip
        close(fnp.cov(m, **more), np.cov(m, **more))
    close(fnp.cov(m, rowvar=False), np.cov(m, rowvar=False))
    assert fnp.cov(m, dtype=np.float32).dtype == np.float32
    ft.testing.check_grads(fnp.corrcoef, (m,))
    with pytest.raises(ShapeError, match="two dimensions"):
        fnp.cov(fnp.ones((1, 1, 1)))


# -------------------------------------------------------------------------------------------------- insertion, deletion
A = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("obj", "values", "axis"),
    [
        (1, 9.0, None), (-2, [1.0, 2.0], None), (slice(0, 6, 2), 7.0, None), ([3, 0, 3], [1.0, 2.0, 3.0], None),
        (1, 9.0, 0), (2, [1.0, 2.0, 3.0], 1), ([0, 3], [[1.0], [2.0], [3.0]], 1), (3, A[:2], 0), ([], 1.0, 0),
        ([1], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 1), (np.array([True, False, True]), 5.0, 0),
    ],
)  # fmt: skip
def test_insert(obj, values, axis):
    want = np.insert(A, np.array(obj, int) if isinstance(obj, list) else obj, values, axis)
    close(fnp.insert(A, obj, values, axis), want)
    if isinstance(obj, (int, list)) and obj != []:
        close(ft.jit(lambda a, i: fnp.insert(a, i, values, axis))(A, fnp.asarray(obj)), want)


@pytest.mark.parametrize(("obj", "axis"), [(1, None), (-1, 0), (slice(1, 3), 1), ([0, 2], 1), ([0, 0], 0), ([], 0),
                                          (np.array([True, False, True]), 0)])  # fmt: skip
def test_delete(obj, axis):
    want = np.delete(A, np.array(obj, int) if isinstance(obj, list) else obj, axis)
    close(fnp.delete(A, obj, axis), want)
    if isinstance(obj, int) or (isinstance(obj, list) and obj == [0, 2]):
        f = lambda a, i: fnp.delete(a, i, axis, assume_unique_indices=True)
        close(ft.jit(f)(A, fnp.asarray(obj)), want)


def test_refused_positions():
    for f in (lambda: fnp.delete(A, 3, 0), lambda: fnp.insert(A, 4, 0.0, 0), lambda: fnp.delete(A, [True], 0)):
        with pytest.raises(BoundsError):
            f()
    with pytest.raises(ConcretizationError, match="assume_unique"):
        ft.jit(lambda a, i: fnp.delete(a, i))(A, fnp.asarray([0, 1]))
    ft.testing.check_grads(lambda a, v: fnp.insert(fnp.delete(a, 1, 0), 1, v, 1), (A, np.array([1.0, 2.0])))


def test_resize_and_trim():
    close(fnp.resize(A, (5, 3)), np.resize(A, (5, 3)))
    close(fnp.resize(A, 5), np.resize(A, 5))
    assert fnp.resize(A[:0], (2, 2)).tolist() == [[0, 0], [0, 0]] and fnp.resize(A, (0, 3)).shape == (0, 3)
    x = np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0])
    for trim in ("fb", "f", "B"):
        close(fnp.trim_zeros(x, trim), np.trim_zeros(x, trim))
    assert fnp.trim_zeros(fnp.zeros(3)).shape == (0,)
    padded = np.pad(A[1:], 2)
    close(fnp.trim_zeros(padded), np.trim_zeros(padded))
    close(fnp.trim_zeros(padded, axis=0), np.trim_zeros(padded, axis=0))


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits(order):
    bits, data = RNG.integers(0, 3, size=(3, 11)), RNG.integers(0, 256, size=(3, 5)).astype(np.uint8)
    for axis in (None, 0, 1, -1):
        packed = fnp.packbits(bits, axis, order)
        np.testing.assert_array_equal(packed, np.packbits(bits, axis, order))
        assert packed.dtype == np.uint8
        for count in (None, 7, 60, -3, 0):
            np.testing.assert_array_equal(
                fnp.unpackbits(data, axis, count, order), np.unpackbits(data, axis, count, order)
            )
    np.testing.assert_array_equal(fnp.packbits(bits > 1, 1), np.packbits(bits > 1, 1))
    assert fnp.packbits(np.zeros(0, bool)).shape == (0,)
    with pytest.raises(DtypeError):
        fnp.packbits(X)


# ---------------------------------------------------------------------------------------------------------- text, files
def test_files(tmp_path):
    fnp.save(tmp_path / "x.npy", X)
    close(fnp.load(tmp_path / "x.npy"), X)
    fnp.savez(tmp_path / "all.npz", X, y=Y)
    with fnp.load(tmp_path / "all.npz") as found:
        close(found["arr_0"], X)
        close(found["y"], Y)
    fnp.save(file := io.BytesIO(), fnp.ones(2, fnp.bfloat16))
    file.seek(0)
    assert fnp.load(file).dtype == fnp.bfloat16


@pytest.mark.parametrize("dtype", [d.name for d in dtypes.ALL])
def test_files_of_every_dtype(tmp_path, dtype):
    x = fnp.asarray([[2, 1, 1], [1, 4, 1]], dtype)
    scalar, empty = x[0, 1], fnp.zeros((0, 2), dtype)
    fnp.save(tmp_path / "x.npy", x.T)
    fnp.savez(tmp_path / "all.npz", x, scalar=scalar, empty=empty)
    found = fnp.load(tmp_path / "x.npy")
    assert (found.dtype, found.tolist()) == (x.dtype, x.T.tolist())
    with fnp.load(tmp_path / "all.npz") as archive:
        assert set(archive) == set(archive.files) == {"arr_0", "scalar", "empty"}
        for name, wanted in (("arr_0", x), ("scalar", scalar), ("empty", empty)):
            assert isinstance(archive[name], np.ndarray)
            assert (archive[name].dtype, archive[name].shape) == (wanted.dtype, wanted.shape)
            assert archive[name].tolist() == wanted.tolist()
            assert fnp.asarray(archive[name]).dtype == wanted.dtype
    # NumPy reads the same bytes without the package.
    raw = np.load(tmp_path / "x.npy")
    assert (raw if raw.dtype.kind != "V" else raw.view(dtype)).tolist() == x.T.tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "float4_e2m1fn"])
def test_files_that_numpy_wrote_without_a_dtype(tmp_path, dtype):
    x = fnp.asarray([1, 0, 1], dtype)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "all.npz", x=x)
    assert fnp.load(tmp_path / "x.npy", dtype=dtype).tolist() == x.tolist()
    with fnp.load(tmp_path / "all.npz", dtype=dtype) as archive:
        assert archive["x"].dtype == x.dtype
        assert archive["x"].tolist() == x.tolist()
    if dtype in ("bfloat16", "float8_e5m2"):
        assert fnp.load(tmp_path / "x.npy").dtype == x.dtype
    else:
        with pytest.raises(
            DtypeError, match=rf"does not say(.|\n)*fnp.load\(file, dtype=(.|\n)*{dtype}(.|\n)*fnp.save"
        ):
            fnp.load(tmp_path / "x.npy")
        with pytest.raises(DtypeError, match="does not say"), fnp.load(tmp_path / "all.npz") as archive:
            archive["x"]
    if dtype == "float8_e5m2":
        return  # NumPy cannot read what it wrote
    with pytest.raises(DtypeError, match=r"takes 4"):
        fnp.load(tmp_path / "x.npy", dtype="float32")
    raw = np.load(tmp_path / "x.npy")
    for use in (fnp.asarray, fnp.sin, lambda a: ft.jit(lambda x: x)(a), lambda a: fnp.ones(3) + a):
        with pytest.raises(DtypeError, match=r"what to do: name it with x.view\("):
            use(raw)
    assert fnp.asarray(raw.view(dtype)).tolist() == x.tolist()


def test_text():
    x = fnp.asarray([0.123456, 1e-9])
    assert fnp.array_repr(x) == repr(x) and fnp.array_str(x) == str(x)
    assert fnp.array_repr(x, precision=2, suppress_small=True) == "Array([0.12, 0.  ], dtype=float32)"
    with fnp.printoptions(precision=3):
        assert fnp.get_printoptions()["precision"] == 3 and "0.123]" in str(x[:1])
    before = fnp.get_printoptions()["precision"]
    fnp.set_printoptions(precision=5)
    assert "0.12346" in str(x[:1])
    fnp.set_printoptions(precision=before)
