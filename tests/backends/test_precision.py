"""Precision of products: in the StableHLO of both platforms, and in results on this platform."""

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.backends import cpu, precision_names, xla
from functorch_like.compiler.lower import lower
from functorch_like.primitives.contractions import dot_general_cpu
from functorch_like.primitives.contractions import precision as products

A = np.random.default_rng(0).standard_normal((32, 48)).astype(np.float32)
B = np.random.default_rng(1).standard_normal((48, 16)).astype(np.float32)
IMAGE, KERNEL = np.ones((1, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
BF16 = "lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32"


def text(fun, *args, platform="gpu"):
    """Return the StableHLO of a function for a platform, traced under the settings in force."""
    module = lower(ft.make_jaxpr(lambda *args: fun(*args))(*args), name="f", platform=platform).module
    return xla.module_text(module)


def product(platform="gpu"):
    return text(lambda a, b: a @ b, A, B, platform=platform)


def convolved(platform="gpu"):
    return text(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), IMAGE, KERNEL, platform=platform)


def error(fun=lambda a, b: a @ b):
    """Return the largest error of a product against float64, relative to the largest element."""
    exact = A.astype(np.float64) @ B
    return np.abs(np.asarray(ft.jit(fun)(A, B)) - exact).max() / np.abs(exact).max()


def test_full_float32_by_default_on_every_platform():
    for platform in ("cpu", "gpu"):
        assert "precision = [HIGHEST, HIGHEST]" in product(platform) and "algorithm" not in product(platform)
        assert convolved(platform).count("precision HIGHEST") == 2
    assert error() < 1e-6


def test_other_dtypes_are_left_alone():
    for dtype in ("bfloat16", "float64", "int32"):
        a, b = fnp.asarray(A).astype(dtype), fnp.asarray(B).astype(dtype)
        with backends.flags(default_matmul_precision="BF16_BF16_F32"):
            assert "precision = [DEFAULT, DEFAULT]" in text(lambda a, b: a @ b, a, b)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ieee", "[HIGHEST, HIGHEST]"),
        ("tf32", "[DEFAULT, DEFAULT]"),
        ("bf16", f"{BF16}, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1"),
        ("bf16x3", "num_primitive_operations = 3"),
        ("bf16x6", "num_primitive_operations = 6"),
        ("bf16x9", "lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32"),
    ],
)
def test_fp32_precision_on_gpus(value, said):
    with backends.cuda.matmul.flags(fp32_precision=value):
        assert said in product("gpu")
        assert "[HIGHEST, HIGHEST]" in product("cpu"), "it is about GPUs"
        assert "precision HIGHEST" in convolved("gpu"), "it is about products"
    with backends.flags(fp32_precision=value):
        assert said in product("gpu")


def test_allow_tf32():
    backends.cuda.matmul.allow_tf32 = True
    assert "[DEFAULT, DEFAULT]" in product() and "precision HIGHEST" in convolved()
    assert backends.cuda.matmul.fp32_precision == "tf32"
    backends.cudnn.allow_tf32 = True
    assert convolved().count("precision DEFAULT>") == 2 and backends.cudnn.conv.fp32_precision == "tf32"
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    assert "[HIGHEST, HIGHEST]" in product() and "precision HIGHEST" in convolved()


def test_the_setting_of_an_operation_wins_over_the_general_one():
    with backends.flags({"fp32_precision": "tf32", "cuda.matmul.fp32_precision": "ieee"}):
        assert "[HIGHEST, HIGHEST]" in product() and "precision DEFAULT>" in convolved()


def test_bfloat16_on_cpus_that_have_it(monkeypatch):
    for has, said in ((True, "reduce_precision"), (False, "[HIGHEST, HIGHEST]")):
        monkeypatch.setattr(cpu, "features", lambda has=has: frozenset({"avx512_bf16"} if has else ()))
        for flags in (backends.mkldnn.matmul.flags, lambda **kw: backends.flags(**kw)):
            # With equal settings, the cached answer of another case or test would be reused, so make these differ.
            with flags(fp32_precision="bf16"), backends.flags(cudnn_conv_fp32_precision="tf32" if has else "ieee"):
                assert said in product("cpu")
                assert "reduce_precision" not in convolved("cpu")
        for name in ("mkldnn.matmul.fp32_precision", "fp32_precision"):
            row = next(r for r in backends.describe().rows if r[0] == name)
            assert ("no units for bfloat16" in row[4]) is not has


