"""Explicit axes of meshes: types of values say how they are split, and operations that are in doubt are refused."""

import importlib
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import core, lax
from functorch_like.avals import ExplicitAxes, ShapedArray
from functorch_like.errors import ArgumentError, ShardingTypeError, UnsupportedError
from functorch_like.experimental import serialize_executable
from functorch_like.primitives.families import FAMILIES
from functorch_like.sharding import AbstractMesh, AxisType, NamedSharding, auto_axes, explicit_axes, reshard
from functorch_like.sharding import PartitionSpec as P

MESH = ft.make_mesh((2, 4), ("x", "y"), AxisType.Explicit)
AUTO = ft.make_mesh((2, 4), ("x", "y"))
MIXED = ft.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Auto))


@pytest.fixture(autouse=True)
def mesh():
    with ft.use_mesh(MESH):
        yield


def host(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def split(*shape, by, seed=0):
    return ft.device_put(host(*shape, seed=seed).astype(np.float32), P(*by))


A, ROWS, COLUMNS, WHOLE = (((8, 8), by) for by in (("x", "y"), ("x", None), (None, "y"), (None, None)))
BATCH, IMAGES, KERNEL = ((4, 8, 8), ("x",)), ((4, 3, 8, 8), ("x", None, "y", None)), ((5, 3, 3, 3), ())
VECTOR, LINE = ((8,), ("y",)), ((64,), (("x", "y"),))
PLACES = np.array([3, 0, 0, 7])
DEFINITE = 8 * np.eye(8, dtype=np.float32)


def symmetric(x, lib):
    return lib.matmul(x, lib.swapaxes(x, -1, -2)) + DEFINITE


#: Function of arrays and of the library, operands, and the type of the result.
RULES = {
    "elementwise": (lambda lib, x, y: lib.sin(x) * y, (A, A), "8@x,8@y"),
    "with a number": (lambda lib, x: x * 2 + 1, (A,), "8@x,8@y"),
    "with a whole one": (lambda lib, x, y: x + y, (A, WHOLE), "8@x,8@y"),
    "of two kinds": (lambda lib, x, y: x - y, (ROWS, COLUMNS), "8@x,8@y"),
    "broadcast": (lambda lib, x, y: x + y, (A, VECTOR), "8@x,8@y"),
    "where": (lambda lib, x, y: lib.where(x > 0, x, y), (A, ROWS), "8@x,8@y"),
    "sum": (lambda lib, x: lib.sum(x, 0), (A,), "8@y"),
    "sum of all": (lambda lib, x: lib.sum(x), (A,), ""),
    "greatest": (lambda lib, x: lib.max(x, 1), (A,), "8@x"),
    "variance": (lambda lib, x: lib.var(x, 0), (A,), "8@y"),
    "argmax": (lambda lib, x: lib.argmax(x, 1), (A,), "8@x"),
    "transpose": (lambda lib, x: lib.transpose(x), (A,), "8@y,8@x"),
    "new axis": (lambda lib, x: x[:, None], (A,), "8@x,1,8@y"),
    "joined": (lambda lib, x: lib.reshape(x, (64,)), (A,), "64@(x,y)"),
    "joined, rows": (lambda lib, x: lib.reshape(x, (64,)), (ROWS,), "64@x"),
    "taken apart": (lambda lib, x: lib.reshape(x, (2, 32)), (LINE,), "2@x,32@y"),
    "apart in three": (lambda lib, x: lib.reshape(x, (2, 4, 8)), (A,), "2@x,4,8@y"),
    "flipped": (lambda lib, x: lib.flip(x, 0), (A,), "8@x,8@y"),
    "half": (lambda lib, x: x[:4], (A,), "4@x,8@y"),
    "one row": (lambda lib, x: x[2], (COLUMNS,), "8@y"),
    "padded": (lambda lib, x: lib.pad(x, ((2, 2), (0, 0))), (A,), "12@x,8@y"),
    "stacked": (lambda lib, x: lib.stack([x, x]), (A,), "2,8@x,8@y"),
    "joined end to end": (lambda lib, x, y: lib.concatenate([x, y]), (A, A), "16@x,8@y"),
    "halves": (lambda lib, x: lib.split(x, 2)[1], (A,), "4@x,8@y"),
    "product": (lambda lib, x, y: lib.matmul(x, y), (ROWS, COLUMNS), "8@x,8@y"),
    "product, batched": (lambda lib, x, y: lib.matmul(x, y), (BATCH, BATCH), "4@x,8,8"),
    "product, summed over devices": (lambda lib, x, y: lib.matmul(x, y), (COLUMNS, WHOLE), "8,8"),
    "einsum": (lambda lib, x, y: lib.einsum("bij,bjk->bki", x, y), (BATCH, BATCH), "4@x,8,8"),
    "sorted": (lambda lib, x: lib.sort(x, 1), (ROWS,), "8@x,8"),
    "running sum": (lambda lib, x: lib.cumsum(x, 1), (ROWS,), "8@x,8"),
    "median": (lambda lib, x: lib.median(x, 1), (ROWS,), "8@x"),
    "nanmax": (lambda lib, x: lib.nanmax(x, 1), (ROWS,), "8@x"),
    "count": (lambda lib, x: (x > 0).sum(1), (ROWS,), "8@x"),
    "mean of booleans": (lambda lib, x: lib.mean(x > 0, 1), (ROWS,), "8@x"),
    "places": (lambda lib, x: lib.take(x, PLACES, 0), (COLUMNS,), "4,8@y"),
    "a place in each row": (lambda lib, x: lib.take_along_axis(x, PLACES[:, None].repeat(2, 0), 1), (ROWS,), "8@x,1"),
    "transform": (lambda lib, x: lib.real(lib.fft.fft(x, axis=1)), (ROWS,), "8@x,8"),
    "inverse": (lambda lib, x: lib.linalg.inv(symmetric(x, lib)), (BATCH,), "4@x,8,8"),
    "factor": (lambda lib, x: lib.linalg.cholesky(symmetric(x, lib)), (BATCH,), "4@x,8,8"),
}


def typed(x):
    return repr(ft.typeof(x)).partition("[")[2].removesuffix("]")


@pytest.mark.parametrize("name", RULES)
def test_types_and_values_of_results(name):
    fun, operands, expected = RULES[name]
    arrays = [split(*shape, by=by, seed=k) for k, (shape, by) in enumerate(operands)]
    values = [np.asarray(a, np.float64) for a in arrays]
    inside = []

    def recorded(*args):
        out = fun(fnp, *args)
        inside.append(typed(out))
        return out

    for out in (fun(fnp, *arrays), ft.jit(recorded)(*arrays)):
        np.testing.assert_allclose(out, fun(np, *values), rtol=2e-4, atol=2e-4)
        assert typed(out) == expected
        # The parts that the devices hold are split as the type says.
        spec = P(*(parsed(size) for size in expected.replace("(x,y)", "xy").split(",") if size))
        assert out.sharding.is_equivalent_to(NamedSharding(MESH, spec), out.ndim)
    assert inside == [expected]


def parsed(size):
    return tuple(size.partition("@")[2]) or None


def test_convolutions_and_pooling():
    x, k = split(4, 3, 8, 8, by=IMAGES[1]), split(5, 3, 3, 3, by=())
    out = lax.conv(x, k, (1, 1), "SAME")
    assert typed(out) == "4@x,5,8@y,8"
    np.testing.assert_allclose(out, lax.conv(np.asarray(x), np.asarray(k), (1, 1), "SAME"), rtol=1e-4, atol=1e-4)
    rows = split(4, 8, 8, 3, by=("x",))
    greatest = lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    slope = ft.jit(ft.grad(lambda x: greatest(x).sum()))(rows)
    assert typed(greatest(rows)) == "4@x,4,4,3" and typed(slope) == "4@x,8,8,3"
    blocks = np.asarray(rows).reshape(4, 4, 2, 4, 2, 3)
    np.testing.assert_array_equal(greatest(rows), blocks.max((2, 4)))
    np.testing.assert_array_equal(slope, (blocks == blocks.max((2, 4), keepdims=True)).reshape(4, 8, 8, 3))


#: Function, operands, and a part of the reason.
DOUBTS = {
    "two axes for one dimension": (
        lambda x, y: x + y,
        (ROWS, ((8, 8), ("y",))),
        "dimension 0 is split by 'x' and by 'y'",
    ),
    "one axis for two dimensions": (lambda x, y: x + y, (ROWS, ((8, 8), (None, "x"))), "'x' would split dimension 1"),
    "summed over": (lambda x, y: x @ y, (COLUMNS, ((8, 8), ("y",))), "both operands are split by"),
    "summed over, by two": (lambda x, y: x @ y, (COLUMNS, ROWS), "contracted dimension is split by 'y' and by 'x'"),
    "product": (lambda x, y: x @ y, (ROWS, ((8, 8), (None, "x"))), "'x' would split dimension 1"),
    "joined behind a whole one": (lambda x: x.reshape(64), (COLUMNS,), "would be joined to one before it"),
    "joined and apart": (lambda x: x.reshape(2, 32), (A,), "would be joined and taken apart"),
    "three rows": (lambda x: x[:3], (A,), r"dimension 0 .* does not divide by 'x'"),
    "sorted": (lambda x: fnp.sort(x, 1), (A,), "is split by 'y', and sort runs along it"),
    "places of true elements": (
        lambda x: ft.vmap(lambda r: fnp.flatnonzero(r, size=2))(x),
        (COLUMNS,),
        "true_places runs along it",
    ),
    "running sum": (lambda x: fnp.cumsum(x, 0), (A,), "is split by 'x', and cumsum runs along it"),
    "places": (lambda x: x[PLACES], (A,), "positions along dimension 0"),
    "updates": (lambda x: x.at[PLACES].set(0), (A,), "positions along dimension 0"),
    "inverse": (fnp.linalg.inv, (A,), "solve works on whole matrices"),
    "repeated": (lambda x: fnp.tile(x, (2, 1)), (A,), "repetitions of it follow each other"),
    "scan over rows": (lambda x: lax.scan(lambda c, r: (c, r), 0.0, x), (A,), "lax.scan takes the rows of"),
    "a carry": (lambda x: lax.fori_loop(0, 2, lambda i, c: c.T, x), (A,), "returns another type of carry"),
    "branches": (lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: reshard(x, P("y")), x), (A,), "branches split"),
    "mapped": (lambda x, y: ft.vmap(lambda a, b: a + b)(x, y), (ROWS, ((8, 8), ("y",))), "the mapped axis is split"),
    "constraint": (lambda x: lax.with_sharding_constraint(x, P("y")), (A,), r"does not fit f32\[8@x,8@y\]"),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_doubts_are_refused(name):
    fun, operands, reason = DOUBTS[name]
    arrays = [split(*shape, by=by) for shape, by in operands]
    for call in (fun, ft.jit(fun)):
        with pytest.raises(ShardingTypeError, match=reason) as caught:
            call(*arrays)
        assert "test_explicit_axes.py" in str(caught.value) and caught.value.fix


#: The same functions in NumPy.
MEANINGS = {
    "two axes for one dimension": np.add,
    "one axis for two dimensions": np.add,
    "summed over": np.matmul,
    "summed over, by two": np.matmul,
    "product": np.matmul,
    "joined behind a whole one": lambda x: x.reshape(64),
    "joined and apart": lambda x: x.reshape(2, 32),
    "three rows": lambda x: x[:3],
    "sorted": lambda x: np.sort(x, 1),
    "running sum": lambda x: np.cumsum(x, 0),
    "places": lambda x: x[PLACES],
    "inverse": np.linalg.inv,
    "repeated": lambda x: np.tile(x, (2, 1)),
    "mapped": np.add,
}


@pytest.mark.parametrize("name", MEANINGS)
def test_auto_axes_takes_what_is_in_doubt(name):
    fun, operands, _ = DOUBTS[name]
    arrays = [split(*shape, by=by) for shape, by in operands]
    if name == "inverse":
        arrays[0] = arrays[0] + DEFINITE
    expected = MEANINGS[name](*(np.asarray(x, np.float64) for x in arrays))
    called = auto_axes(fun, out_sharding=P())
    for out in (called(*arrays), ft.jit(called)(*arrays)):
        np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-4)
        assert out.sharding.is_fully_replicated


