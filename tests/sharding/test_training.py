"""Training over meshes equals training on one device: data, tensor, pipeline parallel, and with compressed sums."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, tree
from functorch_like.examples import sharded_transformer, transformer
from functorch_like.examples.pipeline import pipeline
from functorch_like.parallel import data_parallel, fsdp_shardings, int8_error, int8_pmean, topk_pmean
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

SIZES = transformer.Sizes(words=16, length=8, width=16, heads=4, layers=2)
TOKENS = np.random.default_rng(0).integers(0, 16, (8, 9)).astype(np.int32)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("data", "model"))


def close(actual, desired, tolerance=1e-5):
    tree.map(
        lambda a, b: np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance), actual, desired
    )


@pytest.mark.parametrize("fsdp", [False, True])
def test_a_transformer_on_4_by_2_devices(mesh, fsdp):
    start = transformer.init(ft.random.key(0), SIZES)
    alone, one = ft.jit(transformer.train_step(SIZES)), start
    step, many = sharded_transformer.train_step(start, SIZES, mesh, fsdp=fsdp)
    for _ in range(3):
        one, expected = alone(one, TOKENS)
        many, loss = step(many, TOKENS)
        close(loss, expected)
    close(many, one, 1e-4)
    up = many["blocks"]["up"]
    assert up.sharding.spec == (P(None, "data", "model") if fsdp else P(None, None, "model"))
    assert up.addressable_shards[0].data.size == up.size // (8 if fsdp else 2)


def test_data_parallel_steps(mesh):
    x, y = np.random.default_rng(1).standard_normal((2, 32, 8)).astype(np.float32)
    loss = lambda w, batch: fnp.mean((fnp.tanh(batch[0] @ w) - batch[1]) ** 2)

    def step(w, batch):
        value, g = ft.value_and_grad(loss)(w, batch)
        return w - 0.1 * g, value

    start = np.eye(8, dtype=np.float32)
    one, expected = ft.jit(step)(start, (x, y))
    for places in (None, fsdp_shardings(start, mesh, smallest=1), NamedSharding(mesh, P("model"))):
        w, value = data_parallel(step, mesh=None if places is None else mesh, state=places)(start, (x, y))
        close(value, expected)
        close(w, one)
    assert w.sharding.spec == P("model")
    split = fsdp_shardings({"big": np.ones((3, 8, 512)), "odd": np.ones((3, 5)), "small": np.ones(8)}, mesh)
    assert [split[k].spec for k in ("big", "odd", "small")] == [P(None, None, "data"), P(), P()]
    with pytest.raises(ft.FtError, match="names the axis 'rows'"):
        data_parallel(step, mesh=mesh, axis="rows")
    with pytest.raises(ft.FtError, match=r"dimension 0 of argument args\[1\]\[0\]"):
        data_parallel(step, mesh=mesh)(start, (x[:3], y[:3]))
    with pytest.raises(ft.FtError, match="takes a function"):
        data_parallel(3)


def test_a_pipeline_and_its_gradient():
    line = ft.make_mesh((4,), ("stage",))
    rng = np.random.default_rng(2)
    w = rng.standard_normal((4, 6, 6)).astype(np.float32) / 2
    x = rng.standard_normal((5, 3, 6)).astype(np.float32)
    layer = lambda w, x: fnp.tanh(x @ w)
    run = pipeline(layer, line)
    expected = x
    for one in w:
        expected = np.tanh(expected @ one)
    close(ft.jit(run)(w, x), expected)
    total = lambda f: lambda w, x: (f(w, x) ** 2).sum()
    plain = lambda w, x: lax.scan(lambda c, one: (layer(one, c), None), x, w)[0]
    close(ft.jit(ft.grad(total(run), (0, 1)))(w, x), ft.grad(total(plain), (0, 1))(w, x), 1e-4)


# --------------------------------------------------------------------------------------------------------- compression
ROWS = np.random.default_rng(3).standard_normal((64, 10)).astype(np.float32)
GOAL = ROWS @ np.linspace(-1, 1, 10, dtype=np.float32)


def trained(line, reduce, error, steps, rate):
    """Return the weights after gradient descent on least squares, with gradients reduced by `reduce(g, error)`."""

    def local(w, rows, goal, error):
        def step(carry, _):
            w, error = carry
            g = rows.T @ (rows @ w - goal) / rows.shape[0]
            g, error = reduce(g, error)
            return (w - rate * g, error), None

        return lax.scan(step, (w, error), None, length=steps)[0][0]

    run = ft.shard_map(local, mesh=line, in_specs=(P(), P("i"), P("i"), P()), out_specs=P(), check_vma=False)
    return np.asarray(ft.jit(run)(fnp.zeros(10), ROWS, GOAL, error))


def test_compressed_gradients_converge_with_feedback():
    line = ft.make_mesh((4,), ("i",))
    w = fnp.zeros(10)
    exact = trained(line, lambda g, e: (lax.pmean(g, "i"), e), w, 300, 0.2)
    np.testing.assert_allclose(exact, np.linspace(-1, 1, 10), atol=1e-4)
    int8 = trained(line, lambda g, e: int8_pmean(g, "i", e), int8_error(w, 4), 300, 0.2)
    np.testing.assert_allclose(int8, exact, atol=3e-3)
    few = trained(line, lambda g, e: topk_pmean(g, "i", e, 2), w, 600, 0.05)
    np.testing.assert_allclose(few, exact, atol=3e-2)
    with pytest.raises(ft.FtError, match="sends k=11 of 10"):
        trained(line, lambda g, e: topk_pmean(g, "i", e, 11), w, 1, 0.05)


def test_int8_sums_are_near_and_keep_what_is_lost():
    line = ft.make_mesh((4,), ("i",))
    x = np.random.default_rng(4).standard_normal((4, 7, 9)).astype(np.float32)

    def f(part):
        mean, error = int8_pmean(part[0], "i", int8_error(part[0], 4))
        return mean[None], error.sent[None], error.summed[None]

    mean, sent, summed = map(np.asarray, ft.shard_map(f, mesh=line, in_specs=P("i"), out_specs=P("i"))(x))
    assert (mean == mean[:1]).all()
    np.testing.assert_allclose(mean[0], x.mean(0), atol=0.03)
    kept = sent.mean(0) + summed.reshape(-1)[:63].reshape(7, 9)
    np.testing.assert_allclose(mean[0] + kept, x.mean(0), atol=1e-6)


def test_compressed_sums_send_fewer_bytes():
    line = ft.make_mesh((4,), ("i",))
    x = np.ones((4, 4096), np.float32)
    plain = ft.shard_map(lambda p: lax.pmean(p, "i"), mesh=line, in_specs=P("i"), out_specs=P())
    short = ft.shard_map(
        lambda p: int8_pmean(p[0], "i", int8_error(p[0], 4))[0], mesh=line, in_specs=P("i"), out_specs=P()
    )
    count = lambda f: {c.kind: c.bytes for c in ft.jit(f).lower(x).compile().collectives()}
    full, few = count(plain), count(short)
    assert full == {"all-reduce": 4096 * 4}  # an all-reduce sends these bytes twice: it scatters and gathers
    assert set(few) == {"all-to-all", "all-gather"}
    assert sum(few.values()) < 2 * 4096 * 1.05