def test_default_matmul_precision_by_each_name():
    for name, said in (
        ("default", "[DEFAULT, DEFAULT]"), ("bfloat16", "[DEFAULT, DEFAULT]"), ("high", "[HIGH, HIGH]"),
        ("tensorfloat32", "[HIGH, HIGH]"), ("float32", "[HIGHEST, HIGHEST]"), ("tf32_tf32_f32", "tf32"),
    ):  # fmt: skip
        with ft.default_matmul_precision(name):
            assert said in product()
            assert said in product("cpu")
    assert "[HIGHEST, HIGHEST]" in product()
    backends.default_matmul_precision = "high"
    assert "[HIGH, HIGH]" in product() and "precision HIGH>" in convolved()


def test_default_matmul_precision_wins_over_platforms_and_a_call_over_it():
    call = lambda a, b: fnp.matmul(a, b, precision="highest")
    with backends.cuda.matmul.flags(fp32_precision="tf32"), ft.default_matmul_precision("default"):
        assert "[DEFAULT, DEFAULT]" in product()
        assert "[HIGHEST, HIGHEST]" in text(call, A, B)
        pair = lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=("high", "highest"))
        assert "[HIGH, HIGHEST]" in text(pair, A, B)


def test_algorithms_change_results_on_cpus():
    assert 1e-3 < error(ft.default_matmul_precision("BF16_BF16_F32")(lambda a, b: a @ b)) < 2e-2
    assert 1e-5 < error(ft.default_matmul_precision("F16_F16_F32")(lambda a, b: a @ b)) < 2e-3
    assert error(ft.default_matmul_precision("BF16_BF16_F32_X9")(lambda a, b: a @ b)) < 1e-6
    assert 1e-3 < error(lambda a, b: lax.dot(a, b, precision="BF16_BF16_F32")) < 2e-2


@pytest.mark.parametrize("name", sorted(precision_names.ALGORITHMS))
def test_each_algorithm_compiles(name):
    dtype = "float64" if name.startswith("F64") else "float32"
    a, b = fnp.asarray(A).astype(dtype), fnp.asarray(B).astype(dtype)
    out = ft.jit(lambda a, b: lax.dot(a, b, precision=name))(a, b)
    assert out.dtype.name == dtype
    np.testing.assert_allclose(np.asarray(out), A.astype(np.float64) @ B, atol=0.2)
    grads = ft.grad(lambda a, b: fnp.sum(lax.dot(a, b, precision=name)), (0, 1))(a, b)
    np.testing.assert_allclose(np.asarray(grads[0]), np.broadcast_to(B.sum(1), A.shape), atol=0.2)


def test_a_block_in_a_jitted_function_holds_for_the_operations_in_it():
    def fun(a, b):
        with ft.default_matmul_precision("high"):
            c = a @ b
        return c @ b.T

    found = ft.jit(fun).lower(A, B).as_text()
    assert found.count("[HIGH, HIGH]") == 1 and found.count("[HIGHEST, HIGHEST]") == 1
    # The cotangent of a takes one product with the precision of `a @ b`, and one with that of `c @ b.T`.
    found = ft.jit(ft.grad(lambda a: fnp.sum(fun(a, B)))).lower(A).as_text()
    assert found.count("[HIGH, HIGH]") == 1 and found.count("[HIGHEST, HIGHEST]") == 1


def test_every_product_asks():
    ones = np.ones((4, 4), np.float32)
    ragged = lambda a: lax.ragged_dot(a, fnp.ones((2, 4, 3)), np.array([1, 3], np.int32))
    for fun in (
        lambda a: fnp.einsum("ij,jk,kl->il", a, a, a),
        lambda a: fnp.tensordot(a, a, 1),
        ragged,
        ft.vmap(fnp.dot),
    ):
        args = (ones, ones) if fun is not ragged and getattr(fun, "__name__", "") != "<lambda>" else (ones,)
        with ft.default_matmul_precision("high"):
            found = text(fun, *args)
        assert "[HIGH, HIGH]" in found and "HIGHEST" not in found


def test_complex_products():
    c = np.ones((4, 4), np.complex64)
    for value, said in (
        ("tf32", "[DEFAULT, DEFAULT]"),
        ("bf16", "[DEFAULT, DEFAULT]"),
        ("bf16x3", "[HIGHEST, HIGHEST]"),
    ):
        with backends.flags(fp32_precision=value):
            assert said in text(lambda a: a @ a, c)
    assert "[HIGHEST, HIGHEST]" in text(lambda a: a @ a, c)


def test_the_other_forms_of_convolutions_and_products_honour_it():
    pointwise = lambda x, k: lax.conv(x, k, (1, 1), "VALID")
    with ft.default_matmul_precision("high"):
        found = text(pointwise, IMAGE, KERNEL[:, :, :1, :1], platform="cpu")
    assert "dot_general" in found and "[HIGH, HIGH]" in found
    many, few = np.ones((dot_general_cpu.TALL, 3), np.float32), np.ones((3, 3), np.float32)
    assert "dot_general" not in text(lambda a, b: a @ b, many, few, platform="cpu")
    with ft.default_matmul_precision("BF16_BF16_F32"):
        assert "dot_general" in text(lambda a, b: a @ b, many, few, platform="cpu")


