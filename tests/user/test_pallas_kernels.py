"""Classical Pallas kernels against NumPy in float64: products, softmax, attention, sums, gathers, histograms."""

import functools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.experimental import pallas as pl
from functorch_like.experimental.pallas import tpu as pltpu

RANDOM = np.random.default_rng(7)


def normal(*shape):
    return RANDOM.normal(size=shape)


def double(*shape):
    return ft.ShapeDtypeStruct(shape, "float64")


def rows(n, m):
    return pl.BlockSpec((n, m), lambda i: (i, 0))


def test_vector_add():
    def add(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    x, y = normal(24), normal(24)
    block = pl.BlockSpec((8,), lambda i: i)
    f = pl.pallas_call(add, double(24), grid=3, in_specs=[block, block], out_specs=block)
    np.testing.assert_array_equal(f(x, y), x + y)


def into_result(x_ref, y_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = fnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...] @ y_ref[...]


def into_scratch(x_ref, y_ref, o_ref, total, *, scale=1.0):
    @pl.when(pl.program_id(2) == 0)
    def _():
        total[...] = fnp.zeros_like(total)

    total[...] += fnp.dot(x_ref[...], y_ref[...])

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = total[...] * scale


def matmul(x, y, kernel=into_scratch, scratch=True, block=(4, 2, 3)):
    (m, k), n = x.shape, y.shape[1]
    a, b, c = block
    return pl.pallas_call(
        kernel,
        double(m, n),
        grid=(m // a, n // b, k // c),
        in_specs=[pl.BlockSpec((a, c), lambda i, j, k: (i, k)), pl.BlockSpec((c, b), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((a, b), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((a, b), "float64")] if scratch else (),
    )(x, y)


@pytest.mark.parametrize("scratch", [False, True])
def test_products_that_are_summed_over_the_last_axis(scratch):
    x, y = normal(8, 9), normal(9, 6)
    out = matmul(x, y, into_scratch if scratch else into_result, scratch)
    np.testing.assert_allclose(out, x @ y, rtol=1e-13)


def test_a_kernel_with_options_by_partial():
    x, y = normal(8, 9), normal(9, 6)
    out = matmul(x, y, functools.partial(into_scratch, scale=2.0))
    np.testing.assert_allclose(out, 2 * (x @ y), rtol=1e-13)


def test_softmax_of_rows():
    def softmax(x_ref, o_ref):
        e = fnp.exp(x_ref[...] - x_ref[...].max(1, keepdims=True))
        o_ref[...] = e / e.sum(1, keepdims=True)

    x = normal(6, 10)
    out = pl.pallas_call(softmax, double(6, 10), grid=3, in_specs=[rows(2, 10)], out_specs=rows(2, 10))(x)
    e = np.exp(x)
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-13)


def layer_norm(x, scale, shift):
    def kernel(x_ref, scale_ref, shift_ref, o_ref, mean_ref):
        row = x_ref[...]
        mean = row.mean()
        mean_ref[...] = mean
        o_ref[...] = (row - mean) * lax.rsqrt(fnp.var(row) + 1e-6) * scale_ref[...] + shift_ref[...]

    n, m = x.shape
    row = pl.BlockSpec((pl.squeezed, m), lambda i: (i, 0))
    whole = pl.BlockSpec((m,), lambda i: (0,))
    return pl.pallas_call(
        kernel,
        (double(n, m), double(n)),
        grid=(n,),
        in_specs=[row, whole, whole],
        out_specs=(row, pl.BlockSpec((None,), lambda i: i)),
    )(x, scale, shift)


def test_layer_norm_with_two_results():
    x, scale, shift = normal(5, 7), normal(7), normal(7)
    out, mean = layer_norm(x, scale, shift)
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * scale + shift
    np.testing.assert_allclose(out, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-12)


def attention_kernel(q_ref, k_ref, v_ref, o_ref, largest, total, weighted):
    @pl.when(pl.program_id(2) == 0)
    def _():
        largest[...] = fnp.full_like(largest, -np.inf)
        total[...] = fnp.zeros_like(total)
        weighted[...] = fnp.zeros_like(weighted)

    scores = q_ref[...] @ k_ref[...].T
    largest_now = fnp.maximum(largest[...], scores.max(1, keepdims=True))
    weights, decay = fnp.exp(scores - largest_now), fnp.exp(largest[...] - largest_now)
    total[...] = total[...] * decay + weights.sum(1, keepdims=True)
    weighted[...] = weighted[...] * decay + weights @ v_ref[...]
    largest[...] = largest_now

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def _():
        o_ref[...] = weighted[...] / total[...]


def attention(q, k, v, block=4):
    heads, n, d = q.shape
    of_queries = pl.BlockSpec((None, block, d), lambda h, i, j: (h, i, 0))
    of_keys = pl.BlockSpec((None, block, d), lambda h, i, j: (h, j, 0))
    column = pltpu.VMEM((block, 1), "float64")
    return pl.pallas_call(
        attention_kernel,
        ft.ShapeDtypeStruct(q.shape, "float64"),
        grid=(heads, n // block, k.shape[1] // block),
        in_specs=[of_queries, of_keys, of_keys],
        out_specs=of_queries,
        scratch_shapes=[column, column, pltpu.VMEM((block, d), "float64")],
    )(q, k, v)


def plain_attention(q, k, v):
    scores = np.exp(q @ np.swapaxes(k, -1, -2))
    return scores / scores.sum(-1, keepdims=True) @ v


def test_attention_with_an_online_softmax():
    q, k, v = normal(2, 8, 3), normal(2, 12, 3), normal(2, 12, 3)
    np.testing.assert_allclose(attention(q, k, v), plain_attention(q, k, v), rtol=1e-12)


def test_prefix_sums_carry_a_total_from_block_to_block():
    def kernel(x_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[0] = 0.0

        sums = fnp.cumsum(x_ref[...]) + total[0]
        o_ref[...] = sums
        total[0] = sums[-1]

    x = normal(20)
    block = pl.BlockSpec((5,), lambda i: i)
    scratch = {"total": pltpu.SMEM((1,), "float64")}
    f = pl.pallas_call(kernel, double(20), grid=4, in_specs=[block], out_specs=block, scratch_shapes=scratch)
    np.testing.assert_allclose(f(x), np.cumsum(x), rtol=1e-12)


def test_blocks_with_remainders():
    """Blocks reach over the ends: what is read there is NaN, and what is written there is dropped."""

    def kernel(x_ref, o_ref, sum_ref):
        place = pl.program_id(0) * 4 + fnp.arange(4)
        o_ref[...] = x_ref[...] * 2
        sum_ref[...] = fnp.where(place < 10, x_ref[...], 0.0).sum()

    x = normal(10)
    block = pl.BlockSpec((4,), lambda i: i)
    specs = (block, pl.BlockSpec((None,), lambda i: i))
    out, sums = pl.pallas_call(kernel, (double(10), double(3)), grid=3, in_specs=[block], out_specs=specs)(x)
    np.testing.assert_array_equal(out, 2 * x)
    np.testing.assert_allclose(sums, [x[:4].sum(), x[4:8].sum(), x[8:].sum()], rtol=1e-13)


def gathered_rows(places, x):
    def kernel(places_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + places_ref[pl.program_id(0)]

    n, m = len(places), x.shape[1]
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(n,),
        in_specs=[pl.BlockSpec((1, m), lambda i, places: (places[i], 0))],
        out_specs=pl.BlockSpec((1, m), lambda i, places: (i, 0)),
    )
    return pl.pallas_call(kernel, double(n, m), grid_spec=spec)(places, x)


def test_a_gather_by_prefetched_indices():
    places, x = np.array([3, 0, 2, 2], np.int32), normal(4, 3)
    np.testing.assert_array_equal(gathered_rows(places, x), x[places] + places[:, None])


def test_prefetched_indices_in_a_container():
    def kernel(indices, nothing, x_ref, o_ref):
        assert nothing is None
        _, factors_ref = indices
        o_ref[...] = x_ref[...] * factors_ref[pl.program_id(0)]

    def place(i, indices, nothing):
        assert nothing is None
        return indices[0][i], 0

    x = normal(4, 3)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2, grid=(2,), in_specs=[pl.BlockSpec((1, 3), place)], out_specs=rows_with_scalars(1, 3)
    )
    f = pl.pallas_call(kernel, double(2, 3), grid_spec=spec)
    indices = (np.array([3, 1], np.int32), np.array([2.0, 5.0]))
    np.testing.assert_array_equal(f(indices, None, x), x[[3, 1]] * np.array([[2.0], [5.0]]))


def rows_with_scalars(n, m):
    return pl.BlockSpec((n, m), lambda i, *scalars: (i, 0))


def test_an_update_in_place():
    def kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(0) == 1)
        def _():
            o_ref[...] = x_ref[...] + y_ref[...]

    x, y = normal(6), normal(2)
    block = pl.BlockSpec((2,), lambda i: i)
    f = pl.pallas_call(
        kernel,
        double(6),
        grid=3,
        in_specs=[block, pl.BlockSpec((2,), lambda i: 0)],
        out_specs=block,
        input_output_aliases={0: 0},
    )
    want = x.copy()
    want[2:4] += y
    before = x.copy()
    np.testing.assert_array_equal(f(x, y), want)
    np.testing.assert_array_equal(x, before)


def test_a_histogram():
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = fnp.zeros_like(o_ref)

        @pl.loop(0, x_ref.shape[0])
        def _(i):
            value = x_ref[i]

            @pl.when(value >= 0)
            def _():
                o_ref[value] += 1

    x = RANDOM.integers(-1, 5, 24).astype(np.int32)
    out = ft.ShapeDtypeStruct((5,), "int32")
    block = pl.BlockSpec((8,), lambda i: i)
    f = pl.pallas_call(kernel, out, grid=3, in_specs=[block], out_specs=pl.BlockSpec((5,), lambda i: 0))
    np.testing.assert_array_equal(f(x), np.bincount(x[x >= 0], minlength=5))


def test_a_convolution_by_blocks_that_overlap():
    def kernel(x_ref, w_ref, o_ref):
        o_ref[...] = sum(x_ref[pl.ds(k, 4)] * w_ref[k] for k in range(3))

    x, w = normal(14), normal(3)
    f = pl.pallas_call(
        kernel,
        double(12),
        grid=3,
        in_specs=[pl.BlockSpec((pl.Element(6),), lambda i: i * 4), pl.no_block_spec],
        out_specs=pl.BlockSpec((4,), lambda i: i),
    )
    np.testing.assert_allclose(f(x, w), np.correlate(x, w, "valid"), rtol=1e-12)


def test_a_grid_inside_of_a_kernel():
    """The pipeline sums products over blocks of whole arrays, in a scratch Ref of the kernel."""

    def inner(x_ref, y_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = fnp.zeros_like(total)

        total[...] += x_ref[...] @ y_ref[...]
        o_ref[...] = total[...]

    def kernel(x_ref, y_ref, o_ref, total):
        pipeline = pltpu.emit_pipeline(
            inner,
            grid=(3,),
            in_specs=[pl.BlockSpec((4, 2), lambda k: (0, k)), pl.BlockSpec((2, 5), lambda k: (k, 0))],
            out_specs=[pl.BlockSpec((4, 5), lambda k: (0, 0))],
        )
        pipeline(x_ref, y_ref, o_ref, scratches=[total])

    x, y = normal(4, 6), normal(6, 5)
    whole = pl.BlockSpec(memory_space=pl.ANY)
    f = pl.pallas_call(
        kernel,
        double(4, 5),
        in_specs=[whole, whole],
        out_specs=whole,
        scratch_shapes=[pltpu.VMEM((4, 5), "float64")],
    )
    np.testing.assert_allclose(f(x, y), x @ y, rtol=1e-13)


# ----------------------------------------------------------------------------------------------------- transformations
def test_gradients_of_a_product():
    x, y = normal(8, 9), normal(9, 6)
    loss = lambda x, y: (matmul(x, y) ** 2).sum()
    along_x, along_y = ft.grad(loss, (0, 1))(x, y)
    np.testing.assert_allclose(along_x, 2 * (x @ y) @ y.T, rtol=1e-12)
    np.testing.assert_allclose(along_y, x.T @ (2 * (x @ y)), rtol=1e-12)


def test_gradients_of_attention_are_finite_differences():
    q, k, v = normal(1, 4, 2), normal(1, 8, 2), normal(1, 8, 2)
    weights = normal(1, 4, 2)
    grads = ft.jit(ft.grad(lambda *qkv: (attention(*qkv) * weights).sum(), (0, 1, 2)))(q, k, v)
    for position, got in enumerate(grads):
        direction = normal(*got.shape)
        moved = [[x + s * 1e-6 * direction if i == position else x for i, x in enumerate((q, k, v))] for s in (1, -1)]
        ahead, behind = ((plain_attention(*m) * weights).sum() for m in moved)
        np.testing.assert_allclose((got * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-6)


def test_tangents_of_a_layer_norm():
    x, scale, shift, direction = normal(5, 7), normal(7), normal(7), normal(5, 7)
    f = lambda x: layer_norm(x, scale, shift)[0]
    _, tangent = ft.jvp(f, (x,), (direction,))
    plain = lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * scale
    want = (plain(x + 1e-6 * direction) - plain(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(tangent, want, rtol=1e-6, atol=1e-8)


def test_vmap_gives_each_element_its_call():
    x, y = normal(3, 8, 9), normal(9, 6)
    np.testing.assert_allclose(ft.vmap(matmul, (0, None))(x, y), x @ y, rtol=1e-12)
    np.testing.assert_allclose(
        ft.jit(ft.vmap(matmul, (None, 0)))(x[0], np.stack([y, 2 * y]))[1], 2 * x[0] @ y, rtol=1e-12
    )


def test_vmap_over_prefetched_indices():
    places, x = np.array([[3, 0], [1, 1]], np.int32), normal(4, 3)
    out = ft.vmap(gathered_rows, (0, None))(places, x)
    np.testing.assert_array_equal(out, x[places] + places[..., None])


def test_gradients_under_vmap():
    x, y = normal(3, 8, 9), normal(9, 6)
    got = ft.vmap(ft.grad(lambda x: (matmul(x, y) ** 2).sum()))(x)
    np.testing.assert_allclose(got, 2 * (x @ y) @ y.T, rtol=1e-12)


def test_kernels_that_are_computed_again():
    x, y = normal(8, 9), normal(9, 6)
    f = ft.checkpoint(lambda x: fnp.sin(matmul(x, y)))
    np.testing.assert_allclose(ft.grad(lambda x: f(x).sum())(x), np.cos(x @ y) @ y.T, rtol=1e-11)


def test_a_rule_of_ones_own_around_a_kernel():
    @ft.custom_vjp
    def square(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] ** 2

        return pl.pallas_call(kernel, double(3))(x)

    square.defvjp(lambda x: (square(x), x), lambda x, ct: (10 * x * ct,))
    x = normal(3)
    np.testing.assert_allclose(ft.grad(lambda x: square(x).sum())(x), 10 * x)


def test_kernels_close_over_values_that_are_differentiated():
    x, y = normal(4), normal(4)

    def f(y):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * fnp.sin(y)

        return pl.pallas_call(kernel, double(4))(x).sum()

    np.testing.assert_allclose(ft.grad(f)(y), x * np.cos(y), rtol=1e-13)


def test_shapes_and_jaxprs_without_computing():
    x, y = ft.ShapeDtypeStruct((8, 9), "float64"), ft.ShapeDtypeStruct((9, 6), "float64")
    assert ft.eval_shape(matmul, x, y) == double(8, 6)
    assert "scan" in str(ft.make_jaxpr(matmul)(x, y))


def test_the_loop_runs_in_python_without_jit():
    x, y = normal(8, 9), normal(9, 6)
    with ft.disable_jit():
        np.testing.assert_allclose(matmul(x, y), x @ y, rtol=1e-13)