def test_gradients_have_the_types_of_their_primals():
    x, w, v = split(8, 8, by=("x",)), split(8, 8, by=(None, "y"), seed=1), split(8, by=("y",), seed=2)

    def loss(x, w, v):
        return fnp.sum(fnp.tanh(x @ w + v) ** 2)

    hidden = np.tanh(np.asarray(x, np.float64) @ np.asarray(w, np.float64) + np.asarray(v, np.float64))
    ct = 2 * hidden * (1 - hidden**2)
    expected = ct @ np.asarray(w, np.float64).T, np.asarray(x, np.float64).T @ ct, ct.sum(0)
    for gradient in (ft.grad(loss, (0, 1, 2)), ft.jit(ft.grad(loss, (0, 1, 2)))):
        got = gradient(x, w, v)
        assert [*map(typed, got)] == ["8@x,8", "8,8@y", "8@y"]
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert typed(ft.jit(ft.grad(ft.checkpoint(loss), 1))(x, w, v)) == "8,8@y"
    assert typed(ft.jit(ft.jvp, static_argnums=0)(loss, (x, w, v), (x, w, v))[1]) == ""


def test_loops_and_branches():
    rows, x = split(6, 8, by=(None, "y")), split(8, 8, by=("x",))
    # A carry that starts whole takes the axes that the body gives it.
    last, sums = ft.jit(lambda r: lax.scan(lambda c, row: (c + row, c), fnp.zeros(8), r))(rows)
    assert (typed(last), typed(sums)) == ("8@y", "6,8@y")
    np.testing.assert_allclose(last, np.asarray(rows).sum(0), rtol=1e-5, atol=1e-5)
    slopes = ft.jit(ft.grad(lambda r: lax.scan(lambda c, row: (c * row, c), fnp.ones(8), r)[0].sum()))(rows)
    others = [np.prod(np.delete(np.asarray(rows, np.float64), k, 0), 0) for k in range(6)]
    assert typed(slopes) == "6,8@y"
    np.testing.assert_allclose(slopes, others, rtol=1e-4, atol=1e-5)
    powers = lax.fori_loop(0, 3, lambda i, c: c @ fnp.full((8, 8), 0.125), x)
    assert typed(powers) == "8@x,8"
    chosen = ft.jit(lambda x: lax.cond(x.sum() > 5, lambda x: x, lambda x: fnp.ones((8, 8)), x))
    assert typed(chosen(split(8, 8, by=(None, "y")))) == "8,8@y"


