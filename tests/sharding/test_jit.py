"""Jitted functions over meshes, compared with NumPy: given and inferred shardings, and transformations inside."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import window
from functorch_like.sharding import Mesh, NamedSharding, SingleDeviceSharding
from functorch_like.sharding import PartitionSpec as P
from functorch_like.testing import count_compiles, count_traces

X = np.linspace(-2, 2, 128, dtype=np.float32).reshape(8, 16)
W = np.cos(np.arange(16 * 8, dtype=np.float32)).reshape(16, 8)


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def split(mesh):
    return lambda *spec: NamedSharding(mesh, P(*spec))


def close(actual, desired, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(actual), desired, rtol=tolerance, atol=tolerance)


# ----------------------------------------------------------------------------------------------------------- shardings
@pytest.mark.parametrize("ins", [(P("x"), P()), (P("x", "y"), P("y")), (P(None, "x"), P("x")), (P(), P())], ids=repr)
@pytest.mark.parametrize("out", [P("x"), P("y", "x"), P(), None], ids=repr)
def test_products(mesh, ins, out):
    places = tuple(NamedSharding(mesh, spec) for spec in ins)
    outs = None if out is None else NamedSharding(mesh, out)
    f = ft.jit(lambda x, w: fnp.tanh(x @ w), in_shardings=places, out_shardings=outs)
    result = f(X, W)
    close(result, np.tanh(X @ W))
    assert result.sharding.mesh is mesh
    if out is not None:
        assert result.sharding.spec == out
    close(f(*map(ft.device_put, (X, W), places)), np.tanh(X @ W))


def test_shardings_are_inferred_from_arguments_and_read_back(mesh, split):
    f = ft.jit(lambda x, w: (x @ w, x.sum(0)))
    product, total = f(ft.device_put(X, split("x")), ft.device_put(W, split()))
    assert product.sharding == split("x") and total.is_fully_replicated
    close(product, X @ W)
    close(total, X.sum(0))


def test_each_sharding_is_compiled_once(mesh, split):
    f = ft.jit(lambda x: x * 2)
    rows, columns = ft.device_put(X, split("x")), ft.device_put(X, split(None, "x"))
    with count_compiles() as compiles, count_traces() as traces:
        for _ in range(3):
            assert f(rows).sharding == rows.sharding
            assert f(columns).sharding == columns.sharding
            assert f(ft.device_put(X, split(("x",), None))).sharding == rows.sharding
            f(X)
    assert traces.count == 1
    assert compiles.count == 3


def test_functions_with_other_shardings_are_other_functions(mesh, split):
    def f(x):
        return x + 1

    assert ft.jit(f, out_shardings=split("x"))(X).sharding == split("x")
    assert ft.jit(f, out_shardings=split("y"))(X).sharding == split("y")
    assert len(ft.jit(f)(X).devices()) == 1


def test_trees_of_shardings(mesh, split):
    def f(params, x, scale, *, shift=0.0):
        return {"y": x @ params["w"] * scale + shift, "w": params["w"]}

    params, places = {"w": W, "b": X}, {"w": split(None, "y"), "b": None}
    g = ft.jit(f, in_shardings=(places, split("x")), out_shardings={"y": split("x", "y"), "w": None}, static_argnums=2)
    out = g(params, X, 3)
    close(out["y"], X @ W * 3)
    assert out["y"].sharding == split("x", "y") and out["w"].sharding == split(None, "y")
    with pytest.raises(ft.FtError, match="got shift by name"):
        g(params, X, 3, shift=1.0)
    close(ft.jit(f, in_shardings=split(), static_argnums=2)(params, X, 3, shift=1.0)["y"], X @ W * 3 + 1)


def test_specs_refer_to_the_mesh_of_the_block(mesh, split):
    f = ft.jit(lambda x: lax.with_sharding_constraint(x * 2, P("y")), in_shardings=P("x"))
    with ft.use_mesh(mesh):
        assert f(X).sharding == split("y")
    other = Mesh(mesh.devices.T, ("x", "y"))
    with ft.use_mesh(other):
        assert f(X).sharding == NamedSharding(other, P("y"))
    with pytest.raises(ft.FtError, match="no mesh was chosen"):
        f(X)


def test_closed_over_arrays_and_no_arguments(mesh, split):
    w = ft.device_put(W, split(None, "y"))
    close(ft.jit(lambda x: x @ w)(X), X @ W)
    assert ft.jit(lambda: w * 2)().sharding == split(None, "y")
    close(ft.jit(lambda x: x @ fnp.asarray(W))(ft.device_put(X, split("x"))), X @ W)
    assert ft.jit(lambda: fnp.ones((8, 8)), out_shardings=split("x"))().sharding == split("x")


def test_numbers_and_numpy_arrays_beside_sharded_ones(mesh, split):
    f = ft.jit(lambda x, a, b, c: x * a + b - c)
    x = ft.device_put(X, split("x"))
    for _ in range(3):
        close(f(x, 2, 0.5, X), X * 2 + 0.5 - X)
        close(f(x, np.float32(2), fnp.float32(0.5), fnp.asarray(X)), X * 2 + 0.5 - X)


def test_what_no_spec_can_say_is_replicated(mesh, split):
    line = ft.make_mesh((8,), ("d",))
    x = ft.device_put(np.arange(8.0), NamedSharding(line, P("d")))
    y = x.reshape(2, 4)  # XLA would split each dimension by a part of the mesh axis; no spec expresses that
    assert isinstance(y.sharding, NamedSharding)
    assert np.array_equal(np.asarray(y + 1), np.arange(8.0).reshape(2, 4) + 1)
    uneven = ft.jit(lambda x: fnp.concatenate([x, x])[:10])(x)
    assert np.array_equal(np.asarray(uneven), np.r_[np.arange(8.0), 0, 1])


def test_donation(mesh, split):
    f = ft.jit(lambda x, y: (x + y, y), donate_argnums=0)
    x, y = ft.device_put(X, split("x", "y")), ft.device_put(X, split("x", "y"))
    for _ in range(3):
        before = x
        x, _ = f(x, y)
        assert before.is_deleted() and x.sharding == split("x", "y")
    close(x, X * 4)
    with pytest.raises(ft.FtError, match="donated"):
        f(before, y)


def test_constraints_in_programs(mesh, split):
    def f(x):
        y = lax.with_sharding_constraint({"a": fnp.tanh(x), "b": x}, {"a": split("y", "x"), "b": None})
        z = lax.with_sharding_constraint(y["a"], NamedSharding(mesh, P(P.UNCONSTRAINED, "y")))
        return y["a"], z, ft.device_put(y["b"], split(None, "x"))

    a, z, b = ft.jit(f)(X)
    assert a.sharding == split("y", "x") and b.sharding == split(None, "x") and z.sharding.spec[1] == "y"
    close(z, np.tanh(X))
    again, _, moved = f(X)
    assert again.sharding == split("y", "x") and moved.sharding == split(None, "x")


def test_uneven_constraints_are_fine_inside(mesh, split):
    f = ft.jit(lambda x: lax.with_sharding_constraint(fnp.sin(x[:6]), split("x")).sum())
    close(f(X), np.sin(X[:6]).sum(), 1e-4)


def test_lowered_ahead_of_time(mesh, split):
    arg = ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=split("x"))
    lowered = ft.jit(lambda x, w: x @ w, out_shardings=split("x")).lower(arg, W)
    assert "sdy.sharding" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.input_shardings[0][0] == split("x") and compiled.output_shardings == split("x")
    close(compiled(ft.device_put(X, split("x")), W), X @ W)
    with pytest.raises(ft.FtError, match="is bound to"):
        compiled(ft.device_put(X, split("y")), W)
    assert compiled.memory_analysis()["argument"] < X.nbytes + W.nbytes * 2


# ------------------------------------------------------------------------------------------------------ transformations
def test_gradients(mesh, split):
    loss = lambda w, x: fnp.mean(fnp.tanh(x @ w) ** 2)
    step = ft.jit(
        ft.value_and_grad(loss), in_shardings=(split(None, "y"), split("x")), out_shardings=(None, split("y"))
    )
    value, g = step(W, X)
    one_value, one = ft.value_and_grad(loss)(fnp.asarray(W), fnp.asarray(X))
    close(value, one_value)
    close(g, one)
    assert g.sharding == split("y")
    inner = ft.jit(lambda x: lax.with_sharding_constraint(fnp.tanh(x), split("x")))
    g = ft.jit(ft.grad(lambda x: inner(x).sum()))(ft.device_put(X, split("x")))
    close(g, 1 - np.tanh(X) ** 2)
    close(ft.grad(lambda x: inner(x).sum())(X), 1 - np.tanh(X) ** 2)
    _, tangent = ft.jit(lambda x, t: ft.jvp(inner, (x,), (t,)))(X, X)
    close(tangent, (1 - np.tanh(X) ** 2) * X)


def test_vmap_keeps_constraints_of_the_rest(mesh, split):
    f = ft.vmap(lambda r: lax.with_sharding_constraint(r * 2, split("y")), spmd_axis_name="x")
    out = ft.jit(f)(X)
    assert out.sharding == split("x", "y")
    close(out, X * 2)
    out = ft.jit(ft.vmap(lambda r: lax.with_sharding_constraint(r * 2, split("y")), in_axes=1, out_axes=1))(X)
    assert out.sharding.spec[0] == "y"
    close(out, X * 2)
    with pytest.raises(ft.FtError, match="spmd_axis_name=3"):
        ft.vmap(lambda r: r, spmd_axis_name=3)


def test_control_flow(mesh, split):
    @ft.jit
    def f(x, n):
        def body(c, _):
            c = lax.with_sharding_constraint(fnp.sin(c), split("x", "y"))
            return c, c.sum()

        c, sums = lax.scan(body, x, None, length=4)
        c = lax.cond(sums[-1] > 0, lambda c: c + 1, lambda c: lax.with_sharding_constraint(c - 1, split("y")), c)
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, c))[1], sums

    start = X + np.float32(0.5)
    out, sums = f(ft.device_put(start, split("x")), 3)
    c, expected = start.astype(float), []
    for _ in range(4):
        c = np.sin(c)
        expected.append(c.sum())
    close(sums, expected, 1e-4)
    close(out, (c + (1 if expected[-1] > 0 else -1)) * 8, 1e-4)


def test_checkpoint_and_custom_rules(mesh, split):
    @ft.custom_vjp
    def double(x):
        return x * 2

    double.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * 3,))
    f = lambda x: double(ft.checkpoint(lambda y: lax.with_sharding_constraint(fnp.sin(y), split("x")))(x)).sum()
    close(ft.jit(ft.grad(f))(ft.device_put(X, split("x", "y"))), 3 * np.cos(X))


def test_random_numbers_do_not_depend_on_the_mesh(mesh, split):
    draw = lambda key: ft.random.normal(key, (8, 16))
    key = ft.random.key(0)
    close(ft.jit(draw, out_shardings=split("x", "y"))(key), draw(key), 1e-6)


def test_linear_algebra_sort_and_convolution(mesh, split):
    a = (X @ X.T + 20 * np.eye(8)).astype(np.float32)
    x = ft.device_put(a, split("x"))
    close(ft.jit(fnp.linalg.inv)(x) @ x, np.eye(8), 1e-3)
    close(ft.jit(lambda x: fnp.linalg.cholesky(x))(x), np.linalg.cholesky(a), 1e-3)
    close(ft.jit(lambda x: fnp.sort(x, 0))(x), np.sort(a, 0))
    close(ft.jit(lambda x: fnp.linalg.eigvalsh(x))(x), np.linalg.eigvalsh(a), 1e-2)
    signal = ft.device_put(X[:, 0], split("x"))
    close(ft.jit(lambda s: fnp.convolve(s, fnp.ones(3)))(signal), np.convolve(X[:, 0], np.ones(3)))


def test_jit_in_jit_constrains(mesh, split):
    inner = ft.jit(lambda x: x * 2, in_shardings=split("x"), out_shardings=split(None, "y"))
    assert ft.jit(lambda x: inner(x))(X).sharding == split(None, "y")
    close(ft.jit(ft.grad(lambda x: (inner(x) ** 2).sum()))(X), 8 * X)
    close(ft.vmap(inner)(np.stack([X, X])), np.stack([X, X]) * 2)


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda s: ft.jit(lambda a: a, in_shardings=s("x"))(X[:6]), r"dimension 0 of argument args\[0\], f32\[6,16\]"),
        (lambda s: ft.jit(lambda a: a[:6], out_shardings=s("x"))(X), r"dimension 0 of result, f32\[6,16\], has size 6"),
        (lambda s: ft.jit(lambda a: a, in_shardings=s("x"))(ft.device_put(X, s("y"))), r"args\[0\] of jit.*say Named"),
        (lambda s: ft.jit(lambda a: a, in_shardings=s("x", None, "y"))(X), "has 3 entries"),
        (lambda s: ft.jit(lambda a, b: a, in_shardings=(s(),))(X, X), "1 entry for 2 arguments"),
        (lambda s: ft.jit(lambda a: a, in_shardings="x")(X), "in_shardings of jit.* is 'x'"),
        (lambda s: ft.jit(lambda a: (a, a), out_shardings=(s(),) * 3)(X), "out_shardings of jit"),
        (lambda s: ft.jit(lambda a: lax.with_sharding_constraint(a, s(None, None, "x")))(X), "has 3 entries"),
        (
            lambda s: ft.jit(
                lambda a: a, in_shardings=s(), out_shardings=NamedSharding(ft.make_mesh((2,), ("z",)), P())
            )(X),
            "on different devices",
        ),
        (lambda s: ft.jit(lambda a, b: a + b)(ft.device_put(X, s()), ft.device_put(X, ft.devices()[0])), "is bound to"),
    ],
)
def test_what_does_not_fit_is_refused(split, use, text):
    with pytest.raises(ft.FtError, match=text):
        use(split)


# --------------------------------------------------------------------------------------------------------- in flight
def test_steps_that_never_read_a_result(mesh, split):
    """Before jaxlib 0.12 the 33rd program in flight deadlocks."""
    step = ft.jit(lambda w, x: (w - 0.01 * (x.T @ (x @ w)), (x @ w).sum()))
    w, x = ft.device_put(W, split()), ft.device_put(X, split("x"))
    losses = []
    for _ in range(200):
        w, loss = step(w, x)
        losses.append(loss)
    assert len(window._in_flight) <= window.LIMIT
    expected = W.astype(float)
    for _ in range(200):
        expected -= 0.01 * (X.T @ (X @ expected))
    close(w, expected, 1e-3)


def test_eager_operations_that_never_read_a_result(mesh, split):
    x = ft.device_put(X, split("x"))
    totals = [x.sum() for _ in range(100)]
    close(totals[-1], X.sum(), 1e-3)


def test_threads(mesh, split):
    import threading

    x = ft.device_put(X, split("x"))
    f = ft.jit(lambda a, k: (a * k).sum())
    found = {}

    def work(k):
        found[k] = [float(f(x, np.float32(k))) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        close(found[k], [(X * k).sum()] * 20, 1e-3)


def test_sums_that_have_a_loop_of_their_own_on_one_device(split):
    """On one device these sums are lowered to loops; XLA's collectives on CPUs accept only plain additions."""
    x = np.linspace(0, 1, 4096 * 8, dtype=np.float32).reshape(4096, 8)
    put = ft.device_put(x, split("x"))
    close(ft.jit(lambda x: fnp.sum(x, axis=0))(put), x.sum(0, dtype=np.float64))
    close(fnp.sum(put, axis=0), x.sum(0, dtype=np.float64))


