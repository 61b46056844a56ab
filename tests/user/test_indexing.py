import random

import numpy as np
import pytest
from support.compare import same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import counters

SHAPES = [(4, 5, 3), (5, 4), (6,), (3, 4, 2, 3)]


def draw(rng, draws, shape):
    """Return a random index in bounds, made of all kinds of items that NumPy accepts."""
    batch = draws.choice([(), (3,), (2, 3), (1, 3)])
    index, d, dots = [], 0, False
    while d < len(shape) and draws.random() < 0.9:
        n, kind = shape[d], draws.random()
        if kind < 0.15:
            index.append(None)
            continue
        if kind < 0.2 and not dots:
            dots = True
            d += draws.randint(0, len(shape) - d)
            index.append(Ellipsis)
            continue
        if kind < 0.4:
            index.append(draws.randrange(-n, n))
        elif kind < 0.7:
            end = lambda n=n: draws.choice([None, draws.randint(-n - 1, n + 1)])
            index.append(slice(end(), end(), draws.choice([None, 1, 2, -1, -2, 3])))
        elif kind < 0.93:
            index.append(rng.integers(-n, n, size=draws.choice([batch, batch[-1:]])))
        else:
            mask = np.zeros(n, bool)
            mask[rng.choice(n, min(n, 3), replace=False)] = True
            index.append(mask)
        d += 1
    return tuple(index)