def test_vmap_over_a_split_axis():
    x, w = split(8, 8, by=("x", "y")), split(8, 8, by=())
    seen = []
    mapped = lambda v: seen.append(typed(v)) or ft.jit(fnp.sin)(v)
    assert typed(ft.vmap(mapped)(x)) == "8@x,8@y" and typed(ft.vmap(mapped, 1, 1)(x)) == "8@x,8@y"
    assert seen == ["8@y", "8@x"]
    rows = split(8, 8, by=("x",))
    out = ft.jit(ft.vmap(lambda v: lax.scan(lambda c, a: (c + a, c * a), fnp.zeros(()), v)))(rows)
    assert [*map(typed, out)] == ["8@x", "8@x,8"]
    np.testing.assert_allclose(out[0], np.asarray(rows).sum(1), rtol=1e-5, atol=1e-5)
    products = ft.jit(ft.vmap(lambda v, w: v @ w, (0, None)))(rows, w)
    assert typed(products) == "8@x,8"
    np.testing.assert_allclose(products, np.asarray(rows) @ np.asarray(w), rtol=1e-4, atol=1e-4)


def test_reshard_auto_axes_and_explicit_axes():
    x = split(8, 8, by=("x", "y"))
    for move in (lambda x: reshard(x, P("y")), lambda x: ft.device_put(x, P("y"))):
        for out in (move(x), ft.jit(move)(x)):
            assert typed(out) == "8@y,8"
            np.testing.assert_array_equal(out, x)
    assert ft.jit(lambda t: reshard(t, {"a": P("x"), "b": P()}))({"a": x, "b": x})["b"].sharding.spec == P()

    seen = []
    square = auto_axes(
        lambda x: seen.append((typed(x), ft.sharding.get_mesh().axis_types)) or x @ x, out_sharding=P("x")
    )
    for out in (square(x), ft.jit(square)(x)):
        assert typed(out) == "8@x,8"
        np.testing.assert_allclose(out, np.asarray(x) @ np.asarray(x), rtol=1e-4, atol=1e-4)
    assert seen == [("8,8", (AxisType.Auto,) * 2)] * 2
    one = auto_axes(lambda x: seen.append(typed(x)) or x * 2, axes="x", out_sharding=P("x", "y"))
    assert typed(one(x)) == typed(ft.jit(one)(x)) == "8@x,8@y" and seen[2:] == ["8,8@y"] * 2
    gradient = ft.jit(ft.grad(lambda x: square(x).sum()))(x)
    ones = np.ones((8, 8))
    assert typed(gradient) == "8@x,8@y"
    np.testing.assert_allclose(gradient, ones @ np.asarray(x).T + np.asarray(x).T @ ones, rtol=1e-4, atol=1e-4)

    with ft.use_mesh(AUTO):
        inside = explicit_axes(lambda x: seen.append(typed(x)) or x * 2, in_sharding=P("x", "y"))
        for out in (inside(np.asarray(x)), ft.jit(inside)(np.asarray(x))):
            assert typed(out) == "8,8"
            np.testing.assert_array_equal(out, 2 * np.asarray(x))
        assert seen[-2:] == ["8@x,8@y"] * 2 and inside(x).sharding.mesh is AUTO