def test_functions_that_close_over_a_mesh_have_a_fingerprint(mesh, split):
    """Programs that contain meshes have fingerprints, equal ones for equal programs.

    The disk cache finds programs by fingerprint without lowering them, and equal programs share a kernel.
    """
    from functorch_like.compiler.fingerprint import fingerprint

    make = lambda spec: ft.make_jaxpr(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, spec)))(X)
    first, second, other = (fingerprint(make(spec)) for spec in (P("x"), P("x"), P("y")))
    assert first is not None and first == second and first != other


def test_stages_are_for_the_device_of_the_arguments():
    x = ft.device_put(X, ft.devices()[3])
    lowered = ft.jit(lambda x: x * 2).lower(x)
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(x), X * 2)
    assert compiled(x).devices() == {ft.devices()[3]} and "cpu:3" in str(lowered)
    shape = ft.ShapeDtypeStruct(X.shape, X.dtype, sharding=SingleDeviceSharding(ft.devices()[2]))
    assert ft.jit(lambda x: x * 2).lower(shape).compile()(X).devices() == {ft.devices()[2]}


def test_functions_may_have_the_names_of_meshes(split):
    """Both are symbols of one module."""

    def mesh(x):
        return fnp.cumsum(x, 0)

    def first_device(x):
        return ft.io_callback(lambda v: v, ft.ShapeDtypeStruct(x.shape, x.dtype), ft.jit(mesh)(x))

    f = ft.jit(lambda x: ft.jit(first_device)(lax.map(mesh, x)) + ft.jit(mesh)(x))
    close(f(ft.device_put(X, split("x"))), np.cumsum(np.cumsum(X, 1), 0) + np.cumsum(X, 0), 1e-4)
    made = ft.export.export(ft.jit(mesh))(ft.device_put(X, split("x")))
    close(made.call(ft.device_put(X, split("x"))), np.cumsum(X, 0), 1e-4)
