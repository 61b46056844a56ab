"""Products and sums that a library computes wrongly are found in XLA's compiled programs and never run."""

import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.backends.xla import jaxlib_api, library_check, option_sets
from functorch_like.primitives.elementwise import extremes_cpu

RNG = np.random.default_rng(0)
SETS = {
    "default": {},
    "reductions": option_sets.ynn("REDUCE"),
    "fused products": option_sets.FUSED_DOTS,
    "oneDNN": option_sets.ONEDNN,
}


def normal(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True, params=["checked", "rewritten first"])
def _products_of_repeated_operands(request):
    """Run each test without and with the fast lowerings, which rewrite most of these programs before XLA gets them.

    The check must also work without them.
    """
    with backends.flags({"cpu.fast_lowerings": request.param != "checked"}):
        yield


def check(fun, *args, want, rtol=1e-4):
    """Assert that the function is right under each set of options, compared with NumPy in float64."""
    want = np.asarray(want)
    for name, options in SETS.items():
        with backends.xla.options(options):
            got = np.asarray(ft.jit(lambda *args: fun(*args))(*args)).astype(np.float64)
        worst = np.abs(got - want).max() / np.abs(want).max()
        assert worst < rtol, f"{name}: relative error {worst:.2g}"


def test_right_operand_filled_with_a_number():
    a = normal(16, 8)
    check(lambda a: a @ fnp.ones((8, 5)), a, want=a.sum(-1, keepdims=True, dtype="d") * np.ones(5))
    check(lambda a, s: a @ fnp.full((8, 5), s), a, 1.7, want=1.7 * a.sum(-1, keepdims=True, dtype="d") * np.ones(5))


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("bfloat16", 0.02)])
def test_other_dtypes(dtype, rtol):
    a = fnp.asarray(normal(16, 8), dtype)
    want = np.asarray(a).astype("d").sum(-1, keepdims=True) * np.ones(5)
    check(lambda a: a @ fnp.ones((8, 5), dtype), a, want=want, rtol=rtol)


def test_product_inside_of_a_reduction():
    a = normal(4, 3, 16, 2, 3)
    check(lambda a: (a.sum(-1) @ fnp.ones((4, 3, 2, 36))).sum(-1), a, want=36 * a.sum((-1, -2), dtype="d"))


def test_right_operand_that_repeats_a_column():
    a, v = normal(3, 5, 3), normal(3, 3, 1)
    check(lambda a, v: a @ fnp.broadcast_to(v, (3, 3, 64)), a, v, want=np.einsum("bmk,bkn->bmn", a, v) * np.ones(64))