def test_shardings_of_jit_and_described_arguments():
    x = host(8, 8).astype(np.float32)
    seen = []
    double = lambda x: seen.append(typed(x)) or x * 2
    assert typed(ft.jit(lambda x: double(x), in_shardings=P("x"))(x)) == "8@x,8" and seen == ["8@x,8"]
    assert typed(ft.jit(lambda x: double(x), out_shardings=P(None, "y"))(x)) == "8,8@y"
    described = ft.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(MESH, P("x")))
    lowered = ft.jit(double).lower(described)
    assert lowered.out_info.sharding.spec == P("x", None) and seen[-1] == "8@x,8"
    assert typed(lowered.compile()(split(8, 8, by=("x",)))) == "8@x,8"
    shape = ft.eval_shape(double, described)
    assert (
        shape.sharding.spec == P("x")
        and typed(ft.jit(double).lower(shape).compile()(split(8, 8, by=("x",)))) == "8@x,8"
    )
    # Arguments without a type beside some with: NumPy arrays and numbers are whole.
    assert typed(ft.jit(lambda a, b, c: a * b + c)(split(8, 8, by=("x",)), x, 1.0)) == "8@x,8"


def test_mixed_meshes_and_shard_map():
    with ft.use_mesh(MIXED):
        x = ft.device_put(host(8, 8).astype(np.float32), P("x", "y"))
        assert typed(x) == "8@x,8" and typed(ft.jit(fnp.sin)(x)) == "8@x,8"
        assert ft.jit(fnp.sin)(x).sharding.spec.axes(2)[0] == ("x",)
        assert typed(lax.with_sharding_constraint(x, P("x", "y"))) == "8@x,8"
    x = split(8, 8, by=("x",))
    parts = []
    mapped = ft.shard_map(lambda a: parts.append(typed(a)) or a + 1, mesh=MESH, in_specs=P("x"), out_specs=P("x", None))
    for out in (mapped(x), ft.jit(mapped)(x)):
        assert typed(out) == "8@x,8"
        np.testing.assert_array_equal(out, np.asarray(x) + 1)
    assert set(parts) == {"4,8"}
    # Without in_specs, arguments are split as their types say.
    as_typed = ft.shard_map(lambda a, b: a + lax.psum(b, "y"), out_specs=P("x", None))
    columns = split(4, 32, by=(None, "y"), seed=1)
    expected = np.asarray(x) + np.asarray(columns).reshape(4, 4, 8).sum(1)[np.arange(8) % 4]
    for out in (as_typed(x, columns), ft.jit(as_typed)(x, columns)):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ArgumentError, match=r"got no in_specs, and types do not say how 'y'"), ft.use_mesh(MIXED):
        as_typed(x, columns)


