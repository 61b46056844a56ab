"""Small namespaces under JAX's names: tree_util, flatten_util, ops, image, typing; and nn's last functions."""

import dataclasses
import functools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import image, nn, ops, tree_util
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from functorch_like.testing import check_grads

RNG = np.random.default_rng(0)


# -------------------------------------------------------------------------------------------------------------- pytrees
def test_partials_are_pytrees():
    f = tree_util.Partial(lambda a, x, b: a * x + b, np.float32(2.0), b=np.float32(1.0))
    assert ft.jit(lambda f, x: f(x))(f, 3.0).item() == 7.0
    assert ft.tree.map(lambda leaf: leaf + 1, f)(3.0) == 11.0
    assert ft.grad(lambda f: f(3.0))(f).args[0].item() == 3.0
    assert [tree_util.keystr(p) for p, _ in tree_util.tree_leaves_with_path(f)] == [".args[0]", ".keywords['b']"]
    assert tree_util.tree_structure(tree_util.Partial(functools.partial(max, 5), 1)).num_leaves == 1
    assert tree_util.Partial(functools.partial(max, 5), 1)() == 5


def test_parts_of_structures():
    whole = ft.tree.structure((1, [2, 3], None))
    assert tree_util.treedef_tuple(tree_util.treedef_children(whole)) == whole
    assert tree_util.treedef_is_leaf(ft.tree.structure(1)) and not tree_util.treedef_is_leaf(ft.tree.structure(None))
    assert tree_util.all_leaves([1, "x"]) and not tree_util.all_leaves([1, None])
    assert tree_util.all_leaves([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))
    path, _ = tree_util.tree_flatten_with_path({"a": [0]})[0][0]
    assert path == (tree_util.DictKey("a"), tree_util.SequenceKey(0))
    assert set(tree_util.__all__) <= set(dir(tree_util))


def test_reductions_of_trees_in_pairs():
    for n in range(1, 9):
        text = [chr(97 + i) for i in range(n)]
        assert ft.tree.reduce_associative(lambda a, b: a + b, text) == "".join(text)
    assert ft.tree.reduce_associative(max, [], identity=0) == 0
    with pytest.raises(ArgumentError, match="identity"):
        ft.tree.reduce_associative(max, {})


def test_static_fields():
    @ft.tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: object
        name: str = ft.tree.static(default="dense", metadata={"help": "x"})

    assert ft.tree.leaves(Layer(1.0)) == [1.0] and ft.tree.map(lambda x: 2 * x, Layer(1.0)) == Layer(2.0, "dense")


def test_trees_as_vectors():
    tree = {"a": np.ones((2, 2), np.float32), "b": np.arange(3), "c": 1.5}
    vector, unravel = ft.flatten_util.ravel_pytree(tree)
    assert vector.tolist() == [1.0] * 4 + [0.0, 1.0, 2.0, 1.5]
    again = unravel(vector)
    assert again["b"].dtype == tree["b"].dtype and again["a"].shape == (2, 2)
    slope = ft.grad(lambda x: (ft.flatten_util.ravel_pytree(x)[0] ** 2).sum())({"a": 2.0, "b": np.ones(2, np.float32)})
    assert slope["a"].item() == 4.0 and slope["b"].tolist() == [2.0, 2.0]
    assert ft.vmap(lambda v: unravel(v)["b"])(fnp.stack([vector, vector])).shape == (2, 3)
    nothing, back = ft.flatten_util.ravel_pytree(())
    assert nothing.shape == (0,) and back(nothing) == ()
    with pytest.raises(ShapeError, match="8 elements"):
        unravel(vector[:3])
    with pytest.raises(DtypeError, match="unravel"):
        unravel(vector.astype("int32"))


def test_types_for_annotations():
    from functorch_like.typing import ArrayLike, DTypeLike

    assert isinstance(fnp.ones(2), ArrayLike) and isinstance(1.0, ArrayLike) and not isinstance([1.0], ArrayLike)
    assert isinstance(fnp.float32, DTypeLike) and isinstance("int8", DTypeLike) and not isinstance(3, DTypeLike)
    assert ft.jit(lambda x: fnp.ones(3) * isinstance(x, ArrayLike))(1.0).sum() == 3


