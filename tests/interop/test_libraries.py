"""Other libraries take arrays and return them: each is tested with the library itself, where it is installed."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = fnp.arange(24.0).reshape(2, 3, 4)
V = np.arange(24.0, dtype="float32").reshape(2, 3, 4)


# --------------------------------------------------------------------------------------------------------------- einops
PATTERNS = {
    "rearrange": lambda e, x: e.rearrange(x, "a b c -> c (a b)"),
    "split": lambda e, x: e.rearrange(x, "a b (c d) -> d a b c", d=2),
    "mean": lambda e, x: e.reduce(x, "a b c -> a", "mean"),
    "max": lambda e, x: e.reduce(x, "a b (c d) -> b c", "max", d=2),
    "repeat": lambda e, x: e.repeat(x, "a b c -> a b c n", n=3),
    "list": lambda e, x: e.rearrange([x, x], "n a b c -> a (n b) c"),
    "einsum": lambda e, x: e.einsum(x, x, "a b c, a d c -> a b d"),
    "pack": lambda e, x: e.pack([x, x[0]], "* c")[0],
}


@pytest.mark.parametrize("name", PATTERNS)
def test_einops(name):
    einops = pytest.importorskip("einops")
    pattern, want = PATTERNS[name], PATTERNS[name](einops, V)
    got = pattern(einops, X)
    assert isinstance(got, ft.Array)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    shapes = ft.eval_shape(lambda x: pattern(einops, x), X)  # tracers
    assert (shapes.shape, shapes.dtype) == (want.shape, want.dtype)
    for map_or_derive in (lambda f: ft.vmap(f)(fnp.stack([X, X])), lambda f: ft.grad(lambda x: f(x).sum())(X)):
        ft.eval_shape(lambda x, m=map_or_derive: m(lambda x: pattern(einops, x)), X)


@pytest.mark.parametrize("first", ["einops", "functorch_like"])
def test_einops_is_known_in_either_order_of_imports_and_is_not_imported_here(first):
    pytest.importorskip("einops")
    imports = ["import einops", "import functorch_like.numpy as fnp; import sys; assert 'einops' not in sys.modules"]
    if first == "einops":
        imports = [imports[0], "import functorch_like.numpy as fnp"]
    else:
        imports.reverse()
    script = "; ".join([*imports, "print(einops.rearrange(fnp.ones((2, 3)), 'a b -> b a').shape)"])
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "(3, 2)\n"


# ------------------------------------------------------------------------------------------------------ array interface
def test_the_array_interface_is_a_read_only_view():
    x = fnp.arange(6, dtype="int16").reshape(2, 3)
    made = x.__array_interface__
    assert made["version"] == 3 and made["shape"] == (2, 3) and made["typestr"] == np.dtype("int16").str
    holder = type("Holder", (), {"__array_interface__": made})()
    seen = np.asarray(holder)
    del x
    assert seen.tolist() == [[0, 1, 2], [3, 4, 5]] and not seen.flags.writeable
    for name in ("bfloat16", "float8_e5m2", "int4"):  # the interface has no names for these
        assert not hasattr(fnp.ones(2, name), "__array_interface__")
        assert np.asarray(fnp.ones(2, name)).dtype == name
    assert ft.eval_shape(lambda x: fnp.ones(int(hasattr(x, "__array_interface__"))), X).shape == (0,)  # tracers: none
    gone = fnp.ones(2)
    gone.delete()
    assert not hasattr(gone, "__array_interface__")
    with pytest.raises(ft.errors.DonatedError):
        np.asarray(gone)


def test_pillow():
    image = pytest.importorskip("PIL.Image")
    x = fnp.arange(4 * 5 * 3, dtype="uint8").reshape(4, 5, 3)
    made = image.fromarray(x)
    assert made.size == (5, 4) and made.mode == "RGB"
    assert (fnp.asarray(made) == x).all()


def test_safetensors():
    numpy_files = pytest.importorskip("safetensors.numpy")
    stored = numpy_files.save({"x": np.asarray(X)})
    np.testing.assert_array_equal(fnp.asarray(numpy_files.load(stored)["x"]), V)


# --------------------------------------------------------------------------------------------------- tables and figures
def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[0], columns=list("abcd"))
    assert frame.dtypes.tolist() == [np.dtype("float32")] * 4 and (frame.to_numpy() == V[0]).all()
    assert pandas.Series(X[0, 0]).sum() == V[0, 0].sum()
    assert (fnp.asarray(frame["b"]) == V[0, :, 1]).all() and fnp.asarray(frame).shape == (3, 4)
    assert frame.assign(e=X[0, :, 0]).e.dtype == "float32"


def test_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    (line,) = ax.plot(X[0, 0], X[0, 1])
    assert (line.get_ydata() == V[0, 1]).all()
    counts, _, _ = ax.hist(X.ravel(), bins=4)
    assert counts.tolist() == [6, 6, 6, 6]
    assert ax.imshow(X[0]).get_array().shape == (3, 4)
    ax.scatter(X[0, 0], X[0, 1], c=X[0, 2])
    ax.fill_between(X[0, 0], X[0, 1], X[0, 2])
    ax.set_title(f"{X[0, 0, 1]:.2f}")
    assert ax.get_title() == "1.00"
    plt.close(figure)


# -------------------------------------------------------------------------------------------------- files and processes
def test_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["x"] = X
        file["x"][0] = X[1]
        file.attrs["rate"] = X[0, 0, 1]
    with h5py.File(tmp_path / "file.h5") as file:
        np.testing.assert_array_equal(fnp.asarray(file["x"]), V[[1, 1]])
        assert file.attrs["rate"] == 1


def double(x):
    return 2 * x


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    joblib.dump({"x": X}, tmp_path / "x")
    np.testing.assert_array_equal(joblib.load(tmp_path / "x")["x"], V)
    assert joblib.hash(X) == joblib.hash(X + 0)
    cached = joblib.Memory(tmp_path / "cache", verbose=0).cache(double)
    assert (cached(X) == cached(X)).all()
    got = joblib.Parallel(2, backend="threading")(joblib.delayed(double)(x) for x in X)
    np.testing.assert_array_equal(got, 2 * V)


def test_processes(tmp_path):
    (tmp_path / "job.py").write_text(
        "import functorch_like as ft, functorch_like.numpy as fnp\n"
        "import multiprocessing, sys\n"
        "def f(x): return ft.grad(lambda x: fnp.sum(x**2))(x)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(f, [fnp.ones(2)])[0].tolist())\n"
    )
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 2.0]\n"


# ---------------------------------------------------------------------------------------------------------- annotations
def test_jaxtyping_and_beartype():
    jaxtyping, beartype = pytest.importorskip("jaxtyping"), pytest.importorskip("beartype")
    Matrix, Row, Column = (jaxtyping.Float[ft.Array, axes] for axes in ("n m", "m", "n"))

    @jaxtyping.jaxtyped(typechecker=beartype.beartype)
    def product(a: Matrix, b: Row) -> Column:
        return a @ b

    assert product(X[0], X[0, 0]).shape == (3,)
    assert ft.eval_shape(product, X[0], X[0, 0]).shape == (3,)
    assert ft.eval_shape(ft.vmap(product), X, X[:, 0]).shape == (2, 3)
    for wrong in (X[0, :, 0], fnp.arange(4)):  # a wrong size, a wrong dtype
        with pytest.raises(jaxtyping.TypeCheckError):
            product(X[0], wrong)


# ------------------------------------------------------------------------------------------------------------ array API
def test_array_api_compat_and_extra():
    compat, extra = pytest.importorskip("array_api_compat"), pytest.importorskip("array_api_extra")
    assert compat.array_namespace(X) is fnp and compat.is_array_api_obj(X) and not compat.is_jax_array(X)
    assert compat.size(X) == 24 and compat.to_device(X, compat.device(X)).shape == X.shape
    x, v = X[0], V[0].copy()
    assert (extra.at(x)[0].set(1.0) == extra.at(v)[0].set(1.0, copy=True)).all()
    assert (extra.at(x, x > 4).multiply(2.0) == extra.at(v, v > 4).multiply(2.0, copy=True)).all()
    assert x.tolist() == V[0].tolist()
    for f in (
        lambda a, xp: extra.create_diagonal(a[0]),
        lambda a, xp: extra.apply_where(a > 1, a, xp.log, fill_value=0.0),
        lambda a, xp: extra.pad(a, 1),
    ):
        np.testing.assert_allclose(f(x, fnp), f(v, np), rtol=1e-5)
    for name in ("add", "subtract", "multiply", "divide", "power", "min", "max"):
        got, want = (getattr(extra.at(a, (slice(None), 1)), name)(2.0, copy=True) for a in (x, v))
        np.testing.assert_allclose(got, want, rtol=1e-6)
    assert ft.eval_shape(lambda x: extra.at(x)[0].add(1.0), x).shape == x.shape  # a tracer
    with pytest.raises(TypeError):
        extra.at(x)[0].set(1.0, copy=False)
    with pytest.raises(ValueError, match="Index has not been set"):
        extra.at(x).set(1.0)


DISPATCH = """
import numpy as np, scipy.fft, scipy.special, scipy.stats, sklearn
import functorch_like as ft, functorch_like.numpy as fnp
from sklearn.decomposition import PCA
from sklearn.metrics import mean_squared_error
from sklearn.preprocessing import LabelEncoder
v = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
x = fnp.asarray(v)
for f in (lambda a: scipy.special.logsumexp(a, axis=1), scipy.special.gammaln, scipy.fft.fft, scipy.stats.zscore):
    got = f(x)
    assert isinstance(got, ft.Array), type(got)
    np.testing.assert_allclose(got, f(v), rtol=2e-4, atol=1e-5)