def test_arrays_like_others():
    x = split(8, 8, by=("x", "y"))
    for fun in (fnp.zeros_like, fnp.ones_like, lambda x: fnp.full_like(x, 3), lambda x: lax.full_like(x, 3)):
        assert typed(fun(x)) == typed(ft.jit(fun)(x)) == "8@x,8@y"
    assert typed(ft.jit(lambda x: fnp.zeros_like(x, shape=(3,)))(x)) == "3"


#: Primitives whose operands are keys, tokens, or the parts of `shard_map`, or for which types make no sense.
WITHOUT_RULE = frozenset(
    [
        "all_gather",
        "all_to_all",
        "axis_index",
        "call_exported",
        "ffi_call",
        "fused_attention_tangent",
        "ppermute",
        "ragged_contract",
        "reduce_scatter",
        "rng_bit_generator",
        "draw",
        "iota",
        "platform_index",
    ]
)


def test_every_primitive_has_a_rule_whose_results_fit():
    """Of each sample, one dimension after the other is split: the rule refuses it, or splits results."""
    unruled = set()
    for prim in first_order():
        for sample in prim.samples():
            avals = [a if isinstance(a, ShapedArray) else core.aval_of(a) for a in sample.operands]
            for k, d in [
                (k, d) for k, a in enumerate(avals) for d in range(a.ndim) if a.shape[d] and a.shape[d] % 2 == 0
            ]:
                axes = [("x",) if i == d else () for i in range(avals[k].ndim)]
                one = avals[k].split(ExplicitAxes.of(MESH.abstract_mesh, axes))
                try:
                    outs = core.abstract_eval(prim, [*avals[:k], one, *avals[k + 1 :]], sample.params)
                except ShardingTypeError as e:
                    if "has no rule" in e.reason:
                        unruled.add(prim.name)
                    continue
                plain = core.abstract_eval(prim, avals, sample.params)
                for out, whole in zip(*((o if prim.multiple_results else [o]) for o in (outs, plain)), strict=True):
                    assert out.split(None) is whole, prim
                    if out.explicit is not None:
                        assert sum(map(len, out.explicit.axes)) == 1 and len(out.explicit.axes) == out.ndim, prim
                        assert whole.shape[out.explicit.axes.index(("x",))] % 2 == 0, prim
    assert unruled <= WITHOUT_RULE