@pytest.mark.parametrize("seed", range(60))
def test_reading_and_writing_as_numpy(seed):
    rng, draws = np.random.default_rng(seed), random.Random(seed)
    x = rng.normal(size=draws.choice(SHAPES)).astype(np.float32)
    index = draw(rng, draws, x.shape)
    mine = tuple(fnp.asarray(i) if isinstance(i, np.ndarray) and draws.random() < 0.7 else i for i in index)
    a = fnp.asarray(x)
    try:
        want = x[index]
    except IndexError as error:
        if "out of bounds" not in str(error):  # out of bounds, positions in arrays are clamped instead
            with pytest.raises((IndexError, ValueError)):
                _ = a[mine]
        return
    same(a[mine], want)
    same(ft.jit(lambda x: x[mine])(a), want)
    values = rng.normal(size=want.shape).astype(np.float32)
    for name, ufunc in [("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)]:
        y = x.copy()
        ufunc.at(y, index, values)
        same(getattr(a.at[mine], name)(values), y)
    y = x.copy()
    y[index] = 2.5
    same(a.at[mine].set(2.5), y)
    times = np.zeros_like(x)
    np.add.at(times, index, 1)
    if times.max(initial=0) <= 1:
        y[index] = values
        same(ft.jit(lambda x, v: x.at[mine].set(v))(a, values), y)
    y = np.zeros_like(x)
    np.add.at(y, index, values)
    same(ft.grad(lambda x: (x[mine] * values).sum())(a), y)


@pytest.mark.parametrize(
    "index",
    [
        np.index_exp[::2, [[0], [1]], ..., -1],
        np.index_exp[:, 0, ..., [0, 2]],
        np.index_exp[:, [0, 1, 0], ..., [0, 1, 2]],
        np.index_exp[:, None, [1, 0], ..., None, 1],
        np.index_exp[:, ..., [1, 0], [2, 0]],
        np.index_exp[:, [True, False], ..., [0]],
    ],
    ids=str,
)
def test_dots_that_stand_for_nothing_separate_positions_as_in_numpy(index):
    x = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
    index = tuple(np.asarray(i) if isinstance(i, list) else i for i in index)
    expected, new = x[index], x.copy()
    values = np.arange(1000, 1000 + expected.size, dtype=np.float32).reshape(expected.shape)
    new[index] = values
    same(fnp.asarray(x)[index], expected)
    same(ft.jit(lambda x: x[index])(x), expected)
    same(fnp.asarray(x).at[index].get(), expected)
    same(fnp.asarray(x).at[index].set(values), new)
    same(ft.jit(lambda x, v: x.at[index].set(v))(x, values), new)
    same(fnp.asarray(x).at[index].add(values - expected), new)


def test_positions_that_are_data():
    x = fnp.arange(12.0).reshape(3, 4)
    at = lambda x, i, j: x[i, 1:, None][j]
    assert ft.jit(at)(x, -1, 1).tolist() == [10.0]
    assert ft.vmap(lambda i: x[i])(fnp.asarray([2, 0])).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert ft.vmap(lambda r, i: r[i])(x, fnp.asarray([0, 1, 2])).tolist() == [0, 5, 10]


def test_out_of_bounds():
    x = fnp.arange(3.0)
    for bad in (3, -4, (0, 0), 1.5, "a"):
        with pytest.raises(IndexError):
            _ = x[bad]
        with pytest.raises(IndexError):
            x.at[bad].set(1.0)
    i = fnp.asarray([1, 7, -9])
    assert x[i].tolist() == [1, 2, 0]
    assert float(ft.jit(lambda x, i: x[i])(x, 7)) == 2
    assert x.at[i].set(9.0).tolist() == [0, 9, 2]
    assert ft.jit(lambda x, i: x.at[i].add(1.0))(x, 7).tolist() == [0, 1, 2]
    assert x.at[i].get(mode="wrap").tolist() == [1, 1, 0]
    assert x.at[i].get(mode="fill", fill_value=-1.0).tolist() == [1, -1, -1]
    assert x.at[i].add(1.0, mode="clip").tolist() == [1, 2, 3]
    assert np.isnan(np.asarray(fnp.take(x, i))).tolist() == [False, True, True]
    assert fnp.take(x, i, mode="clip").tolist() == [1, 2, 0]
    assert fnp.take(fnp.arange(5, 9), [True, False]).tolist() == np.take(np.arange(5, 9), [True, False]).tolist()


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex64"])
def test_zeros_that_fill_keep_their_signs(kind):
    """0.0 and -0.0 are equal, but give different programs."""
    x, i = fnp.asarray([1, 2], kind), fnp.asarray([5, 0])
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    ways = [
        lambda fill: fnp.take(x, i, fill_value=fill),
        lambda fill: fnp.take_along_axis(x, i, 0, fill_value=fill),
        lambda fill: x.at[i].get(mode="fill", fill_value=fill),
        lambda fill: lax.gather(x, i[:, None], numbers, (1,), mode="fill", fill_value=fill),
    ]
    for way in ways:
        for fill in (0.0, -0.0, np.float32(0.0), np.float32(-0.0), 0.0):
            for run in (way, lambda fill, way=way: ft.jit(lambda: way(fill))()):
                out = np.asarray(run(fill))
                assert np.signbit(out.real.astype("float32")).tolist() == [bool(np.signbit(fill)), False]
    both = ft.jit(lambda x: (fnp.take(x, i, fill_value=0.0), fnp.take(x, i, fill_value=-0.0)))(x)
    assert [bool(np.signbit(np.asarray(y).real.astype("float32"))[0]) for y in both] == [False, True]


def test_empty_axes():
    none, rows = fnp.zeros(0), fnp.zeros((3, 0))
    assert none[fnp.asarray([], dtype=int)].shape == (0,)
    assert fnp.take(none, fnp.asarray([], dtype=int)).shape == (0,)
    assert rows[fnp.asarray([1])].shape == (1, 0)
    assert none.at[fnp.asarray([0])].set(1.0).shape == (0,)
    assert fnp.take_along_axis(fnp.zeros((0, 3)), fnp.zeros((0, 1), int), 1).shape == (0, 1)
    for bad in (lambda: none[fnp.asarray([0])], lambda: fnp.take(none, 0), lambda: ft.jit(lambda x, i: x[i])(none, 0)):
        with pytest.raises(IndexError, match="empty"):
            bad()


def test_apply_counts_how_often_an_index_occurs():
    x, twice = fnp.arange(6.0), np.array([1, 1, 2])
    expected = np.arange(6, dtype=np.float32)
    np.cos.at(expected, twice)
    np.testing.assert_allclose(x.at[twice].apply(fnp.cos), expected, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(lambda x, i: x.at[i].apply(fnp.cos))(x, twice), expected, rtol=1e-6)
    more, add = [1, 1, 2, 9, -1], lambda v: v + 1
    assert x.at[fnp.asarray(more)].apply(add).tolist() == [0, 3, 3, 3, 4, 6]
    assert x.at[np.array(more)].apply(add, mode="clip").tolist() == [0, 3, 3, 3, 4, 7]
    batch = ft.vmap(lambda x, i: x.at[i].apply(add))(fnp.stack([x, x]), np.array([more, more[::-1]]))
    assert batch.tolist() == [[0, 3, 3, 3, 4, 6]] * 2
    assert fnp.arange(6).reshape(2, 3).at[[1, 1], 1:].apply(lambda v: v * 10).tolist() == [[0, 1, 2], [3, 400, 500]]
    assert x.at[np.zeros(0, int)].apply(add).tolist() == x.tolist()
    # If each index occurs once, there are derivatives, and the function may close over traced values.
    slope = ft.jit(ft.grad(lambda s: fnp.sum(x.at[np.array([1, 2])].apply(lambda v: v * s))))
    assert slope(2.0) == 3
    assert ft.grad(lambda x: fnp.sum(x.at[1:3].apply(fnp.square)))(x).tolist() == [1, 2, 4, 1, 1, 1]
    with pytest.raises(ft.errors.UnsupportedError, match="unique_indices=True"):
        ft.grad(lambda x: fnp.sum(x.at[twice].apply(fnp.cos)))(x)


def test_take_clips_below_as_numpy():
    x, at = np.array([10.0, 11.0, 12.0], np.float32), np.array([0, -1, 5, -9])
    for positions in (at, fnp.asarray(at), at.tolist()):
        np.testing.assert_array_equal(fnp.take(x, positions, mode="clip"), np.take(x, at, mode="clip"))
    np.testing.assert_array_equal(ft.jit(lambda i: fnp.take(x, i, mode="clip"))(at), np.take(x, at, mode="clip"))


def test_other_updates():
    x = fnp.asarray([1.0, 2.0, 3.0])
    assert x.at[1].divide(4).tolist() == [1, 0.5, 3]
    assert x.at[1].power(2).tolist() == [1, 4, 3]
    assert x.at[1].subtract(1).tolist() == [1, 1, 3]
    assert x.at[x > 1.5].set(0.0).tolist() == [1, 0, 0]
    assert fnp.asarray([True, False]).at[1].max(True).tolist() == [True, True]
    assert x.at[:].set(7).tolist() == [7, 7, 7]
    with pytest.raises(ValueError, match="do not broadcast"):
        x.at[:2].set(fnp.ones(3))
    with pytest.raises(TypeError, match="cannot be written"):
        x.at[0].set(1j)


def test_masks_under_jit():
    x = fnp.asarray([1.0, -2.0])
    with pytest.raises(TypeError, match=r"fnp\.where"):
        ft.jit(lambda x: x[x > 0])(x)
    assert ft.jit(lambda x: x.at[x < 0].set(0.0))(x).tolist() == [1, 0]
    mask = fnp.asarray([True, False])
    assert ft.jit(lambda x: x[mask])(x).tolist() == [1]


def test_static_indices_become_slices():
    x = fnp.ones((5, 6))
    text = str(ft.make_jaxpr(lambda x: x[1:, ::-2][None, 0] + x[-1, 1:6:2])(x))
    assert "gather" not in text
    assert "dynamic" not in text
    assert "scatter" not in str(ft.make_jaxpr(lambda x: x.at[1:3, 0].set(2.0))(x))


def test_one_kernel_serves_all_positions():
    x = fnp.arange(50.0)
    for _ in range(3):  # NumPy computes the first calls
        _ = x[0], x[1:4]
    before = counters.snapshot()
    assert [float(x[i]) for i in range(-50, 50)] == [*range(50), *range(50)]
    assert [x[i : i + 3].tolist()[0] for i in range(40)] == [*range(40)]
    assert "compiles" not in counters.since(before)
    assert "cache_hits" not in counters.since(before)


def test_slices_with_traced_ends():
    with pytest.raises(TypeError, match="dynamic_slice"):
        ft.jit(lambda x, i: x[i:])(fnp.ones(3), 1)


def test_set_keeps_derivatives():
    f = lambda x, v: (x.at[1].set(v) * fnp.arange(1.0, 4.0)).sum()
    dx, dv = ft.grad(f, (0, 1))(fnp.ones(3), 5.0)
    assert dx.tolist() == [1, 0, 3]
    assert float(dv) == 2


def test_derivatives_of_products_where_factors_are_zero():
    """x[i] *= u with repeated i is a product. Its derivatives of any order do not divide by a factor."""
    places, u = np.array([1, 0, 1, 1]), np.array([0.0, 5.0, 0.0, 3.0])
    f = lambda u: fnp.full(2, 2.0, dtype="float64").at[places].multiply(u)[1]  # 2 u0 u2 u3
    np.testing.assert_array_equal(ft.grad(f)(u), [0, 0, 0, 0])
    want = np.zeros((4, 4))
    want[0, 2] = want[2, 0] = 2 * 3.0
    np.testing.assert_array_equal(ft.jacfwd(ft.grad(f))(u), want)
    np.testing.assert_array_equal(ft.jit(ft.jacrev(ft.jacfwd(f)))(u), want)
    third = ft.jacfwd(ft.jacfwd(ft.grad(f)))(u)
    assert np.asarray(third)[0, 2, 3] == 2 and np.count_nonzero(third) == 6


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint64"])
@pytest.mark.parametrize("of", [np.asarray, fnp.asarray])
def test_positions_of_narrow_dtypes_are_counted_around(dtype, of):
    x, at = np.arange(300.0), np.array([5, -1, 100]).astype(dtype)
    for f in (lambda i: fnp.take(x, i, mode="wrap"), ft.jit(lambda i: fnp.take(x, i, mode="wrap"))):
        np.testing.assert_array_equal(f(of(at)), x[[int(i) % 300 for i in at]])
    np.testing.assert_array_equal(fnp.take(x[:7], of(at), mode="wrap"), x[[int(i) % 7 for i in at]])


def test_negative_positions_that_do_not_count_from_the_end():
    x, at = fnp.asarray([[1.0, 2.0], [3.0, 4.0]]), fnp.asarray([[0, -1], [1, 2]])
    for through in (lambda f: f, ft.jit):
        along = lambda mode: through(  # noqa: B023
            lambda at: fnp.take_along_axis(x, at, 1, mode=mode, wrap_negative_indices=False)
        )(at)
        np.testing.assert_array_equal(along("fill"), [[1, np.nan], [4, np.nan]])
        np.testing.assert_array_equal(along("clip"), [[1, 1], [4, 4]])


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("index", [[-1, 1], np.array([-1, 1], np.int8), [-4, 1]])
def test_negative_positions_that_are_out_of_bounds(way, index):
    x, i = fnp.arange(1, 5), fnp.asarray(index)
    options = {"wrap_negative_indices": False}
    assert way(lambda x, i: x.at[i].get(**options))(x, i).tolist() == [1, 2]
    assert way(lambda x, i: x.at[i].get(mode="fill", fill_value=9, **options))(x, i).tolist() == [9, 2]
    assert way(lambda x, i: x.at[i].set(7, **options))(x, i).tolist() == [1, 7, 3, 4]
    assert way(lambda x, i: x.at[i].add(7, mode="clip", **options))(x, i).tolist() == [8, 9, 3, 4]
    assert way(lambda x, i: x.at[i].apply(fnp.negative, **options))(x, i).tolist() == [1, -2, 3, 4]
    assert way(lambda x, i: x.at[i].divide(2, **options))(x, i).tolist() == [1, 1, 3, 4]
    # Known positions, slices and masks
    known = np.asarray(index)
    assert way(lambda x: x.at[known].multiply(7, **options))(x).tolist() == [1, 14, 3, 4]
    assert way(lambda x: x.at[-1].get(**options))(x) == 1 and (way(lambda x: x.at[-1].set(7, **options))(x) == x).all()
    assert way(lambda x: x.at[:-1].get(**options))(x).tolist() == [1, 2, 3]
    two = fnp.arange(6).reshape(2, 3)
    assert way(lambda x: x.at[-1, fnp.asarray([0, 1])].set(9, **options))(two).tolist() == two.tolist()


def test_at_is_no_sequence():
    for at in (fnp.arange(3).at, ft.random.split(ft.random.key(0)).at):
        with pytest.raises(TypeError):
            iter(at)
        with pytest.raises(TypeError):
            1 in at  # noqa: B015


def test_updates_of_slices_are_one_window():
    step = ft.jit(lambda x: x.at[1:-1, 1:-1].add(x[2:, 1:-1]))
    x = np.random.default_rng(0).normal(size=(64, 50))
    want = x.copy()
    want[1:-1, 1:-1] += x[2:, 1:-1]
    np.testing.assert_allclose(step(x), want, rtol=1e-15)
    assert "scatter(" not in step.lower(x).compile().as_text()


OPERATIONS = {"set": None, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
WINDOWS = [
    np.s_[1:-1, 1:-1], np.s_[::2, 1:4], np.s_[4:1:-1, ::-1], np.s_[1:3, :, None, 2:4], np.s_[[0, 3, 5], 1:4],
    np.s_[1:4, [0, 3, 5]], np.s_[1:3, [[0, 2], [1, 4]], 2:4], np.s_[0:0, 1:2], np.s_[[5, 1], ::2, 3:1:-1],
    np.s_[[0, 1], 1:3, [2, 3]], np.s_[-3:, -2],
]  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("index", WINDOWS, ids=str)
def test_updates_of_slices_and_positions(index, name):
    index = tuple(np.asarray(i) if isinstance(i, list) else i for i in index)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 7, 5))
    values = rng.normal(size=x[index].shape)
    want = x.copy()
    want[index] = values if OPERATIONS[name] is None else OPERATIONS[name](x[index], values)
    update = lambda x, values: getattr(x.at[index], name)(values)
    np.testing.assert_allclose(ft.jit(update)(x, values), want, rtol=1e-14)
    both = ft.vmap(update)(np.stack([x, -x]), np.stack([values, values]))
    np.testing.assert_allclose(both[0], want, rtol=1e-14)
    slope = ft.jit(ft.grad(lambda x, values: (update(x, values) ** 3).sum(), (0, 1)))
    if name in ("set", "add"):
        near = 3 * want**2
        free = near.copy()
        if name == "set":
            free[index] = 0
        np.testing.assert_allclose(slope(x, values)[0], free, rtol=1e-13)
        np.testing.assert_allclose(slope(x, values)[1], near[index], rtol=1e-13)


# ------------------------------------------------------------------------------------------------- loops over positions
@pytest.mark.parametrize("op", ["set", "add", "multiply", "min"])
@pytest.mark.parametrize(
    "place",
    [
        lambda i: i, lambda i: -1 - i, lambda i: np.s_[:, i], lambda i: np.s_[i, -1 - i], lambda i: np.s_[i : i + 2],
        lambda i: np.s_[i : i + 2, i : i + 3], lambda i: np.s_[None, i, 1:], lambda i: np.s_[i, ::-1],
        lambda i: np.s_[..., i], lambda i: np.s_[i, [1, 2]],
    ],
    ids=[
        "row", "from-the-end", "column", "element", "rows", "block", "new-axis", "reversed", "ellipsis", "with-a-list",
    ],
)  # fmt: skip
def test_a_loop_of_updates_compiles_one_program(op, place):
    x, expected = fnp.asarray(np.arange(30.0).reshape(5, 6)), np.arange(30.0).reshape(5, 6)
    combine = {"set": lambda a, b: b, "add": np.add, "multiply": np.multiply, "min": np.minimum}[op]
    x = getattr(x.at[place(0)], op)(7.5)
    expected[place(0)] = combine(expected[place(0)], 7.5)
    with ft.testing.count_compiles() as compiles:
        for i in range(1, 4):
            x = getattr(x.at[place(i)], op)(7.5 - i)
            expected[place(i)] = combine(expected[place(i)], 7.5 - i)
    assert compiles.count == 0
    np.testing.assert_array_equal(x, expected)


def test_static_positions_stay_static_in_a_program():
    jaxpr = str(ft.make_jaxpr(lambda y: fnp.zeros(5).at[2].set(y))(1.0))
    assert "dynamic_update_slice" in jaxpr and "scatter" not in jaxpr
