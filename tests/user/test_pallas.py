"""Pallas: blocks of all kinds, Refs in kernels, masks, atomic updates, copies, and errors, against NumPy."""

import functools
import re

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.experimental import pallas as pl
from functorch_like.experimental.pallas import tpu as pltpu
from functorch_like.experimental.pallas import triton as plgpu

RANDOM = np.random.default_rng(3)


def floats(*shape):
    return ft.ShapeDtypeStruct(shape, "float32")


def ints(*shape):
    return ft.ShapeDtypeStruct(shape, "int32")


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def by(size):
    return pl.BlockSpec((size,), lambda i: i)


def call(kernel, out, *operands, **options):
    return pl.pallas_call(kernel, out, **options)(*operands)


X = np.arange(10, dtype=np.float32)


# --------------------------------------------------------------------------------------------------------------- blocks
@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", np.nan), ("int32", -(2**31)), ("uint8", 0), ("bool", False), ("bfloat16", np.nan)]
)
def test_elements_that_are_not_written(dtype, value):
    out = call(lambda o: None, ft.ShapeDtypeStruct((2,), dtype))
    np.testing.assert_array_equal(np.asarray(out.astype("float32")), np.float32([value, value]))


def test_memory_that_is_zero_at_first():
    out = call(lambda o: None, floats(2), interpret=pltpu.InterpretParams(uninitialized_memory="zero"))
    assert out.tolist() == [0, 0]


@pytest.mark.parametrize("dim", [pl.Blocked(4), 4])
def test_a_block_that_reaches_over_the_end_reads_undefined_values(dim):
    spec = pl.BlockSpec((dim,), lambda i: i)
    out = call(copy, floats(12), X, grid=3, in_specs=[spec], out_specs=spec)
    np.testing.assert_array_equal(out, [*X, np.nan, np.nan])


def test_positions_in_elements():
    out = call(copy, floats(8), X, grid=2, in_specs=[pl.BlockSpec((pl.Element(4),), lambda i: i * 3)], out_specs=by(4))
    np.testing.assert_array_equal(out, [*X[:4], *X[3:7]])


def test_positions_in_elements_with_padding():
    spec = pl.BlockSpec((pl.Element(4, (1, 1)),), lambda i: i * 4)
    out = call(copy, floats(12), X, grid=3, in_specs=[spec], out_specs=by(4))
    np.testing.assert_array_equal(out, [np.nan, *X, np.nan])


def test_positions_as_slices():
    spec = pl.BlockSpec((pl.BoundedSlice(4),), lambda i: pl.ds(i * 2, 4))
    out = call(copy, floats(8), X, grid=2, in_specs=[spec], out_specs=by(4))
    np.testing.assert_array_equal(out, [*X[:4], *X[2:6]])


@pytest.mark.parametrize("none", [None, pl.squeezed, pl.Squeezed()])
def test_axes_that_the_kernel_does_not_see(none):
    x = X[:6].reshape(3, 2)

    def kernel(x_ref, o_ref):
        assert x_ref.shape == o_ref.shape == (2,)
        o_ref[...] = x_ref[::-1]

    spec = pl.BlockSpec((none, 2), lambda i: (2 - i, 0))
    np.testing.assert_array_equal(call(kernel, floats(3, 2), x, grid=3, in_specs=[spec], out_specs=spec), x[:, ::-1])


def test_whole_arrays_in_any_memory():
    def kernel(x_ref, o_ref):
        part = pl.ds(pl.program_id(0) * 5, 5)
        o_ref[part] = x_ref[part] + 1

    whole = pl.BlockSpec(memory_space=pl.ANY)
    np.testing.assert_array_equal(call(kernel, floats(10), X, grid=2, in_specs=[whole], out_specs=whole), X + 1)


