"""NumPy computes first eager calls: with the bits of compiled programs, and with few programs compiled."""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import primitives
from functorch_like.avals import ShapedArray
from functorch_like.backends.xla import counters
from functorch_like.interpreters import eager_notice, host_evaluation
from functorch_like.interpreters.host_evaluation import FIRST_CALLS
from functorch_like.primitives import families
from functorch_like.transforms.eager_jit import eager_jit

NUMBERS = [*("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"), *("float16", "float32", "float64")]

ALL = [getattr(primitives, name) for name in families.HOME]
MOVES = {p.name: p for p in ALL if p.kind == "movement" and not p.multiple_results}
COMPUTES = {p.name: p for p in ALL if p.exact and p.name not in MOVES}


# Other compile options: half of the tests optimise all programs at once, and NumPy computes no functions then.
@pytest.fixture(autouse=True)
def _tiers():
    with ft.backends.compilation.flags(tiers="auto"):
        yield


@contextmanager
def first_calls(count):
    token = FIRST_CALLS.swap_local(count)
    try:
        yield
    finally:
        FIRST_CALLS.restore(token)


def specials(dtype):
    """Return numbers for which results are likely to differ in a bit: all signs, NaN payloads and magnitudes."""
    r = np.random.default_rng(1)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        i = np.iinfo(dtype)
        ends = [i.min, i.min + 1, -1, 0, 1, 2, 7, i.max // 2, i.max // 2 + 1, i.max - 1, i.max]
        ends = np.array([n % 2**i.bits for n in ends], f"u{dtype.itemsize}").view(dtype)
        return np.concatenate([ends, r.integers(i.min, i.max, 12, dtype)])
    f = np.finfo(dtype)
    tiny, least = f.tiny, f.smallest_subnormal
    values = [0, 1, 1.5, 0.5, 2.5, 3, f.max, f.eps, 1 + f.eps, tiny, tiny / 2, least, 5 * least, np.inf, np.nan]
    values += [1e5, 2.0**31, 2.0**32, 2.0**63, 255.5, 127.5]
    with np.errstate(over="ignore"):
        values = np.array(values, dtype)
    nan = values[14:15].view(f"u{dtype.itemsize}") + 5  # another payload
    drawn = r.standard_normal(12) * 10.0 ** r.integers(-6, 6, 12)
    with np.errstate(over="ignore"):
        whole = np.concatenate([values, nan.view(dtype), drawn.astype(dtype)])
    return np.concatenate([whole, -whole])


def bits(x):
    x = np.asarray(x)
    return x.shape, x.dtype, x.tobytes()


def drawn(operand, index):
    if not isinstance(operand, ShapedArray):
        return np.asarray(operand)
    if operand.dtype.isbuiltin != 1:
        return None
    if operand.dtype.kind == "c":
        part = np.dtype(f"f{operand.dtype.itemsize // 2}")
        return np.resize(np.roll(specials(part), index), (*operand.shape, 2)).view(operand.dtype)[..., 0]
    return np.resize(np.roll(specials(operand.dtype), 7 * index), operand.shape)


def cases(prim):
    """Yield operands and parameters: samples filled with special values; for computing primitives all pairs, too."""
    for sample in prim.samples():
        operands = [drawn(x, i) for i, x in enumerate(sample.operands)]
        if all(x is not None for x in operands):
            yield operands, sample.params
    if prim.name not in COMPUTES or prim.kind != "elementwise":
        return
    count = next(len(s.operands) for s in prim.samples())
    for dtype in [
        "bool",
        "int8",
        "uint8",
        "int16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ]:
        values = specials(np.dtype(dtype))
        pair = [x.ravel() for x in np.meshgrid(values, values)][:count]
        if prim.name == "convert_element_type":
            for new in NUMBERS:
                yield pair, {"new_dtype": np.dtype(new), "weak_type": False}
            continue
        try:
            prim.shape(*[ShapedArray(x.shape, x.dtype) for x in pair])
        except ft.errors.FtError:
            continue
        yield pair, {}


def usual(x):
    """Mark numbers other than NaN and subnormal ones, which are left to XLA."""
    return (np.abs(x) > np.finfo(x.dtype).tiny) | (x == 0) if x.dtype.kind == "f" else np.full(x.shape, True)


def usual_ones(operands, expected):
    """Return the elements of a computing primitive's operands and result that NumPy may compute."""
    with np.errstate(invalid="ignore"):
        keep = np.logical_and.reduce([usual(x) for x in (*operands, expected)])
    return [x[keep] for x in operands], expected[keep]


@pytest.mark.parametrize("name", sorted([*MOVES, *COMPUTES]))
def test_numpy_and_xla_agree_to_the_bit(name):
    prim = MOVES.get(name) or COMPUTES[name]
    known = list(cases(prim))
    assert len(known) > 2
    operands = [[fnp.asarray(x) for x in xs] for xs, _ in known]
    compiled = ft.jit(lambda given: [prim(*xs, **params) for xs, (_, params) in zip(given, known, strict=True)])
    want = compiled(operands)
    with warnings.catch_warnings(), first_calls(1000):
        warnings.simplefilter("error")
        by_numpy = 0
        for (xs, params), result in zip(known, map(np.asarray, want), strict=True):
            pairs = prim.kind == "elementwise" and xs[0].ndim == 1
            xs, expected = usual_ones(xs, result) if pairs else (xs, result)
            calls = host_evaluation.for_primitive(prim, params)
            got = calls([fnp.asarray(x) for x in xs])
            if got is not None:
                by_numpy += 1
                assert bits(got) == bits(expected), (name, params, [x.dtype for x in xs])
    assert by_numpy >= len(known) // 5


def test_nan_and_subnormal_numbers_are_left_to_xla():
    calls = host_evaluation.for_primitive(primitives.add, {})
    for strange in (np.nan, -np.nan, 1e-40, -1e-45, np.finfo("float32").tiny):
        x = fnp.asarray(np.array([1.0, strange], "float32"))
        assert calls((x, x)) is None
    assert calls((x[:1], x[:1])) is not None
    x = fnp.asarray([1.0, np.nan])
    moves = host_evaluation.for_primitive(primitives.reshape, {"shape": (2, 1)})
    assert np.isnan(np.asarray(moves((x,)))[1, 0])


def test_what_numpy_does_not_compute():
    x = fnp.ones(3)
    for prim in (primitives.exp, primitives.dot_general, primitives.reduce_sum, primitives.split, primitives.div):
        assert host_evaluation.for_primitive(prim, {}) is None
    add = host_evaluation.for_primitive(primitives.add, {})
    large = fnp.ones(2**14 + 1)
    for args in ((2.0, x), (x.astype("bfloat16"),) * 2, (x.astype("complex64"),) * 2, (large, large)):
        assert add(args) is None


def test_calls_become_compiled():
    x = fnp.ones((3, 5, 7))
    with first_calls(4):
        before = counters.snapshot()
        for _ in range(4):
            primitives.neg(x)
        assert "compiles" not in counters.since(before) and "cache_hits" not in counters.since(before)
        primitives.neg(x)
        grown = counters.since(before)
        assert grown.get("compiles", 0) + grown.get("cache_hits", 0) == 1 and grown["misses"] == 5
        for _ in range(5):
            primitives.neg(x)
        assert counters.since(before)["misses"] == 5  # C++ runs it


def test_results_stay_where_their_operands_are():
    place = ft.devices()[-1]
    x = ft.device_put(np.arange(3.0), place)
    y = primitives.neg(x)
    assert y._committed and y.devices() == {place} and not primitives.neg(fnp.asarray([2.0]))._committed
    weak = primitives.neg(fnp.asarray(2.0))
    assert weak.aval == ft.jit(primitives.neg)(fnp.asarray(2.0)).aval


def test_what_the_reference_refuses_is_left_to_xla():
    out = ShapedArray((3,), np.float64)
    params = {"padding": "not a padding"}
    assert host_evaluation.computed(primitives.pad, params, [np.ones(3), np.ones(())], out) is None


def test_reports_name_what_numpy_computed():
    x = fnp.ones((2, 9))
    why = ft.explain(primitives.neg)(x)
    assert why.count("numpy") == 1 and "let NumPy compute neg" in str(why) and "compiled before" not in str(why)
    with ft.profiler.profile() as found:
        primitives.neg(x)
    assert found.by_numpy == 1 and "by NumPy, being new: 1 eager" in str(found) and "by NumPy" in found._repr_html_()
    with first_calls(0), ft.profiler.profile() as found:
        primitives.neg(x)
    assert found.by_numpy == 0


def test_results_do_not_share_memory_with_operands():
    host = np.arange(6.0, dtype="float32")
    y = primitives.reshape(host, shape=(2, 3))
    host[:] = 9
    assert np.asarray(y)[0, 1] == 1


def test_errors_are_the_same():
    with pytest.raises(ft.errors.ShapeError, match=r"add\(f32\[2\], f32\[3\]\)"):
        primitives.add(fnp.ones(2), fnp.ones(3))


# ------------------------------------------------------------------------------------------ functions of the user level
def grown(f, *args):
    """Return the result, the number of programs compiled or loaded, and of functions that NumPy computed."""
    before = counters.snapshot()
    result = f(*args)
    found = counters.since(before)
    return result, found.get("compiles", 0) + found.get("cache_hits", 0), found.get("computed_by_numpy", 0)


M = np.arange(12, dtype="float32").reshape(3, 4) - 5
N = np.linspace(2, 3, 4, dtype="float32")
CELLS = {
    "product": (lambda m, n: m * n, M * N),
    "a number": (lambda m, n: 2.5 - m, np.float32(2.5) - M),
    "an int": (lambda m, n: m + 3, M + 3),
    "comparison": (lambda m, n: (m > n) | (m <= -1), (M > N) | (M <= -1)),
    "all": (lambda m, n: fnp.all(m < 7, axis=1), np.all(M < 7, axis=1)),
    "any": (lambda m, n: (m == 6).any(), (M == 6).any()),
    "finite": (lambda m, n: fnp.isfinite(m), np.isfinite(M)),
    "choice": (lambda m, n: fnp.where(m > 0, m, n), np.where(M > 0, M, N)),
    "clip": (lambda m, n: fnp.clip(m, -1, 2), np.clip(M, -1, 2)),
    "absolute": (lambda m, n: abs(-m), abs(M)),
    "row": (lambda m, n: m[1], M[1]),
    "last element": (lambda m, n: m[-1, -1], M[-1, -1]),
    "slice": (lambda m, n: m[1:, ::-2], M[1:, ::-2]),
    "new axis": (lambda m, n: n[:, None], N[:, None]),
    "shape": (lambda m, n: m.reshape(2, 6), M.reshape(2, 6)),
    "transpose": (lambda m, n: m.T, M.T),
    "joined": (lambda m, n: fnp.concatenate([m, n[None]]), np.concatenate([M, N[None]])),
    "stacked": (lambda m, n: fnp.stack([n, n + 1], -1), np.stack([N, N + 1], -1)),
    "dtype": (lambda m, n: m.astype(np.int32), M.astype(np.int32)),
}


@pytest.mark.parametrize("name", CELLS)
def test_first_cells_of_a_notebook_compile_nothing(name):
    f, want = CELLS[name]
    ft.clear_caches()  # of calls by other tests
    m, n = fnp.asarray(M), fnp.asarray(N)
    result, compiled, by_numpy = grown(f, m, n)
    assert compiled == 0 and by_numpy >= 1
    with first_calls(0):
        same = f(m, n)
    assert bits(result) == bits(same) == bits(want) and result.aval == same.aval
    assert not np.shares_memory(np.asarray(result), np.asarray(m))


def test_functions_become_compiled():
    x = fnp.ones((7, 3, 5))
    ran = [grown(lambda: fnp.minimum(x, 2 * x) - 1)[1:] for _ in range(4)]
    assert ran == [(0, 3), (0, 3), (3, 0), (0, 0)]
    before = counters.snapshot()
    fnp.minimum(x, x)
    assert "misses" not in counters.since(before)  # C++ runs it
    with ft.backends.compilation.flags(tiers="off"):
        assert grown(lambda: fnp.maximum(x, x))[1:] == (1, 0)


def test_functions_that_xla_computes_from_the_first_call():
    x = fnp.ones((2, 11))
    large = fnp.ones((2**14 + 3,))
    nan = fnp.asarray(np.array([1, np.nan, 3], "float32"))
    for f, args in (
        (fnp.exp, (x,)),
        (fnp.multiply, (large, large)),
        (fnp.add, (x.astype("bfloat16"),) * 2),
        (fnp.add, (x.astype("complex64"),) * 2),
        (fnp.subtract, (nan, nan)),
        (fnp.add, (np.float32(1e-40), x)),
    ):
        assert grown(f, *args)[1:] == (1, 0)


def test_results_of_several_operations_have_the_bits_of_compiled_programs():
    """XLA rounds a product and its sum once, folds constants, and leaves additions of 0 out."""
    jitted = lambda f: eager_jit(f, ints=True)
    r = np.random.default_rng(3)
    for dtype in ("float16", "float32", "float64"):
        v, w = r.normal(size=(2, 7, 3)).astype(dtype)
        x, y, z = r.normal(size=(3, 50)).astype(dtype)
        zero = np.array([-0.0, 0.0, 1.0], dtype)
        for f, args in (
            (fnp.cross, (v, w)),
            (fnp.cross, (v, v)),
            (jitted(lambda x, y, z: x * y + z), (x, y, z)),
            (jitted(lambda x: x * 3.0 * 5.0), (x,)),
            (jitted(lambda x: x + 0.0), (zero,)),
            (jitted(lambda x: (x - 0.0) * 1.0), (zero,)),
            (jitted(lambda x: -(x - x[::-1])), (zero,)),
            (jitted(lambda x, y: fnp.where(x > y, x, x - y)), (x, y)),
            (jitted(lambda x, dtype=dtype: x.astype("float16").astype(dtype) * x), (x,)),
        ):
            given = [fnp.asarray(a) for a in args]
            calls = [bits(f(*given)) for _ in range(4)]
            assert calls == [calls[3]] * 4, (f, dtype)


def test_signs_that_xla_changes_are_the_same_in_all_calls():
    """XLA makes a choice of a product with a boolean: 0 for False, not -0. It takes integers squared for positive."""
    jitted = lambda f: eager_jit(f, ints=True)
    x = fnp.asarray(np.array([-2.5, 3.0, -1.0], "float32"))
    mask = fnp.asarray(np.array([False, True, False]))
    least = fnp.asarray(np.array([-128, 63, 3], "int8"))
    for f, args in (
        (fnp.multiply, (mask, x)),
        (fnp.multiply, (x[None], mask)),
        (fnp.multiply, (mask, -1.5)),
        (jitted(lambda m, x: fnp.stack([m, m])[..., None] * x), (mask, x)),
        (jitted(lambda m, x: (-x.reshape(3, 1)) * m.astype(x.dtype).reshape(1, 3)), (mask, x)),
        (jitted(lambda x: abs(x * x)), (least,)),
        (jitted(lambda x: abs(x) >= 0), (least,)),
        (jitted(lambda x: fnp.maximum(abs(x), -x)), (least,)),
    ):
        calls = [f(*args) for _ in range(4)]
        assert [bits(y) for y in calls] == [bits(calls[3])] * 4, f


def test_numbers_that_overflow_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert np.isinf((fnp.ones(5) * 1e300).tolist()).all()


def test_results_of_functions_stay_where_their_operands_are_and_are_inspected():
    place = ft.devices()[-1]
    x = ft.device_put(np.arange(3.0, dtype="float32"), place)
    y = x * fnp.ones(3)
    assert y._committed and y.devices() == {place} and not (fnp.ones(3) * 2)._committed
    big = fnp.full((3, 2), 3e38)
    assert np.isinf((big * big).tolist()).all()
    with ft.debug.infs(), pytest.raises(ft.errors.NonFiniteError):
        big * big
    gone = fnp.ones((3, 3))
    gone.delete()
    with pytest.raises(ft.errors.FtError, match="deleted"):
        gone + 1


# ------------------------------------------------------------------------------- the Hessian of a Gaussian process
R = np.random.default_rng(0)
X = R.uniform(-2, 2, (9, 1))
Y = np.sin(X[:, 0])


def evidence(p, np=fnp, cholesky=fnp.linalg.cholesky):
    d = (X[:, None, 0] - X[None, :, 0]) / np.exp(p[0])
    k = np.exp(-0.5 * d**2) + np.exp(p[1]) * np.eye(len(X))
    lower = cholesky(k)
    return 0.5 * Y @ k @ Y + np.sum(np.log(np.diagonal(lower)))


def test_an_eager_hessian_compiles_few_programs():
    p = fnp.asarray(np.array([0.1, 0.2]))
    before = counters.snapshot()
    hessian = np.asarray(ft.hessian(evidence)(p))
    grown = counters.since(before)
    assert grown.get("compiles", 0) + grown.get("cache_hits", 0) < 60

    def value(*steps):
        return evidence(np.array([0.1, 0.2]) + np.sum(steps, 0), np, np.linalg.cholesky)

    e = np.eye(2) * 1e-3
    want = [[(value(a, b) - value(a, -b) - value(-a, b) + value(-a, -b)) / 4e-6 for a in e] for b in e]
    np.testing.assert_allclose(hessian, want, rtol=1e-4, atol=1e-5)


def test_the_user_is_notified_once(monkeypatch, caplog):
    monkeypatch.setattr(eager_notice, "_programs", 0)
    monkeypatch.setattr(eager_notice, "_seconds", 0.0)
    monkeypatch.setattr(eager_notice, "PROGRAMS", 3)
    monkeypatch.setattr(eager_notice, "SECONDS", 0.0)
    for _ in range(8):
        with eager_notice.compiling("sin"):
            pass
    (record,) = [r for r in caplog.records if r.name == "functorch_like"]
    assert "3 operations outside of jit" in record.getMessage() and "ft.jit(ft.grad(f))(x)" in record.getMessage()
    assert "test_host_calls.py" in record.getMessage()
