"""Programs that are exported, stored and called elsewhere."""

import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, export, lax

R = np.random.default_rng(0)
X, W = R.standard_normal((2, 3)).astype(np.float32), R.standard_normal((3, 4)).astype(np.float32)
SCALE = fnp.asarray([1.0, 2.0, 3.0, 4.0])


def layer(x, params, *, shift=1.0):
    y = fnp.tanh(x @ params["w"]) * SCALE + shift
    return {"y": y, "both": [fnp.sum(y), (x,)]}, None


def stored(f, *args, **kwargs):
    return export.deserialize(export.export(ft.jit(f))(*args, **kwargs).serialize())


def test_a_stored_program_computes_the_same():
    made = export.export(ft.jit(layer))(X, {"w": W}, shift=0.5)
    again = export.deserialize(made.serialize())
    want = layer(X, {"w": W}, shift=2.5)
    for program in (made, again):
        ft.testing.assert_allclose(program.call(X, {"w": W}, shift=2.5), want, rtol=1e-6)
    assert again.in_tree == made.in_tree and again.out_tree == made.out_tree
    assert again.in_avals == made.in_avals and again.out_avals == made.out_avals
    assert again.platforms == ("cpu",) and again.fun_name == "layer" and "f32[2,3]" in repr(again)
    assert "stablehlo.tanh" in again.mlir_module() and again.serialize() == made.serialize()


def special(x):
    near = (fnp.abs(x) + 0.1) / 8
    return (
        ft.lax.erf_inv(near)
        + ft.lax.lgamma(near)
        + ft.lax.digamma(near)
        + ft.lax.asinh(x)
        + ft.lax.zeta(near + 1, near),
        ft.lax.top_k(x, 2),
        fnp.linalg.cholesky(x[:, None] * x[None] + 5 * fnp.eye(3, dtype=x.dtype)),
        ft.lax.cond(x[0] > 0, fnp.sin, fnp.cos, x),
        ft.lax.fori_loop(0, 3, lambda i, c: ft.jit(lambda v: v * 1.5)(c) + i, x),
        ft.random.normal(ft.random.key(0), (2,)),
    )


def test_loops_branches_factorizations_and_special_functions():
    x = np.array([0.3, -1.0, 2.0])
    ft.testing.assert_allclose(stored(special, x).call(x), special(x), rtol=1e-10, atol=1e-12)


def test_no_requests_that_only_xla_knows():
    """Transposes, and convolutions to few features, ask XLA on CPUs for layouts. Other compilers read the file, too."""
    x, images, kernel = np.ones((512, 512), np.float32), np.ones((8, 32, 32, 16)), np.ones((3, 3, 16, 3))
    numbers = ("NHWC", "HWIO", "NHWC")
    few = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
    cases = ((lambda x: x + x.T, [x], 2), (few, [images.astype(np.float32), kernel.astype(np.float32)], 9 * 16))
    for fun, args, inside in cases:
        made = export.export(ft.jit(fun))(*args)
        assert "custom_call" not in " ".join(made.operation_counts())
        middle = np.asarray(made.call(*args))[..., 1:-1, 1:-1, :] if len(args) > 1 else np.asarray(made.call(*args))
        np.testing.assert_array_equal(middle, inside)


def test_inside_of_other_functions():
    once, twice = stored(lambda x: fnp.sin(x) * 2, X), stored(lambda x: ft.jit(fnp.cos)(x), X)
    f = ft.jit(lambda x: once.call(twice.call(once.call(x)) + 1))
    want = np.sin(np.cos(np.sin(X) * 2) + 1) * 2
    np.testing.assert_allclose(f(X), want, rtol=1e-5)
    assert f.lower(X).as_text().count("func.func private") >= 2
    np.testing.assert_allclose(ft.lax.map(once.call, np.stack([X, -X]))[1], -np.sin(X) * 2, rtol=1e-6)
    with pytest.raises(errors.UnsupportedError, match="no derivatives") as caught:
        ft.grad(lambda x: once.call(x).sum())(X)
    assert "export the derivative" in str(caught.value)
    with pytest.raises(errors.UnsupportedError, match=r"lax\.map"):
        ft.vmap(once.call)(np.stack([X, X]))
    slope = stored(ft.grad(lambda x: fnp.sum(fnp.sin(x))), X)
    np.testing.assert_allclose(slope.call(X), np.cos(X), rtol=1e-6)


