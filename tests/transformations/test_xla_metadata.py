"""Attributes of operations, and scheduling groups, computation on the host and an order of values."""

import re

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.experimental.compute_on import compute_on, compute_on2
from functorch_like.experimental.control_deps import control_dep, schedule
from functorch_like.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from functorch_like.experimental.shard_alike import shard_alike
from functorch_like.experimental.xla_metadata import set_xla_metadata
from functorch_like.sharding import MemorySpace

X = np.linspace(-1, 1, 4, dtype=np.float32)


def attributes(f, *args):
    """Return the attributes of each operation that has some, by the operation's name."""
    result = {}
    for line in ft.jit(f).lower(*args).as_text().splitlines():
        has = re.search(r"frontend_attributes = \{(.*?)\}", line)
        if has and "constant" not in line:
            name = re.search(r"(?:= |^\s*)(?:stablehlo\.|func\.)?([\w]+)", line).group(1)
            result.setdefault(name, []).append(dict(re.findall(r'(\w+) = "(.*?)"', has.group(1))))
    return result


def test_operations_of_a_block_have_its_attributes():
    def f(x):
        y = fnp.exp(x)
        with set_xla_metadata(a=1, b=True):
            y = fnp.sin(y)
        return fnp.cos(y)

    assert attributes(f, X) == {"sine": [{"a": "1", "b": "true"}]}
    np.testing.assert_allclose(ft.jit(f)(X), np.cos(np.sin(np.exp(X))), rtol=1e-5)
    np.testing.assert_allclose(f(X), np.cos(np.sin(np.exp(X))), rtol=1e-5)


def test_blocks_nest_and_decorate():
    @set_xla_metadata(a="outer", k="outer")
    def f(x):
        with set_xla_metadata(a="inner", gone=None):
            x = fnp.exp(x)
        with set_xla_metadata(a=None):
            x = fnp.sin(x)
        return fnp.cos(x)

    assert attributes(f, X) == {
        "exponential": [{"a": "inner", "k": "outer"}],
        "sine": [{"k": "outer"}],
        "cosine": [{"a": "outer", "k": "outer"}],
    }
    with pytest.raises(ZeroDivisionError), set_xla_metadata(a="1"):
        1 / 0  # noqa: B018
    assert attributes(fnp.sin, X) == {}


def test_jitted_functions_and_loops_inside_of_a_block():
    inner = ft.jit(fnp.cos)
    inner(X)  # traced before, without attributes

    def f(x):
        with set_xla_metadata(a="1"):
            y = inner(x)
        y = inner(y)
        with set_xla_metadata(b="2"):
            return lax.fori_loop(0, 1000, lambda i, y: fnp.sin(y), y)

    found = attributes(f, X)
    assert found["cosine"] == [{"a": "1"}] and found["sine"] == [{"b": "2"}]
    assert attributes(inner, X) == {}


def test_derivatives_and_batches_keep_attributes():
    def f(x):
        with set_xla_metadata(a="1"):
            return fnp.sin(x).sum()

    assert attributes(ft.grad(f), X)["cosine"] == [{"a": "1"}]
    assert attributes(ft.vmap(f), np.stack([X, X]))["sine"] == [{"a": "1"}]

    def around(x):
        with set_xla_metadata(b="1"):
            return ft.grad(lambda x: fnp.sin(x).sum())(x)

    assert attributes(around, X)["multiply"] == [{"b": "1"}]


def test_the_operation_of_a_value():
    f = lambda x: set_xla_metadata({"y": 2 * fnp.sin(x), "x": x}, n=2.5)
    assert attributes(f, X) == {"multiply": [{"n": "2.5"}]}
    np.testing.assert_allclose(ft.jit(f)(X)["y"], 2 * np.sin(X), rtol=1e-6)
    assert set_xla_metadata(X, n=1) is X
    gradient = lambda x: ft.grad(lambda x: set_xla_metadata(fnp.sin(x), n=1).sum())(x)
    np.testing.assert_allclose(ft.jit(gradient)(X), np.cos(X), rtol=1e-6)
    with pytest.raises(ft.errors.ArgumentError, match="the attribute n"):
        set_xla_metadata(X, n=[1])


