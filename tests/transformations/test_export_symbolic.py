"""Exported programs with symbolic dimensions: values at sizes that were not tried, files, constraints, refusals."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import export
from functorch_like.errors import ArgumentError, ShapeError, TreeError, UnsupportedError
from functorch_like.exporting import format as file_format

RNG = np.random.default_rng(0)
Spec = ft.ShapeDtypeStruct


def array(*shape):
    return RNG.normal(size=shape).astype("float32")


def model(m, w, x, y):
    h = m.tanh(x @ w) / np.sqrt(x.shape[0])
    return {
        "mean": m.mean(h, axis=0), "flat": h.reshape(-1), "more": m.concatenate([x, x[:1]]), "outer": y @ y.T,
        "count": m.arange(x.shape[0]), "last": x[-1],
    }  # fmt: skip


@pytest.fixture(scope="module")
def made():
    scope = export.symbolic_scope("b >= 2", "mod(t, 2) == 0")
    specs = [export.symbolic_shape(text, scope=scope) for text in ("b, 3", "b, t")]
    f = ft.jit(lambda w, x, y: model(fnp, w, x, y))
    return export.export(f)(Spec((3, 4), "float32"), *(Spec(s, "float32") for s in specs))


@pytest.mark.parametrize(("b", "t"), [(2, 2), (5, 4), (70, 8)])
@pytest.mark.parametrize("stored", [False, True])
def test_a_program_for_all_sizes(made, b, t, stored):
    again = export.deserialize(made.serialize()) if stored else made
    w, x, y = array(3, 4), array(b, 3), array(b, t)
    got, want = again.call(w, x, y), model(np, w, x, y)
    for name in want:
        assert got[name].shape == want[name].shape
        np.testing.assert_allclose(np.asarray(got[name]), want[name], rtol=1e-5, atol=1e-5)


def test_it_is_part_of_jitted_functions(made):
    w, x, y = array(3, 4), array(6, 3), array(6, 2)
    got = ft.jit(lambda *a: made.call(*a)["mean"])(w, x, y)
    np.testing.assert_allclose(np.asarray(got), model(np, w, x, y)["mean"], rtol=1e-5, atol=1e-6)


def test_text(made):
    assert "float32[b,3], float32[b,t]" in repr(made)
    assert "tensor<5x3xf32>" in made.at(b=5, t=2).mlir_module()


def test_constraints_hold_for_calls(made):
    w = array(3, 4)
    with pytest.raises(ShapeError, match="b >= 2, and is called with b = 1"):
        made.call(w, array(1, 3), array(1, 2))
    with pytest.raises(ShapeError, match=r"mod\(t, 2\) == 0"):
        made.call(w, array(2, 3), array(2, 3))
    with pytest.raises(ShapeError, match="takes b"):
        made.call(w, array(2, 3), array(3, 2))
    with pytest.raises(ArgumentError, match="too few sizes"):
        export.export(ft.jit(fnp.sin))(Spec(export.symbolic_shape("b", ("b == 8",)), "float32"))
    for size in (2.5, "3"):
        with pytest.raises(ArgumentError, match="is not a size"):
            made.at(b=4, t=size)
    by_zero = Spec(export.symbolic_shape("b", ("mod(b, 0) == 0",)), "float32")
    with pytest.raises(ShapeError, match="divides by 0"):
        export.export(ft.jit(fnp.sin))(by_zero)


@pytest.mark.parametrize(
    ("constraint", "size"), [("b <= 8", 1), ("b <= 8", 7), ("mod(b, 512) == 0", 1024), ("b >= 3000", 3001)]
)
def test_constraints_that_leave_small_or_large_sizes(constraint, size):
    made = export.export(ft.jit(lambda x: x * 2 + x.sum()))(Spec(export.symbolic_shape("b", (constraint,)), "float32"))
    x = array(size)
    np.testing.assert_allclose(made.call(x), 2 * x + x.sum(dtype=np.float64), rtol=1e-4, atol=1e-3)


def test_a_dimension_that_constraints_fix():
    scope = export.symbolic_scope("s == t + 1")
    specs = [Spec(export.symbolic_shape(text, scope=scope), "float32") for text in ("s - t", "t", "s")]
    made = export.export(ft.jit(lambda one, t, s: (one.sum(), 2 * t, 3 * s)))(*specs)
    found = made.call(array(1), np.ones(4, "float32"), np.ones(5, "float32"))
    assert [x.tolist() for x in found[1:]] == [[2.0] * 4, [3.0] * 5]


def test_functions_in_dimensions():
    scope = export.symbolic_scope("b >= 8")
    specs = [Spec(export.symbolic_shape(text, scope=scope), "float32") for text in ("max(b, 8)", "b")]
    made = export.export(ft.jit(lambda x, y: (x.sum(), y.sum())))(*specs)
    for b in (8, 11):
        assert [float(x) for x in made.call(np.ones(max(b, 8), "float32"), np.ones(b, "float32"))] == [max(b, 8), b]


def test_expressions():
    scope = export.symbolic_scope("b % 2 == 0")
    (b,) = export.symbolic_shape("b", scope=scope)
    f = ft.jit(lambda x, y: fnp.sum(x.reshape(-1, 2), axis=0) + fnp.sum(y))
    made = export.export(f)(Spec((b,), "float32"), Spec((2 * b + 1,), "float32"))
    x, y = array(6), array(13)
    np.testing.assert_allclose(np.asarray(made.call(x, y)), x.reshape(-1, 2).sum(0) + y.sum(), rtol=1e-5)
    with pytest.raises(ShapeError, match="given 12"):
        made.call(x, array(12))


@pytest.mark.parametrize(
    "text",
    [
        "b, t!",
        "b if t else 1",
        "f(b)",
        "b.c",
        "1.5 * b",
        "b, 'c'",
        "*b",
        "b = 2",
        "b]",
        "b > 2",
        "(b > 2) + 1",
        "mod(b)",
        "max(b)",
    ],
)
def test_no_expression(text):
    with pytest.raises(ArgumentError, match=r"not an? (expression|list) of dimensions"):
        export.symbolic_shape(text)


def test_shapes_as_text():
    assert str(export.symbolic_shape("(b, 3)")) == str(export.symbolic_shape("b, 3")) == "(b, 3)"
    assert str(export.symbolic_shape("(b + 1)*2, max(b, t), mod(t, 2)")) == "((b + 1) * 2, max(b, t), mod(t, 2))"
    assert export.symbolic_shape("") == () and export.symbolic_shape("2 * 3, max(1, 4)") == (6, 4)
    b, t = export.symbolic_shape("b, t")
    assert [d.at({"b": 7, "t": 2}) for d in (2 * b + t, b - t, 9 - b, b // t, b % 4)] == [16, 5, 2, 3, 3]


def test_names_follow_from_sums_and_products():
    made = export.export(ft.jit(lambda x, y: (fnp.sum(x), fnp.sum(y))))(
        *(Spec(export.symbolic_shape(text), "float32") for text in ("b + 2*t", "3*b"))
    )
    x, y = array(10), array(6)  # b = 2, t = 4
    np.testing.assert_allclose(np.asarray(made.call(x, y)), [x.sum(), y.sum()], rtol=1e-5)
    with pytest.raises(ShapeError, match="given 7, from which b does not follow"):
        made.call(x, array(7))
    for text in ("b*b", "b*t", "min(b, 100)"):  # e.g. min(b, 100) is 100 for many b
        with pytest.raises(ShapeError, match="does not follow"):
            export.export(ft.jit(fnp.sum))(Spec(export.symbolic_shape(text), "float32"))


def _by_size(limit):
    return lambda x: x * 2 if x.shape[0] <= limit else x * 3


# Functions that behave differently at their smallest sizes, at large sizes or at equal sizes.
@pytest.mark.parametrize(
    ("fun", "shape", "constraint", "sizes"),
    [
        (lambda x: x[:5] * 2, "b", "b >= 5", [(5,), (9,)]),
        (lambda x: fnp.squeeze(x), "b, 3", "b >= 2", [(2, 3), (4, 3)]),
        (lambda x: x * fnp.linspace(0, 1, x.shape[0]), "b", "b >= 2", [(2,), (3,)]),
        (_by_size(3), "b", "b >= 5", [(5,), (40,)]),
        (_by_size(99), "b", "b <= 60", [(1,), (60,)]),
        (lambda x: x + 1 if x.shape[0] == x.shape[1] else x + 2, "b, t", "b < t", [(1, 2), (3, 70)]),
        (lambda x: x[::2] + 1, "b", "mod(b, 2) == 0", [(2,), (8,)]),
    ],
)
def test_sizes_for_which_a_program_is_another_one_are_left_out_by_constraints(fun, shape, constraint, sizes):
    with pytest.raises(UnsupportedError, match="is another program for") as refused:
        export.export(ft.jit(fun))(Spec(export.symbolic_shape(shape), "float32"))
    assert constraint.split(" ")[0] in str(refused.value)
    made = export.export(ft.jit(fun))(Spec(export.symbolic_shape(shape, (constraint,)), "float32"))
    for size in sizes:
        x = array(*size)
        np.testing.assert_allclose(np.asarray(made.call(x)), np.asarray(fun(x)), rtol=1e-6)


# Lowering chooses different algorithms for small and large arrays, which does not count as a difference.
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: fnp.mean(x, 0), lambda x: x.mean(0)),
        (lambda x: x - x.mean(-1, keepdims=True), lambda x: x - x.mean(-1, keepdims=True)),
        (lambda x: x[1:] - x[:-1], lambda x: x[1:] - x[:-1]),
        (lambda x: fnp.sum(x[fnp.arange(len(x))[::-1]], 1), lambda x: x[::-1].sum(1)),
    ],
)  # fmt: skip
def test_special_sizes(ours, numpys):
    made = export.export(ft.jit(ours))(Spec(export.symbolic_shape("b, t"), "float32"))
    for shape in [(1, 1), (1, 5), (3, 1), (2, 2), (70, 3), (2500, 2)]:
        x = array(*shape)
        np.testing.assert_allclose(np.asarray(made.call(x)), numpys(x), rtol=1e-4, atol=1e-5)


def test_empty_arrays_are_refused():
    made = export.export(ft.jit(fnp.sin))(Spec(export.symbolic_shape("b"), "float32"))
    with pytest.raises(ShapeError, match="called with b = 0"):
        made.call(array(0))
    with pytest.raises(ArgumentError, match="the dimensions are b, not t"):
        made.at(t=3)


def test_static_and_other_arguments():
    f = ft.jit(lambda kind, n, x, *, y: {"sum": fnp.sum}[kind](x) * n + y, static_argnums=0)
    made = export.export(f)("sum", 2.0, Spec(export.symbolic_shape("b"), "float32"), y=Spec((3,), "float32"))
    x, y = array(7), array(3)
    np.testing.assert_allclose(np.asarray(made.call(2.0, x, y=y)), x.sum() * 2 + y, rtol=1e-5)
    with pytest.raises(TreeError):
        made.call(x, y=y)


def test_errors_of_the_function_tell_the_sizes():
    with pytest.raises(ShapeError) as refused:
        export.export(ft.jit(lambda x: x + fnp.ones(3)))(Spec(export.symbolic_shape("b"), "float32"))
    assert "export traced" in refused.value.__notes__[0]


@pytest.mark.parametrize(
    "fun",
    [
        lambda i, t: fnp.where(i < min(t.shape[0], 64), t, 0.0),
        lambda i, t: fnp.minimum(t, float(min(t.shape[0], 64))) + i,
    ],
    ids=["where", "minimum"],
)
def test_limits_that_follow_from_sizes_are_seen(fun):
    b = export.symbolic_shape("b")
    with pytest.raises(UnsupportedError, match=r"(?s)another program for.*it gives other results.*'b <= "):
        export.export(ft.jit(fun))(Spec(b, "int32"), Spec(b, "float32"))


@pytest.mark.parametrize("size", [1, 7, 64, 65, 200])
def test_a_limit_of_indices_that_follows_from_sizes(size):
    rows = lambda m, i, t: t[m.clip(i, 0, min(t.shape[0], 64) - 1)]
    b = export.symbolic_shape("b")
    made = export.export(ft.jit(lambda i, t: rows(fnp, i, t)))(Spec(b, "int32"), Spec(b, "float32"))
    i, t = RNG.integers(0, 2 * size, size).astype("int32"), array(size)
    np.testing.assert_array_equal(made.call(i, t), rows(np, i, t))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: sum(x[i] for i in range(x.shape[0])),
        lambda x: x * np.linspace(0, 1, x.shape[0]).astype("float32"),
        lambda x: x + 2.0 ** (x.shape[0] % 7),
    ],
)
def test_another_program_for_other_sizes_is_refused(fun):
    with pytest.raises(UnsupportedError, match="another program for other sizes"):
        export.export(ft.jit(fun))(Spec(export.symbolic_shape("b"), "float32"))


def test_symbols_are_for_export_and_shapes():
    with pytest.raises(ArgumentError, match="for arguments of export and eval_shape"):
        ft.jit(fnp.sin).lower(Spec(export.symbolic_shape("b"), "float32"))


def test_damage_is_noticed(made):
    blob = bytearray(made.serialize())
    blob[-1] ^= 1
    with pytest.raises(ArgumentError, match="damaged"):
        export.deserialize(bytes(blob))


def test_a_program_of_other_sizes_was_written_by_the_same_versions(monkeypatch):
    (b,) = export.symbolic_shape("b")
    blob = export.export(ft.jit(lambda x: 2 * x))(ft.ShapeDtypeStruct((b,), "float32")).serialize()
    writer = file_format.versions()
    monkeypatch.setattr(file_format, "versions", lambda: {"functorch_like": "9.9", "jaxlib": "9.9"})
    assert export.deserialize(blob).at(b=3).written_by == writer


def test_constraints_beside_a_scope_are_refused():
    with pytest.raises(ArgumentError, match="constraints"):
        export.symbolic_shape("b", ["b >= 2"], scope=export.symbolic_scope())


def test_equal_expressions_are_equal_dimensions():
    b, t = export.symbolic_shape("b, t")
    same = [
        (b + 1, *export.symbolic_shape("1 + b")), (b + b, 2 * b), (b * (t - 1), t * b - b), ((b + 1) % 8, (1 + b) % 8),
        (export.symbolic_shape("max(b, t)")[0], export.symbolic_shape("max(t, b)")[0]), (b // 2 - (0 - t), t + b // 2),
        (export.symbolic_shape("mod(b, 2)")[0], b % 2),
    ]  # fmt: skip
    for left, right in same:
        assert left == right
        assert hash(left) == hash(right)
    assert len({b, t, b + 1, b - 1, b * b, b // 2, b % 2, b // 3}) == 8
    assert (repr(b + 1), repr((b + 1) * t)) == ("b + 1", "(b + 1) * t")
    assert b - t != t - b
    assert b != 3


def test_shapes_of_results():
    b, c = export.symbolic_shape("b, 2*c", ["b >= 2"])
    assert export.is_symbolic_dim(b) and not export.is_symbolic_dim(3)

    def f(x, flag):
        assert flag is None or x.shape[0] >= 2
        parts = {"same": x * 2, "last": x[:, 0], "all": x.reshape(-1), "ints": fnp.arange(4)}
        return parts | {"more": fnp.concatenate([x, x[:1]]), "half": x.sum(0).reshape(2, -1), "fixed": x[:2, :1]}

    got = ft.eval_shape(f, Spec((b, c), "float32"), None)
    assert {name: str(x.shape) for name, x in got.items()} == {
        "same": "(b, 2 * c)", "last": "(b,)", "all": "(2 * b * c,)", "ints": "(4,)", "more": "(b + 1, 2 * c)",
        "half": "(2, c)", "fixed": "(2, 1)",
    }  # fmt: skip
    assert got["all"].dtype == "float32" and got["half"].shape[1].at({"c": 7}) == 7
    assert got["same"] == Spec((b, c), "float32") != got["more"] and hash(got["same"]) == hash(Spec((b, c), "float32"))
    assert ft.eval_shape(f, got["more"], None)["more"].shape[0].at({"b": 5}) == 7
    x = Spec((b,), "float32")
    for fun in (lambda x: x[:: x.shape[0] // 4], lambda x: [x] * x.shape[0], lambda x: x.astype(f"i{x.shape[0] % 4}")):
        with pytest.raises((UnsupportedError, TypeError)):
            ft.eval_shape(fun, x)
    with pytest.raises(ArgumentError, match="too few sizes"):
        ft.eval_shape(f, Spec(export.symbolic_shape("b", ["b <= 3"]), "float32"), None)


def test_sizes_of_another_shape_stand_for_placeholders():
    shape = lambda text, like: str(export.symbolic_shape(text, like=like))
    assert shape("b, ...", (2, 3, 4)) == "(b, 3, 4)" and shape("_, 2*t, _", (2, 3, 4)) == "(2, 2 * t, 4)"
    assert shape("...", (2, 3)) == shape(None, (2, 3)) == "(2, 3)" and shape("b, ...", (2,)) == "(b,)"
    for text, like in (("b, ...", None), ("b, _", (2,)), ("_", (2, 3)), ("..., b", (2, 3))):
        with pytest.raises(ArgumentError):
            export.symbolic_shape(text, like=like)


def test_specs_of_arguments():
    args = {"x": np.ones((8, 3), "float32"), "y": [np.ones(8), 1]}
    specs = export.symbolic_args_specs(args, {"x": "b, ...", "y": ["b", None]}, ["b >= 2"])
    assert str(specs["x"].shape) == "(b, 3)" and specs["y"][0].dtype == np.float64 and specs["y"][1].shape == ()
    made = export.export(ft.jit(lambda a: a["x"].sum(1) * a["y"][0] + a["y"][1]))(specs)
    for n in (2, 5):
        given = {"x": np.ones((n, 3), "float32"), "y": [np.full(n, 2.0), 1]}
        np.testing.assert_array_equal(export.deserialize(made.serialize()).call(given), np.full(n, 7.0))
    with pytest.raises(TreeError):
        export.symbolic_args_specs(args, {"x": "b, ..."})
    assert str(export.symbolic_args_specs((args["x"], args["x"]), "b, _")[1].shape) == "(b, 3)"


def test_shapes_of_arguments_and_results():
    a, b = export.symbolic_shape("a, b", constraints=["mod(b, 2) == 0"])
    f = lambda x, y: (x @ y, x.sum(), fnp.concatenate([x.ravel(), x.ravel(), fnp.ones(3)]), x.reshape(-1, 2).sum(1))
    made = export.export(ft.jit(f))(ft.ShapeDtypeStruct((a, b), "float32"), ft.ShapeDtypeStruct((b, 4), "float32"))
    read = export.deserialize(made.serialize())
    for one in (made, read):
        assert [str(aval.shape) for aval in one.in_avals] == ["(a, b)", "(b, 4)"]
        assert [str(aval.shape) for aval in one.out_avals] == ["(a, 4)", "()", "(2 * a * b + 3,)", "(a * b // 2,)"]
        assert {aval.dtype for aval in one.out_avals} == {np.dtype("float32")}
        assert one.at(a=3, b=4).out_avals[2].shape == (27,)


def test_derivatives_are_those_of_the_function_and_are_stored():
    def fun(x, w):
        return 2 * fnp.sin(x @ w).sum(1)

    specs = [Spec(export.symbolic_shape(text), "float32") for text in ("a, 3", "3, b")]
    exported = export.export(ft.jit(fun))(*specs)
    x, w = array(4, 3), array(3, 5)
    y, slope = 2 * np.sin(x @ w).sum(1), 2 * np.cos(x @ w)
    outer = 2 * y[:, None] * slope
    wanted = outer @ w.T, x.T @ outer
    stored = [export.deserialize(exported.serialize(vjp_order=order)) for order in (1, 2)]
    for program in (exported, *stored):
        found = ft.grad(lambda x, w, call=program.call: (call(x, w) ** 2).sum(), argnums=(0, 1))(x, w)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        assert [a.shape for a in program.vjp().out_avals] == [a.shape for a in program.in_avals]
    x = array(400, 3)  # far from the sizes that were lowered
    for program in (exported, *stored):
        found = ft.grad(lambda x, call=program.call: call(x, w).sum())(x)
        np.testing.assert_allclose(found, 2 * np.cos(x @ w) @ w.T, rtol=1e-4, atol=1e-5)
    assert [program.vjp().has_vjp() for program in stored] == [False, True]
    plain = export.deserialize(exported.serialize())
    with pytest.raises(UnsupportedError, match="vjp_order"):
        ft.grad(lambda x: plain.call(x, w).sum())(x)
    with pytest.raises(ArgumentError, match="without its derivative"):
        plain.vjp()


def rule_with_a_condition(limit):
    @ft.custom_vjp
    def f(x):
        return fnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * fnp.cos(x) * (3 if x.shape[0] > limit else 1),))
    return f


def test_derivatives_whose_rule_depends_on_a_size_are_refused():
    x = array(200)
    made = export.export(ft.jit(rule_with_a_condition(100)))(Spec(export.symbolic_shape("a"), "float32"))
    np.testing.assert_allclose(made.call(x), np.sin(x), rtol=1e-5)
    for use in (made.vjp, lambda: ft.grad(lambda x: made.call(x).sum())(x), lambda: made.serialize(vjp_order=1)):
        with pytest.raises(UnsupportedError, match="another program for a = 300"):
            use()
    np.testing.assert_allclose(export.deserialize(made.serialize()).call(x), np.sin(x), rtol=1e-5)
    a = export.symbolic_shape("a", constraints=["a >= 101"])
    large = export.export(ft.jit(rule_with_a_condition(100)))(Spec(a, "float32"))
    for program in (large, export.deserialize(large.serialize(vjp_order=1))):
        found = ft.grad(lambda x, call=program.call: call(x).sum())(x)
        np.testing.assert_allclose(found, 3 * np.cos(x), rtol=1e-5, atol=1e-6)


def test_second_derivatives_whose_rule_depends_on_a_size_are_refused():
    f = rule_with_a_condition(100)

    @ft.custom_vjp
    def g(x):
        return -fnp.cos(x)

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * f(x),))
    made = export.export(ft.jit(g))(Spec(export.symbolic_shape("a"), "float32"))
    x = array(200)
    np.testing.assert_allclose(ft.grad(lambda x: made.call(x).sum())(x), np.sin(x), rtol=1e-5, atol=1e-6)
    made.serialize(vjp_order=1)
    with pytest.raises(UnsupportedError, match="another program for a = 300"):
        made.serialize(vjp_order=2)


def test_public_names_are_listed():
    assert {"export", "symbolic_shape", "is_symbolic_dim", "register_pytree_node_serialization"} <= set(dir(ft.export))
