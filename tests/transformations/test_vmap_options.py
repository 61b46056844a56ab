"""vmap's further arguments: torch.func's names, chunks, randomness; containers; errors that name the leaf."""

import dataclasses

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax, random, testing

X = np.arange(24.0).reshape(2, 3, 4) / 10
KEY = random.key(3)
both = pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["plain", "jit"])


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- torch's names
def test_in_dims_and_out_dims_are_in_axes_and_out_axes():
    w = np.arange(4.0)
    close(ft.vmap(lambda x, w: x * w, in_dims=(1, None), out_dims=-1)(X[0], np.float64(2)), X[0] * 2)
    close(ft.vmap(fnp.dot, in_dims=(0, None))(X[0], w), X[0] @ w)
    close(ft.vmap(lambda: 1.0, in_dims=None, axis_size=2)(), [1, 1])


def test_two_names_for_one_thing_are_refused():
    message = refusal(lambda: ft.vmap(fnp.sin, in_axes=1, in_dims=0), errors.ArgumentError)
    says(message.head, "in_axes=1", "in_dims=0", "vmap(sin)")
    message = refusal(lambda: ft.vmap(fnp.sin, out_axes=None, out_dims=0), errors.ArgumentError)
    says(message.head, "out_axes=None", "out_dims=0")


# ------------------------------------------------------------------------------------------------------------ chunks
@both
@pytest.mark.parametrize("size", [2, 3, 7])
def test_chunks_give_what_the_whole_gives(size, wrap):
    def f(p, w):
        return {"y": fnp.tanh(p["a"]) @ w, "n": 3.0, "s": p["a"].sum()}

    p, w = {"a": np.linspace(-1, 1, 28).reshape(4, 7)}, np.arange(4.0)
    mapped = ft.vmap(f, in_axes=(1, None), out_axes={"y": -1, "n": 0, "s": 0}, chunk_size=size)
    for given in (p, {"a": fnp.asarray(p["a"])}):
        out = wrap(mapped)(given, w)
        close(out["y"], w @ np.tanh(p["a"]))
        close(out["n"], np.full(7, 3.0))
        close(out["s"], p["a"].sum(0))


def test_results_that_no_element_changes_need_no_axis_in_chunks():
    got = ft.vmap(lambda x, w: (x * 2, w), in_axes=(0, None), out_axes=(0, None), chunk_size=2)(X[0], 5.0)
    close(got[0], X[0] * 2)
    assert float(got[1]) == 5


def test_chunks_differentiate_and_nest():
    f = lambda x: fnp.sum(fnp.sin(x) ** 2)
    x = np.linspace(-1, 1, 10).reshape(5, 2)
    want = np.sin(2 * x)
    close(ft.vmap(ft.grad(f), chunk_size=2)(x), want)
    close(ft.grad(lambda x: ft.vmap(f, chunk_size=2)(x).sum())(x), want)
    nested = ft.vmap(ft.vmap(fnp.sin, chunk_size=2), in_axes=1, out_axes=1, chunk_size=1)
    close(nested(x[:, :, None])[:, :, 0], np.sin(x))


def test_chunks_compile_two_programs_whatever_their_number():
    f = ft.jit(lambda x: fnp.tanh(x) @ fnp.ones(3, "float64"))
    g = ft.vmap(f, chunk_size=4)
    with testing.count_traces() as traces:
        g(fnp.asarray(np.ones((10, 3))))
    assert traces.count == 1  # of f; its batched forms are derived from the jaxpr
    with testing.count_compiles() as some:
        g(fnp.asarray(np.ones((18, 3))))  # 4 chunks of 4 and one of 2
    assert some.count <= 3  # slicing the larger array, and joining five pieces
    with testing.count_compiles() as none:
        g(fnp.asarray(np.zeros((18, 3))))
    assert none.count == 0