# ------------------------------------------------------------------------------------------------------------- segments
IDS = np.array([0, 1, 2, 0, 1, 2, -1, 5, 3, 3])
REDUCTIONS = {
    "segment_sum": (np.add, 0.0), "segment_prod": (np.multiply, 1.0),
    "segment_max": (np.maximum, -np.inf), "segment_min": (np.minimum, np.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_segments(name):
    function, (combine, start) = getattr(ops, name), REDUCTIONS[name]
    data = RNG.normal(size=(10, 2))
    wanted = np.full((6, 2), start)
    for row, i in zip(data, IDS, strict=True):
        if i >= 0:
            wanted[i] = combine(wanted[i], row)
    np.testing.assert_allclose(function(data, IDS, 6), wanted)
    np.testing.assert_allclose(function(data, IDS), wanted)
    np.testing.assert_allclose(function(data, IDS, 4, bucket_size=3), wanted[:4])
    np.testing.assert_allclose(ft.jit(ft.vmap(lambda d: function(d, IDS, 4)))(np.stack([data, data]))[1], wanted[:4])
    inside = IDS.copy()
    inside[6], inside[7] = 0, 3
    np.testing.assert_allclose(function(data, IDS, 4, mode="clip"), function(data, inside, 4))
    np.testing.assert_allclose(
        function(data, np.sort(inside), 4, indices_are_sorted=True, mode="promise_in_bounds"),
        function(data, np.sort(inside), 4),
    )
    check_grads(lambda d: function(d, inside, 4), (data,), order=1)
    assert function(np.zeros((0, 2)), np.zeros(0, int), 2).tolist() == [[start] * 2] * 2
    with pytest.raises(ConcretizationError, match="num_segments"):
        ft.jit(lambda i: function(data, i))(IDS)
    with pytest.raises(ShapeError, match="one number"):
        function(data, IDS[:3], 4)


def test_segments_of_integers():
    data, ids = np.array([5, 2, 3], np.int8), np.array([0, 0, 2])
    assert ops.segment_max(data, ids).tolist() == [5, -128, 3] and ops.segment_min(data, ids).tolist() == [2, 127, 3]
    assert ops.segment_max(np.array([True]), np.array([1]), 2).tolist() == [False, True]
    assert ops.segment_sum(np.ones((2, 3), int), np.array([[0, 1, 1], [1, 0, 1]]), 2).tolist() == [2, 4]
    assert ops.segment_sum(1, ids).tolist() == [2, 0, 1]  # one number for each element
    assert ft.grad(lambda x: ops.segment_sum(x, ids)[0])(3.0).item() == 2


# --------------------------------------------------------------------------------------------------------------- images
def _lanczos(radius):
    return lambda x: np.where(abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0)


def _cubic(x):
    x = abs(x)
    return np.select([x < 1, x < 2], [1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2], 0.0)


KERNELS = {
    "linear": lambda x: np.maximum(1 - abs(x), 0),
    "cubic": _cubic,
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}


def resized(line, size, kernel, antialias):
    """Resize by the definition: each new pixel is the mean of all old ones, weighted by the kernel."""
    scale = len(line) / size
    wide = max(scale, 1.0) if antialias else 1.0
    out = []
    for i in range(size):
        weights = kernel(((i + 0.5) * scale - 0.5 - np.arange(len(line))) / wide)
        out.append((weights * line).sum() / weights.sum())
    return np.array(out)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", KERNELS)
def test_resized_lines(method, antialias):
    line = RNG.normal(size=7)
    for size in (3, 12):
        got = image.resize(line, (size,), method, antialias)
        np.testing.assert_allclose(got, resized(line, size, KERNELS[method], antialias), rtol=1e-9, atol=1e-12)


def test_areas_of_new_pixels():
    line = RNG.normal(size=7)
    sums = np.concatenate([[0], np.cumsum(line)])  # the integral of the line, linear between whole numbers
    for size in (3, 7, 12):
        edges = np.linspace(0, 7, size + 1)
        expected = np.diff(np.interp(edges, np.arange(8), sums)) / np.diff(edges)
        for antialias in (True, False):
            np.testing.assert_allclose(image.resize(line, (size,), "area", antialias), expected, rtol=1e-9, atol=1e-12)
    moved = image.scale_and_translate(line, (7,), (0,), np.ones(1), np.array([0.25]), "area")
    expected = np.concatenate([line[:1], 0.25 * line[:-1] + 0.75 * line[1:]])
    np.testing.assert_allclose(moved, expected, rtol=1e-9)
    check_grads(lambda x: image.resize(x, (3,), ft.image.ResizeMethod.AREA), (line,), order=1)


def test_pytorch_s_cubic_kernels():
    line = RNG.normal(size=7)
    padded = np.pad(line, 3, "edge")  # pixels beyond an edge count as that of the edge

    def kernel(x):
        x, a = abs(x), -0.75
        near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.select([x < 1, x < 2], [near, far], 0.0)

    for size in (3, 12):
        centres = (np.arange(size) + 0.5) * 7 / size - 0.5
        expected = kernel(centres[:, None] + 3 - np.arange(13)) @ padded
        got = image.resize(line, (size,), "cubic-pytorch", antialias=False)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(
            image.resize(line, (size,), "bicubic-pytorch"), image.resize(line, (size,), "cubic")
        )


def test_resized_images():
    picture = RNG.normal(size=(2, 4, 6, 3))
    got = image.resize(picture, (2, 8, 3, 3), "bilinear")
    rows = np.apply_along_axis(resized, 1, picture, 8, KERNELS["linear"], True)
    np.testing.assert_allclose(got, np.apply_along_axis(resized, 2, rows, 3, KERNELS["linear"], True), rtol=1e-9)
    np.testing.assert_array_equal(image.resize(picture, (2, 2, 3, 3), "nearest"), picture[:, 1::2, 1::2])
    np.testing.assert_array_equal(image.resize(picture, (2, 8, 6, 3), image.ResizeMethod.NEAREST), picture.repeat(2, 1))
    assert image.resize(picture, picture.shape, "cubic").tolist() == picture.tolist()
    assert image.resize(np.arange(5), (3,), "linear").dtype == np.float32
    assert image.resize(picture, (0, 4, 6, 3), "cubic").shape == (0, 4, 6, 3)
    check_grads(lambda x: image.resize(x, (2, 3, 9, 3), "lanczos3"), (picture,), order=1)
    with pytest.raises(ArgumentError, match="bicubic"):
        image.resize(picture, (2, 8, 3, 3), "sinc")
    with pytest.raises(ShapeError, match="rank"):
        image.resize(picture, (8, 3), "cubic")


def test_scaled_and_translated_images():
    line = RNG.normal(size=8)
    move = lambda scale, by, n=8: image.scale_and_translate(line, (n,), (0,), scale, by, "linear")
    one = np.ones(1)
    np.testing.assert_allclose(move(one, 2 * one), np.concatenate([[0, 0], line[:6]]), atol=1e-12)
    np.testing.assert_allclose(move(2 * one, 0 * one, 16), image.resize(line, (16,), "linear"), rtol=1e-9)
    check_grads(lambda s, t: move(s, t), (np.array([1.3]), np.array([0.21])), order=1)
    with pytest.raises(ArgumentError, match="nearest"):
        image.scale_and_translate(line, (8,), (0,), one, one, "nearest")
    with pytest.raises(ShapeError, match="one number"):
        image.scale_and_translate(line, (8,), (0,), np.ones(2), one, "linear")


# ------------------------------------------------------------------------------------------------------------------- nn
def test_last_activations():
    x = np.array([1e-12, 1e-3, 0.5, 0.7, 3.0, 40.0])
    np.testing.assert_allclose(nn.log1mexp(x), np.where(x < 0.6, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x))))
    check_grads(nn.log1mexp, (x[2:],), order=2)
    assert ft.grad(nn.log1mexp)(0.0).item() == np.inf
    assert nn.sparse_plus(np.array([-2.0, -1.0, 0.0, 1.0, 3.0])).tolist() == [0, 0, 0.25, 1, 3]
    at = np.array([-2.0, -0.5, 0.5, 3.0])
    assert ft.vmap(ft.grad(nn.sparse_plus))(at).tolist() == nn.sparse_sigmoid(at).tolist() == [0, 0.25, 0.75, 1]
    assert nn.identity(np.arange(3)).dtype.kind == "i"