def test_gradient_of_the_sum_of_convolutions():
    x, depthwise, pointwise = normal(2, 8, 10, 10), normal(8, 1, 3, 3), normal(16, 8, 1, 1)

    def total(x, depthwise, pointwise):
        y = ft.lax.conv_general_dilated(x, depthwise, (1, 1), "VALID", feature_group_count=8)
        return ft.lax.conv_general_dilated(y, pointwise, (1, 1), "VALID").sum()

    windows = np.lib.stride_tricks.sliding_window_view(x.astype("d"), (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,cij->nchw", windows, depthwise[:, 0].astype("d"))
    slope = lambda *args: ft.grad(total, argnums=2)(*args)
    check(slope, x, depthwise, pointwise, want=np.broadcast_to(y.sum((0, 2, 3))[:, None, None], (16, 8, 1, 1)))
    per_channel = np.einsum("nchwij->cij", windows) * pointwise.sum((0, 2, 3), dtype="d")[:, None, None]
    slope = lambda *args: ft.grad(total, argnums=1)(*args)
    check(slope, x, depthwise, pointwise, want=per_channel[:, None])


@pytest.mark.parametrize("left", ["", "m", "k", "mk"])
@pytest.mark.parametrize("right", ["", "k", "n", "kn"])
def test_each_pattern_of_broadcasts(left, right):
    m, k, n = 5, 3, 64
    a = normal(1 if "m" in left else m, 1 if "k" in left else k)
    b = normal(1 if "k" in right else k, 1 if "n" in right else n)
    product = lambda a, b: fnp.broadcast_to(a, (m, k)) @ fnp.broadcast_to(b, (k, n))
    check(product, a, b, want=np.broadcast_to(a, (m, k)).astype("d") @ np.broadcast_to(b, (k, n)))


FUSION = """HloModule f, is_scheduled=true

fused {
  p = f32[16,8]{1,0} parameter(0)
  s = f32[] parameter(1)
  b = f32[8,5]{1,0} broadcast(s), dimensions={}
  ROOT d = f32[16,5]{1,0} dot(p, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY main {
  a = f32[16,8]{1,0} parameter(0)
  t = f32[] parameter(1)
  ROOT f = f32[16,5]{1,0} fusion(a, t), kind=kCustom, calls=fused, backend_config={"kind":"__ynn_fusion"}
}
"""


def test_explain_says_why_a_program_has_no_fusions():
    """The operand is flipped, so that only XLA can find out that it is a broadcast."""
    fused = backends.xla.options(option_sets.FUSED_DOTS)
    with fused, backends.flags({"cache.enabled": False}):
        done = ft.explain(ft.jit(lambda a, s: a @ fnp.flip(fnp.full((8, 5), s), 1)))(normal(16, 8), 1.0)
    assert "YNNPACK" in str(done) and "would misread" in str(done)


def test_what_is_found_in_the_text():
    assert "ROOT d = " in library_check.flaw_in(FUSION).why
    assert not library_check.flaw_in(FUSION.replace("__ynn_fusion", "__other"))
    assert not library_check.flaw_in(FUSION.replace("dot(p, b)", "dot(p, p)"))
    row = FUSION.replace("s = f32[]", "s = f32[5]{0}").replace("dimensions={}", "dimensions={1}")
    assert not library_check.flaw_in(row)  # a broadcast along the contracted dimension only
    column = FUSION.replace("s = f32[]", "s = f32[8]{0}").replace("dimensions={}", "dimensions={0}")
    assert library_check.flaw_in(column)
    flipped = "c = f32[5,8]{1,0} broadcast(s), dimensions={}\n  b = f32[8,5]{1,0} transpose(c), dimensions={1,0}"
    assert library_check.flaw_in(FUSION.replace("b = f32[8,5]{1,0} broadcast(s), dimensions={}", flipped))
    batched = FUSION.replace("[8,5]{1,0}", "[7,8,5]{2,1,0}").replace("[16,5]{1,0} dot", "[7,16,5]{2,1,0} dot")
    batched = batched.replace("rhs_contracting_dims={0}", "rhs_batch_dims={0}, rhs_contracting_dims={1}")
    along_batch = batched.replace("s = f32[]", "s = f32[8,5]{1,0}").replace("dimensions={}", "dimensions={1,2}")
    assert library_check.flaw_in(along_batch)


MANY_THREADS = """
import numpy as np
import functorch_like as ft
from functorch_like import backends

rng = np.random.default_rng(0)
x, y = rng.standard_normal((8, 512, 64), "float32"), rng.standard_normal((8, 64, 512), "float32")
want = np.matmul(x.astype("d"), y)
for enabled in (None, True):
    backends.mkldnn.enabled = enabled
    product = ft.jit(lambda x, y: x @ y)
    for _ in range(20):
        np.testing.assert_allclose(product(x, y), want, rtol=1e-4, atol=1e-4)
print("right")
"""


def test_products_of_many_matrices_on_many_threads():
    """By oneDNN, as jaxlib 0.10 calls it on a processor without AVX-512, they corrupt the heap: a crash, or no end."""
    env = {**os.environ, "FT_CPU_THREADS": "4", "FT_CACHE": "0", "FT_COMPILATION_TIERS": "off"}
    done = subprocess.run([sys.executable, "-c", MANY_THREADS], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"


@pytest.mark.skipif(not jaxlib_api.ONEDNN_NESTS_THREADS, reason="later versions call oneDNN rightly")
def test_products_of_many_matrices_are_not_left_to_onednn():
    many = NARROW.replace("bf16", "f32").replace("HloModule f\n\nENTRY main", "fused")
    text = (
        many
        + """
ENTRY main {
  a = f32[3,4,64]{2,1,0} parameter(0)
  b = f32[3,4,2]{2,1,0} parameter(1)
  ROOT f = f32[3,64,2]{2,1,0} fusion(a, b), kind=kCustom, calls=fused, backend_config={"kind":"__onednn_fusion"}
}
"""
    )
    assert library_check.flaw_in(text).options == option_sets.NO_ONEDNN
    assert not library_check.flaw_in(text.replace("__onednn", "__other"))
    assert not library_check.flaw_in(text.replace("lhs_batch_dims={0}, ", ""))


NARROW = """HloModule f

ENTRY main {
  a = bf16[3,4,64]{2,1,0} parameter(0)
  b = bf16[3,4,2]{2,1,0} parameter(1)
  ROOT d = f32[3,64,2]{2,1,0} dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}
}
"""


def test_products_that_no_library_takes_are_found_in_the_text():
    assert library_check.flaw_in(NARROW).options == option_sets.NONE
    assert not library_check.flaw_in(NARROW.replace("bf16", "f32"))


def test_right_operand_that_repeats_along_a_batch_dimension():
    x, w = normal(7, 3, 18, 31), normal(3, 4, 31)

    def product(x, w):
        repeated = lax.broadcast_in_dim(w + 1, (7, 3, 4, 31), (1, 2, 3))
        return lax.dot_general(2 * x, repeated, (((3,), (3,)), ((0, 1), (0, 1))))

    check(product, x, w, want=np.einsum("bcmk,cnk->bcmn", 2 * x.astype("d"), w.astype("d") + 1))
    check(
        lambda x, w, s: product(x, fnp.where(s > 0, w, 1.0)), x, w, 1.0,
        want=np.einsum("bcmk,cnk->bcmn", 2 * x.astype("d"), w.astype("d") + 1),
    )  # fmt: skip


def test_products_of_bfloat16_that_no_library_takes_run():
    x, y = normal(3, 4, 64), normal(1, 1, 1)

    def product(x, y):
        right = fnp.flip(fnp.broadcast_to(y, (3, 4, 2)), 1).astype("bfloat16")
        left = fnp.transpose(x, (2, 1, 0)).astype("bfloat16")
        return lax.dot_general(left, right, (((1,), (1,)), ((2,), (0,)))).astype("float32")

    check(product, x, y, want=x.sum(1, dtype="d")[..., None] * y * np.ones(2), rtol=0.03)


SHAPE = (7, 33, 31)
#: Dimensions of SHAPE that the two factors have, and the axis of the sum.
FACTORS = [
    ((2,), (0,), 2),
    ((0, 2), (0,), 2),
    ((1, 2), (1,), 2),
    ((0, 1), (1,), 0),
    ((0,), (0, 2), 2),
    ((0, 2), (0,), 0),
]


def spread(x, dimensions, module):
    """Broadcast a factor, which has some of the dimensions of SHAPE, to SHAPE."""
    shape = [n if d in dimensions else 1 for d, n in enumerate(SHAPE)]
    return module.broadcast_to(x.reshape(shape), SHAPE)


@pytest.mark.parametrize(("first", "second", "axis"), FACTORS)
def test_sum_of_a_product_of_broadcasts(first, second, axis):
    x, y = (normal(*(SHAPE[d] for d in dimensions)) for dimensions in (first, second))
    want = (spread(x, first, np).astype("d") * spread(y, second, np)).sum(axis)

    def total(x, y):
        return (spread(x, first, fnp) * spread(y, second, fnp)).sum(axis)

    check(total, x, y, want=want)
    whole = normal(*SHAPE)
    check(
        lambda x, y, whole: fnp.expand_dims(total(x, y), axis) * whole,
        x,
        y,
        whole,
        want=np.expand_dims(want, axis) * whole,
    )


def test_gradient_of_a_product_with_a_constant():
    a, b = normal(7, 16), 1 + normal(31, 1)  # the result depends on sum(b), whose terms must not cancel

    def total(a, b):
        c = lax.dot_general(a, fnp.full((16, 33, 31), 0.5, a.dtype), (((1,), (0,)), ((), ())))
        c = c / (1 + fnp.sum(fnp.abs(c), axis=2, keepdims=True))
        return fnp.mean(fnp.tanh(lax.dot_general(c, b, (((2,), (0,)), ((), ())))))

    # Expected values in float64: each c[i, j, k] is s[i], so the result is the mean of tanh(s * sum(b) / (1 + 31 |s|)).
    s, t = a.sum(1, dtype="d") / 2, b.sum(dtype="d")
    slope = (1 - np.tanh(s * t / (1 + 31 * abs(s))) ** 2) / 7
    check(ft.grad(total), a, b, want=np.outer(slope * t / (1 + 31 * abs(s)) ** 2 / 2, np.ones(16)))
    by_b = np.sum(slope * s / (1 + 31 * abs(s))) * np.ones((31, 1))
    check(ft.grad(total, argnums=1), a, b, want=by_b)


@pytest.mark.parametrize("size", [16384, 40000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_padded_expressions(size, dtype):
    y = RNG.random(size).astype(dtype)
    total = y.sum(dtype="d")

    def pad(x, before, after):
        return lax.pad(x, fnp.zeros((), dtype), [(before, after, 0)])

    def repeated(y):
        z = 2 * y
        return fnp.sum(pad(z, size, 0) + pad(z, 0, size))

    check(repeated, y, want=4 * total, rtol=1e-5)
    check(lambda y: fnp.sum(pad(y + 1, size, 0) + pad(3 * y, 0, size)), y, want=4 * total + size, rtol=1e-5)


def test_gradient_of_the_product_of_many_equal_numbers():
    n, x = 2**15, np.float64(0.001)
    product = lambda x: fnp.prod(1 + 0.01 * fnp.broadcast_to(x, (n,)))
    check(ft.grad(product), x, want=n * 0.01 * (1 + 0.01 * x) ** (n - 1), rtol=1e-9)


def test_extremes_of_two_arrays_keep_nan(monkeypatch):
    """As in programs from elsewhere: those of users are written so that they are not left to YNNPACK."""
    monkeypatch.setattr(extremes_cpu, "LARGE", 10**9)
    x = normal(64, 80)
    x[3, 5] = x[7, 7] = np.nan
    for fun in (lambda x: fnp.maximum(x, 0).sum(1), lambda x: (2 * fnp.minimum(1 - x, x)).sum(1)):
        with backends.flags({"cache.enabled": False}):
            wrong = np.isnan(np.asarray(ft.jit(fun)(x)))
            done = ft.explain(ft.jit(lambda x, fun=fun: fun(x)))(x)
        assert wrong[[3, 7]].all() and wrong.sum() == 2
        assert "would skip NaN" in str(done)
    whole = ft.jit(lambda x: fnp.maximum(x, 3).sum(1))
    np.testing.assert_array_equal(
        whole(np.arange(5120).reshape(64, 80)), np.maximum(np.arange(5120), 3).reshape(64, 80).sum(1)
    )