def test_recorded_chunks_are_the_steps_of_one_loop():
    mapped = ft.vmap(lambda x: fnp.sin(x) * 2, chunk_size=4)
    few, many = (ft.make_jaxpr(mapped)(np.zeros((n, 3))) for n in (10, 4002))
    assert len(few.equations) == len(many.equations)
    assert [e.prim.name for e in many.equations].count("scan") == 1
    rows = ft.make_jaxpr(ft.jacrev(fnp.sin, chunk_size=2))(np.zeros(101))
    assert [e.prim.name for e in rows.equations].count("scan") == 1
    close(ft.jit(ft.grad(lambda x: mapped(x).sum()))(X[0]), 2 * np.cos(X[0]))
    axes = ft.jit(ft.vmap(lambda x, w: (x * 2, w), in_axes=(0, None), out_axes=(1, None), chunk_size=2))
    got = axes(np.arange(15.0).reshape(5, 3), 5.0)
    close(got[0], 2 * np.arange(15.0).reshape(5, 3).T)
    assert float(got[1]) == 5


def test_chunk_sizes_that_make_no_sense():
    for size in (0, -1, 2.0, "2"):
        message = refusal(lambda size=size: ft.vmap(fnp.sin, chunk_size=size), errors.ArgumentError)
        says(message.head, "chunk_size", repr(size))
    message = refusal(lambda: ft.vmap(fnp.sin, chunk_size=2, axis_name="i"), errors.ArgumentError)
    says(message.head, "axis_name='i'", "collective")
    message = refusal(lambda: ft.vmap(fnp.sin, chunk_size=2, randomness="different"), errors.ArgumentError)
    says(message.remedy, "split")


# -------------------------------------------------------------------------------------------------------- randomness
def noisy(x):
    return x + random.uniform(KEY, (2,)).sum()


@both
@pytest.mark.parametrize("inner", [lambda f: f, ft.jit], ids=["plain", "of jit"])
def test_one_key_for_all(inner, wrap):
    x = np.zeros(4, np.float32)
    one = float(random.uniform(KEY, (2,)).sum())
    np.testing.assert_allclose(wrap(ft.vmap(inner(noisy)))(x), [one] * 4)
    each = [float(random.uniform(random.fold_in(KEY, i), (2,)).sum()) for i in range(4)]
    np.testing.assert_allclose(wrap(ft.vmap(inner(noisy), randomness="different"))(x), each, rtol=1e-6)
    message = refusal(lambda: wrap(ft.vmap(inner(noisy), randomness="error"))(x), errors.ArgumentError)
    says(message.head, "one key for all 4 elements")
    says(message.remedy, "random.split", "different")


@both
def test_jitted_functions_of_no_element(wrap):
    draw = ft.jit(lambda: random.normal(KEY, ()))
    each = [float(random.normal(random.fold_in(KEY, i), ())) for i in range(3)]
    zeros = np.zeros(3, np.float32)
    np.testing.assert_allclose(wrap(ft.vmap(lambda x: x + draw(), randomness="different"))(zeros), each, rtol=1e-6)
    message = refusal(lambda: wrap(ft.vmap(lambda x: x + draw(), randomness="error"))(zeros), errors.ArgumentError)
    says(message.head, "one key for all 3 elements")


def test_one_key_passed_whole():
    f = lambda key, x: x * random.normal(key, ())
    each = [float(random.normal(random.fold_in(KEY, i), ())) for i in range(3)]
    got = ft.vmap(f, in_axes=(None, 0), randomness="different")(KEY, np.ones(3, np.float32))
    np.testing.assert_allclose(got, each, rtol=1e-6)
    assert len(set(each)) == 3
    got = ft.vmap(ft.grad(lambda x: f(KEY, x)), randomness="different")(np.ones(3, np.float32))
    np.testing.assert_allclose(got, each, rtol=1e-6)


def test_keys_that_are_mapped_over_are_left_alone():
    keys = random.split(KEY, 3)
    each = [float(random.normal(k, ())) for k in keys]
    for randomness in ("same", "different", "error"):
        got = ft.vmap(lambda k: random.normal(k, ()), randomness=randomness)(keys)
        np.testing.assert_allclose(got, each, rtol=1e-6)
        folded = ft.vmap(
            lambda: random.normal(random.fold_in(KEY, lax.axis_index("i")), ()),
            axis_size=3, axis_name="i", randomness=randomness,
        )()  # fmt: skip
        np.testing.assert_allclose(folded, [float(random.normal(random.fold_in(KEY, i), ())) for i in range(3)], 1e-6)


