"""shard_map, compared with NumPy and with vmap over a named axis."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import checkify as ck
from functorch_like import lax
from functorch_like.sharding import AbstractMesh, NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.linspace(-2, 2, 128, dtype=np.float32).reshape(8, 16)
W = np.cos(np.arange(16 * 3, dtype=np.float32)).reshape(16, 3)
STACK = np.random.default_rng(0).standard_normal((4, 4, 8)).astype(np.float32)  # a part for each device
SHIFT = [(i, (i + 1) % 4) for i in range(4)]


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


@pytest.fixture(scope="module")
def line():
    return ft.make_mesh((4,), ("i",))


def close(actual, desired, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(desired), rtol=tolerance, atol=tolerance)


def numeric(f, x, eps=1e-3):
    """Return the gradient of a function of a float64 array, by central differences."""
    x = np.asarray(x, np.float64)
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = eps
        g[i] = (f(x + d) - f(x - d)) / (2 * eps)
    return g


def on_parts(f, mesh, **options):
    """Return the equivalent of `vmap(f, axis_name="i")` with one element on each device."""
    one = lambda x: f(x[0])[None]
    return ft.shard_map(one, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)


# ---------------------------------------------------------------------------------------------------- specs and meshes
def test_parts_have_the_shapes_that_specs_say(mesh):
    seen = []

    def f(a, b):
        seen.append((a["w"].shape, b.shape))
        return a["w"] * 2, b

    out = ft.shard_map(
        f, mesh=mesh, in_specs=({"w": P("x", "y")}, P(None, ("y", "x"))), out_specs=(P("x", "y"), P(None, ("y", "x")))
    )({"w": X}, X)
    assert seen == [((2, 8), (8, 2))]
    close(out[0], X * 2)
    close(out[1], X)
    assert out[0].sharding.spec == P("x", "y") and out[1].sharding.spec == P(None, ("y", "x"))


def test_results_of_another_shape(mesh):
    f = ft.shard_map(lambda a: a.sum(1), mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))
    expected = X.reshape(4, 2, 2, 8).sum(3).transpose(0, 2, 1).reshape(-1)
    close(f(X), expected)
    number = ft.shard_map(lambda a: (a.sum(), a.max()), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    assert number(X)[0].shape == ()


def test_arguments_come_from_anywhere(mesh):
    f = ft.shard_map(lambda a, s: a * s + lax.psum(a, "x"), mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))
    expected = X * 2 + np.tile(X.reshape(4, 2, 16).sum(0), (4, 1))
    for a in (
        X,
        fnp.asarray(X),
        ft.device_put(X, NamedSharding(mesh, P("y", "x"))),
        ft.device_put(X, NamedSharding(mesh, P("x"))),
    ):
        for s in (2, 2.0, np.float32(2), fnp.float32(2)):
            close(f(a, s), expected)
            close(ft.jit(f)(a, s), expected)


def test_what_is_closed_over_is_on_each_device(mesh):
    table = np.sin(np.arange(16, dtype=np.float32))
    held = fnp.asarray(table)
    f = ft.shard_map(lambda a: a * held + table + fnp.ones(16), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    close(f(X), X * table + table + 1)
    g = lambda w: ft.shard_map(lambda a: a * w, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X).sum()
    close(ft.grad(g)(held), X.sum(0), 1e-4)
    close(ft.jit(ft.grad(g))(held), X.sum(0), 1e-4)


def test_the_mesh_of_the_block_and_meshes_without_devices(mesh):
    f = ft.shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())
    expected = X.reshape(4, 2, 16).sum(0)
    with pytest.raises(ft.FtError, match="none is in force"):
        f(X)
    with ft.use_mesh(mesh):
        close(f(X), expected)
        close(ft.jit(f)(X), expected)
    g = ft.shard_map(lambda a: lax.psum(a, "x"), mesh=AbstractMesh((4, 2), ("x", "y")), in_specs=P("x"), out_specs=P())
    close(ft.jit(g)(ft.device_put(X, NamedSharding(mesh, P("x")))), expected)
    assert ft.eval_shape(g, X).shape == (2, 16)
    with pytest.raises(ft.FtError, match="no devices"):
        g(X)
    with pytest.raises(ft.FtError, match="one device"):
        ft.jit(g)(X)


def test_partly_manual(mesh):
    def f(a, w):
        assert a.shape == (2, 16)
        return lax.psum(fnp.tanh(a) @ w, "x") * (1 + lax.axis_index("x") * 0), lax.axis_index("x") * fnp.ones(2)

    mapped = ft.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=(P("x"), P("x")), axis_names={"x"})
    x, w = ft.device_put(X, NamedSharding(mesh, P("x", "y"))), ft.device_put(W, NamedSharding(mesh, P("y")))
    total, index = ft.jit(mapped)(x, w)
    close(total, np.tile((np.tanh(X) @ W).reshape(4, 2, 3).sum(0), (4, 1)))
    close(index, np.repeat(np.arange(4), 2))
    close(ft.jit(ft.grad(lambda w: mapped(x, w)[0].sum()))(w), numeric(lambda w: 4 * (np.tanh(X) @ w).sum(), W), 1e-3)
    split = ft.shard_map(
        lambda a: lax.with_sharding_constraint(a * 2, NamedSharding(mesh, P(None, "y"))),
        mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
    )  # fmt: skip
    close(ft.jit(split)(X), X * 2)


def test_nested(mesh):
    def outer(a):
        inner = ft.shard_map(
            lambda b: lax.psum(b, "y"), mesh=mesh, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
        )
        return lax.psum(inner(a), "x")

    f = ft.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    expected = X.reshape(4, 2, 2, 8).sum((0, 2))
    close(ft.jit(f)(X), expected)
    close(
        ft.jit(ft.grad(lambda x: (f(x) ** 2).sum()))(X),
        numeric(lambda x: (x.reshape(4, 2, 2, 8).sum((0, 2)) ** 2).sum(), X),
        1e-2,
    )


# ----------------------------------------------------------------------------------------------------- transformations
def model(mesh, check=True):
    """Return a layer with rows of data split by x and the inner dimension split by y; and its loss in NumPy."""

    def f(x, w, b):
        h = fnp.tanh(lax.psum(x @ w, "y") + b)
        return lax.pmean((h**2).mean(), "x"), h

    mapped = ft.shard_map(f, mesh=mesh, in_specs=(P("x", "y"), P("y"), P()), out_specs=(P(), P("x")), check_vma=check)
    plain = lambda x, w, b: (np.tanh(x @ w + b) ** 2).mean()
    return mapped, plain


B = np.array([0.1, -0.2, 0.3], np.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_gradients_of_a_layer(mesh, wrap):
    mapped, plain = model(mesh)
    x, w = X / 4, W
    loss, h = wrap(mapped)(x, w, B)
    close(loss, plain(x, w, B))
    close(h, np.tanh(x @ w + B))
    gx, gw, gb = wrap(ft.grad(lambda *a: mapped(*a)[0], (0, 1, 2)))(x, w, B)
    close(gx, numeric(lambda v: plain(v, w, B), x), 1e-4)
    close(gw, numeric(lambda v: plain(x, v, B), w), 1e-4)
    close(gb, numeric(lambda v: plain(x, w, v), B), 1e-4)


def test_second_derivatives(mesh):
    mapped, _ = model(mesh)
    one = lambda b: fnp.mean(fnp.tanh(X / 4 @ W + b) ** 2)
    many = lambda b: mapped(X / 4, W, b)[0]
    close(ft.jit(ft.hessian(many))(B), ft.hessian(one)(B), 1e-4)
    close(
        ft.hvp(many, (B,), (B,))[1] if isinstance(ft.hvp(many, (B,), (B,)), tuple) else ft.hvp(many, (B,), (B,)),
        ft.hessian(one)(B) @ B,
        1e-4,
    )


def test_gradients_inside_are_those_of_vmap_without_the_check(line):
    f = lambda x: ft.grad(lambda v: lax.psum((v**2).sum(), "i"))(x)
    close(on_parts(f, line, check_vma=False)(STACK), ft.vmap(f, axis_name="i")(STACK))
    mean = lambda w, x: lax.pmean(ft.grad(lambda w: ((x @ w) ** 2).mean())(w), "i")
    w = np.ones(8, np.float32)
    mapped = ft.shard_map(mean, mesh=line, in_specs=(P(), P("i")), out_specs=P(), check_vma=False)
    close(mapped(w, STACK.reshape(16, 8)), numeric(lambda w: ((STACK.reshape(16, 8) @ w) ** 2).mean(), w), 1e-3)


def test_control_flow_inside(line):
    def f(x):
        def body(c, _):
            return lax.psum(fnp.sin(c), "i"), c.sum()

        c, sums = lax.scan(body, x, None, length=3)
        c = lax.cond(lax.axis_index("i") > 1, lambda v: v + 1, lambda v: v * 2, c)
        return lax.fori_loop(0, 3, lambda k, v: lax.ppermute(v, "i", SHIFT), c) + sums[0]

    close(on_parts(f, line)(STACK), ft.vmap(f, axis_name="i")(STACK))
    g = lambda mapped: lambda x: (mapped(x) ** 2).sum()
    smooth = lambda x: lax.scan(lambda c, _: (lax.psum(fnp.sin(c), "i") / 4, c.sum()), x, None, length=3)[0]
    close(ft.jit(ft.grad(g(on_parts(smooth, line))))(STACK), ft.grad(g(ft.vmap(smooth, axis_name="i")))(STACK), 1e-4)


def test_shard_map_in_control_flow(line):
    f = ft.shard_map(lambda x: lax.ppermute(x, "i", SHIFT), mesh=line, in_specs=P("i"), out_specs=P("i"))
    rolled = ft.jit(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(STACK)
    close(rolled, np.roll(STACK, 3, 0))
    back = ft.jit(
        ft.grad(lambda x: (lax.scan(lambda c, _: (f(fnp.sin(c)), None), x, None, length=3)[0] * STACK).sum())
    )(STACK)
    one = ft.grad(lambda x: (fnp.roll(fnp.sin(fnp.sin(fnp.sin(x))), 3, 0) * STACK).sum())(STACK)
    close(back, one, 1e-4)


def test_checkpoint_custom_rules_and_jit_inside(line):
    @ft.custom_jvp
    def sine(x):
        return fnp.sin(x)

    sine.defjvp(lambda p, t: (fnp.sin(*p), 2 * fnp.cos(*p) * t[0]))

    @ft.custom_vjp
    def total(x):
        return lax.psum(x, "i")

    total.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (lax.psum(ct, "i"),))
    g = lambda mapped: lambda x: (fnp.cos(mapped(x)) * STACK).sum()
    for f in (
        lambda x: ft.checkpoint(lambda v: lax.psum(fnp.sin(v) * v, "i"))(x),
        lambda x: sine(x) * lax.psum(x, "i"),
        lambda x: total(fnp.sin(x)),
        lambda x: ft.jit(lambda v: lax.psum(v * fnp.cos(v), "i"))(x),
    ):
        # The cotangents that the rule of `total` takes are those of each device's copy.
        mapped = on_parts(f, line, check_vma=False)
        close(ft.jit(ft.grad(g(mapped)))(STACK), ft.grad(g(ft.vmap(f, axis_name="i")))(STACK), 1e-4)
        close(on_parts(f, line)(STACK), ft.vmap(f, axis_name="i")(STACK))

    # That of one value is whole on each device.
    one = ft.custom_vjp(lambda x: lax.psum(x, "i"))
    one.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (ct,))
    want = ft.grad(lambda x: (fnp.cos(fnp.sin(x).sum(0)) * STACK).sum())(STACK)
    close(ft.jit(ft.grad(g(on_parts(lambda x: one(fnp.sin(x)), line))))(STACK), want, 1e-4)


def test_vmap_splits_its_axis_by_a_name(mesh):
    f = ft.shard_map(lambda v: lax.psum(v, "y"), mesh=mesh, in_specs=P("y"), out_specs=P(), axis_names={"y"})
    out = ft.jit(ft.vmap(f, spmd_axis_name="x"))(X)
    close(out, X.reshape(8, 2, 8).sum(1))
    with pytest.raises(ft.FtError, match="does not divide by 4"):
        ft.vmap(f, spmd_axis_name="x")(X[:6])


def test_random_numbers_inside(line):
    f = lambda key: ft.random.normal(ft.random.fold_in(key, lax.axis_index("i")), (1, 4))
    out = ft.shard_map(f, mesh=line, in_specs=P(), out_specs=P("i"))(ft.random.key(0))
    expected = [ft.random.normal(ft.random.fold_in(ft.random.key(0), i), (4,)) for i in range(4)]
    close(out, np.stack(list(map(np.asarray, expected))))


def test_traces_are_kept(line):
    traced = []

    def f(x):
        traced.append(1)
        return x * 2

    for _ in range(3):
        ft.shard_map(f, mesh=line, in_specs=P("i"), out_specs=P("i"))(STACK)
    assert len(traced) == 1


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("body", "names"),
    [
        (lambda a: a.sum(), "'x', 'y'"),
        (lambda a: lax.psum(a.sum(), "x"), "'y'"),
        (lambda a: lax.axis_index("x"), "'x'"),
        (lambda a: lax.ppermute(lax.psum(a.sum(), ("x", "y")), "y", [(0, 1)]), "'y'"),
        (lambda a: lax.scan(lambda c, v: (c + v.sum(), None), 0.0, a)[0], "'x', 'y'"),
        (lambda a: lax.while_loop(lambda c: c < a.sum(), lambda c: c + 1, 0.0), "'x', 'y'"),
        (lambda a: lax.cond(lax.axis_index("y") > 0, lambda: 1.0, lambda: 2.0), "'y'"),
    ],
)
def test_results_that_may_differ_are_refused(mesh, body, names):
    f = ft.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P())
    with pytest.raises(ft.FtError, match=f"may differ along the axis {names}, which its spec"):
        f(X)
    ft.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(X)


@pytest.mark.parametrize(
    "body",
    [
        lambda a: lax.scan(lambda c, v: (c + lax.psum(v.sum(), ("x", "y")), None), 0.0, a)[0],
        lambda a: lax.fori_loop(0, 3, lambda i, c: c + i, 0.0),
        lambda a: lax.psum(a, ("x", "y")).sum() + lax.axis_size("x"),
        lambda a: ft.jit(lambda v: lax.pmax(v.max(), ("x", "y")))(a),
        lambda a: ft.checkpoint(lambda v: lax.psum(v.sum(), ("x", "y")))(a),
        lambda a: lax.all_gather(lax.all_gather(a, "x"), "y").sum(),
        lambda a: lax.pbroadcast(a, ("x", "y"), 3),
    ],
)
def test_results_that_are_the_same_pass(mesh, body):
    ft.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P())(X)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda m: ft.shard_map(3, mesh=m, in_specs=P(), out_specs=P()), "takes a function"),
        (lambda m: ft.shard_map(abs, mesh="m", in_specs=P(), out_specs=P()), "takes a mesh"),
        (lambda m: ft.shard_map(abs, mesh=m, in_specs=P("z"), out_specs=P())(X), "names the axis 'z'"),
        (lambda m: ft.shard_map(abs, mesh=m, in_specs="x", out_specs=P())(X), "use PartitionSpecs"),
        (
            lambda m: ft.shard_map(abs, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names="z")(X),
            "names the axis 'z'",
        ),
        (lambda m: ft.shard_map(abs, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names="y")(X), "by the parts of"),
        (
            lambda m: ft.shard_map(abs, mesh=m, in_specs=P("x"), out_specs=P("x"))(X[:6]),
            r"argument args\[0\] of shard_map",
        ),
        (lambda m: ft.shard_map(abs, mesh=m, in_specs=P(None, None, "x"), out_specs=P())(X), "has 3 entries"),
        (lambda m: ft.shard_map(abs, mesh=m, in_specs=(P(), P()), out_specs=P())(X), "in_specs of shard_map"),
        (
            lambda m: ft.shard_map(lambda a: a.sum(), mesh=m, in_specs=P("x"), out_specs=P("x"))(X),
            "result of shard_map",
        ),
        (lambda m: ft.shard_map(lambda a: lax.psum(a, "z"), mesh=m, in_specs=P("x"), out_specs=P("x"))(X), "named 'z'"),
        (
            lambda m: ft.shard_map(
                lambda a: lax.psum(a, "y"), mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names="x"
            )(X),
            "no axis named 'y' is in scope",
        ),
        (lambda m: lax.psum(X, "x"), "inside shard_map over a mesh"),
        (
            lambda m: ft.jit(lambda a: ft.shard_map(abs, mesh=m, in_specs=P("x"), out_specs=P("x"))(a))(
                ft.device_put(X, NamedSharding(ft.make_mesh((2,), ("x",)), P("x")))
            ),
            "which has other devices",
        ),
    ],
)
def test_what_does_not_fit_is_refused(mesh, use, text):
    with pytest.raises(ft.FtError, match=text):
        use(mesh)


# ---------------------------------------------------------------------------------------------------------------- pmap
def test_pmap(line):
    f = lambda x, y: (x / lax.psum(x, "i") + y, {"total": lax.psum(x, "i")})
    for mapped in (ft.pmap(f, axis_name="i", in_axes=(0, None)), ft.pmap(axis_name="i", in_axes=(0, None))(f)):
        out, extra = mapped(X, 2.0)
        close(out, X / X.sum(0) + 2, 1e-3)
        close(extra["total"], np.tile(X.sum(0), (8, 1)), 1e-4)
    assert len(out.sharding.device_set) == 8
    close(ft.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)(X, 3), X * 3)
    close(ft.pmap(lambda x: x * 2, in_axes=1, out_axes=-1)(X[:, :8]), X[:, :8] * 2)
    total = ft.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None, devices=ft.devices()[:4])(X[:4])
    close(total, X[:4].sum(0), 1e-4)
    close(ft.grad(lambda x: ft.pmap(fnp.sin)(x).sum())(X), np.cos(X))
    with pytest.raises(ft.FtError, match="takes 9 devices"):
        ft.pmap(fnp.sin)(np.ones(9))
    with pytest.raises(ft.FtError, match="different sizes"):
        ft.pmap(lambda x, y: x)(X, X[:4])
    with pytest.raises(ft.FtError, match="nothing"):
        ft.pmap(lambda x: x, in_axes=None)(X)


def test_pmap_maps_keyword_arguments_over_their_first_axis(line):
    f = lambda x, *, scale, shift: x * scale["a"] + shift
    scale, shift = {"a": np.arange(8.0, dtype=np.float32)}, X[:, 0]
    close(ft.pmap(f, in_axes=1)(X[:, :8].T, scale=scale, shift=shift), X[:, :8] * scale["a"][:, None] + shift[:, None])
    bound = ft.device_put(X, ft.devices()[2])  # pmap moves the elements of arrays that are committed to another device
    assert bound.committed and not fnp.ones(2).committed
    close(ft.pmap(lambda x, *, y: x + y[0])(bound, y=(bound,)), 2 * X)
    close(ft.pmap(lambda x: 2 * x).lower(X).compile()(X), 2 * X)
    with pytest.raises(ft.FtError, match="different sizes"):
        ft.pmap(lambda x, y: x)(X, y=X[:4])


# -------------------------------------------------------------------------------------------------------------- checks
@pytest.mark.parametrize("way", [lambda f: ck.checkify(f), lambda f: ft.jit(ck.checkify(f))], ids=["eager", "jit"])
def test_the_check_of_the_first_device_that_fails_counts(mesh, way):
    def f(x, w):
        ck.check(fnp.all(x > 0), "no element may be negative, total {}", x.sum())
        ck.check(w > 0, "w is {}", w)
        return lax.psum(x * w, "x")

    split = {"mesh": mesh, "in_specs": (P("x", "y"), P()), "out_specs": P(None, "y")}
    checked = way(ft.shard_map(f, **split))
    good = np.abs(X) + 1
    err, out = checked(good, np.float32(2.0))
    assert err.get() is None
    close(out, (good * 2).reshape(4, 2, 16).sum(0))
    for place, total in (((3, 10), -99), ((7, 0), -200)):
        bad = np.ones_like(X)
        bad[7, 0] = bad[place] = -300
        bad[place] = total - 15
        err, _ = checked(bad, np.float32(2.0))
        assert err.get().startswith(f"no element may be negative, total {float(total)} (")
    assert checked(good, np.float32(-1.0))[0].get().startswith("w is -1.0 (")


def test_a_mapped_function_is_checked_on_each_device(line):
    def f(x):
        ck.check(x.sum() < 100, "too much: {}", x.sum())
        return x / lax.psum(x, "i")

    checked = ck.checkify(ft.pmap(f, axis_name="i"))
    err, out = checked(X)
    assert err.get() is None
    close(out, X / X.sum(0), 1e-3)
    assert checked(X + 10)[0].get().startswith("too much: ")


def test_specs_inside_are_of_the_mesh_of_shard_map(mesh):
    total = lambda x: lax.psum(lax.with_sharding_constraint(x, P(None, "y")), "x")
    out = ft.jit(ft.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}))(X)
    assert out.sharding.spec == P(None, "y")
    np.testing.assert_allclose(np.asarray(out), X.reshape(4, -1, *X.shape[1:]).sum(0))
    inner = lambda x: ft.shard_map(lambda x: lax.psum(x, "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(
        x
    )
    out = ft.shard_map(inner, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(X)
    np.testing.assert_allclose(np.asarray(out), X[:, : X.shape[1] // 2] + X[:, X.shape[1] // 2 :])
    assert ft.sharding.get_mesh() is None


def test_an_abstract_mesh_has_the_devices_of_the_mesh_in_force():
    """Libraries map over `jax.sharding.get_abstract_mesh()`."""
    mesh = ft.make_mesh((1,), ("s",))
    total = ft.shard_map(
        lambda x: ft.lax.psum(fnp.sum(x), "s"), mesh=mesh.abstract_mesh, in_specs=P("s"), out_specs=P()
    )
    with ft.use_mesh(mesh):
        assert float(total(fnp.arange(4.0))) == 6.0
    with pytest.raises(ft.errors.ArgumentError, match="has no devices"):
        total(fnp.arange(4.0))