def test_equal_programs_with_other_attributes_are_other_programs(monkeypatch, tmp_path):
    def f(name):
        def g(x):
            with set_xla_metadata(stage=name):
                return fnp.tanh(x) * 3

        return ft.jit(g)

    texts = [f(name).lower(X).compile().as_text() for name in ("first", "second")]
    assert 'stage="first"' in texts[0] and 'stage="second"' in texts[1]


def test_scheduling_groups_are_calls():
    f = scheduling_group("g")(lambda x: {"y": 2 * fnp.sin(x)})
    assert attributes(lambda x: f(x)["y"] + 1, X) == {"call": [{"scheduling_group": "g"}]}
    gradient = ft.grad(lambda x: f(x)["y"].sum())
    assert set(map(str, attributes(gradient, X)["call"])) == {"{'scheduling_group': 'g'}"}
    np.testing.assert_allclose(gradient(X), 2 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(f)(np.stack([X, X]))["y"][1], 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(f(X)["y"], 2 * np.sin(X), rtol=1e-6)
    with pytest.raises(ft.errors.ArgumentError, match="the attribute n of xla_metadata_call is 3"):
        xla_metadata_call(fnp.sin, n=3)


def test_computation_on_the_host():
    def f(x):
        with compute_on("device_host"):
            y = fnp.sin(x)
        return 2 * y

    assert attributes(f, X) == {"sine": [{"_xla_compute_type": "host"}]}
    np.testing.assert_allclose(ft.jit(f)(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(ft.grad(lambda x: f(x).sum())(X), 2 * np.cos(X), rtol=1e-6)

    g = compute_on2(lambda x: (fnp.sin(x), x), compute_type="gpu_stream:1", out_memory_spaces=MemorySpace.Device)
    stream = {"_xla_stream_annotation": "1", "inlineable": "false"}
    assert attributes(lambda x: g(x)[0], X) == {"call": [stream], "sine": [stream]}
    for run in (g, ft.jit(g)):
        np.testing.assert_allclose(run(X)[0], np.sin(X), rtol=1e-6)
    for wrong in ("nowhere", None):
        with pytest.raises(ft.errors.ArgumentError, match="compute_on got"):
            compute_on(wrong)
    with pytest.raises(ft.errors.ArgumentError, match="out_memory_spaces"):
        compute_on2(fnp.sin, compute_type="device_host", out_memory_spaces="host")(X)


def test_an_order_of_values():
    def f(x):
        each = [fnp.sin(x), fnp.cos(x), fnp.exp(x)]
        schedule(each)
        return sum(each)

    lowered = ft.jit(f).lower(X)
    assert lowered.as_text().count("@control_dep(") == 2
    products = lambda x: (x @ x, control_dep(y := x @ (x + 1), z := (x - 1) @ x), y, z)
    assert "control-predecessors" in ft.jit(products).lower(np.ones((64, 64), np.float32)).compile().as_text()
    wanted = np.sin(X) + np.cos(X) + np.exp(X)
    np.testing.assert_allclose(ft.jit(f)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(f(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(ft.jit(ft.vmap(f))(X[:, None])[:, 0], wanted, rtol=1e-5)
    gradient = ft.jit(ft.grad(lambda x: f(x).sum()))(X)
    np.testing.assert_allclose(gradient, np.cos(X) - np.sin(X) + np.exp(X), rtol=1e-5, atol=1e-6)
    with pytest.raises(ft.errors.DtypeError):
        control_dep((X, X), X)


def test_what_is_alike_has_one_shape():
    x, y = ft.jit(lambda x: shard_alike({"a": x}, {"a": 2 * x}))(X)
    np.testing.assert_array_equal(x["a"], X)
    np.testing.assert_array_equal(y["a"], 2 * X)
    np.testing.assert_allclose(ft.grad(lambda x: (3 * shard_alike(x, 2 * x)[1]).sum())(X), np.full(4, 6))
    rows = ft.vmap(shard_alike, in_axes=(1, None), out_axes=(1, 0))(np.stack([X, 2 * X], 1), X)
    np.testing.assert_array_equal(rows[0], np.stack([X, 2 * X], 1))
    np.testing.assert_array_equal(rows[1], np.stack([X, X]))
    with pytest.raises(ft.errors.ShapeError, match="shard_alike"):
        shard_alike(X, X[:2])