def test_log_of_mean_of_exponentials():
    x = RNG.normal(size=(3, 4))
    mask = x > -0.5
    np.testing.assert_allclose(nn.logmeanexp(x, 1, keepdims=True), np.log(np.exp(x).mean(1, keepdims=True)))
    np.testing.assert_allclose(nn.logmeanexp(x, where=mask), np.log(np.exp(x)[mask].mean()))
    check_grads(nn.logmeanexp, (x,), order=2)


def test_orthogonal_initializers():
    key = ft.random.key(0)
    w = np.asarray(nn.initializers.orthogonal(2.0)(key, (2, 3, 4), "float64")).reshape(6, 4)
    np.testing.assert_allclose(w.T @ w, 4 * np.eye(4), atol=1e-12)
    other = np.asarray(nn.initializers.orthogonal(column_axis=0)(key, (4, 2, 3), "float64")).reshape(4, 6)
    np.testing.assert_allclose(other @ other.T, np.eye(4), atol=1e-12)
    for shape, axis in (((3, 2, 4), -1), ((3, 3, 4, 2), -2)):
        kernel = np.asarray(nn.initializers.delta_orthogonal(column_axis=axis)(key, shape, "float64"))
        centre = kernel[(1,) * (len(shape) - 2)]
        centre = centre if axis == -1 else centre.T
        np.testing.assert_allclose(centre @ centre.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose((kernel**2).sum(), 2)
    with pytest.raises(ShapeError, match="more outputs"):
        nn.initializers.delta_orthogonal()(key, (3, 4, 2))
    with pytest.raises(ShapeError, match="at least 2"):
        nn.initializers.orthogonal()(key, (3,))
