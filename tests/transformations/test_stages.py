"""The stages of a jitted function as objects: traced, lowered, compiled."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError, ConcretizationError, DonatedError

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_the_stages_can_be_looked_at():
    def loss(w, x):
        return fnp.sum(fnp.tanh(x @ w))

    w = np.ones((3, 2), np.float32)
    traced = ft.jit(loss).trace(w, X)
    assert "tanh" in str(traced.jaxpr) and "dot_general" in str(traced)
    assert traced.out_info == ft.ShapeDtypeStruct((), "float32")
    lowered = traced.lower()
    assert traced.as_text() == str(traced.jaxpr)
    assert "stablehlo.tanh" in lowered.as_text()
    compiled = lowered.compile()
    assert "tanh" in compiled.as_text() or "fusion" in compiled.as_text()
    np.testing.assert_allclose(compiled(w, X), np.tanh(X @ w).sum(), atol=1e-5)
    assert compiled.cost_analysis()["flops"] > 0
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == memory["argument"] and memory.temp_size_in_bytes == memory["temp"]
    with pytest.raises(AttributeError, match="which has argument_size_in_bytes"):
        _ = memory.size
    assert lowered.cost_analysis()["flops"] > 0


def test_stages_take_shapes_instead_of_arrays():
    f = ft.jit(lambda p: {"y": p["w"] @ p["x"]})
    like = {"w": ft.ShapeDtypeStruct((2, 3), "float32"), "x": ft.ShapeDtypeStruct((3,), "float32")}
    before = counters.snapshot()
    assert f.eval_shape(like) == {"y": ft.ShapeDtypeStruct((2,), "float32")}
    assert "compiles" not in counters.since(before)
    compiled = f.lower(like).compile()
    np.testing.assert_allclose(compiled({"w": X, "x": X[0]})["y"], X @ X[0], rtol=1e-5)


def test_what_is_compiled_is_not_transformed():
    compiled = ft.jit(fnp.sin).lower(X).compile()
    for transform in (ft.jit, ft.vmap, lambda f: ft.grad(lambda x: f(x).sum())):
        with pytest.raises(ft.errors.ConcretizationError, match="sin is compiled, and got a f32"):
            transform(lambda x: compiled(x))(np.stack([X, X])[0])


def test_stages_know_their_structures():
    lowered = ft.jit(lambda x, *, k: {"a": x, "b": (k,)}).lower(X, k=1)
    for it in (lowered, lowered.compile()):
        assert it.in_tree == ft.tree.structure(((0,), {"k": 0}))
        assert it.out_tree == ft.tree.structure({"a": 0, "b": (0,)})
        assert it.out_info["a"].shape == X.shape


def test_stages_with_static_arguments():
    f = ft.jit(lambda x, n: x * n, static_argnums=1)
    np.testing.assert_array_equal(f.lower(X, 3).compile()(X, 3), X * 3)
    assert f.trace(X, 3).out_info.shape == (2, 3)


def test_a_compiled_function_refuses_other_static_arguments():
    by_position = ft.jit(lambda n, x: x * n, static_argnums=0).lower(3, X).compile()
    by_name = ft.jit(lambda x, *, n: x * n, static_argnames="n").lower(X, n=3).compile()
    either = ft.jit(lambda x, n, m=1: x * n * m, static_argnames=("n", "m")).lower(X, 3).compile()
    for ways in ((lambda: by_position(3, X), lambda: by_position(X)), (lambda: by_name(X, n=3), lambda: by_name(X)),
                 (lambda: either(X, 3), lambda: either(X))):  # fmt: skip
        for way in ways:
            np.testing.assert_array_equal(way(), X * 3)
    for wrong in (
        lambda: by_position(5, X),
        lambda: by_name(X, n=5),
        lambda: either(X, 5),
        lambda: by_position(3.0, X),
    ):
        with pytest.raises(ArgumentError, match=r"compiled for the static argument (0|1|'n') = 3, got (5|3\.0)"):
            wrong()
    nan = float("nan")
    assert np.isnan(ft.jit(lambda x, n: x * n, static_argnums=1).lower(X, nan).compile()(X, float("nan"))).all()


def test_user_lines_are_in_the_lowered_module():
    def loss(x):
        return fnp.sin(x) * 2  # here

    text = str(ft.jit(loss).trace(X))
    line = loss.__code__.co_firstlineno + 1
    assert f"test_stages.py:{line}" in text


def test_what_is_known_of_arguments():
    f = ft.jit(lambda p, k, n: p["x"] * k, static_argnums=2, donate_argnums=0)
    lowered = f.lower({"x": fnp.ones(3)}, 2.0, 7)
    args, kwargs = lowered.args_info
    assert kwargs == {} and lowered.compile().args_info == lowered.args_info
    assert args[0]["x"] == ((3,), np.dtype("float32"), False, True)
    assert args[1].weak_type and not args[1].donated


def test_dialects():
    lowered = ft.jit(lambda x: fnp.sin(x) + 1).lower(fnp.ones(3))
    assert "stablehlo.sine" in lowered.as_text() and lowered.as_text("stablehlo") == lowered.as_text()
    assert lowered.as_text("hlo").startswith("HloModule") and "sine(" in lowered.as_text("hlo")
    assert "stablehlo.sine" in str(lowered.compiler_ir())
    assert lowered.compiler_ir("hlo").as_hlo_text() == lowered.as_text("hlo")
    with pytest.raises(ArgumentError, match="no dialect 'llvm'"):
        lowered.as_text("llvm")


def test_shapes_with_one_part_changed():
    given = ft.ShapeDtypeStruct((2, 3), "float32", weak_type=True)
    assert given.update(shape=(4,)) == ft.ShapeDtypeStruct((4,), "float32", weak_type=True)
    assert given.update(dtype="int8", weak_type=False) == ft.ShapeDtypeStruct((2, 3), "int8")
    assert given.update() == given and given.update(shape=[1]).shape == (1,)
    with pytest.raises(TypeError, match="size"):
        given.update(size=3)


# ------------------------------------------------------------------------------------------------- calls of `Compiled`
def test_later_calls_of_a_compiled_function_run_without_python():
    f = ft.jit(lambda x, *, scale: {"y": x["a"] * scale, "x": x["a"]})
    host = np.arange(3, dtype=np.float32)
    compiled = f.lower({"a": host}, scale=host).compile()
    for a in (fnp.asarray(host), host, ft.device_put(host, ft.devices()[0])):
        for repeat in range(3):
            before = counters.misses
            out = compiled({"a": a}, scale=fnp.asarray(host))
            assert counters.misses - before == (repeat == 0)
            np.testing.assert_array_equal(out["y"], host**2)
            assert out["x"]._committed == (a is not host and a._committed)
    for bad in ({"a": host[:2]}, {"a": host.astype("float64")}, {"b": host}, {"a": 2.0}):
        with pytest.raises(ArgumentError, match="was compiled for"):
            compiled(bad, scale=host)
    with pytest.raises(ConcretizationError):
        ft.grad(lambda a: compiled({"a": a}, scale=host)["y"].sum())(fnp.asarray(host))
    np.testing.assert_array_equal(compiled({"a": host}, scale=host)["y"], host**2)


def test_numbers_have_the_types_that_were_compiled_for():
    compiled = ft.jit(lambda n, x: n * x).lower(2, 1.5).compile()
    for n in (2, 3, 2):
        assert float(compiled(n, 1.5)) == n * 1.5
    with pytest.raises(ArgumentError):
        compiled(2**40, 1.5)


def test_a_compiled_function_donates():
    compiled = ft.jit(lambda x, y: (x + y, y), donate_argnums=0).lower(np.ones(3), np.ones(3)).compile()
    y = fnp.ones(3, "float64")
    for _ in range(3):
        x = fnp.zeros(3, "float64")
        np.testing.assert_array_equal(compiled(x, y)[0], np.ones(3))
        assert x.is_deleted() and not y.is_deleted()
        with pytest.raises(DonatedError):
            compiled(x, y)
    with pytest.raises(DonatedError, match="are the same array"):
        compiled(y, y)


def test_exceptions_of_callbacks_leave_a_compiled_function_as_they_are():
    def refuse(x):
        if x > 1:
            raise KeyError("too large")
        return np.float32(x)

    x = fnp.asarray(1.0)
    compiled = ft.jit(lambda x: ft.pure_callback(refuse, x, x)).lower(x).compile()
    for _ in range(3):
        assert float(compiled(x)) == 1
        with pytest.raises(KeyError, match="too large"):
            compiled(x + 1)