def test_trees_of_operands_and_results():
    def kernel(x, pair, o_ref, more):
        o_ref[...] = x["a"][...] + pair[0][...]
        more["b"][...] = pair[1][...] * 2

    out, more = call(
        kernel,
        [floats(4), {"b": floats(4)}],
        {"a": X[:4]},
        (X[:4], X[4:8]),
        grid=(2,),
        in_specs=[{"a": by(2)}, (by(2), by(2))],
        out_specs=[by(2), {"b": by(2)}],
    )
    np.testing.assert_array_equal(out, 2 * X[:4])
    np.testing.assert_array_equal(more["b"], 2 * X[4:8])


def test_a_grid_of_traced_size():
    @ft.jit
    def f(n, x):
        kernel = lambda x_ref, o_ref: o_ref.set(x_ref[...] + pl.num_programs(0))
        return call(kernel, floats(10), x, grid=(n,), in_specs=[by(5)], out_specs=by(5))

    np.testing.assert_array_equal(f(1, X), [*(X[:5] + 1), *[np.nan] * 5])
    np.testing.assert_array_equal(f(2, X), X + 2)


def test_an_index_map_that_closes_over_a_traced_value():
    @ft.jit
    def f(n, x):
        spec = pl.BlockSpec((5,), lambda i: (i + n) % 2)
        return call(copy, floats(10), x, grid=2, in_specs=[spec], out_specs=by(5))

    np.testing.assert_array_equal(f(1, X), np.roll(X, 5))


def test_names_of_the_grid_s_axes():
    def kernel(o_ref):
        o_ref[...] = lax.axis_index("a") * 10 + pl.program_id("b") + lax.axis_size("b")

    spec = pl.BlockSpec((None, None), lambda i, j: (i, j))
    out = call(kernel, ints(2, 3), grid=(("a", 2), ("b", 3)), out_specs=spec)
    np.testing.assert_array_equal(out, [[3, 4, 5], [13, 14, 15]])


def test_a_block_that_is_visited_twice_keeps_what_was_written():
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) < 2)
        def _():
            o_ref[...] = fnp.zeros_like(o_ref)

        o_ref[...] = o_ref[...] * 10 + x_ref[...]

    alternate = pl.BlockSpec((1,), lambda i: i % 2)
    out = call(kernel, floats(2), X[:6], grid=6, in_specs=[by(1)], out_specs=alternate)
    assert out.tolist() == [24, 135]


# ------------------------------------------------------------------------------------------- steps in order and at once
def loops(f, *args):
    return str(ft.make_jaxpr(f)(*args)).count(" = scan(")