slope = ft.grad(lambda a: scipy.special.logsumexp(a))(x[0])
np.testing.assert_allclose(slope, np.exp(v[0]) / np.exp(v[0]).sum(), rtol=1e-5)
plain = PCA(2, svd_solver="full").fit_transform(v)
with sklearn.config_context(array_api_dispatch=True):
    got = PCA(2, svd_solver="full").fit_transform(x)
    assert isinstance(got, ft.Array)
    np.testing.assert_allclose(np.abs(got), np.abs(plain), rtol=1e-3, atol=1e-4)
    assert mean_squared_error(x[:, 0], x[:, 0] + 1) == 1
    assert isinstance(LabelEncoder().fit_transform(fnp.asarray([3, 1, 3])), ft.Array)
"""


def test_scipy_and_scikit_learn_dispatch_by_the_array_api():
    pytest.importorskip("sklearn")
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}  # read when SciPy is imported
    done = subprocess.run([sys.executable, "-P", "-c", DISPATCH], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_torch_by_dlpack():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6.0).reshape(2, 3)
    x = fnp.from_dlpack(tensor)
    assert x.dtype == "float32" and (np.asarray(x) == tensor.numpy()).all()
    back = torch.from_dlpack(2 * x)
    assert back.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert torch.from_dlpack(fnp.ones(2, "bfloat16")).dtype == torch.bfloat16
    assert fnp.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).dtype == "bfloat16"
    assert fnp.from_dlpack(tensor.mT).tolist() == tensor.mT.tolist()
    tensor[0, 0] = 7  # arrays read before keep their values
    assert float(x[0, 0]) == 0