def test_nested_maps_fold_in_both_numbers():
    inner = ft.vmap(lambda x: random.normal(KEY, ()), randomness="different")
    got = np.asarray(ft.vmap(inner, randomness="different")(np.zeros((2, 3))))
    want = [[float(random.normal(random.fold_in(random.fold_in(KEY, j), i), ())) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    got = np.asarray(ft.vmap(inner)(np.zeros((2, 3))))
    np.testing.assert_allclose(got, [[float(random.normal(random.fold_in(KEY, j), ())) for j in range(3)]] * 2, 1e-6)


def test_unknown_randomness():
    message = refusal(lambda: ft.vmap(fnp.sin, randomness="maybe"), errors.ArgumentError)
    says(message.head, "'maybe'", "vmap(sin)")


# ------------------------------------------------------------------------------------------------------- names of axes
@both
def test_collectives_of_what_is_the_same_for_all_inside_jit(wrap):
    x = np.arange(3, dtype=np.float32)
    f = ft.jit(lambda y: lax.psum(y, "i"))
    close(wrap(ft.vmap(lambda x: x + f(2.0), axis_name="i"))(x), x + 6)
    g = ft.jit(lambda: lax.axis_index("i") * 2.0)
    close(wrap(ft.vmap(lambda x: x + g(), axis_name="i"))(x), 3 * x)


def test_the_axis_of_a_mesh_changes_nothing_without_one():
    close(ft.vmap(fnp.sin, spmd_axis_name="batch")(X), np.sin(X))
    with pytest.raises(ft.errors.ArgumentError, match="spmd_axis_name=3"):
        ft.vmap(fnp.sin, spmd_axis_name=3)


# --------------------------------------------------------------------------------------------------------- containers
@ft.tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object
    kind: str = dataclasses.field(default="tanh", metadata={"static": True})


@both
def test_dataclasses_and_trees_with_none(wrap):
    layers = Layer(X, X[:, 0], "sin")
    f = lambda layer, rest: Layer(getattr(fnp, layer.kind)(layer.w) @ layer.b, rest["a"], layer.kind)
    out = wrap(ft.vmap(f, in_axes=(0, {"a": 1, "b": None})))(layers, {"a": X[0].T[:, :2], "b": None})
    close(out.w, np.einsum("kij,kj->ki", np.sin(X), X[:, 0]))
    close(out.b, X[0][:2])
    assert out.kind == "sin"
    out = wrap(ft.vmap(lambda layer: layer.w @ layer.b, in_axes=(Layer(0, None, "sin"),)))(Layer(X, X[0, 0], "sin"))
    close(out, X @ X[0, 0])
    out = wrap(ft.vmap(lambda layer: layer.w * 2, in_axes=(Layer(0, None, "sin"),)))(Layer(X, None, "sin"))
    close(out, X * 2)


def test_errors_name_the_leaf_and_both_sizes():
    message = refusal(lambda: ft.vmap(lambda p, y: y)({"w": [X, X[0]]}, X[0]), errors.ShapeError)
    says(message.head, "args[0]['w'][0]: f64[2,3,4] has 2 along axis 0", "args[1]: f64[3,4] has 3 along axis 0")
    message = refusal(lambda: ft.vmap(lambda p: p, in_axes=({"w": -3},))({"w": X[0]}), errors.ShapeError)
    says(message.head, "axis -3", "args[0]['w']", "f64[3,4]", "2 axes")
    message = refusal(lambda: ft.vmap(lambda p: p, in_axes=({"v": 0},))({"w": X[0]}), errors.TreeError)
    says(message.head, "in_axes of vmap(<lambda>)", "keys ['v']", "keys ['w']")


def test_attributes_of_the_function_are_those_of_the_mapped_one():
    class Layer:
        factor = 3.0

        def __call__(self, x):
            return self.factor * x

    layer = Layer()
    layer.width = 2
    mapped = ft.vmap(ft.vmap(layer))
    assert (mapped.factor, mapped.width, ft.grad(layer).width, ft.checkpoint(layer).width) == (3.0, 2, 2, 2)
    assert not hasattr(mapped, "nothing")
    assert not hasattr(ft.vmap(ft.jit(layer)), "lower")  # it would lower the function of one element