def test_independent_steps_are_computed_at_once():
    x = RANDOM.normal(size=(6, 4)).astype(np.float32)

    def product(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] @ y_ref[...] + x_ref[0, 0]

    f = lambda x, y: call(
        product,
        floats(6, 6),
        x,
        y,
        grid=(3, 2),
        in_specs=[pl.BlockSpec((2, 4), lambda i, j: (i, 0)), pl.BlockSpec((4, 3), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((2, 3), lambda i, j: (i, j)),
    )
    assert loops(f, x, x.T) == 0
    np.testing.assert_allclose(f(x, x.T), np.float64(x) @ x.T + np.repeat(x[::2, :1], 2, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("why", ["index", "total", "revisited", "shifted", "prints", "fewer"])
def test_steps_that_may_depend_on_each_other_stay_in_order(why, capfd):
    def kernel(x_ref, o_ref, total):
        if why == "total":
            total[0] = fnp.where(pl.program_id(0) == 0, 0.0, total[0]) + x_ref[0]
            o_ref[...] = x_ref[...] + total[0]
        elif why == "prints":
            pl.debug_print("{}", x_ref[0])
            o_ref[...] = x_ref[...]
        else:
            o_ref[...] = x_ref[...] + (pl.program_id(0) if why == "index" else 0)

    to = {"revisited": lambda i: i * 0, "shifted": lambda i: (i + 1) % 3}.get(why, lambda i: i)
    f = lambda x: call(
        kernel,
        floats(6),
        x,
        grid=2 if why == "fewer" else 3,
        in_specs=[by(2)],
        out_specs=pl.BlockSpec((2,), to),
        scratch_shapes=[pltpu.VMEM((1,), "float32")],
    )
    x = X[:6]
    assert loops(f, x) == 1
    want = {
        "index": X[:6] + [0, 0, 1, 1, 2, 2],
        "total": X[:6] + [0, 0, 2, 2, 6, 6],
        "revisited": [4, 5, *[np.nan] * 4],
        "shifted": np.roll(X[:6], 2),
        "prints": X[:6],
        "fewer": [*X[:4], np.nan, np.nan],
    }
    np.testing.assert_array_equal(f(x), want[why])
    if why == "prints":
        assert capfd.readouterr().out.split() == ["0.0", "2.0", "4.0"]


def test_axes_that_are_declared_parallel():
    def kernel(x_ref, o_ref, total):
        total[...] = x_ref[...] * 2
        o_ref[...] = total[...] + 1

    def f(x, kind):
        return call(
            kernel,
            floats(6),
            x,
            grid=3,
            in_specs=[by(2)],
            out_specs=by(2),
            scratch_shapes=[pltpu.VMEM((2,), "float32")],
            compiler_params=pltpu.CompilerParams(dimension_semantics=(kind,)),
        )

    for kind, count in ((pltpu.PARALLEL, 0), ("parallel", 0), ("arbitrary", 1)):
        assert loops(lambda x, kind=kind: f(x, kind), X[:6]) == count
        np.testing.assert_array_equal(f(X[:6], kind), X[:6] * 2 + 1)


# ----------------------------------------------------------------------------------------------------------------- Refs
INDICES = [
    (pl.ds(1, 2), ...),
    (pl.ds(0, 2, 2), 1),
    (..., pl.dslice(3)),
    (1, pl.ds(1, 3)),
    (slice(0, 2), None, pl.ds(0, 2)),
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_slices_of_fixed_size_are_those_of_numpy(index, traced):
    plain = tuple(
        slice(e.start, e.start + (e.size - 1) * e.stride + 1, e.stride) if isinstance(e, pl.Slice) else e for e in index
    )
    x = RANDOM.normal(size=(3, 4))
    new = RANDOM.normal(size=x[plain].shape)

    def f(x, zero, new):
        moved = tuple(
            pl.Slice(e.start + zero, e.size, e.stride)
            if isinstance(e, pl.Slice)
            else e + zero
            if isinstance(e, int)
            else e
            for e in index
        )
        ref = ft.new_ref(x)
        before = ref[moved]
        ref[moved] = new
        ref.addupdate(new, moved)
        view = ref.at[moved]
        view[...] += 1
        return before, ft.freeze(ref)

    before, after = (ft.jit(f) if traced else f)(x, 0, new)
    np.testing.assert_array_equal(before, x[plain])
    want = x.copy()
    want[plain] = 2 * new + 1
    np.testing.assert_allclose(after, want, rtol=1e-14)


def test_positions_that_are_traced():
    """They count from the end below 0; reads are moved inside, writes outside are dropped."""

    @ft.jit
    def f(x, i):
        ref = ft.new_ref(x)
        got = ref[i, pl.ds(1, 2)]
        ref[i, pl.ds(1, 2)] = 9.0
        return got, ft.freeze(ref)

    x = np.arange(12.0).reshape(3, 4)
    for i, row in ((1, 1), (-1, 2), (5, None)):
        want = x.copy()
        if row is not None:
            want[row, 1:3] = 9
        got, after = f(x, i)
        np.testing.assert_array_equal(got, x[2 if row is None else row, 1:3])
        np.testing.assert_array_equal(after, want)


def test_views_of_views():
    ref = ft.new_ref(fnp.arange(24.0))
    table = ref.reshape(4, 6)
    table.at[1:3].at[pl.ds(0, 2), 1:4].T[0, 1] = -1.0
    ref.transpose().at[0].set(5.0)
    assert ref.at[3:5].swap(fnp.asarray([7.0, 8.0])).tolist() == [3.0, 4.0]
    want = np.arange(24.0)
    want[[13, 0, 3, 4]] = -1, 5, 7, 8
    np.testing.assert_array_equal(ref[...], want)
    assert table.shape == (4, 6) and ref.at[2:5].shape == (3,) and ref.at[2:5].dtype == "float32"


def test_bits_of_a_ref():
    ref = ft.new_ref(fnp.zeros(2))
    ref.bitcast("int32")[0] = 0x3F800000
    assert ref[...].tolist() == [1.0, 0.0]
    with pytest.raises(errors.DtypeError, match="equal width"):
        ref.bitcast("int16")


def test_functions_of_shapes_take_refs():
    ref = ft.new_ref(fnp.ones((2, 3)))
    assert fnp.zeros_like(ref).shape == fnp.shape(ref) == lax.full_like(ref.at[...], 2).shape == (2, 3)
    assert fnp.result_type(ref) == "float32" and fnp.ndim(ref) == 2 and fnp.size(ref) == 6


def test_loops_with_a_carry_and_a_step():
    def kernel(x_ref, o_ref, sum_ref):
        @pl.loop(1, 8, step=3)
        def _(i):
            o_ref[i] = x_ref[i]

        sum_ref[...] = pl.loop(0, pl.num_programs(0) + 9, init_carry=fnp.float32(0))(lambda i, c: c + x_ref[i])

    out, total = call(kernel, (floats(10), floats()), X, grid=1)
    want = np.full(10, np.nan)
    want[[1, 4, 7]] = 1, 4, 7
    np.testing.assert_array_equal(out, want)
    assert total == 45


def test_the_innermost_of_nested_loops_is_traced_once():
    seen = []

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.loop(0, 2)
        def _(i):
            @pl.loop(0, 2)
            def _(j):
                @pl.when(i == j)
                def _():
                    @pl.loop(0, 3)
                    def _(k):
                        seen.append(1)
                        o_ref[k] += x_ref[i]

    np.testing.assert_array_equal(call(kernel, floats(10), X), X + (np.arange(10) < 3))
    assert len(seen) == 1


def test_a_condition_that_is_known_runs_at_once():
    seen = []
    pl.when(False)(lambda: seen.append(1))
    pl.when(np.True_)(lambda: seen.append(2))
    assert seen == [2]


def test_refs_of_a_kernel_in_other_functions():
    @ft.jit
    def helper(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def kernel(x_ref, o_ref):
        helper(x_ref, o_ref)
        lax.fori_loop(0, 3, lambda i, c: o_ref.addupdate(1.0, i) or c, 0)

    np.testing.assert_array_equal(call(kernel, floats(10), X), X * 2 + (np.arange(10) < 3))


def test_a_kernel_that_writes_a_ref_from_outside():
    count = ft.new_ref(fnp.zeros((), "int32"))

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        count[...] += pl.program_id(0)

    call(kernel, floats(10), X, grid=5, in_specs=[by(2)], out_specs=by(2))
    assert count[...] == 10


# -------------------------------------------------------------------------------------------------- masks and atomics
@pytest.mark.parametrize("stride", [1, 2])
def test_masked_slices_may_reach_out_of_bounds(stride):
    n, size = 10, 4

    def kernel(x_ref, o_ref, p_ref):
        start = pl.program_id(0) * 4 - 1
        place = start + fnp.arange(size) * stride
        mask = (place >= 0) & (place < n)
        part = pl.ds(start, size, stride)
        o_ref[...] = plgpu.load(x_ref.at[part], mask=mask, other=-1.0)
        plgpu.store(p_ref.at[part], -x_ref[...][:size], mask=mask)

    x = X
    want, written = [], x.copy()
    for i in range(3):
        for k in range(size):
            place = i * 4 - 1 + k * stride
            want.append(x[place] if 0 <= place < n else -1)
            if 0 <= place < n:
                written[place] = -x[k]
    f = pl.pallas_call(
        kernel,
        (floats(12), floats(10)),
        grid=3,
        in_specs=[pl.no_block_spec],
        out_specs=(by(4), pl.no_block_spec),
        input_output_aliases={0: 1},
    )
    out, p = f(x)
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(p, written)


def test_masked_positions():
    ref = ft.new_ref(X)
    places = fnp.asarray([0, 3, 12, 3])
    mask = fnp.asarray([True, True, False, False])
    plgpu.store(ref.at[places], fnp.asarray([7.0, 8.0, 9.0, 6.0]), mask=mask)
    want = X.copy()
    want[[0, 3]] = 7, 8
    np.testing.assert_array_equal(ref[...], want)
    np.testing.assert_array_equal(plgpu.load(ref.at[places], mask=mask, other=0), [7, 8, 0, 0])


def test_slices_at_known_places_out_of_bounds():
    ref = ft.new_ref(X)
    mask = fnp.arange(4) < 2
    np.testing.assert_array_equal(pltpu.load(ref.at[pl.ds(8, 4)], mask=mask)[:2], X[8:])
    pltpu.store(ref.at[pl.ds(8, 4)], 0, mask=mask)
    np.testing.assert_array_equal(ref[...], [*X[:8], 0, 0])


def test_atomic_updates():
    def kernel(x_ref, o_ref, p_ref):
        o_ref[...] = fnp.zeros_like(o_ref)
        p_ref[...] = fnp.full_like(p_ref, 6)
        before = plgpu.atomic_add(o_ref, x_ref[...], 1.0)
        plgpu.atomic_add(o_ref, (pl.ds(0, 2),), 10.0, mask=fnp.arange(2) > 0)
        plgpu.atomic_max(o_ref, 2, 5.0 + before[0])
        plgpu.atomic_min(o_ref, (pl.ds(3, 1),), -1.0)
        plgpu.atomic_xchg(o_ref, 4, 8.0)
        plgpu.atomic_and(p_ref, 0, 3)
        plgpu.atomic_or(p_ref, 1, 1)
        plgpu.atomic_xor(p_ref, 2, 2)
        plgpu.atomic_cas(p_ref.at[3], 6, 1)
        plgpu.atomic_cas(p_ref.at[4], 5, 1)

    out, bits = call(kernel, (floats(5), ints(5)), np.int32([0, 0, 1, 3]))
    assert out.tolist() == [2, 11, 5, -1, 8]
    assert bits.tolist() == [2, 7, 4, 1, 6]


# ------------------------------------------------------------------------------------------------- other parts of pltpu
def test_copies_and_semaphores():
    def kernel(x_ref, o_ref, count_ref, sem):
        def inner(part, copied):
            copying = pltpu.make_async_copy(x_ref.at[pl.ds(2, 4)], part, copied.at[1])
            copying.start()
            copying.wait()
            pltpu.async_copy(part, o_ref, copied.at[0], add=False).wait()
            pltpu.sync_copy(part, o_ref, add=True)

        pl.run_scoped(inner, pltpu.VMEM((4,), "float32"), copied=pltpu.SemaphoreType.DMA((2,)))
        pl.semaphore_signal(sem, 3)
        pl.semaphore_wait(sem, 1)
        count_ref[...] = pl.semaphore_read(sem)

    f = pl.pallas_call(kernel, (floats(4), ints()), scratch_shapes=[pltpu.SemaphoreType.REGULAR])
    out, count = f(X)
    np.testing.assert_array_equal(out, 2 * X[2:6])
    assert count == 2
    with pytest.raises(errors.UnsupportedError, match="other devices"):
        pltpu.make_async_remote_copy(None, None)


def test_rotations():
    x = RANDOM.normal(size=(3, 4))
    np.testing.assert_array_equal(pltpu.roll(x, 2, 1), np.roll(x, 2, 1))
    got = pltpu.roll(fnp.asarray(x), 1, 1, stride=2, stride_axis=0)
    np.testing.assert_array_equal(got, [np.roll(row, 1 + 2 * k) for k, row in enumerate(x)])
    got = pltpu.roll(fnp.asarray(x), 1, 0, stride=1, stride_axis=1)
    np.testing.assert_array_equal(got, np.stack([np.roll(column, 1 + k) for k, column in enumerate(x.T)], 1))


def test_bits_as_another_dtype():
    x = RANDOM.integers(0, 2**31, (2, 3), np.int32)
    narrow = np.asarray(pltpu.bitcast(fnp.asarray(x), "int16"))
    halves = x.view(np.int16).reshape(2, 3, 2).transpose(0, 2, 1).reshape(4, 3)
    np.testing.assert_array_equal(narrow, halves)
    np.testing.assert_array_equal(pltpu.bitcast(fnp.asarray(narrow), "int32"), x)


def test_random_bits_depend_on_the_seed_and_the_draw():
    def kernel(o_ref):
        pltpu.prng_seed(3, pl.program_id(0))
        o_ref[0] = pltpu.prng_random_bits((1000,))
        o_ref[1] = pltpu.prng_random_bits((1000,))

    spec = pl.BlockSpec((None, 2, 1000), lambda i: (i, 0, 0))
    bits = np.asarray(call(kernel, ints(2, 2, 1000), grid=2, out_specs=spec)).reshape(4, 1000)
    assert len(np.unique(bits)) > 3990
    ones = np.unpackbits(bits.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 0.01


def test_costs():
    f = lambda x, y: fnp.sin(x @ y) + 1
    cost = pl.estimate_cost(f, floats(8, 16), floats(16, 4))
    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (2 * 8 * 16 * 4 + 32, 32, 4 * (128 + 64 + 32))
    assert b'"transcendentals": 32' in cost.to_json()


def test_costs_of_a_function_with_static_arguments():
    @functools.partial(ft.jit, static_argnames=("double", "scale"))
    def f(x, other, double, *, scale):
        return fnp.sin(x) * scale if double else x

    assert pl.estimate_cost(f, floats(8), None, True, scale=2.0).transcendentals == 8
    assert pl.estimate_cost(f, floats(8), None, False, scale=2.0).transcendentals == 0


def test_checks_under_checkify():
    def kernel(x_ref, o_ref):
        pl.debug_check(x_ref[0] < 3, "too large")
        o_ref[...] = x_ref[...]

    f = pl.pallas_call(kernel, floats(10))
    with pl.enable_debug_checks():
        failed, _ = ft.checkify.checkify(f)(X + 5)
        fine, _ = ft.checkify.checkify(f)(X)
    assert "too large" in failed.get() and fine.get() is None


def test_a_pipeline_with_an_index_map_that_reads_a_ref():
    def inner(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def kernel(order_ref, x_ref, o_ref):
        blocks = pl.BlockSpec((2,), lambda i: order_ref[i])
        pltpu.emit_pipeline(inner, grid=(3,), in_specs=[blocks], out_specs=[by(2)])(x_ref, o_ref)

    order = np.int32([2, 0, 1])
    np.testing.assert_array_equal(call(kernel, floats(6), order, X[:6]), 2 * X[:6].reshape(3, 2)[order].ravel())


def test_state_as_a_function_of_arrays():
    def f(refs):
        x, y = refs

        @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2))
        def _():
            part = pl.ds(lax.axis_index("core") * 5, 5)
            y[part] = x[part] * 3

    x, y = ft.jit(pl.run_state(f))((X, np.zeros_like(X)))
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, 3 * X)


# --------------------------------------------------------------------------------------------------------------- errors
def wrong(message, error, kernel=copy, out=None, operands=(X,), **options):
    return pytest.param(message, error, kernel, out or floats(10), operands, options, id=message)


@pytest.mark.parametrize(
    ("message", "error", "kernel", "out", "operands", "options"),
    [
        wrong("dimensions, the array", errors.ShapeError, in_specs=[pl.BlockSpec((5, 1), lambda i: (i, 0))]),
        wrong("returned 2 indices", errors.ShapeError, grid=2, in_specs=[pl.BlockSpec((5,), lambda i: (i, 0))]),
        wrong("returned f32", errors.DtypeError, grid=2, in_specs=[pl.BlockSpec((5,), lambda i: i * 1.0)]),
        wrong("in_specs of kernel copy", errors.TreeError, grid=2, in_specs=[by(5), by(5)]),
        wrong("out_specs of kernel copy", errors.TreeError, grid=2, out_specs=[by(5), by(5)]),
        wrong("is a dimension of the block", errors.ArgumentError, grid=2, in_specs=[by(0)]),
        wrong("is to be result 0", errors.ShapeError, out=floats(11), input_output_aliases={0: 0}),
        wrong("there are 1 operands", errors.ArgumentError, input_output_aliases={3: 0}),
        wrong("grid_spec= and grid", errors.ArgumentError, grid=2, grid_spec=pl.GridSpec(grid=2)),
        wrong("has the size", errors.ArgumentError, grid=(2.5,)),
        wrong("does not describe a scratch", errors.ArgumentError, scratch_shapes=[3]),
        wrong("scratch_shapes of kernel copy", errors.ArgumentError, scratch_shapes=pltpu.VMEM((2, 3), "float32")),
        wrong("out_shape of kernel copy", errors.ArgumentError, out=3.5),
        wrong("returned 1", errors.ArgumentError, kernel=lambda x, o: 1),
        wrong("whose grid", errors.ArgumentError, kernel=lambda x, o: o.set(pl.program_id(1)), grid=2),
        wrong("out of bounds", errors.BoundsError, kernel=lambda x, o: o.set(x[pl.ds(8, 4)])),
        wrong("out of bounds", errors.BoundsError, kernel=lambda x, o: o.set(x[pl.ds(pl.program_id(0), 11)]), grid=1),
        wrong("got i32", errors.DtypeError, kernel=lambda x, o: o.set(x[...].astype("int32"))),
        wrong("do not broadcast", errors.ShapeError, kernel=lambda x, o: o.set(x[:5])),
        wrong("Refs of 1 operand, 1 result", TypeError, kernel=lambda x: None),
        wrong("num_scalar_prefetch=1", errors.ArgumentError, operands=(), grid_spec=pltpu.PrefetchScalarGridSpec(1)),
    ],
)
def test_mistakes_are_named(message, error, kernel, out, operands, options):
    with pytest.raises(error, match=message):
        call(kernel, out, *operands, **options)


def test_program_id_outside_of_kernels():
    with pytest.raises(errors.ArgumentError, match="outside of a kernel"):
        pl.program_id(0)
    with pytest.raises(errors.ArgumentError, match="as block_shape"):
        pl.BlockSpec(lambda i: i, (2,))
    with pytest.raises(errors.ArgumentError, match="known while tracing"):
        ft.jit(lambda n: pl.ds(0, n))(3)


@pytest.mark.parametrize(
    ("kernel", "scratch", "refs"),
    [
        (lambda x, y, o: None, (), "1 operand, 1 result$"),
        (lambda x: None, (), "1 operand, 1 result$"),
        (lambda x, o: None, [pltpu.VMEM((2,), "float32")] * 2, "1 operand, 1 result, 2 scratch arrays$"),
        (lambda x, o, kept: None, {"sums": pltpu.VMEM((2,), "float32")}, "1 operand, 1 result, scratch arrays sums$"),
    ],
)
def test_kernels_with_other_parameters_than_refs(kernel, scratch, refs):
    call = pl.pallas_call(kernel, ft.ShapeDtypeStruct((2,), "float32"), scratch_shapes=scratch)
    with pytest.raises(errors.ArgumentError) as caught:
        call(fnp.ones(2))
    head = str(caught.value).splitlines()[0]
    assert re.search(r"kernel <lambda>\(x.*\) is called with the Refs of " + refs, head)


@pytest.mark.parametrize("signature", [5, None])
def test_kernels_whose_signature_cannot_be_read(signature):
    def double(x, o):
        o[...] = 2 * x[...]

    double.__signature__ = signature
    np.testing.assert_array_equal(pl.pallas_call(double, ft.ShapeDtypeStruct((2,), "float32"))(fnp.ones(2)), [2, 2])