def first_order():
    for family in FAMILIES:
        importlib.import_module(f"functorch_like.primitives.{family}")
    return [p for p in core.TABLE.values() if p.builtin and p.partial_eval is None and p.evaluate is None]


def test_meshes():
    assert MESH.axis_types == (AxisType.Explicit,) * 2 and MESH.explicit_axes == ("x", "y") and MESH.auto_axes == ()
    assert MIXED.explicit_axes == ("x",) and MIXED.auto_axes == ("y",) and not MIXED.are_all_axes_explicit
    assert AUTO is not MESH and AUTO.are_all_axes_auto and MESH.are_all_axes_explicit_or_manual
    assert MESH.update(axis_types=AxisType.Auto) is AUTO and MESH.update(axis_names=("a", "b")).explicit_axes == (
        "a",
        "b",
    )
    assert pickle.loads(pickle.dumps(MESH)) is MESH
    assert pickle.loads(pickle.dumps(MESH.abstract_mesh)) == MESH.abstract_mesh != AUTO.abstract_mesh
    assert repr(MIXED) == "Mesh('x': 2, 'y': 4, axis_types=(Explicit, Auto))"
    aval = ft.typeof(split(8, 8, by=("x",)))
    assert pickle.loads(pickle.dumps(aval)) is aval
    with pytest.raises(UnsupportedError, match="Manual by itself"):
        AbstractMesh((2,), ("x",), AxisType.Manual)
    with pytest.raises(ArgumentError, match="one AxisType"):
        ft.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit,))