def test_a_change_recompiles_once_and_the_change_back_does_not():
    f, kernel = ft.jit(lambda a, b: fnp.tanh(a @ b)), lambda: fnp.asarray(A) @ fnp.asarray(B)
    f(A, B), kernel()
    with ft.testing.count_compiles() as anew, ft.default_matmul_precision("BF16_BF16_F32"):
        f(A, B), f(A, B), kernel(), kernel()
    with ft.testing.count_compiles() as back:
        f(A, B), kernel()
        with ft.default_matmul_precision("BF16_BF16_F32"):
            f(A, B), kernel()
    assert (anew.count, back.count) == (2, 0)


def test_float32_matmul_precision():
    assert ft.get_float32_matmul_precision() == "highest"
    for name, gpu, cpu_ in (("high", "tf32", "tf32"), ("medium", "tf32", "bf16"), ("highest", "ieee", "ieee")):
        ft.set_float32_matmul_precision(name)
        assert (backends.cuda.matmul.fp32_precision, backends.mkldnn.matmul.fp32_precision) == (gpu, cpu_)
        assert ft.get_float32_matmul_precision() == name
    backends.cuda.matmul.fp32_precision = "bf16x3"
    says(refusal(ft.get_float32_matmul_precision).head, "no name stands for 'bf16x3' on GPUs and 'ieee' on CPUs")
    says(refusal(lambda: ft.set_float32_matmul_precision("low")).remedy, "'highest', 'high' or 'medium'")


def test_reduced_precision_reductions_say_that_they_change_nothing():
    before = product(), dict(backends.settings.compile_options("gpu"))
    with backends.cuda.matmul.flags(allow_fp16_reduced_precision_reduction=True):
        assert backends.cuda.matmul.allow_bf16_reduced_precision_reduction
        assert (product(), dict(backends.settings.compile_options("gpu"))) == before
    setting = backends.settings.find("cuda.matmul.allow_bf16_reduced_precision_reduction")
    assert "float32 always" in setting.effect("gpu") and "float32 always" in setting.effect("cpu")


def test_wrong_precisions():
    dot = lambda a, b, precision: lambda: lax.dot(fnp.asarray(a), fnp.asarray(b), precision=precision)
    says(refusal(dot(A, B, "exact")).head, "precision='exact' is unknown")
    says(refusal(dot(A, B, "exact")).remedy, "'highest'", "BF16_BF16_F32_X3")
    says(refusal(dot(A.astype(np.int32), B.astype(np.int32), "BF16_BF16_F32")).head, "does not take operands of int32")
    says(refusal(dot(A, B, "F64_F64_F64")).remedy, "float64")
    conv = lambda: lax.conv(fnp.asarray(IMAGE), fnp.asarray(KERNEL), (1, 1), "SAME", precision="BF16_BF16_F32")
    says(refusal(conv).head, "convolutions have none")
    says(refusal(lambda: ft.default_matmul_precision("hihg")).head, "did you mean 'high'?")
    says(refusal(lambda: setattr(backends.cuda.matmul, "fp32_precision", "tf23")).head, "did you mean 'tf32'?")
    refusal(lambda: setattr(backends.cudnn.conv, "fp32_precision", "bf16"))


def test_names_of_others_are_taken_per_call():
    for given in (lax.Precision.HIGH, "HIGH", "tensorfloat32"):
        assert "[HIGH, HIGH]" in text(lambda a, b, given=given: fnp.matmul(a, b, precision=given), A, B)
    assert products.resolved(precision_names.canonical(["high", None]), np.dtype(np.float32), "gpu") == (
        "high",
        "highest",
    )


def test_environment(run):
    script = "import functorch_like as ft; b = ft.backends; print(b.cuda.matmul.fp32_precision, b.cudnn.allow_tf32)"
    assert run(script, FT_CUDA_MATMUL_ALLOW_TF32="1", FT_CUDNN_ALLOW_TF32="yes") == "tf32 True"


@pytest.mark.gpu
def test_tf32_on_a_gpu():
    a = fnp.asarray(np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32))
    exact = np.asarray(a, np.float64) @ np.asarray(a, np.float64)
    relative = lambda: np.abs(np.asarray(a @ a) - exact).max() / np.abs(exact).max()
    assert relative() < 5e-7
    with backends.cuda.matmul.flags(allow_tf32=True):
        assert 1e-5 < relative() < 5e-3
