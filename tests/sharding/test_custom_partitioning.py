"""Functions whose program on parts is written by the user, compared with NumPy; and the rules of their dimensions."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import processes
from functorch_like.experimental.custom_partitioning import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from functorch_like.experimental.custom_partitioning.sharding_rule import parsed
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.cos(np.arange(128, dtype=np.float32)).reshape(8, 16)
W = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


def rows(s):
    """Return a sharding of the leading dimensions alone."""
    return NamedSharding(s.mesh, P(*tuple(s.spec)[:1]))


def spectrum():
    seen = []

    @custom_partitioning
    def f(x):
        return fnp.cumsum(x, axis=1)

    def partition(mesh, arg_shapes, result_shape):
        def part(x):
            seen.append(x.shape)
            return fnp.cumsum(x, axis=1)

        split = rows(arg_shapes[0].sharding)
        return mesh, part, split, (split,)

    f.def_partition(partition, sharding_rule="... i -> ... i", need_replication_factors=("i",))
    return f, seen


def test_each_device_computes_its_part(mesh):
    f, seen = spectrum()
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    compiled = ft.jit(f).lower(x).compile()
    assert seen == [(2, 16)] and compiled.collectives() == []
    for run in (f, ft.jit(f)):
        y = run(x)
        np.testing.assert_allclose(y, np.cumsum(X, 1), rtol=1e-5, atol=1e-5)
        assert y.sharding.spec == P("x")
    split = ft.device_put(X, NamedSharding(mesh, P("x", "y")))  # XLA gathers what must not be split
    np.testing.assert_allclose(ft.jit(f)(split), np.cumsum(X, 1), rtol=1e-5, atol=1e-5)


def test_parts_use_collectives(mesh):
    @custom_partitioning
    def product(x, w):
        return x @ w

    def partition(mesh, arg_shapes, result_shape):
        shardings = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y"))
        return mesh, lambda x, w: lax.psum(x @ w, "y"), NamedSharding(mesh, P("x")), shardings

    product.def_partition(partition, sharding_rule="b k, k n -> b n", reduction_factors=("k",))
    x = ft.device_put(X, NamedSharding(mesh, P("x", "y")))
    compiled = ft.jit(product).lower(x, W).compile()
    assert [(c.kind, c.count) for c in compiled.collectives()] == [("all-reduce", 1)]
    np.testing.assert_allclose(ft.jit(product)(x, W), X @ W, rtol=1e-5, atol=1e-5)


def test_pytrees_several_results_static_arguments_and_closures(mesh):
    offset = fnp.linspace(0, 1, 16)
    seen = []

    def meaning(d, n):
        return {"y": d["a"] * n + d["b"] + offset, "total": d["a"].sum(1)}

    def partition(n, mesh, arg_shapes, result_shape):
        (d,) = arg_shapes
        seen.append((n, d["a"].shape, result_shape["total"].sharding.spec))
        here = rows(d["a"].sharding)
        fun = lambda d: {"y": d["a"] * n + d["b"] + offset, "total": d["a"].sum(1)}
        return mesh, fun, {"y": here, "total": here}, ({"a": here, "b": here},)

    f = custom_partitioning(meaning, static_argnums=1)
    rules = []
    f.def_partition(
        partition,
        sharding_rule=lambda n, mesh, ins, outs: rules.append((n, ins[0].shape)) or "i j, i j -> i, i j",
    )
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    for n in (2, 3):
        y = ft.jit(lambda a, n=n: f({"a": a, "b": fnp.sin(a)}, n))(x)
        np.testing.assert_allclose(y["y"], X * n + np.sin(X) + np.linspace(0, 1, 16), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(y["total"], X.sum(1), rtol=1e-5, atol=1e-5)
        assert y["total"].sharding.spec == P("x")
    assert seen == [(2, (8, 16), P("x")), (3, (8, 16), P("x"))] and rules == [(2, (8, 16)), (3, (8, 16))]


def test_transformations_and_one_device_use_the_function(mesh):
    f, seen = spectrum()
    np.testing.assert_allclose(ft.jit(f)(X), np.cumsum(X, 1), rtol=1e-5, atol=1e-5)
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    gradient = ft.jit(ft.grad(lambda x: (f(x) * X).sum()))(x)
    np.testing.assert_allclose(gradient, np.cumsum(X[:, ::-1], 1)[:, ::-1], rtol=1e-4, atol=1e-5)
    stack = np.stack([X, 2 * X])
    np.testing.assert_allclose(ft.vmap(f)(stack), np.cumsum(stack, 2), rtol=1e-5, atol=1e-5)
    mapped = ft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(mapped(X), np.cumsum(X, 1), rtol=1e-5, atol=1e-5)
    assert seen == []


def test_without_a_rule_nothing_propagates(mesh):
    f = custom_partitioning(lambda x: x * 2)
    with pytest.raises(ft.errors.ArgumentError, match="no program on parts"):
        f(X)
    whole = NamedSharding(mesh, P())
    f.def_partition(lambda mesh, args, result: (mesh, lambda x: x * 2, whole, (whole,)))
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(ft.jit(f)(x), X * 2)


def test_meshes_of_several_processes_are_refused(mesh, monkeypatch):
    f, _ = spectrum()
    x = ft.device_put(X, NamedSharding(mesh, P("x")))
    lowered = ft.jit(f).trace(x)
    monkeypatch.setattr(processes, "spanned", lambda mesh: (0, 1))
    with pytest.raises(ft.errors.UnsupportedError, match="devices of one process"):
        lowered.lower()


def test_parts_of_a_wrong_shape(mesh):
    f = custom_partitioning(lambda x: x * 2)
    f.def_partition(
        lambda mesh, args, result: (mesh, lambda x: x[:1], args[0].sharding, (args[0].sharding,)),
        sharding_rule="i j -> i j",
    )
    with pytest.raises(ft.errors.CompileError, match="the program on parts of"):
        ft.jit(f)(ft.device_put(X, NamedSharding(mesh, P("x"))))


def test_rules_as_text_and_as_objects():
    rule = parsed("... i, i (j k) -> ...  j k", {"reduction_factors": ("i",)}, {})
    shapes = [(5, 7, 4), (4, 6)], [(5, 7, 2, 3)]
    assert rule.text(*shapes) == (
        "#sdy.op_sharding_rule<([i, j, k], [k, lm])->([i, j, l, m]) {i=5, j=7, k=4, l=2, m=3} reduction={k}, custom>"
    )
    same = SdyShardingRule(
        (ArrayMapping(BATCHING, "i"), ArrayMapping("i", CompoundFactor("j", "k"))),
        (ArrayMapping(BATCHING, "j", "k"),),
        reduction_factors=("i",),
    )
    assert same.text(*shapes) == rule.text(*shapes)
    sized = parsed("(a b) -> (a b)", {}, {"a": 2, "b": 3})
    assert sized.text([(6,)], [(6,)]) == "#sdy.op_sharding_rule<([ij])->([ij]) {i=2, j=3}, custom>"
    many = parsed(f"{' '.join(f'f{k}' for k in range(20))} -> f0", {}, {})
    assert "z, z_1, z_2]" in many.text([(2,) * 20], [(2,)])


@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        ("i j", {}, "no '->'"),
        ("i -> i -> i", {}, "no '->', or several"),
        ("i + -> i", {}, r"has '\+'"),
        ("i ... -> i", {}, "batching dimensions come first"),
        ("(i) -> i", {}, "two names or more"),
        ("(i j) -> (i j)", {}, "size of the factor 'i' is not known"),
        ("i -> i", {"i": 3}, "is a whole dimension"),
    ],
)
def test_rules_that_cannot_be_read(text, sizes, message):
    with pytest.raises(ft.errors.ArgumentError, match=message):
        parsed(text, {}, sizes)


def test_rules_that_do_not_fit():
    for text, ins, outs, message in (
        ("i -> i", [(2, 3)], [(2,)], "1 dimensions"),
        ("i, j -> i", [(2,)], [(2,)], "2 operands"),
        ("... i, ... -> i", [(2, 3), (2, 2)], [(3,)], "stands for"),
        ("(i j) -> i j", [(7,)], [(2, 3)], "do not make a dimension of 7"),
        ("i -> i", [(2,)], [(3,)], "is 2 in one dimension and 3"),
    ):
        with pytest.raises(ft.errors.ShapeError, match=message):
            parsed(text, {}, {}).text(ins, outs)
    with pytest.raises(ft.errors.ArgumentError, match="no dimension has the factor 'q'"):
        SdyShardingRule((ArrayMapping("i"),), (ArrayMapping("i"),), reduction_factors=("q",))
    with pytest.raises(ft.errors.ArgumentError, match="not text"):
        custom_partitioning(lambda x: x).def_partition(lambda *a: a, reduction_factors=("q",))