def test_moving_between_meshes_keeps_the_memory():
    x = split(8, 8, by=("x",))
    there = ft.device_put(x, NamedSharding(AUTO, P("x")))
    assert typed(there) == "8,8" and there.sharding.mesh is AUTO and typed(x) == "8@x,8"
    parts = [[s.data.unsafe_buffer_pointer() for s in a.addressable_shards] for a in (x, there)]
    assert parts[0] == parts[1]
    assert typed(ft.device_put(there, NamedSharding(MESH, P("x")))) == "8@x,8"


def test_stored_programs_keep_types():
    x = split(8, 8, by=("x", "y"))
    exported = ft.export.export(ft.jit(lambda x: x * 2))(x)
    for call in (exported.call, ft.jit(lambda x: exported.call(x) + 0)):
        assert typed(call(x)) == "8@x,8@y"
        np.testing.assert_array_equal(call(x), 2 * np.asarray(x))
    stored = ft.export.deserialize(exported.serialize())
    np.testing.assert_array_equal(ft.jit(lambda x: stored.call(x) + 1)(x), 2 * np.asarray(x) + 1)
    payload = serialize_executable.serialize(ft.jit(lambda x: x * 3).lower(x).compile())
    assert typed(serialize_executable.deserialize_and_load(*payload)(x)) == "8@x,8@y"


def test_primitives_without_a_rule():
    with pytest.raises(ShardingTypeError, match="has no rule for operands that Explicit axes split"):
        ft.jit(lambda x: lax.rng_bit_generator(x, (4,)))(ft.device_put(np.arange(4, dtype=np.uint32), P("x")))


@st.composite
def reshapes(draw):
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 4, 6, 8)), min_size=1, max_size=3))
    axes = [["x", "y", ("x", "y"), None][draw(st.integers(0, 3))] for _ in shape]
    sizes = {"x": 2, "y": 4, ("x", "y"): 8, None: 1}
    used = set()
    for k, names in enumerate(axes):
        names_ = {names} if isinstance(names, str) else set(names or ())
        if names_ & used or shape[k] % sizes[names]:
            axes[k] = None
        else:
            used |= names_
    left, new = math.prod(shape), []
    while left > 1 and len(new) < 3:
        size = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        new.append(size)
        left //= size
    return tuple(shape), tuple(axes), (*new, left)


@given(reshapes())
def test_reshapes_keep_values_and_split_by_the_same_axes(case):
    shape, axes, new = case
    x = ft.device_put(np.arange(math.prod(shape), dtype=np.float32).reshape(shape), P(*axes))
    try:
        out = x.reshape(new)
    except ShardingTypeError:
        return
    np.testing.assert_array_equal(out, np.asarray(x).reshape(new))
    assert sorted(out.sharding.spec.mentioned()) == sorted(P(*axes).mentioned())