def test_arguments():
    made = stored(lambda x, n: x * n, X, 3)
    assert made.call(X, 2).shape == X.shape
    for args, error, text in (
        ((X,), errors.TreeError, "exported for arguments"),
        ((X[0], 2), errors.ArgumentError, r"f32\[2,3\] as args\[0\], and is given f32\[3\](.|\n)*reshape it"),
        ((X.astype(np.float64), 2), errors.ArgumentError, r"f64(.|\n)*astype\('float32'\)"),
        ((X, 2.5), errors.ArgumentError, "i32"),
        ((X, 2**40), errors.NumberError, r"args\[1\] = \d+ does not fit int32"),
    ):
        with pytest.raises(error, match=text):
            made.call(*args)
    tree = stored(lambda p, *, x: p["w"] * x, {"w": X}, x=X)
    with pytest.raises(errors.ArgumentError, match=r"as args\[0\]\['w'\]"):
        tree.call({"w": X[:1]}, x=X)
    with pytest.raises(errors.ArgumentError, match=r"as kwargs\['x'\]"):
        tree.call({"w": X}, x=X[:1])
    power = export.export(ft.jit(lambda x, n, name: x**n if name else x, static_argnums=(1,), static_argnames="name"))
    np.testing.assert_allclose(power(X, 2, name="a").call(X), X**2, rtol=1e-6)
    weak = stored(lambda x: x + 1, 1.0)
    assert weak.call(2.0).weak_type and weak.out_avals[0].weak_type


@pytest.mark.parametrize("blob", ["text", None, 3])
def test_what_are_no_bytes(blob):
    with pytest.raises(errors.ArgumentError, match=r"takes bytes, got a(.|\n)*read_bytes"):
        export.deserialize(blob)


def test_what_cannot_be_exported():
    for f in (
        lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct(x.shape, x.dtype), x),
        lambda x: ft.debug.print("{}", x) or x,
    ):
        with pytest.raises(errors.UnsupportedError, match="functions of this process"):
            export.export(ft.jit(f))(X)
    with pytest.raises(errors.ArgumentError, match="jitted function"):
        export.export(layer)
    with pytest.raises(errors.ArgumentError, match="not known"):
        export.export(ft.jit(layer), platforms=["abacus"])

    class Pair:
        pass

    ft.tree.register_pytree_node(Pair, lambda p: ((1.0,), None), lambda _, children: Pair())
    with pytest.raises(errors.UnsupportedError, match="Pair"):
        export.export(ft.jit(lambda p: 1.0))(Pair()).serialize()


def test_other_bytes():
    good = export.export(ft.jit(lambda x: x))(X).serialize()
    for bad, text in ((b"", "not an exported"), (b"x" * 99, "not an exported"), (good[:-1] + b"?", "damaged")):
        with pytest.raises(errors.ArgumentError, match=text):
            export.deserialize(bad)


def test_platforms():
    made = export.export(ft.jit(fnp.sin), platforms=("cpu", "cuda"))(X)
    assert made.platforms == ("cpu", "gpu") and "stablehlo.sine" in made.mlir_module("gpu")
    alone = export.export(ft.jit(fnp.sin), platforms=("gpu",))(X)
    if ft.default_backend() == "cpu":
        with pytest.raises(errors.UnsupportedError, match="exported for gpu, and is run on cpu"):
            alone.call(X)


def test_another_process(tmp_path):
    (tmp_path / "program").write_bytes(export.export(ft.jit(special))(np.ones(3)).serialize())
    code = "import functorch_like as ft, numpy as np; f = ft.export.deserialize(open('program', 'rb').read())\n"
    code += "print(float(f.call(np.ones(3))[2][0, 0]))"
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(told.stdout) == pytest.approx(6**0.5)
